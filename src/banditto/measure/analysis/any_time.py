"""An experiment of any policy: limits that hold at every number of pulls, whatever it depends on."""

from __future__ import annotations

import math

import numpy as np

from banditto.engine.observations import Observations
from banditto.measure.analysis.estimates import ArmEstimate, Difference
from banditto.measure.analysis.limits import BetaMixture, NormalMixture, Together, difference
from banditto.measure.analysis.planned import added

_PRIOR_SHARE = 50  # a normal prior counts for this part of an arm's pulls, if all arms get as many


class AnyTime:
    """Estimates and differences of all pulls so far, as a policy chose them."""

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
        """What the limits are called, and what they assume."""
        rewards = self._seen.rewards
        if rewards.kind == "bounded":
            return "beta mixture", "rewards are within their range"
        return "normal mixture", f"rewards are subgaussian with sigma {rewards.sigma:g}"

    def compared(self) -> int:
        """Return the winner, or where none was named the arm with the largest mean."""
        if self._seen.winner in self._limits and self._seen.winner is not None:
            return self._seen.winner
        return max(self._limits, key=lambda arm: self._limits[arm].mean)

    def arms(self) -> tuple[ArmEstimate, ...]:
        """Estimate every arm."""
        return tuple(self._arm(arm) for arm in range(len(self._names)))

    def _arm(self, arm: int) -> ArmEstimate:
        seen = self._seen
        if arm not in self._limits:
            return ArmEstimate.unknown(self._names[arm])
        limits, place = self._limits[arm], np.array([math.log(2.0 * len(self._names) / self._error)])
        return ArmEstimate(
            name=self._names[arm],
            estimate=seen.own_units(limits.mean),
            low=seen.own_units(float(limits.lower(place)[0])),
            high=seen.own_units(float(limits.upper(place)[0])),
            pulls=seen.pulls[arm],
            used=self._sums[arm].pulls,
            data="all",
        )

    def against_all(self, best: int) -> tuple[Difference, ...]:
        """Compare one arm with every other that was pulled."""
        return tuple(self._against(best, arm) for arm in self._limits if arm != best)

    def _against(self, best: int, arm: int) -> Difference:
        seen, arms = self._seen, len(self._names)
        one, other = self._limits[best], self._limits[arm]
        line = math.log(arms * (arms - 1) / self._error)
        together = Together(p=1.0, q=1.0, line=line, first=line - other.least, second=line - one.least)
        low, high = difference(one, other, together)
        return Difference(
            arm=self._names[best],
            against=self._names[arm],
            estimate=seen.own_difference(one.mean - other.mean),
            low=seen.own_difference(low),
            high=seen.own_difference(high),
        )
