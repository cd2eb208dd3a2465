from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import banditto as bd
from banditto.environment import Environment
from banditto.errors import InvalidArgument
from banditto.noise import LARGEST_COUNT, Noise
from banditto.testing import ENVIRONMENT_CHECKS
from banditto.testing.environments import COUNTS, DRAWS, Check, totals_of

ENVIRONMENTS: list[Environment] = [
    bd.Bernoulli([0.5, 0.001, 0.999]),
    bd.Gaussian([0.5, -3.0], sigma=2.0),
]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda world: world.name)
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_contract(environment: Environment, check: Check) -> None:
    check(environment)


def chi_square(draws: np.ndarray[Any, Any], law: Any) -> float:
    """The p-value of a chi-square test in about twenty classes of equal probability."""
    edges = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=expected.size)
    kept = expected > 5
    tested = stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum())
    return float(tested.pvalue)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("mean", [0.5, 0.03, 0.9])
def test_bernoulli_totals_follow_the_binomial(count: int, mean: float) -> None:
    # false-failure rate 1e-9 each; with 20,000 draws one of twenty classes off by 30% is seen (0.95)
    totals = totals_of(bd.Bernoulli([mean, mean]), count, noise_seed=count % 97)
    assert chi_square(totals[:, 0], stats.binom(count, mean)) > 1e-9


@pytest.mark.parametrize("count", [10**12, 10**15])
def test_rare_rewards_at_large_counts(count: int) -> None:
    # NumPy's own binomial is wrong here when it is asked for 10^15 at once
    mean = 20.0 / count
    totals = totals_of(bd.Bernoulli([mean, 0.5]), count)
    assert chi_square(totals[:, 0], stats.poisson(20.0)) > 1e-9
    assert totals.shape == (DRAWS, 2)


@pytest.mark.parametrize("count", COUNTS)
def test_gaussian_totals_follow_the_normal(count: int) -> None:
    totals = totals_of(bd.Gaussian([0.0, 1.0], sigma=0.5), count)
    assert stats.kstest(totals[:, 0] / (0.5 * np.sqrt(count)), "norm").pvalue > 1e-9


def test_counts_above_the_sampler_limit_are_split() -> None:
    draws = Noise(3, 0, 0).binomial(3 * LARGEST_COUNT + 7, 1.0, 4)
    assert draws.tolist() == [3 * LARGEST_COUNT + 7] * 4


def test_certain_rewards() -> None:
    pulls = np.array([[5, 10**15]] * 3)
    assert bd.Bernoulli([0.0, 1.0]).draw(pulls, Noise(1, 0, 0)).tolist() == [[0.0, 1e15]] * 3


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ([0.5], "2 to 1000 arms"),
        ([0.5] * 1001, "2 to 1000 arms"),
        ([0.5, 1.1], "numbers from 0 to 1"),
        ([0.5, -0.1], "numbers from 0 to 1"),
        ([0.5, float("nan")], "numbers from 0 to 1"),
        ([0.5, "x"], "numbers from 0 to 1"),
        ("0.5,0.6", "a list of numbers"),
    ],
)
def test_bad_means_are_refused(means: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        bd.Bernoulli(means)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_sigma_is_refused(sigma: float) -> None:
    with pytest.raises(InvalidArgument, match="^sigma: got"):
        bd.Gaussian([0.0, 1.0], sigma=sigma)


def test_means_too_far_from_zero_for_floating_point_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="ten thousand standard deviations"):
        bd.Gaussian([999999.6, 999999.7], sigma=1e-6)
    assert bd.Gaussian([-5000.0, 5000.0]).means == (-5000.0, 5000.0)


def test_a_plan_with_other_arms_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="3 arms"):
        bd.Bernoulli([0.1, 0.2]).draw(np.ones((4, 3), dtype=np.int64), Noise(1, 0, 0))
