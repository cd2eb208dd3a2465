"""Vertices that floats can settle: the same answer as exact arithmetic, in a tenth of the time, or no answer.

Given a basis B from a solver, floats with error bounds show, for most vertices, that all other rows hold strictly and
that all multipliers are strictly positive: the vertex is then the only maximiser. Its coordinates are refined against
exact residuals until they are known to 2^-90, which fixes how they round. Where a bound does not suffice (a tie, a row
that is tight by accident, a coordinate that is 0 or half-way between two floats), nothing is said and exact arithmetic
decides. It does not matter that the inverse below comes from LAPACK: it is checked, and only what is certain is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry.actions.exact_simplex import ExactHalfSpace, dot

_UNIT = 2.0**-53
_PLACES = 110
_REFINEMENTS = 3


def settled(
    rows: FloatArray,
    bounds: FloatArray,
    integers: Sequence[ExactHalfSpace],
    basis: Sequence[int],
    objective: FloatArray,
) -> tuple[float, ...] | None:
    """Return the maximiser, each coordinate rounded once, if floats can prove that `basis` holds it; else None."""
    size = rows.shape[1]
    held = rows[list(basis)]
    if np.count_nonzero(held) <= 4 * size:
        return None  # exact arithmetic on so few numbers is faster
    try:
        inverse = np.linalg.inv(held).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    # |1 - R B|, with what its own rounding may hide
    weight = np.abs(inverse) @ np.abs(held)
    error = float(np.max(np.sum(np.abs(np.eye(size) - inverse @ held) + (size + 2) * _UNIT * weight, axis=1))) * 1.001
    if not error < 0.01:
        return None
    multipliers = objective @ inverse
    # c' B^-1 = c' (1 - E)^-1 R with E = 1 - R B, so that it differs from c' R by at most |c|_1 |E| / (1 - |E|) max |R|
    reach = float(np.sum(np.abs(objective))) * float(np.max(np.abs(inverse)))
    if not np.all(multipliers > reach * (1.1 * error + (size + 2) * _UNIT)):
        return None
    point, doubt = _refined(held, inverse, integers, basis, error)
    if doubt > 2.0**-90:
        return None
    near = np.array([math.ldexp(value, -_PLACES) for value in point])
    others = np.ones(rows.shape[0], dtype=np.bool_)
    others[list(basis)] = False
    slack = bounds - rows @ near
    lost = (size + 4) * _UNIT * (np.abs(rows) @ (np.abs(near) + 2.0**-80) + np.abs(bounds))
    if not np.all(slack[others] > lost[others] * 1.1):
        return None
    return _rounded(point, doubt)


def _refined(
    held: FloatArray, inverse: FloatArray, integers: Sequence[ExactHalfSpace], basis: Sequence[int], error: float
) -> tuple[list[int], float]:
    """Return the vertex in units of 2^-110, and by how much it may be off, as a plain number."""
    point = [0] * held.shape[1]
    scale = [max(map(abs, integers[number].row)) for number in basis]
    sizes = np.max(np.abs(held), axis=1)
    for _ in range(_REFINEMENTS + 1):
        residual = np.array(
            [
                (integers[number].bound * 2**_PLACES - dot(integers[number].row, point)) / size
                for number, size in zip(basis, scale, strict=True)
            ]
        )
        residual = np.ldexp(residual, -_PLACES) * sizes  # in the units of the given rows
        change = inverse @ residual
        point = [value + int(math.ldexp(step, _PLACES)) for value, step in zip(point, change.tolist(), strict=True)]
    # |x - x~| <= |R r| / (1 - |E|) for the residual r before the last change, which that change shrank further
    return point, float(np.max(np.abs(change))) * (error + 2.0**-40) * 4.0 + 2.0 ** (2 - _PLACES)


def _rounded(point: list[int], doubt: float) -> tuple[float, ...] | None:
    """Return the floats nearest to the point; None if the doubt leaves two possible, as it does next to 0."""
    margin = math.ceil(math.ldexp(doubt, _PLACES))
    unit = 1 << _PLACES
    out = []
    for value in point:
        low, high = (value - margin) / unit, (value + margin) / unit  # Python rounds such quotients correctly
        if low != high:
            return None
        out.append(low)
    return tuple(out)
