"""What an experiment answers: tickets, open tickets, where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.json_types import Digest, Keywords, Natural, Positive
from banditto.engine.observations import DecidedBy
from banditto.measure.analysis.analysis import Analysis
from banditto.measure.analysis.estimates import ArmContent, ArmEstimate
from banditto.policies.policy import Level, LevelContent

AskState = Literal["issued", "waiting", "finished", "stopped"]
Told = Literal["recorded", "repeated", "excluded"]
Changed = Literal["recorded", "repeated"]


class AssignmentContent(TypedDict):
    """An `Assignment` as plain data."""

    id: str
    arm: Natural
    arm_name: str
    batch: Positive


class AnswerContent(TypedDict):
    """An `Answer` as plain data."""

    tickets: list[AssignmentContent]
    state: AskState
    reason: str


class PendingContent(TypedDict):
    """A `Pending` as plain data."""

    id: str
    arm: Natural
    arm_name: str
    batch: Natural
    issued: str


class TicketCounts(TypedDict):
    """How many tickets of all batches are in which state."""

    open: Natural
    told: Natural
    missing: Natural
    late: Natural


class StatusContent(TypedDict):
    """An `ExperimentStatus` as plain data."""

    name: str
    state: Literal["running", "finished", "stopped"]
    digest: Digest
    head: Digest
    events: Natural
    batch: Natural
    horizon: Natural
    spent: Natural
    plan: dict[str, Natural]
    told: dict[str, Natural]
    issued: Natural
    tickets: TicketCounts
    registered: str
    warnings: list[str]
    level: LevelContent
    winner: Annotated[
        str | None, Keywords(description="the arm that the policy has named, or committed to; null while there is none")
    ]
    decided_by: Annotated[
        DecidedBy | None,
        Keywords(description="what named the winner: its lead, or a shared coin (the control, where there is one)"),
    ]
    headline: Annotated[
        str | None, Keywords(description="who won or leads, and by how much; null before the first decision")
    ]
    estimates: Annotated[
        list[ArmContent],
        Keywords(description="every arm's mean, with intervals that hold at once; empty before the first decision"),
    ]


class Assignment(NamedTuple):
    """A ticket: which arm to give, and the id under which to tell the reward."""

    id: str
    arm: int
    arm_name: str
    batch: int


@dataclass(frozen=True)
class Answer:
    """What `Experiment.ask` gives: the tickets that were handed out; or none, and why. It can be iterated over.

    Attributes:
        tickets: `id`, `arm`, `arm_name` and `batch` of each.
        state: "issued", or why there is none: "waiting", "finished" or "stopped".
        reason: why there is none, in words.
    """

    tickets: tuple[Assignment, ...]
    state: AskState
    reason: str = ""

    def __iter__(self) -> Iterator[Assignment]:
        return iter(self.tickets)

    def __len__(self) -> int:
        return len(self.tickets)

    def __getitem__(self, place: int) -> Assignment:
        return self.tickets[place]

    def to_dict(self) -> AnswerContent:
        """Return plain data with the names of the attributes."""
        return {
            "tickets": [
                {"id": ticket.id, "arm": ticket.arm, "arm_name": ticket.arm_name, "batch": ticket.batch}
                for ticket in self.tickets
            ],
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

    def to_dict(self) -> PendingContent:
        """Return plain data with the names of the fields."""
        return {
            "id": self.id,
            "arm": self.arm,
            "arm_name": self.arm_name,
            "batch": self.batch,
            "issued": self.issued,
        }


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
    warnings: tuple[str, ...] = ()  # arms whose rewards contradict what the protocol promises of them
    level: Level = "sequence"  # what two runs have in common: every pull, or the winner
    winner: str | None = None  # the arm that was named, or committed to
    decided_by: DecidedBy | None = None  # what named it
    analysis: Analysis | None = field(default=None, repr=False, compare=False)  # of decided batches, without checks

    @property
    def headline(self) -> str | None:
        """Who won or leads, what it pays, and by how much it is better; None before the first decision."""
        return None if self.analysis is None else self.analysis.headline

    @property
    def estimates(self) -> tuple[ArmEstimate, ...]:
        """Every arm's mean, with intervals that hold at once; none before the first decision."""
        return () if self.analysis is None else self.analysis.arms

    def to_dict(self) -> StatusContent:
        """Return plain data with the names of the attributes; of the `analysis`, its headline and its estimates."""
        return {
            "name": self.name,
            "state": self.state,
            "digest": self.digest,
            "head": self.head,
            "events": self.events,
            "batch": self.batch,
            "horizon": self.horizon,
            "spent": self.spent,
            "plan": self.plan,
            "told": self.told,
            "issued": self.issued,
            "tickets": {
                "open": self.tickets["open"],
                "told": self.tickets["told"],
                "missing": self.tickets["missing"],
                "late": self.tickets["late"],
            },
            "registered": self.registered,
            "warnings": list(self.warnings),
            "level": self.level,
            "winner": self.winner,
            "decided_by": self.decided_by,
            "headline": self.headline,
            "estimates": [arm.to_dict() for arm in self.estimates],
        }
