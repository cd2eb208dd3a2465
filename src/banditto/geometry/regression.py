"""Least squares on the totals of a fixed design, in coordinates in which the noise is isotropic.

Whitening comes with a certificate: p' V^-1 p is bounded for the exact V, with rounding. Let V = sum_a (c_a / n) a a'
with integer counts c and n = sum c, and let X be any matrix of floats. If E = X V X' - 1 has norm below 1, then
V^-1 = X' (1 + E)^-1 X and p' V^-1 p <= |X p|^2 / (1 - |E|). X is computed in floats, so that E is tiny but not zero; E
itself is computed in exact integer arithmetic. What is left is the rounding of |X p|, which the usual bound for a sum
of products covers.

Symbols  V: sum of weight(a) a a' over the core set, divided by all weights; X: lower triangular with X V X' = I + E,
         E known exactly; N: all pulls; b: sum of a's centred total times a; x = X b / sqrt(N);
         a': the features of a that the design does without; U: sum of weight(a) a' a^T, divided as V; M = U X' X

If every arm's pulls are its weight, then Cov(x) <= sigma^2 (1 + |E|) I for independent rewards of variance at most
sigma^2 each, whatever their means are. theta_hat = X' x / sqrt(N) is the least-squares estimate up to |E|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import IllConditioned
from banditto.numbers.fixed_order import cholesky, exact, inverse_of_lower, product, quadratic_forms

_UNIT = 2.0**-53
_POINT_BITS = 52


class Whitening(NamedTuple):
    """The whitening matrix X of a design, lower triangular, and |E|, by how much rounding lets X V X' differ from 1."""

    factor: FloatArray
    excess: float

    @classmethod
    def of(cls, core: FloatArray, counts: Sequence[int]) -> Whitening:
        """Return the whitening of the design that gives the points of `core` (feature, point) these counts."""
        rows, exponents = exact(core, _POINT_BITS)
        points = np.array(rows, dtype=object)
        moment = (points * np.array(counts, dtype=object)) @ points.T  # integers: exact in any order
        total = sum(counts)
        unit = np.array(exponents)
        scaled = np.array([[float(Fraction(value, total)) for value in row] for row in moment])
        lower = cholesky(np.ldexp(scaled, unit[:, None] + unit[None, :]))
        if lower is None:
            raise IllConditioned
        whole, places = exact(inverse_of_lower(lower), 53)
        factor = np.ldexp(np.array(whole, dtype=np.float64), np.array(places)[:, None])
        # row i of X is whole_i 2^places_i, feature j of a point is integer_j 2^unit_j
        shift = np.array([1 << int(value - unit.min()) for value in unit], dtype=object)
        left = np.array(whole, dtype=object) * shift
        residue = left @ moment @ left.T
        worst = Fraction(0)
        for i, row in enumerate(residue):
            size = Fraction(0)
            for j, value in enumerate(row):
                power = places[i] + places[j] + 2 * int(unit.min())
                size += abs(Fraction(value, total) * Fraction(2) ** power - (i == j))
            worst = max(worst, size)
        excess = math.nextafter(float(worst), math.inf)
        if excess > 0.25:
            raise IllConditioned
        return cls(factor, excess)

    def largest(self, points: FloatArray) -> float:
        """Return a close upper bound on p' V^-1 p over all points (feature, point)."""
        dimension = points.shape[0]
        largest = float(np.max(quadratic_forms(points, self.factor)))
        reach = np.array([max(float(np.max(feature)), -float(np.min(feature))) for feature in points])
        lost = 0.0  # |fl(X p) - X p|^2, by the bound n u / (1 - n u) sum |x_j p_j| for a sum of n products
        for row in np.abs(self.factor):
            size = math.fsum((row * reach).tolist()) * (dimension + 2) * _UNIT * 1.001
            lost += size * size
        root = math.sqrt(largest * (1.0 + (dimension + 4) * 2 * _UNIT)) + math.sqrt(lost)
        return self.certified(root * root)

    def certified(self, largest: float) -> float:
        """Turn an upper bound on |X p|^2 into one on p' V^-1 p, and return it."""
        return largest / (1.0 - self.excess) * (1.0 + 16 * _UNIT)


# |E| above this is refused: then all that it changes is a millionth of what is proved without it
LARGEST_EXCESS = 2.0**-24
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Regression:
    """Least squares on a core set (feature, arm): the weights of the estimate, and the pulls behind each total."""

    core: FloatArray
    weights: tuple[int, ...]
    pulls: tuple[int, ...]
    factor: FloatArray  # X
    excess: float  # |E|

    @classmethod
    def of(cls, core: FloatArray, weights: Sequence[int], pulls: Sequence[int] | None = None) -> Regression:
        """Return the regression, factorised; raise `IllConditioned` where double precision does not suffice."""
        white = Whitening.of(core, weights)
        if white.excess > LARGEST_EXCESS:
            raise IllConditioned
        return cls(core, tuple(weights), tuple(weights if pulls is None else pulls), white.factor, white.excess)

    @property
    def dimension(self) -> int:
        """The number of coordinates of the estimate."""
        return int(self.core.shape[0])

    @property
    def total(self) -> int:
        """N, the number of pulls of all arms together."""
        return sum(self.pulls)

    def centred(self, totals: FloatArray, centre: float) -> FloatArray:
        """Return totals (replicate, arm) of rewards from which the centre has been subtracted."""
        return totals - centre * np.array(self.pulls, dtype=np.float64)

    def whitened(self, totals: FloatArray, centre: float) -> FloatArray:
        """Return x, the whitened estimate, for each row of totals (replicate, arm); shape (replicate, feature)."""
        moments = product(self.centred(totals, centre), np.ascontiguousarray(self.core.T))
        return product(moments, np.ascontiguousarray(self.factor.T)) / math.sqrt(self.total)

    def parameter(self, whitened: FloatArray) -> FloatArray:
        """Return the parameter theta = X' x / sqrt(N) for each row x of whitened estimates."""
        return product(whitened, self.factor) / math.sqrt(self.total)

    def estimate(self, totals: FloatArray, centre: float) -> FloatArray:
        """Return the least-squares estimate of theta for each row of totals (replicate, arm)."""
        return self.parameter(self.whitened(totals, centre))

    def of_values(self, values: FloatArray) -> FloatArray:
        """Return the weighted least-squares theta for given values (replicate, arm) of the core set."""
        shares = np.array(self.weights, dtype=np.float64) / float(sum(self.weights))
        moments = product(values * shares, np.ascontiguousarray(self.core.T))
        return product(product(moments, np.ascontiguousarray(self.factor.T)), self.factor)

    def rounding(self, reach: float) -> float:
        """Return an upper bound on the rounding error of the computed x, if no reward's mean exceeds `reach`.

        Every entry of x is a sum of products of at most |C| + d + 6 roundings each; the sum of their sizes is at most
        |X| times the sum of n |a|, times the largest reward. What noise adds to a total is covered by the factor 2.
        """
        sizes = product(np.abs(self.core), np.array(self.pulls, dtype=np.float64)[:, None])  # (feature, 1)
        rows = product(np.abs(self.factor), sizes)[:, 0]
        length = math.sqrt(math.fsum((rows * rows).tolist())) / math.sqrt(self.total)
        return 2.0 * (len(self.pulls) + self.dimension + 6) * _UNIT * reach * length

    def bias(self, g: float, largest: float) -> float:
        """Return a bound on what E adds to the error of any value: sqrt(g) |E| |theta| (1 + |E|).

        `largest` bounds |theta|.
        """
        return math.sqrt(g) * self.excess * largest * 1.001

    def stand_in(self, others: FloatArray) -> FloatArray:
        """Return M (other feature, feature): an estimate acts as if an action's other features a' were M a.

        <a, theta_hat> has mean <a, theta> + <M a, theta'> where rewards have mean <a, theta> + <a', theta'>, up to what
        `bias` bounds. Every entry is computed in integers and rounded once, however barely the core set spans.
        """
        rows, units = exact(self.core, 53)
        more, places = exact(others, 53)
        moment = (np.array(more, dtype=object) * np.array(self.weights, dtype=object)) @ np.array(rows, dtype=object).T
        whole, powers = exact(self.factor, 53)
        factor, low, least = np.array(whole, dtype=object), min(units), min(powers)
        left = (moment * np.array([1 << (unit - low) for unit in units], dtype=object)) @ factor.T
        found = (left * np.array([1 << 2 * (power - least) for power in powers], dtype=object)) @ factor
        parts = [Fraction(2) ** (place + low + 2 * least) / sum(self.weights) for place in places]
        return np.array([[float(value * part) for value in row] for row, part in zip(found, parts, strict=True)])

    def strays(self, core: FloatArray, own: FloatArray, others: FloatArray) -> FloatArray:
        """Return an upper bound on |M a - a'|, entry by entry, for actions with features a (`own`) and a' (`others`).

        `core` holds the other features of the core set; all arrays are (feature, action). A sum of d + 1 products is
        off by (d + 2) units of the last place of its terms' sizes at the most.
        """
        means = self.stand_in(core)
        sizes = product(np.abs(means), np.abs(own)) + np.abs(others)
        off = np.abs(product(means, own) - others)
        return np.asarray(off * (1.0 + 2.0**-50) + (self.dimension + 4) * 2.0 * _UNIT * sizes)
