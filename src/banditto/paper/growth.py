"""How the regret of Algorithms 1 and 2 grows with log T, K, 1/rho and 1/gap.

Batches are powers of about e, so that regret is a staircase in the gap. Points therefore are averages over gaps that
fill one whole step, a factor of sqrt(e); and horizons are whole powers of e, at which the growth q is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from banditto.measure.certify import certify
from banditto.paper.claims import Effort, Measured
from banditto.paper.fits import Point, exponent
from banditto.paper.measuring import differing, regret_at, undecided_gap
from banditto.policies.mean_rounding.mean_rounding import MeanRounding
from banditto.policies.policy import Policy
from banditto.policies.random_threshold.random_threshold import RandomThreshold
from banditto.problems.environments.bernoulli import Bernoulli

LARGEST = 34  # e^34 is the largest whole power of e that is a horizon
BEST = 0.9
STEP = math.sqrt(math.e)  # of the staircase, in the gap


class Problem(NamedTuple):
    """What an algorithm is made for, and the gap of all arms but the best, which it does not know."""

    arms: int = 2
    logarithm: int = LARGEST  # of the horizon
    rho: float = 0.04
    gap: float = 0.3

    @property
    def horizon(self) -> int:
        """The smallest one whose logarithm is not below the whole number."""
        return math.ceil(math.exp(self.logarithm))

    def mean_logarithm(self, plain: int) -> float:
        """The geometric mean of `plain` times log T and one log(K T log T): the logarithms of a theorem's bound."""
        longer = math.log(self.arms * self.horizon * math.log(self.horizon))
        return math.exp((plain * math.log(self.logarithm) + math.log(longer)) / (plain + 1))

    @property
    def world(self) -> Bernoulli:
        """The best arm is last, where the smallest index does not find it by luck."""
        return Bernoulli([BEST - self.gap] * (self.arms - 1) + [BEST])


Make = Callable[[Problem], Policy[Any]]


def algorithm_1(problem: Problem) -> MeanRounding:
    """Algorithm 1 with the paper's constants, and the pulls that its means need."""
    return MeanRounding(arms=problem.arms, horizon=problem.horizon, rho=problem.rho, constants="paper")


def algorithm_2(problem: Problem) -> RandomThreshold:
    """Algorithm 2 with the paper's constants."""
    return RandomThreshold(arms=problem.arms, horizon=problem.horizon, rho=problem.rho, constants="paper")


def averaged(x: float, make: Make, problem: Problem, effort: Effort, seed: int) -> Point:
    """Regret at the problem's gap, averaged over one step of the staircase below it.

    Gaps in the step are weighted by their size: regret times gap is what repeats from step to step.
    """
    number = effort.choose(8, 16)
    points = []
    for k in range(number):
        gap = problem.gap * STEP ** -((k + 0.5) / number)
        moved = problem._replace(gap=gap)
        found = certify(make(moved), moved.world, pairs=effort.choose(2048, 8192), seed=seed + k).regret
        points.append((found.mean * gap / problem.gap, (found.interval[1] - found.mean) * gap / problem.gap))
    value = sum(mean for mean, _ in points) / number
    reach = math.sqrt(sum(half**2 for _, half in points)) / number
    return Point(x, value, value - reach, value + reach)


# -- the four laws of both theorems -----------------------------------------------------------------------------------


def gap_law(make: Make, problem: Problem, effort: Effort) -> Measured:
    """The exponent in 1/gap, over four steps of the staircase."""
    number = effort.choose(24, 96)
    gaps = [0.4 * STEP ** -(4.0 * (k + 0.5) / number) for k in range(number)]
    pairs = effort.choose(4096, 16_384)
    points = []
    for k, gap in enumerate(gaps):
        moved = problem._replace(gap=gap)
        points.append(regret_at(1.0 / gap, make(moved), moved.world, pairs, seed=300 + k))
    return exponent(points, "1/gap", "regret, rewards", 1.0)


def rho_law(make: Make, problem: Problem, effort: Effort) -> Measured:
    """The exponent in 1/rho."""
    rhos = np.geomspace(problem.rho / 16.0, problem.rho, effort.choose(7, 13)).tolist()
    points = [
        averaged(1.0 / rho, make, problem._replace(rho=rho), effort, seed=400 + 20 * k) for k, rho in enumerate(rhos)
    ]
    return exponent(points, "1/rho", "regret, rewards", 2.0)


def arms_law(make: Make, problem: Problem, sizes: Sequence[int], effort: Effort) -> Measured:
    """The exponent in K of the regret for each worse arm: the sum over arms in the theorem has another K - 1."""
    points = []
    for k, arms in enumerate(sizes):
        x, *regret = averaged(float(arms), make, problem._replace(arms=arms), effort, seed=600 + 20 * k)
        points.append(Point(x, *(value / (arms - 1) for value in regret)))
    return exponent(points, "arms", "regret for each worse arm, rewards", 2.0)


def _horizons(problem: Problem, smallest: int) -> list[Problem]:
    return [problem._replace(logarithm=logarithm) for logarithm in range(smallest, LARGEST + 1)]


def horizon_law(make: Make, problem: Problem, smallest: int, plain: int, effort: Effort) -> Measured:
    """The exponent in the logarithms of the bound, of which `plain` are log T and one is log(K T log T)."""
    points = [
        averaged(each.mean_logarithm(plain), make, each, effort, seed=1000 + 20 * k)
        for k, each in enumerate(_horizons(problem, smallest))
    ]
    label = f"(log^{plain} T log(K T log T))^(1/{plain + 1})" if plain else "log(K T log T)"
    return exponent(points, label, "regret, rewards", plain + 1.0)


def saving(first: Make, second: Make, problem: Problem, smallest: int, effort: Effort) -> Measured:
    """The exponent in log T of what Algorithm 1 costs for each reward that Algorithm 2 costs."""
    points = []
    for k, each in enumerate(_horizons(problem, smallest)):
        one = averaged(float(each.logarithm), first, each, effort, seed=1000 + 20 * k)
        two = averaged(float(each.logarithm), second, each, effort, seed=2000 + 20 * k)
        ratio = one.y / two.y
        reach = math.exp(math.hypot((one.high - one.y) / one.y, (two.high - two.y) / two.y))
        points.append(Point(one.x, ratio, ratio / reach, ratio * reach))
    return exponent(points, "log T", "regret of 1 / regret of 2", 2.0)


def replicable(make: Make, problem: Problem, effort: Effort) -> Measured:
    """The share of pairs that differ, at a gap in the middle of a window."""
    policy = make(problem)
    world = problem._replace(gap=undecided_gap(policy)).world
    return differing(policy, world, pairs=effort.choose(8192, 65_536), seed=310)
