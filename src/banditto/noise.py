"""Noise: the rewards' own randomness, fresh in every execution.

Noise is addressed by (noise seed, side of the pair, block of pairs). It has another type than `Coins`, so that a
type checker refuses to mix what is shared with what is fresh. NumPy's samplers may change between versions; noise
is therefore reproducible for given library versions, while coins and decisions are reproducible everywhere.
"""

from __future__ import annotations

import numpy as np

from banditto.arrays import FloatArray, IntArray, WordArray
from banditto.coins import address_key, philox_words

# NumPy's binomial goes wrong between 10^13 and 10^15 without a word (small p); larger counts are split.
LARGEST_COUNT = 10**13

SIDES = ("first", "second")


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

    def normal(self, size: int) -> FloatArray:
        """`size` standard normal draws."""
        return self._generator.standard_normal(size)


def derived_noise_seed(seed: int) -> int:
    """The noise seed used when only `seed` is given."""
    return address_key("banditto/noise-seed/1", seed) >> 64


def round_keys(seed: int, side: int, start: int, count: int) -> WordArray:
    """One 64-bit key per pair for rewards that are looked up round by round; shape (R,)."""
    return philox_words(address_key("banditto/round-noise/1", seed, SIDES[side]), start, count)
