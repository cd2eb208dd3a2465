"""Where experiments are kept: SQLite or PostgreSQL, and how a transaction is begun, tried again and shared out.

One writer at a time holds an experiment: SQLite begins with its write lock, PostgreSQL locks the experiment's row.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import sqlalchemy as sql
from sqlalchemy.exc import SQLAlchemyError

from banditto.core.errors import InvalidArgument
from banditto.live.connecting import BUSY_SECONDS, StoreError, engine_of, failure, passing, shown_url
from banditto.live.rows import Reading, Writing
from banditto.live.tables import SCHEMA, SCHEMA_VERSION, metadata, upgrade

T = TypeVar("T")
FIRST_SECONDS = 5.0
NO_TABLES = "a store of experiments; this one has no tables of them"
_STORES: WeakSet[Store] = WeakSet()
_INHERITED: list[sql.Engine] = []  # of the process that this one was forked from


class NoStore(InvalidArgument):
    """There is nothing yet where experiments should be."""


class Store:
    """A database of experiments."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = engine_of(url)
        self._sqlite = self._engine.dialect.name == "sqlite"
        self._ready = False
        self._process = os.getpid()
        _STORES.add(self)

    def close(self) -> None:
        """Give connections back."""
        if self._process == os.getpid():
            self._engine.dispose()

    def exists(self) -> bool:
        """Whether there is a file; a server is asked later."""
        return not self._sqlite or Path(str(self._engine.url.database)).exists()

    def write(self, step: Callable[[Writing], T]) -> T:
        """Run a step in a transaction of its own, and again if the connection was lost.

        A step that was committed just before may run twice: steps look first whether they were done.
        """
        return self._run(lambda connection: step(Writing(connection, self._sqlite)), True, banditto_writes=True)

    def read(self, look: Callable[[Reading], T]) -> T:
        """Look at one consistent state, from the beginning again if the connection was lost."""
        if not self.exists():  # a typing error must not leave a new file behind
            raise NoStore("store", shown_url(self.url), "a file that exists")
        if self._sqlite and not Path(str(self._engine.url.database)).stat().st_size:  # SQLite would begin to fill it
            raise NoStore("store", shown_url(self.url), NO_TABLES)
        options = {} if self._sqlite else {"isolation_level": "REPEATABLE READ"}
        return self._run(lambda connection: look(Reading(connection)), False, **options)

    def _run(self, act: Callable[[sql.Connection], T], makes: bool, **options: Any) -> T:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            self._own()
            try:
                self._prepare(makes)
                with self._engine.connect() as plain:
                    connection = plain.execution_options(**options)
                    with connection.begin():
                        return act(connection)
            except SQLAlchemyError as error:
                # a server that was never reached is more likely a wrong address than one that starts again
                wait = BUSY_SECONDS if self._ready else FIRST_SECONDS
                if not passing(error) or time.monotonic() > deadline - BUSY_SECONDS + wait:
                    raise StoreError(failure(error)) from None
                self._engine.dispose()
                time.sleep(0.1)

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
        if self._ready:
            return
        with self._engine.connect() as looking, looking.begin():  # who only looks does not wait for a writer
            version = _version(looking)
        if version is None and not makes:  # it may be another program's database: who only looks leaves it alone
            raise NoStore("store", shown_url(self.url), NO_TABLES)
        self._ready = version == SCHEMA_VERSION
        if self._ready:
            return
        with self._engine.connect() as plain:
            connection = plain.execution_options(banditto_writes=True)
            with connection.begin():
                if not self._sqlite:  # two processes may come at once
                    connection.execute(sql.text("SELECT pg_advisory_xact_lock(7061726974)"))
                version = _version(connection)
                if version is None:
                    metadata.create_all(connection)
                    connection.execute(SCHEMA.insert().values(version=SCHEMA_VERSION))
                elif version > SCHEMA_VERSION:
                    other = f"{shown_url(self.url)} has tables of version {version}"
                    raise StoreError(f"{other}; this banditto reads {SCHEMA_VERSION}")
                elif version < SCHEMA_VERSION:
                    upgrade(connection, version)
        self._ready = True


def _version(connection: sql.Connection) -> int | None:
    """The version of a store's tables; None if there are none."""
    if not sql.inspect(connection).has_table(SCHEMA.name):
        return None
    version: int = connection.execute(sql.select(SCHEMA.c.version)).scalar_one()
    return version


def _before_fork() -> None:
    """SQLite forgets in a forked process which locks it holds: let nothing be open there."""
    for store in list(_STORES):
        store.let_go()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before_fork)
