"""Trajectory: which arm was pulled when, as streaks, with a digest that two labs can compare.

Inside a batch the order of pulls is a fixed rule, so equal plans mean equal arm sequences: a sequence of 10^12
pulls is a short list of (batch, arm, count). The digest covers the streaks and the name of the order rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import IntArray

# FROZEN(v1): digests of sequences are published, and two labs compare them
ASCENDING = "ascending"  # within a batch: all pulls of the lowest arm, then of the next
SEQUENCE = "sequence"  # no batches: streaks of the sequence itself, as played
PLACED = "placed"  # within a batch as the plan lists its actions, which are hashed in place of their numbers


class Streak(NamedTuple):
    """So many pulls of one arm in one batch."""

    batch: int
    arm: int
    pulls: int


@dataclass(frozen=True)
class Trajectory:
    """One execution of a batched policy; of an infinite set `actions` are those that the streaks number."""

    streaks: tuple[Streak, ...]
    actions: tuple[tuple[float, ...], ...] = ()

    @property
    def length(self) -> int:
        """The number of pulls."""
        return sum(streak.pulls for streak in self.streaks)

    @property
    def digest(self) -> str:
        """sha256 over the order rule and the streaks."""
        hasher = start_digest(PLACED if self.actions else ASCENDING)
        for streak in self.streaks:
            if self.actions:
                place = ",".join(value.hex() for value in self.actions[streak.arm])
                hasher.update(f"{streak.batch}|{place}|{streak.pulls};".encode())
            else:
                hasher.update(varints(streak))
        return hasher.hexdigest()

    def arms_at(self, rounds: IntArray) -> IntArray:
        """The arm pulled in each of the given rounds (counted from 0)."""
        ends = np.cumsum([streak.pulls for streak in self.streaks])
        arms = np.array([streak.arm for streak in self.streaks], dtype=np.int64)
        return arms[np.searchsorted(ends, rounds, side="right")]


def start_digest(order: str) -> hashlib._Hash:
    """A hasher that has taken in the format and the order rule."""
    return hashlib.sha256(f"banditto/trajectory/1|{order}|".encode())


def varints(numbers: Iterable[int]) -> bytes:
    """Unsigned LEB128: seven bits a byte, the top bit says that more follow."""
    out = bytearray()
    for number in numbers:
        while number > 0x7F:
            out.append(0x80 | (number & 0x7F))
            number >>= 7
        out.append(number)
    return bytes(out)
