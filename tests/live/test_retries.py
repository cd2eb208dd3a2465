"""A step is done once: also when the answer to its commit is lost, and whatever a server's defaults are."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sql

from banditto.core.errors import ConflictError
from banditto.live.experiment import Experiment
from banditto.live.reading import Reading, now
from banditto.live.store import Store, engine_of
from banditto.live.store_settings import StoreSettings
from banditto.live.tables import EXPERIMENTS
from banditto.live.verify import verify
from banditto.live.writing import Writing
from tests.live.servers import PostgresServer
from tests.live.worlds import small


def broken(kind: str) -> Exception:
    """What a driver raises, in words that nobody here can read; the code says that it may pass."""
    if kind == "postgresql":
        return psycopg.errors.AdminShutdown("接続は管理者コマンドにより終了されました")
    error = sqlite3.OperationalError("Datenbank ist gesperrt")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


@contextmanager
def lost_answer(store: Store) -> Iterator[list[bool]]:
    """The next commit is made, and its answer does not arrive; says whether that has happened."""
    dialect: Any = store._engine.dialect
    commit, lost = dialect.do_commit, [False]

    def made_but_not_answered(connection: Any) -> None:
        commit(connection)
        if not lost[0]:
            lost[0] = True
            raise broken(dialect.name)

    dialect.do_commit = made_but_not_answered
    yield lost
    del dialect.do_commit


def steps(experiment: Experiment) -> Iterator[tuple[int, Callable[[], object]]]:
    """How many events a step adds, and the step."""
    yield 2, lambda: experiment.ask(10)  # the writer's versions, too
    yield 1, lambda: experiment.ask(2, "r")
    yield 1, lambda: experiment.tell("cta.1-1", 0.25, {"revenue": 12.5, "clicks": 3})
    yield 1, lambda: experiment.correct("cta.1-1", 0.75, "typo")
    yield 1, lambda: experiment.missing("cta.1-2", "lost")
    yield 1, lambda: experiment.tell("cta.1-2", 0.5, {"revenue": 12.5})
    yield 1, lambda: experiment.ask()
    yield 2, lambda: experiment.tell_many([("cta.1-2-2", 0.5), *((f"cta.1-{place}", 0.5) for place in range(3, 13))])
    totals = {arm: (count, count / 2) for arm, count in experiment.status().plan.items()}
    yield 2, lambda: experiment.tell_totals(2, totals)
    yield 1, lambda: experiment.stop("enough")


def test_a_step_whose_answer_was_lost_is_done_once(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        for events, step in steps(experiment):
            before = experiment.status().events
            with lost_answer(experiment._store) as lost:
                step()
            assert lost == [True]
            assert experiment.status().events == before + events
        assert experiment.status().tickets == {"open": 0, "told": 12, "missing": 0, "late": 1}
    found = verify(store_url, "cta")
    assert found.holds, found.problem


def test_a_registration_whose_answer_was_lost_is_made_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Store(store_url)
    made.write(lambda tx: None)  # the tables
    monkeypatch.setattr("banditto.live.experiment.Store", lambda url, settings: made)
    with lost_answer(made) as lost:
        Experiment.create(store_url, "cta", small())
    assert lost == [True]
    with pytest.raises(ConflictError, match="^experiment cta exists already$"):
        Experiment.create(store_url, "cta", small())
    assert verify(store_url, "cta").holds


def test_a_registration_that_is_still_being_committed_when_it_is_tried_again(server: PostgresServer) -> None:
    """The connection is lost, and the server is about to make what it was told to."""
    url = server.new_schema()
    store, engine = Store(url), engine_of(url)
    content: dict[str, Any] = {}
    step = ("cta", "{}", "digest", content, "{}", "2026-01-01T00:00:00.000000+00:00")
    store.write(lambda tx: None)  # the tables
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            Writing(connection).create(*step)
            again = pool.submit(store.write, lambda tx: tx.create(*step))
            waits_for_a_lock(server)
        again.result(timeout=600)
    assert store.read(lambda view: view.names()) == ["cta"]
    store.close()
    engine.dispose()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_server_whose_transactions_are_of_another_kind(server: PostgresServer, level: str) -> None:
    """A writer that has waited for another one goes on from what that one wrote."""
    url = f"{server.new_schema()}%20-cdefault_transaction_isolation%3D{level.replace(' ', '%5C%20')}"
    engine = engine_of(url)
    with Experiment.create(url, "cta", small()) as experiment, ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            connection.execute(EXPERIMENTS.update().values(software="[]"))
            asked = pool.submit(experiment.ask)
            waits_for_a_lock(server)
        assert asked.result(timeout=600)[0].id == "cta.1-1"
    engine.dispose()


def test_the_time_of_a_step_is_after_the_wait_for_others(store_url: str, request: pytest.FixtureRequest) -> None:
    """Otherwise the log of several writers would go back in time."""
    engine = engine_of(store_url)
    with Experiment.create(store_url, "cta", small()) as experiment, ThreadPoolExecutor(1) as pool:
        with engine.connect() as plain:
            connection = plain.execution_options(banditto_writes=True)
            with connection.begin():
                connection.execute(EXPERIMENTS.update().values(software="[]"))
                asked = pool.submit(experiment.ask)
                if store_url.startswith("postgresql"):
                    waits_for_a_lock(request.getfixturevalue("server"))
                else:  # which does not tell who waits
                    assert wait([asked], timeout=0.3).done == set()
                released = now()
        asked.result(timeout=600)
        assert experiment.pending()[0].issued > released
    engine.dispose()


def test_who_looks_sees_one_state(store_url: str) -> None:
    """What is written while somebody reads is not half of what he sees."""
    with Experiment.create(store_url, "cta", small()) as experiment:
        store = Store(store_url)

        def look(view: Reading) -> bool:
            before = view.find("cta")
            experiment.ask(3)
            return view.find("cta") == before and not list(view.all_tickets(1))

        assert store.read(look)
        store.close()
        assert experiment.status().tickets["open"] == 3


def test_what_is_committed_to_sqlite_is_on_disk(tmp_path: Path) -> None:
    """No test can cut the power: at least the settings are those that are promised."""
    store = Store(f"sqlite:///{tmp_path}/x.db")
    with store._engine.connect() as connection:
        names = ("journal_mode", "synchronous")
        found = [connection.execute(sql.text(f"PRAGMA {name}")).scalar() for name in names]
    store.close()
    assert found == ["wal", 2]  # 2 is FULL


def waits_for_a_lock(server: PostgresServer) -> None:
    """Until somebody does."""
    engine = engine_of(server.url)
    deadline = time.monotonic() + 600
    query = sql.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    while True:
        with engine.begin() as connection:
            if connection.execute(query).scalar():
                break
        assert time.monotonic() < deadline, "nobody waits for a lock"
        time.sleep(0.02)
    engine.dispose()


def test_ctrl_c_inside_a_step_lets_the_lock_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while somebody still handles the exception, whose traceback keeps all that was in use."""
    settings = StoreSettings(deadline=1)
    with Experiment.create(f"sqlite:///{tmp_path}/x.db", "cta", small(), settings=settings) as trial:
        dialect: Any = trial._store._engine.dialect
        execute, left = dialect.do_execute, [0]

        def pressed(*given: Any, **named: Any) -> None:
            execute(*given, **named)
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

        monkeypatch.setattr(dialect, "do_execute", pressed)
        for number in range(1, 9):
            left[0] = number
            try:
                trial.ask()
                left[0] = 0
            except KeyboardInterrupt:
                left[0] = 0
                trial.ask(1, "meanwhile")
    assert verify(f"sqlite:///{tmp_path}/x.db", "cta").holds
