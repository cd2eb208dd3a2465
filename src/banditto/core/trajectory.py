"""Trajectory: which arm was pulled when, as streaks, with a digest that two labs can compare.

Inside a batch the order of pulls is a fixed rule, so equal plans mean equal arm sequences: a sequence of 10^12
pulls is a short list of (batch, arm, count). The digest covers the streaks and the name of the order rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import IntArray

# FROZEN(v1): digests of sequences are published, and two labs compare them
ASCENDING = "ascending"  # within a batch: all pulls of the lowest arm, then of the next
SEQUENCE = "sequence"  # no batches: streaks of the sequence itself, as played
PLACED = "placed"  # within a batch as the plan lists its actions, which are hashed in place of their numbers


class Streak(NamedTuple):
    """Consecutive pulls of one arm in one batch."""

    batch: int
    arm: int
    pulls: int


@dataclass(frozen=True)
class Trajectory:
    """The pulls of one execution; for an infinite set, a streak's arm is a place in `actions`."""

    streaks: tuple[Streak, ...]
    actions: tuple[tuple[float, ...], ...] = ()

    @property
    def length(self) -> int:
        """The number of pulls of the whole execution."""
        return sum(streak.pulls for streak in self.streaks)

    @property
    def digest(self) -> str:
        """The sha256 of the sequence of pulls, in hexadecimal: equal sequences have equal digests."""
        hasher = start_digest(PLACED if self.actions else ASCENDING)
        for streak in self.streaks:
            if self.actions:
                place = ",".join(value.hex() for value in self.actions[streak.arm])
                hasher.update(f"{streak.batch}|{place}|{streak.pulls};".encode())
            else:
                hasher.update(varints(streak))
        return hasher.hexdigest()

    def arms_at(self, rounds: IntArray) -> IntArray:
        """Return the arm that was pulled in each of the given rounds (counted from 0)."""
        ends = np.cumsum([streak.pulls for streak in self.streaks])
        arms = np.array([streak.arm for streak in self.streaks], dtype=np.int64)
        return arms[np.searchsorted(ends, rounds, side="right")]


def start_digest(order: str) -> hashlib._Hash:
    """Return a hasher that already holds the format's name and `order`, the rule that orders the pulls of a batch."""
    return hashlib.sha256(f"banditto/trajectory/1|{order}|".encode())


def varints(numbers: Iterable[int]) -> bytes:
    """Return integers as bytes in unsigned LEB128: seven bits a byte, the top bit set if more bytes follow."""
    out = bytearray()
    for number in numbers:
        while number > 0x7F:
            out.append(0x80 | (number & 0x7F))
            number >>= 7
        out.append(number)
    return bytes(out)


def merged_runs(runs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return runs (arm, length) with neighbours of the same arm joined into one."""
    return tuple((arm, sum(length for _, length in same)) for arm, same in groupby(runs, key=lambda run: run[0]))
