"""Which arm a slot of a batch has: permuted blocks from addressed coins, found without walking through the batch.

A plan says how often each arm is pulled in a batch. If the pulls of one arm came before those of another, whatever
drifts over time would look like a difference between arms. So a batch is cut into short blocks that have all arms in
the plan's proportions, and each block is permuted by coins of its own address. With equal counts a block has every arm
once. The block of a slot and its permutation are computed from the slot's number alone.

Scheme, fixed for good (golden values in the tests): n_a pulls of arm a, N in all, s arms with n_a > 0; there are
B = max(min n_a, ceil(N / (32 s))) blocks, over the arms with n_a > 0; before block b come floor(b n_a / B) pulls of arm
a. A block's arms in ascending order are sorted by the words of the coins' stream ("order", batch, b), ties by place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from banditto.chance.coins import Coins, philox_words
from banditto.core.errors import InvalidArgument

# FROZEN(v1): two labs hand out the same arms in the same order, and logs are verified by it
ORDER_RULE = "permuted-blocks/1"
_LONGEST_SHARE = 32  # slots of a block for each arm, where counts are far apart


class BatchOrder:
    """Tells the arm of each slot of one batch; position 0 is the first slot."""

    def __init__(self, seed: int, batch: int, pulls: Sequence[int]) -> None:
        self._counts = [(arm, int(count)) for arm, count in enumerate(pulls) if count > 0]
        self.length = sum(count for _, count in self._counts)
        if not self.length:
            raise InvalidArgument("pulls", list(pulls), "at least one pull")
        fewest = min(count for _, count in self._counts)
        longest = _LONGEST_SHARE * len(self._counts)
        self._blocks = max(fewest, -(-self.length // longest))
        self._coins, self._batch = Coins(seed), batch
        # as many as lie between an ask and its tell
        self._block = lru_cache(maxsize=8192)(self._permuted)

    def arm(self, position: int) -> int:
        """Find the arm of a slot from its position alone; what comes back is the arm's number, from 0."""
        if not 0 <= position < self.length:
            raise InvalidArgument("position", position, f"0 to {self.length - 1}")
        if len(self._counts) == 1:  # whatever the permutations are
            return self._counts[0][0]
        block = position * self._blocks // self.length
        while self._before(block + 1) <= position:  # at most a few steps: the blocks before have about that many slots
            block += 1
        return self._block(block)[position - self._before(block)]

    def _before(self, block: int) -> int:
        """Count the slots before a block."""
        return sum(block * count // self._blocks for _, count in self._counts)

    def _permuted(self, block: int) -> tuple[int, ...]:
        """Permute the arms of a block by its own coins."""
        arms = [
            arm
            for arm, count in self._counts
            for _ in range((block + 1) * count // self._blocks - block * count // self._blocks)
        ]
        words = philox_words(self._coins.key("order", self._batch, block), 0, len(arms))
        return tuple(arms[place] for place in np.argsort(words, kind="stable"))
