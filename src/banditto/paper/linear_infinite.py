"""Theorem 10: Algorithm 4 on a polytope.

Symbols  d: dimension, T: horizon, B = log T, eps_i = sigma d sqrt(log T / q^i), N_i: pulls of batch i

What Algorithm 4's own formulas give: rounded means within eps_i / sqrt(d) that differ with probability rho / (B d) each
take N_i = 2 d^2 (d + 2) (B / rho)^2 q^i pulls, whose tail is that of a net of (3 T)^d actions. Actions that are left
lose about eps_(i-1), so that the last batch, of about T pulls, decides: sqrt(T) d^2 sqrt(d + 2) log^1.5(T) / rho. That
is one power of 1/rho less than the theorem allows, and d^2.5 instead of its d^4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from banditto.paper.claims import Claim, Effort, Measured, Near
from banditto.paper.linear_instances import along, log_even, pyramid, seed_at
from banditto.paper.measuring import Point, exponent, regret_at
from banditto.policies.least_squares_rounding.least_squares_rounding import LeastSquaresRounding
from banditto.policies.policy import Policy
from banditto.problems.environments.linear_rewards import LinearGaussian

SIGMA = 0.01  # small, so that gaps are resolved in the first batches and the others are what the theorem adds up
PAIRS = 16

Make = Callable[..., Policy[Any]]


@cache
def on_pyramid(x: float, dimension: int, horizon: int, rho: float, make: Make) -> Point:
    """Measure mean regret on the pyramid, with theta along its axis and the paper's constants."""
    actions = pyramid(dimension)
    policy = make(actions=actions, horizon=horizon, rho=rho, sigma=SIGMA, rewards="gaussian", constants="paper")
    world = LinearGaussian(along(dimension, 1.0), actions, sigma=SIGMA)
    return regret_at(x, policy, world, PAIRS, seed_at(x * horizon))


def over_horizons(effort: Effort, make: Make) -> list[Point]:
    """Measure regret in two dimensions, at horizons from 10^9 to 10^12."""
    horizons = log_even(10**9, 10**12, effort.choose(9, 30))
    return [on_pyramid(x, 2, round(x), 0.3, make) for x in horizons]


def by_horizon(effort: Effort, make: Make = LeastSquaresRounding) -> Measured:
    """Measure the exponent of regret in T, from 10^9 to 10^12."""
    points = over_horizons(effort, make)
    return exponent(points, "horizon T (pulls)", "regret (reward units)", 0.56)


def by_rho(effort: Effort, make: Make = LeastSquaresRounding) -> Measured:
    """Measure the exponent of regret in 1/rho, from 2.5 to 20."""
    points = [on_pyramid(x, 2, 10**11, 1.0 / x, make) for x in log_even(2.5, 20.0, effort.choose(9, 30))]
    return exponent(points, "1/rho", "regret (reward units)", 1.0)


def by_dimension(effort: Effort, make: Make = LeastSquaresRounding) -> Measured:
    """Measure the exponent of regret / sqrt(T) in d, from 2 to 6, at horizons over one step of batch sizes."""
    points = []
    phases = effort.choose(2, 6)
    for dimension in (2, 3, 4, 5, 6):
        for phase in range(phases):
            horizon = round(10**11 * math.exp(phase / phases))
            point = on_pyramid(dimension, dimension, horizon, 0.3, make)
            points.append(Point(point.x, *(value / math.sqrt(horizon) for value in point[1:])))
    return exponent(points, "dimension d", "regret / sqrt(T) (reward units)", 2.3)


def _theorem(
    name: str, statement: str, quantity: str, experiment: str, rule: Near, measure: Callable[[Effort], Measured]
) -> Claim:
    """Make a claim of Theorem 10 about an exponent of regret."""
    return Claim(
        name=f"theorem-10-{name}",
        place="Theorem 10",
        statement=statement,
        quantity=f"exponent of regret in {quantity}",
        experiment=f"Algorithm 4 with the paper's constants on a simplex with a tip, Gaussian rewards: {experiment}.",
        rule=rule,
        measure=measure,
        seconds=(9.0, 35.0),
    )


CLAIMS = (
    _theorem(
        "horizon",
        "Regret grows like sqrt(T) log^1.5(T), which between 10^9 and 10^12 looks like T^0.56.",
        "T",
        "d = 2, rho = 0.3, T = 10^9 to 10^12",
        Near(predicted=0.56, detectable=0.2),
        by_horizon,
    ),
    _theorem(
        "dimension",
        "The theorem's d^4 (and logarithms) is an upper bound. The algorithm's batches give d^2 sqrt(d + 2), which "
        "looks like d^2.3 between 2 and 6 dimensions.",
        "d",
        "rho = 0.3, T = 10^11 to e 10^11, d = 2 to 6",
        Near(predicted=2.3, detectable=0.8),
        by_dimension,
    ),
    _theorem(
        "rho",
        "The theorem's 1/rho^2 is an upper bound. The algorithm's batches give 1/rho.",
        "1/rho",
        "d = 2, T = 10^11, rho = 0.05 to 0.4",
        Near(predicted=1.0, detectable=0.4),
        by_rho,
    ),
)
