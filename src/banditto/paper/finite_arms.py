"""Theorems 3 and 4: replicability of Algorithms 1 and 2, and how their regret grows, with the paper's constants.

Batches are powers of about e, so that regret is a staircase in the gap. Points therefore are averages over gaps that
fill one whole step, a factor of sqrt(e); and horizons are whole powers of e, at which the growth q is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from banditto.measure.certify import certify
from banditto.paper.claims import AtMost, Claim, Effort, Measured, Near
from banditto.paper.measuring import Point, differing, exponent, regret_at, undecided_gap
from banditto.policies.mean_rounding.mean_rounding import MeanRounding
from banditto.policies.policy import Policy
from banditto.policies.random_threshold.random_threshold import RandomThreshold
from banditto.problems.environments.bernoulli import Bernoulli

LARGEST = 34  # e^34 is the largest whole power of e that is a horizon
BEST = 0.9
STEP = math.sqrt(math.e)  # of the staircase, in the gap


class GrowthProblem(NamedTuple):
    """A problem whose regret is measured as it grows: arms, horizon, rho, and a gap that the policy does not know."""

    arms: int = 2
    logarithm: int = LARGEST  # of the horizon
    rho: float = 0.04
    gap: float = 0.3

    @property
    def horizon(self) -> int:
        """The horizon e^logarithm, rounded up."""
        return math.ceil(math.exp(self.logarithm))

    def mean_logarithm(self, plain: int) -> float:
        """Return the geometric mean of `plain` factors log T and one log(K T log T), as in a theorem's bound."""
        longer = math.log(self.arms * self.horizon * math.log(self.horizon))
        return math.exp((plain * math.log(self.logarithm) + math.log(longer)) / (plain + 1))

    @property
    def world(self) -> Bernoulli:
        """The environment; its best arm is last, so that ties in favour of small indices do not help."""
        return Bernoulli([BEST - self.gap] * (self.arms - 1) + [BEST])


Make = Callable[[GrowthProblem], Policy[Any]]


class ArmProblem(Protocol):
    """The part of a problem that the paper's policies are made from: arms, horizon and rho."""

    @property
    def arms(self) -> int:
        """How many arms there are."""

    @property
    def horizon(self) -> int:
        """How many pulls an execution has."""

    @property
    def rho(self) -> float:
        """The probability of a difference that is allowed."""


def algorithm_1(problem: ArmProblem) -> MeanRounding:
    """Make Algorithm 1 with the paper's constants."""
    return MeanRounding(arms=problem.arms, horizon=problem.horizon, rho=problem.rho, constants="paper")


def algorithm_2(problem: ArmProblem) -> RandomThreshold:
    """Make Algorithm 2 with the paper's constants."""
    return RandomThreshold(arms=problem.arms, horizon=problem.horizon, rho=problem.rho, constants="paper")


def averaged(x: float, make: Make, problem: GrowthProblem, effort: Effort, seed: int) -> Point:
    """Measure regret averaged over one step of batch sizes below the problem's gap.

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


def gap_law(make: Make, problem: GrowthProblem, effort: Effort) -> Measured:
    """Measure the exponent of regret in 1/gap, over four steps of batch sizes."""
    number = effort.choose(24, 96)
    gaps = [0.4 * STEP ** -(4.0 * (k + 0.5) / number) for k in range(number)]
    pairs = effort.choose(4096, 16_384)
    points = []
    for k, gap in enumerate(gaps):
        moved = problem._replace(gap=gap)
        points.append(regret_at(1.0 / gap, make(moved), moved.world, pairs, seed=300 + k))
    return exponent(points, "1/gap", "regret, rewards", 1.0)


def rho_law(make: Make, problem: GrowthProblem, effort: Effort) -> Measured:
    """Measure the exponent of regret in 1/rho."""
    rhos = np.geomspace(problem.rho / 16.0, problem.rho, effort.choose(7, 13)).tolist()
    points = [
        averaged(1.0 / rho, make, problem._replace(rho=rho), effort, seed=400 + 20 * k) for k, rho in enumerate(rhos)
    ]
    return exponent(points, "1/rho", "regret, rewards", 2.0)


def arms_law(make: Make, problem: GrowthProblem, sizes: Sequence[int], effort: Effort) -> Measured:
    """Measure the exponent in K of the regret for each worse arm: the theorem's sum over arms has another K - 1."""
    points = []
    for k, arms in enumerate(sizes):
        x, *regret = averaged(float(arms), make, problem._replace(arms=arms), effort, seed=600 + 20 * k)
        points.append(Point(x, *(value / (arms - 1) for value in regret)))
    return exponent(points, "arms", "regret for each worse arm, rewards", 2.0)


def _horizons(problem: GrowthProblem, smallest: int) -> list[GrowthProblem]:
    return [problem._replace(logarithm=logarithm) for logarithm in range(smallest, LARGEST + 1)]


def horizon_law(make: Make, problem: GrowthProblem, smallest: int, plain: int, effort: Effort) -> Measured:
    """Measure the exponent of regret in the bound's logarithms: `plain` factors log T and one log(K T log T)."""
    points = [
        averaged(each.mean_logarithm(plain), make, each, effort, seed=1000 + 20 * k)
        for k, each in enumerate(_horizons(problem, smallest))
    ]
    label = f"(log^{plain} T log(K T log T))^(1/{plain + 1})" if plain else "log(K T log T)"
    return exponent(points, label, "regret, rewards", plain + 1.0)


def saving(first: Make, second: Make, problem: GrowthProblem, smallest: int, effort: Effort) -> Measured:
    """Measure the exponent in log T of Algorithm 1's regret divided by Algorithm 2's."""
    points = []
    for k, each in enumerate(_horizons(problem, smallest)):
        one = averaged(float(each.logarithm), first, each, effort, seed=1000 + 20 * k)
        two = averaged(float(each.logarithm), second, each, effort, seed=2000 + 20 * k)
        ratio = one.y / two.y
        reach = math.exp(math.hypot((one.high - one.y) / one.y, (two.high - two.y) / two.y))
        points.append(Point(one.x, ratio, ratio / reach, ratio * reach))
    return exponent(points, "log T", "regret of 1 / regret of 2", 2.0)


def replicable(make: Make, problem: GrowthProblem, effort: Effort) -> Measured:
    """Measure the share of pairs that differ, at a gap where the policy is least sure."""
    policy = make(problem)
    world = problem._replace(gap=undecided_gap(policy)).world
    return differing(policy, world, pairs=effort.choose(8192, 65_536), seed=310)


THEOREM_3 = "Regret of Algorithm 1 is of order K^2 log^2(T)/rho^2 times the sum of log(K T log T)/gap over worse arms."
THEOREM_4 = "Regret of Algorithm 2 is of order K^2/rho^2 times the sum of log(K T log T)/gap over worse arms."
LONG = "T = e^34, the paper's constants, the best arm last"
FIRST, SECOND = GrowthProblem(rho=0.5), GrowthProblem(rho=0.04)  # beta = K^2/rho^2 from rho = K/48 down
# narrow enough that no test that could matter is skipped, wide enough to be resolved at the shortest horizon
GROWING = GrowthProblem(rho=0.5, gap=0.15)


def _law(
    name: str, quantity: str, experiment: str, rule: Near, measure: Callable[[Effort], Measured], quick: float
) -> Claim:
    """Make the claim that regret grows with some exponent, as Theorem 3 or 4 says."""
    number = name[len("theorem-")]
    return Claim(
        name=name,
        place=f"Theorem {number}",
        statement=THEOREM_3 if number == "3" else THEOREM_4,
        quantity=quantity,
        experiment=experiment,
        rule=rule,
        measure=measure,
        seconds=(quick, 8.0 * quick),
    )


def _replicable(theorem: int, algorithm: int, make: Make, horizon: int) -> Claim:
    """Make the claim that an algorithm with the paper's constants is rho-replicable."""
    return Claim(
        name=f"theorem-{theorem}-replicable",
        place=f"Theorem {theorem}",
        statement=f"Algorithm {algorithm} is rho-replicable, with the paper's constants.",
        quantity="share of pairs that differ",
        experiment=f"Two arms whose gap lies in the middle of a window of the policy; T = e^{horizon}.",
        rule=AtMost(predicted=0.1, detectable=0.02),
        measure=partial(replicable, make, GrowthProblem(rho=0.1, logarithm=horizon)),
        seconds=(0.2, 1.0),
    )


CLAIMS = (
    _replicable(3, 1, algorithm_1, 30),
    _law(
        "theorem-3-gap",
        "exponent of regret in 1/gap",
        f"Two arms, 24 gaps from 0.05 to 0.4 (four steps of the staircase), rho = 0.5; {LONG}.",
        Near(predicted=1.0, detectable=0.2),
        partial(gap_law, algorithm_1, FIRST),
        0.6,
    ),
    _law(
        "theorem-3-rho",
        "exponent of regret in 1/rho",
        f"Two arms, rho from 0.03 to 0.5, averages over gaps from 0.18 to 0.3; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(rho_law, algorithm_1, FIRST),
        0.6,
    ),
    _law(
        "theorem-3-arms",
        "exponent in K of regret / (K - 1)",
        f"4 to 24 arms with equal gaps, averages over gaps from 0.18 to 0.3, rho = 0.5; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(arms_law, algorithm_1, FIRST, (4, 6, 8, 12, 16, 24)),
        1.5,
    ),
    _law(
        "theorem-3-horizon",
        "exponent of regret in log T",
        "Two arms, T from e^22 to e^34, averages over gaps from 0.09 to 0.15, rho = 0.5, the paper's constants; "
        "against the geometric mean of the bound's three logarithms.",
        Near(predicted=3.0, detectable=0.3),
        partial(horizon_law, algorithm_1, GROWING, 22, 2),
        1.5,
    ),
    _replicable(4, 2, algorithm_2, 30),
    _law(
        "theorem-4-gap",
        "exponent of regret in 1/gap",
        f"Two arms, 24 gaps from 0.05 to 0.4 (four steps of the staircase), rho = 0.04; {LONG}.",
        Near(predicted=1.0, detectable=0.2),
        partial(gap_law, algorithm_2, SECOND),
        0.4,
    ),
    _law(
        "theorem-4-rho",
        "exponent of regret in 1/rho",
        f"Two arms, rho from 0.0025 to 0.04, where beta = K^2/rho^2, averages over gaps from 0.18 to 0.3; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(rho_law, algorithm_2, SECOND),
        0.4,
    ),
    _law(
        "theorem-4-arms",
        "exponent in K of regret / (K - 1)",
        f"5 to 40 arms with equal gaps, averages over gaps from 0.18 to 0.3, rho = 0.1; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(arms_law, algorithm_2, GrowthProblem(rho=0.1), (5, 7, 10, 14, 20, 28, 40)),
        1.2,
    ),
    _law(
        "theorem-4-horizon",
        "exponent of regret in log T",
        "Two arms, T from e^22 to e^34, averages over gaps from 0.09 to 0.15, rho = 0.5, the paper's constants; "
        "against the bound's log(K T log T).",
        Near(predicted=1.0, detectable=0.2),
        partial(horizon_law, algorithm_2, GROWING, 22, 0),
        0.7,
    ),
    Claim(
        name="theorem-4-saving",
        place="Theorem 4",
        statement="Algorithm 2 saves the log^2 T that Algorithm 1 pays for its union bound over batches.",
        quantity="exponent in log T of regret of 1 / regret of 2",
        experiment="Both algorithms on the same two arms, T from e^22 to e^34, averages over gaps from 0.09 to 0.15.",
        rule=Near(predicted=2.0, detectable=0.2),
        measure=partial(saving, algorithm_1, algorithm_2, GROWING, 22),
        seconds=(2.5, 14.0),
    ),
)
