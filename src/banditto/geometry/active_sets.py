"""Which actions are still in play, in many replicates at once: a mask of finitely many, or cuts through a set.

Two replicates with equal active sets have equal designs, so both kinds can tell the groups of replicates whose sets
are equal. An active set is known by the bytes of its mask or its cuts. Designs are found again in a cache: the second
execution of a pair nearly always asks for those of the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.core.errors import IllConditioned, InvalidArgument
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.actions.sets import ActionSet
from banditto.geometry.design import Design, g_optimal_design
from banditto.geometry.regression import Regression
from banditto.numbers.fixed_order import inner, product

_FINITE_ACCURACY, _CONVEX_ACCURACY = 0.05, 0.1  # of designs: what they cost in pulls against what they cost in time
# Parameters that cut a set are rounded to multiples of this, so that exact arithmetic with them stays cheap.
_CUT_UNIT = 2.0**-32
_SLACK = 2.0**-40  # of a maximum over an infinite set: its maximiser is rounded


class Group(NamedTuple):
    """Replicates whose active sets are equal."""

    key: bytes
    rows: IntArray


def core_of(design: Design) -> FloatArray:
    """The core set (feature, action) in the features of its design."""
    return np.ascontiguousarray(np.array(design.actions)[:, list(design.features)].T)


def dropped_features(design: Design) -> list[int]:
    """The features that a design does without."""
    return sorted(set(range(len(design.actions[0]))) - set(design.features))


def longest(strays: FloatArray) -> float:
    """Return at least the length of the longest column of what `Regression.strays` gives."""
    squares = [math.fsum((column * column).tolist()) for column in strays.T]
    return math.sqrt(max(squares, default=0.0)) * (1.0 + 2.0**-40)


def _groups(active: Any, rows: IntArray) -> Iterator[Group]:
    kinds: dict[bytes, list[int]] = {}
    for row in rows.tolist():
        kinds.setdefault(active[row].tobytes(), []).append(row)
    for key, members in kinds.items():
        yield Group(key, np.array(members, dtype=np.int64))


class FiniteField:
    """Masks (replicate, arm) over finitely many actions."""

    def __init__(self, actions: FiniteActions) -> None:
        self.actions = actions
        self.points = np.ascontiguousarray(actions.to_array().T)  # (feature, arm)

    def start(self, replicates: int) -> BoolArray:
        """Every action is in play."""
        return np.ones((replicates, len(self.actions)), dtype=np.bool_)

    def groups(self, active: Any, rows: IntArray) -> Iterator[Group]:
        """The given replicates, by their active sets."""
        return _groups(np.packbits(active, axis=1), rows)

    @property
    def whole(self) -> bytes:
        """The key of all actions."""
        return np.packbits(np.ones(len(self.actions), dtype=np.bool_)).tobytes()

    def mask(self, key: bytes) -> BoolArray:
        """The active set of a key; shape (arm,)."""
        bits = np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=len(self.actions))
        return bits.astype(np.bool_)

    def size(self, key: bytes) -> int:
        """How many actions are in play."""
        return int(self.mask(key).sum())

    def design(self, key: bytes) -> Design | None:
        """A design for an active set; None where double precision does not suffice."""
        return _finite_design(self.actions, key)

    def residual(self, design: Design, regression: Regression, key: bytes) -> float:
        """Return at least max |M a - a'| over the active arms: times |theta| it bounds the bias of any value."""
        dropped = dropped_features(design)
        if not dropped:
            return 0.0
        active = self.points[:, self.mask(key)]
        core = np.ascontiguousarray(np.array(design.actions)[:, dropped].T)
        return longest(regression.strays(core, active[list(design.features)], active[dropped]))

    def values(self, design: Design, theta: FloatArray) -> FloatArray:
        """<a, theta> for parameters (replicate, feature) in the design's features; shape (replicate, arm)."""
        return product(theta, np.ascontiguousarray(self.points[list(design.features)]))

    def whole_values(self, theta: FloatArray) -> FloatArray:
        """<a, theta> for parameters (replicate, feature) in all features."""
        return product(theta, self.points)


@lru_cache(maxsize=20_000)
def _finite_design(actions: FiniteActions, key: bytes) -> Design | None:
    mask = np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=len(actions))
    try:
        return g_optimal_design(actions.kept(np.flatnonzero(mask).tolist()), accuracy=_FINITE_ACCURACY)
    except InvalidArgument:  # ill-conditioned, or nothing but zeros: nothing can be learnt
        return None


class ConvexField:
    """Cuts (replicate, cut, feature and level) through an infinite action set."""

    def __init__(self, actions: ActionSet) -> None:
        self.actions: Any = actions  # hashable, as every set is that is not made mutable on purpose

    def start(self, replicates: int) -> FloatArray:
        """No cuts."""
        return np.zeros((replicates, 0, self.actions.dimension + 1))

    def groups(self, active: Any, rows: IntArray) -> Iterator[Group]:
        """The given replicates, by their active sets."""
        return _groups(active, rows)

    @property
    def whole(self) -> bytes:
        """The key of all actions: no cuts."""
        return b""

    def active(self, key: bytes) -> ActionSet:
        """The set that the cuts leave."""
        return _cut(self.actions, key)

    def design(self, key: bytes) -> Design | None:
        """A design for an active set; None where double precision does not suffice."""
        return _convex_design(self.actions, key)

    def residual(self, design: Design, regression: Regression, key: bytes) -> float:
        """Return at least max |M a - a'| over the active set: times |theta| it bounds the bias of any value."""
        dropped, features = dropped_features(design), list(design.features)
        if not dropped:
            return 0.0
        core, active = np.array(design.actions).T, self.active(key)
        reach = np.array([max(np.abs(row)) for row in core]) * math.sqrt(design.g)  # of |a|, and of |M a| below
        squares = []
        for feature, row in zip(dropped, regression.stand_in(np.ascontiguousarray(core[dropped])), strict=True):
            normal = np.zeros(self.actions.dimension)
            normal[features], normal[feature] = row, -1.0
            ends = [abs(inner(normal, np.array(active.maximise(sign * normal)))) for sign in (1.0, -1.0)]
            size = inner(np.abs(row), reach[features])
            squares.append((max(ends) + 2.0 * _SLACK * (size + reach[feature])) ** 2)
        return math.sqrt(math.fsum(squares)) * (1.0 + 2.0**-40)

    def snapped(self, theta: FloatArray) -> FloatArray:
        """Parameters on the grid of those that may cut."""
        return np.asarray(np.rint(theta / _CUT_UNIT) * _CUT_UNIT)

    def best(self, key: bytes, theta: FloatArray) -> tuple[float, ...]:
        """The first maximiser in the active set."""
        return tuple(self.active(key).maximise(theta))

    def cut(self, key: bytes, theta: FloatArray, slack: float) -> FloatArray:
        """The half-space of all that is within `slack` of the best; shape (feature and level,)."""
        top = inner(theta, np.array(self.best(key, theta)))
        least = np.floor((top - slack) / _CUT_UNIT) * _CUT_UNIT
        return np.append(theta, least)


@lru_cache(maxsize=20_000)
def _convex_design(actions: Any, key: bytes) -> Design | None:
    try:
        return g_optimal_design(_cut(actions, key), accuracy=_CONVEX_ACCURACY)
    except IllConditioned:
        return None


@lru_cache(maxsize=20_000)
def _cut(actions: Any, key: bytes) -> ActionSet:
    """The set with the cuts of a key; what the key without its last cut leaves is in the cache."""
    width = 8 * (actions.dimension + 1)
    if not key:
        whole: ActionSet = actions
        return whole
    before: ActionSet = _cut(actions, key[:-width])
    last = np.frombuffer(key[-width:])
    if not last[:-1].any():
        return before
    try:
        return before.cut(last[:-1], float(last[-1]))
    except InvalidArgument:  # the set is a point up to rounding
        return before


@lru_cache(maxsize=64)
def field_for(actions: Any) -> FiniteField | ConvexField:
    """The field of some actions, made once."""
    return FiniteField(actions) if isinstance(actions, FiniteActions) else ConvexField(actions)
