"""Rounding a least-squares estimate so that two labs most likely find the same one.

Two ways, with the same three questions to each: how far the rounding moves the estimate, how many pulls an accuracy
takes, and what the estimate is rounded to. `LatticeRounding` rounds x, in which noise is isotropic, to cells of A_d*;
`GridRounding` (the paper's) rounds the mean of every arm of the core set to a grid. Proofs: docs/least-squares.md.

Symbols  d: dimension, C: core set, g: max a' V^-1 a, N: pulls, h = sqrt(g/N): the largest |a| in the norm of W^-1,
         s: cell size, S: surface of a cell of volume 1, R: its radius, sigma: scale of the rewards,
         mu: at least E|<n, x - x'>| for any unit vector n and two executions' x, x'; nu: sigma nu bounds |x - E x|
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.exact import PI, ceiling, first_true, float_above, precise, written
from banditto.core.rewards import Rewards
from banditto.geometry.regression import LARGEST_EXCESS, Regression
from banditto.numbers import lattice
from banditto.policies.shared.confidence import mean_noise

Terms = list[tuple[str, Decimal, str]]

# of rho, what finite precision may take; where it would take more, nothing is rounded and nothing decided
PRECISION_SHARE = Decimal(2) ** -10
_MOST_PULLS = 10**18
_SLACK = 1 + Decimal(2) ** -20  # covers |E|, and floats that are computed from decimals


class Rounded(NamedTuple):
    """Estimates (replicate, feature), and each one's distance to the nearest other cell, in units of a cell."""

    theta: FloatArray
    margins: FloatArray


def deviation(dimension: int, tail: Decimal, actions: int | None = None) -> Decimal:
    """Return nu, for which |x - E x| <= sigma nu with probability 1 - exp(-tail) (Hsu, Kakade and Zhang 2012).

    With finitely many actions it is enough that each of their values is good: sqrt(2 log(2K) + 2 tail).
    """
    with precise():
        whole = (dimension + 2 * (dimension * tail).sqrt() + 2 * tail).sqrt()
        return whole if actions is None else min(whole, (2 * Decimal(2 * actions).ln() + 2 * tail).sqrt())


class LatticeRounding(NamedTuple):
    """Rounds the whitened estimate x to a cell of the lattice A_d*, shifted by coins."""

    dimension: int
    rewards: Rewards
    rho: float

    @property
    def purpose(self) -> str:
        """The purpose by which the coins of the shift are looked up."""
        return "lattice"

    @property
    def coins(self) -> int:
        """The number of uniform numbers that place the lattice."""
        return self.dimension

    def noise(self, leverage: Decimal) -> Decimal:
        """Return mu, the noise constant of x: by its variance or, for rewards that are nearly normal, a smaller one."""
        with precise():
            sigma = Decimal(self.rewards.sigma)
            any_rewards, normal = Decimal(2).sqrt() * sigma, 2 * sigma / PI.sqrt()
            if self.rewards.kind == "subgaussian":
                return any_rewards
            return normal if self.rewards.kind == "gaussian" else min(any_rewards, normal + leverage)

    def cell(self, leverage: Decimal) -> float:
        """Return s, the size of a cell, for which S mu / (2 s) <= rho, less what finite precision may take."""
        with precise():
            room = written(self.rho) * (1 - PRECISION_SHARE)
            return float_above(lattice.surface(self.dimension) * self.noise(leverage) * _SLACK / (2 * room))

    def reach(self, leverage: Decimal) -> Decimal:
        """Return s R, the farthest that rounding moves x."""
        with precise():
            return Decimal(self.cell(leverage)) * lattice.radius(self.dimension)

    def precise_enough(self, regression: Regression, leverage: Decimal, reach: float) -> bool:
        """Return whether floating-point errors of x and of the shift stay within their share of rho."""
        return self._precision(regression, leverage, reach) <= written(self.rho) * PRECISION_SHARE

    def _precision(self, regression: Regression, leverage: Decimal, reach: float) -> Decimal:
        cell = self.cell(leverage)
        with precise():
            moved = Decimal(regression.rounding(reach)) / Decimal(cell) + self.dimension * Decimal(2) ** -50
            return 2 * lattice.surface(self.dimension) * moved

    def terms(self, regression: Regression, leverage: Decimal, reach: float) -> Terms:
        """Return the terms of the guarantee: different cells, and finite precision."""
        with precise():
            noise = self.noise(leverage) * (1 + Decimal(LARGEST_EXCESS))
            cell = Decimal(self.cell(leverage))
            crossing = lattice.surface(self.dimension) * noise / (2 * cell)
        return [
            ("different cells", crossing, "S mu/(2 s): a surface of the lattice lies between the two estimates"),
            ("finite precision", self._precision(regression, leverage, reach), "2 S (error of x)/s: coins, totals"),
        ]

    def rounded(
        self, regression: Regression, totals: FloatArray, centre: float, leverage: Decimal, uniforms: FloatArray
    ) -> Rounded:
        """Return rounded estimates, from totals (replicate, arm) and uniform numbers (replicate, coin)."""
        cell = self.cell(leverage)
        shift = lattice.shift(uniforms)
        found = lattice.nearest(regression.whitened(totals, centre) / cell + shift)
        return Rounded(regression.parameter((found.centres - shift) * cell), found.margins)


class GridRounding(NamedTuple):
    """Rounds the mean of every arm of the core set to a shifted grid."""

    support: int
    rewards: Rewards
    rho: float

    @property
    def purpose(self) -> str:
        """The purpose by which the coins of the shifts are looked up."""
        return "grid"

    @property
    def coins(self) -> int:
        """The number of uniform numbers that place the grids, one for each arm of the core set."""
        return self.support

    def _cell_at_one(self) -> Decimal:
        """Return a cell's width times sqrt(n): kappa |C| / rho, less what finite precision may take."""
        with precise():
            room = written(self.rho) * (1 - PRECISION_SHARE)
            return mean_noise(self.rewards) * self.support / room

    def reach(self, leverage: Decimal) -> Decimal:
        """Return the farthest that rounding moves x: sqrt(sum of n_a (alpha_a / 2)^2), half a cell per arm."""
        with precise():
            return self._cell_at_one() * Decimal(self.support).sqrt() / 2

    def _cells(self, regression: Regression) -> FloatArray:
        with precise():
            one = self._cell_at_one()
            return np.array([float_above(one / Decimal(n).sqrt()) for n in regression.pulls])

    def _precision(self, regression: Regression, reach: float) -> Decimal:
        with precise():
            moved = sum((Decimal(reach) / Decimal(cell) for cell in self._cells(regression).tolist()), Decimal(0))
            return Decimal(2) ** -48 * (moved + self.support)

    def precise_enough(self, regression: Regression, leverage: Decimal, reach: float) -> bool:
        """Return whether floating-point errors of means and offsets stay within their share of rho."""
        return self._precision(regression, reach) <= written(self.rho) * PRECISION_SHARE

    def terms(self, regression: Regression, leverage: Decimal, reach: float) -> Terms:
        """Return the terms of the guarantee: different cells, and finite precision."""
        with precise():
            noise, crossing = mean_noise(self.rewards), Decimal(0)
            for pulls, cell in zip(regression.pulls, self._cells(regression).tolist(), strict=True):
                crossing += noise / Decimal(pulls).sqrt() / Decimal(cell)
        statement = f"sum over |C| = {self.support} of kappa/(alpha sqrt n): a boundary lies between two means"
        return [
            ("different cells", crossing, statement),
            ("finite precision", self._precision(regression, reach), "2^-48 sum (1 + reach/alpha): coins, totals"),
        ]

    def rounded(
        self, regression: Regression, totals: FloatArray, centre: float, leverage: Decimal, uniforms: FloatArray
    ) -> Rounded:
        """Return rounded estimates, from totals (replicate, arm) and uniform numbers (replicate, coin)."""
        means = regression.centred(totals, centre) / np.array(regression.pulls, dtype=np.float64)
        return snapped(regression, means, self._cells(regression), uniforms)


class PaperGridRounding(NamedTuple):
    """The paper's grids: a concentration inequality for every mean, and equal pulls of every arm of the core set."""

    support: int
    rewards: Rewards
    rho: float
    tail: Decimal  # log(1/delta)

    @property
    def purpose(self) -> str:
        """The purpose by which the coins of the shifts are looked up."""
        return "grid"

    @property
    def coins(self) -> int:
        """The number of uniform numbers that place the grids, one for each arm of the core set."""
        return self.support

    def _deviation(self) -> Decimal:
        """Return sigma sqrt(2 log(2|C|/delta)): a mean of n rewards is off by at most this over sqrt(n)."""
        with precise():
            return Decimal(self.rewards.sigma) * (2 * (Decimal(2 * self.support).ln() + self.tail)).sqrt()

    def _room(self) -> Decimal:
        with precise():
            return (written(self.rho) - 2 * (-self.tail).exp()) / self.support

    def samples(self, tau: Decimal) -> int | None:
        """Return the samples of each arm that rounded means within tau need; None where rho leaves no room."""
        with precise():
            if self._room() <= 0:
                return None
            return ceiling((self._deviation() * (1 + 1 / self._room()) / tau) ** 2)

    def precise_enough(self, regression: Regression, leverage: Decimal, reach: float) -> bool:
        """Return True: the paper calculates with real numbers."""
        return True

    def rounded(
        self, regression: Regression, totals: FloatArray, centre: float, leverage: Decimal, uniforms: FloatArray
    ) -> Rounded:
        """Return rounded estimates, from totals (replicate, arm) and uniform numbers (replicate, coin)."""
        pulls = np.array(regression.pulls, dtype=np.float64)
        with precise():
            one = 2 * self._deviation() / self._room()
            cells = np.array([float_above(one / Decimal(n).sqrt()) for n in regression.pulls])
        return snapped(regression, regression.centred(totals, centre) / pulls, cells, uniforms)


def snapped(regression: Regression, means: FloatArray, cells: FloatArray, uniforms: FloatArray) -> Rounded:
    """Round means (replicate, arm) to the middles of their cells, and return the estimate that these give."""
    places = means / cells + uniforms
    below = np.floor(places)
    margins = np.min(np.minimum(places - below, below + 1.0 - places), axis=1)
    return Rounded(regression.of_values((below + 0.5 - uniforms) * cells), margins)


Rounding = LatticeRounding | GridRounding


def error(rounding: Rounding, leverage: Decimal, nu: Decimal) -> Decimal:
    """Return h (sigma nu + reach): no action's value is off by more, with the probability that nu stands for."""
    with precise():
        return leverage * (Decimal(rounding.rewards.sigma) * nu + rounding.reach(leverage))


def leverage_of(g: float, pulls: int) -> Decimal:
    """Return the leverage h = sqrt(g / N) of N pulls by a design."""
    with precise():
        return (Decimal(g) / pulls).sqrt()


def pulls_for(rounding: Rounding, g: float, nu: Decimal, epsilon: Decimal) -> int | None:
    """Return the fewest pulls by a design for which the error is at most epsilon; None if they are too many."""

    def enough(pulls: int) -> bool:
        return error(rounding, leverage_of(g, pulls), nu) <= epsilon

    if not enough(_MOST_PULLS):
        return None
    high = 1
    while not enough(high):
        high *= 4
    return first_true(enough, max(1, high // 4), high)
