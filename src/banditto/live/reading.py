"""What one transaction can look up in a store's tables and write to them: every statement is here.

Events are the truth. Beside them stand, written in the same transaction, what they add up to: the number of events and
the last hash, the progress, the tickets and their metrics, so that no step reads more than a few rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sql

from banditto.core.errors import InvalidArgument
from banditto.core.named_tuples import all_made
from banditto.engine.progress import Progress
from banditto.live.durability import weak_settings
from banditto.live.event_log import Event, Row
from banditto.live.fold import MemoryQueue, Place, Queue
from banditto.live.metrics import MetricSum
from banditto.live.prepared import Prepared, streamed
from banditto.live.tables import (
    DECISIONS,
    EVENTS,
    EXPERIMENTS,
    METRICS,
    OPEN,
    QUEUE,
    REQUESTS,
    TICKETS,
    TOKENS,
    UNIT_KEYS,
    renewed_progress,
)
from banditto.live.tickets import Ticket

_CHUNK = 400  # rows of one statement: SQLite has a limit on what a statement may name
_EVENT = (EVENTS.c.number, EVENTS.c.kind, EVENTS.c.time, EVENTS.c.body, EVENTS.c.hash)
_PLACE = ("experiment", "batch", "position", "attempt")  # what a ticket is known by
_TINY = 1e-150  # the square of less is 0; PostgreSQL would refuse to round it


def now() -> str:
    """Read the clock: UTC, to the microsecond, as it stands in the store."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class ToldSums(NamedTuple):
    """For one arm in one batch: the number of rewards, their sum of squares, and how many are at neither end."""

    batch: int
    arm: int
    pulls: int
    squares: float
    others: int


class TicketRow(NamedTuple):
    """The columns of a ticket's row that a step needs."""

    position: int
    attempt: int
    arm: int
    status: str
    reward: float | None


TicketRows = dict[tuple[int, int, int], TicketRow]  # by batch, position and attempt, as a `Ticket` has them


class StoredQueue:
    """A queue whose slots are in a table; only those that are taken or added are looked at."""

    def __init__(self, connection: sql.Connection, experiment: int) -> None:
        self._connection, self._experiment = connection, experiment
        self.first = self.next = 0

    def push(self, places: Sequence[Place]) -> None:
        """Add slots at the end."""
        rows = [
            {"experiment": self._experiment, "place": place, "position": position, "attempt": attempt}
            for place, (position, attempt) in enumerate(places, self.next)
        ]
        if rows:
            self._connection.execute(QUEUE.insert(), rows)
        self.next += len(places)

    def pop(self, number: int) -> list[Place]:
        """Remove and return the first slots: `number` of them, or as many as there are."""
        end = min(self.first + number, self.next)
        mine = (QUEUE.c.experiment == self._experiment, QUEUE.c.place < end)
        query = sql.select(QUEUE.c.position, QUEUE.c.attempt).where(*mine).order_by(QUEUE.c.place)
        found = [(int(position), int(attempt)) for position, attempt in self._connection.execute(query)]
        self._connection.execute(QUEUE.delete().where(*mine))
        self.first = end
        return found


class Reading:
    """Looks up rows inside one transaction."""

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection

    def weak_settings(self) -> list[str]:
        """List settings of the server with which a power cut can take back what was acknowledged."""
        return weak_settings(self._connection)

    def names(self) -> list[str]:
        """List the names of all experiments, the oldest first."""
        return list(self._connection.execute(sql.select(EXPERIMENTS.c.name).order_by(EXPERIMENTS.c.id)).scalars())

    def find(self, name: str) -> Row | None:
        """Look up an experiment's row; None comes back if there is no such experiment."""
        return self._one(sql.select(EXPERIMENTS).where(EXPERIMENTS.c.name == name))

    def known(self, name: str) -> Row:
        """Look up the row of an experiment that must be there."""
        row = self.find(name)
        if row is None:
            others = ", ".join(self.names()[:10])
            raise InvalidArgument("name", name, f"an experiment of this store: {others or 'none yet'}")
        return row

    def events(self, experiment: int, progress: Progress | None = None, of: int = 0) -> Iterator[Event]:
        """Yield the log in order, without holding all of it; `of` is how many events there should be."""
        query = sql.select(*_EVENT).where(EVENTS.c.experiment == experiment).order_by(EVENTS.c.number)
        for read, event in enumerate(all_made(Event, streamed(self._connection, query)), 1):
            yield event
            if progress is not None and read % 2000 == 0:
                progress(min(read, of), of)
        if progress is not None:
            progress(of, of)

    def events_after(self, experiment: int, number: int, most: int) -> list[Event]:
        """List at most so many events that come after one with a number, in order; 0 is before the first."""
        query = sql.select(*_EVENT).where(EVENTS.c.experiment == experiment, EVENTS.c.number > number)
        return [Event._make(row) for row in self._connection.execute(query.order_by(EVENTS.c.number).limit(most))]

    def token(self, public: str) -> Row | None:
        """Look up a token of the service by its public half; None comes back if there is none."""
        return self._one(sql.select(TOKENS).where(TOKENS.c.id == public))

    def tokens(self) -> list[Row]:
        """List all tokens of the service, the oldest first."""
        return list(self._connection.execute(sql.select(TOKENS).order_by(TOKENS.c.created, TOKENS.c.id)).mappings())

    def event(self, experiment: int, number: int) -> Event:
        """Look up one event by its number."""
        query = sql.select(*_EVENT).where(EVENTS.c.experiment == experiment, EVENTS.c.number == number)
        return Event(*self._connection.execute(query).one())

    def decisions(self, experiment: int) -> list[Event]:
        """List the decisions so far, in order; there are few."""
        query = sql.select(*_EVENT).where(EVENTS.c.experiment == experiment, DECISIONS)
        return [Event(*row) for row in self._connection.execute(query.order_by(EVENTS.c.number))]

    def last_decision(self, experiment: int) -> str:
        """Look up the hash of the last decision; empty text comes back before the first."""
        rows = _LAST_DECISION.rows(self._connection, {"experiment": experiment})
        return str(rows[0][0]) if rows else ""

    def request(self, experiment: int, request: str) -> int | None:
        """Look up the number of the event that answered a request; None comes back for a new request."""
        rows = _REQUEST.rows(self._connection, {"experiment": experiment, "request": request})
        return int(rows[0][0]) if rows else None

    def tickets(self, experiment: int, wanted: Sequence[Ticket]) -> TicketRows:
        """Return the rows of these tickets, and perhaps of others; tickets that do not exist are left out."""
        found: TicketRows = {}
        for batch in {ticket.batch for ticket in wanted}:
            positions = [ticket.position for ticket in wanted if ticket.batch == batch]
            low, high = min(positions), max(positions)
            if high - low < 2 * len(positions) + 8:  # a block, as it was asked for
                values = {"experiment": experiment, "batch": batch, "low": low, "high": high}
                rows: Iterable[Any] = _TICKETS_BETWEEN.rows(self._connection, values)
            else:
                rows = self._rows_of(TICKETS, _TICKET_COLUMNS, experiment, batch, positions)
            for row in all_made(TicketRow, rows):
                found[batch, row[0], row[1]] = row
        return found

    def metrics(self, experiment: int, wanted: Sequence[Ticket]) -> dict[Ticket, dict[str, float]]:
        """Look up the metrics of these tickets, by their names; those that have none are left out."""
        found: dict[Ticket, dict[str, float]] = {}
        for batch in {ticket.batch for ticket in wanted}:
            positions = [ticket.position for ticket in wanted if ticket.batch == batch]
            for position, attempt, name, value in self._rows_of(
                METRICS, ("position", "attempt", "name", "value"), experiment, batch, positions
            ):
                found.setdefault(Ticket(batch, position, attempt), {})[name] = value
        return found

    def _rows_of(
        self, table: sql.Table, columns: Sequence[str], experiment: int, batch: int, positions: Iterable[int]
    ) -> Iterator[Any]:
        """Yield these columns of the rows at these positions of a batch, for all attempts."""
        places = sorted(set(positions))
        for first in range(0, len(places), _CHUNK):
            query = sql.select(*(table.c[name] for name in columns)).where(
                table.c.experiment == experiment,
                table.c.batch == batch,
                table.c.position.in_(places[first : first + _CHUNK]),
            )
            yield from self._connection.execute(query)

    def open_tickets(self, experiment: int, before: str | None, most: int) -> list[Row]:
        """List tickets without a reward, the oldest first; with `before`, those handed out before that time."""
        query = sql.select(TICKETS).where(TICKETS.c.experiment == experiment, OPEN)
        if before is not None:
            query = query.where(TICKETS.c.issued < before)
        query = query.order_by(TICKETS.c.issued, TICKETS.c.batch, TICKETS.c.position).limit(most)
        return list(self._connection.execute(query).mappings())

    def count_open(self, experiment: int, before: str) -> int:
        """Count the tickets without a reward that were handed out before a time, by an index of those."""
        query = sql.select(sql.func.count()).where(TICKETS.c.experiment == experiment, OPEN, TICKETS.c.issued < before)
        return int(self._connection.execute(query).scalar_one())

    def overdue(self, experiment: int, before: str, most: int) -> list[Ticket]:
        """Return at most `most` open tickets that were handed out before a time, the oldest first."""
        values = {"experiment": experiment, "before": before, "most": most}
        return [Ticket(*row) for row in _OVERDUE.rows(self._connection, values)]

    def standing_of(self, row: Row) -> tuple[str, Queue]:
        """Return an experiment's standing as JSON in today's form, and its queue of slots."""
        if '"again":' not in row["progress"]:
            return row["progress"], StoredQueue(self._connection, row["id"])
        text, waiting = renewed_progress(self._connection, row["id"], row["progress"])  # an older copy, only read
        return text, MemoryQueue(waiting)

    def waiting_slots(self, row: Row) -> list[tuple[int, Place]]:
        """Return the slots that wait to be handed out again, each with its place in the queue."""
        text, queue = self.standing_of(row)
        if isinstance(queue, MemoryQueue):
            first = json.loads(text)["queue"][0]
            return list(enumerate(queue.places(), first))
        query = sql.select(QUEUE.c.place, QUEUE.c.position, QUEUE.c.attempt).where(QUEUE.c.experiment == row["id"])
        return [(line[0], (line[1], line[2])) for line in self._connection.execute(query.order_by(QUEUE.c.place))]

    def unit_key(self, experiment: int) -> str | None:
        """Return the key that ids of units are hashed with; None before the first unit."""
        query = sql.select(UNIT_KEYS.c.key).where(UNIT_KEYS.c.experiment == experiment)
        found: str | None = self._connection.execute(query).scalar()
        return found

    def told_sums(self, experiment: int, low: float, high: float, span: float | None) -> Iterator[ToldSums]:
        """Add up the rewards of each batch and arm that count: their number, squares of shares of `span` above `low`
        (0 without a span), and how many are neither `low` nor `high`."""
        above = TICKETS.c.reward - low
        square: Any = sql.literal(0.0)
        if span is not None:  # PostgreSQL refuses to round to 0
            square = sql.case((above <= _TINY * span, 0.0), else_=(above / span) * (above / span))
        inside = sql.case((sql.or_(TICKETS.c.reward == low, TICKETS.c.reward == high), 0), else_=1)
        query = (
            sql.select(TICKETS.c.batch, TICKETS.c.arm, sql.func.count(), sql.func.sum(square), sql.func.sum(inside))
            .where(TICKETS.c.experiment == experiment, TICKETS.c.status == "told")
            .group_by(TICKETS.c.batch, TICKETS.c.arm)
        )
        for batch, arm, count, squares, others in self._connection.execute(query):
            yield ToldSums(int(batch), int(arm), int(count), float(squares), int(others))

    def arm_tickets(self, experiment: int) -> Iterator[tuple[int, int, str, bool, int]]:
        """Count tickets by batch, arm, status, and whether they were a slot's first."""
        first = sql.case((TICKETS.c.attempt == 0, 1), else_=0)
        columns = (TICKETS.c.batch, TICKETS.c.arm, TICKETS.c.status, first)
        query = sql.select(*columns, sql.func.count()).where(TICKETS.c.experiment == experiment).group_by(*columns)
        for batch, arm, status, once, count in self._connection.execute(query):
            yield int(batch), int(arm), str(status), bool(once), int(count)

    def all_requests(self, experiment: int) -> Iterator[tuple[str, int]]:
        """Yield every request and the number of the event that answered it, without holding all of them."""
        return self._streamed(REQUESTS, ("request", "event"), experiment)

    def all_tickets(self, experiment: int) -> Iterator[tuple[int, int, int, int, str, float | None, str]]:
        """Yield batch, position, attempt, arm, status, reward and time of every ticket, without holding all of them."""
        columns = ("batch", "position", "attempt", "arm", "status", "reward", "issued")
        return self._streamed(TICKETS, columns, experiment)

    def metric_names(self, experiment: int) -> list[str]:
        """List the names of an experiment's metrics, by one look into the index for each, however many values."""
        name, mine = METRICS.c.name, METRICS.c.experiment == experiment
        least = sql.func.min(name)
        first = sql.select(least.label("name")).where(mine).cte("metric_names", recursive=True)
        following_one = sql.select(least).where(mine, name > first.c.name).scalar_subquery()
        names = first.union_all(sql.select(following_one).select_from(first).where(first.c.name.is_not(None)))
        return list(self._connection.execute(sql.select(names.c.name).where(names.c.name.is_not(None))).scalars())

    def metric_sums(self, experiment: int) -> list[MetricSum]:
        """Add up metrics over tickets whose rewards count; sums by name, batch and arm come back, in this order.

        The database adds, in doubles: however many values there are, no more than their sums are held here.
        """
        if not self._has_metrics():
            return []
        value, by = METRICS.c.value, (METRICS.c.name, METRICS.c.batch, TICKETS.c.arm)
        square = sql.case((sql.func.abs(value) < _TINY, 0.0), else_=value * value)
        sums = (sql.func.count(), sql.func.sum(value), sql.func.sum(square), sql.func.min(value), sql.func.max(value))
        query = (
            sql.select(*by, *sums)
            .join_from(METRICS, TICKETS, sql.and_(*(METRICS.c[name] == TICKETS.c[name] for name in _PLACE)))
            .where(METRICS.c.experiment == experiment, TICKETS.c.status == "told")
            .group_by(*by)
        )
        keys = [field.name for field in fields(MetricSum)]
        rows = sorted(tuple(row) for row in self._connection.execute(query))  # databases sort text in many ways
        return [MetricSum(**dict(zip(keys, row, strict=True))) for row in rows]

    def all_metrics(self, experiment: int) -> Iterator[tuple[int, int, int, str, float]]:
        """Yield batch, position, attempt, name and value of every metric, without holding all of them."""
        if self._has_metrics():
            yield from self._streamed(METRICS, ("batch", "position", "attempt", "name", "value"), experiment)

    def _has_metrics(self) -> bool:
        """Say whether there is a table of metrics: an older store that cannot be written has none."""
        return sql.inspect(self._connection).has_table(METRICS.name)

    def _streamed(self, table: sql.Table, columns: Sequence[str], experiment: int) -> Iterator[Any]:
        query = sql.select(*(table.c[name] for name in columns)).where(table.c.experiment == experiment)
        return streamed(self._connection, query)

    def _one(self, query: sql.Select[Any]) -> Row | None:
        return self._connection.execute(query).mappings().one_or_none()


# -- what every step runs ----------------------------------------------------------------------------------------------

_TICKET_COLUMNS = TicketRow._fields
_REQUEST = Prepared(
    sql.select(REQUESTS.c.event).where(
        REQUESTS.c.experiment == sql.bindparam("experiment"), REQUESTS.c.request == sql.bindparam("request")
    )
)
_LAST_DECISION = Prepared(
    sql.select(EVENTS.c.hash)
    .where(EVENTS.c.experiment == sql.bindparam("experiment"), DECISIONS)
    .order_by(EVENTS.c.number.desc())
    .limit(sql.literal_column("1"))
)
_TICKETS_BETWEEN = Prepared(
    sql.select(*(TICKETS.c[name] for name in _TICKET_COLUMNS)).where(
        TICKETS.c.experiment == sql.bindparam("experiment"),
        TICKETS.c.batch == sql.bindparam("batch"),
        TICKETS.c.position >= sql.bindparam("low"),
        TICKETS.c.position <= sql.bindparam("high"),
    )
)
_OVERDUE = Prepared(
    sql.select(TICKETS.c.batch, TICKETS.c.position, TICKETS.c.attempt)
    .where(TICKETS.c.experiment == sql.bindparam("experiment"), OPEN, TICKETS.c.issued < sql.bindparam("before"))
    .order_by(TICKETS.c.issued, TICKETS.c.batch, TICKETS.c.position)
    .limit(sql.bindparam("most", type_=sql.Integer))
)
