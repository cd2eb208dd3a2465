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
    """Replicates whose active sets are equal; `key` stands for that set."""

    key: bytes
    rows: IntArray


def core_of(design: Design) -> FloatArray:
    """Return the core set of a design as a matrix (feature, action), with the features that the design uses."""
    return np.ascontiguousarray(np.array(design.actions)[:, list(design.features)].T)


def dropped_features(design: Design) -> list[int]:
    """Return the numbers of the features that a design does without."""
    return sorted(set(range(len(design.actions[0]))) - set(design.features))


def longest(strays: FloatArray) -> float:
    """Return an upper bound on the length of the longest column of what `Regression.strays` returned."""
    squares = [math.fsum((column * column).tolist()) for column in strays.T]
    return math.sqrt(max(squares, default=0.0)) * (1.0 + 2.0**-40)


def _groups(active: Any, rows: IntArray) -> Iterator[Group]:
    kinds: dict[bytes, list[int]] = {}
    for row in rows.tolist():
        kinds.setdefault(active[row].tobytes(), []).append(row)
    for key, members in kinds.items():
        yield Group(key, np.array(members, dtype=np.int64))


class FiniteField:
    """Active sets of finitely many actions: masks (replicate, arm), and a key of bytes for each distinct mask."""

    def __init__(self, actions: FiniteActions) -> None:
        self.actions = actions
        self.points = np.ascontiguousarray(actions.to_array().T)  # (feature, arm)

    def start(self, replicates: int) -> BoolArray:
        """Return the masks before the first batch: every action is active."""
        return np.ones((replicates, len(self.actions)), dtype=np.bool_)

    def groups(self, active: Any, rows: IntArray) -> Iterator[Group]:
        """Yield the given replicates in groups whose active sets are equal."""
        return _groups(np.packbits(active, axis=1), rows)

    @property
    def whole(self) -> bytes:
        """The key of the set of all actions."""
        return np.packbits(np.ones(len(self.actions), dtype=np.bool_)).tobytes()

    def mask(self, key: bytes) -> BoolArray:
        """Return the active set that a key stands for, as a mask (arm,)."""
        bits = np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=len(self.actions))
        return bits.astype(np.bool_)

    def size(self, key: bytes) -> int:
        """Return how many actions are active in the set of a key."""
        return int(self.mask(key).sum())

    def design(self, key: bytes) -> Design | None:
        """Return a design for the active set of a key; None where double precision does not suffice."""
        return _finite_design(self.actions, key)

    def residual(self, design: Design, regression: Regression, key: bytes) -> float:
        """Return an upper bound on |M a - a'| over the active arms; times |theta| it bounds the bias of any value."""
        dropped = dropped_features(design)
        if not dropped:
            return 0.0
        active = self.points[:, self.mask(key)]
        core = np.ascontiguousarray(np.array(design.actions)[:, dropped].T)
        return longest(regression.strays(core, active[list(design.features)], active[dropped]))

    def values(self, design: Design, theta: FloatArray) -> FloatArray:
        """Return <a, theta> (replicate, arm) for parameters (replicate, feature) in the design's features."""
        return product(theta, np.ascontiguousarray(self.points[list(design.features)]))

    def whole_values(self, theta: FloatArray) -> FloatArray:
        """Return <a, theta> (replicate, arm) for parameters (replicate, feature) in all features."""
        return product(theta, self.points)


@lru_cache(maxsize=20_000)
def _finite_design(actions: FiniteActions, key: bytes) -> Design | None:
    mask = np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=len(actions))
    try:
        return g_optimal_design(actions.kept(np.flatnonzero(mask).tolist()), accuracy=_FINITE_ACCURACY)
    except InvalidArgument:  # ill-conditioned, or nothing but zeros: nothing can be learnt
        return None


class ConvexField:
    """Active sets within an infinite set: cuts (replicate, cut, feature and level), and a key of bytes for each."""

    def __init__(self, actions: ActionSet) -> None:
        self.actions: Any = actions  # hashable, as every set is that is not made mutable on purpose

    def start(self, replicates: int) -> FloatArray:
        """Return the cuts before the first batch: none, so that the whole set is active."""
        return np.zeros((replicates, 0, self.actions.dimension + 1))

    def groups(self, active: Any, rows: IntArray) -> Iterator[Group]:
        """Yield the given replicates in groups whose active sets are equal."""
        return _groups(active, rows)

    @property
    def whole(self) -> bytes:
        """The key of the set of all actions, in which there are no cuts."""
        return b""

    def active(self, key: bytes) -> ActionSet:
        """Return the part of the set that the cuts of a key leave."""
        return _cut(self.actions, key)

    def design(self, key: bytes) -> Design | None:
        """Return a design for the active set of a key; None where double precision does not suffice."""
        return _convex_design(self.actions, key)

    def residual(self, design: Design, regression: Regression, key: bytes) -> float:
        """Return an upper bound on |M a - a'| over the active set; times |theta| it bounds the bias of any value."""
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
        """Return parameters rounded to the grid on which cuts are made, so that exact arithmetic stays cheap."""
        return np.asarray(np.rint(theta / _CUT_UNIT) * _CUT_UNIT)

    def best(self, key: bytes, theta: FloatArray) -> tuple[float, ...]:
        """Return the action of the active set that maximises <a, theta>, the first of ties."""
        return tuple(self.active(key).maximise(theta))

    def cut(self, key: bytes, theta: FloatArray, slack: float) -> FloatArray:
        """Return the half-space of all actions within `slack` of the best one; shape (feature and level,)."""
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
    """Return the set with all cuts of a key; the set before its last cut comes from the cache."""
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
    """Return the `FiniteField` or `ConvexField` that keeps active sets of these actions; it is made once."""
    return FiniteField(actions) if isinstance(actions, FiniteActions) else ConvexField(actions)
