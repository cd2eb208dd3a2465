"""Ball: every action of length at most r, possibly cut by half-spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real
from banditto.core.tabular import pairs_in
from banditto.geometry.actions.ball_cuts import MOVED, Cuts, best, dot, is_best, many_digits, possible
from banditto.geometry.actions.sets import (
    Action,
    ConvexSet,
    Direction,
    Slab,
    checked_cut,
    checked_dimension,
    checked_direction,
    empty,
)
from banditto.numbers.fixed_order import cholesky, inner, product, solved_lower

MOST_CUTS = 24
_CLOSE = 2.0**-40  # relative: what floats leave to decimals


class HalfSpace(NamedTuple):
    """The actions a with `<normal, a> >= least`; the normal has length 1."""

    normal: tuple[float, ...]
    least: float


@dataclass(frozen=True, kw_only=True)
class Ball(ConvexSet):
    """The set `{a : |a| <= radius, <normal, a> >= least for every cut}`.

    Args:
        dimension: The number of features, 1 or more.
        radius: The largest length of an action, 1e-100 to 1e100. Default 1.
        cuts: Half-spaces (normal, least) that the ball is cut by, 24 at most. Default none.

    Examples:
        >>> Ball(dimension=2).maximise((0.0, 4.0))
        (0.0, 1.0)
        >>> Ball(dimension=2).cut((0, -1), -0.6).maximise((0.0, 4.0))
        (0.8, 0.6)
    """

    dimension: int
    radius: float = 1.0
    cuts: tuple[HalfSpace, ...] = ()

    name: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checked_dimension(self.dimension))
        object.__setattr__(self, "radius", real(self.radius, "radius"))
        if not 1e-100 <= self.radius <= 1e100:
            raise InvalidArgument("radius", self.radius, "a number from 1e-100 to 1e100")
        pairs = pairs_in(self.cuts, ("normal", "least"), "cuts")
        cuts = tuple(_normalised(*checked_cut(normal, least, self.dimension)) for normal, least in pairs)
        if len(cuts) > MOST_CUTS:
            raise InvalidArgument("cuts", f"{len(cuts)} of them", f"at most {MOST_CUTS}")
        object.__setattr__(self, "cuts", cuts)
        if cuts:
            self.maximise(cuts[-1].normal)  # an empty set is refused at once

    def cut(self, normal: Direction, least: float) -> Ball:
        """Return the actions with `<normal, a> >= least`: the ball with one more half-space."""
        values, least = checked_cut(normal, least, self.dimension)
        return Ball(
            dimension=self.dimension,
            radius=self.radius,
            cuts=(*self.cuts, HalfSpace(tuple(values.tolist()), least)),
        )

    def maximise(self, direction: Direction) -> Action:
        """Return the only maximiser, or of several (along a cut's own normal) the lexicographically largest."""
        wanted = checked_direction(direction, self.dimension)
        top = float(np.max(np.abs(wanted)))
        scaled = np.ldexp(wanted, -math.frexp(top)[1])  # so that no square overflows
        length = math.sqrt(inner(scaled, scaled))
        if not self.cuts and length:
            return tuple((scaled * (self.radius / length)).tolist())
        with many_digits():
            cuts = self._exact
            objective = [Decimal(value) for value in scaled.tolist()]
            found = None
            tight = self._guessed(scaled / length) if length else None
            if tight is not None:  # floats propose, decimals decide
                size = dot(objective, objective).sqrt()
                found = is_best(cuts, tight, [value / size for value in objective])
            if found is None:
                units = [[Decimal(int(i == j)) for j in range(self.dimension)] for i in range(self.dimension)]
                found = best(cuts, [objective, *units])
        if found is None:
            raise empty("ball")
        return tuple(float(value) + 0.0 for value in found)

    @cached_property
    def _exact(self) -> Cuts:
        """Return the radius and the cuts as decimals of many digits."""
        radius = Decimal(self.radius)
        normals = [[Decimal(value) for value in cut.normal] for cut in self.cuts]
        with many_digits():
            cuts = Cuts(normals, [Decimal(cut.least) for cut in self.cuts], radius)
            if cuts.normals and not possible(cuts):
                cuts = cuts._replace(leasts=[least - MOVED * radius for least in cuts.leasts])
            return cuts

    def _guessed(self, objective: FloatArray) -> tuple[int, ...] | None:
        """Guess in floats which cuts are tight at the best action, and return their numbers; None if that fails."""
        tight: tuple[int, ...] = ()
        seen = set[tuple[int, ...]]()
        while tight not in seen:
            seen.add(tight)
            piece = self._slice(objective, tight)
            if piece is None:
                return None
            action, pulls = piece
            if pulls and min(pulls) < 0.0:
                wrong = pulls.index(min(pulls))
                tight = (*tight[:wrong], *tight[wrong + 1 :])
                continue
            missed = [inner(np.array(cut.normal), action) - cut.least for cut in self.cuts]
            worst = missed.index(min(missed))
            if missed[worst] >= -_CLOSE * self.radius:
                return tight
            tight = tuple(sorted({*tight, worst}))
        return None

    def _slice(self, objective: FloatArray, tight: tuple[int, ...]) -> tuple[FloatArray, list[float]] | None:
        """Return the best action of the ball where the given cuts are tight, and the cuts' multipliers, in floats.

        Symbols  p: the slice's point nearest 0, q: the objective inside the slice, nu: multiplier of the ball
        """
        normals = np.array([self.cuts[k].normal for k in tight]).reshape(len(tight), self.dimension)
        least = np.array([self.cuts[k].least for k in tight])
        p, q, along, lower = np.zeros(self.dimension), objective, np.zeros(0), np.zeros((0, 0))
        if tight:
            across = np.ascontiguousarray(normals.T)
            found = cholesky(product(normals, across))
            if found is None:
                return None
            lower, along = found, product(normals, objective)
            p = product(across, solved_lower(lower, least))
            q = objective - product(across, solved_lower(lower, along))
        room, length = self.radius * self.radius - inner(p, p), math.sqrt(inner(q, q))
        if room <= 0.0 or length <= _CLOSE:
            return None
        nu = length / math.sqrt(room)
        return p + q / nu, solved_lower(lower, nu * least - along).tolist()

    def slabs(self) -> list[Slab]:
        """Return a slab for each cut, up to the largest value of its normal."""
        slabs = []
        for cut in self.cuts:
            normal = np.array(cut.normal)
            high = inner(normal, np.array(self.maximise(normal)))
            slack = _CLOSE * self.radius
            slabs.append(Slab(cut.normal, cut.least - slack, high + slack))
        return slabs

    def reach(self) -> float:
        """Return the radius."""
        return self.radius

    def to_dict(self) -> dict[str, Any]:
        """Return name, dimension, radius and cuts as plain data."""
        cuts = [{"normal": list(cut.normal), "least": cut.least} for cut in self.cuts]
        return {"type": self.name, "dimension": self.dimension, "radius": self.radius} | (
            {"cuts": cuts} if cuts else {}
        )


def _normalised(normal: FloatArray, least: float) -> HalfSpace:
    """Return the half-space with a normal of length 1."""
    exponent = math.frexp(float(np.max(np.abs(normal))))[1]
    scaled = np.ldexp(normal, -exponent)  # exact, and no square overflows
    length = math.sqrt(inner(scaled, scaled))
    if exponent in (0, 1) and abs(math.ldexp(length, exponent) - 1.0) < 2.0**-48:
        return HalfSpace(tuple(normal.tolist()), least)  # it is one already: what was written is read back as it was
    return HalfSpace(tuple((scaled / length).tolist()), least / length * 2.0 ** -max(-900, min(900, exponent)))
