"""An experiment of any policy: limits that hold at every number of pulls, whatever it depends on."""

from __future__ import annotations

import math

from banditto.engine.observations import Observations
from banditto.measure.analysis.estimates import ArmEstimate, Difference
from banditto.measure.analysis.limits import BetaMixture, NormalMixture, Together, difference
from banditto.measure.analysis.planned import added, compared_with, estimated

_PRIOR_SHARE = 50  # a normal prior counts for this part of an arm's pulls, if all arms get as many


class AnyTime:
    """Estimates and differences from all pulls so far, with intervals that hold at any time."""

    def __init__(self, seen: Observations, confidence: float) -> None:
        self._seen, self._error = seen, 1.0 - confidence
        self._names = seen.names
        self._sums = [added(seen.batches, arm) for arm in range(len(seen.names))]
        self._limits = {arm: self._limits_of(arm) for arm, sums in enumerate(self._sums) if sums.pulls}

    def _limits_of(self, arm: int) -> BetaMixture | NormalMixture:
        sums, rewards = self._sums[arm], self._seen.rewards
        if rewards.kind == "bounded":
            return BetaMixture(sums.total, sums.pulls)
        prior = max(1.0, self._seen.horizon / (_PRIOR_SHARE * len(self._names)))
        return NormalMixture(sums.total, sums.pulls, rewards.sigma, prior)

    @property
    def method(self) -> tuple[str, str]:
        """The name of the limits, and what they assume of rewards."""
        rewards = self._seen.rewards
        if rewards.kind == "bounded":
            return "beta mixture", "rewards are within their range"
        return "normal mixture", f"rewards are subgaussian with sigma {rewards.sigma:g}"

    def compared(self) -> int:
        """Return the arm to compare with all others: the winner, or the arm with the largest mean."""
        if self._seen.winner in self._limits and self._seen.winner is not None:
            return self._seen.winner
        return max(self._limits, key=lambda arm: self._limits[arm].mean)

    def arms(self) -> tuple[ArmEstimate, ...]:
        """Return an estimate with its interval for every arm."""
        return tuple(self._arm(arm) for arm in range(len(self._names)))

    def _arm(self, arm: int) -> ArmEstimate:
        if arm not in self._limits:
            return ArmEstimate.unknown(self._names[arm])
        place = math.log(2.0 * len(self._names) / self._error)
        return estimated(self._seen, arm, self._limits[arm], place, self._sums[arm].pulls, "all")

    def against_all(self, best: int) -> tuple[Difference, ...]:
        """Return the differences of one arm's mean to that of every other arm that was pulled."""
        return tuple(self._against(best, arm) for arm in self._limits if arm != best)

    def _against(self, best: int, arm: int) -> Difference:
        arms, one, other = len(self._names), self._limits[best], self._limits[arm]
        line = math.log(arms * (arms - 1) / self._error)
        together = Together(p=1.0, q=1.0, line=line, first=line - other.least, second=line - one.least)
        return compared_with(self._seen, best, arm, difference(one, other, together), one.mean - other.mean)
