"""Limits of one arm's mean for any confidence, by what is known of its rewards.

All limits are asked for by a place x on the scale of a standard normal variable: `lower(x)` exceeds the true mean with
probability at most P(G > x), and `upper(x)` falls short of it with at most that. Both widen as x rises, so that limits
of two arms can be combined as their normal variables are (docs/analyse.md, Lemma 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import betainc, betaincinv, betaln, log_ndtr, ndtr, xlog1py, xlogy

from banditto.core.arrays import FloatArray


class Limits(Protocol):
    """Confidence limits of a mean; a place is a point on the normal scale, such as 1.96, and sets the tail."""

    @property
    def mean(self) -> float:
        """The average of the rewards that were used."""

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the lower limit of the mean for each place."""

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the upper limit of the mean for each place."""


@dataclass(frozen=True)
class NormalLimits:
    """Limits for Gaussian rewards whose standard deviation is at most sigma."""

    total: float
    count: int
    sigma: float
    coupled: ClassVar[bool] = True  # lower and upper limits are those of one and the same normal variable

    @property
    def mean(self) -> float:
        """The average of the rewards that were used."""
        return self.total / self.count

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the mean less x standard errors."""
        return self.mean - places * (self.sigma / math.sqrt(self.count))

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the mean plus x standard errors."""
        return self.mean + places * (self.sigma / math.sqrt(self.count))


@dataclass(frozen=True)
class BinomialLimits:
    """Exact limits for rewards that are 0 or 1 (Clopper and Pearson 1934)."""

    successes: int
    count: int
    coupled: ClassVar[bool] = True

    @property
    def mean(self) -> float:
        """The share of ones."""
        return self.successes / self.count

    def lower(self, places: FloatArray) -> FloatArray:
        """Return exact lower limits; 0 without a success."""
        return _beta_quantile(self.successes, self.count, ndtr(-places))

    def upper(self, places: FloatArray) -> FloatArray:
        """Return exact upper limits; 1 without a failure."""
        return 1.0 - _beta_quantile(self.count - self.successes, self.count, ndtr(-places))


def _beta_quantile(successes: int, count: int, tails: FloatArray) -> FloatArray:
    """Find p with P(X >= successes) = tail for a binomial X, or a little less."""
    if successes == 0:
        return np.zeros_like(tails)
    a, b = float(successes), count - successes + 1.0
    found = np.asarray(betaincinv(a, b, tails))
    wrong = ~(betainc(a, b, found) <= tails * (1.0 + 1e-9))  # at a few places, such as a = 1000, it is off by far
    if np.any(wrong):
        low, high = np.zeros_like(tails), np.ones_like(tails)
        for _ in range(120):
            middle = (low + high) / 2.0
            below = betainc(a, b, middle) <= tails
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found = np.where(wrong, low, found)
    return found


@dataclass(frozen=True)
class BernsteinLimits:
    """Limits for rewards in [0, 1] by their sample variance (Maurer and Pontil 2009, Theorem 4)."""

    total: float
    squares: float  # the sum of the squared rewards
    count: int
    coupled: ClassVar[bool] = False

    @property
    def mean(self) -> float:
        """The average of the rewards that were used."""
        return self.total / self.count

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the mean less sqrt(2 V log(2/tail)/n) + 7 log(2/tail)/(3(n-1)); 0 where that is negative."""
        return np.maximum(self.mean - self._reach(places), 0.0)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the mean plus the same amount as in `lower`; 1 where that is more than 1."""
        return np.minimum(self.mean + self._reach(places), 1.0)

    def _reach(self, places: FloatArray) -> FloatArray:
        if self.count < 2:
            return np.ones_like(places)
        variance = max(0.0, self.squares - self.total**2 / self.count) / (self.count - 1)
        logs = math.log(2.0) - log_ndtr(-places)
        return np.asarray(np.sqrt(2.0 * variance * logs / self.count) + 7.0 * logs / (3.0 * (self.count - 1)))


@dataclass(frozen=True)
class ChernoffLimits:
    """Limits for rewards in [0, 1] by their sum alone: n kl(mean, mu) <= log(1/tail) (Chernoff, Hoeffding 1963)."""

    total: float
    count: int
    coupled: ClassVar[bool] = False

    @property
    def mean(self) -> float:
        """The average of the rewards that were used."""
        return min(1.0, max(0.0, self.total / self.count))

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the smallest mu with n kl(mean, mu) <= log(1/tail), for each place."""
        return _furthest(self.mean, 0.0, -log_ndtr(-places) / self.count)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the largest mu with n kl(mean, mu) <= log(1/tail), for each place."""
        return _furthest(self.mean, 1.0, -log_ndtr(-places) / self.count)


def _furthest(mean: float, end: float, allowed: FloatArray) -> FloatArray:
    """Return mu between a mean and an end of [0, 1] with kl(mean, mu) = allowed, rounded towards the end."""
    near, far = np.full_like(allowed, mean), np.full_like(allowed, end)
    for _ in range(60):
        middle = (near + far) / 2.0
        divergence = xlogy(mean, mean) - xlogy(mean, middle) + xlog1py(1.0 - mean, -mean)
        divergence = divergence - xlog1py(1.0 - mean, -middle)
        inside = divergence <= allowed
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return far


@dataclass(frozen=True)
class ApproximateLimits:
    """Approximate limits for numbers of any range: as if their mean were normal, with the sample's deviation."""

    total: float
    squares: float
    count: int
    coupled: ClassVar[bool] = True

    @property
    def mean(self) -> float:
        """The average of the numbers that were used."""
        return self.total / self.count

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the mean less x estimated standard errors."""
        return self.mean - places * self._error

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the mean plus x estimated standard errors."""
        return self.mean + places * self._error

    @property
    def _error(self) -> float:
        if self.count < 2:
            return math.inf
        rounding = self.count * 2.0**-52 * self.squares  # what sums of large numbers may lose
        spread = max(0.0, self.squares - self.total**2 / self.count) + rounding
        return math.sqrt(spread / (self.count - 1) / self.count)


@dataclass(frozen=True)
class SubgaussianLimits:
    """Limits for sigma-subgaussian rewards: the mean plus or minus sigma sqrt(2 log(1/tail)/n)."""

    total: float
    count: int
    sigma: float
    coupled: ClassVar[bool] = False

    @property
    def mean(self) -> float:
        """The average of the rewards that were used."""
        return self.total / self.count

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the mean less sigma sqrt(2 log(1/tail)/n)."""
        return self.mean - self._reach(places)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the mean plus sigma sqrt(2 log(1/tail)/n)."""
        return self.mean + self._reach(places)

    def _reach(self, places: FloatArray) -> FloatArray:
        return np.asarray(self.sigma * np.sqrt(-2.0 * log_ndtr(-places) / self.count))


# -- at any number of pulls, whatever it depends on --------------------------------------------------------------------


@dataclass(frozen=True)
class BetaMixture:
    """Any-time limits for rewards in [0, 1]: likelihood ratios averaged over Jeffreys' prior (Robbins 1970).

    Places are logarithms here: `lower(x)` is the smallest mean whose evidence against it is at most exp(x).
    """

    total: float
    count: int

    @property
    def mean(self) -> float:
        """The average of the rewards."""
        return min(1.0, max(0.0, self.total / self.count))

    @property
    def least(self) -> float:
        """The least evidence against any mean, as a logarithm."""
        return float(self._evidence(np.array([self.mean]))[0])

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the smallest mean against which the evidence is at most exp(place)."""
        return self._furthest(places, 0.0)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the largest mean against which the evidence is at most exp(place)."""
        return self._furthest(places, 1.0)

    def _furthest(self, places: FloatArray, end: float) -> FloatArray:
        """Return the mean nearest to `end` against which the evidence is at most exp(place), by bisection."""
        near, far = np.full_like(places, self.mean), np.full_like(places, end)
        for _ in range(60):
            middle = (near + far) / 2.0
            inside = self._evidence(middle) <= places
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        return far

    def _evidence(self, means: FloatArray) -> FloatArray:
        ones = min(max(self.total, 0.0), float(self.count))
        zeros = self.count - ones
        prior = float(betaln(ones + 0.5, zeros + 0.5) - betaln(0.5, 0.5))
        return np.asarray(prior - xlogy(ones, means) - xlog1py(zeros, -means))


@dataclass(frozen=True)
class NormalMixture:
    """Limits that hold at any time for subgaussian rewards: likelihood ratios averaged over a normal prior."""

    total: float
    count: int
    sigma: float
    prior: float  # as many pulls as the prior counts for

    @property
    def mean(self) -> float:
        """The average of the rewards."""
        return self.total / self.count

    @property
    def least(self) -> float:
        """The least evidence against any mean, as a logarithm."""
        return 0.5 * math.log(self.prior / (self.count + self.prior))

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the smallest mean against which the evidence is at most exp(place)."""
        return self.mean - self._reach(places)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the largest mean against which the evidence is at most exp(place)."""
        return self.mean + self._reach(places)

    def _reach(self, places: FloatArray) -> FloatArray:
        spread = 2.0 * self.sigma**2 * (self.count + self.prior)
        return np.asarray(np.sqrt(np.maximum(places - self.least, 0.0) * spread) / self.count)


# -- differences -------------------------------------------------------------------------------------------------------

_CELLS = 256


@dataclass(frozen=True, kw_only=True)
class Together:
    """The places x and y that two arms may have at once: p x + q y <= line, x <= first, y <= second."""

    p: float
    q: float
    line: float
    first: float
    second: float

    def turned(self) -> Together:
        """Return the same region with the two arms exchanged."""
        return Together(p=self.q, q=self.p, line=self.line, first=self.second, second=self.first)

    def cells(self) -> tuple[FloatArray, FloatArray]:
        """Cover the region's outer edge by cells; return the largest x and the largest y of each."""
        if self.p * self.first + self.q * self.second <= self.line:  # no line: a corner
            return np.array([self.first]), np.array([self.second])
        start = (self.line - self.q * self.second) / self.p
        edges = start + (self.first - start) * np.arange(_CELLS + 1) / _CELLS
        return edges[1:], np.minimum((self.line - self.p * edges[:-1]) / self.q, self.second)


def difference(one: Limits, other: Limits, together: Together) -> tuple[float, float]:
    """Return limits of the mean of `one` minus that of `other`, over all places that both may have at once."""
    x, y = together.cells()
    low = float(np.min(one.lower(x) - other.upper(y)))
    y, x = together.turned().cells()
    high = float(np.max(one.upper(x) - other.lower(y)))
    return low, high
