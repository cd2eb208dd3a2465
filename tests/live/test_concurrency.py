"""16 processes, or threads, that ask and tell at once: no error, nothing twice, nothing lost."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from tests.live.crowds import Acknowledged, check, start
from tests.live.workers import asks_in
from tests.live.worlds import hashed_reward, place, registration_of, simulated_arms, small_policy

WORKERS = 16
HORIZON = 10**6  # more than anybody asks for


def crowd(url: str, folder: Path, seconds: float) -> Acknowledged:
    """Let 16 processes work for so long, and until they have met often: the test does not end while one starves."""
    folder.mkdir()
    policy = small_policy(HORIZON)
    Experiment.create(url, "cta", registration_of(policy)).close()
    parent = start(url, folder, WORKERS, seconds, 0, 1)
    assert parent.wait(timeout=seconds + 900) == 0
    seen = Acknowledged.read(folder)
    assert seen.errors == []
    assert len(list(folder.glob("*.log"))) == WORKERS
    assert all("tell" in path.read_text() for path in folder.glob("*.log"))  # nobody starved
    assert seen.asks > asks_in(seconds)
    check(url, seen, policy, 7, to_the_end=False)
    return seen


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_sixteen_processes_for_a_second(store_url: str, tmp_path: Path) -> None:
    """For a minute, and on PostgreSQL too, in `tests/long`."""
    crowd(store_url, tmp_path / "logs", 1.0)


def test_threads_may_share_an_experiment(store_url: str) -> None:
    """8 threads on one object, through several decisions, with somebody who looks at the status all the time."""
    policy = small_policy(300)
    with Experiment.create(store_url, "cta", registration_of(policy)) as experiment:
        arms: dict[tuple[int, int], int] = {}

        def work(_: int) -> None:
            while (answer := experiment.ask(5)).state != "finished":
                for ticket in answer:
                    arms[place(ticket.id)] = ticket.arm
                    experiment.tell(ticket.id, hashed_reward(*place(ticket.id)))
                time.sleep(0.002)

        def look(_: int) -> int:
            seen = 0
            while (status := experiment.status()).state != "finished":
                assert sum(status.told.values()) <= sum(status.plan.values())
                assert status.spent + sum(status.plan.values()) <= status.horizon
                seen += 1
                time.sleep(0.002)
            return seen

        with ThreadPoolExecutor(8) as pool:
            looking = pool.submit(look, 0)
            for done in [pool.submit(work, number) for number in range(7)]:
                done.result(timeout=600)
            assert looking.result(timeout=600) > 0
        expected = simulated_arms(policy, 7, hashed_reward)
        assert [[arms[batch, slot] for slot in range(len(row))] for batch, row in enumerate(expected, 1)] == expected
    assert verify(store_url, "cta").holds
