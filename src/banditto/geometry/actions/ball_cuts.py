"""The best action of a ball that is cut by half-spaces, in decimals of 200 digits.

Cuts may be nearly parallel, meet the ball in a point, or have the objective for a normal; with floats each of these
needs a tolerance that some other case breaks. With 200 digits none is needed but one: if nothing satisfies all cuts,
they are moved out by 2^-45 of the radius, so that a slice (two opposite cuts) is not empty by rounding.

The maximiser of <c, a> is where the projection of t c onto the half-spaces, which runs away from 0 as t grows, leaves
the ball. Projections are Goldfarb and Idnani's (1983) dual method, which also says when there is nothing to project on.

Symbols  N: normals of tight cuts, M: N N', p: their point nearest 0, q: what N leaves of c; a(t) = p + t q
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, localcontext
from typing import NamedTuple

Vector = list[Decimal]
MOVED = Decimal(2) ** -45  # of the radius
DIGITS = 200
ZERO = Decimal(10) ** -80  # far below what differences of floats can make, far above the rounding of 200 digits
_MOST_STEPS = 400


@contextmanager
def many_digits() -> Iterator[None]:
    """Calculate with decimals of `DIGITS` digits inside the `with` block."""
    with localcontext() as context:
        context.prec = DIGITS
        yield


class Cuts(NamedTuple):
    """Half-spaces <normal, a> >= least, and the ball's radius; `fixed` numbers cuts that must hold with equality."""

    normals: Sequence[Vector]
    leasts: Sequence[Decimal]
    radius: Decimal
    fixed: tuple[int, ...] = ()


class Slice(NamedTuple):
    """The line a(t) = nearest + t along, on which some cuts are tight; multipliers fall by `growth` as t grows by 1."""

    nearest: Vector
    along: Vector
    growth: Vector


def slice_of(cuts: Cuts, tight: Sequence[int], objective: Vector) -> Slice | None:
    """Return the line along the objective on which these cuts are tight; None if their normals are dependent."""
    normals = [cuts.normals[k] for k in tight]
    solved = _solved(normals, [[cuts.leasts[k] for k in tight], [dot(n, objective) for n in normals]])
    if solved is None:
        return None
    held, growth = solved
    nearest, covered = (combined(normals, weights, len(objective)) for weights in (held, growth))
    return Slice(nearest, [a - b for a, b in zip(objective, covered, strict=True)], growth)


def possible(cuts: Cuts) -> bool:
    """Return whether some action of the ball satisfies all cuts."""
    nearest = _projected(cuts, [Decimal(0)] * len(cuts.normals[0]))
    return nearest is not None and dot(nearest[0], nearest[0]) <= cuts.radius**2


def best(cuts: Cuts, objectives: Sequence[Vector]) -> Vector | None:
    """Return the best action by the first objective, of ties by the second, and so on; None if there is none."""
    start = _projected(cuts, [Decimal(0)] * len(objectives[0]))
    if start is None or dot(start[0], start[0]) > cuts.radius**2:
        return None
    for index, objective in enumerate(objectives):
        length = dot(objective, objective).sqrt()
        unit = [value / length for value in objective] if length else objective
        found = _farthest(cuts, unit) if length else None
        if isinstance(found, tuple):  # a whole slice is as good: the objectives that follow decide on it
            return best(cuts._replace(fixed=found), objectives[index + 1 :] or [unit])
        if found is not None:
            return found
    return start[0]  # nothing is left to choose


def is_best(cuts: Cuts, tight: Sequence[int], objective: Vector) -> Vector | None:
    """Return the best action if exactly these cuts are tight at it; None if they are not, or if that is uncertain."""
    piece = slice_of(cuts, tight, objective)
    if piece is None:
        return None
    room, step = cuts.radius**2 - dot(piece.nearest, piece.nearest), dot(piece.along, piece.along)
    if room <= MOVED * cuts.radius**2 or step <= ZERO:
        return None
    far = (room / step).sqrt()
    action = [p + far * q for p, q in zip(piece.nearest, piece.along, strict=True)]
    normals = [cuts.normals[k] for k in tight]
    solved = _solved(normals, [[cuts.leasts[k] for k in tight]])
    assert solved is not None
    multipliers = [a - far * b for a, b in zip(solved[0], piece.growth, strict=True)]
    if any(value < 0 for value in multipliers) or _missed(cuts, action, tight)[0] > 0:
        return None
    return action


def _farthest(cuts: Cuts, objective: Vector) -> Vector | tuple[int, ...] | None:
    """Return where a(t) leaves the ball, or the tight cuts if it never does; None if the objective is constant."""
    low, high, t = Decimal(0), None, cuts.radius
    for _ in range(_MOST_STEPS):
        projected = _projected(cuts, [t * value for value in objective])
        if projected is None:
            return None
        action, tight = projected
        piece = slice_of(cuts, tight, objective)
        assert piece is not None
        step = dot(piece.along, piece.along)
        inside = dot(action, action) <= cuts.radius**2
        root = None
        if step <= ZERO:
            free = piece.growth[len(cuts.fixed) :]
            if inside and all(value <= ZERO for value in free):
                # cuts whose multipliers do not grow are not needed to hold the slice
                held = [k for k, g in zip(tight[len(cuts.fixed) :], free, strict=True) if g < -ZERO]
                return (*cuts.fixed, *held) if held else None
        else:
            room = cuts.radius**2 - dot(piece.nearest, piece.nearest)
            if room >= 0:
                root = (room / step).sqrt()
                again = _projected(cuts, [root * value for value in objective])
                if again is not None and sorted(again[1]) == sorted(tight):
                    return [p + root * q for p, q in zip(piece.nearest, piece.along, strict=True)]
        low, high = (t, high) if inside else (low, t)
        if root is not None and low < root and (high is None or root < high):
            t = root
        else:
            t = 2 * t if high is None else (low + high) / 2
        if high is not None and high - low <= ZERO.sqrt() * high:
            break
    return action


def _projected(cuts: Cuts, point: Vector) -> tuple[Vector, list[int]] | None:
    """Return the point of the half-spaces nearest to `point`, and the tight cuts; None if no point satisfies them."""
    active = list(cuts.fixed)
    normals = [cuts.normals[k] for k in active]
    solved = _solved(normals, [[cuts.leasts[k] - dot(cuts.normals[k], point) for k in active]])
    if solved is None:
        return None
    multipliers = solved[0]
    pulled = combined(normals, multipliers, len(point))
    action = [a + b for a, b in zip(point, pulled, strict=True)]
    for _ in range(_MOST_STEPS):
        missed, entering = _missed(cuts, action, active)
        if missed <= ZERO * cuts.radius:
            return action, active
        gained = Decimal(0)
        while True:
            normals = [cuts.normals[k] for k in active]
            wanted = cuts.normals[entering]
            solved = _solved(normals, [[dot(n, wanted) for n in normals]])
            if solved is None:
                return None
            shares = solved[0]
            free = [w - b for w, b in zip(wanted, combined(normals, shares, len(wanted)), strict=True)]
            size = dot(free, free)
            falling = [(multipliers[i] / shares[i], i) for i in range(len(cuts.fixed), len(active)) if shares[i] > ZERO]
            partial = min(falling, default=None)
            full = missed / size if size > ZERO else None
            if partial is None and full is None:
                return None
            if partial is None or (full is not None and full <= partial[0]):
                length, leaving = full, None
            else:
                length, leaving = partial
            assert length is not None
            if size > ZERO:
                action = [a + length * f for a, f in zip(action, free, strict=True)]
                missed -= length * size
            multipliers = [m - length * s for m, s in zip(multipliers, shares, strict=True)]
            gained += length
            if leaving is None:
                active.append(entering)
                multipliers.append(gained)
                break
            del active[leaving], multipliers[leaving]
    return None


def _missed(cuts: Cuts, action: Vector, tight: Sequence[int]) -> tuple[Decimal, int]:
    """Return by how much the action misses the worst of the other cuts, and that cut's number."""
    pairs = enumerate(zip(cuts.normals, cuts.leasts, strict=True))
    others = [(least - dot(normal, action), -k) for k, (normal, least) in pairs if k not in tight]
    missed, number = max(others, default=(Decimal(-1), 1))
    return missed, -number


def combined(normals: Sequence[Vector], weights: Sequence[Decimal], dimension: int) -> Vector:
    """Return the weighted sum of the normals."""
    total = [Decimal(0)] * dimension
    for normal, weight in zip(normals, weights, strict=True):
        total = [a + weight * b for a, b in zip(total, normal, strict=True)]
    return total


def dot(left: Vector, right: Vector) -> Decimal:
    """Return the inner product of two vectors."""
    return sum((a * b for a, b in zip(left, right, strict=True)), Decimal(0))


def _solved(normals: Sequence[Vector], rights: Sequence[Vector]) -> list[Vector] | None:
    """Solve N N' x = right for each right side, N being the rows `normals`; None if the normals are dependent."""
    rows = [[dot(n, m) for m in normals] + [right[i] for right in rights] for i, n in enumerate(normals)]
    size = len(normals)
    for i in range(size):
        if rows[i][i] <= ZERO:
            return None
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(size):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [[rows[i][size + j] for i in range(size)] for j in range(len(rights))]
