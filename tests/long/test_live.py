"""Live experiments: processes that die at any moment, many at once for a minute, and two labs with one protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import banditto as bd
from banditto.chance.noise import Noise
from banditto.live.answers import Assignment
from banditto.live.experiment import Experiment
from banditto.live.replicate import replicate
from banditto.live.verify import verify
from banditto.testing.statistics import assert_rate_at_most, detectable_rate
from tests.live.crowds import Acknowledged, check, start
from tests.live.servers import KINDS, PostgresServer, new_store
from tests.live.test_concurrency import crowd
from tests.live.workers import NAME, measured
from tests.live.worlds import hashed_reward, place, registration_of, small_policy

pytestmark = pytest.mark.long

LEVEL = 1e-6
KILLS = 500
COMMANDS = 20
HORIZON = 40_000  # four times what the fastest machine so far got through


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
        parent = start(url, logs, workers=4, seconds=0, kills=KILLS, seed=2026)
        while parent.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                parent.wait(timeout=4.0)
            if kind == "postgresql":
                server.restart()
        assert parent.returncode == 0
        seen = Acknowledged.read(logs)
        assert seen.errors == []
        assert seen.asks > KILLS // 10  # they did not only die, however busy the machine is
        killed_commands(url, tmp_path, seen)
        check(url, seen, policy, 7, to_the_end=True)


def killed_commands(url: str, folder: Path, seen: Acknowledged) -> None:
    """The real command line, killed at random moments up to its answer and beyond; what it printed counts.

    A command that answered makes the next one's life shorter, one that did not makes it longer: however fast the
    machine is, and however its speed changes, some die before their answer and some after it.
    """
    generator = np.random.default_rng(5)
    life = 1.0
    answered = 0
    for number in range(COMMANDS):
        with Experiment.open(url, NAME) as experiment:
            ticket = new_ticket(experiment, f"for the command {number}")
        seen.arms[ticket.id] = ticket.arm
        reward = hashed_reward(*place(ticket.id))
        words = [ticket.id, repr(reward), *(f"--metric={name}={value!r}" for name, value in measured(reward).items())]
        verb = ["ask", NAME, "--request-id", f"command {number}"] if number % 2 else ["tell", NAME, *words]
        out = folder / "out.txt"
        with out.open("wb") as file:
            command = [sys.executable, "-m", "banditto", *verb, "--store", url, "--json"]
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=life * float(generator.uniform(0.5, 1.2)))
            process.kill()
            process.wait()
        text = out.read_text()
        life *= 0.7 if text else 1.3
        answered += bool(text)
        if text and number % 2:
            for asked in json.loads(text)["tickets"]:
                assert asked["id"] not in seen.arms
                seen.arms[asked["id"]] = asked["arm"]
        elif text:
            assert json.loads(text)["told"]["recorded"] == 1
            seen.tells[ticket.id] = "counted"
    assert 0 < answered < COMMANDS  # some were killed before they had answered, some after


def new_ticket(experiment: Experiment, request: str) -> Assignment:
    """The next ticket; if the batch waits for rewards that died with their workers, they are told first."""
    while not (answer := experiment.ask(1, request)).tickets:
        assert answer.state == "waiting"
        experiment.tell_many([(lost.id, hashed_reward(*place(lost.id))) for lost in experiment.pending()])
    return answer[0]


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
