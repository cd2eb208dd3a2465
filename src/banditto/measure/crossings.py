"""What it costs a choice to cross over from one arm to another: the quantities behind lower bounds.

Symbols  p: the probability, given the coins, of one answer; I(p): the normal density at the normal quantile of p;
         J(p): how fast p can change, at most, when the truth moves by one standard deviation of what is known of it;
         H(p): the integral of 2 p (1 - p)/J(p), which two executions must pay in differences; kappa: the largest
         H(p)/(p H(1)). docs/lower-bounds.md proves what is said of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from banditto.core.arrays import FloatArray

WHOLE = 2.0 / math.sqrt(math.pi)  # H(1) for Gaussian rewards
KAPPA = 1.03022  # for Gaussian rewards, rounded up
COIN_WHOLE = math.pi / 4.0  # H(1) where all that is known of J is Cramer and Rao's sqrt(p (1 - p))
COIN_KAPPA = 1.0731  # the same for kappa, rounded up
_GRID = np.linspace(-9.0, 9.0, 3601)
_ROUNDING = 1e-5  # relative: far more than the error of the trapezoids below


def crossing_cost(quantile: float) -> float:
    """Return H at the probability of a normal quantile, for Gaussian rewards."""
    below, above = float(ndtr(quantile)), float(ndtr(-quantile))
    density = math.exp(-quantile * quantile / 2.0) / math.sqrt(2.0 * math.pi)
    last = float(ndtr(math.sqrt(2.0) * quantile)) / math.sqrt(math.pi)
    return 2.0 * (quantile * below * above + density * (above - below) + last)


class Profile(NamedTuple):
    """H(1), kappa and the integral of 1/J for 0/1 rewards; kappa is rounded up, the others down."""

    whole: float
    kappa: float
    climbs: FloatArray

    def climb(self, low: float, high: float) -> float:
        """Return the integral of 1/J from one probability to another."""
        ends = np.interp(ndtri([low, high]), _GRID, self.climbs)
        return float(ends[1] - ends[0]) * (1.0 - _ROUNDING)


@lru_cache(maxsize=256)
def profile(excess: float) -> Profile:
    """Return the profile for J(p) = min(sqrt(p (1 - p)), I(p) + excess)."""
    below, above = ndtr(_GRID), ndtr(-_GRID)
    density = np.exp(-(_GRID**2) / 2.0) / math.sqrt(2.0 * math.pi)
    fastest = np.minimum(np.sqrt(below * above), density + excess)
    costs = _integrated(2.0 * below * above * density / fastest)
    kappa = float(np.max(costs / below) / costs[-1])
    return Profile(float(costs[-1]) * (1.0 - _ROUNDING), kappa * (1.0 + _ROUNDING), _integrated(density / fastest))


def _integrated(values: FloatArray) -> FloatArray:
    """Return the integrals of these values from the left end of the grid, by trapezoids."""
    steps = (values[1:] + values[:-1]) * (0.5 * (_GRID[1] - _GRID[0]))
    return np.concatenate([[0.0], np.cumsum(steps)])
