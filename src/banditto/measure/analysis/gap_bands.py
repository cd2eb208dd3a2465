"""At which stage an experiment is due to end, by the gap of the two best arms: where a ladder spends its error.

A ladder that names no gap may end at any of its stages, and intervals must hold at all of them. But which of them is
likely depends on the gap, and an interval is a set of truths that were not refuted: each truth may be tested with
shares of the error of its own, as long as they add up to 1. So half of the error is spent where the policy itself
would end with such a gap and without noise, and the other half as if nothing were known (docs/analyse.md, Lemma 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.rewards import Rewards
from banditto.measure.analysis.stages import PullStage
from banditto.policies.policy import Policy

_DUE = 0.5  # of the error is spent where the experiment is due to end
_STEP = math.sqrt(2.0)  # between the ends of a band: a ladder's stages are about twice as far apart, or more
_TOSSES = 32  # executions of each gap, with other coins


class GapBand(NamedTuple):
    """Gaps from `low` to `high`, and the shares of the error that stages have if the gap is one of them."""

    low: float
    high: float
    shares: tuple[float, ...]


def bands_of(policy: Policy[Any], planned: Sequence[PullStage], rewards: Rewards) -> tuple[GapBand, ...]:
    """Return bands of gaps, the widest first, each with its stages' shares of the error, which add up to 1.

    There is one band for all gaps where the policy names a gap, or has one stage.
    """
    own = tuple(stage.share for stage in planned)
    if len(planned) == 1 or getattr(policy, "gap", None) is not None:
        return (GapBand(0.0, math.inf, own),)
    widest = rewards.widest_gap
    least = min(widest / _STEP, rewards.deviation / math.sqrt(policy.horizon))  # nobody finds a smaller one
    edges = widest * _STEP ** -np.arange(1.0, 2.0 + math.ceil(math.log(widest / least, _STEP)))
    inside = np.append(edges * math.sqrt(_STEP), 0.0)  # a gap of each band; none in the last
    ends = _ends(policy, np.repeat(inside, _TOSSES), rewards.kind == "bounded")
    due = np.searchsorted([stage.pulls for stage in planned], ends, side="right") - 1
    due = np.maximum(due, 0).reshape(len(inside), _TOSSES)
    often = np.stack([(due == number).mean(axis=1) for number in range(len(planned))], axis=1)  # (band, stage)
    shares = (1.0 - _DUE) * np.asarray(own) + _DUE * often
    lows, highs = [*edges.tolist(), 0.0], [math.inf, *edges.tolist()]
    return tuple(GapBand(low, high, tuple(row.tolist())) for low, high, row in zip(lows, highs, shares, strict=True))


def _ends(policy: Policy[Any], gaps: FloatArray, whole: bool) -> IntArray:
    """Return each arm's pulls when it ends, for every gap, if the first arm leads by it and there is no noise."""
    state, coins = policy.init(len(gaps)), Coins(0, 0, len(gaps))
    pays = np.zeros((len(gaps), policy.arms))
    pays[:, 0] = gaps
    most = np.zeros(len(gaps), dtype=np.int64)
    spent = np.zeros(len(gaps), dtype=np.int64)
    while (plan := policy.plan(state)) is not None:
        pulls = np.asarray(plan)
        testing = np.count_nonzero(pulls, axis=1) > 1
        if not testing.any():
            break
        most += np.where(testing, pulls.max(axis=1), 0)
        spent += pulls.sum(axis=1)
        if (spent >= policy.horizon).all():
            break
        totals = pays * pulls
        state = policy.decide(state, np.round(totals) if whole else totals, coins)
    return most


def shared_by(planned: Sequence[PullStage], bands: Sequence[GapBand], low: float, high: float) -> tuple[PullStage, ...]:
    """Return the stages, each with its smallest share in any band that has gaps from `low` to `high`."""
    meeting = [band.shares for band in bands if band.low <= high and low <= band.high]
    return tuple(
        stage._replace(share=min(shares[number] for shares in meeting)) for number, stage in enumerate(planned)
    )
