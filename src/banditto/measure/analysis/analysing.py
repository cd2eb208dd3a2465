"""From what was seen to estimates and intervals: which data are used, and by which limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from banditto.core.errors import ContractError, InvalidArgument
from banditto.core.exact import Real, real
from banditto.core.rewards import Rewards
from banditto.engine.observations import Observations, SeenBatch, check_told
from banditto.measure.analysis import stages
from banditto.measure.analysis.analysis import Analysis, ArmEstimate, Coverage, Difference
from banditto.measure.analysis.limits import (
    BernsteinLimits,
    BetaMixture,
    BinomialLimits,
    ChernoffLimits,
    Limits,
    NormalLimits,
    NormalMixture,
    SubgaussianLimits,
    Together,
    difference,
)
from banditto.measure.analysis.stages import Critical
from banditto.policies.policy import Level, Policy, own_level

_PRIOR_SHARE = 50  # a normal prior counts for this part of an arm's pulls, if all arms get as many


class UsedSums(NamedTuple):
    """An arm's pulls that are used, and the sums of their rewards and of the squares."""

    pulls: int
    total: float
    squares: float | None


def checked_confidence(confidence: Real) -> float:
    """Check a confidence; the number comes back."""
    allowed = "a number between 0.5 and 1, both excluded"
    value = real(confidence, "confidence", allowed)
    if not 0.5 < value < 1.0:
        raise InvalidArgument("confidence", confidence, allowed)
    return value


def analysis_of(seen: Observations, confidence: float = 0.95, binary: bool | None = None) -> Analysis:
    """Estimate every arm and the winner against all others, with intervals that hold at once.

    `binary` says whether rewards can be nothing but the ends of their range; by default, whether all of them were.
    """
    confidence = checked_confidence(confidence)
    check_told(seen.names, seen.pulls)
    if binary is None:
        binary = seen.binary
    elif binary and not seen.binary:
        raise InvalidArgument("binary", True, "False: some rewards are between the ends of their range")
    kind = limits_for(seen.rewards, binary, all(batch.squares is not None for batch in seen.batches))
    if stages.has_stages(seen.policy) and stages.can_begin(seen.policy, seen.horizon):
        return _Planned(seen, seen.policy, confidence, kind).analysis()
    return _AnyTime(seen, confidence).analysis()


class LimitKind(NamedTuple):
    """How limits of a mean are found: the words for it, what it assumes, and the function."""

    words: str
    assumes: str
    coupled: bool
    limits: Callable[[UsedSums], Limits]


def limits_for(rewards: Rewards, binary: bool, with_squares: bool) -> LimitKind:
    """Choose the limits that rewards of this kind allow."""
    sigma = rewards.sigma
    if rewards.kind == "gaussian":
        assumes = f"rewards are normal, with a standard deviation of at most {sigma:g}"
        return LimitKind("normal", assumes, True, lambda sums: NormalLimits(sums.total, sums.pulls, sigma))
    if rewards.kind == "subgaussian":
        assumes = f"rewards are subgaussian with sigma {sigma:g}"
        return LimitKind("subgaussian", assumes, False, lambda sums: SubgaussianLimits(sums.total, sums.pulls, sigma))
    if binary:
        assumes = "rewards are one of the two ends of their range, as all of them were"
        return LimitKind("Clopper-Pearson", assumes, True, lambda sums: BinomialLimits(round(sums.total), sums.pulls))
    assumes = "rewards are within their range"
    if not with_squares:
        return LimitKind("Chernoff", assumes, False, lambda sums: ChernoffLimits(sums.total, sums.pulls))
    return LimitKind(
        "empirical Bernstein", assumes, False, lambda sums: BernsteinLimits(sums.total, sums.squares or 0.0, sums.pulls)
    )


class _Planned:
    """An experiment whose numbers of pulls were known in advance: fixed numbers, and fresh pulls after a commit."""

    def __init__(self, seen: Observations, policy: Policy[Any], confidence: float, kind: LimitKind) -> None:
        self._seen, self._confidence, self._kind = seen, confidence, kind
        self._level: Level = own_level(policy)
        self._arms = len(seen.names)
        self._stages = stages.stages_of(policy, seen.horizon)
        tests, self._fresh = split(seen)
        tests = as_described(tests, stages.described(policy))
        if not tests:
            raise InvalidArgument("source", "no complete batch", "an experiment with a batch that is decided")
        # an arm's last stage: it was played in all batches up to there
        self._last = [self._stage_of(arm, tests) for arm in range(self._arms)]
        if self._fresh is not None and seen.winner is not None:
            before = self._stages[self._last[seen.winner]].pulls
            self._fresh = self._fresh if self._fresh.pulls >= before else None  # what there is more of says more
        self._sums = [
            [added(tests[: stage.batch + 1], arm) for arm in range(self._arms)] for stage in self._stages
        ]  # (stage, arm); of arms that were dropped before, fewer pulls than the stage's, and never used

    def _stage_of(self, arm: int, tests: Sequence[SeenBatch]) -> int:
        """The number of the last stage up to which an arm was always played."""
        played = 0
        while played < len(tests) and tests[played].counts[arm]:
            played += 1
        found = [number for number, stage in enumerate(self._stages) if stage.batch < played]
        if not found:
            raise ContractError(f"arm {self._seen.names[arm]} was never played in a whole stage")
        return found[-1]

    def _critical(self, number: int) -> Critical:
        error = 1.0 - self._confidence
        return stages.critical_at(self._stages[number], self._arms, error, self._level, self._kind.coupled)

    def _limits(self, number: int, arm: int) -> Limits:
        sums = self._sums[number][arm]
        if sums.pulls != self._stages[number].pulls:
            raise ContractError(f"{sums.pulls} pulls of an arm where {self._stages[number].pulls} were planned")
        return self._kind.limits(sums)

    def analysis(self) -> Analysis:
        seen = self._seen
        best = self._compared()
        arms = tuple(self._arm(arm) for arm in range(self._arms))
        differences = tuple(self._against(best, arm) for arm in range(self._arms) if arm != best)
        return Analysis(
            observations=seen,
            arms=arms,
            differences=with_ratios(arms, differences, seen),
            compared=best,
            confidence=self._confidence,
            level=self._level,
            coverage=Coverage(
                proved=True,
                method=self._kind.words,
                assumes=self._kind.assumes,
                design="fresh" if self._fresh is not None else "looks" if len(self._stages) > 1 else "one batch",
            ),
        )

    def _compared(self) -> int:
        """The winner, or while there is none the arm with the largest mean among those played longest."""
        if self._seen.winner is not None:
            return self._seen.winner
        longest = max(self._last)
        playing = [arm for arm in range(self._arms) if self._last[arm] == longest]
        return max(playing, key=lambda arm: self._sums[longest][arm].total)

    def _arm(self, arm: int) -> ArmEstimate:
        seen = self._seen
        if self._fresh is not None and arm == seen.winner:
            place = stages.fresh_place(1.0 - self._confidence, self._level)
            limits, used, data = self._kind.limits(self._fresh), self._fresh.pulls, "after"
        else:
            place = self._critical(self._last[arm]).mean
            limits, used, data = self._limits(self._last[arm], arm), self._stages[self._last[arm]].pulls, "first"
        at = np.array([place])
        return ArmEstimate(
            name=seen.names[arm],
            estimate=seen.own_units(limits.mean),
            low=seen.own_units(float(limits.lower(at)[0])),
            high=seen.own_units(float(limits.upper(at)[0])),
            pulls=seen.pulls[arm],
            used=used,
            data="after" if data == "after" else "first",
        )

    def _against(self, best: int, arm: int) -> Difference:
        seen = self._seen
        number = min(self._last[best], self._last[arm])
        stage, critical = self._stages[number], self._critical(number)
        other = self._limits(number, arm)
        if self._fresh is not None and best == seen.winner:
            one: Limits = self._kind.limits(self._fresh)
            weight = stage.fresh_weight
            together = Together(
                p=weight,
                q=math.sqrt(1.0 - weight * weight),
                line=critical.after_commit,
                first=stages.fresh_place(1.0 - self._confidence, self._level),
                second=critical.mean,
            )
        else:
            one = self._limits(number, best)
            half = math.sqrt(0.5)
            together = Together(p=half, q=half, line=critical.pair, first=critical.mean, second=critical.mean)
        low, high = difference(one, other, together)
        return Difference(
            arm=seen.names[best],
            against=seen.names[arm],
            estimate=seen.own_difference(one.mean - other.mean),
            low=seen.own_difference(low),
            high=seen.own_difference(high),
        )


def split(seen: Observations) -> tuple[list[SeenBatch], UsedSums | None]:
    """Split complete batches into those that compare arms, and the winner's pulls after a commit, if there are any."""
    tests = [batch for batch in seen.batches if sum(1 for count in batch.counts if count) > 1]
    rest = seen.batches[len(tests) :]
    if any(batch not in tests for batch in seen.batches[: len(tests)]):
        raise ContractError(f"{seen.policy.name} compared arms after it had committed to one")
    if own_level(seen.policy) == "winner" or seen.winner is None or not rest:
        return tests, None
    fresh = added(rest, seen.winner)
    return tests, fresh if fresh.pulls else None


def as_described(tests: Sequence[SeenBatch], pulls: Sequence[int]) -> list[SeenBatch]:
    """Keep the batches up to the first whose size no protocol fixes, as that of a final choice among who is left."""
    both = zip(tests, pulls, strict=False)
    return [batch for batch, _ in takewhile(lambda pair: set(pair[0].counts) <= {0, pair[1]}, both)]


def added(batches: Sequence[SeenBatch], arm: int) -> UsedSums:
    """Add up what an arm paid in these batches."""
    squares = [batch.squares for batch in batches]
    known = [row[arm] for row in squares if row is not None]
    return UsedSums(
        sum(batch.counts[arm] for batch in batches),
        math.fsum(batch.totals[arm] for batch in batches),
        math.fsum(known) if len(known) == len(squares) else None,
    )


class _AnyTime:
    """An experiment of any policy: limits that hold at every number of pulls, whatever it depends on."""

    def __init__(self, seen: Observations, confidence: float) -> None:
        self._seen, self._confidence = seen, confidence
        self._rewards = seen.rewards
        self._arms = len(seen.names)
        self._sums = [added(seen.batches, arm) for arm in range(self._arms)]

    def _limits(self, arm: int) -> BetaMixture | NormalMixture:
        sums = self._sums[arm]
        if self._rewards.kind == "bounded":
            return BetaMixture(sums.total, sums.pulls)
        prior = max(1.0, self._seen.horizon / (_PRIOR_SHARE * self._arms))
        return NormalMixture(sums.total, sums.pulls, self._rewards.sigma, prior)

    def analysis(self) -> Analysis:
        seen, error = self._seen, 1.0 - self._confidence
        played = [arm for arm in range(self._arms) if self._sums[arm].pulls]
        limits = {arm: self._limits(arm) for arm in played}
        place = np.array([math.log(2.0 * self._arms / error)])
        best = seen.winner
        if best is None or best not in limits:
            best = max(played, key=lambda arm: limits[arm].mean)
        estimates = []
        for arm, name in enumerate(seen.names):
            if arm not in limits:
                estimates.append(ArmEstimate.unknown(name))
                continue
            found = limits[arm]
            estimates.append(
                ArmEstimate(
                    name=name,
                    estimate=seen.own_units(found.mean),
                    low=seen.own_units(float(found.lower(place)[0])),
                    high=seen.own_units(float(found.upper(place)[0])),
                    pulls=seen.pulls[arm],
                    used=self._sums[arm].pulls,
                    data="all",
                )
            )
        differences = []
        for arm in played:
            if arm == best:
                continue
            one, other = limits[best], limits[arm]
            line = math.log(self._arms * (self._arms - 1) / error)
            together = Together(p=1.0, q=1.0, line=line, first=line - other.least, second=line - one.least)
            low, high = difference(one, other, together)
            differences.append(
                Difference(
                    arm=seen.names[best],
                    against=seen.names[arm],
                    estimate=seen.own_difference(one.mean - other.mean),
                    low=seen.own_difference(low),
                    high=seen.own_difference(high),
                )
            )
        bounded = self._rewards.kind == "bounded"
        return Analysis(
            observations=seen,
            arms=tuple(estimates),
            differences=with_ratios(estimates, differences, seen),
            compared=best,
            confidence=self._confidence,
            level=own_level(seen.policy),
            coverage=Coverage(
                proved=True,
                method="beta mixture" if bounded else "normal mixture",
                assumes="rewards are within their range"
                if bounded
                else f"rewards are subgaussian with sigma {self._rewards.sigma:g}",
                design="any time",
            ),
        )


def with_ratios(
    arms: Sequence[ArmEstimate], differences: Sequence[Difference], seen: Observations
) -> tuple[Difference, ...]:
    """Add the ratio of the two means to each difference, where rewards begin at 0; from the means' own intervals."""
    if seen.ends is None or seen.ends[0] != 0.0:
        return tuple(differences)
    known = {arm.name: arm for arm in arms}
    return tuple(one.with_ratio(known[one.arm], known[one.against]) for one in differences)
