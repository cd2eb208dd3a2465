"""Types of documents as earlier versions of their schemas have them: what users kept is read for ever.

Nothing is written by these types, and nothing in them changes: `tools/schema_versions.json` pins every one, down to the
order of its keys and the names of those whose names end with `Content`. Those of live experiments are in
`earlier_live_documents.py`.
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
from banditto.measure.attack.attacking import WorstContent
from banditto.measure.certificate import CoinDecides, IntervalKind, Judgement, RegretContent, ShareOfRandomPlay
from banditto.measure.comparison import LeastRegret
from banditto.measure.replay import DryContent, StretchContent
from banditto.policies.policy import LevelContent, ProvedContent, TermContent
from banditto.policies.shared.replicable import CALIBRATED
from banditto.problems.environment import EnvironmentContent, LoggedContent
from banditto.problems.reward_log import LogContent


class GuaranteeContent(TypedDict):
    """A `Guarantee` as plain data."""

    terms: list[TermContent]
    total: float
    rho: float
    holds: bool
    promised_gap: float | None
    note: str


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


class SecondMeasured(TypedDict):
    """What was measured of one policy, beside the environment, before A/A tests."""

    schema_version: Literal[2]
    policy: str
    constants: str | None
    level: LevelContent
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
    guarantee: ProvedContent | None
    regret: RegretContent
    share_of_random_play: ShareOfRandomPlay
    coin_decides: CoinDecides
    verdict: Judgement
    pairs_to_settle: Annotated[
        int | None, Keywords(description="about how many pairs would show PASS or FAIL at the observed rate")
    ]
    first_divergence: Annotated[dict[str, Positive], Keywords(propertyNames={"pattern": "^[1-9][0-9]*$"})]
    divergence_unit: Literal["batch", "round"]
    interrupted: bool
    digest: Digest


class SecondCertificate(SecondMeasured):
    """A certificate, beside what every document says."""

    environment: LoggedContent


class SecondCertificateDocument(SecondCertificate, Warned, Provenance):
    """What `banditto certify --json` printed."""


class ComparedContent(SecondMeasured):
    """One row of a comparison."""

    label: str
    executions: Annotated[int, Keywords(minimum=2)]
    environment: EnvironmentContent
    least_regret: LeastRegret


class SecondComparison(TypedDict):
    """A comparison, beside what every document says."""

    schema_version: Literal[2]
    environment: LoggedContent
    rounds: Annotated[int, Keywords(minimum=10_000)]
    policies: Annotated[list[ComparedContent], Keywords(minItems=1)]
    interrupted: bool


class SecondComparisonDocument(SecondComparison, Warned, Provenance):
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


_PerArm = Annotated[list[Natural], Keywords(minItems=2)]


class ReplayContent(TypedDict):
    """A `Replay` as plain data."""

    policy: str
    log: LogContent
    horizon: Horizon
    seed: Natural
    finished: Annotated[bool, Keywords(description="whether every pull up to the horizon was decided")]
    decided: Positive
    pulls: _PerArm
    read: _PerArm
    averages: Annotated[
        list[float | None], Keywords(minItems=2, description="of the rows that were read, as they were logged")
    ]
    unit: Literal["batch", "round"]
    batches: list[StretchContent]
    dry: Annotated[list[DryContent], Keywords(description="arms that had too few rows, where the run was cut off")]
    digest: Digest


class FirstReplayDocument(Warned, Provenance):
    """What `banditto replay --json` printed."""

    schema_version: Literal[1]
    labs: Annotated[list[ReplayContent], Keywords(minItems=1, maxItems=2)]
    compared: Annotated[int | None, Keywords(description="pulls that both labs decided")]
    parted: Annotated[int | None, Keywords(description="the first of them that differs, from 1")]


class FirstAttack(TypedDict):
    """An attack, beside what every document says."""

    schema_version: Literal[1]
    policy: str
    constants: str | None
    arms: Annotated[int, Keywords(minimum=0, description="0 for an infinite action set")]
    horizon: Horizon
    rho: InsideUnit
    bound: Annotated[float | None, Keywords(description="on P(two executions differ), proved; null without a proof")]
    seed: Natural
    confidence: InsideUnit
    pairs_budget: Annotated[int, Keywords(minimum=1000)]
    instances_tried: Positive
    pairs_searched: Annotated[
        int,
        Keywords(minimum=1, description="pairs that chose the worst instance; what is reported of it has others"),
    ]
    worst: WorstContent
    verdict: Literal["PASS", "FAIL"]
    interrupted: bool
    digest: Digest


class FirstAttackDocument(FirstAttack, Warned, Provenance):
    """What `banditto attack --json` printed."""


class FirstCalibration(TypedDict):
    """A calibration, beside what every document says."""

    schema_version: Literal[1]
    policy: str
    constants: Annotated[str, Keywords(const=CALIBRATED)]
    arms: Annotated[int, Keywords(minimum=0, description="0 for an infinite action set")]
    horizon: Horizon
    rho: InsideUnit
    nominal_rho: Annotated[
        float,
        Keywords(exclusiveMinimum=0, exclusiveMaximum=1, description="the constants are those certified for this rho"),
    ]
    bound: Annotated[None, Keywords(description="nothing is certified")]
    proved: Annotated[float, Keywords(description="what the proof gives for these constants: more than rho")]
    attacks: Positive
    instances_tried: Positive
    pairs_tried: Positive
    worst: WorstContent
    regret_factor: Annotated[
        float,
        Keywords(exclusiveMinimum=0, description="certified regret divided by calibrated regret, on regret_means"),
    ]
    regret_means: list[float]
    seed: Natural
    digest: Digest


class FirstCalibrationDocument(FirstCalibration, Warned, Provenance):
    """What `banditto calibrate --json` printed."""


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
