"""Backups as docs/live.md says: taken while somebody writes, restored, verified, and gone on with."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from banditto.live.experiment import Experiment
from banditto.live.verify import Verification, verify
from tests.live.servers import KINDS, PostgresServer, new_store
from tests.live.worlds import finish, hashed_reward, place, registration_of, simulated_arms, small_policy

HORIZON = 3_000  # in steps of two far longer than a backup takes


def backed_up(kind: str, url: str, folder: Path, server: PostgresServer | None) -> Callable[[], None]:
    """Take a backup; what is returned puts it in the store's place."""
    if server is not None and kind == "postgresql":
        path = server.folder / "dump.sql"  # the server's programs may not write elsewhere
        server.dump(url, path)
        return lambda: server.restore(url, path)
    copy, original = folder / "copy.db", Path(url.removeprefix("sqlite:///"))
    with sqlite3.connect(original) as source, sqlite3.connect(copy) as target:  # what .backup does
        source.backup(target)
    source.close()
    target.close()

    def restore() -> None:
        for leftover in original.parent.glob(original.name + "-*"):
            leftover.unlink()
        shutil.move(copy, original)

    return restore


def step(experiment: Experiment) -> None:
    experiment.tell_many([(ticket.id, hashed_reward(*place(ticket.id))) for ticket in experiment.ask(2)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_goes_on_where_it_was_taken(kind: str, tmp_path: Path, server: PostgresServer) -> None:
    policy = small_policy(HORIZON)
    with new_store(kind, tmp_path, server) as url, ThreadPoolExecutor(1) as pool:
        with Experiment.create(url, "cta", registration_of(policy)) as experiment:
            while experiment.status().batch < 2:  # something to lose
                step(experiment)
            before = experiment.status()
            taking = pool.submit(backed_up, kind, url, tmp_path, server)
            step(experiment)
            while not taking.done():
                step(experiment)
            restore = taking.result()
            step(experiment)
            finish(experiment)
            after = experiment.status()
        assert after.state == "finished"
        restore()
        found: Verification = verify(url, "cta", expect=before.head)
        assert found.holds, found.problem
        assert before.events <= found.events < after.events
        lacks = verify(url, "cta", expect=after.head)
        assert not lacks.holds
        assert "the head of the receipt is not in the log" in str(lacks.problem)
        with Experiment.open(url, "cta") as again:
            arms = finish(again)
        assert verify(url, "cta", expect=before.head).holds
        expected = simulated_arms(policy, 7, hashed_reward)
        assert arms
        assert all(expected[batch - 1][slot] == arm for (batch, slot), arm in arms.items())
