"""`banditto serve` as processes: workers that die or stop, a graceful end, what stands in logs and process lists."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from banditto.live.experiment import Experiment
from banditto.live.export import read_log
from banditto.live.verify import verify
from banditto.service.client import Client
from tests.live.worlds import registration_of, small, small_policy
from tests.service.services import ROOT, ServiceProcess, bearer, new_token, post, serve_in_vain, service_process


@pytest.mark.parametrize("store_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_kill_9_of_a_worker_loses_nothing_that_was_acknowledged(store_url: str) -> None:
    """Four clients ask and tell while a worker is killed again and again; their retries hide it from them."""
    Experiment.create(store_url, "cta", registration_of(small_policy(10**6), rewards=(0.0, 1.0))).close()
    token, given, told = new_token(store_url), Counter[str](), Counter[str]()
    ended = threading.Event()

    def work(client: Client) -> None:
        trial = client.open("cta")
        while not ended.is_set():
            answer = trial.ask(5)
            given.update(ticket.id for ticket in answer)
            for ticket in answer:
                trial.tell(ticket.id, 0.5)
                told[ticket.id] += 1

    with service_process(store_url, "--workers", "2") as service, Client(service.address, token) as client:
        threads = [threading.Thread(target=work, args=(client,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        kills = 0
        while kills < 3:
            before = sum(told.values())
            while sum(told.values()) < before + 30 and any(thread.is_alive() for thread in threads):
                time.sleep(0.01)
            if workers := service.workers():
                os.kill(workers[kills % len(workers)], signal.SIGKILL)
                kills += 1
        ended.set()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        assert len(told) >= 90
        assert set(given.values()) == set(told.values()) == {1}  # no ticket went to two
        status = client.open("cta").status()
        assert status.tickets["told"] == len(told)
        assert client.open("cta").verify()["verified"]
    log = read_log(store_url, "cta")
    assert log.verification.holds


@pytest.mark.parametrize("store_url", [pytest.param("sqlite", marks=pytest.mark.long), "postgresql"], indirect=True)
def test_a_stopped_worker_is_replaced(store_url: str) -> None:
    """One of two workers does not move any more; those whose connection it has come back to the other."""
    Experiment.create(store_url, "cta", small()).close()
    token = new_token(store_url)
    with service_process(store_url, "--workers", "2") as service:
        for _ in range(600):
            if len(workers := service.workers()) == 2:
                break
            time.sleep(0.05)
        os.kill(workers[0], signal.SIGSTOP)
        with Client(service.address, token, deadline=60.0) as client:
            client._http.timeout = httpx.Timeout(3.0)  # the one who got the stopped worker asks again
            trial = client.open("cta")
            for _ in range(12):
                assert len(trial.ask(1)) == 1
        for _ in range(1200):
            now = service.workers()
            if workers[0] not in now and len(now) == 2:
                break
            time.sleep(0.05)
        assert workers[0] not in service.workers()
    assert verify(store_url, "cta").holds


def test_it_ends_when_requests_under_way_are_answered(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"
    Experiment.create(url, "cta", small()).close()
    token, answers = new_token(url), []
    service = ServiceProcess(url)
    service.wait_until_ready()
    question = {"arms": 2, "gap": 0.05, "rho": 0.2}

    def plan() -> None:
        answers.append(httpx.post(f"{service.address}/v1/plan", json=question, headers=bearer(token), timeout=120))

    thread = threading.Thread(target=plan)
    thread.start()
    time.sleep(0.3)
    service.process.terminate()
    thread.join(120)
    assert [answer.status_code for answer in answers] == [200]
    assert service.stop() in (0, -signal.SIGTERM)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{service.address}/healthz", timeout=60)


def test_logs_have_no_secrets_rewards_or_units(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"
    Experiment.create(url, "cta", small()).close()
    token, log = new_token(url), tmp_path / "log"
    with service_process(url, log=log) as service:
        unit = "jane.doe@example.org"
        ticket = post(service.address, token, "cta/ask?x=query-secret", {"unit": unit}).json()["tickets"][0]["id"]
        post(service.address, token, "cta/tell", {"rewards": [{"ticket": ticket, "reward": 0.123456789}]})
        post(service.address, token, "cta/tell", {"rewards": [{"ticket": ticket, "reward": 0.987654321}]})
        post(service.address, token, "cta/tell", {"rewards": [{"ticket": unit, "reward": 0.5}]})
        post(service.address, f"{token}x", "cta/ask", {})
        post(service.address, token, "cta/missing", {"tickets": ["cta.9-9"], "reason": "private words"})
        httpx.get(f"{service.address}/v1/experiments/{unit}", headers=bearer(token), timeout=60)
        processes = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    text = log.read_text()
    secret = token.split("_", 2)[2]
    for private in (secret, unit, "jane", "0.123456789", "0.987654321", "private words", "query-secret"):
        assert private not in text, private
    assert secret not in processes
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    asked = [line for line in lines if line.get("route") == "/v1/experiments/{name}/ask"]
    assert {line["status"] for line in asked} == {200, 401}
    assert asked[0]["token"] == token.split("_")[1]
    assert asked[0]["experiment"] == "cta"
    assert all({"time", "level", "method", "status", "seconds"} <= set(line) for line in asked)


def test_metrics_of_all_workers_are_counted_together(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"
    Experiment.create(url, "cta", small()).close()
    token = new_token(url)
    with service_process(url, "--workers", "2") as service:
        for _ in range(12):  # a connection each, so that both may get some
            assert post(service.address, token, "cta/ask", {}).status_code == 200
        found = httpx.get(f"{service.address}/metrics", headers=bearer(token), timeout=60)
    assert found.headers["content-type"].startswith("text/plain; version=")
    lines = found.text.splitlines()
    assert 'banditto_tickets_total{experiment="cta",step="ask"} 12.0' in lines
    assert 'banditto_requests_total{method="POST",route="/v1/experiments/{name}/ask",status="200"} 12.0' in lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--store", "postgresql://u:secret@h/d"],
            "store: got postgresql://***@h/d, allowed: a URL without",
        ),
        (["--host", "0.0.0.0"], "host: got 0.0.0.0, allowed: 127.0.0.1, or --tls-certificate and --tls-key, or"),
        (["--host", "example.org"], "host: got example.org, allowed: an IP address"),
        (["--port", "x"], "port: got x, allowed: an integer"),
        (["--port", "70000"], "port: got 70000, allowed: from 0 to 65535"),
        (["--workers", "0"], "workers: got 0, allowed: from 1 to 64"),
        (["--tls-key", "x.pem"], "tls-certificate: got nothing, allowed: both files or none"),
        (["--tls-key", "x.pem", "--tls-certificate", "y.pem"], "tls-certificate: got y.pem, allowed: a certificate"),
        (["--allow-origin", "*"], "allow-origin: got *, allowed: such as https://example.org"),
        (["--rate", "0"], "rate: got 0.0, allowed: from 1 to"),
        (["--behind-proxy", "proxy"], "behind-proxy: got proxy, allowed: an IP address"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_wrong_arguments_are_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    store = [] if "--store" in words else ["--store", f"sqlite:///{tmp_path}/x.db"]
    found = serve_in_vain(*store, *words)
    assert found.returncode == 2, found.stderr
    assert len(found.stderr.splitlines()) == 1, found.stderr
    assert said in found.stderr.replace("--", "", 1) or said in found.stderr, found.stderr
    assert "secret" not in found.stderr


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"
    with service_process(url) as service:
        port = service.address.rpartition(":")[2]
        command = [sys.executable, "-m", "banditto", "serve", "--store", url, "--port", port]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert (found.returncode, len(found.stderr.splitlines())) == (2, 1), found.stderr
    assert "one that is free here" in found.stderr


def test_a_port_that_is_taken_is_found_before_anything_is_set_up(tmp_path: Path) -> None:
    """uvicorn sets the logging of the process up as soon as it is configured, for whatever comes after a refusal."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("--store", f"sqlite:///{tmp_path}/trial.db", "--port", str(taken.getsockname()[1]))
        found = serve_in_vain(*words)
    assert (found.returncode, len(found.stderr.splitlines())) == (2, 1), found.stderr
    assert "one that is free here" in found.stderr
