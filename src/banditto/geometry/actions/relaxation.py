"""An upper bound on |X a|^2 over a convex set, from its slabs: Shor's relaxation, solved and then checked.

Maximising a convex quadratic over a polytope is NP-hard, so a certified bound has to be a relaxation. The one that the
design pages suggest adds up the largest squares of d linear functions and is off by a factor of up to d. This one
contains it. For boxes around 0 it is off by at most pi/2 (Nesterov 1998), for other polytopes that are symmetric about
0 by a factor that grows like the logarithm of their number of rows (Nemirovski, Roos and Terlaky 1999).

Let y = (1, X a). A slab low <= <n, a> <= high says (w . y)^2 <= 1 for a vector w, a ball says |W' y|^2 <= 1. If mu and
nu >= 0 satisfy

    G = mu e_0 e_0' + sum_i nu_i W_i W_i' - diag(0, 1, ..., 1)  >= 0   (positive semidefinite),

then |X a|^2 = y' diag(0, 1, ..., 1) y <= mu + sum_i nu_i |W_i' y|^2 <= mu + sum_i nu_i. Any such numbers prove a bound;
the best are found by Newton's method with a logarithmic barrier, in fixed-order arithmetic, because g decides how
often arms are pulled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry.actions.sets import Slab
from banditto.numbers.fixed_order import cholesky, inner, inverse_of_lower, product, solved_lower

COARSE = 0.002  # relative: the bound is this close, or as close as it is asked to be, to the best of its kind
MOST_STEPS = 200
# Slabs thinner than this, against the size of the numbers in them, are widened to the first of these, and to the next
# one where that is too much for double precision.
_THIN = (2.0**-24, 2.0**-18, 2.0**-12)
_SLACK = 2.0**-40


class Constraints(NamedTuple):
    """The columns of all matrices W, (1 + feature, column), and the number of the constraint that each belongs to."""

    columns: FloatArray
    owners: list[int]

    @property
    def number(self) -> int:
        """The number of constraints, the constant one (mu) included."""
        return self.owners[-1] + 1


def norm_bound(factor: FloatArray, slabs: Sequence[Slab], ball: FloatArray | None, precision: float = COARSE) -> float:
    """Return an upper bound on |factor a|^2 over all a in the slabs and, if given, with |ball a|^2 <= 1.

    `ball` is the diagonal of a matrix.
    """
    inverse = inverse_of_lower(factor)  # a = inverse (X a)
    bounds = (_bound(_constraints(inverse, slabs, ball, thin), precision) for thin in _THIN)
    return next((bound for bound in bounds if math.isfinite(bound)), math.inf)


def _bound(constraints: Constraints, precision: float) -> float:
    """Return the least upper bound that the relaxation proves for these constraints, inf if it proves none."""
    values = _start(constraints)
    if values is None:
        return math.inf
    size = constraints.columns.shape[0]
    sharpness = constraints.number / math.fsum(values.tolist())
    proved, steps = math.inf, 0
    while True:
        values, taken = _centred(constraints, values, sharpness)
        steps += taken
        # the sharper, the nearer G is to singular: at some point the check may fail, and an earlier bound stands
        proved = min(proved, _checked(constraints, values))
        if (constraints.number + size) / sharpness <= precision * math.fsum(values.tolist()) or steps >= MOST_STEPS:
            return proved
        sharpness *= 6.0


def _constraints(inverse: FloatArray, slabs: Sequence[Slab], ball: FloatArray | None, thin: float) -> Constraints:
    """Return slabs and ball as constraints in whitened coordinates; slabs thinner than `thin` are widened."""
    dimension = inverse.shape[0]
    columns = [np.eye(1 + dimension)[0]]
    owners = [0]
    for slab in slabs:
        middle, half = (slab.low + slab.high) / 2.0, (slab.high - slab.low) / 2.0
        size = max(abs(slab.low), abs(slab.high))
        half = max(half * (1.0 + _SLACK), size * thin)
        if half == 0.0:
            continue
        normal = product(np.ascontiguousarray(inverse.T), np.array(slab.normal))
        columns.append(np.concatenate([[-middle], normal]) / half)
        owners.append(owners[-1] + 1)
    if ball is not None:
        number = owners[-1] + 1
        for feature in range(dimension):
            columns.append(np.concatenate([[0.0], ball[feature] * inverse[feature]]) * (1.0 - _SLACK))
            owners.append(number)
    return Constraints(np.ascontiguousarray(np.array(columns).T), owners)


def _matrix(constraints: Constraints, values: FloatArray) -> FloatArray:
    """Return G, the matrix that must be positive semidefinite for these values to prove a bound."""
    columns = constraints.columns
    weighted = columns * values[constraints.owners][None, :]
    matrix = product(weighted, np.ascontiguousarray(columns.T))
    diagonal = np.arange(1, matrix.shape[0])
    matrix[diagonal, diagonal] -= 1.0
    return matrix


def _start(constraints: Constraints) -> FloatArray | None:
    """Return equal values, large enough that G is positive definite; None if the slabs do not bound the set."""
    values = np.ones(constraints.number)
    for _ in range(120):
        if cholesky(_matrix(constraints, values)) is not None:
            return 2.0 * values
        values *= 2.0
    return None  # the slabs do not bound the set


def _centred(constraints: Constraints, values: FloatArray, sharpness: float) -> tuple[FloatArray, int]:
    """Minimise sharpness * sum - log det G - sum log nu by Newton's method; return the values and the steps taken."""
    for step in range(30):
        lower = cholesky(_matrix(constraints, values))
        if lower is None:
            return values, step  # cannot happen: steps that lose positivity are halved
        white = product(inverse_of_lower(lower), constraints.columns)
        cross = product(np.ascontiguousarray(white.T), white)
        gradient = sharpness - _by_owner(np.diagonal(cross)[None, :], constraints)[0]
        curvature = _by_owner(_by_owner(cross * cross, constraints).T, constraints)
        gradient[1:] -= 1.0 / values[1:]
        inside = np.arange(1, constraints.number)
        curvature[inside, inside] += 1.0 / (values[1:] * values[1:])
        half = cholesky(curvature)
        if half is None:
            return values, step
        change = -solved_lower(half, gradient)
        decrement = math.sqrt(max(0.0, -inner(gradient, change)))
        length = 1.0 if decrement < 0.25 else 1.0 / (1.0 + decrement)
        while length > 1e-12:
            trial = values + length * change
            if float(np.min(trial[1:])) > 0.0 and cholesky(_matrix(constraints, trial)) is not None:
                break
            length /= 2.0
        else:
            return values, step
        values = trial
        if decrement < 0.1:
            return values, step + 1
    return values, 30


def _by_owner(table: FloatArray, constraints: Constraints) -> FloatArray:
    """Return the sum of the columns of each constraint, added from first to last."""
    if constraints.number == len(constraints.owners):
        return table.copy()
    out = np.zeros((table.shape[0], constraints.number))
    for column, owner in enumerate(constraints.owners):
        out[:, owner] += table[:, column]
    return out


def _checked(constraints: Constraints, values: FloatArray) -> float:
    """Return the bound that these values prove, with room for the rounding of G; inf if they prove none."""
    matrix = _matrix(constraints, values)
    size = matrix.shape[0]
    lost = 8.0 * (size + constraints.columns.shape[1]) ** 2 * 2.0**-53 * float(np.max(np.diagonal(matrix) + 1.0))
    matrix[np.arange(size), np.arange(size)] -= lost
    if cholesky(matrix) is None or lost > 0.5:
        return math.inf
    return math.fsum(values.tolist()) * (1.0 + 2.0**-40)
