"""What is known of a condition that, once true, stays true: where it last was false and where it first was true.

A search asks at places of its own, and what it finds goes into constants that must stay what they are. `aimed` first
finds about where the condition turns true, by secants. After that nearly every question of the search lies on a side
that is known, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_MOST_STEPS, _LONGEST_STEP = 12, 2.0
_MOST_SIDES = 4
_STEEP = 2.5  # times the expected slope: where the excess grows faster, its sign may change more than once


class KnownSides:
    """A condition `excess(value) >= 0` for values above 0; a call says whether it holds, and asks if nobody knows.

    All values up to `no` are known to be too small.
    """

    def __init__(self, excess: Callable[[float], float], no: float = 0.0) -> None:
        self._excess = excess
        self._no, self._yes = no, math.inf  # the largest value known to be too small, the smallest known to do
        self._found: dict[float, float] = {}

    def __call__(self, value: float) -> bool:
        """Say whether the condition holds."""
        if value <= self._no or value >= self._yes:
            return value > self._no
        return self._asked(value) >= 0.0

    def _asked(self, value: float) -> float:
        if value not in self._found:
            self._found[value] = self._excess(value)
        found = self._found[value]
        if found >= 0.0:
            self._yes = min(self._yes, value)
        else:
            self._no = max(self._no, value)
        return found

    def aimed(self, guess: float, slope: float, near: float, low: float, high: float) -> KnownSides:
        """Find within a factor of about 1 + `near` where the condition turns true, and return the condition.

        Secants begin at the guess, with the slope of the excess over the logarithm of the value, and stay between `low`
        and `high`. If they lead nowhere, a search has to ask more often, and that is all. Where the excess jumps, what
        was found counts for nothing, and every question is asked.
        """
        known, expected = (self._no, self._yes), slope
        value = min(max(guess, low), high)
        found = self._asked(value)
        for _ in range(_MOST_STEPS):
            step = -found / slope if slope > 0.0 else math.nan
            if not abs(step) > near / 2.0:  # or it is not a number
                break
            there = min(max(value * math.exp(max(-_LONGEST_STEP, min(_LONGEST_STEP, step))), low), high)
            if there == value:
                break
            before, found = found, self._asked(there)
            slope, value = (found - before) / math.log(there / value), there
        away = near
        for _ in range(_MOST_SIDES):  # and a little to the sides, until there are two
            if self._no < value / (1.0 + 2.0 * away):
                self(max(value / (1.0 + away), low))
            if self._yes > value * (1.0 + 2.0 * away):
                self(min(value * (1.0 + away), high))
            away *= 8.0
        if self._jumps(expected, near):
            self._no, self._yes = known
        return self

    def _jumps(self, slope: float, near: float) -> bool:
        """Say whether the excess grows much faster than expected between the two sides."""
        if self._no not in self._found or self._yes not in self._found:
            return False
        grows = self._found[self._yes] - self._found[self._no]
        return grows > _STEEP * slope * (math.log(self._yes / self._no) + 2.0 * near)
