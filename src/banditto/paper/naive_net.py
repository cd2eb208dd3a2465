"""Corollary 12: the naive way, Algorithm 3 on a net of an infinite action set, and Theorem 10 beside it.

Symbols  d: dimension, T: horizon, K: actions of the net, whose radius is T^(-1/(4d+2))

A net of that radius has about T^(d/(4d+2)) actions, and its best one loses T^((4d+1)/(4d+2)) over T pulls. Learning
which one that is costs (K/rho) sqrt(d T log T) at the most (see `linear_finite`), which is less in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from banditto.geometry.actions.ball import Ball
from banditto.paper.claims import AtMost, Chart, Claim, Effort, Measured, Near, Rule
from banditto.paper.linear_infinite import PAIRS, Make, over_horizons
from banditto.paper.linear_instances import log_even, seed_at
from banditto.paper.measuring import Point, curve, exponent, regret_at
from banditto.policies.least_squares_rounding.least_squares_rounding import LeastSquaresRounding
from banditto.policies.linear_threshold.net_threshold import NetThreshold
from banditto.problems.environments.linear_rewards import LinearBernoulli

THETAS = {1: (0.8,), 2: (0.64, 0.48)}
RANGES = {1: (10**9, 10**13), 2: (10**8, 3 * 10**11)}  # nets of up to 1,000 actions


def _nets(dimension: int, number: int) -> list[NetThreshold]:
    ball = Ball(dimension=dimension)
    horizons = [round(x) for x in log_even(*RANGES[dimension], number)]
    return [NetThreshold(actions=ball, horizon=horizon, rho=0.3, constants="paper") for horizon in horizons]


def net_regret(dimension: int, predicted: float, effort: Effort) -> Measured:
    """Measure the exponent in T of the net's regret on the ball."""
    world = LinearBernoulli(THETAS[dimension], Ball(dimension=dimension))
    nets = _nets(dimension, effort.choose(18, 36))
    points = [regret_at(policy.horizon, policy, world, PAIRS, seed_at(policy.horizon)) for policy in nets]
    return exponent(points, "horizon T (pulls)", "regret (reward units)", predicted)


def net_on_pyramid(effort: Effort, make: Make = NetThreshold) -> Measured:
    """Measure the exponent in T of the net's regret on the pyramid, where noise is small and the net is what costs."""
    return exponent(over_horizons(effort, make), "horizon T (pulls)", "regret (reward units)", 0.9)


def against(effort: Effort, make: Make = NetThreshold) -> Measured:
    """Measure the exponent in T of the net's regret divided by Algorithm 4's; the chart shows both."""
    naive, rounded = over_horizons(effort, make), over_horizons(effort, LeastSquaresRounding)
    ratios = [Point(a.x, a.y / b.y, a.low / b.high, a.high / b.low) for a, b in zip(naive, rounded, strict=True)]
    found = exponent(ratios, "horizon T (pulls)", "ratio", 0.34)
    curves = (curve("net (Corollary 12)", naive), curve("Algorithm 4 (Theorem 10)", rounded))
    chart = Chart(x_label="horizon T (pulls)", y_label="regret (reward units)", curves=curves)
    return Measured(value=found.value, interval=found.interval, chart=chart)


def net_loss(effort: Effort) -> Measured:
    """Measure the exponent in T of the regret of always playing the net's best action on the disc."""
    angles = np.pi * (np.arange(64) + 0.5) / 32.0
    directions = 0.8 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = []
    for policy in _nets(2, effort.choose(12, 30)):
        lost = policy.horizon * (0.8 - np.max(directions @ policy.points.T, axis=1)) / 2.0
        points.append(Point(policy.horizon, float(np.mean(lost)), float(np.min(lost)), float(np.max(lost))))
    return exponent(points, "horizon T (pulls)", "regret of the net's best (reward units)", 0.9, "mean and range")


def net_size(dimension: int, effort: Effort) -> Measured:
    """Measure the exponent in T of the number of the net's actions."""
    nets = _nets(dimension, effort.choose(12, 30))
    points = [Point(policy.horizon, policy.arms, policy.arms, policy.arms) for policy in nets]
    return exponent(points, "horizon T (pulls)", "actions of the net", dimension / (4 * dimension + 2))


def _corollary(
    name: str,
    statement: str,
    quantity: str,
    experiment: str,
    rule: Rule,
    measure: Callable[[Effort], Measured],
    seconds: tuple[float, float] = (1.0, 5.0),
) -> Claim:
    """Make a claim of Corollary 12 about an exponent in T."""
    return Claim(
        name=f"corollary-12-{name}",
        place="Corollary 12",
        statement=statement,
        quantity=f"exponent of {quantity} in T",
        experiment=f"Nets of radius T^(-1/(4d+2)), {experiment}.",
        rule=rule,
        measure=measure,
        seconds=seconds,
    )


_ONE, _TWO = "an interval, T = 10^9 to 10^13", "a disc, T = 10^8 to 3 x 10^11 (up to 1,000 actions)"
_TIP = "the triangle and the rewards of Theorem 10's rows, rho = 0.3, T = 10^9 to 10^12"
_PLAYED = "rho = 0.3, the paper's constants, theta of length 0.8; 16 pairs each"

CLAIMS = (
    _corollary(
        "regret-1",
        "The naive way has regret T^((4d+1)/(4d+2)): T^(5/6) for d = 1.",
        "regret",
        f"{_ONE}; {_PLAYED}",
        Near(predicted=round(5 / 6, 4), detectable=0.05),
        partial(net_regret, 1, 5 / 6),
        seconds=(1.5, 3.0),
    ),
    _corollary(
        "regret-2",
        "The naive way has regret T^((4d+1)/(4d+2)): T^(9/10) for d = 2.",
        "regret",
        f"{_TIP}; 16 pairs each",
        Near(predicted=0.9, detectable=0.15),
        net_on_pyramid,
        seconds=(1.0, 5.0),
    ),
    _corollary(
        "against-theorem-10",
        "Beside Algorithm 4 the naive way loses by a power of T: T^0.9 against T^0.56.",
        "the ratio of both regrets",
        f"{_TIP}, and Algorithm 4 there; 16 pairs each",
        Near(predicted=0.34, detectable=0.2),
        against,
        seconds=(9.0, 30.0),
    ),
    _corollary(
        "learning-2",
        "T^(9/10) for d = 2 is an upper bound. With more noise, learning costs more than the net loses at all of these "
        "horizons, and the bound holds all the same.",
        "regret",
        f"{_TWO}; {_PLAYED}",
        AtMost(predicted=0.9, detectable=0.15),
        partial(net_regret, 2, 0.9),
        seconds=(3.0, 8.0),
    ),
    _corollary(
        "net-2",
        "What the net itself loses is T^(9/10) for d = 2, and in the end nothing else counts.",
        "what the net's best action loses",
        f"{_TWO}; the mean over 64 directions of theta, computed",
        Near(predicted=0.9, detectable=0.1),
        net_loss,
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
