"""Lemma 9: replicable least squares, with the paper's grids; what it takes, how often it differs, how accurate it is.

Symbols  d: dimension, C: core set, g: max a' V^-1 a, eps: accuracy, delta: its failure probability
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray
from banditto.core.rewards import Rewards
from banditto.geometry.actions.simplex import Simplex
from banditto.geometry.active_sets import core_of
from banditto.geometry.design import g_optimal_design
from banditto.geometry.regression import Regression
from banditto.numbers.intervals import clopper_pearson
from banditto.paper.claims import AtMost, Claim, Effort, Measured, Near, Rule
from banditto.paper.linear_instances import along, log_even, sphere
from banditto.paper.measuring import Point, exponent
from banditto.policies.shared_linear.estimate_rounding import LatticeRounding, PaperGridRounding, leverage_of
from banditto.policies.shared_linear.replicable_least_squares import ReplicableLeastSquares
from banditto.problems.environments.linear_rewards import LinearBernoulli

EPSILON, RHO, DELTA = 0.2, 0.1, 0.01
DIMENSION, ARMS = 5, 100
DIMENSIONS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
BERNOULLI = Rewards("bounded", 0.5)


class Pairs(NamedTuple):
    """How many pairs of estimates differ, and the largest error of any arm's value in each execution."""

    number: int
    differ: int
    errors: FloatArray


def paper_grids() -> tuple[PaperGridRounding, Regression]:
    """Return rounding and regression as in the lemma's proof: rho/|C| and delta/|C| for each arm of the core set."""
    design = g_optimal_design(sphere(ARMS, DIMENSION), accuracy=1.0)
    rounding = PaperGridRounding(design.support, BERNOULLI, RHO, Decimal(-math.log(DELTA)))
    each = rounding.samples(Decimal(EPSILON) / Decimal(design.g).sqrt())
    assert each is not None
    return rounding, Regression.of(core_of(design), design.counts, (each,) * design.support)


def pairs_of(
    rounding: PaperGridRounding | LatticeRounding, regression: Regression, arms: Sequence[int], g: float, number: int
) -> Pairs:
    """Estimate theta in pairs with shared coins and fresh rewards; return how many differ, and the errors."""
    points, theta = sphere(ARMS, DIMENSION), np.array(along(DIMENSION, 0.9))
    world = LinearBernoulli(theta.tolist(), points)
    counts = np.zeros((number, ARMS), dtype=np.int64)
    counts[:, list(arms)] = regression.pulls
    coins = Coins(91, 0, number)
    uniforms = np.concatenate([coins.uniform(rounding.purpose, 0, k) for k in range(rounding.coins)], axis=1)
    leverage = leverage_of(g, regression.total)
    found = []
    for side in (0, 1):
        totals = np.ascontiguousarray(world.draw(counts, Noise(92, side, 0))[:, list(arms)])
        found.append(rounding.rounded(regression, totals, world.centre, leverage, uniforms).theta)
    errors = [np.max(np.abs((each - theta / 2.0) @ points.T), axis=1) for each in found]
    return Pairs(number, int(np.sum(np.any(found[0] != found[1], axis=1))), np.concatenate(errors))


def differing(found: Pairs) -> Measured:
    """Return the share of pairs that differ."""
    detail = f"{found.differ:,} of {found.number:,} pairs differ."
    return Measured(
        value=found.differ / found.number, interval=clopper_pearson(found.differ, found.number, 0.95), detail=detail
    )


def inaccurate(found: Pairs) -> Measured:
    """Measure the share of executions in which some arm's value is off by more than eps."""
    off, all_of_them = int(np.sum(found.errors > EPSILON)), len(found.errors)
    detail = f"The largest error of {all_of_them:,} executions is {float(np.max(found.errors)):.3g}."
    return Measured(value=off / all_of_them, interval=clopper_pearson(off, all_of_them, 0.95), detail=detail)


def _paper_pairs(effort: Effort) -> Pairs:
    design = g_optimal_design(sphere(ARMS, DIMENSION), accuracy=1.0)
    assert design.arms is not None
    return pairs_of(*paper_grids(), design.arms, design.g, effort.choose(20_000, 200_000))


# -- what it takes ----------------------------------------------------------------------------------------------------

Pulls = Callable[[int, float, float], float]  # of dimension, eps and rho


def recipe(dimension: int, epsilon: float, rho: float) -> float:
    """Return the pulls of each arm by the lemma's recipe."""
    least_squares = ReplicableLeastSquares(actions=Simplex(dimension=dimension))
    return least_squares.pulls_needed(epsilon, rho, 1e-7, constants="paper") / (2 * dimension)


def by_dimension(pulls: Pulls, rho: float, predicted: float, what: str, effort: Effort) -> Measured:
    """Measure the exponent of planned pulls in d."""
    return _planned([(d, pulls(d, EPSILON, rho)) for d in DIMENSIONS], "dimension d", predicted, what)


def by_accuracy(pulls: Pulls, effort: Effort) -> Measured:
    """Measure the exponent of planned pulls in 1/eps."""
    rows = [(1.0 / eps, pulls(DIMENSION, eps, RHO)) for eps in log_even(0.01, 0.5, 8)]
    return _planned(rows, "1/eps", 2.0, "pulls of each arm")


def by_rho(pulls: Pulls, effort: Effort) -> Measured:
    """Measure the exponent of planned pulls in 1/rho."""
    rows = [(1.0 / rho, pulls(DIMENSION, EPSILON, rho)) for rho in log_even(0.001, 0.1, 8)]
    return _planned(rows, "1/rho", 2.0, "pulls of each arm")


def _planned(rows: Sequence[tuple[float, float]], x_label: str, predicted: float, what: str) -> Measured:
    return exponent([Point(x, y, y, y) for x, y in rows], x_label, what, predicted, "planned")


def _lemma(
    name: str, statement: str, quantity: str, experiment: str, rule: Rule, measure: Callable[[Effort], Measured]
) -> Claim:
    """Make a claim of Lemma 9."""
    return Claim(
        name=f"lemma-9-{name}",
        place="Lemma 9",
        statement=statement,
        quantity=quantity,
        experiment=experiment,
        rule=rule,
        measure=measure,
        seconds=(0.3, 1.0),
    )


_FIXED = "The lemma's recipe (rho/|C| and delta/|C| for each of 2 d arms), delta = 10^-7; planned pulls"
_PAIRS = "100 arms on the sphere, d = 5, eps = 0.2, rho = 0.1, delta = 0.01, Bernoulli rewards; 20,000 pairs."
_EACH = "pulls of each arm"

CLAIMS = (
    _lemma(
        "replicable",
        "Two estimates by the lemma's recipe, with shared coins, are the same with probability 1 - rho.",
        "share of pairs that differ",
        _PAIRS,
        AtMost(predicted=RHO, detectable=0.01),
        lambda effort: differing(_paper_pairs(effort)),
    ),
    _lemma(
        "accuracy",
        "No action's value is off by more than eps, with probability 1 - delta.",
        "share of estimates off by more than eps",
        _PAIRS,
        AtMost(predicted=DELTA, detectable=0.002),
        lambda effort: inaccurate(_paper_pairs(effort)),
    ),
    _lemma(
        "dimension",
        "d^4 pulls of each arm, and logarithms, are enough.",
        f"exponent of {_EACH} in d",
        f"{_FIXED} on the simplex, eps = 0.2, rho = 0.1, d = 2 to 32.",
        AtMost(predicted=4.0, detectable=0.2),
        partial(by_dimension, recipe, RHO, 4.0, _EACH),
    ),
    _lemma(
        "dimension-proof",
        "With Cauchy and Schwarz, sqrt(g) instead of the 4 d + 1 in its proof, d^3 pulls of each arm are enough.",
        f"exponent of {_EACH} in d",
        f"{_FIXED} on the simplex, eps = 0.2, rho = 0.1, d = 2 to 32.",
        Near(predicted=3.0, detectable=0.2),
        partial(by_dimension, recipe, RHO, 3.0, _EACH),
    ),
    _lemma(
        "epsilon",
        "Pulls grow like 1/eps^2.",
        f"exponent of {_EACH} in 1/eps",
        f"{_FIXED} on the simplex, d = 5, rho = 0.1, eps = 0.01 to 0.5.",
        Near(predicted=2.0, detectable=0.1),
        partial(by_accuracy, recipe),
    ),
    _lemma(
        "rho",
        "Pulls grow like 1/rho^2.",
        f"exponent of {_EACH} in 1/rho",
        f"{_FIXED} on the simplex, d = 5, eps = 0.2, rho = 0.001 to 0.1.",
        Near(predicted=2.0, detectable=0.1),
        partial(by_rho, recipe),
    ),
)
