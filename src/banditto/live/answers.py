"""What an experiment answers: tickets, open tickets, where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.json_types import Digest, Keywords, Natural, Positive
from banditto.core.named_tuples import all_made
from banditto.core.results import Part, Result, TablePart
from banditto.engine.observations import DecidedBy
from banditto.measure.analysis.analysis import ARM_HEADER, Analysis
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


class FallbackContent(TypedDict):
    """A `Fallback` as plain data."""

    arm: Natural
    arm_name: str


class AnswerContent(TypedDict):
    """An `Answer` as plain data."""

    tickets: list[AssignmentContent]
    state: AskState
    reason: str
    repeated: Annotated[bool, Keywords(description="whether this request was answered before")]
    fallback: Annotated[
        FallbackContent | None, Keywords(description="what to show a unit without a ticket: outside the experiment")
    ]


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


class Fallback(NamedTuple):
    """The arm to show a unit that has no ticket; it is outside the experiment."""

    arm: int
    arm_name: str


@dataclass(frozen=True)
class Answer:
    """What `Experiment.ask` gives: the tickets that were handed out; or none, and why. It can be iterated over.

    Attributes:
        tickets: `id`, `arm`, `arm_name` and `batch` of each.
        state: "issued", or why there is none: "waiting", "finished" or "stopped".
        reason: why there is none, in words.
        repeated: whether this request, or this unit, was given these tickets before.
        fallback: the `arm` and `arm_name` to show a unit without a ticket, if the registration names one.
    """

    tickets: tuple[Assignment, ...]
    state: AskState
    reason: str = ""
    repeated: bool = False
    fallback: Fallback | None = None

    @property
    def arm_name(self) -> str | None:
        """What to show: the first ticket's arm, else the fallback's; None if there is neither."""
        if self.tickets:
            return self.tickets[0].arm_name
        return None if self.fallback is None else self.fallback.arm_name

    def __iter__(self) -> Iterator[Assignment]:
        return iter(self.tickets)

    def __len__(self) -> int:
        return len(self.tickets)

    def __getitem__(self, place: int) -> Assignment:
        return self.tickets[place]

    @classmethod
    def from_dict(cls, content: AnswerContent) -> Answer:
        """Read what `to_dict` gave; the same answer comes back."""
        fallback, tickets = content["fallback"], content["tickets"]
        rows = [(ticket["id"], ticket["arm"], ticket["arm_name"], ticket["batch"]) for ticket in tickets]
        if any(len(ticket) != len(row) for ticket, row in zip(tickets, rows, strict=True)):
            raise TypeError("a ticket with other keys")
        return cls(
            tickets=tuple(all_made(Assignment, rows)),
            state=content["state"],
            reason=content["reason"],
            repeated=content["repeated"],
            fallback=None if fallback is None else Fallback(**fallback),
        )

    def to_dict(self) -> AnswerContent:
        """Return plain data with the names of the attributes."""
        return {
            "tickets": [
                {"id": ticket.id, "arm": ticket.arm, "arm_name": ticket.arm_name, "batch": ticket.batch}
                for ticket in self.tickets
            ],
            "state": self.state,
            "reason": self.reason,
            "repeated": self.repeated,
            "fallback": None
            if self.fallback is None
            else {"arm": self.fallback.arm, "arm_name": self.fallback.arm_name},
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


class PendingTickets(list[Pending]):
    """Tickets without a reward, the oldest first: what `Experiment.pending` gives.

    Attributes:
        total: how many there are; more than are listed, if the list was cut.
    """

    def __init__(self, tickets: Iterable[Pending], total: int) -> None:
        super().__init__(tickets)
        self.total = total


@dataclass(frozen=True, kw_only=True, repr=False)
class ExperimentStatus(Result):
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
    # who won or leads, what it pays, and by how much it is better; None before the first decision
    headline: str | None = field(default=None, repr=False, compare=False)
    # every arm's mean, with intervals that hold at once; none before the first decision
    estimates: tuple[ArmEstimate, ...] = field(default=(), repr=False, compare=False)
    # of decided batches, without checks; None of a status that a service told
    analysis: Analysis | None = field(default=None, repr=False, compare=False)

    _picture = "log_pictures:status_figure"
    _named = ("name", "state", "batch", "spent", "horizon", "winner", "decided_by")

    def _parts(self) -> list[Part]:
        how = {"lead": ", by its lead", "coin": ", by the shared rule: nobody led by enough", None: ""}
        rows = [
            ("state", self.state),
            ("batch", f"{self.batch:,}"),
            ("pulls decided", f"{self.spent:,} of {self.horizon:,}"),
            ("level", self.level),
            *([] if self.winner is None else [("winner", self.winner + how[self.decided_by])]),
            *((f"arm {arm}", f"{self.told[arm]:,} of {pulls:,} rewards") for arm, pulls in self.plan.items()),
            ("tickets", ", ".join(f"{count:,} {state}" for state, count in self.tickets.items())),
            ("events", f"{self.events:,}"),
            ("digest", self.digest),
            ("head", self.head),
        ]
        parts: list[Part] = [] if self.headline is None else [self.headline]
        parts.append(TablePart(("experiment", self.name), rows))
        if self.analysis is not None:
            parts.append(TablePart(ARM_HEADER, self.analysis.arm_rows(), "lrlrrl"))
        return [*parts, *(f"warning: {line}" for line in self.warnings)]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each arm: pulls planned and told in this batch, and its estimate once there is one."""
        known = {arm.name: arm for arm in self.estimates}
        return [
            {
                "arm": name,
                "planned": self.plan.get(name, 0),
                "told": self.told.get(name, 0),
                "estimate": known[name].estimate if name in known else None,
                "low": known[name].low if name in known else None,
                "high": known[name].high if name in known else None,
                "pulls": known[name].pulls if name in known else None,
            }
            for name in dict.fromkeys([*known, *self.plan])
        ]

    @classmethod
    def from_dict(cls, content: StatusContent) -> ExperimentStatus:
        """Read what `to_dict` gave; the same status comes back, without its `analysis`."""
        values: dict[str, Any] = {
            **content,
            "tickets": dict(content["tickets"]),
            "warnings": tuple(content["warnings"]),
            "estimates": tuple(ArmEstimate.from_dict(arm) for arm in content["estimates"]),
        }
        return cls(**values)

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
