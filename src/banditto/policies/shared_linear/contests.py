"""A batch of pulls by design, and what its totals say of every active arm: the same for all policies that compare arms.

Symbols  pi: design, V: sum pi(a) a a', X: lower triangular with X V X' = I + E, W: sum n_a a a', g: max a' V^-1 a,
         g_xy: max (a - b)' V^-1 (a - b) over active arms a, b; M, a': see `regression`
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import IllConditioned
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.active_sets import FiniteField, core_of, field_for
from banditto.geometry.design import Design
from banditto.geometry.regression import Regression, Whitening
from banditto.numbers.fixed_order import product

_UP = 1.0 + 2.0**-30  # covers the rounding of what is computed here, and |E|


class Contest(NamedTuple):
    """An active set's design, with g and the g of differences of arms, which say how many pulls they cost to learn."""

    design: Design
    g: float
    g_differences: float

    @property
    def units(self) -> float:
        """max(g_xy, g) / 2: this many times m pulls give each difference a variance proxy of at most 2 sigma^2 / m."""
        return max(self.g_differences, self.g) / 2.0


class Trial(NamedTuple):
    """A batch by design; `spread` >= max (a - b)' W^-1 (a - b), and `rounding` bounds the rounding error of a value.

    `residual` is at least max |M a - a'|: what the design drops biases values by that times |theta| at the most.
    """

    design: Design
    regression: Regression
    spread: float
    rounding: float
    residual: float

    @property
    def columns(self) -> IntArray:
        """The numbers of the arms that are pulled."""
        assert self.design.arms is not None
        return np.array(self.design.arms, dtype=np.int64)


def values_of(trial: Trial, field: FiniteField, totals: FloatArray, centre: float) -> FloatArray:
    """Return the estimated values <a, theta_hat> (replicate, arm), from the totals (replicate, arm) of one batch."""
    own = np.ascontiguousarray(totals[:, trial.columns])
    return field.values(trial.design, trial.regression.estimate(own, centre))


def field_of(actions: FiniteActions) -> FiniteField:
    """Return the field that keeps active sets of finitely many actions."""
    field = field_for(actions)
    assert isinstance(field, FiniteField)
    return field


@lru_cache(maxsize=20_000)
def contest(actions: FiniteActions, key: bytes) -> Contest | None:
    """Return the design of an active set of two arms or more; None where double precision does not suffice."""
    field = field_of(actions)
    if field.size(key) < 2:
        return None
    design = field.design(key)
    if design is None:
        return None
    try:
        white = Whitening.of(core_of(design), design.counts)
    except IllConditioned:
        return None
    points = field.points[list(design.features)][:, field.mask(key)]
    placed = np.ascontiguousarray(product(white.factor, points))  # (feature, arm)
    return Contest(design, design.g, white.certified(_widest(placed)) * _UP)


@lru_cache(maxsize=64)
def stray(actions: FiniteActions) -> float:
    """Return max |M a - a'| of the design of all arms, times 1 + sqrt(g); 0 where it drops no direction.

    Let a' = M a + e for every arm. A design of some arms with the same features strays by the e of the arm and an
    average of those of its core set, whose weights have length at most sqrt(g). Every design's own stray is checked
    anyway.
    """
    found = contest(actions, field_of(actions).whole)
    if found is None:
        return 0.0
    try:
        regression = Regression.of(core_of(found.design), found.design.counts)
    except IllConditioned:
        return 0.0
    return field_of(actions).residual(found.design, regression, field_of(actions).whole) * (1.0 + math.sqrt(found.g))


def _widest(points: FloatArray) -> float:
    """Return the largest squared distance of two points (feature, point), row by row so that memory stays small."""
    largest = 0.0
    for index in range(points.shape[1] - 1):
        apart = np.zeros(points.shape[1] - index - 1)
        for feature in points:
            difference = feature[index + 1 :] - feature[index]
            apart += difference * difference
        largest = max(largest, float(np.max(apart)))
    return largest


@lru_cache(maxsize=20_000)
def trial(actions: FiniteActions, key: bytes, pulls: int, reach: float) -> Trial | None:
    """Return a batch of at least `pulls` pulls of an active set, in its design's proportions; None where that fails.

    `reach` bounds the size of rewards.
    """
    found = contest(actions, key)
    if found is None or pulls < 1:
        return None
    field = field_of(actions)
    try:
        regression = Regression.of(core_of(found.design), found.design.plan(pulls).pulls)
    except IllConditioned:
        return None
    points = field.points[list(found.design.features)][:, field.mask(key)]
    sizes = product(np.abs(regression.factor), np.abs(points))
    longest = math.sqrt(float(np.max(product(np.ones((1, sizes.shape[0])), sizes * sizes))))
    # |X a| / sqrt(N) times the error of x, the rounding of X' x and of <a, theta>, and what |E| does
    moved = math.sqrt(found.g / regression.total) * regression.rounding(reach)
    moved += 4.0 * (regression.dimension + 2) * 2.0**-53 * reach * longest + regression.bias(found.g, reach)
    residual = field.residual(found.design, regression, key)
    return Trial(found.design, regression, found.g_differences / pulls * _UP, moved, residual)
