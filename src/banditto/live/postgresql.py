"""Connections to PostgreSQL: limits for every transaction, waits that end, and who holds a lock.

All settings are those of a transaction (SET LOCAL), and nothing is prepared where a pooler stands between: PgBouncer
may hand each transaction to another server process.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sql
from psycopg.abc import PQGen
from sqlalchemy.engine import URL, Dialect
from sqlalchemy.exc import OperationalError

from banditto.live.patience import Patience
from banditto.live.store_settings import StoreSettings

T = TypeVar("T")
ASKING_SECONDS = 2.0  # for the question who holds a lock; the least that libpq takes
_LOOKING_IDLE = 3600.0  # who only reads blocks no step, and may be slow
_TABLES_LIMIT = 86_400.0  # to bring a large store up to date may take long
# Of those whom this process waits for, directly or behind others, they who wait for nobody.
_HOLDERS = """
WITH RECURSIVE chain(pid, depth) AS (
    SELECT blocking.pid, 1 FROM pg_stat_activity AS mine, unnest(pg_blocking_pids(mine.pid)) AS blocking(pid)
    WHERE mine.pid = %(pid)s OR (%(pid)s = 0 AND mine.application_name = %(name)s AND mine.wait_event_type = 'Lock')
    UNION
    SELECT blocking.pid, depth + 1 FROM chain, unnest(pg_blocking_pids(chain.pid)) AS blocking(pid) WHERE depth < 8
)
SELECT DISTINCT pid, application_name, coalesce(host(client_addr), 'the same machine'), state,
    extract(epoch FROM clock_timestamp() - coalesce(state_change, query_start))::float8
FROM chain JOIN pg_stat_activity USING (pid) WHERE cardinality(pg_blocking_pids(pid)) = 0 ORDER BY pid LIMIT 3
"""
# One that waits for more than the disk still does.
_ON_DISK = """set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)"""


class NoAnswer(psycopg.OperationalError):
    """A server did not answer in time; the connection is closed."""


class PatientConnection(psycopg.Connection[Any]):
    """A connection that stops waiting when patience runs out, even if the server's process hangs."""

    patience: Patience | None = None
    pooled = False  # whether a pooler stands between
    again: Callable[[], psycopg.Connection[Any]]  # opens another connection to the same place

    def wait(self, gen: PQGen[T], *given: Any, **named: Any) -> T:
        """Wait for the server's answer and return it; raise `NoAnswer` if it does not come in time."""
        if self.patience is not None:
            gen = self.patience.watch(gen, self._ask, self._give_up)
        return super().wait(gen, *given, **named)

    def _ask(self) -> None:
        assert self.patience is not None
        self.patience.told = holders(self)

    def _give_up(self) -> NoAnswer:
        """Close the connection and return the error to raise; the server then rolls back the unfinished step."""
        assert self.patience is not None
        self.close()
        return NoAnswer(f"no answer within {self.patience.limit:.0f} s")


def holders(connection: PatientConnection) -> str:
    """Say in a line who holds the lock that a connection waits for; another connection asks the server."""
    pid = 0 if connection.pooled else connection.info.backend_pid
    given = {"pid": pid, "name": connection.info.parameter_status("application_name")}
    try:
        with connection.again() as other:
            if isinstance(other, PatientConnection):
                other.patience = Patience(ASKING_SECONDS)
            found = other.execute(_HOLDERS, given).fetchall()
    except psycopg.Error:
        return f"the server did not say within {ASKING_SECONDS:.0f} s who holds a lock"
    if not found:
        return f"nobody holds a lock that it waits for: process {pid or 'unknown'} of the server may be stopped"
    return "; ".join(_shown_holder(*row) for row in found)


def _shown_holder(pid: int, name: str | None, address: str, state: str | None, seconds: float | None) -> str:
    since = f"{state} for {seconds:.0f} s" if state and seconds is not None else "of another user"
    known = " ".join((name or "no name").split())
    return f"process {pid} of the server holds the lock ({known}, at {address}, {since})"


def connecting(url: URL, settings: StoreSettings) -> sql.Engine:
    """Make the engine that opens patient connections to a server and begins transactions there."""
    engine = sql.create_engine(
        url,
        pool_pre_ping=False,
        pool_size=settings.pool_size,
        max_overflow=settings.max_overflow,
        pool_timeout=settings.deadline,
        pool_recycle=-1 if settings.recycle is None else int(settings.recycle),
    )
    # what the address itself says comes first; a connection that broke without a word is noticed in a minute
    milliseconds = int(1000 * settings.deadline)
    usual = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": milliseconds}
    usual["connect_timeout"] = int(min(10.0, max(ASKING_SECONDS, settings.deadline / 3)))
    name = f"banditto {platform.node()[:40]}/{os.getpid()}"

    def connect(dialect: Dialect, record: object, positional: Any, named: dict[str, Any]) -> PatientConnection:
        """Open a connection, and find out whether a pooler stands between us and the server."""
        words: dict[str, Any] = usual | {"fallback_application_name": name} | named
        made: PatientConnection = PatientConnection.connect(*positional, **words, autocommit=True)
        made.patience = Patience(settings.deadline, renews=True)
        made.again = lambda: PatientConnection.connect(
            *positional, **words | {"connect_timeout": int(ASKING_SECONDS)}, autocommit=True, prepare_threshold=None
        )
        try:
            told = made.execute("SELECT pg_backend_pid()").fetchone()
        except BaseException:
            made.close()
            raise
        made.pooled = told is None or told[0] != made.info.backend_pid
        if made.pooled:
            made.prepare_threshold = None
        return made

    sql.event.listen(engine, "do_connect", connect)
    sql.event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: sql.Connection) -> None:
    """Begin a transaction with its limits, in one message.

    Whatever a database's default is: a writer that waited for another one must see what that one wrote.
    """
    options = connection.get_execution_options()
    kind, patience = options.get("banditto_kind"), options.get("banditto_patience")
    level = "REPEATABLE READ READ ONLY" if kind == "look" else "READ COMMITTED"
    settings = [_ON_DISK]
    driver: Any = connection.connection.dbapi_connection
    if isinstance(patience, Patience):
        driver.patience = patience if kind != "tables" else Patience(_TABLES_LIMIT)
        settings += [f"set_config('{name}', '{int(1000 * s)}', true)" for name, s in _limits(kind, patience).items()]
    try:  # the driver itself: SQLAlchemy's way would take a third of what a step costs
        driver.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT {', '.join(settings)}").close()
    except psycopg.Error as error:
        if driver.closed:
            connection.invalidate(error)
        raise OperationalError("BEGIN", None, error, connection_invalidated=driver.closed) from error


def _limits(kind: str | None, patience: Patience) -> dict[str, float]:
    """Return a transaction's time limits on the server, in seconds by setting; they are a bit shorter than ours."""
    lock = max(patience.left - patience.margin, 0.05)
    limits = {"lock_timeout": lock, "statement_timeout": lock + patience.margin / 2}
    if kind == "tables":
        return limits | {"statement_timeout": 0.0, "idle_in_transaction_session_timeout": 0.0}
    return limits | {"idle_in_transaction_session_timeout": _LOOKING_IDLE if kind == "look" else patience.idle}
