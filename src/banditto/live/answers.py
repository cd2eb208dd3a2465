"""What an experiment answers: tickets, open tickets, where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

AskState = Literal["issued", "waiting", "finished", "stopped"]
Told = Literal["recorded", "repeated", "excluded"]


class Assignment(NamedTuple):
    """A ticket: which arm to give, and the id under which to tell the reward."""

    id: str
    arm: int
    arm_name: str
    batch: int


@dataclass(frozen=True)
class Answer:
    """Holds the tickets that were handed out; or none, and why."""

    tickets: tuple[Assignment, ...]
    state: AskState
    reason: str = ""

    def __iter__(self) -> Iterator[Assignment]:
        return iter(self.tickets)

    def __len__(self) -> int:
        return len(self.tickets)

    def __getitem__(self, place: int) -> Assignment:
        return self.tickets[place]

    def to_dict(self) -> dict[str, Any]:
        """Give the content as plain data."""
        return {
            "tickets": [ticket._asdict() for ticket in self.tickets],
            "state": self.state,
            "reason": self.reason,
        }


class Pending(NamedTuple):
    """A ticket without a reward; what `Experiment.pending` lists."""

    id: str
    arm: int
    arm_name: str
    batch: int
    issued: str  # UTC, ISO 8601


@dataclass(frozen=True, kw_only=True)
class ExperimentStatus:
    """Where an experiment stands; what `Experiment.status` gives."""

    name: str
    state: Literal["running", "finished", "stopped"]
    digest: str
    head: str
    events: int
    batch: int
    horizon: int
    spent: int  # pulls of decided batches
    plan: dict[str, int]  # pulls of this batch, by arm
    told: dict[str, int]  # rewards of this batch, by arm
    issued: int  # slots of this batch that were handed out
    tickets: dict[str, int]  # of all batches: open, told, missing, late
    registered: str  # when; UTC, ISO 8601

    def to_dict(self) -> dict[str, Any]:
        """Give the content as plain data."""
        return dict(self.__dict__)
