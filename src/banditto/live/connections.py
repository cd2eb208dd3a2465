"""How a store is reached: from a URL to connections, for files that may be written and for those that may not."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import SQLAlchemyError

from banditto.core.errors import InvalidArgument
from banditto.live.audit_copies import beside, connect_reading
from banditto.live.patience import Patience
from banditto.live.prepared import driver_committed, driver_executed
from banditto.live.store_settings import StoreSettings
from banditto.live.tables import SCHEMA

_A_MOMENT = 0.5  # seconds of waiting that are no more than it takes to connect
ALLOWED = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"


def engine_of(url: str, settings: StoreSettings | None = None) -> sql.Engine:
    """Make the SQLAlchemy engine for a store's URL, without connecting yet; raise `InvalidArgument` for a bad URL."""
    settings = settings or StoreSettings.of_environment()
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
        from banditto.live.postgresql import connecting  # which takes a while to load, and files do not need

        return connecting(parsed, settings)
    if parsed.drivername != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise InvalidArgument("store", shown_url(url), ALLOWED)
    if parsed.query:  # such as mode=ro, which the driver would leave aside with a warning
        raise InvalidArgument("store", f"{shown_url(url)} with options", "sqlite:///FILE, which has none")
    path = Path(str(parsed.database))
    if not path.parent.is_dir() or path.is_dir():
        raise InvalidArgument("store", shown_url(url), "a file in a folder that exists")
    return _file_engine(parsed, path, settings)


def writable(path: Path) -> bool:
    """Say whether this user may write to a file or folder."""
    return os.access(path, os.W_OK)


def shown_url(url: str) -> str:
    """Write a URL without its password and without its options, among which there may be one."""
    if "://" not in str(url):  # nobody knows what is what
        return re.sub(r"^.*@", "***@", str(url), flags=re.DOTALL).partition("?")[0]
    return re.sub(r"://([^:@/]*):.*@", r"://\1:***@", str(url)).partition("?")[0]


# -- SQLite ------------------------------------------------------------------------------------------------------------


def _file_engine(url: sql.URL, path: Path, settings: StoreSettings) -> sql.Engine:
    """Make the engine of an SQLite file; one that this user cannot write is opened for reading, anew at each look."""
    if path.exists() and not (writable(path) and writable(path.parent)):  # an auditor's
        # each look opens the file anew: a copy would not show what is written later
        engine = sql.create_engine(
            url, creator=lambda: connect_reading(path, settings.deadline), poolclass=sql.pool.NullPool
        )
        sql.event.listen(engine, "connect", _keep_damaged_text)
    else:
        engine = sql.create_engine(
            url,
            connect_args={"timeout": settings.deadline, "isolation_level": None},
            pool_size=settings.pool_size,
            max_overflow=settings.max_overflow,
            pool_timeout=settings.deadline,
        )
        sql.event.listen(engine, "connect", _set_up)
        sql.event.listen(engine, "invalidate", _take_back)
    sql.event.listen(engine, "begin", _begin)
    return engine


def _keep_damaged_text(connection: Any, record: object) -> None:
    """Decode text so that damaged bytes survive: `verify` can then read the row and report it."""
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")


def _set_up(connection: Any, record: object) -> None:
    """Set up a new SQLite connection: commits survive a power cut, and readers do not wait for a writer."""
    _keep_damaged_text(connection, record)
    cursor = connection.cursor()
    names = {row[0] for row in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names or SCHEMA.name in names:  # how another program's database is written is not for us to change
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def begin_step(connection: sql.Connection, patience: Patience) -> None:
    """Begin a transaction that holds SQLite's write lock, through the driver itself."""
    # a new connection waits as long as a step may that has not waited yet
    if patience.waited > _A_MOMENT or "banditto_waited" in connection.info:
        connection.info["banditto_waited"] = True
        driver_executed(connection, f"PRAGMA busy_timeout={int(1000 * patience.left)}")
    driver_executed(connection, "BEGIN IMMEDIATE")


def end_step(connection: sql.Connection) -> None:
    """Commit a step: through SQLAlchemy if it has begun a transaction, else through the driver."""
    if connection.in_transaction():
        connection.commit()
    else:
        driver_committed(connection)


def undo_step(connection: sql.Connection) -> None:
    """Roll back a step that did not end."""
    if connection.in_transaction():
        connection.rollback()
    else:
        connection.dialect.do_rollback(connection.connection)


def _take_back(connection: Any, record: object, error: BaseException | None) -> None:
    """Roll back a connection that is about to be closed, as after Ctrl-C; its open statements would keep the lock."""
    connection.rollback()


def _begin(connection: sql.Connection) -> None:
    """Begin an SQLite transaction; one that writes takes the lock at once, or two writers could block each other."""
    driver: Any = connection.connection.dbapi_connection
    if driver.in_transaction:  # a step, which has begun
        return
    options = connection.get_execution_options()
    patience = options.get("banditto_patience")
    if isinstance(patience, Patience):
        connection.exec_driver_sql(f"PRAGMA busy_timeout={int(1000 * patience.left)}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("banditto_writes") else "BEGIN")


def file_holders(path: Path) -> str:
    """Say which processes hold a file's write lock, where the system tells (Linux); otherwise empty text comes back."""
    held = 120  # the byte of the log's index that a writer locks
    try:
        number = beside(path, "shm").stat().st_ino
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return ""
    found = set()
    for words in (line for line in lines if "->" not in line):
        place, first, last = words[-3:]
        if words[3] == "WRITE" and place.endswith(f":{number}") and int(first) <= held and last != "EOF":
            found |= {words[4]} if held <= int(last) else set()
    return "; ".join(f"process {pid} of this machine holds the lock" for pid in sorted(found))
