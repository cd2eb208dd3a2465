"""The contract of an environment: shapes, and totals whose distribution is right at any number of pulls."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from banditto.core.arrays import FloatArray, IntArray
from banditto.engine.backend import HOST, Machine
from banditto.problems.environment import Environment
from banditto.testing.statistics import assert_moments

COUNTS = (10, 10**6, 10**12, 10**15)
DRAWS = 20_000
ONE_BY_ONE = ((10, DRAWS), (10_000, 1000))  # (count, draws) where every single reward is drawn, and takes its time
LEVEL = 1e-9  # false-failure rate of each comparison; fixed seeds

Check = Callable[[Environment], None]


def totals_of(
    environment: Environment, count: int, noise_seed: int = 5, draws: int = DRAWS, machine: Machine = HOST
) -> FloatArray:
    """Return `draws` totals of `count` pulls of each arm; shape (R, K)."""
    pulls = np.full((draws, len(environment.means)), count, dtype=np.int64)
    return _drawn(environment, pulls, (noise_seed, 0, 0), machine)


def _drawn(environment: Environment, pulls: IntArray, address: tuple[int, int, int], machine: Machine) -> FloatArray:
    """Return totals of these pulls, drawn on a machine with the noise of an address (seed, side, block)."""
    totals: FloatArray = machine.host(environment.draw(machine.arrays.asarray(pulls), machine.noise(*address)))
    return totals


def check_shape_and_zeros(environment: Environment, machine: Machine = HOST) -> None:
    """Check that totals have the plan's shape, are zero where nothing is pulled, and leave the plan unchanged."""
    arms = len(environment.means)
    pulls = np.arange(7 * arms, dtype=np.int64).reshape(7, arms) % 3
    kept = pulls.copy()
    totals = _drawn(environment, pulls, (1, 0, 0), machine)
    assert totals.shape == pulls.shape
    assert totals.dtype == np.float64
    assert (totals[pulls == 0] == 0.0).all()
    assert np.array_equal(pulls, kept)


def check_fresh_noise(environment: Environment, machine: Machine = HOST) -> None:
    """Check that the same address gives the same totals, and that another side, block or seed gives others."""
    pulls = np.full((64, len(environment.means)), 1000, dtype=np.int64)
    addresses = (1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0)
    draws = [_drawn(environment, pulls, address, machine) for address in addresses]
    assert np.array_equal(draws[0], _drawn(environment, pulls, addresses[0], machine))
    for other in draws[1:]:
        assert not np.array_equal(draws[0], other)


def check_moments(environment: Environment, machine: Machine = HOST) -> None:
    """Check mean and variance of totals at 10 to 10^15 pulls against those of single rewards."""
    exact = environment.largest_count >= COUNTS[-1]
    for count, draws in ((count, DRAWS) for count in COUNTS) if exact else ONE_BY_ONE:
        totals = totals_of(environment, count, draws=draws, machine=machine)
        for arm, (mean, variance) in enumerate(zip(environment.means, environment.variances, strict=True)):
            # rewards in [0, 1] have kurtosis 1/variance at most, so such totals are close enough to normal
            if environment.rewards.kind != "bounded" or variance == 0.0 or count * variance >= 25.0:
                assert_moments(totals[:, arm], count * mean, count * variance, LEVEL)
            else:
                _assert_mean(totals[:, arm] / count, mean, variance / count, 1.0 / count)


def _assert_mean(values: FloatArray, mean: float, variance: float, reach: float) -> None:
    """Fail when a sample's mean is not the given one, by Bernstein's inequality for values within `reach` of it."""
    log = math.log(2.0 / LEVEL)
    allowed = math.sqrt(2.0 * variance * log / values.size) + reach * log / (3.0 * values.size)
    difference = float(np.mean(values - mean))
    assert abs(difference) <= allowed + 1e-12, f"mean is off by {difference:.4g}, by chance at most {allowed:.4g}"


def check_single_rewards(environment: Environment) -> None:
    """Check that rewards in compiled loops have the same moments, and depend on nothing but their address."""
    reward, law = environment.round_kernel(), environment.round_parameters()
    key = np.uint64(77)
    for arm, (mean, variance) in enumerate(zip(environment.means, environment.variances, strict=True)):
        draws = np.array([reward(arm, law, key, time) for time in range(DRAWS)])
        again = [reward(arm, law, key, time) for time in (DRAWS - 1, 0)]
        assert again == [draws[-1], draws[0]]
        bounded = environment.rewards.kind == "bounded"
        _assert_mean(draws, mean, variance, 1.0 if bounded else 0.0)
        # (x - mean)^2 is in [0, 1] with variance at most `variance` if x is in [0, 1]; if normal, 2 variance^2
        noise = variance if bounded else 2.0 * variance**2
        _assert_mean((draws - mean) ** 2, variance, noise, 1.0 if bounded else 10.0 * variance)


MACHINE_CHECKS = (check_shape_and_zeros, check_fresh_noise, check_moments)  # of totals, on any machine
ENVIRONMENT_CHECKS: tuple[Check, ...] = (*MACHINE_CHECKS, check_single_rewards)
