"""The action of largest norm in a set: a good one, and a bound that no action exceeds.

`|X a|` is convex in a, so that its largest values are taken at extreme points, and following <X' X a, .> from one
extreme point to the next never makes it smaller. 2 d maximisations along the axes of the whitened space X a give the
first points, and slabs as well; the bound is Shor's relaxation over those slabs and the set's own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument, shown
from banditto.geometry.actions.canonical import scale_exponent
from banditto.geometry.actions.relaxation import COARSE, norm_bound
from banditto.geometry.actions.sets import ActionSet, ConvexSet, Slab
from banditto.numbers.fixed_order import inner, product

MOST_ASCENTS = 50
_WORTHWHILE = 2.0**-10  # relative: smaller gains end a climb, which on a smooth set would go on for ever
POINT_BITS = 45
_SLACK = 2.0**-40


class LongestAction(NamedTuple):
    """An extreme point p in scaled units, and |X p|^2, the squared norm that is to be large."""

    point: FloatArray
    value: float


class ScaledSet:
    """A set seen through some of its features, each in units of its own scale 2^e: p_j = a_j / 2^e_j.

    Actions are rounded to 45 binary places of those units, so that sums of their products are exact in integers.
    """

    def __init__(self, actions: ActionSet) -> None:
        self.actions = actions
        self.features = list(range(actions.dimension))
        self.questions = 0
        self.exponents = np.zeros(actions.dimension, dtype=np.int64)
        self._actions: dict[bytes, FloatArray] = {}
        reach = []
        for unit in np.eye(actions.dimension):
            ends = [abs(inner(unit, np.array(self._asked(sign * unit)))) for sign in (1.0, -1.0)]
            reach.append(scale_exponent(max(ends)))
        self.exponents = np.array(reach)

    @property
    def dimension(self) -> int:
        """The number of features that are kept."""
        return len(self.features)

    def keep(self, features: list[int]) -> None:
        """Keep only these features, named by their places among those kept so far."""
        self.features = [self.features[index] for index in features]

    def maximise(self, direction: FloatArray) -> FloatArray:
        """Return the point p of the scaled set with the largest <direction, p>."""
        full = np.zeros(self.actions.dimension)
        full[self.features] = direction
        action = np.array(self._asked(np.ldexp(full, -self.exponents)))
        scaled = np.ldexp(np.rint(np.ldexp(action, POINT_BITS - self.exponents)), -POINT_BITS) + 0.0
        point: FloatArray = scaled[self.features]
        self._actions.setdefault(point.tobytes(), scaled)
        return point

    def _asked(self, direction: FloatArray) -> tuple[float, ...]:
        self.questions += 1
        action = tuple(float(value) for value in self.actions.maximise(direction))
        if len(action) != self.actions.dimension or not all(math.isfinite(value) for value in action):
            raise InvalidArgument("actions", f"{shown(action)} from maximise", "finite numbers, one per feature")
        return action

    def action(self, point: FloatArray) -> tuple[float, ...]:
        """Return the whole action, in the user's own units, that was rounded to this point."""
        return tuple(np.ldexp(self._actions[point.tobytes()], self.exponents).tolist())

    def own_slabs(self) -> list[Slab]:
        """Return the slabs that the set itself knows, in scaled units; none if some features were dropped."""
        if not isinstance(self.actions, ConvexSet) or self.dimension < self.actions.dimension:
            return []
        return [
            Slab(tuple(np.ldexp(np.array(slab.normal), self.exponents).tolist()), slab.low, slab.high)
            for slab in self.actions.slabs()
        ]

    def ball(self) -> FloatArray | None:
        """Return b with |b p|^2 <= 1 (elementwise product) for all points p; None if the set states no radius."""
        reach = self.actions.reach() if isinstance(self.actions, ConvexSet) else None
        return None if reach is None else np.ldexp(np.ones(self.dimension), self.exponents[self.features]) / reach


def axis_points(actions: ScaledSet, factor: FloatArray) -> tuple[list[LongestAction], list[Slab]]:
    """Return the extreme points at both ends of every whitened axis, and the slabs between those ends."""
    found, slabs = [], []
    for row in factor:
        ends = []
        for sign in (1.0, -1.0):
            point = actions.maximise(sign * row)
            ends.append(inner(row, point))
            found.append(LongestAction(point, squared_norm(factor, point)))
        slack = _SLACK * math.fsum(np.abs(row).tolist())
        slabs.append(Slab(tuple(row.tolist()), ends[1] - slack, ends[0] + slack))
    return found, slabs


def mixed_points(actions: ScaledSet, factor: FloatArray) -> list[LongestAction]:
    """Return extreme points along 4 d mixtures of the whitened axes, which are scattered in a fixed way."""
    found = []
    for k in range(1, 4 * actions.dimension + 1):
        sizes = [(k * 7919 + i * (2 * k + 1) * 104_729) % 2048 - 1023.5 for i in range(1, actions.dimension + 1)]
        point = actions.maximise(product(np.ascontiguousarray(factor.T), np.array(sizes) / 1024.0))
        found.append(LongestAction(point, squared_norm(factor, point)))
    return found


def climbed(actions: ScaledSet, factor: FloatArray, start: LongestAction) -> LongestAction:
    """Climb from extreme point to extreme point while |X p|^2 grows, and return the last one."""
    metric = product(np.ascontiguousarray(factor.T), factor)
    best = start
    for _ in range(MOST_ASCENTS):
        point = actions.maximise(product(metric, best.point))
        value = squared_norm(factor, point)
        if value <= best.value * (1.0 + _WORTHWHILE):
            break
        best = LongestAction(point, value)
    return best


def certified_bound(actions: ScaledSet, factor: FloatArray, axis_slabs: list[Slab], accuracy: float) -> float:
    """Return an upper bound on |X p|^2 over the set, as close as a design of this accuracy needs."""
    squares = [max(slab.low * slab.low, slab.high * slab.high) for slab in axis_slabs]
    simple = math.fsum(squares) * (1.0 + _SLACK)  # what the axes alone show, should the relaxation fail numerically
    return min(simple, norm_bound(factor, axis_slabs + actions.own_slabs(), actions.ball(), min(COARSE, accuracy / 8)))


def squared_norm(factor: FloatArray, point: FloatArray) -> float:
    """Return |X p|^2, where X is `factor` and p is `point`."""
    image = product(factor, point)
    return inner(image, image)
