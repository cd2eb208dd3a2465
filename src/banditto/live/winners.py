"""Experiments that end with a winner: who it is, and whether its lead or a shared coin named it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.engine.observations import DecidedBy
from banditto.live.registration import Registration

Batch = tuple[Sequence[int], Sequence[float]]  # counts and totals of a decided batch, in the policy's units


@runtime_checkable
class Naming(Protocol):
    """A policy that says how its winner was found."""

    def decided_by(self, totals: FloatArray, pulls: int, coins: Coins) -> DecidedBy:
        """Return "lead" if the winner led by more than was needed, "coin" if the shared default was named."""

    def needed_lead(self, coins: Coins) -> float:
        """Return by how much a mean must lead for its arm to win by its lead."""


class Finding(NamedTuple):
    """How a winner was found: by its lead or a coin, the best mean's lead, and the lead that it needed."""

    decided_by: DecidedBy
    lead: float
    needed: float


def found_by(registration: Registration, batches: Iterable[Batch]) -> Finding | None:
    """Say how the winner after these batches was found; None for a policy that does not tell."""
    policy = registration.policy()
    if not isinstance(policy, Naming):
        return None
    sums = np.zeros((1, registration.protocol.arms))
    pulls = 0
    for counts, totals in batches:  # added up as the policy does, so that the comparison is the same to the bit
        sums = sums + np.array([totals], dtype=np.float64)
        pulls += counts[0]
    coins = Coins(registration.protocol.seed)
    second, first = np.sort(sums[0])[-2:]
    return Finding(policy.decided_by(sums, pulls, coins), float(first - second) / pulls, policy.needed_lead(coins))
