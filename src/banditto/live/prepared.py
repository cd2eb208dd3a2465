"""Statements that every step runs: compiled once for each kind of database, and handed to its driver as they are.

SQLAlchemy works out a statement anew at each execution, which costs several times what the database needs for it. These
are still SQLAlchemy's statements, written once for all databases, and errors are still SQLAlchemy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import ClauseElement

_ROWS = 2000  # that are fetched at once


class Prepared:
    """A statement with named parameters, compiled once for each kind of database."""

    def __init__(self, statement: ClauseElement, columns: Sequence[str] | None = None) -> None:
        self._statement, self._columns = statement, columns
        self._compiled: dict[str, _Text] = {}

    def run(self, connection: sql.Connection, values: Mapping[str, Any]) -> None:
        """Run the statement, which gives no rows."""
        made = self._made(connection)
        driver_executed(connection, made.text, made.given(values))

    def run_many(self, connection: sql.Connection, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Run the statement for each of these rows, whose values are the parameters of these names."""
        made = self._made(connection)
        given: Sequence[Any] = rows
        if made.names != names:  # those of a database whose parameters have names, or another order
            given = [made.given(dict(zip(names, row, strict=True))) for row in rows]
        if len(given) == 1:
            driver_executed(connection, made.text, given[0])
        else:
            driver_executed(connection, made.text, given, many=True)

    def rows(self, connection: sql.Connection, values: Mapping[str, Any]) -> list[Any]:
        """Run the statement; its rows come back, as plain tuples."""
        made = self._made(connection)
        return driver_executed(connection, made.text, made.given(values), fetch=True)

    def _made(self, connection: sql.Connection) -> _Text:
        """Return the statement's text for this kind of database, compiled at the first call."""
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            made = self._statement.compile(dialect=dialect, column_keys=self._columns)
            fixed = {name: value for name, value in made.params.items() if value is not None}
            names = getattr(made, "positiontup", None)
            arrange = None if names is None else _arranged(names)
            found = self._compiled[dialect.name] = _Text(str(made), names and tuple(names), arrange, fixed)
        return found


def _arranged(names: Sequence[str]) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that turns a mapping of values into a tuple, in the order of these names."""
    return itemgetter(*names) if len(names) > 1 else lambda values: tuple(values[name] for name in names)


class _Text(NamedTuple):
    """A statement in one database's own SQL: text, order of its parameters (None if named), and fixed values."""

    text: str
    names: Sequence[str] | None
    arrange: Callable[[Mapping[str, Any]], Any] | None
    fixed: Mapping[str, Any]

    def given(self, values: Mapping[str, Any]) -> Any:
        """Return the values of one execution in the form that the driver wants: a mapping or a tuple."""
        known = {**self.fixed, **values} if self.fixed else values
        return known if self.arrange is None else self.arrange(known)


def driver_executed(
    connection: sql.Connection, text: str, given: Any = (), many: bool = False, fetch: bool = False
) -> list[Any]:
    """Run a statement through the driver itself; return its rows if `fetch`, else an empty list."""
    cursor = connection.connection.cursor()
    try:
        if many:
            cursor.executemany(text, given)
        else:
            cursor.execute(text, given)
        return list(cursor.fetchall()) if fetch else []
    except connection.dialect.loaded_dbapi.Error as error:
        raise _translated(connection, text, error) from error
    finally:
        cursor.close()


def driver_committed(connection: sql.Connection) -> None:
    """Commit through the driver itself what was run through it."""
    try:
        connection.dialect.do_commit(connection.connection)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _translated(connection, "COMMIT", error) from error


def _translated(connection: sql.Connection, text: str, error: Any) -> DBAPIError:
    """Return SQLAlchemy's error for a driver's error; a connection that is gone is invalidated."""
    dialect, driver = connection.dialect, connection.connection
    gone = dialect.is_disconnect(error, driver.dbapi_connection, None)
    if gone:
        connection.invalidate(error)
    kind = dialect.loaded_dbapi.Error
    made: DBAPIError = DBAPIError.instance(text, None, error, kind, connection_invalidated=gone, dialect=dialect)
    return made


def streamed(connection: sql.Connection, query: sql.Select[Any]) -> Iterator[Any]:
    """Run a query and yield its plain rows, without holding all of them."""
    if connection.dialect.name == "sqlite":  # whose driver reads on as rows are fetched
        made = query.compile(dialect=connection.dialect)
        names, text = getattr(made, "positiontup", None) or (), str(made)
        cursor = connection.connection.cursor()
        try:
            cursor.execute(text, [made.params[name] for name in names])
            while rows := cursor.fetchmany(_ROWS):
                yield from rows
        except connection.dialect.loaded_dbapi.Error as error:
            raise _translated(connection, text, error) from error
        finally:
            with suppress(connection.dialect.loaded_dbapi.Error):  # who stops half way may have closed the connection
                cursor.close()
        return
    with connection.execute(query.execution_options(yield_per=_ROWS)) as found:  # a cursor on the server
        for part in found.partitions():
            yield from map(tuple, part)
