"""Where experiments are kept, SQLite or PostgreSQL: how a transaction is begun, tried again and shared out.

One writer at a time holds an experiment: SQLite begins with its write lock, PostgreSQL locks the experiment's row. What
went wrong is told by codes, SQLSTATE and SQLite's own: the words come in the server's language.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakSet

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from banditto.core.errors import InvalidArgument, NoStore, StoreError
from banditto.live.sql import Reading, Writing
from banditto.live.tables import SCHEMA, SCHEMA_VERSION, make_tables, upgrade, version_of

T = TypeVar("T")
ALLOWED = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
NO_TABLES = "a store of experiments; this one has no tables of them"
BUSY_SECONDS = 30.0  # how long a step waits for other writers, or for a server that is starting again
FIRST_SECONDS = 5.0  # the same for a server that was never reached: more likely a wrong address than one that starts
# Codes of what may work a moment later; those of class 08 are about connections that broke.
_PASSING_STATES = {
    *("40001", "40P01"),  # transactions that met: serialization failure, deadlock
    "53300",  # too many connections
    *("57P01", "57P02", "57P03"),  # the server shuts down, crashed, or does not take connections yet
}
_PASSING_SQLITE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# Codes of those who may read and not write: no privilege, and a transaction or a server that is only read.
_READING_STATES = {"42501", "25006"}
_STORES: WeakSet[Store] = WeakSet()
_INHERITED: list[sql.Engine] = []  # of the process that this one was forked from


class Store(AbstractContextManager["Store"]):
    """Opens a database of experiments, and runs transactions there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = engine_of(url)
        self._sqlite = self._engine.dialect.name == "sqlite"
        self._ready = False
        self._process = os.getpid()
        _STORES.add(self)

    def close(self) -> None:
        """Give all connections of this process back."""
        if self._process == os.getpid():
            self._engine.dispose()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def exists(self) -> bool:
        """Say whether there is a file; a server is asked later."""
        return not self._sqlite or Path(str(self._engine.url.database)).exists()

    def write(self, step: Callable[[Writing], T]) -> T:
        """Run a step in a transaction of its own, and again if the connection was lost; its answer comes back.

        A step that was committed just before may run twice: steps look first whether they were done.
        """
        return self._run(lambda connection: step(Writing(connection)), True, banditto_writes=True)

    def read(self, look: Callable[[Reading], T]) -> T:
        """Look at one consistent state, from the beginning again if the connection was lost; give what was seen."""
        if not self.exists():  # a typing error must not leave a new file behind
            raise NoStore("store", shown_url(self.url), "a file that exists")
        if self._sqlite and not Path(str(self._engine.url.database)).stat().st_size:  # SQLite would begin to fill it
            raise NoStore("store", shown_url(self.url), NO_TABLES)
        options = {} if self._sqlite else {"isolation_level": "REPEATABLE READ"}
        return self._run(lambda connection: look(Reading(connection)), False, **options)

    def _run(self, act: Callable[[sql.Connection], T], makes: bool, **options: Any) -> T:
        """Act in a transaction; as long as what goes wrong may pass, try again."""
        begun, refusals = time.monotonic(), 0
        while True:
            self._own()
            try:
                if not self._ready:
                    self._prepare(makes)
                with self._engine.connect() as plain:
                    connection = plain.execution_options(**options)
                    with connection.begin():
                        return act(connection)
            except SQLAlchemyError as error:
                refusals += self._endured(error, begun, refusals)

    def _endured(self, error: SQLAlchemyError, begun: float, refusals: int) -> bool:
        """Wait before another attempt, or raise if there is no hope; whether a server refused us comes back."""
        late = time.monotonic() > begun + (BUSY_SECONDS if self._ready else FIRST_SECONDS)
        outlook = "final" if late else outlook_of(error, self._engine)
        refused = outlook == "refused"
        # who was let in before may find the server full; who never was tries twice, as it may just have started
        if outlook == "final" or (refused and refusals and not self._ready):
            raise StoreError(failure(error)) from None
        self._engine.dispose()
        if self._ready or not refused:
            time.sleep(0.1)
        return refused

    def let_go(self) -> None:
        """Close connections that are not in use."""
        self._engine.dispose()

    def _own(self) -> None:
        """Open connections anew in a process that was forked: two processes must not share one."""
        if self._process != os.getpid():
            _INHERITED.append(self._engine)  # to close what another thread was using would close it over there
            self._engine, self._process = engine_of(self.url), os.getpid()

    def _prepare(self, makes: bool) -> None:
        """Make the tables if there are none; upgrade those of an older version, refuse those of a newer one."""
        with self._engine.connect() as looking, looking.begin():  # who only looks does not wait for a writer
            version = version_of(looking)
        if version is None and not makes:  # it may be another program's database: who only looks leaves it alone
            raise NoStore("store", shown_url(self.url), NO_TABLES)
        self._refuse_newer(version)
        self._ready = version == SCHEMA_VERSION
        if self._ready:
            return
        try:
            self._bring_up_to_date()
        except DBAPIError as error:
            if makes or not _may_not_write(error):
                raise
            return  # an auditor's copy of an older version is read as it is
        self._ready = True

    def _bring_up_to_date(self) -> None:
        """Make or upgrade the tables, as the one who does."""
        with self._engine.connect() as plain:
            connection = plain.execution_options(banditto_writes=True)
            with connection.begin():
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
    """Close what is open: SQLite forgets in a forked process which locks it holds."""
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
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_OK)
        return "passing" if code & 0xFF in _PASSING_SQLITE else "final"  # the rest says more precisely why
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return "passing" if state in _PASSING_STATES or state.startswith("08") else "final"
    return _reached(engine) if isinstance(error, OperationalError) else "final"


def _may_not_write(error: DBAPIError) -> bool:
    """Say by its code whether an error means that we may read and not write."""
    code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF == sqlite3.SQLITE_READONLY or getattr(error.orig, "sqlstate", None) in _READING_STATES


def _reached(engine: sql.Engine) -> str:
    """Ask after a connection without a code that failed whether there is a server, and whether it takes connections."""
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


# -- connections -------------------------------------------------------------------------------------------------------


def engine_of(url: str) -> sql.Engine:
    """Make what opens connections to a store; a URL that can be none is refused, and nothing is opened yet."""
    if not isinstance(url, str) or not url.strip():
        raise InvalidArgument("store", url, ALLOWED)
    full = f"postgresql+psycopg://{url.split('://', 1)[1]}" if url.startswith(("postgresql://", "postgres://")) else url
    try:
        parsed = sql.make_url(full)
    except (SQLAlchemyError, ValueError):  # the second for a port that is no number
        raise InvalidArgument("store", shown_url(url), ALLOWED) from None
    if "@" in (parsed.host or ""):  # the rest of a password, which the driver would print as a name of a host
        raise InvalidArgument("store", shown_url(url), f"{ALLOWED}, with %40 for an @ in a password")
    if parsed.drivername == "postgresql+psycopg":
        # whatever a database's default is: a writer that waited for another one must see what that one wrote
        engine = sql.create_engine(parsed, pool_pre_ping=False, isolation_level="READ COMMITTED")
        sql.event.listen(engine, "connect", _set_up_postgresql)
        return engine
    if parsed.drivername != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise InvalidArgument("store", shown_url(url), ALLOWED)
    if parsed.query:  # such as mode=ro, which the driver would leave aside with a warning
        raise InvalidArgument("store", f"{shown_url(url)} with options", "sqlite:///FILE, which has none")
    path = Path(str(parsed.database))
    if not path.parent.is_dir() or path.is_dir():
        raise InvalidArgument("store", shown_url(url), "a file in a folder that exists")
    if path.exists() and not (writable(path) and writable(path.parent)):  # an auditor's copy
        engine = sql.create_engine(parsed, creator=lambda: _only_read(path))
    else:
        engine = sql.create_engine(parsed, connect_args={"timeout": BUSY_SECONDS, "isolation_level": None})
    sql.event.listen(engine, "connect", _set_up_sqlite)
    sql.event.listen(engine, "begin", _begin_sqlite)
    return engine


def writable(path: Path) -> bool:
    """Say whether this user may write there."""
    return os.access(path, os.W_OK)


def _only_read(path: Path) -> sqlite3.Connection:
    """Connect to a file that is only read: SQLite would write beside it, unless told that nobody else can write."""
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"  # the second would not read the log
    address = f"{path.resolve().as_uri()}?{mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)


def _set_up_postgresql(connection: Any, record: object) -> None:
    """Make commits wait for the disk, whatever the server's default is; one that waits for more still does."""
    setting = "'synchronous_commit'"
    connection.execute(f"SELECT set_config({setting}, 'on', false) WHERE current_setting({setting}) = 'off'")
    connection.commit()


def _set_up_sqlite(connection: Any, record: object) -> None:
    """Let what is committed stay, even if the power goes, and readers not wait for a writer."""
    # a damaged byte must not keep `verify` from reading the row and saying so
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    cursor = connection.cursor()
    names = {row[0] for row in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names or SCHEMA.name in names:  # how another program's database is written is not for us to change
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: sql.Connection) -> None:
    """Begin with the lock: Python's driver would begin without it, and two writers could then not both go on."""
    writes = connection.get_execution_options().get("banditto_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def shown_url(url: str) -> str:
    """Write a URL without its password and without its options, among which there may be one."""
    if "://" not in str(url):  # nobody knows what is what
        return re.sub(r"^.*@", "***@", str(url), flags=re.DOTALL).partition("?")[0]
    return re.sub(r"://([^:@/]*):.*@", r"://\1:***@", str(url)).partition("?")[0]
