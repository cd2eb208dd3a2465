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
    """Estimates (replicate, feature), and how far each is from another cell, in units of a cell."""

    theta: FloatArray
    margins: FloatArray


def deviation(dimension: int, tail: Decimal, actions: int | None = None) -> Decimal:
    """nu: |x - E x| <= sigma nu with probability 1 - exp(-tail) (Hsu, Kakade and Zhang 2012).

    With finitely many actions it is enough that each of their values is good: sqrt(2 log(2K) + 2 tail).
    """
    with precise():
        whole = (dimension + 2 * (dimension * tail).sqrt() + 2 * tail).sqrt()
        return whole if actions is None else min(whole, (2 * Decimal(2 * actions).ln() + 2 * tail).sqrt())


class LatticeRounding(NamedTuple):
    """Cells of A_d* in the coordinates x."""

    dimension: int
    rewards: Rewards
    rho: float

    @property
    def purpose(self) -> str:
        """Names the coins."""
        return "lattice"

    @property
    def coins(self) -> int:
        """How many uniform numbers place the lattice."""
        return self.dimension

    def noise(self, leverage: Decimal) -> Decimal:
        """mu: by variance; by normality; for rewards in [0, 1] by their distance from normality, at most h."""
        with precise():
            sigma = Decimal(self.rewards.sigma)
            any_rewards, normal = Decimal(2).sqrt() * sigma, 2 * sigma / PI.sqrt()
            if self.rewards.kind == "subgaussian":
                return any_rewards
            return normal if self.rewards.kind == "gaussian" else min(any_rewards, normal + leverage)

    def cell(self, leverage: Decimal) -> float:
        """s with S mu / (2 s) <= rho, less what finite precision may take."""
        with precise():
            room = written(self.rho) * (1 - PRECISION_SHARE)
            return float_above(lattice.surface(self.dimension) * self.noise(leverage) * _SLACK / (2 * room))

    def reach(self, leverage: Decimal) -> Decimal:
        """s R: how far rounding moves x, at the most."""
        with precise():
            return Decimal(self.cell(leverage)) * lattice.radius(self.dimension)

    def precise_enough(self, regression: Regression, leverage: Decimal, reach: float) -> bool:
        """Whether S (error of x + resolution of the shift) / s is within its share of rho."""
        return self._precision(regression, leverage, reach) <= written(self.rho) * PRECISION_SHARE

    def _precision(self, regression: Regression, leverage: Decimal, reach: float) -> Decimal:
        cell = self.cell(leverage)
        with precise():
            moved = Decimal(regression.rounding(reach)) / Decimal(cell) + self.dimension * Decimal(2) ** -50
            return 2 * lattice.surface(self.dimension) * moved

    def terms(self, regression: Regression, leverage: Decimal, reach: float) -> Terms:
        """The guarantee's terms."""
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
        """Totals (replicate, arm) and uniform numbers (replicate, coin) to estimates."""
        cell = self.cell(leverage)
        shift = lattice.shift(uniforms)
        found = lattice.nearest(regression.whitened(totals, centre) / cell + shift)
        return Rounded(regression.parameter((found.centres - shift) * cell), found.margins)


class GridRounding(NamedTuple):
    """A shifted grid for the mean of every arm of the core set."""

    support: int
    rewards: Rewards
    rho: float

    @property
    def purpose(self) -> str:
        """Names the coins."""
        return "grid"

    @property
    def coins(self) -> int:
        """One for each arm of the core set."""
        return self.support

    def _cell_at_one(self) -> Decimal:
        """Cell width times sqrt(n): kappa |C| / rho, less what finite precision may take."""
        with precise():
            room = written(self.rho) * (1 - PRECISION_SHARE)
            return mean_noise(self.rewards) * self.support / room

    def reach(self, leverage: Decimal) -> Decimal:
        """sqrt of the sum of n_a (alpha_a / 2)^2: every arm moves by half a cell."""
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
        """Whether rounded means and offsets stay within their share of rho."""
        return self._precision(regression, reach) <= written(self.rho) * PRECISION_SHARE

    def terms(self, regression: Regression, leverage: Decimal, reach: float) -> Terms:
        """The guarantee's terms."""
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
        """Totals (replicate, arm) and uniform numbers (replicate, coin) to estimates."""
        means = regression.centred(totals, centre) / np.array(regression.pulls, dtype=np.float64)
        return snapped(regression, means, self._cells(regression), uniforms)


class PaperGridRounding(NamedTuple):
    """The paper's grids: a concentration inequality for every mean, equal pulls of every arm of the core set."""

    support: int
    rewards: Rewards
    rho: float
    tail: Decimal  # log(1/delta)

    @property
    def purpose(self) -> str:
        """Names the coins."""
        return "grid"

    @property
    def coins(self) -> int:
        """One for each arm of the core set."""
        return self.support

    def _deviation(self) -> Decimal:
        """sigma sqrt(2 log(2|C|/delta)): a mean of n rewards is off by at most this over sqrt(n)."""
        with precise():
            return Decimal(self.rewards.sigma) * (2 * (Decimal(2 * self.support).ln() + self.tail)).sqrt()

    def _room(self) -> Decimal:
        with precise():
            return (written(self.rho) - 2 * (-self.tail).exp()) / self.support

    def samples(self, tau: Decimal) -> int | None:
        """Of each arm, for rounded means within tau; None where rho leaves no room."""
        with precise():
            if self._room() <= 0:
                return None
            return ceiling((self._deviation() * (1 + 1 / self._room()) / tau) ** 2)

    def precise_enough(self, regression: Regression, leverage: Decimal, reach: float) -> bool:
        """The paper reckons with real numbers."""
        return True

    def rounded(
        self, regression: Regression, totals: FloatArray, centre: float, leverage: Decimal, uniforms: FloatArray
    ) -> Rounded:
        """Totals (replicate, arm) and uniform numbers (replicate, coin) to estimates."""
        pulls = np.array(regression.pulls, dtype=np.float64)
        with precise():
            one = 2 * self._deviation() / self._room()
            cells = np.array([float_above(one / Decimal(n).sqrt()) for n in regression.pulls])
        return snapped(regression, regression.centred(totals, centre) / pulls, cells, uniforms)


def snapped(regression: Regression, means: FloatArray, cells: FloatArray, uniforms: FloatArray) -> Rounded:
    """Means (replicate, arm) to the middles of their cells, and the estimate of those."""
    places = means / cells + uniforms
    below = np.floor(places)
    margins = np.min(np.minimum(places - below, below + 1.0 - places), axis=1)
    return Rounded(regression.of_values((below + 0.5 - uniforms) * cells), margins)


Rounding = LatticeRounding | GridRounding


def error(rounding: Rounding, leverage: Decimal, nu: Decimal) -> Decimal:
    """h (sigma nu + reach): no action's value is off by more, with the probability that nu stands for."""
    with precise():
        return leverage * (Decimal(rounding.rewards.sigma) * nu + rounding.reach(leverage))


def leverage_of(g: float, pulls: int) -> Decimal:
    """h = sqrt(g / N)."""
    with precise():
        return (Decimal(g) / pulls).sqrt()


def pulls_for(rounding: Rounding, g: float, nu: Decimal, epsilon: Decimal) -> int | None:
    """The fewest pulls in the proportions of a design for which the error is at most epsilon; None: too many."""

    def enough(pulls: int) -> bool:
        return error(rounding, leverage_of(g, pulls), nu) <= epsilon

    if not enough(_MOST_PULLS):
        return None
    high = 1
    while not enough(high):
        high *= 4
    return first_true(enough, max(1, high // 4), high)
