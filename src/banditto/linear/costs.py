"""What a plan will cost, predicted before the first pull: regret under parameters of all directions.

The two plans of CertifiedLinear are compared by the geometric mean of these. They are predictions, not bounds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from banditto import lattice
from banditto.actions.finite import FiniteActions
from banditto.algebra import inner, product
from banditto.arrays import FloatArray
from banditto.coins import Coins
from banditto.linear.rounding_plans import RoundingPlan, RoundingProblem

_WORLDS = 24
_SPREAD = math.sqrt(1.0 / 12.0)  # of a point in a cell of volume 1, along any direction, about


def _parameters(dimension: int, length: float) -> FloatArray:
    """Parameters (world, feature) of the same length in directions that are spread evenly, the same for everybody."""
    coins = Coins(0, 0, _WORLDS)
    u = np.concatenate([coins.uniform("world", 0, feature) for feature in range(dimension)], axis=1)
    v = np.concatenate([coins.uniform("world", 1, feature) for feature in range(dimension)], axis=1)
    normal = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * math.pi * v)
    return np.asarray(normal / np.sqrt(np.sum(normal * normal, axis=1, keepdims=True)) * length)


@lru_cache(maxsize=64)
def worlds_of(actions: FiniteActions, length: float) -> tuple[tuple[float, ...], ...]:
    """Gaps (world, arm) under those parameters, to a few digits: what they tune must not depend on the last bit."""
    points = np.ascontiguousarray(actions.to_array().T)
    values = product(np.round(_parameters(actions.dimension, length), 9), points)
    gaps = np.round(np.max(values, axis=1, keepdims=True) - values, 9)
    return tuple(tuple(row) for row in gaps.tolist())


def lattice_regret(plan: RoundingPlan, problem: RoundingProblem, actions: Any, length: float) -> float:
    """Predicted regret of LeastSquaresRounding, the geometric mean over the parameters.

    Of finitely many actions those within 2 eps stay, and pulls are spread over them; of an infinite set the gaps are
    taken to be spread evenly up to the widest. The last estimate's error is that of its cell and its noise.
    """
    if isinstance(actions, FiniteActions):
        worlds = [np.array(row) for row in worlds_of(actions, length)]
    else:
        worlds = [_even_gaps(actions, row) for row in np.round(_parameters(actions.dimension, length), 9)]
    logs = [math.log(max(_regret(plan, problem, gaps), 1e-9)) for gaps in worlds]
    return math.exp(math.fsum(logs) / len(logs))


def _even_gaps(actions: Any, theta: FloatArray) -> FloatArray:
    ends = [inner(theta, np.array(actions.maximise(sign * theta))) for sign in (1.0, -1.0)]
    return np.linspace(0.0, ends[0] - ends[1], 200)


def _regret(plan: RoundingPlan, problem: RoundingProblem, gaps: FloatArray) -> float:
    left, spent, lost, error = gaps, 0.0, 0.0, math.inf
    for epsilon, rho in plan.batches:
        pulls = problem.pulls(epsilon, rho, plan.tail)
        if spent + pulls >= problem.horizon or left.size < 2:
            break
        spent, lost = spent + pulls, lost + pulls * float(np.mean(left))
        left = left[left <= 2.0 * epsilon]
        sigma = problem.rewards.sigma
        cell = float(lattice.surface(problem.dimension)) * sigma * math.sqrt(1.0 / math.pi) / rho
        error = math.sqrt(problem.dimension / pulls * (sigma**2 + (cell * _SPREAD) ** 2))
    if math.isinf(error):
        return lost + float(gaps[0]) * problem.horizon
    weights = np.exp(-((left / (2.0 * error)) ** 2))
    return lost + (problem.horizon - spent) * float(np.sum(weights * left) / np.sum(weights))
