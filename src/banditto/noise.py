"""Noise: the rewards' own randomness, fresh in every execution.

Noise is addressed by (noise seed, side of the pair, block of pairs). It has another type than `Coins`, so that a
type checker refuses to mix what is shared with what is fresh. NumPy's samplers may change between versions; noise
is therefore reproducible for given library versions, while coins and decisions are reproducible everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditto.arrays import FloatArray, IntArray, WordArray
from banditto.coins import address_key, philox_words

# NumPy's binomial goes wrong between 10^13 and 10^15 without a word (small p); larger counts are split.
LARGEST_COUNT = 10**13

SIDES = ("first", "second")
_PIECE = 1 << 18  # single draws that are in memory at once: two megabytes


class Sums:
    """Running sums with Kahan's compensation, so that long ones are as good as short ones."""

    def __init__(self, size: int) -> None:
        self.totals: FloatArray = np.zeros(size, dtype=np.float64)
        self._lost: FloatArray = np.zeros(size, dtype=np.float64)

    def add(self, values: FloatArray, rows: slice = slice(None)) -> None:
        """Add to the given rows."""
        before = self.totals[rows]
        wanted = values - self._lost[rows]
        after = before + wanted
        self._lost[rows] = (after - before) - wanted
        self.totals[rows] = after


class Noise:
    """Fresh random numbers for one side of one block of pairs."""

    __slots__ = ("_generator",)

    def __init__(self, seed: int, side: int, block: int) -> None:
        key = address_key("banditto/noise/1", seed, SIDES[side], block)
        self._generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(key)))

    def binomial(self, count: int, probability: float, size: int) -> IntArray:
        """`size` draws of Binomial(count, probability); counts above `LARGEST_COUNT` are drawn in pieces."""
        if count <= LARGEST_COUNT:
            return self._generator.binomial(count, probability, size)
        pieces, rest = divmod(count, LARGEST_COUNT)
        total = self._generator.binomial(rest, probability, size)
        for _ in range(pieces):
            total += self._generator.binomial(LARGEST_COUNT, probability, size)
        return total

    def multinomial(self, count: int, probabilities: Sequence[float], size: int) -> IntArray:
        """`size` draws of how often each of several values comes up in `count` trials; shape (R, values)."""
        counts = np.empty((size, len(probabilities)), dtype=np.int64)
        left = np.full(size, count, dtype=np.int64)
        # what is left from each value on, each a sum of its own: subtracting one by one would lose rare values
        tails = [math.fsum(probabilities[index:]) for index in range(len(probabilities) + 1)]
        for index, probability in enumerate(probabilities):
            share = 1.0 if tails[index + 1] <= 0.0 else probability / tails[index]
            counts[:, index] = self.binomials(left, share) if probability > 0.0 else 0
            left -= counts[:, index]
        return counts

    def binomials(self, counts: IntArray, probability: float | FloatArray) -> IntArray:
        """One draw of Binomial(count, probability) for each count; probabilities of the same shape, or one for all."""
        total = np.zeros_like(counts)
        left = counts.copy()
        while int(left.max(initial=0)) > LARGEST_COUNT:
            piece = np.minimum(left, LARGEST_COUNT)
            total += self._generator.binomial(piece, probability)
            left -= piece
        return total + self._generator.binomial(left, probability)

    def beta_sums(self, a: float, b: float, count: int, size: int) -> FloatArray:
        """`size` sums of `count` draws of Beta(a, b), made in pieces so that memory does not grow with the count."""
        sums = Sums(size)
        rows = max(1, _PIECE // count)
        for start in range(0, size, rows):
            end = min(size, start + rows)
            for first in range(0, count, _PIECE):
                piece = min(_PIECE, count - first)
                sums.add(self._generator.beta(a, b, (end - start, piece)).sum(axis=1), slice(start, end))
        return sums.totals

    def normal(self, size: int) -> FloatArray:
        """`size` standard normal draws."""
        return self._generator.standard_normal(size)


def derived_noise_seed(seed: int) -> int:
    """The noise seed used when only `seed` is given."""
    return address_key("banditto/noise-seed/1", seed) >> 64


def round_keys(seed: int, side: int, start: int, count: int) -> WordArray:
    """One 64-bit key per pair for rewards that are looked up round by round; shape (R,)."""
    return philox_words(address_key("banditto/round-noise/1", seed, SIDES[side]), start, count)
