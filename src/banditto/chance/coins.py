"""Coins: the randomness that the two executions of a pair share, looked up by address.

A coin is found by (seed, purpose, batch, arm) and the replicate's number, and is the same whatever was asked
before: if one execution tosses once more than the other, nothing else moves. Never draw coins in sequence.

Scheme, fixed for good (golden values in the tests): the address gives a Philox4x64-10 key, the first 16 bytes
(little-endian) of sha256("banditto/coins/1|seed|purpose|batch|arm"). Replicate r is word r of that stream; Philox
makes four words per counter step. A uniform is the top 53 bits of the word times 2^-53, in [0, 1).
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import index

import numpy as np

from banditto.core.arrays import FloatArray, IntArray, WordArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer

LARGEST_SEED = 2**128 - 1
WORDS_PER_STEP = 4
CHUNK = 8192  # blocks of pairs ask for neighbouring ranges of the same stream: make several at once


@dataclass(frozen=True, slots=True)
class Coins:
    """The coins of replicates `start` to `start + count - 1` of one seed.

    They are the internal randomness that the two executions of Definition 1 share; looked up by address and never drawn
    in sequence, so that tossing one coin more does not change the others.

    Args:
        seed: What labs share to toss the same coins, 0 to 2^128 - 1.
        start: The number of the first replicate. Default 0.
        count: How many replicates. Default 1.
        rows: Which of these replicates are wanted, counted from `start`. Default None: all of them.

    Examples:
        >>> first, second = Coins(7), Coins(7)
        >>> bool(first.uniform("cut", 1) == second.uniform("cut", 1))
        True
        >>> bool(first.uniform("cut", 1) == first.uniform("cut", 2))
        False
    """

    seed: int
    start: int = 0
    count: int = 1
    rows: IntArray | None = field(default=None, compare=False)  # those of the `count` replicates that are wanted

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", integer(self.seed, "seed", 0, LARGEST_SEED))
        object.__setattr__(self, "start", integer(self.start, "start", 0, 10**15))
        object.__setattr__(self, "count", integer(self.count, "count", 1, 10**9))

    def words(self, purpose: str, batch: int, arm: int = 0) -> WordArray:
        """Return 64 random bits for each replicate, shape (R,)."""
        words = philox_words(self.key(purpose, batch, arm), self.start, self.count)
        return words if self.rows is None else words[self.rows]

    def uniform(self, purpose: str, batch: int, arm: int = 0) -> FloatArray:
        """Return a uniform number in [0, 1) for each replicate, shape (R, 1)."""
        key = self.key(purpose, batch, arm)
        chunk, offset = divmod(self.start, CHUNK)
        if offset + self.count > CHUNK or self.count < CHUNK // 64:
            values = _uniforms(key, self.start, self.count)
        else:
            values = _chunk_of_uniforms(key, chunk)[offset : offset + self.count]
        return values if self.rows is None else values[self.rows]

    def key(self, purpose: str, batch: int, arm: int) -> int:
        """Return the key of an address's stream."""
        return _coin_key(self.seed, purpose, index(batch), index(arm))

    def only(self, rows: IntArray) -> Coins:
        """Return the coins of these rows alone; each replicate keeps its own coins, whichever others are left."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])


# FROZEN(v1): protocols hold seeds and no coins, so that every coin ever tossed is this function of its address
def address_key(*parts: object) -> int:
    """Return a 128-bit key for an address, the parts of which are words and integers, joined by `|`."""
    address = "|".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(address.encode()).digest()[:16], "little")


def philox_words(key: int, start: int, count: int) -> WordArray:
    """Return words `start` to `start + count - 1` of the Philox4x64-10 stream of a 128-bit key."""
    step, lane = divmod(start, WORDS_PER_STEP)
    _OWN.philox.state = {
        "bit_generator": "Philox",
        "state": {
            "counter": np.array([step, 0, 0, 0], dtype=np.uint64),
            "key": np.array([key & 0xFFFF_FFFF_FFFF_FFFF, key >> 64], dtype=np.uint64),
        },
        "buffer": _NO_WORDS,
        "buffer_pos": WORDS_PER_STEP,  # all of it is used up
        "has_uint32": 0,
        "uinteger": 0,
    }
    return _OWN.philox.random_raw(lane + count)[lane:]


class _Own(threading.local):
    """A generator for each thread, set anew for each key: making a new one would take five times as long."""

    def __init__(self) -> None:
        self.philox = np.random.Philox(key=0)


_OWN = _Own()
_NO_WORDS = np.zeros(WORDS_PER_STEP, dtype=np.uint64)


@lru_cache(maxsize=1024)
def _coin_key(seed: int, purpose: str, batch: int, arm: int) -> int:
    if "|" in purpose:
        raise InvalidArgument("purpose", purpose, "text without |, which separates the parts of an address")
    return address_key("banditto/coins/1", seed, purpose, batch, arm)


@lru_cache(maxsize=256)
def _chunk_of_uniforms(key: int, chunk: int) -> FloatArray:
    values = _uniforms(key, chunk * CHUNK, CHUNK)
    values.flags.writeable = False  # many readers share it
    return values


def _uniforms(key: int, start: int, count: int) -> FloatArray:
    words = philox_words(key, start, count)
    values: FloatArray = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return values[:, np.newaxis]
