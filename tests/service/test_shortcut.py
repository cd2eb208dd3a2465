"""Asks and tells that go past FastAPI are answered as FastAPI would answer them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from banditto.service.shortcut import Shortcut
from tests.service.services import bearer

PLAIN, LONGER = "application/json", "application/json; charset=utf-8"  # only the former goes the short way
ASKS: list[tuple[Any, dict[str, str]]] = [
    ({"n": 2, "request_id": "first"}, {}),
    ({"n": 2, "request_id": "first"}, {}),
    ({"n": 1, "request_id": "first"}, {}),
    ({"n": 1}, {"Idempotency-Key": "second"}),
    ({"n": 1, "request_id": "third"}, {"Idempotency-Key": "second"}),
    ({"unit": "anna"}, {}),
    ({"unit": "anna", "n": 2}, {}),
    ({"n": 0}, {}),
    ({"n": "1"}, {}),
    ({"n": 1.0}, {}),
    ({"n": True}, {}),
    ({"m": 1}, {}),
    ([], {}),
    (b"{", {}),
    (b"", {}),
    (b"\xff", {}),
    (b"[" * 100_000, {}),
    (b'{"n": 1, "request_id": "\\ud800"}', {}),
]
TELLS: list[Any] = [
    {"rewards": []},
    {"rewards": [{"ticket": "cta.1-1", "reward": 1}]},
    {"rewards": [{"ticket": "cta.1-1", "reward": 1.0, "metrics": {"revenue": 2}, "arm": None}]},
    {"rewards": [{"ticket": "cta.1-2", "reward": 0.5, "metrics": {"revenue": 2.5}}]},
    {"rewards": [{"ticket": "cta.1-2", "reward": 0.25}]},
    {"rewards": [{"ticket": "cta.1-3", "reward": 1, "arm": "nobody"}]},
    {"rewards": [{"ticket": "cta.1-3", "reward": "1"}]},
    {"rewards": [{"ticket": "cta.1-3", "reward": True}]},
    {"rewards": [{"ticket": "cta.1-3", "reward": 2**60 + 1}]},
    {"rewards": [{"ticket": "cta.1-3"}]},
    {"rewards": [{"ticket": "cta.9-9", "reward": 1}]},
    {"rewards": [{"ticket": "other.1-1", "reward": 1}]},
    {"rewards": [{"ticket": "cta.1-3", "reward": 1}] * 10_001},
    b'{"rewards": [{"ticket": "cta.1-3", "reward": NaN}]}',
    b'{"rewards": [{"ticket": "cta.1-3", "reward": 1e400}]}',
    b'{"rewards": [{"ticket": "cta.1-3", "reward": -0.0}]}',
]


def _sent(address: str, token: str, path: str, body: Any, kind: str, more: dict[str, str]) -> tuple[int, Any, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**bearer(token), "Content-Type": kind, **more}
    found = httpx.post(f"{address}/v1/experiments/{path}", content=content, headers=headers)
    return found.status_code, found.headers["content-type"], found.json()


def test_the_short_way_and_the_long_one_answer_alike(service: str, admin: str) -> None:
    """The same request again changes nothing, so that each may be sent both ways; what is new is sent once before."""
    steps = [("cta/ask", body, more) for body, more in ASKS] + [("cta/tell", body, {}) for body in TELLS]
    steps += [("nobody/ask", {"n": 1}, {}), ("nobody/tell", {"rewards": []}, {})]
    for path, body, more in steps:
        _sent(service, admin, path, body, LONGER, more)
        long_way, short_way = (_sent(service, admin, path, body, kind, more) for kind in (LONGER, PLAIN))
        assert short_way == long_way, (path, body)


def test_what_is_well_formed_goes_the_short_way(service: str, admin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody waits longer than needed: requests as `bd.Client` sends them never come to FastAPI."""
    ways: list[str] = []
    begin = Shortcut._acting

    def noted(self: Shortcut, route: str, scope: Any, text: bytes) -> Any:
        found = begin(self, route, scope, text)
        ways.append("long" if found is None else "short")
        return found

    monkeypatch.setattr(Shortcut, "_acting", noted)
    assert _sent(service, admin, "cta/ask", {"n": 1, "request_id": "a"}, PLAIN, {})[0] == 200
    assert _sent(service, admin, "cta/ask", {"n": 1, "request_id": "a"}, LONGER, {})[0] == 200
    assert _sent(service, admin, "cta/tell", {"rewards": []}, PLAIN, {})[0] == 200
    assert _sent(service, admin, "cta/tell", {"rewards": 1}, PLAIN, {})[0] == 422
    assert ways == ["short", "long", "short", "long"]
