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

from banditto.core.errors import BandittoError, ConflictError, InvalidArgument
from banditto.core.exact import integer
from banditto.core.protocol import Protocol
from banditto.live.answers import Answer, ExperimentStatus, Pending, Told
from banditto.live.checks import LONGEST_TEXT, checked_name, checked_text, moment_before, plain
from banditto.live.connecting import StoreError
from banditto.live.course import Course, Stage
from banditto.live.progress import Progress, Ticket
from banditto.live.registration import Registration, registered
from banditto.live.rows import Reading, Row, Writing, now
from banditto.live.steps import Step
from banditto.live.store import NoStore, Store
from banditto.live.totals import Totals
from banditto.version import __version__

T = TypeVar("T")
MOST_TICKETS = 10_000
SOFTWARE = {"banditto": __version__, "numpy": np.__version__, "python": platform.python_version()}


class Seen(NamedTuple):
    """What this process has met last: hashes, since a store that was restored may come to the same numbers again."""

    head: str
    decision: str  # the hash of the last one; empty before the first
    stage: Stage  # the one after that decision


class Experiment(AbstractContextManager["Experiment"]):
    """A live run. Any number of processes may open the same one."""

    def __init__(self, store: Store, name: str, registration: Registration) -> None:
        self.name, self.registration = name, registration
        self._store = store
        self._course = Course(registration)
        self._seen = Seen("", "", self._course.start())

    # -- opening -------------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, url: str, name: str, registration: Registration) -> Experiment:
        """Register a new experiment; its protocol cannot be changed afterwards."""
        name = checked_name(name)
        store = Store(url)
        made = cls(store, name, registration)
        text, digest = registration.to_json(), registration.digest
        content = {"registration": json.loads(text), "digest": digest, "name": name}
        progress, moment = Progress.start(made._seen.stage).to_json(), now()
        try:
            store.write(lambda tx: tx.create(name, text, digest, content, progress, moment))
        except BaseException:
            store.close()
            raise
        return made

    @classmethod
    def open(cls, url: str, name: str, protocol: Protocol | Registration | None = None) -> Experiment:
        """Open an experiment; with a protocol, make it if it is not there, and refuse it if it has another one."""
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
        """Give the connection back."""
        self._store.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def ask(self, n: int = 1, request_id: str | None = None) -> Answer:
        """Up to `n` tickets of this batch. The same request id gets the same tickets, however often it is sent."""
        n = integer(n, "n", 1, MOST_TICKETS)
        request = uuid.uuid4().hex if request_id is None else checked_text(request_id, "request_id", 200)
        return self._write(lambda step: step.ask(n, request))

    def tell(self, ticket: str, reward: float) -> Told:
        """A ticket's reward. The same value again changes nothing, another one is a conflict."""
        return self.tell_many([(ticket, reward)])[0]

    def tell_many(self, rewards: Iterable[tuple[str, float]]) -> list[Told]:
        """Several rewards, all of them or none."""
        pairs = [(ticket, self.registration.rewards.checked(plain(reward))) for ticket, reward in rewards]
        return self._write(lambda step: step.tell(pairs)) if pairs else []

    def tell_totals(self, batch: int, totals: Totals) -> Told:
        """A whole batch as (count, total) for each arm that was planned, for teams that add up elsewhere."""
        batch = integer(batch, "batch", 1, 10**6)
        return self._write(lambda step: step.tell_totals(batch, totals))

    def correct(self, ticket: str, reward: float, reason: str) -> Told:
        """Replace a reward that was wrong, until its batch is decided; who reads the log sees both and the reason."""
        value = self.registration.rewards.checked(plain(reward))
        why = checked_text(reason, "reason", LONGEST_TEXT)
        return self._write(lambda step: step.correct(ticket, value, why))

    def missing(self, ticket: str, reason: str) -> Told:
        """Say that a reward will not come: its slot is handed out again, so that the plan is kept exactly."""
        why = checked_text(reason, "reason", LONGEST_TEXT)
        return self._write(lambda step: step.missing(ticket, why))

    def stop(self, reason: str) -> Told:
        """End the experiment before its horizon. Rewards of tickets that are out are still recorded."""
        why = checked_text(reason, "reason", LONGEST_TEXT)
        return self._write(lambda step: step.stop(why))

    # -- looking -------------------------------------------------------------------------------------------------------

    def status(self) -> ExperimentStatus:
        """Where it stands."""
        names = self.registration.arm_names
        row, progress, counts = self._store.read(self._look)
        planned = [(names[arm], arm, pulls) for arm, pulls in enumerate(progress.stage.pulls) if pulls]
        return ExperimentStatus(
            name=self.name,
            state=progress.status,
            digest=row["digest"],
            head=row["head"],
            events=row["events"],
            batch=progress.stage.batch,
            horizon=self._course.horizon,
            spent=progress.stage.spent,
            plan={name: pulls for name, _, pulls in planned},
            told={name: progress.counts[arm] for name, arm, _ in planned},
            issued=progress.issued,
            tickets={state: counts.get(state, 0) for state in ("open", "told", "missing", "late")},
            registered=row["created"],
        )

    def _look(self, view: Reading) -> tuple[Row, Progress, dict[str, int]]:
        row = view.find(self.name)
        if row is None:
            raise ConflictError(f"experiment {self.name} is gone")
        progress, self._seen = self._progress(view, row)
        return row, progress, view.count_tickets(row["id"])

    def pending(self, older_than: float | timedelta | None = None, most: int = 1000) -> list[Pending]:
        """Tickets without a reward, the oldest first; with `older_than` those that have waited so many seconds."""
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

    def _write(self, act: Callable[[Step], T]) -> T:
        answer, self._seen = self._store.write(lambda tx: self._stepped(tx, act))
        return answer

    def _stepped(self, tx: Writing, act: Callable[[Step], T]) -> tuple[T, Seen]:
        row = tx.locked(self.name)
        if row is None or row["digest"] != self.registration.digest:
            raise ConflictError(f"experiment {self.name} is gone, or another one has its name")
        progress, seen = self._progress(tx, row)
        step = Step(tx, row, progress, self.registration, self._course)
        software = json.dumps(SOFTWARE)
        if row["software"] != software:
            step.written_by(software, SOFTWARE)
        answer = act(step)
        stage = step.progress.stage
        return answer, Seen(step.head, seen.decision if stage is seen.stage else step.head, stage)

    def _progress(self, view: Reading, row: Row) -> tuple[Progress, Seen]:
        seen = self._seen  # looked at once: threads may share this object
        if row["head"] != seen.head:
            last, stage = view.last_decision(row["id"]), seen.stage
            if last != seen.decision:
                stage = self._course.start()
                for event in view.decisions(row["id"]):  # of other processes, or of an earlier life of this one
                    stage = self._course.after(stage, [float.fromhex(total) for total in event.content["totals"]])
            seen = Seen(row["head"], last, stage)
        return Progress.from_dict(json.loads(row["progress"]), seen.stage), seen


def _registered(text: str, name: str) -> Registration:
    try:
        return Registration.from_json(text)
    except (BandittoError, ValueError, TypeError, KeyError) as error:
        raise ConflictError(f"the protocol of experiment {name} cannot be read: {error}") from None


def _runnable(registration: Registration) -> Registration:
    """One whose decisions this version of the software takes as they were taken before."""
    try:
        registration.policy()
    except InvalidArgument as error:
        raise ConflictError(f"this experiment cannot go on with banditto {__version__}: {error}") from None
    return registration
