"""Types of documents as earlier versions of their schemas have them: what users kept is read for ever.

Nothing is written by these types, and nothing in them changes: `tools/schema_versions.json` pins every one, down to the
order of its keys and the names of `EntrantContent` and `PolicyContent`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from banditto.core.json_types import (
    AboveZero,
    Amount,
    Digest,
    Horizon,
    InsideUnit,
    Interval,
    Keywords,
    Natural,
    Positive,
    Share,
)
from banditto.core.provenance import Origin, Provenance, Warned
from banditto.live.answers import TicketCounts
from banditto.measure.certificate import IntervalKind, RegretContent
from banditto.measure.replay import ReplayContent
from banditto.policies.policy import GuaranteeContent
from banditto.problems.environment import EnvironmentContent, LoggedContent


class FirstMeasured(TypedDict):
    """What was measured of one policy, beside the environment."""

    schema_version: Literal[1]
    policy: str
    constants: str | None
    horizon: Horizon
    rho: InsideUnit
    seed: Natural
    noise_seed: Natural
    pairs: Positive
    mismatches: Natural
    agreement: Share
    interval: Interval
    interval_kind: Annotated[
        IntervalKind,
        Keywords(description="fixed: exact for the number of pairs that was planned; sequence: valid at every look"),
    ]
    confidence: InsideUnit
    bound: float | None
    guarantee: GuaranteeContent | None
    regret: RegretContent
    verdict: Literal["PASS", "FAIL", "INCONCLUSIVE"]
    pairs_to_settle: int | None
    first_divergence: Annotated[dict[str, Positive], Keywords(propertyNames={"pattern": "^[1-9][0-9]*$"})]
    divergence_unit: Literal["batch", "round"]
    interrupted: bool
    digest: Digest


class FirstCertificate(FirstMeasured):
    """A certificate, beside what every document says."""

    environment: LoggedContent


class FirstCertificateDocument(FirstCertificate, Warned, Provenance):
    """What `banditto certify --json` printed."""


class EntrantContent(FirstMeasured):
    """One row of a comparison."""

    label: str
    executions: Annotated[int, Keywords(minimum=2)]
    environment: EnvironmentContent


class FirstComparison(TypedDict):
    """A comparison, beside what every document says."""

    schema_version: Literal[1]
    environment: LoggedContent
    rounds: Annotated[int, Keywords(minimum=10_000)]
    policies: Annotated[list[EntrantContent], Keywords(minItems=1)]
    interrupted: bool


class FirstComparisonDocument(FirstComparison, Warned, Provenance):
    """What `banditto compare --json` printed."""

    title: str | None


class FirstPlan(TypedDict):
    """A plan, beside what every document says."""

    schema_version: Literal[1]
    policy: str
    constants: str | None
    arms: Annotated[int, Keywords(minimum=0, description="0 for an infinite action set")]
    gap: AboveZero
    rho: InsideUnit
    horizon: Horizon
    resolve: InsideUnit
    by: InsideUnit
    resolved: Annotated[
        float,
        Keywords(
            minimum=0,
            maximum=1,
            description="share of rehearsals in which every arm that is a gap worse was dropped in time",
        ),
    ]
    expected_regret: Amount
    regret_interval: Annotated[
        list[Amount], Keywords(minItems=2, maxItems=2, description="holds 95% of all runs, and their mean")
    ]
    exploration_pulls: Annotated[
        float,
        Keywords(minimum=0, description="mean number of pulls after which no arm that is a gap worse is pulled again"),
    ]
    bound: Annotated[float | None, Keywords(description="on P(two executions differ), proved; null without a proof")]
    ratio_to_paper: Annotated[
        float | None, Keywords(description="expected regret divided by that of paper_policy at the same horizon")
    ]
    paper_policy: str
    paper_horizon: Annotated[
        int | None, Keywords(description="about the shortest horizon at which paper_policy keeps the same promise")
    ]
    ratio_to_nonreplicable: Annotated[
        float | None, Keywords(description="expected regret divided by that of nonreplicable_policy")
    ]
    nonreplicable_policy: str | None
    batches: list[dict[str, Any]]
    instance: Annotated[dict[str, Any], Keywords(required=["name"])]
    executions: Positive
    seed: Natural
    digest: Digest


class FirstPlanDocument(FirstPlan, Provenance):
    """What `banditto plan --json` printed."""


class FirstReplayDocument(Warned, Provenance):
    """What `banditto replay --json` printed."""

    schema_version: Literal[1]
    labs: Annotated[list[ReplayContent], Keywords(minItems=1, maxItems=2)]
    compared: Annotated[int | None, Keywords(description="pulls that both labs decided")]
    parted: Annotated[int | None, Keywords(description="the first of them that differs, from 1")]


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


class PolicyContent(TypedDict):
    """A policy that can be named."""

    name: str
    kind: Literal["replicable", "baseline"]
    constants: list[str]
    source: str
    summary: str


class FirstPoliciesDocument(Origin):
    """What `banditto policies --json` printed."""

    schema_version: Literal[1]
    policies: list[PolicyContent]
    versions: dict[str, Any]
