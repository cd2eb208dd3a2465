"""Types of documents of live experiments as earlier versions of their schemas have them (`earlier_documents.py`)."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from banditto.core.json_types import Digest, Keywords, Natural
from banditto.core.provenance import Provenance
from banditto.engine.observations import DecidedBy
from banditto.live.answers import AskState, AssignmentContent, PendingContent, TicketCounts
from banditto.live.replicate import DivergenceContent
from banditto.policies.policy import LevelContent


class FirstRegistered(TypedDict):
    """An experiment that was registered."""

    name: str
    digest: Digest
    head: Digest
    arm_names: list[str]


class FirstInitDocument(FirstRegistered, Provenance):
    """What `banditto init --json` printed."""

    schema_version: Literal[1]


class FirstStatus(TypedDict):
    """Where an experiment stands, beside what every document says."""

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


class FirstStatusDocument(FirstStatus, Provenance):
    """What `banditto status --json` printed."""

    schema_version: Literal[1]


class SecondStatus(TypedDict):
    """Where an experiment stands, beside what every document says, before estimates."""

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
    winner: Annotated[str | None, Keywords(description="at the level of winners the arm that was named, once one was")]
    decided_by: Annotated[
        DecidedBy | None,
        Keywords(description="what named the winner: its lead, or a shared coin (the control, where there is one)"),
    ]


class SecondStatusDocument(SecondStatus, Provenance):
    """What `banditto status --json` printed."""

    schema_version: Literal[2]


class FirstAnswer(TypedDict):
    """The tickets that were handed out; or none, and why."""

    tickets: list[AssignmentContent]
    state: AskState
    reason: str


class FirstTicketsDocument(FirstAnswer, Provenance):
    """What `banditto ask --json` printed."""

    schema_version: Literal[1]


class FirstWaiting(TypedDict):
    """Tickets that wait for a reward."""

    tickets: list[PendingContent]


class FirstPendingDocument(FirstWaiting, Provenance):
    """What `banditto pending --json` printed."""

    schema_version: Literal[1]


class FirstVerification(TypedDict):
    """What `verify` found."""

    name: str
    digest: str
    events: Natural
    head: str
    verified: bool
    problem: str | None
    event: int | None
    decisions: Natural


class FirstVerificationDocument(FirstVerification, Provenance):
    """What `banditto verify --json` printed."""

    schema_version: Literal[1]


class FirstReplication(TypedDict):
    """Two runs side by side, when all policies promised the same sequence."""

    digest: Digest
    runs: Annotated[list[str], Keywords(minItems=2, maxItems=2)]
    decisions: list[Natural]
    compared: Natural
    same: bool
    divergence: DivergenceContent | None


class FirstReplicationDocument(FirstReplication, Provenance):
    """What `banditto replicate --json` printed."""

    schema_version: Literal[1]
