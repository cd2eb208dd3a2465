"""Beyond the paper: lattice least squares and CertifiedLinear, against Algorithms 3 and 4.

Symbols  d: dimension, S, R: surface and radius of a cell of the lattice of volume 1. The lattice takes about
         d (S R)^2 / (rho eps)^2 pulls in all; S R grows like d^1.25 between 2 and 32 dimensions.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from banditto.core.errors import ShortHorizonWarning
from banditto.geometry.actions.simplex import Simplex
from banditto.geometry.active_sets import core_of
from banditto.geometry.regression import Regression
from banditto.measure.certificate import Regret
from banditto.measure.certify import certify
from banditto.paper.claims import AtLeast, AtMost, Claim, Effort, Measured, Near, Rule
from banditto.paper.linear_instances import sphere
from banditto.paper.rounded_regression import (
    ARMS,
    BERNOULLI,
    DELTA,
    DIMENSION,
    EPSILON,
    RHO,
    Pairs,
    by_dimension,
    differing,
    inaccurate,
    pairs_of,
)
from banditto.policies.certified_linear.certified_linear import CertifiedLinear
from banditto.policies.least_squares_rounding.least_squares_rounding import LeastSquaresRounding
from banditto.policies.linear_threshold.linear_threshold import LinearThreshold
from banditto.policies.shared_linear.estimate_rounding import LatticeRounding
from banditto.policies.shared_linear.replicable_least_squares import ReplicableLeastSquares
from banditto.problems.environments.linear_rewards import LinearBernoulli

# -- the estimator ----------------------------------------------------------------------------------------------------


def lattice_pairs(effort: Effort, rho: float = RHO, part: float = 1.0) -> Pairs:
    """Return pairs of lattice estimates with cells for `rho`, after `part` of the pulls that rho = 0.1 would take."""
    least_squares = ReplicableLeastSquares(actions=sphere(ARMS, DIMENSION))
    design = least_squares.design
    allocation = least_squares.plan(math.ceil(part * least_squares.pulls_needed(EPSILON, RHO, DELTA)))
    assert design.arms is not None
    regression = Regression.of(core_of(design), allocation.pulls)
    rounding = LatticeRounding(DIMENSION, BERNOULLI, rho)
    return pairs_of(rounding, regression, design.arms, design.g, effort.choose(20_000, 200_000))


def lattice_pulls(dimension: int, epsilon: float, rho: float) -> float:
    """Return how many pulls the lattice takes, of all actions together."""
    return float(ReplicableLeastSquares(actions=Simplex(dimension=dimension)).pulls_needed(epsilon, rho, 1e-7))


def saved(dimension: int, effort: Effort) -> Measured:
    """Measure how many times as many pulls the paper's recipe takes as the lattice."""
    least_squares = ReplicableLeastSquares(actions=sphere(500, dimension))
    ours = least_squares.pulls_needed(EPSILON, RHO, 1e-7)
    paper = least_squares.pulls_needed(EPSILON, RHO, 1e-7, constants="paper")
    return Measured.exactly(paper / ours, f"{paper:,} pulls against {ours:,}.")


# -- the policy -------------------------------------------------------------------------------------------------------

CELLS = ((10, 2), (100, 2), (20, 5))
SHARES = (0.1, 0.3)
HORIZON = 10**9
PAIRS = 128


def games(cells: Sequence[tuple[int, int]]) -> list[tuple[dict[str, Any], LinearBernoulli]]:
    """Return a linear problem for each cell (arms, dimension) and rho: a policy's arguments, and the environment."""
    found = []
    for arms, dimension in cells:
        points = sphere(arms, dimension)
        drawn = np.random.default_rng([11, dimension]).standard_normal(dimension)
        world = LinearBernoulli((0.9 * drawn / np.linalg.norm(drawn)).tolist(), points)
        found += [({"actions": points, "horizon": HORIZON, "rho": rho}, world) for rho in SHARES]
    return found


def ratio(theirs: Sequence[Regret], ours: Sequence[Regret]) -> Measured:
    """Return the geometric mean of ratios of mean regrets, with an interval for the noise of their executions."""
    logs = [math.log(a.mean / b.mean) for a, b in zip(theirs, ours, strict=True)]
    spreads = [(found.interval[1] - found.interval[0]) / 2.0 / found.mean for found in (*theirs, *ours)]
    middle, width = sum(logs) / len(logs), math.sqrt(sum(spread**2 for spread in spreads)) / len(logs)
    low, high = (math.exp(middle + sign * width) for sign in (-1.0, 1.0))
    detail = f"From {math.exp(min(logs)):.3g} to {math.exp(max(logs)):.3g} on {len(logs)} problems."
    return Measured(value=math.exp(middle), interval=(low, high), detail=detail)


def regret_ratio(
    other: Callable[..., Any],
    cells: Sequence[tuple[int, int]],
    effort: Effort,
    own: Callable[..., Any] = CertifiedLinear,
) -> Measured:
    """Measure the regret of an algorithm with the paper's constants, divided by that of CertifiedLinear."""
    pairs = effort.choose(PAIRS, 8 * PAIRS)
    theirs, ours = [], []
    for known, world in games(cells):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortHorizonWarning)  # Algorithm 4 hardly fits
            policies = other(**known, constants="paper"), own(**known)
        first, second = (certify(policy, world, pairs=pairs, seed=111).regret for policy in policies)
        theirs.append(first)
        ours.append(second)
    return ratio(theirs, ours)


def _beyond(
    name: str,
    statement: str,
    quantity: str,
    experiment: str,
    rule: Rule,
    measure: Callable[[Effort], Measured],
    **more: Any,
) -> Claim:
    """Make a claim about the lattice, which goes beyond the paper."""
    return Claim(
        name=f"beyond-lattice-{name}",
        place="beyond",
        statement=statement,
        quantity=quantity,
        experiment=experiment,
        rule=rule,
        measure=measure,
        **more,
    )


_PAIRS = "100 arms on the sphere, d = 5, eps = 0.2, rho = 0.1, delta = 0.01, Bernoulli rewards; 20,000 pairs."
_REGRET = "Arms on the sphere, theta of length 0.9, T = 10^9, rho = 0.1 and 0.3; (K, d) ="

CLAIMS = (
    _beyond(
        "replicable",
        "Two estimates that are rounded to a shared lattice are the same with probability 1 - rho.",
        "share of pairs that differ",
        _PAIRS,
        AtMost(predicted=RHO, detectable=0.01),
        lambda effort: differing(lattice_pairs(effort)),
        seconds=(0.4, 8.0),
    ),
    _beyond(
        "accuracy",
        "No action's value is off by more than eps, with probability 1 - delta.",
        "share of estimates off by more than eps",
        _PAIRS,
        AtMost(predicted=DELTA, detectable=0.002),
        lambda effort: inaccurate(lattice_pairs(effort)),
        seconds=(0.4, 8.0),
    ),
    _beyond(
        "dimension",
        "All pulls together grow like d^3.5, where the paper's recipe has d^4 (and its lemma d^5).",
        "exponent of all pulls in d",
        "Planned pulls on the simplex, eps = 0.2, rho = 0.01, delta = 10^-7, d = 2 to 32.",
        Near(predicted=3.5, detectable=0.3),
        partial(by_dimension, lattice_pulls, 0.01, 3.5, "pulls"),
        seconds=(0.4, 0.4),
    ),
    *(
        _beyond(
            f"pulls-{dimension}",
            f"The lattice takes at least a hundred times fewer pulls than the lemma's recipe, d = {dimension}.",
            "pulls, the recipe's over the lattice's",
            "Planned pulls for 500 arms on the sphere, eps = 0.2, rho = 0.1, delta = 10^-7.",
            AtLeast(predicted=100.0, detectable=10.0),
            partial(saved, dimension),
            seconds=(0.1, 0.1),
        )
        for dimension in (2, 5, 10)
    ),
    _beyond(
        "regret-3",
        "CertifiedLinear has at least twenty times less regret than Algorithm 3 with the paper's constants.",
        "ratio of regrets, geometric mean",
        f"{_REGRET} (10, 2), (100, 2), (20, 5).",
        AtLeast(predicted=20.0, detectable=10.0),
        partial(regret_ratio, LinearThreshold, CELLS),
        seconds=(7.0, 10.0),
    ),
    _beyond(
        "regret-4",
        "CertifiedLinear has at least a hundred times less regret than Algorithm 4 with the paper's constants.",
        "ratio of regrets, geometric mean",
        f"{_REGRET} (10, 2), (100, 2), where a batch of Algorithm 4 fits.",
        AtLeast(predicted=100.0, detectable=50.0),
        partial(regret_ratio, LeastSquaresRounding, CELLS[:2]),
        seconds=(2.0, 4.0),
    ),
)
