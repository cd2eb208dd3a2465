"""Auditors under another user: a file that they may read is read as it is, while somebody writes to it and when not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from banditto.core.errors import BandittoError, StoreError
from banditto.live import audit_copies, connections
from banditto.live.audit_copies import beside, connect_reading
from banditto.live.event_log import Row
from banditto.live.experiment import Experiment
from banditto.live.reading import Reading
from banditto.live.store import Store
from banditto.live.verify import verify
from tests.live.auditing import start_auditor
from tests.live.workers import NAME
from tests.live.worlds import registration_of, small, small_policy

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can start a process of another user"
)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can enter and nobody else can write to; pytest's own are closed."""
    made = Path(tempfile.mkdtemp(prefix="banditto-open-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@as_root
@pytest.mark.slow
@pytest.mark.parametrize("folder_mode", [0o755, 0o777], ids=["closed folder", "open folder"])
def test_an_auditor_of_a_running_trial_sees_no_damage(open_folder: Path, folder_mode: int) -> None:
    """The writer opens the file, takes a few steps and closes it, all the time: its log comes and goes."""
    open_folder.chmod(folder_mode)
    url = f"sqlite:///{open_folder}/trial.db"
    Experiment.create(url, NAME, registration_of(small_policy(10**6))).close()
    (open_folder / "trial.db").chmod(0o644)
    auditor = start_auditor(url, 4.0)
    turns = 0
    while auditor.poll() is None:
        with Experiment.open(url, NAME) as trial:
            answer = trial.ask(20)
            trial.tell_many([(ticket.id, 0.5) for ticket in answer])
        if turns % 3 == 0:  # otherwise it is back at once
            time.sleep(0.1)
        turns += 1
    assert auditor.stdout is not None
    said = auditor.stdout.read().strip()
    auditor.stdout.close()
    assert said.startswith("looks: "), said
    assert turns > 10
    assert {path.stat().st_uid for path in open_folder.iterdir()} <= {0}  # it made no file of its own there
    assert verify(url, NAME).holds


def test_what_is_written_while_an_auditor_looks_is_no_damage(closed: Path) -> None:
    """The writer opens the file, moves everything in it and closes it between two questions of one look."""

    def look(view: Reading) -> tuple[int, int]:
        row = view.known(NAME)
        with closing(sqlite3.connect(closed, isolation_level=None)) as writer:
            writer.execute("CREATE TABLE IF NOT EXISTS aside (x)")
            writer.executemany("INSERT INTO aside VALUES (?)", [("x" * 3000,)] * 200)
            writer.execute("DROP TABLE banditto_metric")
            writer.execute("VACUUM")
        assert not beside(closed, "wal").exists()
        return row["events"], sum(1 for _ in view.events(row["id"])) + len(list(view.all_tickets(row["id"])))

    with Store(f"sqlite:///{closed}") as store:
        events, counted = store.read(look)
    assert counted == events + 12


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that this user may not write to: root may, so that the test answers the question."""
    with Experiment.create(f"sqlite:///{tmp_path}/trial.db", NAME, small()) as trial:
        trial.tell_many([(ticket.id, 0.5) for ticket in trial.ask(12)])
    monkeypatch.setattr(connections, "writable", lambda path: False)
    return tmp_path / "trial.db"


@pytest.mark.parametrize(("place", "said"), [(0, "file is not a database"), (4096, "database disk image is malformed")])
def test_a_file_that_is_damaged_is_still_said_to_be(closed: Path, place: int, said: str) -> None:
    content = closed.read_bytes()
    closed.write_bytes(content[:place] + b"\xff" * (len(content) - place))
    with pytest.raises(StoreError, match=f"^the store failed: {said}$"):
        verify(f"sqlite:///{closed}", NAME)


def test_a_log_without_its_index_is_read(closed: Path, tmp_path: Path) -> None:
    """As after a crash, or where only two of three files were copied."""
    whole = tmp_path / "whole"
    whole.mkdir()
    with Experiment.create(f"sqlite:///{tmp_path}/live.db", NAME, small()) as trial:
        trial.ask(5)
        for ending in ("live.db", "live.db-wal"):
            shutil.copy(tmp_path / ending, whole / ending)
        events = trial.status().events
    found = verify(f"sqlite:///{whole}/live.db", NAME)
    assert (found.holds, found.events) == (True, events)
    assert sorted(path.name for path in whole.iterdir()) == ["live.db", "live.db-wal"]


def test_each_look_sees_what_was_written_since(closed: Path) -> None:
    with Experiment.open(f"sqlite:///{closed}", NAME) as looking:
        before = looking.status().events
        with closing(sqlite3.connect(closed, isolation_level=None)) as writer:
            writer.execute("UPDATE banditto_experiment SET events = events + 1")
        assert looking.status().events == before + 1


def test_copies_are_taken_away(closed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    made = connect_reading(closed, 5)
    assert len(list((tmp_path / "copies").iterdir())) == 1
    made.close()
    verify(f"sqlite:///{closed}", NAME)
    with pytest.raises(BandittoError):
        verify(f"sqlite:///{closed}", "another")
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_file_that_never_rests_is_an_error_in_time(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copyfile

    def written_meanwhile(source: Path, target: Path) -> None:
        copy(source, target)
        os.utime(closed, ns=(0, time.time_ns() - 10**9))

    monkeypatch.setattr(shutil, "copyfile", written_meanwhile)
    begun = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="^the file is being written all the time, for 1 s$"):
        connect_reading(closed, 1)
    assert time.monotonic() - begun < 1 + 20


def test_a_log_may_grow_while_it_is_copied_and_may_not_begin_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE t (x)")
        time.sleep(0.1)
        before = audit_copies._traces(path)
        assert before is not None
        size = beside(path, "wal").stat().st_size
        writer.execute("INSERT INTO t VALUES (1)")
        assert beside(path, "wal").stat().st_size > size
        assert audit_copies._traces(path) == before
        writer.execute("PRAGMA wal_checkpoint(RESTART)")
        assert audit_copies._traces(path) is None  # the file itself was written just now
        time.sleep(0.1)
        after = audit_copies._traces(path)
        writer.execute("INSERT INTO t VALUES (1)")
        anew = audit_copies._traces(path)
    assert after != before
    assert anew != after


def test_a_log_may_go_away_just_when_it_was_seen(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file beside the database is seen once more when its writer has already taken it away."""
    real, lies = Path.exists, {beside(closed, ending) for ending in ("wal", "shm", "journal")}

    def seen_too_late(path: Path) -> bool:
        if path in lies:
            lies.remove(path)
            return True
        return real(path)

    for access in (True, False):  # of the folder; SQLite reads the file itself in one that is closed
        monkeypatch.setattr(os, "access", lambda path, mode, access=access: access)
        monkeypatch.setattr(Path, "exists", seen_too_late)
        lies |= {beside(closed, ending) for ending in ("wal", "shm", "journal")}
        with closing(connect_reading(closed, 10)) as made:
            assert made.execute("SELECT count(*) FROM banditto_event").fetchone()[0] > 0


def test_a_look_whose_log_goes_away_begins_again(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite says that it would have to write: not at the first question, but at a later one."""
    real, troubles = Reading.known, [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL]

    def known(view: Reading, name: str) -> Row:
        if troubles:
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorcode = troubles.pop()
            raise OperationalError("SELECT", {}, error)
        return real(view, name)

    monkeypatch.setattr(Reading, "known", known)
    assert verify(f"sqlite:///{closed}", NAME).holds
    assert not troubles
