"""What a driver's error means is told by its code: the words may be of any language, and may say anything."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import Ping
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from banditto.core.errors import StoreError
from banditto.live.experiment import Experiment
from banditto.live.postgresql import PatientConnection
from banditto.live.store import Store, engine_of, outlook_of
from tests.live.servers import PostgresServer
from tests.live.worlds import small

LOCKED = "database is locked, server closed the connection, the system is starting up"  # a lie without its code
POSTGRESQL = "postgresql://u@h/d"

STATES = {
    **{"40001": "passing", "40P01": "passing", "53300": "passing"},
    **{"57P01": "passing", "57P02": "passing", "57P03": "passing", "08006": "passing", "08001": "passing"},
    **{"57014": "final", "28P01": "final", "3D000": "final", "42501": "final", "23505": "final", "53100": "final"},
}
SQLITE = {
    **{"SQLITE_BUSY": "passing", "SQLITE_LOCKED": "passing"},
    **{"SQLITE_BUSY_SNAPSHOT": "passing", "SQLITE_LOCKED_SHAREDCACHE": "passing"},
    **{"SQLITE_READONLY": "final", "SQLITE_NOTADB": "final", "SQLITE_CANTOPEN": "final", "SQLITE_FULL": "final"},
}


def wrapped(original: Exception, lost: bool = False) -> DBAPIError:
    """As SQLAlchemy hands it on."""
    return OperationalError("SELECT 1", {}, original, connection_invalidated=lost)


def test_sqlstates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditto.live.store._reached", lambda _: pytest.fail("asked though there is a code"))
    engine = engine_of(POSTGRESQL)
    for state, expected in STATES.items():
        for words in ("le système démarre", LOCKED, ""):
            assert outlook_of(wrapped(psycopg.errors.lookup(state)(words)), engine) == expected, state


def test_codes_of_sqlite(tmp_path: Path) -> None:
    engine = engine_of(f"sqlite:///{tmp_path}/x.db")
    for name, expected in SQLITE.items():
        for words in ("la base est verrouillée", LOCKED, ""):
            original = sqlite3.OperationalError(words)
            original.sqlite_errorcode = getattr(sqlite3, name)
            assert outlook_of(wrapped(original), engine) == expected, name
    assert outlook_of(wrapped(sqlite3.OperationalError(LOCKED)), engine) == "final"  # without any code


def test_errors_that_are_no_servers() -> None:
    engine = engine_of(POSTGRESQL)
    assert outlook_of(SQLAlchemyError(LOCKED), engine) == "final"
    assert outlook_of(InterfaceError("", {}, psycopg.InterfaceError(LOCKED)), engine) == "final"
    assert outlook_of(wrapped(psycopg.OperationalError("fermé"), lost=True), engine) == "passing"


PINGS = {Ping.OK: "refused", Ping.REJECT: "passing", Ping.NO_RESPONSE: "passing", Ping.NO_ATTEMPT: "final"}


@pytest.mark.parametrize("answer", PINGS)
def test_a_connection_without_a_code_asks_the_server(answer: Ping, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    class Asked:
        @staticmethod
        def ping(conninfo: bytes) -> Ping:
            asked.append(conninfo)
            return answer

    monkeypatch.setattr("psycopg.pq.PGconn", Asked)
    assert outlook_of(wrapped(psycopg.OperationalError(LOCKED)), engine_of(POSTGRESQL)) == PINGS[answer]
    assert [set(line.split()) for line in asked] == [{b"host=h", b"dbname=d", b"user=u", b"connect_timeout=2"}]


def test_a_real_server_is_asked(server: PostgresServer, tmp_path: Path) -> None:
    error = wrapped(psycopg.OperationalError("la connexion a échoué"))
    assert outlook_of(error, engine_of(server.url)) == "refused"
    assert outlook_of(error, engine_of(f"postgresql://u@/d?host={tmp_path}")) == "passing"


def test_a_server_that_refuses_who_was_let_in_before_is_tried_again(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be full for a moment; whoever never got in hears at once that he is refused."""
    url = server.new_schema()
    with Experiment.create(url, "cta", small()) as experiment:
        store = experiment._store
        attempts, connect = [0], PatientConnection.connect

        def refusing(*given: Any, **named: Any) -> PatientConnection:
            attempts[0] += 1
            if attempts[0] < 4:
                raise psycopg.OperationalError("trop de clients sont déjà connectés")
            return connect(*given, **named)

        store.let_go()
        monkeypatch.setattr(PatientConnection, "connect", refusing)
        assert experiment.ask()[0].id == "cta.1-1"
        assert attempts[0] >= 4
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited for a server that refuses us"))
    with Store(url) as other:
        attempts[0] = -100
        with pytest.raises(StoreError, match="^the store failed: trop de clients sont déjà connectés$"):
            other.read(lambda view: view.names())
        assert attempts[0] == -98  # twice: it may have begun to take connections between two questions
