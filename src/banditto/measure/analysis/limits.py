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
    """Limits of a mean; places are arrays, and so are the limits that come back."""

    @property
    def mean(self) -> float:
        """The average of the rewards that were used."""

    def lower(self, places: FloatArray) -> FloatArray:
        """Return lower limits."""

    def upper(self, places: FloatArray) -> FloatArray:
        """Return upper limits."""


@dataclass(frozen=True)
class NormalLimits:
    """Of Gaussian rewards whose standard deviation is at most sigma."""

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
        """Return the mean and x standard errors."""
        return self.mean + places * (self.sigma / math.sqrt(self.count))


@dataclass(frozen=True)
class BinomialLimits:
    """Of rewards that are 0 or 1: exact (Clopper and Pearson 1934)."""

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
    """Of rewards in [0, 1] by their sample variance (Maurer and Pontil 2009, Theorem 4)."""

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
        """Return the mean and as much; 1 where that is more."""
        return np.minimum(self.mean + self._reach(places), 1.0)

    def _reach(self, places: FloatArray) -> FloatArray:
        if self.count < 2:
            return np.ones_like(places)
        variance = max(0.0, self.squares - self.total**2 / self.count) / (self.count - 1)
        logs = math.log(2.0) - log_ndtr(-places)
        return np.asarray(np.sqrt(2.0 * variance * logs / self.count) + 7.0 * logs / (3.0 * (self.count - 1)))


@dataclass(frozen=True)
class ChernoffLimits:
    """Of rewards in [0, 1] of which only the sum is known: n kl(mean, mu) <= log(1/tail) (Chernoff, Hoeffding 1963)."""

    total: float
    count: int
    coupled: ClassVar[bool] = False

    @property
    def mean(self) -> float:
        """The average of the rewards that were used."""
        return min(1.0, max(0.0, self.total / self.count))

    def lower(self, places: FloatArray) -> FloatArray:
        """Return the smallest mean that is not too far below."""
        return _furthest(self.mean, 0.0, -log_ndtr(-places) / self.count)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the largest mean that is not too far above."""
        return _furthest(self.mean, 1.0, -log_ndtr(-places) / self.count)


def _furthest(mean: float, end: float, allowed: FloatArray) -> FloatArray:
    """The mu between a mean and an end of [0, 1] with kl(mean, mu) = allowed, on the far side of rounding."""
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
    """Of numbers of which nothing is known: as if their mean were normal, with the sample's own deviation."""

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
        """Return the mean and x estimated standard errors."""
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
    """Of sigma-subgaussian rewards: the mean and sigma sqrt(2 log(1/tail)/n)."""

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
        """Return the mean and as much."""
        return self.mean + self._reach(places)

    def _reach(self, places: FloatArray) -> FloatArray:
        return np.asarray(self.sigma * np.sqrt(-2.0 * log_ndtr(-places) / self.count))


# -- at any number of pulls, whatever it depends on --------------------------------------------------------------------


@dataclass(frozen=True)
class BetaMixture:
    """Any time limits of rewards in [0, 1]: likelihood ratios averaged over Jeffreys' prior (Robbins 1970).

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
        """Return the smallest mean against which no more than exp(place) speaks."""
        return self._furthest(places, 0.0)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the largest such mean."""
        return self._furthest(places, 1.0)

    def _furthest(self, places: FloatArray, end: float) -> FloatArray:
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
    """Any time limits of Gaussian or subgaussian rewards: likelihood ratios averaged over a normal prior."""

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
        """Return the smallest mean against which no more than exp(place) speaks."""
        return self.mean - self._reach(places)

    def upper(self, places: FloatArray) -> FloatArray:
        """Return the largest such mean."""
        return self.mean + self._reach(places)

    def _reach(self, places: FloatArray) -> FloatArray:
        spread = 2.0 * self.sigma**2 * (self.count + self.prior)
        return np.asarray(np.sqrt(np.maximum(places - self.least, 0.0) * spread) / self.count)


# -- differences -------------------------------------------------------------------------------------------------------

_CELLS = 256


@dataclass(frozen=True, kw_only=True)
class Together:
    """Which places two arms may have at once: p x + q y <= line, x <= first, y <= second."""

    p: float
    q: float
    line: float
    first: float
    second: float

    def turned(self) -> Together:
        """Return the same with the two arms exchanged."""
        return Together(p=self.q, q=self.p, line=self.line, first=self.second, second=self.first)

    def cells(self) -> tuple[FloatArray, FloatArray]:
        """Cover the outer edge by cells; the largest x and the largest y of each come back."""
        if self.p * self.first + self.q * self.second <= self.line:  # no line: a corner
            return np.array([self.first]), np.array([self.second])
        start = (self.line - self.q * self.second) / self.p
        edges = start + (self.first - start) * np.arange(_CELLS + 1) / _CELLS
        return edges[1:], np.minimum((self.line - self.p * edges[:-1]) / self.q, self.second)


def difference(one: Limits, other: Limits, together: Together) -> tuple[float, float]:
    """Return limits of the mean of `one` less that of `other`: the furthest at any places that both may have."""
    x, y = together.cells()
    low = float(np.min(one.lower(x) - other.upper(y)))
    y, x = together.turned().cells()
    high = float(np.max(one.upper(x) - other.lower(y)))
    return low, high
