"""Who only looks changes nothing: other programs' databases, copies that cannot be written, and a server's defaults."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from banditto.core.errors import InvalidArgument, StoreError
from banditto.live import connections
from banditto.live.experiment import Experiment
from banditto.live.export import read_log
from banditto.live.replicate import replicate
from banditto.live.store import engine_of
from banditto.live.verify import verify
from banditto.report.self_test import examine
from tests.live.servers import PostgresServer
from tests.live.worlds import exported, finish, small

LOOKS: dict[str, Callable[[str], Any]] = {
    "open": lambda url: Experiment.open(url, "cta"),
    "verify": lambda url: verify(url, "cta"),
    "replicate": lambda url: replicate(f"{url}#cta", f"{url}#cta"),
    "export": lambda url: read_log(url, "cta"),
}


def state_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_the_database_of_another_program_is_left_alone(look: Callable[[str], Any], tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    (tmp_path / "empty.db").touch()
    before = state_of(tmp_path)
    for name in ("other", "empty"):
        with pytest.raises(InvalidArgument, match="^store: got sqlite:///.*, allowed: a store of experiments; this"):
            look(f"sqlite:///{tmp_path}/{name}.db")
    assert examine(f"sqlite:///{tmp_path}/other.db").checks[1].detail.startswith("it can be reached, and has no")
    assert state_of(tmp_path) == before


def test_a_server_without_tables_is_left_alone(server: PostgresServer) -> None:
    url = server.new_schema()
    for look in LOOKS.values():
        with pytest.raises(InvalidArgument, match="^store: got postgresql://.*, allowed: a store of experiments; this"):
            look(url)
    assert examine(url).healthy
    engine = engine_of(url)
    with engine.connect() as connection:
        assert sql.inspect(connection).get_table_names() == []
    engine.dispose()
    Experiment.open(url, "cta", small()).close()  # who brings a protocol makes what is needed
    assert verify(url, "cta").holds


def test_experiments_may_live_beside_the_tables_of_another_program(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    url = f"sqlite:///{tmp_path}/other.db"
    with Experiment.open(url, "cta", small()) as experiment:
        finish(experiment)
    assert verify(url, "cta").holds


def test_a_copy_that_cannot_be_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so that the question whether this user may is answered by the test."""
    url = f"sqlite:///{tmp_path}/trial.db"
    with Experiment.create(url, "cta", small()) as experiment:
        finish(experiment)
    (tmp_path / "closed").mkdir()
    shutil.copy(tmp_path / "trial.db", tmp_path / "closed")
    expected = exported(url, "cta", "csv")
    before = state_of(tmp_path / "closed")
    monkeypatch.setattr(connections, "writable", lambda path: "closed" not in str(path))
    copy = f"sqlite:///{tmp_path}/closed/trial.db"
    assert verify(copy, "cta").holds
    assert exported(copy, "cta", "csv") == expected
    assert replicate(f"{url}#cta", f"{copy}#cta").same
    with Experiment.open(copy, "cta") as experiment:
        assert experiment.status().state == "finished"
    assert state_of(tmp_path / "closed") == before
    with pytest.raises(StoreError, match="^the store failed: attempt to write a readonly database$"):
        Experiment.create(copy, "another", small())


def test_what_a_copy_has_in_its_write_ahead_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    with Experiment.create(f"sqlite:///{tmp_path}/trial.db", "cta", small()) as experiment:
        experiment.ask(5)
        for path in tmp_path.glob("trial.db*"):
            shutil.copy(path, tmp_path / "closed")
        events = experiment.status().events
    monkeypatch.setattr(connections, "writable", lambda path: "closed" not in str(path))
    found = verify(f"sqlite:///{tmp_path}/closed/trial.db", "cta")
    assert (found.holds, found.events) == (True, events)


def test_commits_wait_for_the_disk_whatever_the_default_is(server: PostgresServer) -> None:
    url = server.new_schema()
    for default, expected in (("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")):
        engine = engine_of(f"{url}%20-csynchronous_commit%3D{default}")
        for _ in range(2):  # a connection that was given back, too
            with engine.connect() as connection:
                assert connection.execute(sql.text("SHOW synchronous_commit")).scalar() == expected
        engine.dispose()
