"""Ball: every action of length at most r, possibly cut by half-spaces."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditto.actions.sets import (
    Action,
    ConvexSet,
    Direction,
    Slab,
    checked_cut,
    checked_dimension,
    checked_direction,
    empty,
)
from banditto.algebra import cholesky, inner, product, solved_lower
from banditto.arrays import FloatArray
from banditto.errors import InvalidArgument
from banditto.exact import real

MOST_CUTS = 24
# Relative: a constraint counts as kept, and a direction as zero, up to this. Far above rounding, far below a cut.
TOLERANCE = 2.0**-36


class HalfSpace(NamedTuple):
    """<normal, a> >= least, with a normal of length 1."""

    normal: tuple[float, ...]
    least: float


@dataclass(frozen=True, kw_only=True)
class Ball(ConvexSet):
    """{a : |a| <= radius, <normal, a> >= least for every cut}."""

    dimension: int
    radius: float = 1.0
    cuts: tuple[HalfSpace, ...] = ()

    name: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checked_dimension(self.dimension))
        object.__setattr__(self, "radius", real(self.radius, "radius"))
        if not 1e-100 <= self.radius <= 1e100:
            raise InvalidArgument("radius", self.radius, "a number from 1e-100 to 1e100")
        cuts = tuple(_normalised(*checked_cut(normal, least, self.dimension)) for normal, least in self.cuts)
        if len(cuts) > MOST_CUTS:
            raise InvalidArgument("cuts", f"{len(cuts)} of them", f"at most {MOST_CUTS}")
        object.__setattr__(self, "cuts", cuts)
        if cuts:
            self.maximise(cuts[-1].normal)  # an empty set is refused at once

    def cut(self, normal: Direction, least: float) -> Ball:
        """One more half-space."""
        values, least = checked_cut(normal, least, self.dimension)
        return Ball(
            dimension=self.dimension,
            radius=self.radius,
            cuts=(*self.cuts, HalfSpace(tuple(values.tolist()), least)),
        )

    def maximise(self, direction: Direction) -> Action:
        """The only maximiser, or where there are more (along a cut's own normal), the lexicographically largest."""
        wanted = checked_direction(direction, self.dimension)
        top = float(np.max(np.abs(wanted)))
        objectives = [np.ldexp(wanted, -math.frexp(top)[1]), *np.eye(self.dimension)]  # so that no square overflows
        found = self._best(objectives, ())
        if found is None:
            raise empty("ball")
        return tuple(found.tolist())

    def _best(self, objectives: Sequence[FloatArray], fixed: tuple[int, ...]) -> FloatArray | None:
        """The best action by the first objective that matters on the slice where the cuts `fixed` are tight.

        An active-set method finds it in a few steps as a rule; where that goes in circles or ends on a flat slice, all
        sets of tight cuts are tried, small ones first.
        """
        others = [k for k in range(len(self.cuts)) if k not in fixed]
        for index, objective in enumerate(objectives):
            length = math.sqrt(inner(objective, objective))
            if length == 0.0 or self._slice(objective / length, fixed).flat:
                continue
            quick = self._guessed(objective / length, fixed)
            if quick is not None:
                return quick
            for size in range(min(len(others), self.dimension - len(fixed)) + 1):
                for more in itertools.combinations(others, size):
                    tight = (*fixed, *more)
                    piece = self._slice(objective / length, tight)
                    if not piece.possible or any(value < -TOLERANCE for value in piece.multipliers[len(fixed) :]):
                        continue
                    if piece.flat:  # the whole slice is as good: the next objective decides on it
                        found = self._best(objectives[index + 1 :], tight)
                        if found is not None:
                            return found
                    elif self._holds(piece.action):
                        return piece.action
            return None
        only = self._slice(np.zeros(self.dimension), fixed)
        return only.action if only.possible and self._holds(only.action) else None

    def _guessed(self, objective: FloatArray, fixed: tuple[int, ...]) -> FloatArray | None:
        """Let go of the cut that pulls the wrong way most, or else hold on to the one that is violated most."""
        tight, seen = fixed, set[tuple[int, ...]]()
        while tight not in seen:
            seen.add(tight)
            piece = self._slice(objective, tight)
            if not piece.possible or piece.flat:
                return None
            pulls = piece.multipliers[len(fixed) :]
            if pulls and min(pulls) < -TOLERANCE:
                wrong = len(fixed) + pulls.index(min(pulls))
                tight = (*tight[:wrong], *tight[wrong + 1 :])
                continue
            missed = [inner(np.array(cut.normal), piece.action) - cut.least for cut in self.cuts]
            worst = missed.index(min(missed)) if missed else -1
            if worst < 0 or missed[worst] >= -TOLERANCE * self.radius:
                return piece.action
            tight = (*fixed, *sorted({*tight[len(fixed) :], worst}))
        return None

    def _slice(self, objective: FloatArray, tight: tuple[int, ...]) -> _Slice:
        """The best action of the ball where the given cuts are tight, and their multipliers.

        Symbols  p: the slice's point nearest 0, q: the objective inside the slice, nu: multiplier of the ball
        """
        radius, size = self.radius, len(tight)
        normals = np.array([self.cuts[k].normal for k in tight]).reshape(size, self.dimension)
        least = np.array([self.cuts[k].least for k in tight])
        p, q, along, lower = np.zeros(self.dimension), objective, np.zeros(0), np.zeros((0, 0))
        if tight:
            across = np.ascontiguousarray(normals.T)
            found = cholesky(product(normals, across))
            if found is None or float(np.min(np.diagonal(found))) < TOLERANCE:
                return _Slice(False, False, objective, [])
            lower, along = found, product(normals, objective)
            p = product(across, solved_lower(lower, least))
            q = objective - product(across, solved_lower(lower, along))
        room = radius * radius - inner(p, p)
        if room < -TOLERANCE * radius * radius:
            return _Slice(False, False, objective, [])
        room, length = math.sqrt(max(room, 0.0)), math.sqrt(inner(q, q))
        flat = length <= TOLERANCE
        action = p if flat else p + (room / length) * q
        # a slice that only touches the ball is one point, and its multiplier may be as large as it has to be
        nu = 0.0 if flat else length / max(room, TOLERANCE * radius)
        multipliers = solved_lower(lower, nu * least - along) / (1.0 + nu * radius)
        return _Slice(True, flat, action, multipliers.tolist())

    def _holds(self, action: FloatArray) -> bool:
        slack = TOLERANCE * self.radius
        return all(inner(np.array(cut.normal), action) >= cut.least - slack for cut in self.cuts)

    def slabs(self) -> list[Slab]:
        """Every cut, up to the largest value of its normal."""
        slabs = []
        for cut in self.cuts:
            normal = np.array(cut.normal)
            high = inner(normal, np.array(self.maximise(normal)))
            slack = 2 * TOLERANCE * self.radius
            slabs.append(Slab(cut.normal, cut.least - slack, high + slack))
        return slabs

    def reach(self) -> float:
        """The radius."""
        return self.radius

    def to_dict(self) -> dict[str, Any]:
        """Name, dimension, radius and cuts."""
        cuts = [{"normal": list(cut.normal), "least": cut.least} for cut in self.cuts]
        return {"type": self.name, "dimension": self.dimension, "radius": self.radius} | (
            {"cuts": cuts} if cuts else {}
        )


class _Slice(NamedTuple):
    possible: bool
    flat: bool  # the objective is constant on the slice
    action: FloatArray
    multipliers: list[float]


def _normalised(normal: FloatArray, least: float) -> HalfSpace:
    scale = 2.0 ** -math.frexp(float(np.max(np.abs(normal))))[1]  # exact, so that no square overflows
    length = math.sqrt(inner(normal * scale, normal * scale))
    if abs(length / scale - 1.0) < 2.0**-48:  # it is one already: what was written is read back as it was
        return HalfSpace(tuple(normal.tolist()), least)
    return HalfSpace(tuple((normal * scale / length).tolist()), least * scale / length)
