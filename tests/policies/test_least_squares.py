"""Replicable least squares: the lattice's bound, its accuracy, its price, and one estimate on every machine."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.rewards import Rewards
from banditto.geometry.regression import Regression
from banditto.policies.linear.estimate_rounding import (
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
