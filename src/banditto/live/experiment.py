"""Experiment: ask for arms, tell rewards, and let the policy decide when a batch is complete.

Every step is one transaction: it is done whole or not at all, and doing it again changes nothing. The last reward of a
batch and the decision that follows are one step, so that a decision is taken once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

from banditto.core.errors import ConflictError, InvalidArgument, NoStore, StoreError
from banditto.core.exact import integer
from banditto.core.protocol import Protocol
from banditto.core.tabular import items_in
from banditto.engine.observations import Observations
from banditto.live.answers import Answer, Changed, ExperimentStatus, Pending, PendingTickets, Told
from banditto.live.ask_tell import MOST_LOST, Totals, Transaction
from banditto.live.checked_words import (
    LONGEST_TEXT,
    LONGEST_UNIT,
    checked_age,
    checked_name,
    checked_request,
    checked_text,
    moment_before,
)
from banditto.live.event_log import Row
from banditto.live.follower import Follower
from banditto.live.metrics import Metrics
from banditto.live.observing import Squares, observations_of, observe, squares_of
from banditto.live.opening import wanted_registration
from banditto.live.reading import Reading, now
from banditto.live.registration import Registration, registered
from banditto.live.status import status_of
from banditto.live.step_reports import OnStep, Step, StepNotes, watched
from banditto.live.store import Store
from banditto.live.store_settings import StoreSettings
from banditto.live.tickets import Ticket
from banditto.live.told_rewards import Tellings, checked_tellings

T = TypeVar("T")
C = TypeVar("C", bound=str)  # what became of a ticket
MOST_TICKETS = 10_000


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

    def __init__(self, store: Store, name: str, registration: Registration, on_step: OnStep | None = None) -> None:
        self.name, self.registration = name, registration
        self._store, self._on_step = store, on_step
        self._follower = Follower(name, registration)
        self._squares: tuple[str, Squares] = "", {}  # of the batches up to a decision, which is known by its hash

    # -- opening -------------------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        registration: Registration,
        *,
        settings: StoreSettings | None = None,
        on_step: OnStep | None = None,
    ) -> Experiment:
        """Register a new experiment, which comes back open; its protocol cannot be changed afterwards.

        Args:
            url: the store, sqlite:///FILE or postgresql://USER@HOST/DATABASE; tables are made where there are none.
            name: 1 to 100 letters, digits, hyphens, dots and underscores; new in this store.
            registration: the protocol, the names of the arms, and what rewards may be.
            settings: how long a step may wait for the store, and connections to keep; None takes the usual ones.
            on_step: called with a `StepReport` after every step, in the thread that took it.

        Raises:
            ConflictError: the name is taken.
            StoreError: the store cannot be reached, or is of another kind.
        """
        name = checked_name(name)
        store = Store(url, settings)
        made = cls(store, name, registration, on_step)
        text, digest = registration.to_json(), registration.digest
        content = {"registration": json.loads(text), "digest": digest, "name": name}
        standing, moment = made._follower.start().to_json(), now()
        try:
            store.write(lambda rows: rows.create(name, text, digest, content, standing, moment))
        except BaseException:
            store.close()
            raise
        return made

    @classmethod
    def open(
        cls,
        url: str,
        name: str,
        protocol: Protocol | Registration | None = None,
        *,
        settings: StoreSettings | None = None,
        on_step: OnStep | None = None,
    ) -> Experiment:
        """Open an experiment; with a protocol, make it if it is not there, and refuse it if it has another one.

        Args:
            url: the store, sqlite:///FILE or postgresql://USER@HOST/DATABASE.
            name: the experiment.
            protocol: what the experiment must have been registered with; None takes whatever is there.
            settings: how long a step may wait for the store, and connections to keep; None takes the usual ones.
            on_step: called with a `StepReport` after every step, in the thread that took it.

        Raises:
            ConflictError: the experiment has another protocol, or this version cannot go on with it.
            NoStore: there is no store at the URL, and no protocol to begin with.
            StoreError: the store cannot be reached, or is of another kind.
        """
        name = checked_name(name)
        wanted = registered(protocol) if isinstance(protocol, Protocol) else protocol
        store = Store(url, settings)
        try:
            try:
                row, others = store.read(lambda view: (view.find(name), view.names()))
            except NoStore:
                if wanted is None:
                    raise
                row, others = None, []
            if row is not None:
                return cls(store, name, wanted_registration(row["registration"], name, protocol), on_step)
        except BaseException:
            store.close()
            raise
        store.close()
        if wanted is None:
            raise InvalidArgument("name", name, f"an experiment of this store: {', '.join(others[:10]) or 'none yet'}")
        try:
            return cls.create(url, name, wanted, settings=settings, on_step=on_step)
        except StoreError:
            raise
        except ConflictError:  # another process made it a moment ago
            return cls.open(url, name, protocol, settings=settings, on_step=on_step)

    def close(self) -> None:
        """Give the connection back to the store; the experiment goes on there, and can be opened again."""
        self._store.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def ask(self, n: int = 1, request_id: str | None = None, *, unit: str | None = None) -> Answer:
        """Hand out tickets of this batch, each with an arm; an answer without tickets says why there is none.

        Args:
            n: at most so many tickets; fewer come where the batch has fewer left.
            request_id: a name for this call; the same id gets the same tickets, however often it is sent.
            unit: who or what gets the arm, such as a user's id: one unit has one ticket, the same whenever it comes
                back. Only a keyed hash of it is kept. A unit that comes when there is no ticket gets the registration's
                `fallback`, which is outside the experiment.

        Raises:
            ConflictError: the same request id asked for another number of tickets before.
        """
        n = integer(n, "n", 1, MOST_TICKETS)
        if unit is None:
            request = uuid.uuid4().hex if request_id is None else checked_request(request_id)
            return self._ask(lambda transaction: transaction.ask(n, request))
        if n != 1 or request_id is not None:
            raise InvalidArgument("unit", unit, "one ticket and no request id: a unit is its own request")
        who = checked_text(unit, "unit", LONGEST_UNIT)
        return self._ask(lambda transaction: transaction.ask_for(who))

    def tell(self, ticket: str, reward: float, metrics: Metrics | None = None, *, arm: str | int | None = None) -> Told:
        """Record a ticket's reward; "recorded", "repeated" or "excluded" (its slot was handed out again) comes back.

        Args:
            ticket: the id of the ticket.
            reward: a number in the declared range. The same value again changes nothing, another one is a conflict.
            metrics: more numbers to keep, by their names, such as {"revenue": 12.5}. They never decide. The same again,
                or none, changes nothing; others are a conflict.
            arm: the arm that you believe the ticket has, by its name or its number; another one is a conflict.

        Raises:
            InvalidArgument: there is no such ticket, the reward is outside the range, or a metric is no finite number.
            ConflictError: the ticket has another reward already, other metrics, or another arm.
        """
        return self.tell_many([(ticket, reward, metrics, arm)])[0]

    def tell_many(self, rewards: Tellings) -> list[Told]:
        """Record several rewards, all of them or none; what became of each comes back.

        Args:
            rewards: a ticket's id and its reward, as a pair; a third may be metrics and a fourth the arm, as `tell`
                takes them. Or a dictionary {id: reward}, or a frame with the columns `ticket` and `reward`.

        Raises:
            InvalidArgument: there is no such ticket, or a reward or a metric is not allowed; nothing is recorded.
            ConflictError: a ticket has another reward already, or other metrics; nothing is recorded.
        """
        tellings = checked_tellings(rewards, self.registration)
        return self._change("tell", lambda transaction: transaction.tell(tellings)) if tellings else []

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
        return self._change("totals", lambda transaction: [transaction.tell_totals(batch, totals)])[0]

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
        return self._change("correct", lambda transaction: [transaction.correct(ticket, value, why)])[0]

    def missing(self, ticket: str, reason: str, *, by: str = "") -> Changed:
        """Say that a reward will not come; "recorded" or "repeated" comes back.

        The ticket's slot is handed out again, so that the plan is kept exactly.

        Args:
            ticket: the id of the ticket.
            reason: why, in words that stand in the log.
            by: who says so, which stands in the log, too.
        """
        return self.missing_many([ticket], reason, by=by)[0]

    def missing_many(self, tickets: Iterable[str], reason: str, *, by: str = "") -> list[Changed]:
        """Say that several rewards will not come, all of them or none; what became of each comes back.

        Args:
            tickets: their ids, 10,000 at the most.
            reason: why, in words that stand in the log.
            by: who says so, which stands in the log, too.

        Raises:
            InvalidArgument: there is no such ticket; nothing is recorded.
            ConflictError: a ticket has a reward; nothing is recorded.
        """
        listed = items_in(tickets, "tickets", "a list of ids")
        why = checked_text(reason, "reason", LONGEST_TEXT)
        who = checked_text(by, "by", LONGEST_UNIT) if by else ""
        if len(listed) > MOST_LOST:
            raise InvalidArgument("tickets", f"{len(listed):,} of them", f"at most {MOST_LOST:,} at once")
        return self._change("missing", lambda transaction: transaction.missing(listed, why, who)) if listed else []

    def missing_older(self, older_than: float | timedelta, reason: str, *, by: str = "") -> int:
        """Say of all tickets that have waited so long that their rewards will not come; how many comes back.

        Args:
            older_than: seconds, or a `timedelta`.
            reason: why, in words that stand in the log.
            by: who says so, which stands in the log, too.
        """
        seconds, why = checked_age(older_than), checked_text(reason, "reason", LONGEST_TEXT)
        who = checked_text(by, "by", LONGEST_UNIT) if by else ""
        given_up = 0
        while True:
            with watched(self.name, "missing", self._on_step) as noted:
                found = self._write(lambda transaction: transaction.give_up_older(seconds, why, who), noted)
                noted.tickets, noted.outcome = found, "done" if found else "nothing"
            given_up += found
            if found < MOST_LOST:
                return given_up

    def stop(self, reason: str) -> Changed:
        """End the experiment before its horizon; "recorded" or "repeated" comes back.

        Rewards of tickets that are out are still recorded.

        Args:
            reason: why, in words that stand in the log.
        """
        why = checked_text(reason, "reason", LONGEST_TEXT)
        return self._change("stop", lambda transaction: [transaction.stop(why)])[0]

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
        row, standing = self._follower.found(view)
        decisions, known = view.decisions(row["id"]), self._squares  # looked at once: threads may share this object
        contents = [event.content for event in decisions]
        if decisions and known[0] != decisions[-1].hash:  # rewards of decided batches never change
            known = self._squares = decisions[-1].hash, squares_of(view, self.registration, row, contents)
        seen = observations_of(self.registration, contents, standing, known[1], None)
        return status_of(self.registration, row, standing, seen)

    def observations(self) -> Observations:
        """Look up what was seen so far, batch by batch, as `analyse` wants it."""
        return self._store.read(lambda view: observe(view, self.registration, *self._follower.found(view)))

    def pending(self, older_than: float | timedelta | None = None, most: int = 1000) -> PendingTickets:
        """List tickets without a reward, the oldest first; `total` of what comes back says how many there are.

        Args:
            older_than: seconds that a ticket must have waited; None lists all.
            most: at most so many tickets.
        """
        before = None if older_than is None else moment_before(older_than)
        limit = integer(most, "most", 1, 10**6)

        def look(view: Reading) -> tuple[list[Row], int]:
            row, standing = self._follower.found(view)
            found = view.open_tickets(row["id"], before, limit)
            if len(found) < limit:
                return found, len(found)
            return found, standing.tickets.open if before is None else view.count_open(row["id"], before)

        found, total = self._store.read(look)
        names = self.registration.arm_names
        tickets = [Ticket(line["batch"], line["position"], line["attempt"]) for line in found]
        lines = [
            Pending(self._follower.ids.write(ticket), line["arm"], names[line["arm"]], ticket.batch, line["issued"])
            for ticket, line in zip(tickets, found, strict=True)
        ]
        return PendingTickets(lines, total)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _ask(self, act: Callable[[Transaction], Answer]) -> Answer:
        """Take a step that hands out tickets, and return its answer."""
        with watched(self.name, "ask", self._on_step) as noted:
            answer = self._write(act, noted)
            noted.tickets = len(answer)
            noted.outcome = "repeated" if answer.repeated else "done" if len(answer) else "nothing"
        return answer

    def _change(self, step: Step, act: Callable[[Transaction], list[C]]) -> list[C]:
        """Take a step that changes tickets; return what became of each."""
        with watched(self.name, step, self._on_step) as noted:
            answers = self._write(act, noted)
            noted.tickets = sum(answer != "repeated" for answer in answers)
            noted.outcome = "done" if noted.tickets else "repeated"
        return answers

    def _write(self, act: Callable[[Transaction], T], noted: StepNotes | None = None) -> T:
        """Take a step in a transaction of its own, and return its answer."""
        noted = StepNotes() if noted is None else noted
        answer, noted.open_tickets, mark = self._store.write(lambda rows: self._follower.step(rows, act), noted)
        self._follower.keep(mark)
        return answer
