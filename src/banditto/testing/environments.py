"""The contract of an environment: shapes, and totals whose distribution is right at any number of pulls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from banditto.arrays import FloatArray
from banditto.environment import Environment
from banditto.noise import Noise
from banditto.testing.statistics import assert_moments

COUNTS = (10, 10**6, 10**12, 10**15)
DRAWS = 20_000
LEVEL = 1e-9  # false-failure rate of each comparison; fixed seeds

Check = Callable[[Environment], None]


def totals_of(environment: Environment, count: int, noise_seed: int = 5) -> FloatArray:
    """`DRAWS` totals of `count` pulls of each arm, shape (R, K)."""
    pulls = np.full((DRAWS, len(environment.means)), count, dtype=np.int64)
    return environment.draw(pulls, Noise(noise_seed, 0, 0))


def check_shape_and_zeros(environment: Environment) -> None:
    """Totals have the plan's shape and are zero where nothing is pulled; the plan is not modified."""
    arms = len(environment.means)
    pulls = np.arange(7 * arms, dtype=np.int64).reshape(7, arms) % 3
    kept = pulls.copy()
    totals = environment.draw(pulls, Noise(1, 0, 0))
    assert totals.shape == pulls.shape
    assert totals.dtype == np.float64
    assert (totals[pulls == 0] == 0.0).all()
    assert np.array_equal(pulls, kept)


def check_fresh_noise(environment: Environment) -> None:
    """The same address gives the same totals; another side, block or seed gives others."""
    pulls = np.full((64, len(environment.means)), 1000, dtype=np.int64)
    draws = [environment.draw(pulls, Noise(*address)) for address in ((1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0))]
    assert np.array_equal(draws[0], environment.draw(pulls, Noise(1, 0, 0)))
    for other in draws[1:]:
        assert not np.array_equal(draws[0], other)


def check_moments(environment: Environment) -> None:
    """Mean and variance of totals at 10 to 10^15 pulls, against those of single pulls at that count."""
    sigma = environment.rewards.sigma
    for count in COUNTS:
        totals = totals_of(environment, count)
        for arm, mean in enumerate(environment.means):
            bounded = environment.rewards.kind == "bounded"
            variance = count * (mean * (1.0 - mean) if bounded else sigma**2)
            assert_moments(totals[:, arm], count * mean, variance, LEVEL)


ENVIRONMENT_CHECKS: tuple[Check, ...] = (check_shape_and_zeros, check_fresh_noise, check_moments)
