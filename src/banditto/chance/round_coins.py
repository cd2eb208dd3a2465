"""Coins for policies in plain Python: a generator that both executions of a pair find in the same state each round.

A compiled policy looks its coins up by address. A policy in plain Python draws from a NumPy generator, as its author is
used to. The two agree here: at the beginning of each round the generator is put where (seed, pair, round) says, so
that an execution that draws once more than the other moves nothing later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from banditto.chance.coins import WORDS_PER_STEP, address_key


class RoundCoins:
    """The coins of one pair; `generator` has those of the round that `move_to` named last.

    Each pair has a key of Philox4x64-10, and rounds are 2^128 steps apart. The words are the same everywhere; the
    numbers that NumPy makes of them may change with its version.
    """

    # FROZEN(v1): certificates of policies in plain Python are made again from these words
    def __init__(self, seed: int, pair: int) -> None:
        key = address_key("banditto/round-coins/1", seed, pair)
        self._philox = np.random.Philox(key=key)
        self._counter = np.zeros(4, dtype=np.uint64)
        self._beginning: Any = {
            "bit_generator": "Philox",
            "state": {
                "counter": self._counter,
                "key": np.array([key & 0xFFFF_FFFF_FFFF_FFFF, key >> 64], dtype=np.uint64),
            },
            "buffer": np.zeros(WORDS_PER_STEP, dtype=np.uint64),
            "buffer_pos": WORDS_PER_STEP,  # all of it is used up
            "has_uint32": 0,
            "uinteger": 0,
        }
        self.generator = np.random.Generator(self._philox)

    def move_to(self, time: int) -> None:
        """Put the generator at the beginning of a round, whatever was drawn before."""
        self._counter[2] = time
        self._philox.state = self._beginning
