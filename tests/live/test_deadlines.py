"""Nobody waits for longer than the deadline: workers and servers that were stopped, locks of strangers, long looks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sql

from banditto.core.errors import InvalidArgument, StoreError
from banditto.live.experiment import Experiment
from banditto.live.patience import Patience
from banditto.live.postgresql import PatientConnection
from banditto.live.reading import Reading
from banditto.live.store import Store
from banditto.live.store_settings import StoreSettings
from banditto.live.verify import verify
from banditto.live.writing import Writing
from tests.live.servers import PostgresServer
from tests.live.test_retries import waits_for_a_lock
from tests.live.worlds import small

SHORT = StoreSettings(deadline=2, idle=1)
SLOW = 20.0  # seconds that a busy machine may add to a deadline


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is inside takes no longer, but for a busy machine."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds + SLOW


# It stops itself inside a step, with the lock, the first time only.
STOPPING = """
import os, signal, sys
from banditto.live.ask_tell import Transaction
from banditto.live.experiment import Experiment
from banditto.live.store_settings import StoreSettings
ask, stops = Transaction.ask, [True]
def stopping(self, *given):
    if stops:
        stops.pop()
        os.kill(os.getpid(), signal.SIGSTOP)
    return ask(self, *given)
Transaction.ask = stopping
with Experiment.open(sys.argv[1], "cta", settings=StoreSettings(deadline=2, idle=1)) as trial:
    print(*(ticket.id for ticket in trial.ask(3, "stopped")), flush=True)
"""


def test_a_worker_that_was_stopped_inside_a_step_keeps_nobody_waiting(server: PostgresServer) -> None:
    """The others go on while it sleeps; it comes back after the deadline, finds its step undone, and does it again."""
    url = server.new_schema()
    with Experiment.create(url, "cta", small(), settings=StoreSettings(deadline=20, idle=1)) as trial:
        command = [sys.executable, "-c", STOPPING, url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            assert os.WIFSTOPPED(os.waitpid(worker.pid, os.WUNTRACED)[1])
            begun = time.monotonic()
            with within(1):
                assert trial.ask(2)[1].id == "cta.1-2"
            time.sleep(max(0.0, begun + 3 - time.monotonic()))
            os.kill(worker.pid, signal.SIGCONT)
            assert worker.stdout is not None
            assert worker.stdout.read() == "cta.1-3 cta.1-4 cta.1-5\n"
    assert verify(url, "cta").holds


@contextmanager
def holding(url: str) -> Iterator[int]:
    """Somebody else's transaction that has the experiment's lock; the server's process for it."""
    with psycopg.connect(url, application_name="a  stranger") as stranger:
        stranger.execute("SELECT * FROM banditto_experiment FOR UPDATE")
        yield stranger.info.backend_pid
        stranger.rollback()


def test_who_waits_for_a_lock_hears_in_time_who_holds_it(server: PostgresServer) -> None:
    url = server.new_schema()
    with Experiment.create(url, "cta", small(), settings=SHORT) as trial:
        trial.ask()
        with holding(url) as pid:
            expected = rf"^the store failed: no answer in [12] s; process {pid} of the server holds .* \(a stranger, at"
            with within(2), pytest.raises(StoreError, match=expected) as caught:
                trial.ask()
            assert re.search(r", at the same machine, idle in transaction for \d+ s\)$", str(caught.value))
            with within(2):  # who only looks does not wait
                assert trial.status().issued == 1
        assert trial.ask()[0].id == "cta.1-2"
    assert verify(url, "cta").holds


def test_the_last_in_a_row_of_those_who_wait_hears_of_the_first(server: PostgresServer) -> None:
    url = server.new_schema()
    with Experiment.create(url, "cta", small(), settings=SHORT) as trial:
        with holding(url) as pid, psycopg.connect(url) as between:
            between.pgconn.send_query(b"BEGIN; SELECT * FROM banditto_experiment FOR UPDATE")
            waits_for_a_lock(server)
            with within(2), pytest.raises(StoreError, match=f"; process {pid} of the server holds the lock"):
                trial.ask()
            between.close()
        assert trial.ask()[0].id == "cta.1-1"


def backend(experiment: Experiment) -> int:
    """The server's process for an experiment that has one connection."""
    with experiment._store._engine.connect() as connection:
        return int(connection.execute(sql.text("SELECT pg_backend_pid()")).scalar_one())


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_server_process_that_was_stopped_is_given_up(server: PostgresServer) -> None:
    """No setting of the server can end this wait."""
    url = server.new_schema()
    with Experiment.create(url, "cta", small(), settings=SHORT) as trial:
        trial.ask()
        pid = backend(trial)
        with stopped(pid):
            expected = f"^the store failed: no answer in 2 s; nobody holds .*: process {pid} of the server may be"
            with within(2 + 2), pytest.raises(StoreError, match=expected):
                trial.ask(1, "again")
            with within(2):  # the next one has another process
                assert trial.ask(1, "again")[0].id == "cta.1-2"
        pid = backend(trial)
        with stopped(pid), within(2 + 2), pytest.raises(StoreError, match="^the store failed: no answer in 2 s"):
            trial.status()
        assert trial.status().issued == 2
    assert verify(url, "cta").holds


def test_a_stopped_server_process_that_holds_the_lock_is_named(server: PostgresServer) -> None:
    url = server.new_schema()
    with Experiment.create(url, "cta", small(), settings=SHORT) as trial:
        told = "; process .* of the server holds the lock"
        with holding(url) as pid, stopped(pid), within(2 + 2), pytest.raises(StoreError, match=told) as caught:
            trial.ask()
        assert f"; process {pid} of the server" in str(caught.value)
        assert trial.ask()[0].id == "cta.1-1"


def test_a_look_may_be_longer_than_a_step(server: PostgresServer) -> None:
    """Each answer comes in time, and who reads may be slow with it."""
    url = server.new_schema()
    Experiment.create(url, "cta", small()).close()

    def look(view: Reading) -> list[str]:
        for _ in range(3):
            time.sleep(1.2)
            names = view.names()
        return names

    with Store(url, SHORT) as store:
        assert store.read(look) == ["cta"]


def test_a_step_that_computes_for_long_is_done(server: PostgresServer) -> None:
    """The server takes its lock away once; the second attempt has as much time as the first one needed."""
    url, attempts = server.new_schema(), []
    Experiment.create(url, "cta", small()).close()

    def compute(rows: Writing) -> str:
        row = rows.locked("cta")
        attempts.append(row)
        assert row is not None
        until = time.thread_time() + 1.5
        while time.thread_time() < until:
            pass
        rows.save(row.id, row.events, row.head, row.progress, "x")
        return "done"

    with Store(url, SHORT) as store:
        assert store.write(compute) == "done"
    assert len(attempts) == 2


def test_limits_are_those_of_a_transaction(server: PostgresServer) -> None:
    """PgBouncer may give the same process to somebody else afterwards."""
    url = server.new_schema()
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "synchronous_commit")

    def shown(execute: Any) -> list[str]:
        return [execute(f"SHOW {name}").fetchone()[0] for name in names]

    with Store(f"{url}%20-csynchronous_commit%3Doff", StoreSettings(deadline=20)) as store:
        inside = store.write(lambda rows: shown(rows._connection.exec_driver_sql))
        looking = store.read(lambda view: shown(view._connection.exec_driver_sql))
        with store._engine.connect() as connection:
            driver: Any = connection.connection.dbapi_connection
            outside = shown(driver.execute)
    assert [inside[2:], looking[2:], outside] == [["10s", "on"], ["1h", "on"], ["0", "0", "0", "off"]]
    assert 18_000 < int(inside[0].removesuffix("ms").replace("19s", "19000")) <= 19_000
    assert 18_000 < int(inside[1].removesuffix("ms")) <= 19_500


def test_connections_that_break_without_a_word_are_noticed(server: PostgresServer) -> None:
    with Store(f"{server.new_schema()}&keepalives_count=7", StoreSettings(deadline=20)) as store:
        store.write(lambda rows: None)
        with store._engine.connect() as connection:
            driver = connection.connection.dbapi_connection
            assert isinstance(driver, PatientConnection)
            found = driver.info.get_parameters()
    assert (found["tcp_user_timeout"], found["keepalives_idle"], found["keepalives_count"]) == ("20000", "10", "7")
    assert (found["connect_timeout"], found["fallback_application_name"].split("/")[-1]) == ("6", str(os.getpid()))


# -- SQLite -----------------------------------------------------------------------------------------------------------

HOLDING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


def test_who_waits_for_a_file_hears_in_time_who_holds_it(tmp_path: Path) -> None:
    with Experiment.create(f"sqlite:///{tmp_path}/x.db", "cta", small(), settings=SHORT) as trial:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", HOLDING, tmp_path / "x.db"], text=True, **pipes) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            told = f"; process {other.pid} of this machine holds the lock" if Path("/proc/locks").exists() else ""
            with within(2), pytest.raises(StoreError, match=f"^the store failed: database is locked{told}$"):
                trial.ask()
            other.communicate("\n")
        assert trial.ask()[0].id == "cta.1-1"


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"deadline": 0.5}, {"deadline": float("nan")}, {"idle": True}, {"recycle": "x"}])
def test_seconds_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"^{next(iter(wrong))}: got .*, allowed: seconds, from 1 to 86,400$"):
        StoreSettings(**wrong)


@pytest.mark.parametrize("wrong", [{"pool_size": 0}, {"max_overflow": -1}, {"pool_size": 2.0}])
def test_numbers_of_connections_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"^{next(iter(wrong))}: got .*, allowed: an integer from "):
        StoreSettings(**wrong)


def test_the_deadline_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITTO_STORE_DEADLINE", "7.5")
    assert Store("postgresql://u@h/d")._settings == StoreSettings(deadline=7.5)
    monkeypatch.setenv("BANDITTO_STORE_DEADLINE", "")
    assert StoreSettings.of_environment() == StoreSettings()
    for wrong in ("soon", "0", "nan"):
        monkeypatch.setenv("BANDITTO_STORE_DEADLINE", wrong)
        with pytest.raises(InvalidArgument, match=r"^BANDITTO_STORE_DEADLINE: got .*, allowed: seconds, from 1"):
            StoreSettings.of_environment()


def test_only_waiting_counts() -> None:
    patience = Patience(5, idle=10)
    assert patience.idle == 2.5
    patience.count(100)  # this process was stopped
    assert (patience.waited, patience.late) == (1.0, False)
    for _ in range(41):
        patience.count(0.1)
    assert patience.late
    patience.answered()
    assert patience.late  # of a step the whole counts
    look = Patience(5, renews=True)
    look.count(4, most=10)
    look.answered()
    assert look.waited == 0.0
