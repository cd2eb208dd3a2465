"""Assertions about random numbers that state how often they fail by chance."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from banditto.arrays import FloatArray
from banditto.intervals import lower_limit


def assert_rate_at_most(successes: int, trials: int, rate: float, level: float) -> None:
    """Fail when the exact lower bound on a probability exceeds `rate`.

    False-failure rate: at most `level`. Detects a true probability p once p - rate is a few
    sqrt(p (1 - p) / trials).
    """
    bound = lower_limit(successes, trials, level)
    assert bound <= rate, f"{successes} of {trials}: the probability is above {bound:.4g}, allowed is {rate:.4g}"


def assert_same_mean(first: FloatArray, second: FloatArray, level: float) -> float:
    """Fail when two independent samples have different means; the smallest difference that would fail is returned.

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
