"""Sums of rewards that are exact: the order in which rewards arrive leaves no trace in them."""

from __future__ import annotations

from fractions import Fraction
from math import gcd


def sum_text(value: Fraction) -> str:
    """Write an exact sum as text, such as 3/2."""
    return f"{value.numerator}/{value.denominator}"


def exact_sum(text: str) -> Fraction:
    """Read what `sum_text` wrote; the same fraction comes back."""
    return Fraction(text)


class ExactSum:
    """Adds up floats without rounding, and without reducing a fraction at every step.

    A float is an integer over a power of two, so that of two denominators one divides the other.
    """

    __slots__ = ("_denominator", "_numerator")

    def __init__(self, start: Fraction = Fraction(0)) -> None:
        self._numerator, self._denominator = start.numerator, start.denominator

    def add(self, reward: float, times: int = 1) -> None:
        """Add a reward so many times; -1 takes one away."""
        numerator, denominator = reward.as_integer_ratio()
        if denominator == self._denominator:
            self._numerator += times * numerator
        elif self._denominator % denominator == 0:
            self._numerator += times * numerator * (self._denominator // denominator)
        else:  # a start such as 1/3 has a denominator of its own
            total = self.value + times * Fraction(reward)
            self._numerator, self._denominator = total.numerator, total.denominator

    @classmethod
    def read(cls, text: str) -> ExactSum:
        """Read what `text` wrote; the same sum comes back."""
        made = cls()
        numerator, _, denominator = text.partition("/")
        made._numerator, made._denominator = int(numerator), int(denominator)
        return made

    def text(self) -> str:
        """Write the sum as `sum_text` does, in lowest terms."""
        divisor = gcd(self._numerator, self._denominator)
        return f"{self._numerator // divisor}/{self._denominator // divisor}"

    @property
    def value(self) -> Fraction:
        """The sum so far, in lowest terms."""
        return Fraction(self._numerator, self._denominator)
