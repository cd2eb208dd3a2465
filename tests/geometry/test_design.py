"""Designs: right by exact arithmetic and by another solver, small, and the same for any scale."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.core.arrays import FloatArray
from banditto.geometry.actions.canonical import canonical
from banditto.geometry.design import core_sets
from banditto.geometry.design.design_result import counts_of
from banditto.geometry.design.frank_wolfe import DesignWeights
from banditto.geometry.regression import Whitening
from tests.geometry.design_digests import coins
from tests.geometry.oracles import d_optimal


def exact_g(actions: FloatArray, design: bd.Design) -> Fraction:
    """max a' V^-1 a over the rounded actions, in fractions, by elimination: another way than the library's."""
    rounded = canonical(actions)
    features = list(design.features)
    arms = [
        [Fraction(rounded.points[j, k]) * Fraction(2) ** rounded.exponents[j] for j in features]
        for k in range(len(actions))
    ]
    assert design.arms is not None
    total = sum(design.counts)
    size = len(features)
    moment = [[Fraction(0)] * size for _ in range(size)]
    for arm, count in zip(design.arms, design.counts, strict=True):
        for i in range(size):
            for j in range(size):
                moment[i][j] += Fraction(count, total) * arms[arm][i] * arms[arm][j]
    return max(
        sum((x * y for x, y in zip(arm, _solve(moment, arm), strict=True)), Fraction(0))
        for arm in set(map(tuple, arms))
    )


def _solve(matrix: list[list[Fraction]], right: Any) -> list[Fraction]:
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        found = next(k for k in range(i, len(rows)) if rows[k][i])
        rows[i], rows[found] = rows[found], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i]:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


KINDS = (
    *("gauss", "duplicates", "collinear", "zeros", "fewer than features", "one arm", "one feature", "tiny", "huge"),
    *("mixed scales", "plane", "hyperplane", "integers", "nearly a plane"),
)


def degenerate(kind: str, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    count = int(rng.integers(d, 25))
    arms = rng.standard_normal((count, d))
    if kind == "duplicates":
        return np.vstack([arms, arms[::-1], arms])
    if kind == "collinear":
        line: FloatArray = rng.standard_normal((count, 1)) * rng.standard_normal((1, d))
        return line
    if kind == "zeros":
        arms[rng.random(count) < 0.5] = 0.0
        arms[0] = 1.0
        return arms
    if kind == "fewer than features":
        return arms[: max(1, d - 1)]
    if kind == "one arm":
        return arms[:1]
    if kind == "one feature":
        return arms[:, :1]
    if kind in ("tiny", "huge"):
        return arms * (1e-8 if kind == "tiny" else 1e8)
    if kind == "mixed scales":
        scales: FloatArray = np.array([10.0 ** (3 * j - 6) for j in range(d)])
        return arms * scales
    if kind == "plane":
        thin = max(1, d // 2)
        flat: FloatArray = rng.standard_normal((count, thin)) @ rng.standard_normal((thin, d))
        return flat
    if kind == "hyperplane":
        return np.hstack([arms, np.ones((count, 1))])
    if kind == "integers":
        return rng.integers(-2, 3, size=(count, d)).astype(np.float64) + np.eye(count, d)
    if kind == "nearly a plane":
        arms[:, -1] = 1e-4 * arms[:, -1] + arms[:, 0]
    return arms


@pytest.mark.parametrize("kind", KINDS)
def test_the_certified_g_is_right_on_degenerate_arms(kind: str) -> None:
    """15 instances of each of 14 kinds: 210."""
    for seed in range(15):
        arms = degenerate(kind, seed)
        accuracy = (1.0, 0.1, 1e-3)[seed % 3]
        design = bd.g_optimal_design(arms, accuracy=accuracy)
        exact = exact_g(arms, design)
        # rounding that the certificate has to allow for grows with the square of how flat the arms lie
        close = Fraction(1, 10**6 if kind == "nearly a plane" else 10**9)
        assert exact <= Fraction(design.g) <= exact * (1 + close), (kind, seed)
        assert design.target_met
        assert design.g_over_d >= 1.0  # Kiefer and Wolfowitz: nothing is better than d
        rank = int(np.linalg.matrix_rank(arms / np.maximum(np.max(np.abs(arms), axis=0), 1e-300), tol=1e-7))
        assert design.dimension == rank, (kind, seed)
        assert math.isclose(sum(design.weights), 1.0)
        assert design.residual < 1e-4


def test_the_certified_g_holds_for_the_arms_as_they_were_given() -> None:
    """Rounding arms to 20 binary places moves g by about a millionth."""
    for seed in range(20):
        arms = np.random.default_rng(seed).standard_normal((80, 6))
        design = bd.g_optimal_design(arms, accuracy=0.01)
        chosen = arms[list(design.arms or ())]
        inverse = np.linalg.inv((chosen * np.array(design.weights)[:, None]).T @ chosen)
        own = float(np.max(np.einsum("ki,ij,kj->k", arms, inverse, arms)))
        assert math.isclose(own, design.g, rel_tol=2e-5)


@pytest.mark.parametrize(("count", "d", "kind"), [
    (10, 2, "gauss"), (60, 4, "sphere"), (120, 6, "cube"), (300, 8, "gauss"), (500, 5, "skewed"), (1000, 10, "sphere"),
    (1000, 10, "gauss"),
])  # fmt: skip
def test_against_an_independent_solver(count: int, d: int, kind: str) -> None:
    arms = family(kind, count, d, 3)
    design = bd.g_optimal_design(arms, accuracy=1e-6)
    assert design.target_met
    chosen = arms[list(design.arms or ())]
    moment = (chosen * np.array(design.weights)[:, None]).T @ chosen
    # other coordinates change nothing but the solver's comfort: in these the design's own log det is 0
    log_det, other = d_optimal(arms @ np.linalg.inv(np.linalg.cholesky(moment)).T)
    assert design.g <= (1 + 1e-6) * min(other, d * (1 + 1e-12))
    assert abs(log_det) <= 1e-6 * d


def family(kind: str, count: int, d: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((count, d))
    if kind == "sphere":
        arms /= np.linalg.norm(arms, axis=1)[:, None]
    if kind == "cube":
        arms = np.where(arms < 0, -1.0, 1.0)
    if kind == "skewed":
        arms *= np.geomspace(1.0, 1e-3, d) * rng.pareto(1.5, size=(count, 1))
    scaled: FloatArray = arms / np.max(np.linalg.norm(arms, axis=1))
    return scaled


SIZES = [(50, 5), (1000, 10), (4096, 12), (10_000, 20), (100_000, 30)]


@pytest.mark.parametrize(("count", "d"), SIZES)
@pytest.mark.parametrize("kind", ["gauss", "sphere", "cube", "skewed"])
def test_the_core_set_is_small(kind: str, count: int, d: int) -> None:
    for seed in range(1 if count > 50_000 else 4):
        design = bd.g_optimal_design(family(kind, count, d, seed), accuracy=1.0)
        assert design.target_met
        assert design.support <= 2 * d


def test_scale_and_order_of_features_do_not_matter() -> None:
    arms = coins(60, 4, 1)
    design = bd.g_optimal_design(arms)
    for other in (arms * 2.0**40, arms * 2.0**-60, arms * np.array([1.0, 2.0**-30, 2.0**30, 1.0])):
        assert bd.g_optimal_design(other).arms == design.arms
        assert bd.g_optimal_design(other).counts == design.counts


def test_noise_in_the_last_bits_does_not_matter() -> None:
    """What two labs compute differs by rounding; the largest entry, 1.0, may come out just below."""
    arms = np.round(coins(60, 4, 1), 3)
    arms[0, 0] = 1.0
    noisy = arms * (1.0 + coins(60, 4, 2) * 1e-14)
    noisy[0, 0] = 1.0 - 2.0**-53
    assert bd.g_optimal_design(noisy).digest == bd.g_optimal_design(arms).digest


def test_duplicates_go_to_the_lowest_index() -> None:
    arms = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert bd.g_optimal_design(arms).arms == (1, 3)


def test_arms_in_a_plane_are_designed_for_there() -> None:
    arms = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 0.0], [0.0, 2.0, 3.0]])
    design = bd.g_optimal_design(arms)
    assert (design.dimension, len(design.features), design.residual) == (2, 2, 0.0)
    assert math.isclose(design.g, 2.0, rel_tol=0.011)
    assert len(design.actions[0]) == 3


def test_effective_support() -> None:
    """Lemma 8 in one line: every mass at least 1/(2|C|), g at most doubled, and certified again."""
    arms = family("gauss", 400, 7, 0)
    design = bd.g_optimal_design(arms, accuracy=0.3)
    spread = design.effective()
    assert min(spread.weights) >= 1 / (2 * design.support)
    assert design.g < spread.g <= 2 * design.g
    exact = exact_g(arms, spread)
    assert exact <= Fraction(spread.g) <= exact * (1 + Fraction(1, 10**9))
    assert spread.digest != design.digest
    assert spread.counts == tuple(count * design.support + sum(design.counts) for count in design.counts)


@pytest.mark.parametrize("pulls", [1, 7, 1000, 10**12 + 1, 10**18])
def test_plans_are_whole_numbers_rounded_up(pulls: int) -> None:
    design = bd.g_optimal_design(family("sphere", 300, 6, 1))
    plan = design.plan(pulls)
    total = sum(design.counts)
    for count, weight in zip(plan.pulls, design.counts, strict=True):
        assert count == math.ceil(Fraction(pulls * weight, total))
    assert pulls <= plan.total == sum(plan.pulls) < pulls + design.support
    assert plan.digest != design.plan(pulls + 10**6 if pulls < 10**18 else 1).digest


def test_counts_lose_less_than_they_may() -> None:
    """Rounding up shrinks no weight by more than accuracy/64, so g grows by no more."""
    weights = [0.5, 0.3, 0.2 - 1e-9, 1e-9]
    for accuracy in (1.0, 0.1, 1e-6):
        counts = counts_of(weights, accuracy)
        total = sum(counts)
        assert all(count / total >= weight / (1 + accuracy / 64) for count, weight in zip(counts, weights, strict=True))


def test_an_accuracy_that_cannot_be_reached_is_said() -> None:
    """With one step allowed the certificate is still right, and says that the target was missed."""
    arms = family("cube", 200, 8, 0)
    points = canonical(arms).points
    span = core_sets.spanning_points(points, 1.0)
    weights = np.zeros(200)
    weights[span.chosen] = 1 / 8
    state = DesignWeights.on(points, weights)
    assert not state.improve(8.001, most_steps=1)
    assert Whitening.of(points[:, span.chosen], [1] * 8).largest(points) > 8.001


@pytest.mark.parametrize(("actions", "said"), [
    ([[0.0, 0.0], [0.0, 0.0]], "nothing but zeros"),
    ([[1.0, 2.0], [1.0]], "rows of lengths 1, 2"),
    ([[1.0, math.nan]], "nan in row 0, column 1"),
    ([[1.0, math.inf]], "inf in row 0, column 1"),
    ([], "no rows"),
    ([[]], "shape (1, 0)"),
    (np.zeros((0, 3)), "shape (0, 3)"),
    (np.zeros(3), "shape (3,)"),
    ([["a", "b"]], "one row of finite numbers per action"),
    ([[True, False]], "one row of finite numbers per action"),
    ("arms", "a matrix with a row of numbers for each action"),
    (None, "a matrix with a row of numbers for each action"),
    (np.zeros((2, 501)), "at most 500 features"),
    ([[1.7e308, 1.0]], "numbers up to 1.7e+308"),
])  # fmt: skip
def test_bad_arms(actions: Any, said: str) -> None:
    with pytest.raises(bd.InvalidArgument) as error:
        bd.g_optimal_design(actions)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("accuracy", [0, -1, math.nan, 1e-9, 1e4, "fine"])
def test_bad_accuracies(accuracy: Any) -> None:
    with pytest.raises(bd.InvalidArgument, match="^accuracy: got"):
        bd.g_optimal_design([[1.0]], accuracy=accuracy)


@pytest.mark.parametrize("pulls", [0, -3, 1.5, 10**19])
def test_bad_pulls(pulls: Any) -> None:
    with pytest.raises(bd.InvalidArgument, match="^pulls: got"):
        bd.g_optimal_design([[1.0]]).plan(pulls)


def test_progress_is_told() -> None:
    seen: list[float] = []
    bd.g_optimal_design(family("sphere", 300, 6, 1), accuracy=1e-4, progress=seen.append)
    assert len(seen) > 3
    assert seen[-1] <= 1 + 1e-4
