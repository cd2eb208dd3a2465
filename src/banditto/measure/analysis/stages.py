"""Which numbers of pulls an experiment can come to, and how the allowed error is shared out among them.

The numbers follow from the protocol alone: a policy that pulls all arms in play equally often, batch by batch, comes to
n_1 < n_2 < ... pulls of each arm, and no others. Intervals hold at all of them at once, so that they hold where the
experiment happened to end (docs/analyse.md, Theorem 1). Shares here are those for all truths alike; `gap_bands` has
others for each gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from banditto.chance.coins import Coins
from banditto.measure.analysis import critical_values
from banditto.policies.policy import Acting, Policy, own_level

_RATIO = 1.25  # of neighbours: where looks are closer together, some are passed over, which costs less than all
# Shares of the allowed error: for arms' means (and differences after a commit), for differences of arms that were
# pulled equally often, and for the winner's pulls after the commit. Where a commit leaves pulls enough, differences of
# arms that were pulled equally often are printed only until then, and get less.
_SHARES = {"sequence": (0.55, 0.35, 0.1), "winner": (0.5, 0.5, 0.0)}
_SHARES_BEFORE_FRESH = (0.7, 0.2, 0.1)


class PullStage(NamedTuple):
    """A number of pulls of each arm at which an analysis may happen, and the share of the error spent there."""

    pulls: int
    after: int  # pulls of one arm that would be left after a commit here
    share: float  # of the error

    @property
    def fresh_weight(self) -> float:
        """v, the root of the share of a difference's variance that comes from pulls after the commit."""
        if self.after < self.pulls:  # fewer than before: they are not used
            return 0.0
        return math.sqrt(self.pulls / (self.pulls + self.after))


@dataclass(frozen=True)
class Critical:
    """Critical values at one stage: for means, for a difference after a commit, and for any difference."""

    mean: float
    after_commit: float
    pair: float


def stages_of(policy: Policy[Any], horizon: int) -> tuple[PullStage, ...]:
    """List the stages at which an experiment may be analysed, the first to the last; their shares add up to 1."""
    rows = policy.describe().to_dict()["batches"]
    counts = {*accumulate(int(row["pulls per arm"]) for row in rows), *accumulate(_undecided(policy))}
    kept = _spaced(sorted(counts))
    goes_on = own_level(policy) == "sequence"
    # who names a gap aims at the last stages; a ladder may end anywhere
    named = getattr(policy, "gap", None) is not None
    weights = [math.sqrt(pulls) if named else 1.0 for pulls in kept]
    return tuple(
        PullStage(pulls, max(0, horizon - policy.arms * pulls) if goes_on else 0, weight / math.fsum(weights))
        for pulls, weight in zip(kept, weights, strict=True)
    )


def _spaced(counts: list[int]) -> list[int]:
    """Thin out numbers of pulls that lie close together; return those that are kept.

    From the last down, one of each group is kept: the largest where others follow closely below, for those that were
    passed over; the smallest where there is a long way down, so that those above it fall back on it.
    """
    kept: list[int] = []
    while counts:
        group = [pulls for pulls in counts if pulls * _RATIO > counts[-1]]
        counts = counts[: -len(group)]
        kept.append(group[-1] if counts and group[0] <= counts[-1] * _RATIO else group[0])
    return kept[::-1]


def _undecided(policy: Policy[Any]) -> Iterator[int]:
    """Yield the pulls of each arm in the batches of an execution in which all rewards are 0, until one arm is left.

    It may have a last batch for a final choice, whose size is what is left then, and which stands in no list.
    """
    state, coins, spent = policy.init(1), Coins(0), 0
    while (plan := policy.plan(state)) is not None:
        pulls = np.asarray(plan)[0]
        spent += int(pulls.sum())
        if np.count_nonzero(pulls) < policy.arms or pulls.min() != pulls.max() or spent >= policy.horizon:
            return
        yield int(pulls[0])
        state = policy.decide(state, np.zeros((1, policy.arms)), coins)


def has_stages(policy: object) -> TypeGuard[Policy[Any]]:
    """Whether a policy pulls all arms in play equally often, so that its numbers of pulls are known in advance."""
    return isinstance(policy, Policy) and not isinstance(policy, Acting) and bool(stages_of(policy, policy.horizon))


def fresh_place(error: float, level: str) -> float:
    """Return the critical value for the winner's mean after a commit."""
    return critical_values.one_sided(_SHARES[level][2] * error / 2.0)


def critical_at(stage: PullStage, arms: int, error: float, level: str, coupled: bool) -> Critical:
    """Return the critical values with which all statements of a stage hold at once, at its share of the error.

    `coupled` limits are those of normal variables, whose families are known exactly; others are added up.
    """
    shares = _SHARES_BEFORE_FRESH if stage.fresh_weight > 0.0 else _SHARES[level]
    means, pairs, _ = (share * error * stage.share for share in shares)
    if coupled:
        alone = critical_values.each_and_fresh(means, arms, stage.fresh_weight)
        return Critical(alone, alone, critical_values.pairs_beside(pairs, arms, alone))
    kinds = 2 if stage.after > 0 else 1
    alone = critical_values.one_sided(means / (2 * kinds * arms))
    return Critical(alone, alone, critical_values.one_sided(pairs / (arms * (arms - 1))))
