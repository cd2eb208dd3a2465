"""The vertex of a polytope that maximises a linear objective: exact, and the only one.

When a whole face of {F a <= f} maximises <c, a>, which of its vertices a solver returns depends on the solver, on its
starting point and on the machine. The vertex here is the *first* maximiser: of all maximisers the one with the largest
<t, a>, t = (d, d - 1, ..., 1), and if that leaves several, of those the lexicographically largest. That is one point,
whoever computes it. (t alone almost always decides, and a solver that is given c + a little t finds the vertex.)

It is found by the dual simplex method in exact integer arithmetic, usually without a single pivot, because a floating
point solver proposes the basis. The objective is (c, t, e_1, ..., e_d) in lexicographic order. A basis is d rows B of
F; its multipliers are the columns of B^-1 read as (c . column, t . column, column): lexicographically positive for all
d rows means that no other point of the polytope is as good, and since a column of B^-1 is not zero, no multiplier
ever is. The dual is therefore never degenerate: every pivot makes progress, and the method ends.

Symbols  N: D B^-1, an integer matrix; D: |det B|, up to a common factor; x: vertex, times D
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

Row = list[int]


class Empty(Exception):
    """No point satisfies all rows."""


class Beyond(Exception):
    """The maximum lies outside the box that was said to hold the polytope."""


class ExactHalfSpace(NamedTuple):
    """The half-space <row, a> <= bound in integers; `number` is its row in the polytope, -1 for an added safety row."""

    row: tuple[int, ...]
    bound: int
    number: int


class Vertex(NamedTuple):
    """A vertex as exact fractions, the rows that are tight at it, and how many pivots it took to find."""

    point: tuple[Fraction, ...]
    basis: tuple[int, ...]
    pivots: int


def tie_breaker(dimension: int) -> range:
    """Return t = (d, ..., 1), the second objective, which decides among maximisers of the first."""
    return range(dimension, 0, -1)


def integer_row(row: Sequence[float], bound: float, number: int) -> ExactHalfSpace:
    """Return a half-space given in floats with integers, scaled by a power of two so that nothing is rounded."""
    ratios = [float(value).as_integer_ratio() for value in (*row, bound)]
    scale = max(denominator for _, denominator in ratios)
    *whole, last = (numerator * (scale // denominator) for numerator, denominator in ratios)
    return ExactHalfSpace(tuple(whole), last, number)


def maximiser(
    rows: Sequence[ExactHalfSpace], reach: Sequence[int], proposed: Sequence[int], objective: Sequence[int]
) -> Vertex:
    """Return the vertex that maximises `objective` over the rows, the first of ties.

    `reach` bounds every |a_j| with room to spare; `proposed` are d row numbers, a guess that only saves pivots.
    """
    basis = [rows[number] for number in proposed]
    inverse = inverse_columns([half.row for half in basis]) if len(basis) == len(reach) else None
    if inverse is None:  # no guess, or a singular one: the box that surely holds the polytope
        basis = [_wall(len(reach), feature, reach[feature]) for feature in range(len(reach))]
        inverse = inverse_columns([half.row for half in basis])
        assert inverse is not None
    columns, scale = inverse
    for index, column in enumerate(columns):
        if _key(column, objective) < _zeros(column):  # use the far side of that row, where the sign is right
            basis[index] = _opposite(basis[index], reach)
            columns[index] = [-value for value in column]
    pivots = 0
    while True:
        point = vertex_of(basis, columns)
        entering = _violated(rows, point, scale)
        if entering is None:
            break
        columns, scale = _pivot(basis, columns, scale, entering, objective)
        pivots += 1
    if any(half.number < 0 for half in basis):
        raise Beyond
    return Vertex(tuple(Fraction(value, scale) for value in point), tuple(half.number for half in basis), pivots)


def _pivot(
    basis: list[ExactHalfSpace], columns: list[Row], scale: int, entering: ExactHalfSpace, objective: Sequence[int]
) -> tuple[list[Row], int]:
    """Exchange a row of the basis for `entering`: the one whose multiplier runs out first; return the new N and D."""
    shares = [dot(entering.row, column) for column in columns]
    leaving = -1
    for index, share in enumerate(shares):
        if share > 0 and (leaving < 0 or _runs_out_first(columns, shares, index, leaving, objective)):
            leaving = index
    if leaving < 0:
        raise Empty
    basis[leaving] = entering
    return exchanged(columns, scale, shares, leaving)


def exchanged(columns: list[Row], scale: int, shares: list[int], leaving: int) -> tuple[list[Row], int]:
    """Return N and D, the basis' inverse N/D, after a row with products `shares` replaced the row `leaving`."""
    left, pivot = columns[leaving], shares[leaving]
    sign = 1 if pivot > 0 else -1
    changed = [
        [sign * value for value in left]
        if index == leaving
        else [sign * (pivot * a - shares[index] * b) // scale for a, b in zip(column, left, strict=True)]
        for index, column in enumerate(columns)
    ]
    return changed, sign * pivot


def _runs_out_first(columns: list[Row], shares: list[int], one: int, other: int, objective: Sequence[int]) -> bool:
    """Return whether the multiplier of row `one` reaches 0 before that of `other`; ties go on to the next objective."""
    keys = zip(_key(columns[one], objective), _key(columns[other], objective), strict=True)
    for a, b in keys:
        difference = a * shares[other] - b * shares[one]
        if difference:
            return difference < 0
    return False


def _violated(rows: Sequence[ExactHalfSpace], point: Row, scale: int) -> ExactHalfSpace | None:
    """Return the row that `point` violates most, relative to its largest entry; None if it violates none."""
    worst, most = None, 0.0
    for half in rows:
        beyond = dot(half.row, point) - half.bound * scale
        if beyond > 0:
            size = beyond / (scale * max(max(map(abs, half.row)), 1))
            if worst is None or size > most:
                worst, most = half, size
    return worst


def vertex_of(basis: Sequence[ExactHalfSpace], columns: list[Row]) -> Row:
    """Return the point where all rows of the basis are tight, times the common denominator D."""
    return [sum(column[k] * half.bound for half, column in zip(basis, columns, strict=True)) for k in range(len(basis))]


def _key(column: Row, objective: Sequence[int]) -> Row:
    return [dot(objective, column), dot(tie_breaker(len(column)), column), *column]


def _zeros(column: Row) -> Row:
    return [0] * (len(column) + 2)


def _wall(dimension: int, feature: int, reach: int) -> ExactHalfSpace:
    return ExactHalfSpace(tuple(int(j == feature) for j in range(dimension)), reach, -1)


def _opposite(half: ExactHalfSpace, reach: Sequence[int]) -> ExactHalfSpace:
    """Return a half-space with the opposite normal, so wide that it holds the whole box."""
    return ExactHalfSpace(tuple(-value for value in half.row), dot([abs(v) for v in half.row], reach), -1)


def dot(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the inner product of two integer vectors."""
    return sum(a * b for a, b in zip(left, right, strict=True) if a)


def inverse_columns(matrix: Sequence[Sequence[int]]) -> tuple[list[Row], int] | None:
    """Return the columns of D B^-1, for the matrix B, and the integer D > 0; None if B is singular (Bareiss)."""
    size = len(matrix)
    rows = [[*row, *(int(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    previous = 1
    for step in range(size):
        found = next((i for i in range(step, size) if rows[i][step]), None)
        if found is None:
            return None
        rows[step], rows[found] = rows[found], rows[step]
        pivot_row = rows[step]
        pivot = pivot_row[step]
        for i, row in enumerate(rows):
            if i != step:
                factor = row[step]
                if factor:
                    rows[i] = [(pivot * a - factor * b) // previous for a, b in zip(row, pivot_row, strict=True)]
                elif pivot != previous:
                    rows[i] = [pivot * a // previous for a in row]
        previous = pivot
    sign = 1 if previous > 0 else -1
    return [[sign * row[size + j] for row in rows] for j in range(size)], abs(previous)
