"""How often somebody may call."""

from __future__ import annotations

import httpx
import pytest

from banditto.service.rate_limits import RateLimits
from tests.service.services import bearer, new_token, service_in_thread


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_again() -> None:
    clock = Clock()
    limits = RateLimits(10.0, clock)
    assert [limits.wait("a") for _ in range(20)] == [0.0] * 20
    assert limits.wait("a") == pytest.approx(0.1)
    assert limits.wait("b") == 0.0  # somebody else's is his own
    clock.now = 0.1
    assert limits.wait("a") == 0.0
    assert limits.wait("a") > 0
    clock.now = 100.0
    assert [limits.wait("a") for _ in range(21)].count(0.0) == 20


def test_callers_are_forgotten_before_they_fill_the_memory() -> None:
    limits = RateLimits(1.0, Clock())
    for number in range(20_000):
        limits.wait(str(number))
    assert len(limits._buckets) == 10_000


def test_a_caller_that_comes_too_often_is_told_when_to_come_back(cta: str) -> None:
    with service_in_thread(cta, rate=1.0) as address, httpx.Client(base_url=address, timeout=60) as client:
        mine, other = bearer(new_token(cta)), bearer(new_token(cta))
        found = [client.get("/v1/experiments", headers=mine) for _ in range(6)]
        assert [answer.status_code for answer in found].count(429) >= 3
        assert found[-1].headers["retry-after"] == "1"
        assert found[-1].json()["detail"].startswith("too many requests; the next one may come in")
        assert client.get("/v1/experiments", headers=other).status_code == 200


def test_strangers_cannot_try_tokens_for_ever(cta: str) -> None:
    with service_in_thread(cta) as address, httpx.Client(base_url=address, timeout=60) as client:
        guesses = [f"bdt_{number:012x}_{'A' * 43}" for number in range(80)]
        codes = [client.get("/v1/experiments", headers=bearer(guess)).status_code for guess in guesses]
        assert set(codes) == {401, 429}
        assert client.get("/healthz").status_code == 200
