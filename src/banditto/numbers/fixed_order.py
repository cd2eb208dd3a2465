"""Linear algebra whose last bit is the same on every machine.

A library such as BLAS adds in the order that suits the processor, so that two machines disagree in the last bit,
and a tie is then broken one way here and the other way there. Everything below is one elementwise NumPy operation
at a time (multiplication, addition, subtraction, division, square root: IEEE 754 fixes each of them to the bit),
in an order that the code spells out. No function here may call `dot`, `matmul`, `einsum`, `sum` or LAPACK.

Points are stored feature-major, as (feature, point), so that one feature of all points is contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from banditto.core.arrays import FloatArray, IntArray

_BLOCK = 32_768  # points at a time: small enough for the processor's cache, large enough that calls cost little


# FROZEN(v1): the order of operations, in all of this module; a design, a plan or a tie may hang on the last bit
def linear_forms(points: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the inner product <direction, p> for every point p; features are added from first to last."""
    forms = np.empty(points.shape[1])
    scratch = np.empty(min(_BLOCK, points.shape[1]))
    for block in _blocks(points.shape[1]):
        _linear(points[:, block], direction, forms[block], scratch[: block.stop - block.start])
    return forms


def quadratic_forms(points: FloatArray, factor: FloatArray) -> FloatArray:
    """Return |factor p|^2 for every point p; `factor` is a lower triangular matrix."""
    forms = np.zeros(points.shape[1])
    width = min(_BLOCK, points.shape[1])
    row, scratch = np.empty(width), np.empty(width)
    for block in _blocks(points.shape[1]):
        size = block.stop - block.start
        out = forms[block]
        for index in range(factor.shape[0]):
            _linear(points[: index + 1, block], factor[index, : index + 1], row[:size], scratch[:size])
            np.multiply(row[:size], row[:size], out=row[:size])
            np.add(out, row[:size], out=out)
    return forms


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count, _BLOCK):
        yield slice(start, min(start + _BLOCK, count))


def _linear(points: FloatArray, direction: FloatArray, out: FloatArray, scratch: FloatArray) -> None:
    np.multiply(points[0], direction[0], out=out)
    for feature in range(1, points.shape[0]):
        np.multiply(points[feature], direction[feature], out=scratch)
        np.add(out, scratch, out=out)


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the matrix product left @ right, summed in a fixed order; `right` may be a vector."""
    if right.ndim == 1:
        return product(left, right[:, None])[:, 0]
    total = left[:, :1] * right[:1]
    for index in range(1, left.shape[1]):
        total += left[:, index : index + 1] * right[index : index + 1]
    return total


def inner(left: FloatArray, right: FloatArray) -> float:
    """Return the inner product of two vectors, added from first to last."""
    total = 0.0
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        total += a * b
    return total


def second_moment(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the matrix sum of weight * p p' over the points, added from the first to the last."""
    moment = np.zeros((points.shape[0], points.shape[0]))
    for index, weight in enumerate(weights.tolist()):
        point = points[:, index]
        moment += (weight * point)[:, None] * point[None, :]
    return moment


def cholesky(matrix: FloatArray) -> FloatArray | None:
    """Return the lower triangular L with L L' = matrix, or None when a pivot is not positive."""
    rest = np.array(matrix, dtype=np.float64)
    lower = np.zeros_like(rest)
    for index in range(rest.shape[0]):
        pivot = rest[index, index]
        if not pivot > 0.0:
            return None
        column = rest[index:, index] / np.sqrt(pivot)
        lower[index:, index] = column
        rest[index + 1 :, index + 1 :] -= column[1:, None] * column[None, 1:]
    return lower


def inverse_of_lower(lower: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangular matrix, by forward substitution on the columns of the identity."""
    size = lower.shape[0]
    inverse = np.eye(size)
    for index in range(size):
        inverse[index] /= lower[index, index]
        inverse[index + 1 :] -= lower[index + 1 :, index : index + 1] * inverse[index : index + 1]
    return inverse


def solved_lower(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Return the x with L L' x = right, for a lower triangular L, by forward and then backward substitution."""
    out = right.copy()
    for index in range(out.size):
        out[index] /= lower[index, index]
        out[index + 1 :] -= lower[index + 1 :, index] * out[index]
    for index in range(out.size - 1, -1, -1):
        out[index] /= lower[index, index]
        out[:index] -= lower[index, :index] * out[index]
    return out


def total(values: FloatArray) -> float:
    """Return the exact sum, rounded once at the end, so that the order of the values does not matter."""
    return math.fsum(values.tolist())


def exact(matrix: FloatArray, bits: int) -> tuple[list[list[int]], list[int]]:
    """Return each row as integers of at most `bits` bits, and for each row the exponent e of its unit 2^e.

    Rows are (feature or row, entry); a row of zeros has unit 1.
    """
    rows, exponents = [], []
    for row in matrix:
        exponent = int(np.frexp(np.max(np.abs(row)))[1]) - bits if np.any(row) else 0
        rows.append([int(value) for value in np.rint(np.ldexp(row, -exponent)).tolist()])
        exponents.append(exponent)
    return rows, exponents


def largest(values: FloatArray, allowed: IntArray | None = None) -> int:
    """Return the index of the largest value, the lowest of ties; only indices in `allowed`, if it is given."""
    if allowed is None:
        return int(np.argmax(values))
    return int(allowed[int(np.argmax(values[allowed]))])
