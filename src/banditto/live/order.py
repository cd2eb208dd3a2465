"""Which arm a slot of a batch has: permuted blocks from addressed coins, found without walking through the batch.

A plan says how often each arm is pulled in a batch. If the pulls of one arm came before those of another, whatever
drifts over time would look like a difference between arms. So a batch is cut into *portions* that have all arms in the
plan's proportions: with equal counts a portion has every arm once. There are two rules, and a registration says which
one it has. The arm of a slot is computed from the slot's number alone.

Portions, in both rules: n_a pulls of arm a, N in all, s arms with n_a > 0; there are B = max(min n_a, ceil(N / (32 s)))
portions over the arms with n_a > 0; before portion b come floor(b n_a / B) pulls of arm a. A portion's arms are in
ascending order at first.

Rule 1: each portion is a permuted block. Its arms are sorted by the words of the coins' stream ("order", batch, b),
ties by place. With two arms in equal numbers every second slot follows from the one before it.

Rule 2: permuted blocks of 2, 3 or 4 portions, so that nobody who sees the arms knows where a block ends. G consecutive
portions make a *stretch*, G = max(4, 4096 // (N // B)). Block i of stretch g has 2 + w_i mod 3 portions, where w_i is
word i of the stream ("order-lengths", batch, g); the last one ends with its stretch. The slots of a stretch, portion
after portion, are sorted by block and then by the first 52 bits of the words of ("order-places", batch, g), ties by
place.

Both are fixed for good (golden values in the tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from banditto.chance.coins import Coins, philox_words
from banditto.core.arrays import IntArray
from banditto.core.errors import InvalidArgument

# FROZEN(v1): two labs hand out the same arms in the same order, and logs are verified by it
ORDER_RULE_1 = "permuted-blocks/1"
ORDER_RULE_2 = "permuted-blocks/2"
ORDER_RULE = ORDER_RULE_2  # of new registrations
ORDER_RULES = (ORDER_RULE_1, ORDER_RULE_2)
_LONGEST_SHARE = 32  # slots of a portion for each arm, where counts are far apart
_STRETCH = 4096  # slots of a stretch, about: enough for NumPy to be worth calling, and a fraction of a millisecond
_KEPT_SLOTS = 2**19  # of stretches that lie between an ask and its tell
_LONGEST_BATCH = 2**52  # beyond every horizon, so that the sums below are exact in int64


class SlotOrder(Protocol):
    """Tells the arm of each slot of one batch; position 0 is the first slot."""

    length: int

    def arm(self, position: int) -> int:
        """Find the arm of a slot from its position alone; what comes back is the arm's number, from 0."""
        ...

    def arms(self, first: int, last: int) -> IntArray:
        """Find the arms of the slots `first` to `last - 1`."""
        ...

    def number(self, position: int) -> int:
        """Count the slots before this one that have its arm: the number, from 0, of this pull of its arm."""
        ...


def order_of(rule: str, seed: int, batch: int, pulls: Sequence[int]) -> SlotOrder:
    """Return the order of a batch's slots, by the rule that its registration names."""
    if rule == ORDER_RULE_1:
        return BatchOrder(seed, batch, pulls)
    if rule == ORDER_RULE_2:
        return MixedOrder(seed, batch, pulls)
    raise InvalidArgument("order", rule, " or ".join(ORDER_RULES))


class _Portions:
    """Cuts a batch into portions with nearly the same share of every arm; both rules build on them."""

    def __init__(self, seed: int, batch: int, pulls: Sequence[int]) -> None:
        self._counts = [(arm, int(count)) for arm, count in enumerate(pulls) if count > 0]
        self.length = sum(count for _, count in self._counts)
        if not self.length:
            raise InvalidArgument("pulls", list(pulls), "at least one pull")
        fewest = min(count for _, count in self._counts)
        longest = _LONGEST_SHARE * len(self._counts)
        self._blocks = max(fewest, -(-self.length // longest))
        self._coins, self._batch = Coins(seed), batch

    def _only_arm(self) -> int | None:
        """Return the arm of a batch that pulls one arm alone; None if it pulls several."""
        return self._counts[0][0] if len(self._counts) == 1 else None

    def _before(self, block: int) -> int:
        """Return the number of slots before a portion."""
        return sum(block * count // self._blocks for _, count in self._counts)

    def _of_arm(self, arm: int, block: int) -> int:
        """Return the number of an arm's slots before a portion."""
        return block * dict(self._counts)[arm] // self._blocks

    def _check_range(self, first: int, last: int) -> None:
        if not 0 <= first <= last <= self.length:
            raise InvalidArgument("positions", f"{first} to {last}", f"a part of 0 to {self.length}")

    def _check_position(self, position: int) -> None:
        if not 0 <= position < self.length:
            raise InvalidArgument("position", position, f"0 to {self.length - 1}")


class BatchOrder(_Portions):
    """Tells the arm of each slot of one batch by rule 1: every portion is a permuted block."""

    def __init__(self, seed: int, batch: int, pulls: Sequence[int]) -> None:
        super().__init__(seed, batch, pulls)
        # as many as lie between an ask and its tell
        self._block = lru_cache(maxsize=8192)(self._permuted)

    def arm(self, position: int) -> int:
        """Find the arm of a slot from its position alone; what comes back is the arm's number, from 0."""
        self._check_position(position)
        only = self._only_arm()
        if only is not None:
            return only
        block = position * self._blocks // self.length
        while self._before(block + 1) <= position:  # at most a few steps: the blocks before have about that many slots
            block += 1
        return self._block(block)[position - self._before(block)]

    def arms(self, first: int, last: int) -> IntArray:
        """Find the arms of the slots `first` to `last - 1`."""
        self._check_range(first, last)
        return np.array([self.arm(position) for position in range(first, last)], dtype=np.int64)

    def number(self, position: int) -> int:
        """Count the slots before this one that have its arm."""
        arm = self.arm(position)
        if self._only_arm() is not None:
            return position
        block = position * self._blocks // self.length
        while self._before(block + 1) <= position:
            block += 1
        before = self._block(block)[: position - self._before(block)]
        return self._of_arm(arm, block) + before.count(arm)

    # FROZEN(v1): rule 1, as experiments that were registered with it run for ever
    def _permuted(self, block: int) -> tuple[int, ...]:
        """Return the arms of a block in their order, which the block's own coins give."""
        arms = [
            arm
            for arm, count in self._counts
            for _ in range((block + 1) * count // self._blocks - block * count // self._blocks)
        ]
        words = philox_words(self._coins.key("order", self._batch, block), 0, len(arms))
        return tuple(arms[place] for place in np.argsort(words, kind="stable"))


class MixedOrder(_Portions):
    """Tells the arm of each slot of one batch by rule 2: permuted blocks of 2, 3 or 4 portions."""

    def __init__(self, seed: int, batch: int, pulls: Sequence[int]) -> None:
        super().__init__(seed, batch, pulls)
        if self.length > _LONGEST_BATCH:
            raise InvalidArgument("pulls", self.length, f"at most {_LONGEST_BATCH} in a batch")
        self._portions = max(4, _STRETCH // (self.length // self._blocks))  # of a stretch
        self._arms = np.array([arm for arm, _ in self._counts], dtype=np.int64)
        wholes, rests = zip(*(divmod(count, self._blocks) for _, count in self._counts), strict=True)
        self._wholes, self._rests = np.array(wholes, dtype=np.int64), np.array(rests, dtype=np.int64)
        slots = self._portions * -(-self.length // self._blocks)
        self._stretch = lru_cache(maxsize=max(4, _KEPT_SLOTS // slots))(self._permuted)
        self._last_found = (0, 0, 0)  # a stretch, its first slot and the first one after it

    def arm(self, position: int) -> int:
        """Find the arm of a slot from its position alone; what comes back is the arm's number, from 0."""
        self._check_position(position)
        only = self._only_arm()
        if only is not None:
            return only
        number, first, _ = self._found(position)
        return int(self._stretch(number)[position - first])

    def arms(self, first: int, last: int) -> IntArray:
        """Find the arms of the slots `first` to `last - 1`."""
        self._check_range(first, last)
        found = np.empty(last - first, dtype=np.int64)
        only = self._only_arm()
        if only is not None:
            found[:] = only
            return found
        done = first
        while done < last:
            number, begin, end = self._found(done)
            stop = min(end, last)
            found[done - first : stop - first] = self._stretch(number)[done - begin : stop - begin]
            done = stop
        return found

    def number(self, position: int) -> int:
        """Count the slots before this one that have its arm."""
        self._check_position(position)
        if self._only_arm() is not None:
            return position
        stretch, first, _ = self._found(position)
        arms = self._stretch(stretch)
        arm = int(arms[position - first])
        before = int(np.count_nonzero(arms[: position - first] == arm))
        return self._of_arm(arm, stretch * self._portions) + before

    def _found(self, position: int) -> tuple[int, int, int]:
        """Find the stretch of a slot; its number, first slot and the first slot after it come back."""
        known = self._last_found  # looked at once: threads may share this object
        if known[1] <= position < known[2]:  # neighbours are asked for one after another
            return known
        number = position * self._blocks // self.length // self._portions
        first, after = self._bounds(number)
        while after <= position:  # a step or none: the stretches before have about that many slots
            number += 1
            first, after = after, self._bounds(number)[1]
        known = self._last_found = number, first, after
        return known

    def _bounds(self, number: int) -> tuple[int, int]:
        """Find the first slot of a stretch and the first slot after it."""
        first = number * self._portions
        return self._before(first), self._before(min(first + self._portions, self._blocks))

    # FROZEN(v1): rule 2, as experiments that were registered with it run for ever
    def _permuted(self, number: int) -> IntArray:
        """Return the arms of a stretch in order: blocks of a few portions, each permuted by the stretch's coins."""
        first = number * self._portions
        portions = min(self._portions, self._blocks - first)
        counts = np.tile(self._wholes, (portions, 1))  # (portion, arm)
        if self._rests.any():
            # floor((first + j) n_a / B), less what was before the stretch; n_a = whole B + rest keeps it within int64
            begun = np.array([first * int(rest) % self._blocks for rest in self._rests], dtype=np.int64)
            steps = np.arange(portions + 1, dtype=np.int64)[:, np.newaxis]
            counts += np.diff((begun + steps * self._rests) // self._blocks, axis=0)
        lengths = 2 + philox_words(self._coins.key("order-lengths", self._batch, number), 0, -(-portions // 2)) % 3
        block_of_portion = np.repeat(np.arange(len(lengths)), lengths.astype(np.int64))[:portions]
        arms = np.repeat(np.tile(self._arms, portions), counts.ravel())
        blocks = np.repeat(block_of_portion, counts.sum(axis=1))
        words = philox_words(self._coins.key("order-places", self._batch, number), 0, len(arms))
        keys = blocks.astype(np.uint64) << np.uint64(52) | words >> np.uint64(12)  # there are 1024 blocks at the most
        permuted = arms[np.argsort(keys, kind="stable")]
        permuted.flags.writeable = False  # many readers share it
        return permuted
