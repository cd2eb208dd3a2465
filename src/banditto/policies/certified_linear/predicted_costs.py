"""What a method will cost, predicted before the first pull: regret under parameters of all directions.

The two methods of CertifiedLinear are compared by the mean of these. They are predictions, not bounds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.geometry.actions.finite import FiniteActions
from banditto.numbers import lattice
from banditto.numbers.fixed_order import inner, product
from banditto.policies.least_squares_rounding.accuracies import RoundingProblem, RoundingSchedule

_WORLDS = 24
_MOST_TESTS, _RATIOS = 4, (2.0, 4.0, 8.0)  # of the schedules that are compared
_WORST = 5.0  # how much worse than the least its bound on the regret may be
_SPREAD = math.sqrt(1.0 / 12.0)  # of a point in a cell of volume 1, along any direction, about


def _parameters(dimension: int, length: float) -> FloatArray:
    """Return parameters (world, feature) of one length, in directions spread evenly; the same ones every time."""
    coins = Coins(0, 0, _WORLDS)
    u = np.concatenate([coins.uniform("world", 0, feature) for feature in range(dimension)], axis=1)
    v = np.concatenate([coins.uniform("world", 1, feature) for feature in range(dimension)], axis=1)
    normal = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * math.pi * v)
    return np.asarray(normal / np.sqrt(np.sum(normal * normal, axis=1, keepdims=True)) * length)


@lru_cache(maxsize=64)
def worlds_of(actions: FiniteActions, length: float) -> tuple[tuple[float, ...], ...]:
    """Return gaps (world, arm) under the parameters of `_parameters`, rounded so that the last bit cannot matter."""
    points = np.ascontiguousarray(actions.to_array().T)
    values = product(np.round(_parameters(actions.dimension, length), 9), points)
    gaps = np.round(np.max(values, axis=1, keepdims=True) - values, 9)
    return tuple(tuple(row) for row in gaps.tolist())


def gaps_of(actions: Any, length: float) -> FloatArray:
    """Return gaps (world, action) under the parameters of `_parameters`; evenly spread ones for an infinite set."""
    if isinstance(actions, FiniteActions):
        return np.array(worlds_of(actions, length))
    thetas = np.round(_parameters(actions.dimension, length), 9)
    return np.array([_even_gaps(actions, theta) for theta in thetas])


def _even_gaps(actions: Any, theta: FloatArray) -> FloatArray:
    ends = [inner(theta, np.array(actions.maximise(sign * theta))) for sign in (1.0, -1.0)]
    return np.round(np.linspace(0.0, ends[0] - ends[1], 200), 9)


def best_schedule(problem: RoundingProblem, gaps: FloatArray) -> RoundingSchedule:
    """Return LeastSquaresRounding's schedule of least predicted regret, of those whose proved bound is not far off."""
    best = problem.resolve()
    least, limit = lattice_regret(best, problem, gaps), _WORST * problem.regret(best)
    for schedule in problem.candidates(_MOST_TESTS, _RATIOS):
        if problem.regret(schedule) <= limit:
            regret = lattice_regret(schedule, problem, gaps)
            if regret < least * (1.0 - 1e-6):
                best, least = schedule, regret
    return best


def lattice_regret(schedule: RoundingSchedule, problem: RoundingProblem, gaps: FloatArray) -> float:
    """Return the predicted regret of LeastSquaresRounding, the mean over worlds with these gaps (world, action).

    In every batch the actions within 2 eps are left, and pulls are spread over them. The last estimate's error is that
    of its cell and its noise.
    """
    left = np.ones_like(gaps, dtype=np.bool_)
    spent, lost, error = 0.0, np.zeros(len(gaps)), math.inf
    sigma, surface = problem.rewards.sigma, _surface(problem.dimension)
    for epsilon, rho in schedule.batches:
        pulls = problem.pulls(epsilon, rho, schedule.tail)
        if spent + pulls >= problem.horizon:
            break
        several = left.sum(axis=1)
        lost += pulls * (gaps * left).sum(axis=1) / several * (several > 1)
        spent += pulls
        left = left & (gaps <= 2.0 * epsilon)
        cell = surface * sigma * math.sqrt(1.0 / math.pi) / rho
        error = math.sqrt(problem.dimension / pulls * (sigma**2 + (cell * _SPREAD) ** 2))
    if math.isinf(error):
        return float(np.mean(gaps)) * problem.horizon  # no estimate, so one action without evidence
    weights = left * np.exp(-((gaps / (2.0 * error)) ** 2))
    lost += (problem.horizon - spent) * (weights * gaps).sum(axis=1) / weights.sum(axis=1)
    return float(np.mean(lost))


@lru_cache(maxsize=64)
def _surface(dimension: int) -> float:
    return float(lattice.surface(dimension))
