"""What one transaction can look up in a store's tables and write to them: every statement is here.

Events are the truth. Beside them stand, written in the same transaction, what they add up to: the number of events and
the last hash, the progress, the tickets and their metrics, so that no step reads more than a few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from banditto.core.errors import ConflictError, InvalidArgument
from banditto.engine.blocks import Progress
from banditto.live.event_log import FIRST_HASH, Event, Kind, Row, following
from banditto.live.fold import Slot, Ticket
from banditto.live.metrics import Metrics, MetricSum
from banditto.live.tables import DECISIONS, EVENTS, EXPERIMENTS, METRICS, OPEN, REQUESTS, TICKETS

_CHUNK = 400  # rows of one statement: SQLite has a limit on what a statement may name
_EVENT = (EVENTS.c.number, EVENTS.c.kind, EVENTS.c.time, EVENTS.c.body, EVENTS.c.hash)
_PLACE = ("experiment", "batch", "position", "attempt")  # what a ticket is known by
_TINY = 1e-150  # the square of less is 0; PostgreSQL would refuse to round it


def now() -> str:
    """Read the clock: UTC, to the microsecond, as it stands in the store."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class ToldSums(NamedTuple):
    """Rewards of one arm in one batch: how many, the sum of squares as shares, and how many are at no end."""

    batch: int
    arm: int
    pulls: int
    squares: float
    others: int


class Reading:
    """Looks up rows inside one transaction."""

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection

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
        after = 0
        while True:
            query = sql.select(*_EVENT).where(EVENTS.c.experiment == experiment, EVENTS.c.number > after)
            rows = self._connection.execute(query.order_by(EVENTS.c.number).limit(2000)).all()
            yield from (Event(*row) for row in rows)
            if not rows:
                return
            after = rows[-1].number
            if progress is not None:
                progress(min(after, of), of)

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
        query = sql.select(EVENTS.c.hash).where(EVENTS.c.experiment == experiment, DECISIONS)
        found: str | None = self._connection.execute(query.order_by(EVENTS.c.number.desc()).limit(1)).scalar()
        return found or ""

    def request(self, experiment: int, request: str) -> int | None:
        """Look up the number of the event that answered a request; None comes back for a new request."""
        query = sql.select(REQUESTS.c.event).where(REQUESTS.c.experiment == experiment, REQUESTS.c.request == request)
        found: int | None = self._connection.execute(query).scalar()
        return found

    def tickets(self, experiment: int, wanted: Sequence[Ticket]) -> dict[Ticket, Row]:
        """Look up the rows of these tickets; those that do not exist are left out."""
        rows = self._rows_of(TICKETS, experiment, wanted)
        return {Ticket(row["batch"], row["position"], row["attempt"]): row for row in rows}

    def metrics(self, experiment: int, wanted: Sequence[Ticket]) -> dict[Ticket, dict[str, float]]:
        """Look up the metrics of these tickets, by their names; those that have none are left out."""
        found: dict[Ticket, dict[str, float]] = {}
        for row in self._rows_of(METRICS, experiment, wanted):
            found.setdefault(Ticket(row["batch"], row["position"], row["attempt"]), {})[row["name"]] = row["value"]
        return found

    def _rows_of(self, table: sql.Table, experiment: int, wanted: Sequence[Ticket]) -> Iterator[Row]:
        """Yield a table's rows of these tickets and of other attempts at their slots."""
        for batch in {ticket.batch for ticket in wanted}:
            positions = sorted({ticket.position for ticket in wanted if ticket.batch == batch})
            for first in range(0, len(positions), _CHUNK):
                query = sql.select(table).where(
                    table.c.experiment == experiment,
                    table.c.batch == batch,
                    table.c.position.in_(positions[first : first + _CHUNK]),
                )
                yield from self._connection.execute(query).mappings()

    def open_tickets(self, experiment: int, before: str | None, most: int) -> list[Row]:
        """List tickets without a reward, the oldest first; with `before`, those handed out before that time."""
        query = sql.select(TICKETS).where(TICKETS.c.experiment == experiment, OPEN)
        if before is not None:
            query = query.where(TICKETS.c.issued < before)
        query = query.order_by(TICKETS.c.issued, TICKETS.c.batch, TICKETS.c.position).limit(most)
        return list(self._connection.execute(query).mappings())

    def count_tickets(self, experiment: int) -> dict[str, int]:
        """Count the tickets that are open, told, missing and late."""
        query = sql.select(TICKETS.c.status, sql.func.count()).where(TICKETS.c.experiment == experiment)
        return {row[0]: row[1] for row in self._connection.execute(query.group_by(TICKETS.c.status))}

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

    def all_requests(self, experiment: int) -> dict[str, int]:
        """Look up every request and the number of the event that answered it."""
        query = sql.select(REQUESTS.c.request, REQUESTS.c.event).where(REQUESTS.c.experiment == experiment)
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def all_tickets(self, experiment: int) -> Iterator[Row]:
        """Yield every ticket's row, without holding all of them."""
        return self._streamed(TICKETS, experiment)

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

    def all_metrics(self, experiment: int) -> Iterator[Row]:
        """Yield every metric's row, without holding all of them."""
        if self._has_metrics():
            yield from self._streamed(METRICS, experiment)

    def _has_metrics(self) -> bool:
        """Say whether there is a table of metrics: an older store that cannot be written has none."""
        return sql.inspect(self._connection).has_table(METRICS.name)

    def _streamed(self, table: sql.Table, experiment: int) -> Iterator[Row]:
        query = sql.select(table).where(table.c.experiment == experiment)
        with self._connection.execute(query.execution_options(yield_per=2000)) as rows:  # a cursor on the server
            yield from rows.mappings()

    def _one(self, query: sql.Select[Any]) -> Row | None:
        return self._connection.execute(query).mappings().one_or_none()


class Writing(Reading):
    """Writes rows inside one transaction, as the one writer of the moment."""

    def __init__(self, connection: sql.Connection) -> None:
        super().__init__(connection)
        self.time = now()

    def locked(self, name: str) -> Row | None:
        """Look up an experiment's row, which nobody else can change until this transaction ends."""
        # SQLite, whose transaction began with the lock on all, leaves out FOR UPDATE
        row = self._one(sql.select(EXPERIMENTS).where(EXPERIMENTS.c.name == name).with_for_update())
        self.time = now()  # after the wait for other writers, so that the log's times are in order
        return row

    def try_writing(self) -> None:
        """Run statements that change no row, for which a server asks all the same whether this user may write."""
        for table in (EXPERIMENTS, EVENTS, TICKETS, REQUESTS, METRICS):
            nothing = sql.select(table).where(sql.false())
            self._connection.execute(table.insert().from_select([column.name for column in table.columns], nothing))
        self._connection.execute(EXPERIMENTS.update().where(sql.false()).values(head=""))
        self._connection.execute(TICKETS.update().where(sql.false()).values(status=""))

    def create(
        self, name: str, registration: str, digest: str, content: Mapping[str, Any], progress: str, moment: str
    ) -> None:
        """Add a new experiment with its first event; do nothing if this very step made it before."""
        first = following(FIRST_HASH, 1, "init", moment, content)
        values = {
            **{"name": name, "registration": registration, "digest": digest, "created": moment},
            **{"software": "", "events": 1, "head": first.hash, "progress": progress},
        }
        try:
            with self._connection.begin_nested():
                key = self._connection.execute(EXPERIMENTS.insert().values(values)).inserted_primary_key
        except IntegrityError:  # looked up only now: a commit whose answer was lost may have ended a moment ago
            before = self.find(name)
            if before is not None and (before["created"], before["digest"]) == (moment, digest):
                return
            raise ConflictError(f"experiment {name} exists already") from None
        assert key is not None
        self._connection.execute(EVENTS.insert().values(experiment=key[0], **first._asdict()))

    def append(self, experiment: int, head: str, count: int, kind: Kind, content: Mapping[str, Any]) -> Event:
        """Add the next event, which comes back; `save` must follow with its number and hash."""
        event = following(head, count + 1, kind, self.time, content)
        self._connection.execute(EVENTS.insert().values(experiment=experiment, **event._asdict()))
        return event

    def save(self, experiment: int, **values: Any) -> None:
        """Write what the events add up to into the experiment's row."""
        self._connection.execute(EXPERIMENTS.update().where(EXPERIMENTS.c.id == experiment).values(**values))

    def remember(self, experiment: int, request: str, event: int) -> None:
        """Add a request and the number of the event that answered it."""
        self._connection.execute(REQUESTS.insert().values(experiment=experiment, request=request, event=event))

    def issue(self, experiment: int, slots: Sequence[Slot]) -> None:
        """Add new tickets, which are open."""
        rows = [
            {**ticket._asdict(), "experiment": experiment, "arm": arm, "issued": self.time, "status": "open"}
            for ticket, arm in slots
        ]
        self._connection.execute(TICKETS.insert(), rows)

    def update(self, experiment: int, changes: Iterable[tuple[Ticket, str, float | None]]) -> None:
        """Write tickets' new status and reward."""
        where = (
            TICKETS.c.experiment == sql.bindparam("e"),
            TICKETS.c.batch == sql.bindparam("b"),
            TICKETS.c.position == sql.bindparam("p"),
            TICKETS.c.attempt == sql.bindparam("a"),
        )
        values: dict[str, Any] = {"status": sql.bindparam("s"), "reward": sql.bindparam("r")}
        rows = [
            {"e": experiment, "b": ticket.batch, "p": ticket.position, "a": ticket.attempt, "s": status, "r": reward}
            for ticket, status, reward in changes
        ]
        self._connection.execute(TICKETS.update().where(*where).values(values), rows)

    def add_metrics(self, experiment: int, told: Iterable[tuple[Ticket, Metrics]]) -> None:
        """Add the metrics that were told with the rewards of these tickets, if there are any."""
        rows = [
            {**ticket._asdict(), "experiment": experiment, "name": name, "value": value}
            for ticket, metrics in told
            for name, value in metrics.items()
        ]
        if rows:
            self._connection.execute(METRICS.insert(), rows)
