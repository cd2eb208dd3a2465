"""A confidence sequence: an interval for a rate that is valid at every look at once, however often one looks.

Robbins' mixture: if pairs differ with probability p, then the likelihood ratio of "q" against "p", averaged over q with
fixed weights, is a martingale that starts at 1. By Ville's inequality it ever reaches 1 / tail with probability at most
`tail`. What it has reached that for is left out. The weights are Beta densities, one for either end, chosen by rho
alone: before any pair is played. Each interval is a function of the two counts; nothing depends on earlier looks.

All of it is computed with `decimal`: a run that stops when it is settled must stop at the same pair on every machine,
and an end is the float next to the exact one on the outer side. The proof is in docs/certify.md.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from banditto.core.exact import PI, first_true, precise, written

# B(2j) / (2j (2j - 1)) of Stirling's series, from j = 1 on; from _STIRLING_FROM on, the series errs by less than 1e-40
_BERNOULLI = (
    *("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798", "-174611/330"),
    *("854513/138", "-236364091/2730", "8553103/6", "-23749461029/870", "8615841276005/14322"),
)
_STIRLING_FROM = 60

# The weights: strength and the odds of their mean, as a multiple of the odds of rho. Of those that were tried these
# need few pairs for any rate that is not close to rho, and not many more near it (docs/certify.md has the figures).
_BELOW = (2, Decimal("0.6"))
_ABOVE = (4, Decimal("1.5"))
_EXTREME = Decimal("1e-9")  # no weights are placed for a rho closer to 0 or 1


class PriorWeights(NamedTuple):
    """A Beta(a, b) density over rates; `scale` is the logarithm of its normalising constant."""

    a: Decimal
    b: Decimal
    scale: Decimal


@dataclass(frozen=True)
class ConfidenceSequence:
    """Intervals for the rate at which pairs differ, tuned to tell it from `rho` early.

    Each end errs with probability at most (1 - confidence) / 2 over all looks together.
    """

    rho: float
    confidence: float

    def interval(self, mismatches: int, pairs: int) -> tuple[float, float]:
        """Return both ends of the interval after so many pairs, rounded outwards."""
        return self.lower(mismatches, pairs), self.upper(mismatches, pairs)

    def upper(self, mismatches: int, pairs: int) -> float:
        """Return the upper end: with probability (1 + confidence) / 2 it is never below the true rate, at any look."""
        if mismatches == pairs:
            return 1.0
        constant = self._gained(self._below, mismatches, pairs)
        place = first_true(
            lambda bits: self._excludes(constant, mismatches, pairs, _float_of(bits)),
            _bits_of(mismatches / pairs),
            _bits_of(1.0),
        )
        return _float_of(place)

    def lower(self, mismatches: int, pairs: int) -> float:
        """Return the lower end: with probability (1 + confidence) / 2 it is never above the true rate, at any look."""
        if mismatches == 0:
            return 0.0
        constant = self._gained(self._above, mismatches, pairs)
        place = first_true(
            lambda bits: not self._excludes(constant, mismatches, pairs, _float_of(bits)),
            _bits_of(0.0),
            _bits_of(mismatches / pairs),
        )
        return _float_of(place - 1)

    def settles(self, mismatches: int, pairs: int) -> bool:
        """Return whether the interval excludes `rho` (`upper` <= rho or `lower` > rho), by one evaluation."""
        if _best_ratio(mismatches, pairs, self.rho) < float(self._needed) - 1e-3:
            return False  # an average over q is at most the largest of what is averaged
        with precise():
            expected = pairs * Decimal(self.rho)
            weights = self._below if mismatches < expected else self._above
        gained = self._gained(weights, mismatches, pairs)
        return mismatches != expected and self._excludes(gained, mismatches, pairs, self.rho)

    @cached_property
    def _below(self) -> PriorWeights:
        return self._weights(*_BELOW)

    @cached_property
    def _above(self) -> PriorWeights:
        return self._weights(*_ABOVE)

    def _weights(self, strength: int, factor: Decimal) -> PriorWeights:
        with precise():
            rho = min(max(written(self.rho), _EXTREME), 1 - _EXTREME)
            a, b = Decimal(strength), strength * (1 - rho) / (rho * factor)
            return PriorWeights(a, b, log_beta(a, b))

    @cached_property
    def _needed(self) -> Decimal:
        with precise():
            return (2 / (1 - written(self.confidence))).ln()

    def _gained(self, weights: PriorWeights, mismatches: int, pairs: int) -> Decimal:
        """Return the part of the martingale's logarithm that does not depend on the rate that is tested."""
        with precise():
            return log_beta(weights.a + mismatches, weights.b + pairs - mismatches) - weights.scale

    def _excludes(self, gained: Decimal, mismatches: int, pairs: int, rate: float) -> bool:
        """Return whether the interval excludes `rate`; `gained` is what `_gained` returned for these counts."""
        if rate in (0.0, 1.0):
            return mismatches != pairs * int(rate)
        with precise():
            exact = Decimal(rate)
            likelihood = mismatches * exact.ln() + (pairs - mismatches) * (1 - exact).ln()
            return gained - likelihood >= self._needed


def _best_ratio(mismatches: int, pairs: int, rate: float) -> float:
    """Return the log of the largest likelihood ratio of any rate q against `rate`, with an error far below 1e-3."""
    agreements = pairs - mismatches
    total = mismatches * math.log(mismatches / pairs / rate) if mismatches else 0.0
    return total + (agreements * (math.log(agreements / pairs) - math.log1p(-rate)) if agreements else 0.0)


def log_beta(a: Decimal, b: Decimal) -> Decimal:
    """Return the log of Euler's beta function, to at least 40 decimal places; call it inside `precise()`."""
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


def _log_gamma(value: Decimal) -> Decimal:
    """Return the log of the gamma function: the argument is raised until Stirling's series is accurate."""
    product = Decimal(1)
    while value < _STIRLING_FROM:
        product *= value
        value += 1
    total = (value - Decimal("0.5")) * value.ln() - value + (2 * PI).ln() / 2
    power, square = value, value * value
    for number, text in enumerate(_BERNOULLI, start=1):
        above, below = text.split("/")
        total += Decimal(above) / (int(below) * 2 * number * (2 * number - 1) * power)
        power *= square
    return total - product.ln()


def _bits_of(value: float) -> int:
    """Return the rank of a float >= 0 among all of them: floats are ordered as their bits, read as integers, are."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float_of(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])
