"""Theorem 10 and Corollary 12: Algorithm 4 on a polytope, and Algorithm 3 on a net.

Symbols  d: dimension, T: horizon, B = log T, eps_i = sigma d sqrt(log T / q^i), N_i: pulls of batch i

What Algorithm 4's own formulas give: rounded means within eps_i / sqrt(d) that differ with probability rho / (B d) each
take N_i = 2 d^2 (d + 2) (B / rho)^2 q^i pulls, whose tail is that of a net of (3 T)^d actions. Actions that are left
lose about eps_(i-1), so that the last batch, of about T pulls, decides: sqrt(T) d^2 sqrt(d + 2) log^1.5(T) / rho. That
is one power of 1/rho less than the theorem allows, and d^2.5 instead of its d^4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from banditto.actions.ball import Ball
from banditto.environments.linear import LinearBernoulli, LinearGaussian
from banditto.policies.least_squares_rounding import LeastSquaresRounding
from banditto.policies.net_threshold import NetThreshold
from banditto.reproduction.claims import AtMost, Claim, Effort, Measured, Near, Rule
from banditto.reproduction.fits import Point, exponent
from banditto.reproduction.instances import along, log_even, pyramid
from banditto.reproduction.measuring import regret_at

# -- Theorem 10 -------------------------------------------------------------------------------------------------------

SIGMA = 0.01  # small, so that gaps are resolved in the first batches and the others are what the theorem adds up
PAIRS = 16

Make = Callable[..., LeastSquaresRounding]


def on_pyramid(x: float, dimension: int, horizon: int, rho: float, make: Make) -> Point:
    """Mean regret of Algorithm 4 with the paper's constants, theta along the axis of the pyramid."""
    actions = pyramid(dimension)
    known = {"actions": actions, "horizon": horizon, "rho": rho, "sigma": SIGMA, "rewards": "gaussian"}
    policy = make(**known, constants="paper")
    return regret_at(x, policy, LinearGaussian(along(dimension, 1.0), actions, sigma=SIGMA), PAIRS, seed=101)


def by_horizon(effort: Effort, make: Make = LeastSquaresRounding) -> Measured:
    """T from 10^9 to 10^12."""
    horizons = log_even(10**9, 10**12, effort.choose(9, 30))
    points = [on_pyramid(x, 2, round(x), 0.3, make) for x in horizons]
    return exponent(points, "horizon T (pulls)", "regret (reward units)", 0.56)


def by_rho(effort: Effort, make: Make = LeastSquaresRounding) -> Measured:
    """1/rho from 2.5 to 20."""
    points = [on_pyramid(x, 2, 10**11, 1.0 / x, make) for x in log_even(2.5, 20.0, effort.choose(9, 30))]
    return exponent(points, "1/rho", "regret (reward units)", 1.0)


def by_dimension(effort: Effort, make: Make = LeastSquaresRounding) -> Measured:
    """d from 2 to 6, at horizons spread evenly over a factor e, after which batches are as full as before."""
    points = []
    phases = effort.choose(2, 6)
    for dimension in (2, 3, 4, 5, 6):
        for phase in range(phases):
            horizon = round(10**11 * math.exp(phase / phases))
            point = on_pyramid(dimension, dimension, horizon, 0.3, make)
            points.append(Point(point.x, *(value / math.sqrt(horizon) for value in point[1:])))
    return exponent(points, "dimension d", "regret / sqrt(T) (reward units)", 2.3)


# -- Corollary 12 -----------------------------------------------------------------------------------------------------

THETAS = {1: (0.8,), 2: (0.64, 0.48)}
RANGES = {1: (10**9, 10**13), 2: (10**8, 3 * 10**11)}  # nets of up to 1,000 actions


def _nets(dimension: int, number: int) -> list[NetThreshold]:
    ball = Ball(dimension=dimension)
    horizons = [round(x) for x in log_even(*RANGES[dimension], number)]
    return [NetThreshold(actions=ball, horizon=horizon, rho=0.3, constants="paper") for horizon in horizons]


def net_regret(dimension: int, predicted: float, effort: Effort) -> Measured:
    """Measured regret on the ball."""
    world = LinearBernoulli(THETAS[dimension], Ball(dimension=dimension))
    nets = _nets(dimension, effort.choose(9, 30))
    points = [regret_at(policy.horizon, policy, world, PAIRS, seed=121) for policy in nets]
    return exponent(points, "horizon T (pulls)", "regret (reward units)", predicted)


def net_loss(dimension: int, predicted: float, effort: Effort) -> Measured:
    """What is lost even if the best action of the net is played from the first pull on; the mean over directions."""
    points = []
    for policy in _nets(dimension, effort.choose(12, 30)):
        angles = np.pi * (np.arange(64) + 0.5) / 32.0
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1) if dimension == 2 else np.array([[1.0], [-1.0]])
        lost = policy.horizon * 0.4 * (1.0 - np.max(directions @ policy.points.T, axis=1))
        points.append(Point(policy.horizon, float(np.mean(lost)), float(np.min(lost)), float(np.max(lost))))
    return exponent(points, "horizon T (pulls)", "regret of the net's best (reward units)", predicted, "mean and range")


def net_size(dimension: int, effort: Effort) -> Measured:
    """The net's actions."""
    nets = _nets(dimension, effort.choose(12, 30))
    points = [Point(policy.horizon, policy.arms, policy.arms, policy.arms) for policy in nets]
    return exponent(points, "horizon T (pulls)", "actions of the net", dimension / (4 * dimension + 2))


# -- claims -----------------------------------------------------------------------------------------------------------


def _theorem(
    name: str, statement: str, quantity: str, experiment: str, rule: Near, measure: Callable[[Effort], Measured]
) -> Claim:
    return Claim(
        name=f"theorem-10-{name}",
        place="Theorem 10",
        statement=statement,
        quantity=f"exponent of regret in {quantity}",
        experiment=f"Algorithm 4 with the paper's constants on a simplex with a tip, Gaussian rewards: {experiment}.",
        rule=rule,
        measure=measure,
        seconds=(9.0, 40.0),
    )


def _corollary(
    name: str, statement: str, quantity: str, experiment: str, rule: Rule, measure: Callable[[Effort], Measured]
) -> Claim:
    return Claim(
        name=f"corollary-12-{name}",
        place="Corollary 12",
        statement=statement,
        quantity=f"exponent of {quantity} in T",
        experiment=f"Nets of radius T^(-1/(4d+2)), {experiment}.",
        rule=rule,
        measure=measure,
        seconds=(2.0, 10.0),
    )


_ONE, _TWO = "an interval, T = 10^9 to 10^13", "a disc, T = 10^8 to 3 x 10^11 (up to 1,000 actions)"
_PLAYED = "rho = 0.3, the paper's constants, theta of length 0.8; 16 pairs each"

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
    _corollary(
        "regret-1",
        "The naive way has regret T^((4d+1)/(4d+2)): T^(5/6) for d = 1.",
        "regret",
        f"{_ONE}; {_PLAYED}",
        Near(predicted=round(5 / 6, 4), detectable=0.05),
        partial(net_regret, 1, 5 / 6),
    ),
    _corollary(
        "regret-2",
        "The naive way has regret T^((4d+1)/(4d+2)): at most T^(9/10) for d = 2. Up to these horizons learning costs "
        "more than the net loses, and with K/rho (Theorem 6) it grows only like T^0.7.",
        "regret",
        f"{_TWO}; {_PLAYED}",
        AtMost(predicted=0.9, detectable=0.15),
        partial(net_regret, 2, 0.9),
    ),
    _corollary(
        "net-2",
        "What the net itself loses is T^(9/10) for d = 2, and in the end nothing else counts.",
        "what the net's best action loses",
        f"{_TWO}; the mean over 64 directions of theta, computed",
        Near(predicted=0.9, detectable=0.1),
        partial(net_loss, 2, 0.9),
    ),
    _corollary(
        "size-1",
        "The net has of the order of T^(d/(4d+2)) actions.",
        "the net's size",
        _ONE,
        Near(predicted=round(1 / 6, 4), detectable=0.05),
        partial(net_size, 1),
    ),
    _corollary(
        "size-2",
        "The net has of the order of T^(d/(4d+2)) actions.",
        "the net's size",
        _TWO,
        Near(predicted=0.2, detectable=0.05),
        partial(net_size, 2),
    ),
)
