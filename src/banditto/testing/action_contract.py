"""The contract of an action set: maximisers are maximal and always the same, cuts keep what they should."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.geometry.actions.sets import ActionSet
from banditto.geometry.design import g_optimal_design

CLOSE = 1e-9  # relative to the size of the numbers: far above rounding, far below any shape

Check = Callable[[ActionSet], None]


def directions(dimension: int, count: int = 24) -> FloatArray:
    """Return directions (direction, feature) to try: the axes to both sides, the zero vector, and random ones."""
    columns = [Coins(7, 0, count).uniform("direction", feature)[:, 0] for feature in range(dimension)]
    unit = np.eye(dimension)
    return np.vstack([unit, -unit, np.zeros((1, dimension)), np.array(columns).T * 2.0 - 1.0])


def size_of(actions: ActionSet) -> float:
    """Return the largest absolute coordinate of any action."""
    unit = np.eye(actions.dimension)
    return max(max(map(abs, actions.maximise(sign * row))) for row in unit for sign in (1.0, -1.0))


def check_maximisers(actions: ActionSet) -> None:
    """Check that every maximiser is best in its direction, and the same when asked again in another order."""
    asked = directions(actions.dimension)
    found = np.array([actions.maximise(direction) for direction in asked])
    assert found.shape == asked.shape
    assert np.isfinite(found).all()
    slack = CLOSE * size_of(actions) * actions.dimension
    for direction, action in zip(asked, found, strict=True):
        assert float(np.max(found @ direction)) <= float(action @ direction) + slack
    again = np.array([actions.maximise(direction.tolist()) for direction in asked[::-1]])[::-1]
    assert np.array_equal(found, again)


def check_cuts(actions: ActionSet) -> None:
    """Check that a cut keeps exactly what satisfies it, and that one that keeps nothing is refused."""
    slack = CLOSE * size_of(actions) * actions.dimension
    for normal in directions(actions.dimension)[-4:]:
        high = float(normal @ np.array(actions.maximise(normal)))
        low = float(normal @ np.array(actions.maximise(-normal)))
        least = (high + low) / 2
        left = actions.cut(normal, least)
        assert left.dimension == actions.dimension
        assert abs(float(normal @ np.array(left.maximise(normal))) - high) <= slack
        for direction in directions(actions.dimension):
            action = np.array(left.maximise(direction))
            assert float(normal @ action) >= least - slack
            assert float(direction @ action) <= float(direction @ np.array(actions.maximise(direction))) + slack
        with pytest.raises(InvalidArgument):
            actions.cut(normal, high + max(1.0, high - low))


def check_design(actions: ActionSet) -> None:
    """Check that g is at least the norm, in V^-1 of the design, of every action that can be found."""
    design = g_optimal_design(actions, accuracy=0.5)
    core = np.array(design.actions)[:, list(design.features)]
    inverse = np.linalg.inv((core * np.array(design.weights)[:, None]).T @ core)
    found = np.array([actions.maximise(direction) for direction in directions(actions.dimension, 200)])
    seen = found[:, list(design.features)]
    worst = float(np.max(np.einsum("ki,ij,kj->k", seen, inverse, seen)))
    assert design.dimension * (1.0 - CLOSE) <= design.g
    assert worst <= design.g * (1.0 + 1e-6)
    assert g_optimal_design(actions, accuracy=0.5).digest == design.digest


def check_travels(actions: ActionSet) -> None:
    """Check that a copy in another process gives the same actions."""
    copy = pickle.loads(pickle.dumps(actions))
    for direction in directions(actions.dimension):
        assert copy.maximise(direction) == actions.maximise(direction)


ACTION_SET_CHECKS: tuple[Check, ...] = (check_maximisers, check_cuts, check_design, check_travels)
