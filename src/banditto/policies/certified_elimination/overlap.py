"""Soft counting: how often two executions can fall on different sides of random cuts, whatever the gap.

A window is where a batch draws its cut from, uniformly: [low, low + width], for a statistic of fresh means. A gap
inside it costs at most noise/width; a gap outside only what noise carries over its edge. The sum over batches is
maximised over all gaps with bounds that hold between grid points. docs/certified-elimination.md, Lemmas 3 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.numbers.special_functions import erfc
from banditto.policies.shared import confidence

# Covers the rounding of every function used here, whose relative errors are below 1e-13.
SAFETY = 1.0 + 1e-10
_CELLS = 1500
_PLACES = np.array([[0.0], [0.25], [0.5], [0.75], [1.0]])  # in a window, where a search looks first


class Window(NamedTuple):
    """Cuts between `low` and `low + width` for means of `samples` samples; `noise` bounds E|G - G'|."""

    samples: int
    low: float
    width: float
    noise: float

    @property
    def high(self) -> float:
        """The largest cut of the window."""
        return self.low + self.width

    @property
    def inside(self) -> float:
        """The bound on P(two executions are on different sides of the cut), for a gap anywhere."""
        return min(1.0, self.noise / self.width)

    def below(self, gap: float, sigma: float, factor: int) -> float:
        """Return the bound on P(different sides of the cut) for gaps of at most `gap`, which is below the window."""
        tail = factor * confidence.overshoot(self.low - gap, sigma, self.samples)
        return min(self.inside, tail / self.width)

    def above(self, gap: float, sigma: float, factor: int) -> float:
        """Return the bound on P(different sides of the cut) for gaps of at least `gap`, which is above the window."""
        tail = factor * confidence.overshoot(gap - self.high, sigma, self.samples)
        return min(self.inside, tail / self.width)


def worst_sum(windows: Sequence[Window], sigma: float, factors: tuple[int, int], largest_gap: float) -> float:
    """Return an upper bound on the sum of the windows' bounds over every gap in [0, largest_gap].

    `factors` multiply the tails of gaps below and above a window: how many arms could carry the statistic over.
    """
    if not windows:
        return 0.0
    samples, low, width, noise = (np.array(column, dtype=np.float64) for column in zip(*windows, strict=True))
    high = low + width
    end = min(largest_gap, float(high.max()))
    lowest = float(np.min(low, where=low > 0.0, initial=end))  # a window may begin at 0
    inner = np.geomspace(lowest / 8.0, end, _CELLS)
    grid = np.unique(np.concatenate([[0.0, end], inner, low, high]))
    grid = grid[grid <= end]
    starts, ends = grid[:-1], grid[1:]
    if end < largest_gap:  # and all that is above all windows
        starts, ends = np.append(starts, end), np.append(ends, math.inf)
    x, y = starts[:, np.newaxis], ends[:, np.newaxis]  # cells by windows
    inside = np.minimum(1.0, noise / width)
    below = factors[0] * _overshoots(low - np.minimum(y, low), sigma, samples) / width
    above = factors[1] * _overshoots(np.maximum(x, high) - high, sigma, samples) / width
    tails = np.where(y <= low, below, np.where(x >= high, above, math.inf))
    return float(np.minimum(inside, tails).sum(axis=1).max()) * SAFETY


def surely_more(
    windows: Sequence[Window], sigma: float, factors: tuple[int, int], largest_gap: float, share: float
) -> bool:
    """Return whether a few gaps already show that `worst_sum` exceeds `share`, as it does for most that a search tries.

    True is always right: up to rounding, the bound of a cell is no less than that of any gap in it.
    """
    if not windows:
        return False
    samples, low, width, noise = np.array(windows, dtype=np.float64).T
    high = low + width
    end = min(largest_gap, float(high.max()))
    gaps = np.minimum(low + _PLACES * width, end).reshape(-1, 1)
    roots = np.sqrt(samples) / (2.0 * sigma)
    is_below = gaps <= low
    distances = np.where(is_below, low - gaps, gaps - high)  # negative inside
    tails = np.where(is_below, *factors) * (math.sqrt(math.pi) / (roots * width)) * erfc(distances * roots)
    bounds = np.minimum(1.0, noise / width)
    bounds = np.where(distances < 0.0, bounds, np.minimum(bounds, tails))
    return bool(bounds.sum(axis=1).max() > share)


def _overshoots(distances: FloatArray, sigma: float, samples: FloatArray) -> FloatArray:
    """Return `confidence.overshoot` for arrays."""
    roots = np.sqrt(samples)
    return np.asarray(2.0 * sigma * math.sqrt(math.pi) / roots * erfc(distances * roots / (2.0 * sigma)))
