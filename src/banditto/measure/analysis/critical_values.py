"""By how much standard normal variables stray together: critical values by quadrature.

Each function returns the smallest number c such that a family of statements about independent standard normal variables
G_1, ..., G_K holds with probability 1 - share. docs/analyse.md says which family each table needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

_FURTHEST = 12.0  # a normal variable is beyond that with probability 4e-33
_PLACES = np.linspace(-_FURTHEST, _FURTHEST, 4801)  # for smooth functions the trapezoidal rule is exact to rounding,
_STEP = float(_PLACES[1] - _PLACES[0])  # and for those with a kink off by about the square of a step
_DENSITY = _STEP * np.exp(-(_PLACES**2) / 2.0) / math.sqrt(2.0 * math.pi)
_ROOM = 1.0 + 1e-5  # more than that loses


def one_sided(share: float) -> float:
    """Return c with P(G > c) = share, for a standard normal G."""
    return float(-ndtri(share))


@lru_cache(maxsize=4096)
def each(share: float, arms: int) -> float:
    """Return c with P(|G_a| <= c for all a) = 1 - share, for independent standard normal G_a."""
    return one_sided(-math.expm1(math.log1p(-share) / arms) / 2.0)


@lru_cache(maxsize=4096)
def all_pairs(share: float, arms: int) -> float:
    """Return c with P(|G_a - G_b| <= c sqrt 2 for all a and b) = 1 - share: Tukey's range, by quadrature."""
    if arms == 2:
        return one_sided(share / 2.0)
    return _smallest(lambda c: _wide_range(c, arms), share)


def _wide_range(critical: float, arms: int) -> float:
    """Return P(largest - smallest > critical sqrt 2), by an integral over the place of the largest."""
    others = arms - 1
    top = log_ndtr(_PLACES)
    below = np.exp(np.minimum(log_ndtr(_PLACES - critical * math.sqrt(2.0)) - top, -1e-300))  # given below x
    some = -np.expm1(others * np.log1p(-np.minimum(below, 1.0 - 1e-16)))
    return float(arms * (_DENSITY * np.exp(others * top) * some).sum())


@lru_cache(maxsize=4096)
def pairs_beside(share: float, arms: int, within: float) -> float:
    """Return d with P(|G_a| <= within for all a, but |G_a - G_b| > d sqrt 2 for some a and b) = share.

    It is less than `all_pairs`, because whoever is far from another is often far out itself, which is paid for already.
    """
    return _smallest(lambda d: _apart_inside(d, arms, within), share)


def _apart_inside(critical: float, arms: int, within: float) -> float:
    """Return P(all |G_a| <= within, and largest - smallest > critical sqrt 2), by an integral over the smallest."""
    reach = critical * math.sqrt(2.0)
    if reach >= 2.0 * within:
        return 0.0
    places, step = np.linspace(-within, within - reach, 2001, retstep=True)
    below = ndtr(places)
    some = (ndtr(within) - below) ** (arms - 1) - (ndtr(places + reach) - below) ** (arms - 1)
    inside = np.exp(-(places**2) / 2.0) * some
    inside[[0, -1]] /= 2.0  # at the ends: the trapezoidal rule
    return float(arms * step * inside.sum() / math.sqrt(2.0 * math.pi))


@lru_cache(maxsize=4096)
def each_and_fresh(share: float, arms: int, weight: float) -> float:
    """Return c with P(|G_a| <= c and |u G_a + v F| <= c for all a) = 1 - share, F being fresh, u^2 + v^2 = 1.

    All statements of the second kind share F, as in Dunnett's comparisons with one control; `weight` is v.
    """
    if weight <= 0.0:
        return each(share, arms)
    return _smallest(lambda c: _stray(c, arms, weight), share)


def _stray(critical: float, arms: int, weight: float) -> float:
    """Return P(some |G_a| or |u G_a + v F| exceeds `critical`), by an integral over F."""
    rest = math.sqrt(1.0 - weight * weight)
    low = np.maximum(-critical, (-critical - weight * _PLACES) / rest)
    high = np.minimum(critical, (critical - weight * _PLACES) / rest)
    out = np.where(low < high, ndtr(low) + ndtr(-high), 1.0)  # of one arm, given F
    return float((_DENSITY * -np.expm1(arms * np.log1p(-np.minimum(out, 1.0 - 1e-16)))).sum())


def _smallest(exceeded: Callable[[float], float], share: float) -> float:
    """Return the smallest c at which `exceeded(c)`, which falls with c, is at most `share`."""
    low, high = 0.0, _FURTHEST - 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if exceeded(middle) > share:
            low = middle
        else:
            high = middle
    return high * _ROOM
