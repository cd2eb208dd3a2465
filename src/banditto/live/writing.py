"""What one transaction of an experiment's one writer of the moment can write to a store's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from banditto.core.errors import ConflictError
from banditto.live.event_log import FIRST_HASH, Event, Kind, following
from banditto.live.metrics import Metrics
from banditto.live.prepared import Prepared
from banditto.live.reading import Reading, now
from banditto.live.tables import EVENTS, EXPERIMENTS, METRICS, QUEUE, REQUESTS, TICKETS, TOKENS, UNIT_KEYS
from banditto.live.tickets import Slot, Ticket


class LockedRow(NamedTuple):
    """The columns of an experiment's row that a step needs."""

    id: int
    digest: str
    software: str
    events: int
    head: str
    progress: str


class Writing(Reading):
    """Writes rows inside one transaction, as the one writer of the moment."""

    def __init__(self, connection: sql.Connection) -> None:
        super().__init__(connection)
        self.time = ""  # of the step, which begins when its experiment is locked

    def locked(self, name: str) -> LockedRow | None:
        """Return an experiment's row, locked until this transaction ends; None if there is none."""
        # SQLite, whose transaction began with the lock on all, leaves out FOR UPDATE
        rows = _LOCKED.rows(self._connection, {"name": name})
        self.time = now()  # after the wait for other writers, so that the log's times are in order
        return LockedRow(*rows[0]) if rows else None

    def try_writing(self) -> None:
        """Run statements that change no row, for which a server asks all the same whether this user may write."""
        for table in (EXPERIMENTS, EVENTS, TICKETS, REQUESTS, METRICS, QUEUE, UNIT_KEYS):
            nothing = sql.select(table).where(sql.false())
            self._connection.execute(table.insert().from_select([column.name for column in table.columns], nothing))
        self._connection.execute(EXPERIMENTS.update().where(sql.false()).values(head=""))
        self._connection.execute(TICKETS.update().where(sql.false()).values(status=""))
        self._connection.execute(QUEUE.delete().where(sql.false()))

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
        """Append the next event and return it; `save` must follow with its number and hash."""
        event = following(head, count + 1, kind, self.time, content)
        _ADD_EVENT.run(self._connection, {"experiment": experiment, **event._asdict()})
        return event

    def save(self, experiment: int, events: int, head: str, progress: str, software: str) -> None:
        """Write the number of events, the head, the standing and the software versions into an experiment's row."""
        values = {"events": events, "head": head, "progress": progress, "software": software}
        _SAVE.run(self._connection, {"experiment": experiment, **values})

    def remember(self, experiment: int, request: str, event: int) -> None:
        """Add a request and the number of the event that answered it."""
        _ADD_REQUEST.run(self._connection, {"experiment": experiment, "request": request, "event": event})

    def keep_unit_key(self, experiment: int, key: str) -> None:
        """Store the key that ids of units are hashed with."""
        self._connection.execute(UNIT_KEYS.insert().values(experiment=experiment, key=key))

    def add_token(self, row: Mapping[str, str | None]) -> None:
        """Add a token of the service."""
        self._connection.execute(TOKENS.insert().values(row))

    def revoke_token(self, public: str, moment: str) -> bool:
        """Note when a token was revoked, once; whether there is such a token comes back."""
        mine = TOKENS.c.id == public
        self._connection.execute(TOKENS.update().where(mine, TOKENS.c.revoked.is_(None)).values(revoked=moment))
        return self.token(public) is not None

    def issue(self, experiment: int, slots: Sequence[Slot]) -> None:
        """Add the rows of new tickets, which are open."""
        time = self.time
        rows = [(experiment, *ticket, arm, time, "open") for ticket, arm in slots]
        _ADD_TICKET.run_many(self._connection, _NEW_TICKET, rows)

    def update(self, experiment: int, status: str, changes: Iterable[tuple[Ticket, float | None]]) -> None:
        """Set these tickets' rewards, and the same new status for all of them."""
        rows = [(status, reward, experiment, *ticket) for ticket, reward in changes]
        _SET_TICKET.run_many(self._connection, ("s", "r", "e", "b", "p", "a"), rows)

    def add_metrics(self, experiment: int, told: Iterable[tuple[Ticket, Metrics]]) -> None:
        """Add the metrics that were told with the rewards of these tickets, if there are any."""
        rows = [
            {**ticket._asdict(), "experiment": experiment, "name": name, "value": value}
            for ticket, metrics in told
            for name, value in metrics.items()
        ]
        if rows:
            self._connection.execute(METRICS.insert(), rows)


# -- what every step runs ----------------------------------------------------------------------------------------------

_MINE = EXPERIMENTS.c.name == sql.bindparam("name")
_LOCKED = Prepared(sql.select(*(EXPERIMENTS.c[name] for name in LockedRow._fields)).where(_MINE).with_for_update())
_ADD_EVENT = Prepared(EVENTS.insert())
_ADD_REQUEST = Prepared(REQUESTS.insert())
_NEW_TICKET = ("experiment", "batch", "position", "attempt", "arm", "issued", "status")
_ADD_TICKET = Prepared(TICKETS.insert(), _NEW_TICKET)
_SET_TICKET = Prepared(
    TICKETS.update()
    .where(
        TICKETS.c.experiment == sql.bindparam("e"),
        TICKETS.c.batch == sql.bindparam("b"),
        TICKETS.c.position == sql.bindparam("p"),
        TICKETS.c.attempt == sql.bindparam("a"),
    )
    .values({"status": sql.bindparam("s"), "reward": sql.bindparam("r")}),
    (),
)
_SAVE = Prepared(
    EXPERIMENTS.update()
    .where(EXPERIMENTS.c.id == sql.bindparam("experiment"))
    .values({name: sql.bindparam(name) for name in ("events", "head", "progress", "software")}),
    (),
)
