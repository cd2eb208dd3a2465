"""Live experiments: processes that die at any moment, many at once for a minute, and two labs with one protocol."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import banditto as bd
from banditto.live.experiment import Experiment
from banditto.live.replication import replicate
from banditto.live.verification import verify
from banditto.noise import Noise
from banditto.testing.statistics import assert_rate_at_most, detectable_rate
from tests.live.crowds import Acknowledged, check, start
from tests.live.servers import KINDS, PostgresServer, new_store
from tests.live.test_concurrency import crowd
from tests.live.workers import NAME
from tests.live.worlds import hashed_reward, place, registration_of, small_policy

pytestmark = pytest.mark.long

LEVEL = 1e-6
KILLS = 500
COMMANDS = 20
HORIZON = 10_000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    made = PostgresServer()
    yield made
    made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_kills_lose_nothing(kind: str, tmp_path: Path, server: PostgresServer) -> None:
    """Whatever was acknowledged is in the log, each ticket has one arm, and the run is the simulator's to its end."""
    logs = tmp_path / "logs"
    logs.mkdir()
    policy = small_policy(HORIZON)
    with new_store(kind, tmp_path, server) as url:
        Experiment.create(url, NAME, registration_of(policy)).close()
        parent = start(url, logs, workers=4, seconds=300, kills=KILLS, seed=2026)
        while parent.poll() is None:
            time.sleep(4.0)
            if kind == "postgresql":
                server.restart()
        assert parent.returncode == 0
        seen = Acknowledged.read(logs)
        assert seen.errors == []
        assert seen.asks > KILLS // 2  # they did not only die
        killed_commands(url, tmp_path, seen)
        check(url, seen, policy, 7, to_the_end=True)


def killed_commands(url: str, folder: Path, seen: Acknowledged) -> None:
    """The real command line, killed at random moments of its life; what it printed counts."""
    generator = np.random.default_rng(5)
    begun = time.monotonic()
    command = [sys.executable, "-m", "banditto"]
    subprocess.run([*command, "status", NAME, "--store", url], check=True, capture_output=True)
    life = time.monotonic() - begun
    printed = 0
    for number in range(COMMANDS):
        with Experiment.open(url, NAME) as experiment:
            ticket = experiment.ask(1, f"for the command {number}")[0]
        seen.arms[ticket.id] = ticket.arm
        words = [ticket.id, repr(hashed_reward(*place(ticket.id)))]
        verb = ["ask", NAME, "--request-id", f"command {number}"] if number % 2 else ["tell", NAME, *words]
        out = folder / "out.txt"
        with out.open("wb") as file:
            process = subprocess.Popen([*command, *verb, "--store", url], stdout=file, stderr=subprocess.DEVNULL)
            time.sleep(float(generator.uniform(0.5 * life, 1.1 * life)))  # the work is done at the end of its life
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        text = out.read_text()
        if "recorded" in text:
            seen.tells[ticket.id] = "counted"
        elif number % 2 and text:
            name, arm = text.splitlines()[-1].split()[:2]
            assert name not in seen.arms
            seen.arms[name] = int(arm)
        printed += bool(text)
    assert 0 < printed < COMMANDS  # some were killed before they had answered, some after


@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_processes_for_a_minute(kind: str, tmp_path: Path, server: PostgresServer) -> None:
    with new_store(kind, tmp_path, server) as url:
        crowd(url, tmp_path / "logs", 60.0)


def test_two_labs_agree_as_guaranteed(tmp_path: Path) -> None:
    """200 pairs of live runs at rho = 0.2; false-failure rate 1e-6.

    Detectable with probability 0.8: two runs that differ with probability 0.42 or more. That runs differ as often as
    the simulator says is tested with many more pairs elsewhere; here it is the whole way from a protocol to two logs.
    """
    pairs, rho = 200, 0.2
    assert detectable_rate(pairs, rho, LEVEL) <= 0.42
    policy = bd.CertifiedElimination(arms=2, horizon=10**4, rho=rho)
    world = bd.Bernoulli([0.65, 0.35])
    differ = 0
    for pair in range(pairs):
        url = f"sqlite:///{tmp_path}/{pair % 10}.db"
        runs = []
        for side in (0, 1):
            name, noise = f"pair{pair}-{side}", Noise(99, side, pair)
            with Experiment.create(url, name, registration_of(policy, seed=pair)) as experiment:
                while (status := experiment.status()).state == "running":
                    planned = np.array([[status.plan.get(str(arm), 0) for arm in (0, 1)]])
                    totals = world.draw(planned, noise)[0]
                    told = {arm: (int(planned[0, arm]), float(totals[arm])) for arm in (0, 1)}
                    experiment.tell_totals(status.batch, told)
            runs.append(f"{url}#{name}")
        found = replicate(*runs)
        differ += not found.same
        if pair % 20 == 0:
            assert verify(url, f"pair{pair}-0").holds
            assert found.decisions[0] > 1
    assert_rate_at_most(differ, pairs, rho, LEVEL)
    assert differ > 0  # about 0.15 of pairs do; none of 200 would with probability 1e-14
