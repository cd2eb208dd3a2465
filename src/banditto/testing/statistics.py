"""Assertions about random numbers that state how often they fail by chance."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, ndtri

from banditto.core.arrays import FloatArray
from banditto.core.exact import first_true
from banditto.numbers.intervals import lower_limit


def assert_rate_at_most(successes: int, trials: int, rate: float, level: float) -> None:
    """Fail when the exact lower bound on a probability exceeds `rate`.

    False-failure rate: at most `level`. `detectable_rate` says what it would find.
    """
    bound = lower_limit(successes, trials, level)
    assert bound <= rate, f"{successes} of {trials}: the probability is above {bound:.4g}, allowed is {rate:.4g}"


def detectable_rate(trials: int, rate: float, level: float, power: float = 0.8) -> float:
    """Return the smallest true probability that `assert_rate_at_most` refuses with probability `power`, to 1e-4."""
    critical = first_true(lambda count: lower_limit(count, trials, level) > rate, int(trials * rate), trials)

    def refused(ten_thousandths: int) -> bool:
        # P(Binomial(trials, p) >= critical)
        return float(betainc(critical, trials - critical + 1, ten_thousandths / 1e4)) >= power

    return first_true(refused, int(rate * 1e4), 10_000) / 1e4


def assert_same_mean(first: FloatArray, second: FloatArray, level: float) -> float:
    """Fail when two independent samples have different means; return the smallest difference that would fail.

    False-failure rate: `level`, by the normal approximation (use hundreds of values).
    """
    errors = [float(np.var(values, ddof=1)) / values.size for values in (first, second)]
    allowed = -float(ndtri(level / 2.0)) * math.sqrt(sum(errors))
    difference = abs(float(np.mean(first)) - float(np.mean(second)))
    assert difference <= allowed, f"means differ by {difference:.4g}, by chance at most {allowed:.4g}"
    return allowed


def assert_moments(values: FloatArray, mean: float, variance: float, level: float) -> None:
    """Fail when a sample's mean or variance is not the given one (normal and chi-square approximations)."""
    size = values.size
    reach = -float(ndtri(level / 4.0))
    centre = float(np.mean(values - mean))  # subtract first: totals near 10^15 leave few digits for the mean
    assert abs(centre) <= reach * math.sqrt(variance / size), f"mean is off by {centre:.4g}"
    spread = float(np.mean((values - mean) ** 2)) / variance - 1.0 if variance > 0 else float(np.ptp(values))
    # Var((X - m)^2) / v^2 = kurtosis - 1; 3 covers the normal and near-normal totals that are tested here
    assert abs(spread) <= reach * math.sqrt(3.0 / size), f"variance is off by a factor {1 + spread:.4g}"
