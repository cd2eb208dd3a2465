"""What one transaction can look up and write: every statement of SQL is here.

Events are the truth. Beside them stand, written in the same transaction, what they add up to: the number of events and
the last hash, the progress, and the tickets, so that no step reads more than a few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from banditto.core.errors import ConflictError, InvalidArgument
from banditto.engine.blocks import Progress
from banditto.live.events import FIRST_HASH, Event, Kind, following
from banditto.live.progress import Ticket
from banditto.live.tables import DECISIONS, EVENTS, EXPERIMENTS, OPEN, REQUESTS, TICKETS

Row = Mapping[Any, Any]  # a line of a table, by the names of its columns
_CHUNK = 400  # rows of one statement: SQLite has a limit on what a statement may name


def unknown(name: str, view: Reading) -> InvalidArgument:
    """There is no experiment of this name."""
    return InvalidArgument("name", name, f"an experiment of this store: {', '.join(view.names()[:10]) or 'none yet'}")


def now() -> str:
    """UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Reading:
    """What can be looked up."""

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection

    def names(self) -> list[str]:
        """All experiments."""
        return list(self._connection.execute(sql.select(EXPERIMENTS.c.name).order_by(EXPERIMENTS.c.id)).scalars())

    def find(self, name: str) -> Row | None:
        """An experiment's row."""
        return self._one(sql.select(EXPERIMENTS).where(EXPERIMENTS.c.name == name))

    def events(self, experiment: int, progress: Progress | None = None, of: int = 0) -> Iterator[Event]:
        """The log in order, without holding all of it; `of` is how many there should be."""
        after = 0
        columns = (EVENTS.c.number, EVENTS.c.kind, EVENTS.c.time, EVENTS.c.body, EVENTS.c.hash)
        while True:
            query = sql.select(*columns).where(EVENTS.c.experiment == experiment, EVENTS.c.number > after)
            rows = self._connection.execute(query.order_by(EVENTS.c.number).limit(2000)).all()
            yield from (Event(*row) for row in rows)
            if not rows:
                return
            after = rows[-1].number
            if progress is not None:
                progress(min(after, of), of)

    def event(self, experiment: int, number: int) -> Event:
        """One event."""
        columns = (EVENTS.c.number, EVENTS.c.kind, EVENTS.c.time, EVENTS.c.body, EVENTS.c.hash)
        query = sql.select(*columns).where(EVENTS.c.experiment == experiment, EVENTS.c.number == number)
        return Event(*self._connection.execute(query).one())

    def decisions(self, experiment: int) -> list[Event]:
        """The decisions so far: few."""
        columns = (EVENTS.c.number, EVENTS.c.kind, EVENTS.c.time, EVENTS.c.body, EVENTS.c.hash)
        query = sql.select(*columns).where(EVENTS.c.experiment == experiment, DECISIONS)
        return [Event(*row) for row in self._connection.execute(query.order_by(EVENTS.c.number))]

    def last_decision(self, experiment: int) -> str:
        """The hash of the last decision; empty before the first."""
        query = sql.select(EVENTS.c.hash).where(EVENTS.c.experiment == experiment, DECISIONS)
        found: str | None = self._connection.execute(query.order_by(EVENTS.c.number.desc()).limit(1)).scalar()
        return found or ""

    def request(self, experiment: int, request: str) -> int | None:
        """The event that answered a request."""
        query = sql.select(REQUESTS.c.event).where(REQUESTS.c.experiment == experiment, REQUESTS.c.request == request)
        found: int | None = self._connection.execute(query).scalar()
        return found

    def tickets(self, experiment: int, wanted: Sequence[Ticket]) -> dict[Ticket, Row]:
        """The rows of these tickets that exist."""
        found: dict[Ticket, Row] = {}
        for batch in {ticket.batch for ticket in wanted}:
            positions = sorted({ticket.position for ticket in wanted if ticket.batch == batch})
            for first in range(0, len(positions), _CHUNK):
                query = sql.select(TICKETS).where(
                    TICKETS.c.experiment == experiment,
                    TICKETS.c.batch == batch,
                    TICKETS.c.position.in_(positions[first : first + _CHUNK]),
                )
                for row in self._connection.execute(query).mappings():
                    found[Ticket(row["batch"], row["position"], row["attempt"])] = row
        return found

    def open_tickets(self, experiment: int, before: str | None, most: int) -> list[Row]:
        """Tickets without a reward, the oldest first."""
        query = sql.select(TICKETS).where(TICKETS.c.experiment == experiment, OPEN)
        if before is not None:
            query = query.where(TICKETS.c.issued < before)
        query = query.order_by(TICKETS.c.issued, TICKETS.c.batch, TICKETS.c.position).limit(most)
        return list(self._connection.execute(query).mappings())

    def count_tickets(self, experiment: int) -> dict[str, int]:
        """How many tickets are open, told, missing and late."""
        query = sql.select(TICKETS.c.status, sql.func.count()).where(TICKETS.c.experiment == experiment)
        return {row[0]: row[1] for row in self._connection.execute(query.group_by(TICKETS.c.status))}

    def all_requests(self, experiment: int) -> dict[str, int]:
        """Every request and the event that answered it."""
        query = sql.select(REQUESTS.c.request, REQUESTS.c.event).where(REQUESTS.c.experiment == experiment)
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def all_tickets(self, experiment: int) -> Iterator[Row]:
        """Every ticket."""
        query = sql.select(TICKETS).where(TICKETS.c.experiment == experiment)
        with self._connection.execute(query.execution_options(yield_per=2000)) as rows:  # a cursor on the server
            yield from rows.mappings()

    def _one(self, query: sql.Select[Any]) -> Row | None:
        return self._connection.execute(query).mappings().one_or_none()


class Writing(Reading):
    """What can be written, by the one writer of the moment."""

    def __init__(self, connection: sql.Connection, sqlite: bool) -> None:
        super().__init__(connection)
        self._sqlite = sqlite
        self.time = now()

    def locked(self, name: str) -> Row | None:
        """An experiment's row, which nobody else can change until this transaction ends."""
        query = sql.select(EXPERIMENTS).where(EXPERIMENTS.c.name == name)
        row = self._one(query if self._sqlite else query.with_for_update())
        self.time = now()  # after the wait for other writers, so that the log's times are in order
        return row

    def try_writing(self) -> None:
        """Statements that change no row, for which a server asks all the same whether this user may write."""
        for table in (EXPERIMENTS, EVENTS, TICKETS, REQUESTS):
            nothing = sql.select(table).where(sql.false())
            self._connection.execute(table.insert().from_select([column.name for column in table.columns], nothing))
        self._connection.execute(EXPERIMENTS.update().where(sql.false()).values(head=""))
        self._connection.execute(TICKETS.update().where(sql.false()).values(status=""))

    def create(
        self, name: str, registration: str, digest: str, content: Mapping[str, Any], progress: str, moment: str
    ) -> None:
        """A new experiment with its first event; nothing if this very step made it before."""
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
        """The next event; `save` must follow with its number and hash."""
        event = following(head, count + 1, kind, self.time, content)
        self._connection.execute(EVENTS.insert().values(experiment=experiment, **event._asdict()))
        return event

    def save(self, experiment: int, **values: Any) -> None:
        """What the events add up to."""
        self._connection.execute(EXPERIMENTS.update().where(EXPERIMENTS.c.id == experiment).values(**values))

    def remember(self, experiment: int, request: str, event: int) -> None:
        """A request and the event that answered it."""
        self._connection.execute(REQUESTS.insert().values(experiment=experiment, request=request, event=event))

    def issue(self, experiment: int, slots: Sequence[tuple[Ticket, int]]) -> None:
        """New tickets."""
        rows = [
            {**ticket._asdict(), "experiment": experiment, "arm": arm, "issued": self.time, "status": "open"}
            for ticket, arm in slots
        ]
        self._connection.execute(TICKETS.insert(), rows)

    def update(self, experiment: int, changes: Iterable[tuple[Ticket, str, float | None]]) -> None:
        """Tickets' new status and reward."""
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
