"""Experiment: ask for arms, tell rewards, and let the policy decide when a batch is complete.

Every step is one transaction: it is done whole or not at all, and doing it again changes nothing. The last reward of a
batch and the decision that follows are one step, so that a decision is taken once.
"""

from __future__ import annotations

import json
import platform
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import NamedTuple, TypeVar

import numpy as np

from banditto.core.errors import BandittoError, ConflictError, InvalidArgument, NoStore, StoreError
from banditto.core.exact import integer
from banditto.core.protocol import Protocol
from banditto.engine.observations import Observations
from banditto.live.answers import Answer, Changed, ExperimentStatus, Pending, Told
from banditto.live.ask_tell import Telling, Totals, Transaction, checked_telling
from banditto.live.checked_words import LONGEST_TEXT, checked_name, checked_text, moment_before
from banditto.live.event_log import Row
from banditto.live.fold import Course, Stage, Standing, Ticket
from banditto.live.metrics import Metrics
from banditto.live.observing import Squares, looked_up_squares, observations_of, observe
from banditto.live.registration import Registration, registered
from banditto.live.sql import Reading, Writing, now
from banditto.live.status import status_of
from banditto.live.store import Store
from banditto.version import __version__

T = TypeVar("T")
MOST_TICKETS = 10_000
SOFTWARE = {"banditto": __version__, "numpy": np.__version__, "python": platform.python_version()}


class Bookmark(NamedTuple):
    """Where this process has read to: hashes, since a store that was restored may come to the same numbers again."""

    head: str
    decision: str  # the hash of the last one; empty before the first
    stage: Stage  # the one after that decision


class Experiment(AbstractContextManager["Experiment"]):
    """Runs a policy live: `ask` hands out arms, `tell` takes rewards. Any number of processes may open the same one.

    Make one with `create`, or find it again with `open`; use it in a `with` statement, or `close` it. Every step is one
    transaction: it is done whole or not at all, and doing it again changes nothing.

    Attributes:
        name: the experiment's name in its store.
        registration: the protocol, the names of the arms, and what rewards may be.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from banditto import ExploreThenCommit
        >>> protocol = ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
        >>> with TemporaryDirectory() as folder:
        ...     with Experiment.open(f"sqlite:///{folder}/trial.db", "cta", protocol) as trial:
        ...         answer = trial.ask(12)  # the whole first batch: six pulls of each arm
        ...         told = trial.tell_many((ticket.id, 1.0 if ticket.arm == 1 else 0.0) for ticket in answer)
        ...         status = trial.status()
        >>> set(told), status.batch, status.spent, status.plan
        ({'recorded'}, 2, 12, {'1': 9988})
    """

    def __init__(self, store: Store, name: str, registration: Registration) -> None:
        self.name, self.registration = name, registration
        self._store = store
        self._course = Course(registration)
        self._bookmark = Bookmark("", "", self._course.start())
        self._squares: tuple[str, Squares] = "", {}  # of the batches up to a decision, which is known by its hash

    # -- opening -------------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, url: str, name: str, registration: Registration) -> Experiment:
        """Register a new experiment, which comes back open; its protocol cannot be changed afterwards.

        Args:
            url: the store, sqlite:///FILE or postgresql://USER@HOST/DATABASE; tables are made where there are none.
            name: 1 to 100 letters, digits, hyphens, dots and underscores; new in this store.
            registration: the protocol, the names of the arms, and what rewards may be.

        Raises:
            ConflictError: the name is taken.
            StoreError: the store cannot be reached, or is of another kind.
        """
        name = checked_name(name)
        store = Store(url)
        made = cls(store, name, registration)
        text, digest = registration.to_json(), registration.digest
        content = {"registration": json.loads(text), "digest": digest, "name": name}
        standing, moment = Standing.start(made._bookmark.stage).to_json(), now()
        try:
            store.write(lambda rows: rows.create(name, text, digest, content, standing, moment))
        except BaseException:
            store.close()
            raise
        return made

    @classmethod
    def open(cls, url: str, name: str, protocol: Protocol | Registration | None = None) -> Experiment:
        """Open an experiment; with a protocol, make it if it is not there, and refuse it if it has another one.

        Args:
            url: the store, sqlite:///FILE or postgresql://USER@HOST/DATABASE.
            name: the experiment.
            protocol: what the experiment must have been registered with; None takes whatever is there.

        Raises:
            ConflictError: the experiment has another protocol, or this version cannot go on with it.
            NoStore: there is no store at the URL, and no protocol to begin with.
            StoreError: the store cannot be reached, or is of another kind.
        """
        name = checked_name(name)
        wanted = registered(protocol) if isinstance(protocol, Protocol) else protocol
        store = Store(url)
        try:
            try:
                row, others = store.read(lambda view: (view.find(name), view.names()))
            except NoStore:
                if wanted is None:
                    raise
                row, others = None, []
            if row is not None:
                found = _registered(row["registration"], name)
                # a protocol alone says nothing about names and rewards
                same = found.protocol == protocol if isinstance(protocol, Protocol) else wanted in (None, found)
                if not same:
                    other = f"experiment {name} has another protocol (digest {found.digest[:12]})"
                    raise ConflictError(f"{other}; a registered protocol cannot change")
                return cls(store, name, _runnable(found))
        except BaseException:
            store.close()
            raise
        store.close()
        if wanted is None:
            raise InvalidArgument("name", name, f"an experiment of this store: {', '.join(others[:10]) or 'none yet'}")
        try:
            return cls.create(url, name, wanted)
        except StoreError:
            raise
        except ConflictError:  # another process made it a moment ago
            return cls.open(url, name, protocol)

    def close(self) -> None:
        """Give the connection back to the store; the experiment goes on there, and can be opened again."""
        self._store.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def ask(self, n: int = 1, request_id: str | None = None) -> Answer:
        """Hand out tickets of this batch, each with an arm; an answer without tickets says why there is none.

        Args:
            n: at most so many tickets; fewer come where the batch has fewer left.
            request_id: a name for this call; the same id gets the same tickets, however often it is sent.
        """
        n = integer(n, "n", 1, MOST_TICKETS)
        request = uuid.uuid4().hex if request_id is None else checked_text(request_id, "request_id", 200)
        return self._write(lambda transaction: transaction.ask(n, request))

    def tell(self, ticket: str, reward: float, metrics: Metrics | None = None) -> Told:
        """Record a ticket's reward; "recorded", "repeated" or "excluded" (its slot was handed out again) comes back.

        Args:
            ticket: the id of the ticket.
            reward: a number in the declared range. The same value again changes nothing, another one is a conflict.
            metrics: more numbers to keep, by their names, such as {"revenue": 12.5}. They never decide. The same again,
                or none, changes nothing; others are a conflict.

        Raises:
            InvalidArgument: there is no such ticket, the reward is outside the range, or a metric is no finite number.
            ConflictError: the ticket has another reward already, or other metrics.
        """
        return self.tell_many([(ticket, reward, metrics)])[0]

    def tell_many(self, rewards: Iterable[Telling]) -> list[Told]:
        """Record several rewards, all of them or none; what became of each comes back.

        Args:
            rewards: a ticket's id and its reward, as a pair; or three of them, with metrics as `tell` takes them.

        Raises:
            InvalidArgument: there is no such ticket, or a reward or a metric is not allowed; nothing is recorded.
            ConflictError: a ticket has another reward already, or other metrics; nothing is recorded.
        """
        tellings = [checked_telling(telling, self.registration.rewards) for telling in rewards]
        return self._write(lambda transaction: transaction.tell(tellings)) if tellings else []

    def tell_totals(self, batch: int, totals: Totals) -> Told:
        """Record a whole batch at once, for teams that add up elsewhere; "recorded" or "repeated" comes back.

        Args:
            batch: the number of the batch, from 1.
            totals: (count, total) for each arm that was planned, by its name or number.

        Raises:
            InvalidArgument: another batch is being played, or these are not the counts that were planned.
            ConflictError: the batch has tickets, or was decided with other totals; or the experiment is over.
        """
        batch = integer(batch, "batch", 1, 10**6)
        return self._write(lambda transaction: transaction.tell_totals(batch, totals))

    def correct(self, ticket: str, reward: float, reason: str) -> Changed:
        """Replace a reward that was wrong, until its batch is decided; "recorded" or "repeated" comes back.

        Args:
            ticket: the id of the ticket.
            reward: the right reward; who reads the log sees both.
            reason: why, in words that stand in the log.

        Raises:
            ConflictError: the batch is decided, or the ticket has no reward that counts.
        """
        value = self.registration.rewards.checked(reward)
        why = checked_text(reason, "reason", LONGEST_TEXT)
        return self._write(lambda transaction: transaction.correct(ticket, value, why))

    def missing(self, ticket: str, reason: str) -> Changed:
        """Say that a reward will not come; "recorded" or "repeated" comes back.

        The ticket's slot is handed out again, so that the plan is kept exactly.

        Args:
            ticket: the id of the ticket.
            reason: why, in words that stand in the log.
        """
        why = checked_text(reason, "reason", LONGEST_TEXT)
        return self._write(lambda transaction: transaction.missing(ticket, why))

    def stop(self, reason: str) -> Changed:
        """End the experiment before its horizon; "recorded" or "repeated" comes back.

        Rewards of tickets that are out are still recorded.

        Args:
            reason: why, in words that stand in the log.
        """
        why = checked_text(reason, "reason", LONGEST_TEXT)
        return self._write(lambda transaction: transaction.stop(why))

    # -- looking -------------------------------------------------------------------------------------------------------

    def status(self) -> ExperimentStatus:
        """Look up where the experiment stands: its batch, what was handed out and told, the digest and the head.

        Once the policy has named an arm, or committed to one, that is the `winner`, `decided_by` its "lead" or the
        shared "coin"; a policy at the level of winners ends the experiment with it. From the first decision on,
        `headline` says in a line who won or leads, and `estimates` has every arm's mean with an interval, as `analyse`
        has them. `warnings` name arms whose rewards contradict the `rate_at_most` of the protocol.
        """
        return self._store.read(self._look)

    def _look(self, view: Reading) -> ExperimentStatus:
        row, standing = self._found(view)
        decisions, known = view.decisions(row["id"]), self._squares  # looked at once: threads may share this object
        if decisions and known[0] != decisions[-1].hash:  # rewards of decided batches never change
            known = self._squares = decisions[-1].hash, looked_up_squares(view, self.registration, row)
        contents = [event.content for event in decisions]
        seen = observations_of(self.registration, contents, standing, known[1], None)
        return status_of(self.registration, row, standing, view.count_tickets(row["id"]), seen)

    def observations(self) -> Observations:
        """Look up what was seen so far, batch by batch, as `analyse` wants it."""
        return self._store.read(lambda view: observe(view, self.registration, *self._found(view)))

    def _found(self, view: Reading) -> tuple[Row, Standing]:
        """Look up the experiment's row, and where it stands."""
        row = view.find(self.name)
        if row is None:
            raise ConflictError(f"experiment {self.name} is gone")
        standing, self._bookmark = self._standing(view, row)
        return row, standing

    def pending(self, older_than: float | timedelta | None = None, most: int = 1000) -> list[Pending]:
        """List tickets without a reward, the oldest first.

        Args:
            older_than: seconds that a ticket must have waited; None lists all.
            most: at most so many tickets.
        """
        before = None if older_than is None else moment_before(older_than)
        limit = integer(most, "most", 1, 10**6)

        def look(view: Reading) -> list[Row]:
            row = view.find(self.name)
            return [] if row is None else view.open_tickets(row["id"], before, limit)

        found = self._store.read(look)
        names = self.registration.arm_names
        tickets = [Ticket(line["batch"], line["position"], line["attempt"]) for line in found]
        return [
            Pending(ticket.id, line["arm"], names[line["arm"]], ticket.batch, line["issued"])
            for ticket, line in zip(tickets, found, strict=True)
        ]

    # -- inside --------------------------------------------------------------------------------------------------------

    def _write(self, act: Callable[[Transaction], T]) -> T:
        """Take a step in a transaction of its own; its answer comes back."""
        answer, self._bookmark = self._store.write(lambda rows: self._stepped(rows, act))
        return answer

    def _stepped(self, rows: Writing, act: Callable[[Transaction], T]) -> tuple[T, Bookmark]:
        """Lock the experiment and take a step; its answer comes back, and where the log has come to."""
        row = rows.locked(self.name)
        if row is None or row["digest"] != self.registration.digest:
            raise ConflictError(f"experiment {self.name} is gone, or another one has its name")
        standing, before = self._standing(rows, row)
        transaction = Transaction(rows, row, standing, self._course)
        software = json.dumps(SOFTWARE)
        if row["software"] != software:
            transaction.written_by(software, SOFTWARE)
        answer = act(transaction)
        head, stage = transaction.head, transaction.standing.stage
        return answer, Bookmark(head, before.decision if stage is before.stage else head, stage)

    def _standing(self, view: Reading, row: Row) -> tuple[Standing, Bookmark]:
        """Find where the experiment stands; decisions are taken again only if others have written them."""
        known = self._bookmark  # looked at once: threads may share this object
        if row["head"] != known.head:
            last, stage = view.last_decision(row["id"]), known.stage
            if last != known.decision:
                stage = self._course.start()
                for event in view.decisions(row["id"]):  # of other processes, or of an earlier life of this one
                    stage = self._course.after(stage, [float.fromhex(total) for total in event.content["totals"]])
            known = Bookmark(row["head"], last, stage)
        return Standing.from_json(row["progress"], known.stage), known


def _registered(text: str, name: str) -> Registration:
    """Read the registration that the store keeps."""
    try:
        return Registration.from_json(text)
    except (BandittoError, ValueError, TypeError, KeyError) as error:
        raise ConflictError(f"the protocol of experiment {name} cannot be read: {error}") from None


def _runnable(registration: Registration) -> Registration:
    """Refuse a registration whose decisions this version of the software does not take as they were taken before."""
    try:
        registration.policy()
    except InvalidArgument as error:
        raise ConflictError(f"this experiment cannot go on with banditto {__version__}: {error}") from None
    return registration
