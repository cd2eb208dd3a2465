"""An experiment whose numbers of pulls were known in advance: which of them are used, and by which limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from banditto.core.errors import ContractError, InvalidArgument
from banditto.core.rewards import Rewards
from banditto.engine.observations import Observations, SeenBatch
from banditto.measure.analysis import gap_bands, stages
from banditto.measure.analysis.analysis import Design
from banditto.measure.analysis.estimates import ArmEstimate, Data, Difference
from banditto.measure.analysis.limits import (
    BernsteinLimits,
    BinomialLimits,
    ChernoffLimits,
    Limits,
    NormalLimits,
    SubgaussianLimits,
    Together,
    difference,
)
from banditto.measure.analysis.stages import Critical, PullStage
from banditto.policies.policy import Level, Policy, own_level


class UsedSums(NamedTuple):
    """An arm's pulls that are used, and the sums of their rewards and of the squares."""

    pulls: int
    total: float
    squares: float | None


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
        seen = "as all of them were" if with_squares else "as their sums allow"
        assumes = f"rewards are one of the two ends of their range, {seen}"
        return LimitKind("Clopper-Pearson", assumes, True, lambda sums: BinomialLimits(round(sums.total), sums.pulls))
    assumes = "rewards are within their range"
    if not with_squares:
        return LimitKind("Chernoff", assumes, False, lambda sums: ChernoffLimits(sums.total, sums.pulls))
    return LimitKind(
        "empirical Bernstein", assumes, False, lambda sums: BernsteinLimits(sums.total, sums.squares or 0.0, sums.pulls)
    )


class Planned:
    """Estimates for an experiment whose numbers of pulls were fixed in advance, by stage."""

    def __init__(
        self,
        seen: Observations,
        policy: Policy[Any],
        confidence: float,
        kind: LimitKind,
        values: Sequence[SeenBatch] | None = None,  # of a metric, for each batch; the rewards by default
    ) -> None:
        self._seen, self._confidence, self._kind = seen, confidence, kind
        self._level: Level = own_level(policy)
        self._arms = len(seen.names)
        self._stages = stages.stages_of(policy, seen.horizon)
        values = seen.batches if values is None else values
        tests, self._fresh = split(seen, values)
        if not tests or not self._stages:
            raise InvalidArgument("source", "no complete batch", "an experiment with a batch that is decided")
        # what each arm was paid at the stages that it came to, (arm, stage); None where it has another number of pulls
        self._sums = [_at_stages(tests, values, arm, self._stages) for arm in range(self._arms)]
        self._last = [max((k for k, sums in enumerate(row) if sums is not None), default=-1) for row in self._sums]
        if min(self._last) < 0:  # batches that this policy does not plan
            raise InvalidArgument("source", "no complete batch", "an experiment with a batch that is decided")
        if self._fresh is not None and seen.winner is not None:
            before = self._stages[self._last[seen.winner]].pulls
            self._fresh = self._fresh if self._fresh.pulls >= before else None  # what there is more of says more
        if values is seen.batches:  # bands are of gaps between rewards, whatever a metric's means are
            self._share_by_gap(policy)

    def _share_by_gap(self, policy: Policy[Any]) -> None:
        """Spend the error by the gaps that the intervals still allow, starting from all gaps (Lemma 4)."""
        planned = self._stages
        bands = gap_bands.bands_of(policy, planned, self._seen.rewards)
        gaps = (0.0, math.inf)
        before: tuple[PullStage, ...] = ()
        while len(bands) > 1 and before != self._stages:  # each time there are fewer bands, or all is as it was
            before, self._stages = self._stages, gap_bands.shared_by(planned, bands, *gaps)
            gaps = self._gaps()

    def _gaps(self) -> tuple[float, float]:
        """Return the ends of what the gap of the two best arms can be, by the current intervals, in the policy's units.

        It is the smallest difference of the best arm to another; and where another arm is the best, at most the
        difference of that arm to this one.
        """
        best = self.compared()
        ends = [self._apart(best, arm) for arm in range(self._arms) if arm != best]
        least, most = min(low for low, _ in ends), min(high for _, high in ends)
        return max(0.0, least), max(0.0, most, -least)

    def _critical(self, number: int) -> Critical:
        error = 1.0 - self._confidence
        return stages.critical_at(self._stages[number], self._arms, error, self._level, self._kind.coupled)

    def _known(self, number: int, arm: int) -> bool:
        """Return whether an arm has values at a stage; a metric may have none there."""
        sums = self._sums[arm][number]
        return sums is not None and sums.pulls > 0

    def _limits(self, number: int, arm: int) -> Limits:
        sums = self._sums[arm][number]
        assert sums is not None  # asked for only where the arm came to this stage
        return self._kind.limits(sums)

    @property
    def design(self) -> Design:
        """What the intervals rest on: pulls after a choice, several numbers of pulls, or one."""
        return "fresh" if self._fresh is not None else "looks" if len(self._stages) > 1 else "one batch"

    def arms(self) -> tuple[ArmEstimate, ...]:
        """Return an estimate with its interval for every arm."""
        return tuple(self._arm(arm) for arm in range(self._arms))

    def against_all(self, best: int) -> tuple[Difference, ...]:
        """Return the differences of one arm's mean to that of every other arm with values."""
        others = [arm for arm in range(self._arms) if arm != best]
        return tuple(one for arm in others if (one := self._against(best, arm)) is not None)

    def compared(self) -> int:
        """Return the arm to compare with all others: the winner, or the largest mean among arms played longest."""
        if self._seen.winner is not None:
            return self._seen.winner
        longest = max(self._last)
        playing = [arm for arm in range(self._arms) if self._last[arm] == longest]
        return max(playing, key=lambda arm: self._limits(longest, arm).mean)

    def _arm(self, arm: int) -> ArmEstimate:
        """Return one arm's estimate, from pulls after the commit for the winner, else from its last stage."""
        seen = self._seen
        if self._fresh is not None and arm == seen.winner:
            place = stages.fresh_place(1.0 - self._confidence, self._level)
            limits, used = self._kind.limits(self._fresh), self._fresh.pulls
            data: Data = "after"
        else:
            place = self._critical(self._last[arm]).mean
            sums = self._sums[arm][self._last[arm]]
            if sums is None or not sums.pulls:
                return ArmEstimate.unknown(seen.names[arm])
            limits, used, data = self._kind.limits(sums), sums.pulls, "first"
        return estimated(seen, arm, limits, place, used, data)

    def _against(self, best: int, arm: int) -> Difference | None:
        number, fresh = self._common(best, arm), self._fresh if best == self._seen.winner else None
        if not self._known(number, arm) or not (fresh or self._known(number, best)):
            return None
        one = self._kind.limits(fresh) if fresh else self._limits(number, best)
        estimate = one.mean - self._limits(number, arm).mean
        return compared_with(self._seen, best, arm, self._apart(best, arm), estimate)

    def _common(self, best: int, arm: int) -> int:
        """Return the last stage that both arms came to."""
        return max(k for k, both in enumerate(zip(self._sums[best], self._sums[arm], strict=True)) if all(both))

    def _apart(self, best: int, arm: int) -> tuple[float, float]:
        """Return limits of the difference of two arms in the policy's units; pulls after the commit are used if any."""
        number = self._common(best, arm)
        stage, critical = self._stages[number], self._critical(number)
        other = self._limits(number, arm)
        if self._fresh is not None and best == self._seen.winner:
            weight = stage.fresh_weight
            together = Together(
                p=weight,
                q=math.sqrt(1.0 - weight * weight),
                line=critical.after_commit,
                first=stages.fresh_place(1.0 - self._confidence, self._level),
                second=critical.mean,
            )
            return difference(self._kind.limits(self._fresh), other, together)
        half = math.sqrt(0.5)
        together = Together(p=half, q=half, line=critical.pair, first=critical.mean, second=critical.mean)
        return difference(self._limits(number, best), other, together)


def estimated(seen: Observations, arm: int, limits: Limits, place: float, used: int, data: Data) -> ArmEstimate:
    """Return an arm's mean, with its limits at a place, in the rewards' own units."""
    at = np.array([place])
    return ArmEstimate(
        name=seen.names[arm],
        estimate=seen.own_units(limits.mean),
        low=seen.own_units(float(limits.lower(at)[0])),
        high=seen.own_units(float(limits.upper(at)[0])),
        pulls=seen.pulls[arm],
        used=used,
        data=data,
    )


def compared_with(seen: Observations, one: int, other: int, limits: tuple[float, float], estimate: float) -> Difference:
    """Return the difference of two arms' means, with its limits, in the rewards' own units."""
    return Difference(
        arm=seen.names[one],
        against=seen.names[other],
        estimate=seen.own_difference(estimate),
        low=seen.own_difference(limits[0]),
        high=seen.own_difference(limits[1]),
    )


def split(seen: Observations, values: Sequence[SeenBatch]) -> tuple[list[SeenBatch], UsedSums | None]:
    """Split complete batches into those that compare arms, and the winner's sums after a commit (None without)."""
    tests = [batch for batch in seen.batches if sum(1 for count in batch.counts if count) > 1]
    rest = seen.batches[len(tests) :]
    if any(batch not in tests for batch in seen.batches[: len(tests)]):
        raise ContractError(f"{seen.policy.name} compared arms after it had committed to one")
    if own_level(seen.policy) == "winner" or seen.winner is None or not rest:
        return tests, None
    if len(rest) > 1:  # how many pulls there are must not depend on what they pay
        raise ContractError(f"{seen.policy.name} played several batches after it had committed to an arm")
    fresh = added(values[len(tests) :], seen.winner)
    return tests, fresh if fresh.pulls else None


def _at_stages(
    tests: Sequence[SeenBatch], values: Sequence[SeenBatch], arm: int, planned: Sequence[PullStage]
) -> list[UsedSums | None]:
    """Return an arm's sums up to each stage that it came to; None for the other stages."""
    ends, pulls = {}, 0
    for number, batch in enumerate(tests, 1):
        if not batch.counts[arm]:
            break
        pulls += batch.counts[arm]
        ends[pulls] = number
    return [added(values[: ends[stage.pulls]], arm) if stage.pulls in ends else None for stage in planned]


def added(batches: Sequence[SeenBatch], arm: int) -> UsedSums:
    """Return an arm's pulls, rewards and squares, added up over these batches."""
    squares = [batch.squares for batch in batches]
    known = [row[arm] for row in squares if row is not None]
    return UsedSums(
        sum(batch.counts[arm] for batch in batches),
        math.fsum(batch.totals[arm] for batch in batches),
        math.fsum(known) if len(known) == len(squares) else None,
    )
