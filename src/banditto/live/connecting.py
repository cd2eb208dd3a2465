"""Connections to SQLite and PostgreSQL: their settings, what can be tried again, and what is said when it cannot."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from banditto.core.errors import ConflictError, InvalidArgument

ALLOWED = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
OURS = "banditto_schema"  # the table by which a store is known
BUSY_SECONDS = 30.0  # how long a step waits for other writers, or for a server that is starting again
# What drivers say when the same step may work a moment later. A wrong password or database is not among them.
_PASSING = (
    *("server closed the connection", "connection is closed", "connection is lost", "connection was closed"),
    *("refused", "no such file or directory", "reset by peer", "broken pipe", "eof detected", "terminating connection"),
    *("starting up", "shutting down", "not yet accepting", "recovery mode", "too many clients", "connection slots"),
    *("deadlock detected", "database is locked", "database table is locked"),
)


class StoreError(ConflictError):
    """The database cannot be reached, or is of another kind."""

    code = "store"


def engine_of(url: str) -> sql.Engine:
    """What opens connections to a store."""
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
    """Whether this user may write there."""
    return os.access(path, os.W_OK)


def _only_read(path: Path) -> sqlite3.Connection:
    """SQLite would write beside a file that it only reads, unless it is told that nobody else can write either."""
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"  # the second would not read the log
    address = f"{path.resolve().as_uri()}?{mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)


def _set_up_postgresql(connection: Any, record: object) -> None:
    """What was answered stays, whatever the server's default is; one that waits for more than its disk still does."""
    setting = "'synchronous_commit'"
    connection.execute(f"SELECT set_config({setting}, 'on', false) WHERE current_setting({setting}) = 'off'")
    connection.commit()


def _set_up_sqlite(connection: Any, record: object) -> None:
    """What is committed stays, even if the power goes; readers do not wait for a writer."""
    # a damaged byte must not keep `verify` from reading the row and saying so
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    cursor = connection.cursor()
    names = {row[0] for row in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names or OURS in names:  # how another program's database is written is not for us to change
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: sql.Connection) -> None:
    """Python's driver would begin without the lock, and two writers could then not both go on."""
    writes = connection.get_execution_options().get("banditto_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def passing(error: SQLAlchemyError) -> bool:
    """Whether the same step may work on a new connection, a moment later."""
    if not isinstance(error, DBAPIError):
        return False
    text = str(error.orig).lower()
    return error.connection_invalidated or any(words in text for words in _PASSING)


def failure(error: SQLAlchemyError) -> str:
    """One line."""
    told = error.orig if isinstance(error, DBAPIError) else error
    return f"the store failed: {' '.join(str(told).split())[:200]}"


def shown_url(url: str) -> str:
    """A URL without its password and without its options, among which there may be one."""
    if "://" not in str(url):  # nobody knows what is what
        return re.sub(r"^.*@", "***@", str(url), flags=re.DOTALL).partition("?")[0]
    return re.sub(r"://([^:@/]*):.*@", r"://\1:***@", str(url)).partition("?")[0]
