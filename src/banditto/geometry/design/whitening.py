"""p' V^-1 p with a certificate: an upper bound that holds for the exact V, rounding included.

Let V = sum_a (c_a / n) a a' with integer counts c and n = sum c, and let X be any matrix of floats. If E = X V X' - 1
has norm below 1, then V^-1 = X' (1 + E)^-1 X and

    p' V^-1 p <= |X p|^2 / (1 - |E|).

X is computed in floats, so that E is tiny but not zero; E itself is computed in exact integer arithmetic. What is
left is the rounding of |X p|, which the standard bound for a sum of products covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.numbers.fixed_order import cholesky, exact, inverse_of_lower, quadratic_forms

_UNIT = 2.0**-53
_POINT_BITS = 52


class IllConditioned(InvalidArgument):
    """The actions span their space so barely that double precision cannot tell."""

    def __init__(self) -> None:
        given = "actions that span their features too barely for double precision"
        super().__init__("actions", given, "actions that span them well: rescale or drop features")


class Whitening(NamedTuple):
    """The lower triangular X, and |E|."""

    factor: FloatArray
    excess: float

    @classmethod
    def of(cls, core: FloatArray, counts: Sequence[int]) -> Whitening:
        """For the design that gives the points of `core` (feature, point) these counts."""
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
        """At least max p' V^-1 p over points (feature, point), and hardly more."""
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
        """An upper bound on p' V^-1 p from one on |X p|^2."""
        return largest / (1.0 - self.excess) * (1.0 + 16 * _UNIT)
