"""Beyond the paper: the price of replicability as rho and T change, with the lines below which nobody can stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from banditto.paper.beyond_rivals import BEST, Make, Problem, algorithm_2, regret_of
from banditto.paper.claims import AtMost, Chart, Claim, Curve, Effort, Measured, Near
from banditto.paper.fits import Point, curve, power_law
from banditto.policies.certified_elimination.certified_elimination import CertifiedElimination
from banditto.policies.random_threshold.random_threshold import RandomThreshold

PRICED = Problem(arms=2, horizon=10**13, rho=0.1, gap=0.1)
LOWER = 0.01  # what the lower bound's line is drawn with: its order is known, its constant is not
SMALL = 0.02  # up to this rho being the same costs far more than being right
TINY = 0.001


def house_told(problem: Problem) -> CertifiedElimination:
    """Whose batches are laid so that the gap is not just missed by one; replicable whatever the gap is."""
    return CertifiedElimination(arms=problem.arms, horizon=problem.horizon, rho=problem.rho, gap=problem.gap)


def algorithm_2_certified(problem: Problem) -> RandomThreshold:
    """With certified constants, which have no least blow-up."""
    return RandomThreshold(arms=problem.arms, horizon=problem.horizon, rho=problem.rho)


def lai_robbins(problem: Problem) -> float:
    """The regret below which no consistent policy stays in the long run, replicable or not: log T gap/kl."""
    p, q = BEST - problem.gap, BEST
    divergence = p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return (problem.arms - 1) * problem.gap / divergence * math.log(problem.horizon)


def lower_bound(problem: Problem) -> float:
    """The order 1/(rho^2 gap) of replicable coin problems (Impagliazzo et al. 2022), with a constant of our choice."""
    return LOWER / (problem.rho**2 * problem.gap)


def _points(make: Make, problems: Sequence[Problem], xs: Sequence[float], effort: Effort) -> list[Point]:
    found = [regret_of(make, problem, effort, seed=360 + k) for k, problem in enumerate(problems)]
    return [Point(x, row.mean, *row.interval) for x, row in zip(xs, found, strict=True)]


def rho_price(make: Make, name: str, effort: Effort) -> Measured:
    """The exponent of regret in 1/rho where rho is small; the chart goes on to where it is not."""
    rhos = np.geomspace(0.0005, 0.5, effort.choose(10, 31)).tolist()
    problems = [PRICED._replace(rho=rho) for rho in rhos]
    points = _points(make, problems, rhos, effort)
    small = [point for point in points if point.x <= SMALL]
    line = power_law([1.0 / point.x for point in small], [point.y for point in small])
    curves = (
        curve(name, points),
        _theory("order of the lower bound, 1/(100 rho^2 gap)", rhos, [lower_bound(problem) for problem in problems]),
        _theory("Lai and Robbins", rhos, [lai_robbins(problem) for problem in problems]),
    )
    chart = Chart(x_label="rho", y_label="regret, rewards", curves=curves)
    return Measured(value=line.slope, interval=(line.low, line.high), chart=chart)


def horizon_price(make: Make, rho: float, smallest: int, effort: Effort) -> Measured:
    """The exponent of regret in log T; the paper's policy is drawn beside it."""
    powers = np.linspace(smallest, 15, effort.choose(7, 25)).tolist()
    problems = [PRICED._replace(horizon=round(10.0**power), rho=rho) for power in powers]
    horizons = [float(problem.horizon) for problem in problems]
    points = _points(make, problems, horizons, effort)
    line = power_law([math.log(point.x) for point in points], [point.y for point in points])
    curves = (
        curve("certified-elimination", points),
        curve("random-threshold, the paper's constants", _points(algorithm_2, problems, horizons, effort)),
        _theory("Lai and Robbins", horizons, [lai_robbins(problem) for problem in problems]),
        _theory("order of the lower bound, 1/(100 rho^2 gap)", horizons, [lower_bound(each) for each in problems]),
    )
    chart = Chart(x_label="horizon, pulls", y_label="regret, rewards", curves=curves)
    return Measured(value=line.slope, interval=(line.low, line.high), chart=chart)


def _theory(label: str, x: Sequence[float], y: Sequence[float]) -> Curve:
    return Curve(label=label, x=tuple(x), y=tuple(y), theory=True)


TWO_ARMS = "Two arms, means 0.75 and 0.85"
OPTIMAL = (
    "The dependence on rho is optimal: the exponent of 1/rho is that of the lower bound for replicable coin problems."
)

CLAIMS = (
    Claim(
        name="conclusion-rho",
        place="Conclusion",
        statement=f"{OPTIMAL} Here: Algorithm 2 with certified constants, whose blow-up has no least value.",
        quantity="exponent of regret in 1/rho",
        experiment=f"{TWO_ARMS}, T = 10^13, rho from 0.0005 to 0.02. The lower bound's line has the constant 1/100.",
        rule=Near(predicted=2.0, detectable=0.2),
        measure=partial(rho_price, algorithm_2_certified, "random-threshold, certified"),
        seconds=(0.1, 0.7),
    ),
    Claim(
        name="beyond-price-rho",
        place="beyond",
        statement="The price of replicability grows with 1/rho^2 where it dominates, as the lower bound does.",
        quantity="exponent of regret in 1/rho",
        experiment=f"{TWO_ARMS}, T = 10^13, certified-elimination, rho from 0.0005 to 0.02; the chart goes on to 0.5.",
        rule=Near(predicted=2.0, detectable=0.2),
        measure=partial(rho_price, house_told, "certified-elimination"),
        seconds=(5.0, 12.0),
    ),
    Claim(
        name="beyond-price-additive",
        place="beyond",
        statement="1/rho^2 is added to log T and does not multiply it, as it does in Algorithm 2.",
        quantity="exponent of regret in log T",
        experiment=f"{TWO_ARMS}, certified-elimination at rho = {TINY:g}, T from 10^11 to 10^15.",
        rule=Near(predicted=0.0, detectable=0.1),
        measure=partial(horizon_price, house_told, TINY, 11),
        seconds=(3.0, 9.0),
    ),
    Claim(
        name="beyond-price-horizon",
        place="beyond",
        statement="At an ordinary rho regret grows no faster than log T, as without replicability.",
        quantity="exponent of regret in log T",
        experiment=f"{TWO_ARMS}, certified-elimination at rho = 0.1, T from 10^7 to 10^15.",
        rule=AtMost(predicted=1.0, detectable=0.3),
        measure=partial(horizon_price, house_told, 0.1, 7),
        seconds=(3.0, 9.0),
    ),
)
