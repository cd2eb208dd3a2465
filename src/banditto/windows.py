"""Soft counting: how often two executions can fall on different sides of random cuts, whatever the gap.

A window is where a batch draws its cut from, uniformly: [low, low + width], for a statistic of fresh means. A gap
inside it costs at most noise/width; a gap outside only what noise carries over its edge. The sum over batches is
maximised over all gaps with bounds that hold between grid points. docs/certified-elimination.md, Lemmas 3 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from banditto import confidence

# Covers the rounding of every function used here, whose relative errors are below 1e-13.
SAFETY = 1.0 + 1e-10
_CELLS = 400


class Window(NamedTuple):
    """Cuts from `low` to `low + width` for means of `samples` samples; `noise` bounds E|G - G'|."""

    samples: int
    low: float
    width: float
    noise: float

    @property
    def high(self) -> float:
        """The largest cut."""
        return self.low + self.width

    @property
    def inside(self) -> float:
        """The bound for a gap anywhere."""
        return min(1.0, self.noise / self.width)

    def below(self, gap: float, sigma: float, factor: int) -> float:
        """The bound for a gap of at most `gap`, which is below the window."""
        tail = factor * confidence.overshoot(self.low - gap, sigma, self.samples)
        return min(self.inside, tail / self.width)

    def above(self, gap: float, sigma: float, factor: int) -> float:
        """The bound for a gap of at least `gap`, which is above the window."""
        tail = factor * confidence.overshoot(gap - self.high, sigma, self.samples)
        return min(self.inside, tail / self.width)


def worst_sum(windows: Sequence[Window], sigma: float, factors: tuple[int, int], largest_gap: float) -> float:
    """An upper bound on the sum of the windows' bounds over every gap in [0, largest_gap].

    `factors` multiply the tails of gaps below and above a window: how many arms could carry the statistic over.
    """
    if not windows:
        return 0.0
    below, above = factors
    end = min(largest_gap, max(window.high for window in windows))
    start = min(window.low for window in windows) / 4.0
    ends = {edge for window in windows for edge in (window.low, window.high) if edge < end}
    ratio = max(end / start, 1.0)
    inner = {start * ratio ** (k / _CELLS) for k in range(_CELLS)}
    grid = sorted({0.0, end} | ends | {x for x in inner if 0.0 < x < end})
    cells = list(pairwise(grid))
    if end < largest_gap:
        cells.append((end, math.inf))  # above all windows
    worst = 0.0
    for x, y in cells:
        total = 0.0
        for window in windows:
            if y <= window.low:
                total += window.below(y, sigma, below)
            elif x >= window.high:
                total += window.above(x, sigma, above)
            else:
                total += window.inside
        worst = max(worst, total)
    return worst * SAFETY
