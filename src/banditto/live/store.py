"""Where experiments are kept, SQLite or PostgreSQL: how a transaction is begun, tried again and shared out.

One writer at a time holds an experiment: SQLite begins with its write lock, PostgreSQL locks the experiment's row. What
went wrong is told by codes, SQLSTATE and SQLite's own: the words come in the server's language.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar
from weakref import WeakSet

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from banditto.core.errors import BandittoError, NoStore, StoreError
from banditto.live.connections import begin_step, end_step, file_holders, undo_step
from banditto.live.connections import engine_of as engine_of
from banditto.live.connections import shown_url as shown_url
from banditto.live.durability import warn_of_weak_settings
from banditto.live.patience import Patience
from banditto.live.reading import Reading
from banditto.live.step_reports import StepNotes
from banditto.live.store_settings import StoreSettings
from banditto.live.tables import SCHEMA_VERSION, make_tables, upgrade, version_of
from banditto.live.writing import Writing

T = TypeVar("T")
Kind = Literal["step", "look", "tables"]
NO_TABLES = "a store of experiments; this one has no tables of them"
FIRST_SECONDS = 5.0  # how long we wait for a server that was never reached: more likely a wrong address than a slow one
_CONNECTING = 15.0  # seconds that an attempt to connect takes at most
_LOSSES = 5  # so often a look begins again after it had got answers: it may be what breaks the connection
# Codes of what may work a moment later; those of class 08 are about connections that broke.
_PASSING_STATES = {
    *("40001", "40P01"),  # transactions that met: serialization failure, deadlock
    "53300",  # too many connections
    *("57P01", "57P02", "57P03"),  # the server shuts down, crashed, or does not take connections yet
    "25P03",  # this process was silent for too long: it computed, or was stopped
}
_WAITING_STATES = {"55P03", "57014"}  # the server's own limits for locks and statements
_PASSING_SQLITE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# Of a look, which writes nothing: the writer has just taken the log away, or begun it anew.
_MOVING_SQLITE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL}
# Codes of those who may read and not write: no privilege, and a transaction or a server that is only read.
_READING_STATES = {"42501", "25006"}
_STORES: WeakSet[Store] = WeakSet()
_INHERITED: list[object] = []  # of the process that this one was forked from


class Store(AbstractContextManager["Store"]):
    """Opens a database of experiments, and runs transactions there."""

    def __init__(self, url: str, settings: StoreSettings | None = None) -> None:
        self.url = url
        self._settings = settings or StoreSettings.of_environment()
        self._engine = engine_of(url, self._settings)
        self._sqlite = self._engine.dialect.name == "sqlite"
        self._ready = False
        self._process = os.getpid()
        self._free: list[sql.Connection] = []  # to files, which steps take and put back
        _STORES.add(self)

    def close(self) -> None:
        """Give all connections of this process back."""
        if self._process == os.getpid():
            self.let_go()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def exists(self) -> bool:
        """Say whether the store's file exists; True for a server, which is asked later."""
        return not self._sqlite or Path(str(self._engine.url.database)).exists()

    def write(self, step: Callable[[Writing], T], noted: StepNotes | None = None) -> T:
        """Run a step in a transaction of its own, and again if the connection was lost; its answer comes back.

        A step that was committed just before may run twice: steps look first whether they were done. How long it
        waited is noted.
        """
        return self._run(lambda connection: step(Writing(connection)), "step", noted)

    def read(self, look: Callable[[Reading], T]) -> T:
        """Read one consistent state and return what `look` returns; a lost connection starts it again."""
        if not self.exists():  # a typing error must not leave a new file behind
            raise NoStore("store", shown_url(self.url), "a file that exists")
        if self._sqlite and not Path(str(self._engine.url.database)).stat().st_size:  # SQLite would begin to fill it
            raise NoStore("store", shown_url(self.url), NO_TABLES)
        return self._run(lambda connection: look(Reading(connection)), "look")

    def _run(self, act: Callable[[sql.Connection], T], kind: Kind, noted: StepNotes | None = None) -> T:
        """Act in a transaction and return the answer; try again as long as the error may pass."""
        patience = Patience(self._settings.deadline, self._settings.idle, renews=kind == "look")
        refusals = 0
        while True:
            self._own()
            patience.begin()
            try:
                if not self._ready:
                    self._prepare(kind == "step", patience)
                return self._inside(kind, patience, act)
            except SQLAlchemyError as error:
                refusals += self._endured(error, patience, refusals, kind)
            finally:
                if noted is not None:
                    noted.waited = patience.waited

    def _step(self, patience: Patience, act: Callable[[sql.Connection], T]) -> T:
        """Take a step in an SQLite file through the driver, which is much faster than SQLAlchemy's transactions."""
        try:
            connection = self._free.pop()
        except IndexError:
            with patience.counting(_CONNECTING):
                connection = self._engine.connect()
        try:
            with patience.counting(patience.left):
                begin_step(connection, patience)
            answer = act(connection)
            end_step(connection)
        except BandittoError:  # the step's own answer
            undo_step(connection)
            self._free.append(connection)
            raise
        except BaseException:  # Ctrl-C may have come anywhere
            connection.invalidate()
            connection.close()
            raise
        self._free.append(connection)
        return answer

    def _inside(self, kind: Kind, patience: Patience, act: Callable[[sql.Connection], T]) -> T:
        """Act inside a transaction, with time limits from `patience`, and return the answer.

        This is no context manager of our own: Ctrl-C between its lines would leave the transaction open.
        """
        if self._sqlite and kind == "step":
            return self._step(patience, act)
        with patience.counting(_CONNECTING):
            plain = self._engine.connect()
        options = {"banditto_kind": kind, "banditto_patience": patience, "banditto_writes": kind != "look"}
        with plain:
            connection = plain.execution_options(**options)
            # PostgreSQL's connections count themselves, SQLite's wait for the lock
            with patience.counting(patience.left if self._sqlite else 0.0):
                transaction = connection.begin()
            with transaction:
                return act(connection)

    def _endured(self, error: SQLAlchemyError, patience: Patience, refusals: int, kind: Kind) -> bool:
        """Wait before the next attempt, or raise `StoreError`; return whether the server refused the connection."""
        patience.lose(idled=_state(error) == "25P03")
        late = patience.late or (not self._ready and patience.waited > FIRST_SECONDS) or patience.lost > _LOSSES
        outlook = "final" if late else outlook_of(error, self._engine)
        if not late and kind == "look" and self._sqlite and _code(error) & 0xFF in _MOVING_SQLITE:
            outlook = "passing"
        refused = outlook == "refused"
        # who was let in before may find the server full; who never was tries twice, as it may just have started
        if outlook == "final" or (refused and refusals and not self._ready):
            raise StoreError(self._failure(error, patience)) from None
        self.let_go()
        if self._ready or not refused:
            time.sleep(0.1)
            patience.count(0.1)
        return refused

    def _failure(self, error: SQLAlchemyError, patience: Patience) -> str:
        """Say in one line what went wrong and, if that was a wait, for whom."""
        if self._sqlite:
            held = _code(error) & 0xFF in _PASSING_SQLITE and file_holders(Path(str(self._engine.url.database)))
            return f"{failure(error)}; {held}" if held else failure(error)
        if patience.told and (patience.late or _state(error) in _WAITING_STATES):
            return f"the store failed: no answer in {patience.waited:.0f} s; {patience.told}"
        return failure(error)

    def let_go(self) -> None:
        """Close connections that are not in use."""
        while self._free:
            self._free.pop().close()
        self._engine.dispose()

    def _own(self) -> None:
        """In a forked process, open connections of its own: two processes must not share one."""
        if self._process != os.getpid():
            _INHERITED.append((self._engine, self._free))  # to close what another thread was using closes it there
            self._engine, self._free, self._process = engine_of(self.url, self._settings), [], os.getpid()

    def _prepare(self, makes: bool, patience: Patience) -> None:
        """Make the tables if there are none; upgrade those of an older version, refuse those of a newer one."""

        def look(connection: sql.Connection) -> int | None:
            if makes:
                warn_of_weak_settings(connection)
            return version_of(connection)

        version = self._inside("look", patience, look)  # who only looks does not wait for a writer
        if version is None and not makes:  # it may be another program's database: who only looks leaves it alone
            raise NoStore("store", shown_url(self.url), NO_TABLES)
        self._refuse_newer(version)
        self._ready = version == SCHEMA_VERSION
        if self._ready:
            return
        try:
            self._inside("tables", patience, self._bring_up_to_date)
        except DBAPIError as error:
            if makes or not _may_not_write(error):
                raise
            return  # an auditor's copy of an older version is read as it is
        self._ready = True

    def _bring_up_to_date(self, connection: sql.Connection) -> None:
        """Create or upgrade the tables; on a server under a lock, since two processes may come at once."""
        if not self._sqlite:  # two processes may come at once
            connection.execute(sql.text("SELECT pg_advisory_xact_lock(7061726974)"))
        version = version_of(connection)
        self._refuse_newer(version)
        if version is None:
            make_tables(connection)
        elif version < SCHEMA_VERSION:
            upgrade(connection, version)

    def _refuse_newer(self, version: int | None) -> None:
        if version is not None and version > SCHEMA_VERSION:
            other = f"{shown_url(self.url)} has tables of version {version}"
            raise StoreError(f"{other}; this banditto reads {SCHEMA_VERSION}")


def _before_fork() -> None:
    """Close all idle connections before a fork: a forked process loses track of SQLite's locks."""
    for store in list(_STORES):
        store.let_go()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before_fork)


# -- what went wrong ---------------------------------------------------------------------------------------------------


def outlook_of(error: SQLAlchemyError, engine: sql.Engine) -> str:
    """Judge by codes alone what to do after an error; one of three words comes back.

    *passing*: the same step may work on a new connection, a moment later. *refused*: no connection was made, though the
    server takes connections; it may be full, or know no such database, role or password: libpq does not say which.
    *final*: trying again will not help.
    """
    if not isinstance(error, DBAPIError):
        return "final"
    if error.connection_invalidated:
        return "passing"
    if engine.dialect.name == "sqlite":
        return "passing" if _code(error) & 0xFF in _PASSING_SQLITE else "final"  # the rest says more precisely why
    state = _state(error)
    if state is not None:
        return "passing" if state in _PASSING_STATES or state.startswith("08") else "final"
    return _reached(engine) if isinstance(error, OperationalError) else "final"


def _may_not_write(error: DBAPIError) -> bool:
    """Say by its code whether an error means that we may read and not write."""
    return _code(error) & 0xFF == sqlite3.SQLITE_READONLY or _state(error) in _READING_STATES


def _state(error: SQLAlchemyError) -> str | None:
    """Return the SQLSTATE of an error; None if it has none."""
    found: str | None = getattr(getattr(error, "orig", None), "sqlstate", None)
    return found


def _code(error: SQLAlchemyError) -> int:
    """Look up SQLite's code of an error; SQLITE_OK comes back if it has none."""
    found: int = getattr(getattr(error, "orig", None), "sqlite_errorcode", sqlite3.SQLITE_OK)
    return found


def _reached(engine: sql.Engine) -> str:
    """Ask a server that refused a connection without an error code whether it is up; return an outlook."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import PGconn, Ping

    _, arguments = engine.dialect.create_connect_args(engine.url)
    address: dict[str, Any] = {key: value for key, value in arguments.items() if isinstance(value, str | int)}
    try:
        answer = PGconn.ping(make_conninfo(**address | {"connect_timeout": 2}).encode())
    except ProgrammingError:  # options that libpq does not know
        return "final"
    outlooks = {Ping.OK: "refused", Ping.REJECT: "passing", Ping.NO_RESPONSE: "passing"}
    return outlooks.get(Ping(answer), "final")


def failure(error: SQLAlchemyError) -> str:
    """Say in one line what the driver said."""
    told = error.orig if isinstance(error, DBAPIError) else error
    return f"the store failed: {' '.join(str(told).split())[:200]}"
