"""Which numbers of pulls an experiment can come to, and how the allowed error is shared out among them.

The numbers follow from the protocol alone: a policy that pulls all arms in play equally often, batch by batch, comes to
n_1 < n_2 < ... pulls of each arm, and no others. Intervals hold at all of them at once, so that they hold where the
experiment happened to end (docs/analyse.md, Theorem 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeGuard

from banditto.measure.analysis import critical_values
from banditto.policies.policy import Acting, Policy, own_level

_RATIO = 1.25  # of neighbours: where looks are closer together, some are passed over, which costs less than all
# Shares of the allowed error: for arms' means (and differences after a commit), for differences of arms that were
# pulled equally often, and for the winner's pulls after the commit.
_SHARES = {"sequence": (0.55, 0.35, 0.1), "winner": (0.5, 0.5, 0.0)}


class PullStage(NamedTuple):
    """A number of pulls of each arm, and what of the allowed error is spent there."""

    batch: int  # the last one that belongs to it, from 0
    pulls: int
    after: int  # pulls of one arm that would be left after a commit here
    share: float  # of the error

    @property
    def fresh_weight(self) -> float:
        """v: how much of a difference's variance is due to the pulls after the commit, as a root."""
        return math.sqrt(self.pulls / (self.pulls + self.after)) if self.after > 0 else 0.0


@dataclass(frozen=True)
class Critical:
    """Places on the normal scale at one stage: for means, for a difference after a commit, and for any difference."""

    mean: float
    after_commit: float
    pair: float


def described(policy: Policy[Any]) -> list[int]:
    """List the pulls of each arm in play, batch by batch, as the policy describes them."""
    return [int(row["pulls per arm"]) for row in policy.describe().to_dict()["batches"]]


def stages_of(policy: Policy[Any], horizon: int) -> tuple[PullStage, ...]:
    """List the stages at which an experiment may be analysed, the first to the last; their shares add up to 1."""
    sums = list(enumerate(accumulate(described(policy))))
    kept: list[tuple[int, int]] = []
    for number, pulls in reversed(sums):
        if not kept or pulls * _RATIO <= kept[-1][1] or number == 0:
            kept.append((number, pulls))
    kept.reverse()
    goes_on = own_level(policy) == "sequence"
    # who names a gap aims at the last stages; a ladder may end anywhere
    named = getattr(policy, "gap", None) is not None
    weights = [math.sqrt(pulls) if named else 1.0 for _, pulls in kept]
    return tuple(
        PullStage(number, pulls, max(0, horizon - policy.arms * pulls) if goes_on else 0, weight / math.fsum(weights))
        for (number, pulls), weight in zip(kept, weights, strict=True)
    )


def has_stages(policy: object) -> TypeGuard[Policy[Any]]:
    """Whether a policy pulls all arms in play equally often, so that its numbers of pulls are known in advance."""
    return isinstance(policy, Policy) and not isinstance(policy, Acting)


def can_begin(policy: Policy[Any], horizon: int) -> bool:
    """Whether the first batch that a policy describes fits into the horizon; a ladder may be too long for it."""
    pulls = described(policy)
    return bool(pulls) and policy.arms * pulls[0] <= horizon


def fresh_place(error: float, level: str) -> float:
    """Return the place on the normal scale for the winner's mean after a commit, which is told once."""
    return critical_values.one_sided(_SHARES[level][2] * error / 2.0)


def critical_at(stage: PullStage, arms: int, error: float, level: str, coupled: bool) -> Critical:
    """Return the places that all statements of a stage need to hold at once, with its share of the error.

    `coupled` limits are those of normal variables, whose families are known exactly; others are added up.
    """
    means, pairs, _ = (share * error * stage.share for share in _SHARES[level])
    if coupled:
        alone = critical_values.each_and_fresh(means, arms, stage.fresh_weight)
        return Critical(alone, alone, critical_values.all_pairs(pairs, arms))
    kinds = 2 if stage.after > 0 else 1
    alone = critical_values.one_sided(means / (2 * kinds * arms))
    return Critical(alone, alone, critical_values.one_sided(pairs / (arms * (arms - 1))))
