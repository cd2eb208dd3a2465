"""Lemma 5: least squares on pulls by design, and how accurate it is.

Symbols  d: dimension, g: max a' V^-1 a over the arms, eps: accuracy, delta: its failure probability
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray
from banditto.core.rewards import Rewards
from banditto.geometry.actions.finite import FiniteActions
from banditto.numbers.fixed_order import quadratic_forms
from banditto.numbers.intervals import clopper_pearson
from banditto.paper.claims import AtMost, Claim, Effort, Measured, Near
from banditto.paper.linear_instances import along, sphere
from banditto.paper.measuring import Point, exponent
from banditto.policies.shared_linear.contests import field_of, trial
from banditto.policies.shared_linear.linear_policy import largest_reward
from banditto.problems.environments.linear_rewards import LinearGaussian

DELTA, EPSILON = 0.05, 0.1
PULLS = 10_000


def errors(dimension: int, pulls: int, executions: int) -> FloatArray:
    """Return |<a, theta_hat - theta>| of each execution, for the arm a that is known least well; Gaussian rewards."""
    points = sphere(20 * dimension, dimension)
    actions, theta = FiniteActions(points), along(dimension, 0.5)
    field = field_of(actions)
    made = trial(actions, field.whole, pulls, largest_reward(Rewards("gaussian", 1.0), 0.0))
    assert made is not None
    counts = np.zeros((executions, len(points)), dtype=np.int64)
    counts[:, made.columns] = made.regression.pulls
    totals = LinearGaussian(theta, points).draw(counts, Noise(pulls, 0, dimension))
    found = made.regression.estimate(np.ascontiguousarray(totals[:, made.columns]), 0.0)
    worst = int(np.argmax(quadratic_forms(np.ascontiguousarray(points.T), made.regression.factor)))
    return np.asarray(np.abs((found - np.array(theta)) @ points[worst]))


def accuracy(effort: Effort, constant: float = 2.0 * math.log(2.0 / DELTA)) -> Measured:
    """Measure the share of estimates that are off by more than eps after `constant` g/eps^2 pulls."""
    dimension, executions = 5, effort.choose(20_000, 200_000)
    field = field_of(FiniteActions(sphere(20 * dimension, dimension)))
    found = field.design(field.whole)
    assert found is not None
    pulls = math.ceil(constant * found.g / EPSILON**2)
    off = int(np.sum(errors(dimension, pulls, executions) > EPSILON))
    detail = f"{off:,} of {executions:,} executions are off by more than {EPSILON:g} after {pulls:,} pulls."
    return Measured(value=off / executions, interval=clopper_pearson(off, executions, 0.95), detail=detail)


def quantile_point(x: float, sample: FloatArray) -> Point:
    """Return the (1 - delta)-quantile of a sample as a point at x, with an interval from order statistics."""
    ordered, size = np.sort(sample), len(sample)
    width = 1.96 * math.sqrt(size * DELTA * (1.0 - DELTA))
    places = [round(size * (1.0 - DELTA) + step) for step in (0.0, -width, width)]
    return Point(x, *(float(ordered[min(place, size - 1)]) for place in places))


def by_dimension(effort: Effort, pulls: Callable[[int], int] = lambda dimension: PULLS) -> Measured:
    """Measure the exponent of the error in d."""
    executions = effort.choose(4000, 40_000)
    points = [quantile_point(d, errors(d, pulls(d), executions)) for d in (2, 3, 5, 8, 12, 18, 27, 40)]
    return exponent(points, "dimension d", "error of a value, 95% quantile", 0.5)


def by_pulls(effort: Effort) -> Measured:
    """Measure the exponent of the error in pulls."""
    executions = effort.choose(4000, 40_000)
    points = [quantile_point(n, errors(5, n, executions)) for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)]
    return exponent(points, "pulls", "error of a value, 95% quantile", -0.5)


CLAIMS = (
    Claim(
        name="lemma-5-accuracy",
        place="Lemma 5",
        statement="2 g log(2/delta)/eps^2 pulls by design give every arm's value to eps with probability 1 - delta.",
        quantity="share of estimates off by more than eps",
        experiment="100 arms in five dimensions, eps = 0.1, delta = 0.05; the arm that is known least well.",
        rule=AtMost(predicted=DELTA, detectable=0.01),
        measure=accuracy,
        seconds=(0.1, 1.0),
    ),
    Claim(
        name="lemma-5-dimension",
        place="Lemma 5",
        statement="Pulls for an accuracy grow like d: after as many pulls, errors grow like sqrt(d).",
        quantity="exponent of error in d",
        experiment="20 d arms on the sphere, d = 2 to 40, 10,000 pulls; 95% quantile of the error of the worst arm.",
        rule=Near(predicted=0.5, detectable=0.1),
        measure=by_dimension,
        seconds=(1.5, 20.0),
    ),
    Claim(
        name="lemma-5-pulls",
        place="Lemma 5",
        statement="Pulls for an accuracy grow like 1/eps^2.",
        quantity="exponent of error in pulls",
        experiment="100 arms in five dimensions, 1,000 to 10^8 pulls; 95% quantile of the error of the worst arm.",
        rule=Near(predicted=-0.5, detectable=0.1),
        measure=by_pulls,
        seconds=(0.1, 0.7),
    ),
)
