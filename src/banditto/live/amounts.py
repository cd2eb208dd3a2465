"""Rewards as they are told, and their exact sums.

A reward is a float in the declared range. Sums are exact fractions, rounded once when a batch is complete: the order in
which rewards arrive, corrections and the number of workers leave no trace in them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

from banditto.core.errors import InvalidArgument

_LARGEST = sys.float_info.max
_LONGEST_BITS = 4096  # of a denominator; those of floats have at most 1075


@dataclass(frozen=True, kw_only=True)
class RewardRange:
    """What a reward may be; policies for bounded rewards see (reward - low) / (high - low)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
                raise InvalidArgument("rewards", value, "two numbers, such as 0,1")
            object.__setattr__(self, name, float(value))
        if not self.low < self.high:
            raise InvalidArgument(
                "rewards", f"{self.low:g} to {self.high:g}", "a range whose low end is below its high end"
            )
        if math.isinf(self.low) != math.isinf(self.high):
            raise InvalidArgument("rewards", f"{self.low:g} to {self.high:g}", "both ends finite, or none")

    @property
    def bounded(self) -> bool:
        """Whether there are ends."""
        return math.isfinite(self.low)

    def checked(self, reward: object) -> float:
        """A reward as the float that it is, if it is allowed."""
        if isinstance(reward, bool) or not isinstance(reward, int | float):
            raise InvalidArgument("reward", reward, self.text())
        try:
            value = float(reward)
        except OverflowError:
            value = math.inf
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise InvalidArgument("reward", reward, self.text())
        return value + 0.0  # -0.0 is 0.0: databases do not agree on whether there are two

    def checked_sum(self, total: object, count: int) -> Fraction:
        """The sum of `count` rewards, if it can be one."""
        allowed = "a finite number"
        if isinstance(total, bool) or not isinstance(total, int | float | Fraction):
            raise InvalidArgument("total", total, allowed)
        if isinstance(total, float) and not math.isfinite(total):
            raise InvalidArgument("total", total, allowed)
        if isinstance(total, Fraction) and total.denominator.bit_length() > _LONGEST_BITS:
            raise InvalidArgument("total", "a fraction that is too long to be written out", allowed)
        value = Fraction(total)
        if self.bounded and not count * Fraction(self.low) <= value <= count * Fraction(self.high):
            raise InvalidArgument("total", total, f"the sum of {count} rewards, each {self.text()}")
        if not count and value:
            raise InvalidArgument("total", total, "0, the sum of no rewards")
        if abs(value) > Fraction(_LARGEST):
            raise InvalidArgument("total", total, allowed)
        return value

    def text(self) -> str:
        """In words."""
        return f"a number from {self.low:g} to {self.high:g}" if self.bounded else "a finite number"

    def scaled(self, total: Fraction, count: int) -> float:
        """The total of `count` rewards in the policy's units, rounded once."""
        if not self.bounded:
            return float(total)
        low, high = Fraction(self.low), Fraction(self.high)
        return float((total - count * low) / (high - low))


def written(value: Fraction) -> str:
    """An exact sum as text."""
    return f"{value.numerator}/{value.denominator}"


def read(text: str) -> Fraction:
    """What `written` wrote."""
    return Fraction(text)
