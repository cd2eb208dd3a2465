"""What a plan is as plain data: the type of `TrialPlan.to_dict`, from which the schema is written."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from typing_extensions import TypedDict

from banditto.core.json_types import AboveZero, Amount, Digest, Horizon, InsideUnit, Keywords, Natural, Positive, Share
from banditto.measure.certificate import CoinDecides, ShareOfRandomPlay
from banditto.measure.lower_bounds import LowerBoundContent
from banditto.measure.plan.winner_pulls import PullsContent, PullsElsewhereContent
from banditto.measure.plan.yardsticks import AlternativeContent, YardstickContent
from banditto.policies.policy import LevelContent

SCHEMA_VERSION: Final = 2


class PlanContent(TypedDict):
    """A `TrialPlan` as plain data."""

    schema_version: Literal[2]
    policy: str
    constants: str | None
    level: LevelContent
    arms: Annotated[int, Keywords(minimum=0, description="0 for an infinite action set")]
    gap: AboveZero
    rho: InsideUnit
    horizon: Annotated[Horizon, Keywords(description="pulls in all; for a winner the most that there may be")]
    resolve: Annotated[InsideUnit, Keywords(description="the same as power, its name in version 1")]
    power: InsideUnit
    by: Annotated[float, Keywords(exclusiveMinimum=0, maximum=1)]
    rate_at_most: InsideUnit | None
    baseline: Share | None
    control: Natural | None
    resolved: Annotated[
        float,
        Keywords(
            minimum=0,
            maximum=1,
            description="share of rehearsals in which every arm that is a gap worse was dropped in time, or in which "
            "the best arm was the winner",
        ),
    ]
    expected_regret: Amount
    regret_interval: Annotated[
        list[Amount], Keywords(minItems=2, maxItems=2, description="holds 95% of all runs, and their mean")
    ]
    share_of_random_play: ShareOfRandomPlay
    coin_decides: CoinDecides
    exploration_pulls: Annotated[
        float,
        Keywords(
            minimum=0,
            description="mean number of pulls after which no arm that is a gap worse is pulled again, or after which "
            "the winner is named",
        ),
    ]
    pulls: Annotated[
        PullsContent | None,
        Keywords(description="of each arm until the winner is named, at the gap; null at the level of sequences"),
    ]
    pulls_elsewhere: Annotated[
        list[PullsElsewhereContent],
        Keywords(description="the same at twice the gap, where rewards leave room for it, and on a tie"),
    ]
    bound: Annotated[float | None, Keywords(description="on P(two executions differ), proved; null without a proof")]
    ratio_to_paper: Annotated[
        float | None,
        Keywords(description="expected regret divided by that of paper_policy at the same horizon; null for a winner"),
    ]
    paper_policy: str
    paper_horizon: Annotated[
        int | None,
        Keywords(
            description="about the shortest horizon at which paper_policy keeps the same promise; null for a winner"
        ),
    ]
    ratio_to_nonreplicable: Annotated[
        float | None, Keywords(description="expected regret divided by that of nonreplicable_policy; null for a winner")
    ]
    nonreplicable_policy: str | None
    lower_bound: Annotated[
        LowerBoundContent | None,
        Keywords(
            description="pulls that no policy which repeats every pull can do without; null where none is proved, and "
            "for a winner"
        ),
    ]
    ordinary_test: Annotated[
        YardstickContent | None, Keywords(description="what an ordinary test of the same question needs")
    ]
    alternatives: Annotated[
        list[AlternativeContent], Keywords(description="other policies for the same promise, by their horizons")
    ]
    batches: list[dict[str, Any]]
    instance: Annotated[dict[str, Any], Keywords(required=["name"])]
    executions: Positive
    seed: Natural
    digest: Digest
