"""The OpenAPI document: it is valid, and the service does what it says, whatever schemathesis sends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from banditto.service import routes
from banditto.service.application import make_application
from banditto.service.service_settings import ServiceSettings
from tests.live.worlds import registration_of, small_policy
from tests.service.services import bearer, new_token, served, service_in_thread

# A body may have the right shape and still name no ticket, no arm or no plan: that is a 422, not a fault.
LEFT_OUT = "positive_data_acceptance"


def test_the_document_says_what_each_route_needs_and_answers(service: str) -> None:
    document = httpx.get(f"{service}/openapi.json", timeout=60).json()
    assert document["openapi"].startswith("3.1.")
    names = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            names.add(operation["operationId"])
            assert operation["summary"], where
            guarded = path not in ("/healthz", "/readyz")
            assert ("security" in operation) == guarded == ("401" in operation["responses"]), where
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    assert set(answer["content"]) == {"application/problem+json"}, where
    assert len(names) == len(routes.ROUTES)


def fuzz(folder: Path, scopes: tuple[str, ...] | None, examples: int) -> str:
    """Run schemathesis on a real service; what it printed comes back if it found something."""
    url = f"sqlite:///{folder}/trial.db"
    registration = registration_of(small_policy(10**6), rewards=(0.0, 1.0), arm_names=["A", "B"])
    Experiment.create(url, "cta", registration).close()
    (folder / "schemathesis.toml").write_text('[parameters]\n"path.name" = "cta"\n')
    with service_in_thread(url, rate=1e6) as address:
        words = ["--config-file", "schemathesis.toml", "run", f"{address}/openapi.json", "--seed", "1", "--no-color"]
        words += ["--max-examples", str(examples), "--request-timeout", "120", "--exclude-checks", LEFT_OUT]
        words += ["--generation-database", "none"]
        words += [] if scopes is None else ["-H", f"Authorization: {bearer(new_token(url, *scopes))['Authorization']}"]
        program = Path(sys.executable).with_name("st")
        found = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert f"Tested: {len(routes.ROUTES)}\n" in found.stdout, found.stdout[-3000:] + found.stderr[-1000:]
    assert verify(url, "cta").holds
    return "" if found.returncode == 0 else found.stdout[-10_000:]


def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """As an admin, who is refused least; as others, and without a token, below."""
    assert fuzz(tmp_path, ("admin",), 3) == ""


@pytest.mark.long
@pytest.mark.parametrize("scopes", [("admin",), ("read", "ask", "tell"), ("read",), None], ids=str)
def test_schemathesis_finds_nothing_in_longer_time(tmp_path: Path, scopes: tuple[str, ...] | None) -> None:
    assert fuzz(tmp_path, scopes, 25) == ""


def test_what_is_not_expected_is_a_problem_without_words_of_the_caller(
    cta: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also the tester is tested: a route that fails is a 500, which schemathesis would find."""

    async def fails(self: Any, name: str) -> None:
        raise RuntimeError("a secret of the caller")

    monkeypatch.setattr(routes.Routes, "status", fails)
    fails.__name__ = "status"
    app, _ = make_application(ServiceSettings(store=cta))
    with caplog.at_level("INFO", "banditto.service"), served(app) as address:
        answer = httpx.get(f"{address}/v1/experiments/cta", headers=bearer(new_token(cta)), timeout=60)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "secret" not in answer.text
    assert "secret" not in caplog.text
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert vars(record)["banditto"]["trace"][-1] == "RuntimeError"
