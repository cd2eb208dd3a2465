"""Noise: the rewards' own randomness, fresh in every execution.

Noise is addressed by (noise seed, side of the pair, block of pairs). It has another type than `Coins`, so that a
type checker refuses to mix what is shared with what is fresh. Samplers are NumPy's, which may change between versions,
and for binomial totals our own, which rests on the C library's logarithm; noise is therefore reproducible for given
library versions, while coins and decisions are reproducible everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from banditto.chance.coins import address_key, philox_words
from banditto.core.arrays import FloatArray, IntArray, WordArray
from banditto.core.errors import InvalidArgument

# FROZEN(v2): pairs that were kept on disk are counted together with new ones, which must come from the same draws
SCHEME = 2  # of noise: another one draws other rewards at the same address
SIDES = ("first", "second")
# Attempts at a draw read their words this many sizes of the call apart at most; as many are never rejected in a row.
_ATTEMPTS = 64
_PIECE = 1 << 18  # single draws that are in memory at once: two megabytes


class Sums:
    """Running sums with Kahan's compensation, so that long sums are as accurate as short ones."""

    def __init__(self, size: int) -> None:
        self.totals: FloatArray = np.zeros(size, dtype=np.float64)
        self._lost: FloatArray = np.zeros(size, dtype=np.float64)

    def add(self, values: FloatArray, rows: slice = slice(None)) -> None:
        """Add the values to the sums of the given rows."""
        before = self.totals[rows]
        wanted = values - self._lost[rows]
        after = before + wanted
        self._lost[rows] = (after - before) - wanted
        self.totals[rows] = after


class Noise:
    """Fresh random numbers for one side of one block of pairs."""

    __slots__ = ("_key", "_keys", "_made", "_numbers", "_place", "_whole")

    def __init__(self, seed: int, side: int, block: int) -> None:
        key = address_key("banditto/noise/1", seed, SIDES[side], block)
        self._key = key
        self._made: np.random.Generator | None = None
        self._keys = np.uint64(key & 0xFFFF_FFFF_FFFF_FFFF), np.uint64(key >> 64)
        self._place = 0  # words of binomial draws that have been passed
        self._numbers: IntArray | None = None  # of the replicates that are left; None while all are
        self._whole = 0  # how many there were, once some have gone

    @property
    def _generator(self) -> np.random.Generator:
        """NumPy's generator for laws without a sampler of our own; made on first use, because that takes a while."""
        if self._made is None:
            self._made = np.random.Generator(np.random.SFC64(np.random.SeedSequence(self._key)))
        return self._made

    def only(self, rows: IntArray, of: int) -> None:
        """From now on draw for these rows alone, of `of` rows; each draws what it would have drawn among all of them.

        Rows that have gone pull nothing: generators that draw in sequence skip them in any case.
        """
        if self._numbers is None:
            self._numbers, self._whole = rows, of
        else:
            self._numbers = self._numbers[rows]

    def _places(self, size: int) -> np.uint64:
        """Return the place where the random words of the next `size` draws begin, and pass over them."""
        place = self._place
        self._place += 2 * size * _ATTEMPTS
        return np.uint64(place)

    def binomial_totals(self, pulls: IntArray, means: Sequence[float]) -> FloatArray:
        """Return a draw of Binomial(pulls, mean) for each (replicate, arm)."""
        from banditto.chance import binomials  # compiled code is loaded only where it is used

        check_arms(pulls, len(means))
        totals = np.empty(pulls.shape[::-1], dtype=np.float64)
        whole = self._whole or pulls.shape[0]
        numbers = _ascending(whole) if self._numbers is None else self._numbers
        binomials.totals(
            *(pulls, np.array(means), self._keys, self._places(whole * len(means)), numbers, whole, totals)
        )
        return totals.T

    def normal_totals(self, pulls: IntArray, means: Sequence[float], sigma: float) -> FloatArray:
        """Return a draw of Normal(pulls mean, pulls sigma^2) for each (replicate, arm)."""

        def total(arm: int, count: int, size: int) -> FloatArray:
            return count * means[arm] + sigma * math.sqrt(count) * self.normal(size)

        return totals_by_arm(pulls, len(means), total)

    def discrete_totals(
        self, pulls: IntArray, values: Sequence[Sequence[float]], probabilities: Sequence[Sequence[float]]
    ) -> FloatArray:
        """Return totals (replicate, arm) of discrete rewards: values times multinomial counts, in fixed order."""

        def total(arm: int, count: int, size: int) -> FloatArray:
            counts = self.multinomial_of(np.full(size, count, dtype=np.int64), probabilities[arm])
            sums = Sums(size)
            for value, often in zip(values[arm], counts, strict=True):
                sums.add(value * often.astype(np.float64))
            return sums.totals

        return totals_by_arm(pulls, len(values), total)

    def resampled_totals(
        self, pulls: IntArray, values: Sequence[FloatArray], shares: Sequence[FloatArray], ends: Sequence[IntArray]
    ) -> FloatArray:
        """Return totals (replicate, arm) of rows drawn with replacement from each arm's rows, all equally likely.

        For each arm, `values` are its different rewards; `shares` say, for each of them, its share of the rows from
        there on; `ends` say how many rows there are up to and including it. Few pulls draw their rows one by one; many
        draw how often each value comes up, which is the same law.
        """

        def total(arm: int, count: int, size: int) -> FloatArray:
            if count <= 2 * values[arm].size:  # a row takes less than half the time of a binomial draw
                return self._row_sums(values[arm], ends[arm], count, size)
            left = np.full(size, count, dtype=np.int64)
            sums = Sums(size)
            for value, share in zip(values[arm].tolist(), shares[arm].tolist(), strict=True):
                found = self.binomials(left, share)
                left -= found
                sums.add(value * found.astype(np.float64))
            return sums.totals

        return totals_by_arm(pulls, len(values), total)

    def _row_sums(self, values: FloatArray, ends: IntArray, count: int, size: int) -> FloatArray:
        """Return `size` sums of `count` rows each, drawn in pieces so that memory stays bounded."""
        sums: FloatArray = np.empty(size, dtype=np.float64)
        most = max(1, _PIECE // count)
        for start in range(0, size, most):
            stop = min(size, start + most)
            rows = self._generator.integers(0, int(ends[-1]), (stop - start, count))
            sums[start:stop] = values[np.searchsorted(ends, rows, side="right")].sum(axis=1)
        return sums

    def multinomial_of(self, counts: IntArray, probabilities: Sequence[float]) -> Iterator[IntArray]:
        """Yield for each value how often it comes up, in as many trials (R,) as `counts` says."""
        left = counts.copy()
        # what is left from each value on, each a sum of its own: subtracting one by one would lose rare values
        tails = [math.fsum(probabilities[index:]) for index in range(len(probabilities) + 1)]
        for index, probability in enumerate(probabilities):
            share = 1.0 if tails[index + 1] <= 0.0 else probability / tails[index]
            found = self.binomials(left, share) if probability > 0.0 else left * 0
            left = left - found
            yield found

    def binomials(self, counts: IntArray, probability: float | FloatArray) -> IntArray:
        """Return a draw of Binomial(count, probability) for each count; one probability for all, or one for each."""
        from banditto.chance import binomials  # compiled code is loaded only where it is used

        draws = np.empty(counts.size, dtype=np.int64)
        each = np.ascontiguousarray(np.broadcast_to(probability, counts.shape), dtype=np.float64)
        place = self._places(counts.size)
        binomials.each(np.ascontiguousarray(counts).ravel(), each.ravel(), self._keys, place, draws)
        return draws.reshape(counts.shape)

    def beta_sums(self, a: float, b: float, count: int, size: int) -> FloatArray:
        """Return `size` sums of `count` draws of Beta(a, b), made in pieces so that memory stays bounded."""
        sums = Sums(size)
        rows = max(1, _PIECE // count)
        for start in range(0, size, rows):
            end = min(size, start + rows)
            for first in range(0, count, _PIECE):
                piece = min(_PIECE, count - first)
                sums.add(self._generator.beta(a, b, (end - start, piece)).sum(axis=1), slice(start, end))
        return sums.totals

    def normal(self, size: int) -> FloatArray:
        """Return `size` standard normal draws."""
        return self._generator.standard_normal(size)


def totals_by_arm(pulls: IntArray, arms: int, total: Callable[[int, int, int], FloatArray | IntArray]) -> FloatArray:
    """Return totals (R, K), where `total(arm, count, size)` draws `size` totals of `count` pulls of one arm.

    Samplers are fastest with a scalar count, and almost always all replicates that pull an arm in a batch pull
    it equally often; so group by count. Memory is arm-major.
    """
    check_arms(pulls, arms)
    rows = pulls.shape[0]
    totals = np.empty(pulls.shape[::-1], dtype=np.float64)
    most, added = pulls.max(axis=0).tolist(), pulls.sum(axis=0).tolist()
    for arm, count in enumerate(most):
        if added[arm] == rows * count:  # every replicate pulls it equally often, or none does
            totals[arm] = total(arm, count, rows) if count else 0.0
            continue
        totals[arm] = 0.0
        pulled = pulls[:, arm] > 0
        size = int(np.count_nonzero(pulled))
        if added[arm] == size * count:  # those that pull it do so equally often
            totals[arm, pulled] = total(arm, count, size)
            continue
        for each in np.unique(pulls[pulled, arm]).tolist():
            chosen = pulls[:, arm] == each
            totals[arm, chosen] = total(arm, each, int(np.count_nonzero(chosen)))
    return totals.T


@lru_cache(maxsize=8)
def _ascending(size: int) -> IntArray:
    return np.arange(size, dtype=np.int64)


def check_arms(pulls: IntArray, arms: int) -> None:
    """Refuse a plan whose number of columns is not the environment's number of arms."""
    if pulls.shape[1] != arms:
        raise InvalidArgument("environment", f"{arms} arms", f"{pulls.shape[1]} arms, as the policy has")


def derived_noise_seed(seed: int) -> int:
    """Return the noise seed that is used when the caller gives only `seed`."""
    return address_key("banditto/noise-seed/1", seed) >> 64


def round_keys(seed: int, side: int, start: int, count: int) -> WordArray:
    """Return a 64-bit key for each pair, under which its rewards are looked up round by round; shape (R,)."""
    return philox_words(address_key("banditto/round-noise/1", seed, SIDES[side]), start, count)
