"""Who hands out a selection's pulls and takes its rewards: memory, or a live experiment in a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from banditto.core.errors import ConflictError, InvalidArgument, MissingExtra, StoreError
from banditto.engine.observations import Observations
from banditto.live.exact_sums import exact_sum
from banditto.live.fold import Course, Standing
from banditto.live.observing import observations_of, told_squares
from banditto.live.registration import Registration
from banditto.live.tickets import Slot, Ticket, TicketIds

if TYPE_CHECKING:  # a selection in memory needs no database
    from banditto.live.reading import Reading

DEFAULT_NAME = "select"
Reply = Literal["issued", "waiting", "finished", "stopped"]


class Known(NamedTuple):
    """What a selection has seen: its decisions as a log has them, and each arm's number and sum of rewards."""

    decisions: list[dict[str, Any]]
    counts: list[int]
    sums: list[Fraction]

    @classmethod
    def of(cls, arms: int, decisions: list[dict[str, Any]], counts: Sequence[int], sums: Sequence[Fraction]) -> Known:
        """Add the rewards of the batch that is being played to those of all decided batches."""
        past = [(one["counts"], [exact_sum(text) for text in one["sums"]]) for one in decisions]
        whole = [*past, (list(counts) or [0] * arms, list(sums) or [Fraction(0)] * arms)]  # after the end there is none
        return cls(
            decisions,
            [sum(batch[0][arm] for batch in whole) for arm in range(arms)],
            [sum((batch[1][arm] for batch in whole), Fraction(0)) for arm in range(arms)],
        )


class MemoryDesk(AbstractContextManager["MemoryDesk"]):
    """Hands out slots and takes rewards in memory alone: nothing is left when the program ends."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration
        self._course = Course(registration)
        self._standing = Standing.start(self._course.start())
        self._decisions: list[dict[str, Any]] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def waiting(self) -> list[Slot]:
        """Return no slots: nothing is left over from an earlier run, since nothing is kept."""
        return []

    def ask(self, number: int) -> tuple[list[Slot], Reply]:
        """Return up to `number` slots and the reply; no slots where the batch waits for rewards, or at the end."""
        slots = self._standing.hand_out(number) if self._standing.free else []
        if slots:
            return slots, "issued"
        return [], "waiting" if self._standing.status == "running" else "finished"

    def tell(self, rewards: Sequence[tuple[Ticket, float]]) -> None:
        """Record rewards; the last reward of a batch leads to a decision."""
        for ticket, reward in rewards:
            self._standing.tell(ticket, reward)
        if self._standing.due:
            content, self._standing = self._standing.decide()
            self._decisions.append(content)

    def known(self) -> Known:
        """Return the decisions and each arm's number and sum of rewards so far."""
        arms = self._course.registration.protocol.arms
        return Known.of(arms, self._decisions, self._standing.counts, self._standing.sums)

    def observations(self) -> Observations:
        """Return the observations so far, for `analyse`."""
        squares = told_squares(self._decisions)
        return observations_of(self._course.registration, self._decisions, self._standing, squares, None)


class StoredDesk(AbstractContextManager["StoredDesk"]):
    """Hands out slots and takes rewards through a stored experiment, which can be continued after a crash."""

    def __init__(self, registration: Registration, url: str, name: str) -> None:
        if find_spec("sqlalchemy") is None:
            raise MissingExtra("a store", "SQLAlchemy", "live")
        from banditto.live.experiment import Experiment
        from banditto.live.store import Store

        self._experiment = Experiment.open(url, name, registration)
        self.registration = self._experiment.registration  # perhaps of an earlier version, with another order
        self._ids = TicketIds(name, bare=self.registration.first_version)
        self._store = Store(url)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._experiment.close()
        self._store.close()

    def waiting(self) -> list[Slot]:
        """Return slots that an earlier run was given and never told a reward for."""
        return sorted((self._ids.read(line.id), line.arm) for line in self._experiment.pending(most=10**6))

    def ask(self, number: int) -> tuple[list[Slot], Reply]:
        """Return up to `number` slots and the reply; no slots where the batch waits for rewards, or at the end."""
        answer = self._experiment.ask(number)
        return [(self._ids.read(line.id), line.arm) for line in answer], answer.state

    def tell(self, rewards: Sequence[tuple[Ticket, float]]) -> None:
        """Record rewards; one that another process has told already is not counted again."""
        pairs = [(self._ids.write(ticket), reward) for ticket, reward in rewards]
        try:
            self._experiment.tell_many(pairs)
        except StoreError:
            raise
        except ConflictError:
            for ticket, reward in pairs:
                self._tell_unless_told(ticket, reward)

    def _tell_unless_told(self, ticket: str, reward: float) -> None:
        try:
            self._experiment.tell(ticket, reward)
        except StoreError:
            raise
        except ConflictError:  # it has another reward, the first that was told, which counts
            return

    def observations(self) -> Observations:
        """Return the observations of this run and of earlier ones, for `analyse`."""
        return self._experiment.observations()

    def known(self) -> Known:
        """Return the decisions and each arm's number and sum of rewards, of this run and of earlier ones."""
        return self._store.read(self._known)

    def _known(self, view: Reading) -> Known:
        row = view.known(self._experiment.name)
        now = json.loads(row["progress"])
        decisions = [event.content for event in view.decisions(row["id"])]
        sums = [exact_sum(text) for text in now["sums"]]
        return Known.of(self._experiment.registration.protocol.arms, decisions, now["counts"], sums)


Desk = MemoryDesk | StoredDesk


def desk_for(registration: Registration, store: str | Path | None) -> Desk:
    """Open the desk for a store: None is memory; else a file, or a URL with or without #NAME."""
    if store is None:
        return MemoryDesk(registration)
    url, name = address_of(store)
    return StoredDesk(registration, url, name)


def address_of(store: str | Path) -> tuple[str, str]:
    """Split a store into its URL and an experiment's name; a plain path is an SQLite file."""
    if not isinstance(store, str | Path) or not str(store).strip():
        raise InvalidArgument(
            "store", store, "a file, or a URL such as sqlite:///select.db or sqlite:///select.db#name"
        )
    text = str(store)
    if "://" not in text:
        return f"sqlite:///{text}", DEFAULT_NAME
    url, mark, name = text.rpartition("#")
    return (url, name) if mark else (text, DEFAULT_NAME)
