"""Linear instances that are hard: ties, gaps inside a policy's own windows, all dimensions, all kinds of sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benchmarks.linear import polytope

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray
from banditto.engine.batched import Execution
from banditto.engine.infinite import PlacedExecution
from banditto.policies.policy import PlacedPolicy, Policy
from banditto.problems.environment import LinearEnvironment


class World(NamedTuple):
    name: str
    policy: Policy[Any]
    environment: LinearEnvironment


Make = Callable[[Any, str], Policy[Any]]  # from actions and the kind of rewards


def sphere(arms: int, dimension: int, seed: int) -> FloatArray:
    rng = np.random.default_rng([5, seed])
    points = rng.standard_normal((arms, dimension))
    lengths = rng.uniform(0.6, 1.0, size=(arms, 1))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True) * lengths)


def direction(dimension: int, seed: int) -> FloatArray:
    values = np.random.default_rng([6, seed]).standard_normal(dimension)
    return np.asarray(values / np.linalg.norm(values))


def environment(kind: str, theta: FloatArray, actions: Any) -> LinearEnvironment:
    return bd.LinearBernoulli(theta, actions) if kind == "bounded" else bd.LinearGaussian(theta, actions, 1.0)


def windows(policy: Policy[Any]) -> list[tuple[float, float]]:
    """Where a gap is undecided, batch by batch, in units of the rewards."""
    rows = policy.describe().to_dict()["batches"]
    if rows and "eps" in rows[0]:
        return [(row["eps"], 3.0 * row["eps"]) for row in rows]
    if rows and "commit low" in rows[0]:
        return [(row["commit low"], row["commit high"]) for row in rows]
    return [(row["low"], row["high"]) for row in rows]


def scaled_into_window(policy: Policy[Any], points: FloatArray, theta: FloatArray, slope: float) -> FloatArray:
    """theta shortened so that an arm's gap is in the middle of a window; the second best's, if it is wide enough."""
    values = np.sort(points @ theta)[::-1] * slope
    for gap in values[0] - values[1:]:
        for low, high in windows(policy):
            wanted = low + 0.5 * (high - low)
            if wanted <= gap:
                return np.asarray(theta * (wanted / gap))
    raise AssertionError(f"no window is as narrow as {gap}")


def finite_world(make: Make, number: int) -> World:
    """Twelve instances: dimension 1, 2, 5 and 10, each with a tie of the best, a gap in a window, and as it comes."""
    dimension = (1, 2, 5, 10)[number % 4]
    shape = ("window", "tie", "plain")[number // 4 % 3]
    kind = ("bounded", "gaussian")[number % 2 if shape != "tie" else (number // 2) % 2]
    arms = {1: 4, 2: 8, 5: 12, 10: 20}[dimension]
    points, theta = sphere(arms, dimension, number), direction(dimension, number)
    slope = 0.5 if kind == "bounded" else 1.0
    if shape == "tie":
        best = int(np.argmax(points @ theta))
        if dimension == 1:
            points = np.vstack([points, points[best]])
        else:  # its mirror image across theta has the same value
            along = (points[best] @ theta) * theta
            points = np.vstack([points, 2.0 * along - points[best]])
    policy = make(points, kind)
    if shape == "window":
        theta = scaled_into_window(policy, points, theta, slope)
    return World(f"d = {dimension}, {shape}, {kind}", policy, environment(kind, theta * 0.999, points))


SETS: dict[str, Callable[[int], Any]] = {
    "ball": lambda d: bd.Ball(dimension=d),
    "box": bd.Box.unit,
    "simplex": lambda d: bd.Simplex(dimension=d),
    "polytope": polytope,
}


def infinite_world(make: Make, kind_of_set: str, dimension: int, number: int) -> World:
    """A parameter anywhere, or for every third one along a feature, so that a face of the set is tied."""
    kind = ("bounded", "gaussian")[number % 2]
    actions = SETS[kind_of_set](dimension)
    theta = direction(dimension, number) * 0.8
    if number % 3 == 2:
        theta = np.eye(dimension)[0] * 0.8
    name = f"{kind_of_set}, d = {dimension}, {kind}"
    return World(name, make(actions, kind), environment(kind, theta, actions))


def share_dropped(world: World, rows: int) -> float:
    """The share of executions in which some test dropped an action."""
    coins, noise = Coins(99, 0, rows), Noise(98, 0, 0)
    dropped = np.zeros(rows, dtype=np.bool_)
    policy: Any = world.policy
    if not world.environment.means and isinstance(policy, PlacedPolicy):
        placed = PlacedExecution(policy, world.environment, coins, noise)
        while (plan := placed.advance()) is not None:
            dropped |= plan.pulls.sum(axis=1) < policy.horizon  # a test took place, and every test of a set cuts it
        return float(dropped.mean())
    execution = Execution(policy, world.environment, coins, noise)
    while True:
        before = execution.state
        if execution.advance() is None:
            return float(dropped.mean())
        tested = np.asarray(before.testing)[:, 0]
        fewer = np.asarray(execution.state.active).sum(axis=1) < np.asarray(before.active).sum(axis=1)
        dropped |= tested & fewer
