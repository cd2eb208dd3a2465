"""Every certified linear policy on instances that are hard for it, and the printed Algorithm 3 on a tie.

False-failure rate: at most 1e-6 over the whole file (exact binomial bounds, Bonferroni over 110 comparisons, fixed
seeds). What each comparison could detect is asserted beside it.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.policies.policy import Policy
from banditto.testing import assert_rate_at_most, detectable_rate
from tests.statistical.linear_worlds import World, finite_world, infinite_world, share_dropped

LEVEL = 1e-6 / 110
RHO = 0.2
PAIRS = 1024
NUMBERS = range(12)

FINITE = {
    "linear-threshold": bd.LinearThreshold,
    "rounding, lattice": bd.LeastSquaresRounding,
    "rounding, grid": lambda **known: bd.LeastSquaresRounding(**known, rounding="grid"),
    "certified, thresholds": lambda **known: bd.CertifiedLinear(**known, method="thresholds"),
    "certified, lattice": lambda **known: bd.CertifiedLinear(**known, method="lattice"),
}


def few(name: str) -> list[int]:
    """Four instances for `make test`, with each dimension and each shape; all twelve of them over the policies."""
    return [number for number in NUMBERS if (number + list(FINITE).index(name)) % 3 == 0]


def made(kind: Any, actions: Any, rewards: str, times: int = 30) -> Policy[Any]:
    """With a horizon of so many times the smallest one at which anything is dropped."""
    known = {"actions": actions, "rho": RHO, "rewards": rewards, "sigma": 0.5 if rewards == "bounded" else 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first one is too short
        smallest = kind(**known, horizon=10**6).minimum_horizon()
    assert smallest is not None
    policy: Policy[Any] = kind(**known, horizon=times * smallest)
    return policy


@cache
def finite(name: str, number: int) -> World:
    """Thresholds need some batches before they are narrower than the gaps."""
    times = {"linear-threshold": 1000, "certified, thresholds": 10_000_000, "certified, lattice": 1000}.get(name, 30)
    return finite_world(lambda actions, kind: made(FINITE[name], actions, kind, times), number)


def check(world: World, pairs: int, detectable: float) -> None:
    policy = world.policy
    assert detectable_rate(pairs, RHO, LEVEL) <= detectable
    assert policy.guarantee().holds
    minimum = policy.minimum_horizon()
    assert minimum is not None
    assert policy.horizon >= 10 * minimum
    certificate = bd.certify(policy, world.environment, pairs=pairs, seed=11)
    assert_rate_at_most(certificate.mismatches, pairs, RHO, LEVEL)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=[] if number in few(name) else pytest.mark.long)
        for name in FINITE
        for number in NUMBERS
    ],
)
def test_finitely_many_actions(name: str, number: int) -> None:
    check(finite(name, number), PAIRS, 0.31)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", FINITE)
def test_most_instances_drop_arms(name: str, every: bool) -> None:
    """Nothing would be shown if nothing happened."""
    shares = [share_dropped(finite(name, number), 64) for number in (NUMBERS if every else few(name))]
    assert sum(share >= 0.5 for share in shares) > len(shares) / 2, shares


SETS = [
    *(("ball", d) for d in (1, 2, 5, 10)),
    *(("box", d) for d in (2, 5, 10)),
    *(("simplex", d) for d in (2, 5, 10)),
    *(("polytope", d) for d in (2, 5, 10)),
]


def infinite(policy: Any, name: str, dimension: int, number: int) -> World:
    """With horizons for several batches; not for the polytope of ten dimensions, where each pair takes seconds more."""
    times = 3000 if dimension < 5 else 100_000
    if (name, dimension) == ("polytope", 10):
        times = 30
    return infinite_world(lambda actions, kind: made(policy, actions, kind, times), name, dimension, number)


def effort(dimension: int) -> tuple[int, float]:
    """Pairs, and the rate that they could detect."""
    return {1: (256, 0.39), 2: (256, 0.39), 5: (96, 0.51), 10: (64, 0.58)}[dimension]


CASES: list[tuple[Any, int]] = [(bd.LeastSquaresRounding, number) for number in range(len(SETS))]
# the other has the same algorithm with another plan, and in ten dimensions every pair takes its time
CASES += [(bd.CertifiedLinear, number) for number, (_, d) in enumerate(SETS) if d < 10]


def case(policy: Any, number: int) -> Any:
    name, dimension = SETS[number]
    return pytest.param(policy, number, id=f"{policy.__name__}-{name}-{dimension}")


@pytest.mark.long
@pytest.mark.parametrize(("policy", "number"), [case(*row) for row in CASES])
def test_infinitely_many_actions(policy: Any, number: int) -> None:
    world = infinite(policy, *SETS[number], number)
    check(world, *effort(SETS[number][1]))
    assert share_dropped(world, 16) == 1.0


@pytest.mark.long
def test_infinite_sets_are_cut_more_than_once() -> None:
    counts = [len(infinite(bd.LeastSquaresRounding, name, d, 0).policy.describe().rows) for name, d in SETS[:-1]]
    assert min(counts) >= 2


@pytest.mark.parametrize("number", [pytest.param(n, marks=[pytest.mark.long] * (n % 3 > 0)) for n in range(10)])
def test_nets(number: int) -> None:
    dimension = 1 + number % 2
    name = ("ball", "box", "simplex", "polytope", "ball")[number // 2]
    if (name, dimension) == ("simplex", 1):
        name = "box"  # a simplex of one dimension is a point
    world = infinite_world(lambda actions, kind: made(bd.NetThreshold, actions, kind, 300), name, dimension, number)
    check(world, 256, 0.42)


def test_the_printed_last_line_fails_on_a_tie() -> None:
    """Algorithm 3 with the paper's constants: two tied best arms are both there in the end, and theta_hat decides.

    Half of all pairs differ. With 1,024 pairs a rate of 0.4 would be called less than 0.3 with probability below 1e-9.
    """
    points = np.array([[0.9, 0.3], [0.9, -0.3], [-0.5, 0.5], [0.0, 0.6]])
    world = bd.LinearBernoulli([0.9, 0.0], points)
    paper = bd.LinearThreshold(actions=points, horizon=10**9, rho=0.1, constants="paper")
    certificate = bd.certify(paper, world, pairs=1024, seed=3)
    assert certificate.verdict == "FAIL"
    assert certificate.mismatches / 1024 >= 0.4
    assert not paper.guarantee().holds
    certified = bd.LinearThreshold(actions=points, horizon=10**9, rho=0.1)
    repaired = bd.certify(certified, world, pairs=1024, seed=3)
    assert repaired.verdict == "PASS"
    assert certified.guarantee().holds


def test_the_price_of_replicability_is_visible() -> None:
    """The other way round: eliminations without coins differ, so that a measurement can fail."""
    points = np.array([[0.9, 0.3], [0.9, -0.3], [0.8, -0.3], [0.0, 0.6]])
    world = bd.LinearBernoulli([0.9, 0.0], points)
    plain = bd.PhasedElimination(actions=bd.FiniteActions(points), horizon=10**6, sigma=0.5, centre=0.5)
    certificate = bd.certify(plain, world, pairs=512, rho=0.1)
    assert certificate.verdict == "FAIL"
