"""Many random instances, and the ends of the range."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import banditto as bd
from banditto.problems.environment import Environment
from banditto.testing.statistics import assert_rate_at_most, detectable_rate

pytestmark = pytest.mark.long

LEVEL = 1e-6
INSTANCES = 400
PAIRS = 16_384


def random_instance(generator: np.random.Generator) -> tuple[bd.RandomThreshold, Environment]:
    """2 to 12 arms, gaps log-uniform, any best arm, any rho; horizons at which arms are dropped."""
    arms = int(generator.integers(2, 13))
    rho = float(round(generator.choice([0.05, 0.1, 0.2, 0.4]), 3))
    constants: Literal["certified", "paper"] = "paper" if generator.random() < 0.5 else "certified"
    horizon = 10 ** int(generator.integers(8, 13))
    policy = bd.RandomThreshold(arms=arms, horizon=horizon, rho=rho, constants=constants)
    gaps = np.exp(generator.uniform(np.log(0.002), np.log(0.4), arms))
    if generator.random() < 0.5:
        gaps[:] = gaps[0]
    gaps[generator.integers(arms)] = 0.0
    best = float(generator.choice([0.45, 0.6, 0.9, 0.999]))
    if generator.random() < 0.3:
        return policy, bd.Gaussian(best - gaps, sigma=0.5)
    return policy, bd.Bernoulli(np.clip(best - gaps, 0.0, 1.0))


def test_no_random_instance_breaks_the_promise() -> None:
    """False-failure rate 1e-6 over all instances.

    Detectable on one instance with probability 0.8: rho + 0.012 at rho = 0.05, up to rho + 0.026 at rho = 0.4.
    """
    assert detectable_rate(PAIRS, 0.05, LEVEL / INSTANCES) <= 0.05 + 0.012
    assert detectable_rate(PAIRS, 0.4, LEVEL / INSTANCES) <= 0.4 + 0.026
    generator = np.random.default_rng(2023)
    visible = 0
    for number in range(INSTANCES):
        policy, world = random_instance(generator)
        certificate = bd.certify(policy, world, pairs=PAIRS, seed=number)
        assert_rate_at_most(certificate.mismatches, PAIRS, policy.rho, LEVEL / INSTANCES)
        visible += certificate.mismatches > 0
    assert visible > INSTANCES // 2


def test_a_thousand_arms_and_the_longest_horizon() -> None:
    means = [0.9] + [0.9 - 0.0008 * arm for arm in range(1, 1000)]
    policy = bd.RandomThreshold(arms=1000, horizon=10**15, rho=0.3)
    certificate = bd.certify(policy, bd.Bernoulli(means), pairs=1000, seed=1)
    assert certificate.verdict == "PASS"
    assert certificate.regret.mean < 0.2 * 10**15


def test_a_hundred_thousand_pairs_at_two_workers() -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    world = bd.Bernoulli([0.5, 0.58])
    counts = {jobs: bd.certify(policy, world, pairs=100_000, seed=3, jobs=jobs).mismatches for jobs in (1, 2)}
    assert counts[1] == counts[2]
    assert_rate_at_most(counts[1], 100_000, 0.1, LEVEL)
