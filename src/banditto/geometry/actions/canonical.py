"""Actions as integers: what two labs hash, and what every plan is computed from.

Labs that compute their features on different machines get numbers that differ in the last bit. Each feature is
therefore rounded to multiples of 2^-20 of its scale, a power of two, and the design is made of those integers. An
optimal design does not change when features are rescaled, so nothing is lost but the rounding, and features of size
1e-8 or 1e8 are as good as any.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.tabular import matrix_rows

# FROZEN(v1): every linear protocol holds actions that were rounded to these places
BITS = 20
# Scales change at 1/0.7, 2/0.7, ... and not at powers of two, where the largest entry of real data often lies: 1.0 in
# one lab and 0.9999999999999999 in another must come to the same scale.
_OFF_POWERS = 0.7
MOST_FEATURES, MOST_NUMBERS = 500, 10**8
SMALLEST, LARGEST = 1e-100, 1e100  # of the largest number, so that no scale overflows
_ALLOWED = "one row of finite numbers per action, rows of one length"


class CanonicalActions(NamedTuple):
    """Actions as integers (feature, action), held exactly by floats, and the exponent e of each feature's unit 2^e."""

    points: FloatArray
    exponents: tuple[int, ...]
    digest: str
    bits: int = BITS

    def action(self, index: int) -> tuple[float, ...]:
        """Return one action as floats, in the user's own units."""
        return tuple(
            math.ldexp(value, exponent)
            for value, exponent in zip(self.points[:, index].tolist(), self.exponents, strict=True)
        )


def canonical(actions: Any, argument: str = "actions", bits: int = BITS) -> CanonicalActions:
    """Check a matrix (action, feature), round it to `bits` binary places of each feature's scale, and return it."""
    points = np.array(checked_matrix(actions, argument).T, order="C")
    exponents = []
    for column in points:
        exponent = scale_exponent(float(np.max(np.abs(column)))) - bits
        np.ldexp(column, -exponent, out=column)
        np.rint(column, out=column)
        column += 0.0  # -0 becomes 0
        exponents.append(exponent)
    points.setflags(write=False)
    return CanonicalActions(points, tuple(exponents), digest_of(points, exponents), bits)


def scale_exponent(largest: float) -> int:
    """Return the exponent e of a feature's scale 2^e, by its largest absolute value."""
    return math.frexp(_OFF_POWERS * largest)[1] if largest else 0


def checked_matrix(actions: Any, argument: str) -> FloatArray:
    """The matrix as floats (action, feature); ragged, empty and non-finite ones are refused."""
    rows = matrix_rows(actions, argument)
    if not isinstance(rows, np.ndarray):
        lengths = sorted({len(row) for row in rows})
        if len(lengths) > 1:
            raise InvalidArgument(argument, "rows of lengths " + ", ".join(map(str, lengths)), _ALLOWED)
    try:
        matrix = np.asarray(rows)
        if matrix.dtype.kind not in "iuf":
            raise ValueError
        matrix = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(argument, actions, _ALLOWED) from None
    if matrix.ndim != 2 or not matrix.size:
        raise InvalidArgument(argument, f"an array of shape {matrix.shape}", _ALLOWED)
    if matrix.shape[1] > MOST_FEATURES or matrix.size > MOST_NUMBERS:
        given = f"{matrix.shape[0]} x {matrix.shape[1]} numbers"
        raise InvalidArgument(argument, given, f"at most {MOST_FEATURES} features and {MOST_NUMBERS:,} numbers")
    largest = float(np.max(np.abs(matrix)))
    if math.isfinite(largest) and not (largest == 0.0 or SMALLEST <= largest <= LARGEST):
        raise InvalidArgument(
            argument,
            f"numbers up to {largest:.3g}",
            f"numbers of which the largest is from {SMALLEST:g} to {LARGEST:g}",
        )
    finite = np.isfinite(matrix)
    if not finite.all():
        row, column = (int(index) for index in np.argwhere(~finite)[0])
        raise InvalidArgument(argument, f"{matrix[row, column]} in row {row}, column {column}", "finite numbers")
    return matrix


# FROZEN(v1): digests of actions stand in designs and in recorded plans
def digest_of(points: FloatArray, exponents: Sequence[int]) -> str:
    """Return the sha256 of the integers and their units, in hexadecimal."""
    head = f"banditto actions 1 {points.shape[1]} {points.shape[0]} {','.join(str(e) for e in exponents)}\n"
    digest = hashlib.sha256(head.encode("ascii"))
    for feature in points:
        digest.update(feature.astype("<i8").data)
    return digest.hexdigest()
