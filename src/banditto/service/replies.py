"""What the service answers where the library has no type for it: lists, pages of a log, what became of several."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from banditto.core.json_types import Digest, Keywords, Natural, Positive
from banditto.live.answers import Changed, PendingContent, Told
from banditto.measure.plan.plan_content import PlanContent


class NamesReply(TypedDict):
    """The experiments that a token may see."""

    experiments: list[str]


class RegistrationReply(TypedDict):
    """What an experiment was registered with."""

    name: str
    digest: Digest
    registration: Annotated[dict[str, Any], Keywords(description="its canonical JSON has this digest")]
    created: Annotated[bool, Keywords(description="whether this very request made the experiment")]


class CardReply(TypedDict):
    """What a caller must know of an experiment to ask and tell. The seed is not in it: it says which arm comes next."""

    name: str
    digest: Digest
    arm_names: list[str]
    rewards: Annotated[list[float], Keywords(description="the ends of what a reward may be; [] for no ends")]
    bare_tickets: Annotated[bool, Keywords(description="whether ids of tickets lack the experiment's name")]


class ToldReply(TypedDict):
    """What became of each reward, in the order in which they were told."""

    told: list[Told]


class ChangedReply(TypedDict):
    """What became of each ticket, in the order in which they were named."""

    changed: list[Changed]


class GivenUpReply(TypedDict):
    """How many tickets were given up."""

    given_up: Natural


class PendingReply(TypedDict):
    """Tickets that wait for a reward, the oldest first."""

    tickets: list[PendingContent]
    total: Annotated[Natural, Keywords(description="how many there are; more than are listed, if the list was cut")]


class EventReply(TypedDict):
    """One event of the log, as it stands in the store."""

    number: Positive
    kind: str
    time: str
    body: Annotated[str, Keywords(description="canonical JSON; the hash is taken of it")]
    hash: Digest


class EventsReply(TypedDict):
    """A page of the log."""

    events: list[EventReply]
    next: Annotated[int | None, Keywords(description="what to send as `after` for the next page; null at the end")]


class PlanReply(TypedDict):
    """A plan, and the protocol that it is for."""

    plan: PlanContent
    protocol: dict[str, Any]
    warnings: list[str]


class HealthReply(TypedDict):
    """Whether the service is up, or ready."""

    state: Literal["up", "ready"]
