"""Baselines against plain implementations written here, and the samplers inside compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import stats

import banditto as bd
from banditto import counter
from banditto.arrays import FloatArray
from banditto.baselines import thompson, ucb1
from banditto.engine import rounds
from banditto.engine.pairs import pseudo_regret, study_of
from banditto.errors import InvalidArgument
from banditto.testing import assert_same_mean

MEANS = (0.6, 0.75, 0.45, 0.7)
HORIZON = 3000
RUNS = 600


def plain_regret(policy: str, seed: int) -> FloatArray:
    """All replicates at once, round by round, from the textbook; shape (RUNS,)."""
    generator = np.random.default_rng(seed)
    means = np.array(MEANS)
    pulls, sums = np.zeros((RUNS, 4)), np.zeros((RUNS, 4))
    rows = np.arange(RUNS)
    for t in range(HORIZON):
        if policy == "thompson":
            arm = np.argmax(generator.beta(1 + sums, 1 + pulls - sums), axis=1)
        elif t < 4:
            arm = np.full(RUNS, t)
        else:
            arm = np.argmax(sums / pulls + np.sqrt(2 * np.log(t) / pulls), axis=1)
        sums[rows, arm] += generator.random(RUNS) < means[arm]
        pulls[rows, arm] += 1
    regret: FloatArray = pulls @ (means.max() - means)
    return regret


def own_regret(policy: Any, world: Any, seed: int) -> FloatArray:
    study = study_of(policy, world, seed=seed, noise_seed=None, horizon=HORIZON)
    pulls = np.array([rounds.play_pair(study, policy, pair)[1][0].pulls for pair in range(RUNS)])
    return pseudo_regret(pulls, world.means)


@pytest.mark.parametrize("policy", [bd.UCB1(), bd.Thompson()], ids=lambda policy: policy.name)
def test_regret_agrees_with_a_plain_implementation(policy: Any) -> None:
    # false-failure rate 1e-6; the returned difference is what would be detected: 4% of UCB1's, 20% of Thompson's
    own, plain = own_regret(policy, bd.Bernoulli(MEANS), 3), plain_regret(policy.name, 4)
    detectable = assert_same_mean(own, plain, 1e-6)
    assert detectable < {"ucb1": 0.04, "thompson": 0.20}[policy.name] * float(np.mean(plain))


@pytest.mark.parametrize(("policy", "pairs"), [(bd.UCB1(), 300), (bd.Thompson(), 100)], ids=["ucb1", "thompson"])
def test_ordinary_policies_agree_in_no_pair(policy: Any, pairs: int) -> None:
    certificate = bd.certify(policy, bd.Bernoulli(MEANS), horizon=10**4, rho=0.1, pairs=pairs, seed=1, jobs=2)
    assert certificate.mismatches == pairs
    assert certificate.agreement == 0.0
    assert certificate.verdict == "FAIL"
    assert certificate.bound is None


def ucb1_choice(pulls: list[int], sums: list[float], played: int) -> int:
    n, total = np.array(pulls), np.array(sums)
    shares = 1.0 / np.maximum(n, 1)
    return ucb1.choose((n, total, total * shares, shares), played, bd.UCB1().parameters(), np.uint64(0))


def test_ucb1_plays_each_arm_first_and_prefers_the_lowest_index() -> None:
    assert [ucb1_choice([0, 0, 0], [0.0, 0.0, 0.0], t) for t in range(3)] == [0, 1, 2]
    assert ucb1_choice([5, 5, 5], [1.0, 2.0, 2.0], 15) == 1
    assert ucb1_choice([5, 5, 50], [5.0, 5.0, 50.0], 60) == 0


def test_ucb1_works_on_gaussian_rewards() -> None:
    regret = own_regret(bd.UCB1(sigma=0.3), bd.Gaussian(MEANS, sigma=0.3), 1)
    assert 0 < float(np.mean(regret)) < 0.15 * HORIZON * 0.3


def test_thompson_needs_rewards_0_or_1() -> None:
    with pytest.raises(InvalidArgument, match="^environment: got gaussian rewards"):
        bd.certify(bd.Thompson(), bd.Gaussian([0.0, 1.0]), horizon=100, rho=0.1)
    with pytest.raises(InvalidArgument, match="^successes: got 0.5"):
        bd.Thompson(successes=0.5)
    with pytest.raises(InvalidArgument, match="^sigma: got -1"):
        bd.UCB1(sigma=-1)


# -- samplers: Kolmogorov-Smirnov at 1e-9 each; with 50,000 draws a distance of 1.5% is seen --------------------------


@njit(cache=False)
def many(kind: int, key: np.uint64, first: float, second: float, out: FloatArray) -> None:
    for index in range(out.size):
        if kind == 0:
            out[index] = counter.uniform(key, index)
        elif kind == 1:
            out[index] = counter.normal(key, index)
        else:
            stream = counter.word(key, index)
            x = thompson.gamma(first, stream, 0)
            out[index] = x / (x + thompson.gamma(second, stream, 1 << 32))


def draws(kind: int, key: int, first: float = 0.0, second: float = 0.0) -> FloatArray:
    out = np.empty(50_000)
    many(kind, np.uint64(key), first, second, out)
    return out


@pytest.mark.parametrize("key", [0, 1, 2**63 + 12345])
def test_uniforms_and_normals_of_compiled_loops(key: int) -> None:
    assert stats.kstest(draws(0, key), "uniform").pvalue > 1e-9
    assert stats.kstest(draws(1, key), "norm").pvalue > 1e-9
    values = draws(0, key)
    assert abs(float(np.corrcoef(values[:-1], values[1:])[0, 1])) < 6 / np.sqrt(50_000)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 30.0), (3.0, 2.0), (4000.0, 1000.0), (1e6, 10.0)])
def test_beta_samples_follow_the_beta(a: float, b: float) -> None:
    assert stats.kstest(draws(2, 99, a, b), stats.beta(a, b).cdf).pvalue > 1e-9


def test_streams_of_neighbouring_keys_are_unrelated() -> None:
    first, second = draws(0, 7), draws(0, 8)
    assert abs(float(np.corrcoef(first, second)[0, 1])) < 6 / np.sqrt(50_000)
