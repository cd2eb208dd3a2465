"""Replicable least squares: the lattice's bound, its accuracy, its price, and one estimate on every machine."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.rewards import Rewards
from banditto.geometry.regression import Regression
from banditto.policies.shared_linear.estimate_rounding import (
    GridRounding,
    LatticeRounding,
    deviation,
    error,
    leverage_of,
    pulls_for,
)
from banditto.testing import assert_rate_at_most, detectable_rate

PAIRS = 20_000
DIMENSIONS = (1, 2, 3, 5, 8, 10, 20)
LEVEL = 1e-6 / 42


def sphere(arms: int, dimension: int) -> FloatArray:
    points = np.random.default_rng([1, dimension]).standard_normal((arms, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def totals_of(kind: str, core: FloatArray, pulls: tuple[int, ...], theta: FloatArray, rng: Any) -> FloatArray:
    """Totals (pair, arm) of rewards in [0, 1] with mean 1/2 + <theta, a>, or of normal ones."""
    means = theta @ core
    if kind == "gaussian":
        noise = rng.standard_normal((PAIRS, len(pulls)))
        return np.asarray(np.array(pulls) * means + np.sqrt(pulls) * noise)
    return np.array([rng.binomial(n, 0.5 + m, size=PAIRS) for n, m in zip(pulls, means, strict=True)], dtype=float).T


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("rounding", ["lattice", "grid"])
@pytest.mark.parametrize("kind", ["bounded", "gaussian", "subgaussian"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_printed_bound_holds(dimension: int, kind: Any, rounding: Any) -> None:
    """P(differ) at most the bound, sup error within epsilon: level 1e-6 over the 42 comparisons, a rate of 0.115 seen.

    theta is short, so that variances of rewards in [0, 1] are nearly 1/4: the bound is tight to within about 5% for the
    lattice and Gaussian rewards.
    """
    assert detectable_rate(PAIRS, 0.1, LEVEL) <= 0.115
    actions = sphere(max(40, 3 * dimension), dimension)
    sigma = 0.5 if kind == "bounded" else 1.0
    lsq = bd.ReplicableLeastSquares(actions=actions, rounding=rounding, rewards=kind, sigma=sigma)
    epsilon, rho, delta = 0.3, 0.1, 1e-6
    needed = lsq.pulls_needed(epsilon, rho, delta)
    design = lsq.design
    pulls = lsq.plan(needed).pulls
    core = np.ascontiguousarray(np.array(design.actions).T)
    regression = Regression.of(core, pulls)
    rewards = Rewards(kind, sigma)
    shape = (
        LatticeRounding(dimension, rewards, rho) if rounding == "lattice" else GridRounding(len(pulls), rewards, rho)
    )
    leverage = leverage_of(design.g, regression.total)
    rng = np.random.default_rng([2, dimension])
    theta = 0.05 * sphere(1, dimension)[0]
    centre = 0.5 if kind == "bounded" else 0.0
    uniforms = np.concatenate([Coins(4, 0, PAIRS).uniform(shape.purpose, 0, k) for k in range(shape.coins)], axis=1)
    law = "gaussian" if kind == "gaussian" else "bounded"
    if kind == "subgaussian":  # rewards -1 and 1, which are 1-subgaussian and have the largest variance
        drawn = [2.0 * totals_of(law, core, pulls, theta / 2, rng) - np.array(pulls) for _ in range(2)]
    else:
        drawn = [totals_of(law, core, pulls, theta, rng) for _ in range(2)]
    first, second = (shape.rounded(regression, totals, centre, leverage, uniforms) for totals in drawn)
    apart = int(np.sum(np.any(first.theta != second.theta, axis=1)))
    bound = float(sum(value for _, value, _ in shape.terms(regression, leverage, 2.0)))
    assert bound <= rho
    assert_rate_at_most(apart, PAIRS, bound, LEVEL)
    if rounding == "lattice" and kind == "gaussian":
        assert apart / PAIRS >= 0.9 * bound
    off = np.abs((first.theta - theta) @ actions.T)
    assert float(np.max(off)) <= epsilon


def test_the_price_beside_the_papers() -> None:
    """500 arms on the sphere, rho = 0.1, epsilon = 0.2, T = 10^6 with a tenth of 1/T for this estimate."""
    ratios = {}
    for dimension in (2, 5, 10):
        lsq = bd.ReplicableLeastSquares(actions=sphere(500, dimension))
        needed = lsq.pulls_needed(0.2, 0.1, 1e-7)
        ratios[dimension] = lsq.pulls_needed(0.2, 0.1, 1e-7, constants="paper") / needed
        assert needed <= {2: 5.8e3, 5: 7.3e4, 10: 6.6e5}[dimension]  # what the design page derived, or less
    assert ratios[2] >= 100
    assert ratios[10] >= 3000


def test_pulls_are_the_fewest() -> None:
    rewards = Rewards("bounded", 0.5)
    for rounding in (LatticeRounding(3, rewards, 0.1), GridRounding(4, rewards, 0.1)):
        nu = deviation(3, Decimal(10), 50)
        needed = pulls_for(rounding, 3.1, nu, Decimal("0.1"))
        assert needed is not None
        assert error(rounding, leverage_of(3.1, needed), nu) <= Decimal("0.1")
        assert error(rounding, leverage_of(3.1, needed - 1), nu) > Decimal("0.1")
    assert pulls_for(LatticeRounding(3, rewards, 1e-9), 3.1, nu, Decimal("1e-9")) is None


def test_the_estimate_is_least_squares() -> None:
    """Without rounding to speak of, and for any data: the same as numpy's."""
    rng = np.random.default_rng(3)
    points = sphere(9, 4)
    counts = rng.integers(5, 50, size=9)
    totals = rng.standard_normal((6, 9)) * counts
    regression = Regression.of(np.ascontiguousarray(points.T), counts.tolist())
    for row, found in zip(totals, regression.estimate(totals, 0.25), strict=True):
        weights = np.sqrt(counts)
        means = row / counts - 0.25
        expected = np.linalg.lstsq(points * weights[:, None], means * weights, rcond=None)[0]
        assert np.allclose(found, expected, rtol=0, atol=1e-12)
        assert np.allclose(regression.of_values(means[None]), expected, rtol=0, atol=1e-12)
    whitened = regression.whitened(totals, 0.0)
    assert np.allclose(regression.parameter(whitened), regression.estimate(totals, 0.0))
    assert regression.rounding(1.0) < 1e-11
    assert regression.bias(4.0, 1.0) < 1e-13


def data(lsq: bd.ReplicableLeastSquares, pulls: int, wobble: float = 0.0) -> list[tuple[int, int, float]]:
    arms = lsq.design.arms or tuple(range(lsq.design.support))
    counts = lsq.plan(pulls).pulls
    return [(arm, n, n * (0.5 + 0.01 * k) + wobble) for k, (arm, n) in enumerate(zip(arms, counts, strict=True))]


@pytest.mark.parametrize("rounding", ["lattice", "grid"])
@pytest.mark.parametrize("actions", [sphere(30, 3), bd.Ball(dimension=3)], ids=["finite", "ball"])
def test_fitting(actions: Any, rounding: Any) -> None:
    lsq = bd.ReplicableLeastSquares(actions=actions, rounding=rounding)
    rows = data(lsq, 10**5)
    found = lsq.fit(rows, rho=0.1, delta=0.01, coins=Coins(7))
    assert lsq.fit(rows[::-1], rho=0.1, delta=0.01, coins=Coins(7)) == found
    assert lsq.fit(rows, rho=0.1, delta=0.01, coins=Coins(8)).theta != found.theta
    assert lsq.fit(rows, rho=0.1, delta=0.01, coins=Coins(7), batch=1).theta != found.theta
    assert found.guarantee.holds
    assert 0.09 < found.guarantee.total <= 0.1
    assert 0.0 < found.error < 1.0
    assert lsq.fit(data(lsq, 10**7), rho=0.1, delta=0.01, coins=Coins(7)).error < found.error / 9
    assert len(found.theta) == 3
    assert len(found.digest) == 64
    needed = lsq.pulls_needed(0.05, 0.1, 0.01)
    assert lsq.fit(data(lsq, needed), rho=0.1, delta=0.01, coins=Coins(7)).error <= 0.05


def test_an_estimate_on_a_boundary_is_reported() -> None:
    """One arm, one dimension: totals are moved until the cell changes; there the margin vanishes."""
    lsq = bd.ReplicableLeastSquares(actions=[[1.0], [0.5]])
    (arm, count, _), *rest = data(lsq, 10**4)
    assert not rest

    def fit(total: float) -> Any:
        return lsq.fit([(arm, count, total)], rho=0.1, delta=0.01, coins=Coins(7))

    low, high = 0.5 * count, 0.5 * count
    while fit(high).theta == fit(low).theta:
        high += 10.0
    while math.nextafter(low, high) < high:
        middle = (low + high) / 2
        low, high = (middle, high) if fit(middle).theta == fit(low).theta else (low, middle)
    assert fit(low).theta != fit(high).theta
    assert fit(low).near_boundary
    assert fit(high).near_boundary
    assert not fit(0.5 * count + 1.0).near_boundary


def test_arms_that_do_not_span() -> None:
    flat = np.array([[0.6, 0.3, 0.0], [0.2, 0.9, 0.0], [0.5, 0.5, 0.0]])
    lsq = bd.ReplicableLeastSquares(actions=flat)
    assert lsq.design.dimension == 2
    found = lsq.fit(data(lsq, 10**5), rho=0.1, delta=0.01, coins=Coins(7))
    assert sum(value != 0.0 for value in found.theta) <= 2
    whole = bd.ReplicableLeastSquares(actions=np.vstack([flat, [[0.0, 0.0, 0.7], [0.1, 0.1, 0.5]]]))
    with pytest.raises(InvalidArgument, match="data that says nothing about action 3, 4"):
        whole.fit([(0, 100, 50.0), (1, 100, 50.0), (2, 100, 50.0)], rho=0.1, delta=0.01, coins=Coins(7))


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e-4, 1.0), (1.0, 1e-4), (1e-4, 9e-5), (1e-60, 1e-30)])
def test_data_on_one_feature_say_nothing_about_the_other(scales: tuple[float, float]) -> None:
    """However short actions are: with 10^13 pulls of the first an error of 1.5e-6 was printed, and 4e-5 was true."""
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]) * scales
    lsq = bd.ReplicableLeastSquares(actions=actions)
    with pytest.raises(InvalidArgument, match="data that says nothing about action 1"):
        lsq.fit([(0, 10**13, 0.5e13)], rho=0.1, delta=0.01, coins=Coins(1))
    whole = lsq.fit([(0, 10**6, 0.5e6), (1, 10**6, 0.5e6)], rho=0.1, delta=0.01, coins=Coins(1))
    assert 0.0 < whole.error < 0.1


OFF = 3 * 2.0**-20  # the third action is so far off the plane of the others, too little to be a direction of its own
NEARLY_A_PLANE = [[0.625, 0.0, 0.625], [0.0, 0.875, 0.0], [0.375, 0.25, 0.375 + OFF]]


def test_what_data_leave_open_is_part_of_the_error() -> None:
    """Data on two actions of three: nothing is seen of theta = (-0.35, 0, 0.35), but for the third action's value."""
    lsq = bd.ReplicableLeastSquares(actions=NEARLY_A_PLANE)
    theta = np.array([-0.35, 0.0, 0.35])
    count = 10**15
    rows = [(arm, count, count / 2 + count * float(np.array(NEARLY_A_PLANE[arm]) @ theta)) for arm in (0, 1)]
    found = lsq.fit(rows, rho=0.9, delta=0.5, coins=Coins(1))
    assert OFF / 2 <= found.error <= OFF / 2 + 1e-6
    off = np.abs(np.array(NEARLY_A_PLANE) @ (np.array(found.theta) - theta))
    assert float(off.max()) <= found.error
    assert float(off.max()) > found.error - OFF / 2  # which is what would have been printed without it


def test_pulls_make_up_for_what_designs_leave_open() -> None:
    lsq = bd.ReplicableLeastSquares(actions=NEARLY_A_PLANE)
    assert lsq.design.dimension == 2
    needed = lsq.pulls_needed(1e-5, 0.5, 0.1)
    assert lsq.fit(data(lsq, needed), rho=0.5, delta=0.1, coins=Coins(7)).error <= 1e-5 * (1 + 2.0**-20)
    with pytest.raises(InvalidArgument, match="epsilon"):
        lsq.pulls_needed(1e-6, 0.5, 0.1)


@pytest.mark.parametrize("seed", range(6))
def test_other_features_are_what_exact_least_squares_makes_of_them(seed: int) -> None:
    """|M a - a'| against fractions: never less, and hardly more."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-(2**18), 2**18, size=(4, 9)).astype(float) * 2.0**-20
    points[1] = points[0] + points[1] * 2.0 ** -(2 * seed)  # the two features lie ever more in one line
    counts = rng.integers(1, 10**6, size=5).tolist()
    regression = Regression.of(np.ascontiguousarray(points[:2, :5]), counts)
    found = regression.strays(points[2:, :5], points[:2], points[2:])
    exact = [[Fraction(value) for value in row] for row in points.tolist()]
    factor = [[Fraction(value) for value in row] for row in regression.factor.tolist()]
    for other in (2, 3):
        moment = [
            sum(Fraction(n, sum(counts)) * exact[other][k] * exact[j][k] for k, n in enumerate(counts)) for j in (0, 1)
        ]
        left = [sum(row[j] * moment[j] for j in (0, 1)) for row in factor]
        means = [sum(row[j] * value for row, value in zip(factor, left, strict=True)) for j in (0, 1)]
        for arm in range(9):
            true = abs(means[0] * exact[0][arm] + means[1] * exact[1][arm] - exact[other][arm])
            size = abs(means[0] * exact[0][arm]) + abs(means[1] * exact[1][arm])
            assert true <= Fraction(found[other - 2, arm]) <= true + (size + 1) * Fraction(1, 10**14)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda lsq: lsq.fit([], rho=0.1, delta=0.1, coins=Coins(1)), "data"),
        (lambda lsq: lsq.fit("abc", rho=0.1, delta=0.1, coins=Coins(1)), "data"),
        (lambda lsq: lsq.fit([(0, 1)], rho=0.1, delta=0.1, coins=Coins(1)), "data"),
        (lambda lsq: lsq.fit([(99, 1, 0.5)], rho=0.1, delta=0.1, coins=Coins(1)), "arm"),
        (lambda lsq: lsq.fit([(0, 0, 0.5)], rho=0.1, delta=0.1, coins=Coins(1)), "count"),
        (lambda lsq: lsq.fit([(0, 1, math.nan)], rho=0.1, delta=0.1, coins=Coins(1)), "total"),
        (lambda lsq: lsq.fit([(0, 1, 0.5), (0, 1, 0.5)], rho=0.1, delta=0.1, coins=Coins(1)), "data"),
        (lambda lsq: lsq.fit([(0, 1, 0.5)], rho=1.5, delta=0.1, coins=Coins(1)), "rho"),
        (lambda lsq: lsq.fit([(0, 1, 0.5)], rho=0.1, delta=0.0, coins=Coins(1)), "delta"),
        (lambda lsq: lsq.pulls_needed(0.0, 0.1, 0.1), "epsilon"),
        (lambda lsq: lsq.pulls_needed(1e-12, 0.1, 0.1), "epsilon"),
        (lambda lsq: lsq.pulls_needed(0.1, 0.1, 0.1, constants="best"), "constants"),
        (lambda lsq: bd.ReplicableLeastSquares(actions=[[1.0, 0.0]], rounding=lsq), "rounding"),
        (lambda lsq: bd.ReplicableLeastSquares(actions=[[2.0, 0.0]]), "actions"),
    ],
)
def test_refusals(call: Any, argument: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(bd.ReplicableLeastSquares(actions=sphere(5, 2)))
    assert caught.value.argument == argument
