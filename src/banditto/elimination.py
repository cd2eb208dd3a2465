"""What all policies share that drop arms batch by batch and play one arm at the end.

Each batch pulls every active arm equally often, as long as several are left and the budget allows it. Then one arm
gets all that remains. Axes are (replicate, arm); arrays are arm-major in memory, because the engine draws and
compares one arm of all replicates at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from banditto.arrays import BoolArray, FloatArray, IntArray, namespace
from banditto.exact import integer


class Race(NamedTuple):
    """Arrays over replicates; `batch` counts from 1."""

    batch: int
    active: BoolArray  # (R, K)
    totals: FloatArray  # (R, K), cumulative; -inf for a dropped arm
    # the rest follows from these and is kept because making it again costs a pass over (R, K) in every batch
    ones: IntArray  # (R, K): 1 for an active arm, else 0
    several: IntArray  # (R, 1): how many arms are active
    remaining: IntArray  # (R, 1): pulls left
    testing: BoolArray  # (R, 1): the batch to come ends in a test
    all_testing: bool


def start(arms: int, horizon: int, replicates: int, pulls: int) -> Race:
    """All arms active, nothing spent; `pulls` of each arm are to come first."""
    replicates = integer(replicates, "replicates", 1, 10**9)
    active = np.ones((arms, replicates), dtype=np.bool_).T
    totals = np.zeros((arms, replicates), dtype=np.float64).T
    ones = np.ones((arms, replicates), dtype=np.int64).T
    several = np.full((replicates, 1), arms, dtype=np.int64)
    remaining = np.full((replicates, 1), horizon, dtype=np.int64)
    return _opened(Race(1, active, totals, ones, several, remaining, several > 1, True), pulls)


def plan(race: Race, pulls: int, favourites: BoolArray | None = None) -> IntArray | None:
    """`pulls` of every active arm, or where no test fits all that remains for the first of the favourites.

    Favourites (R, K) are the active arms unless they are named.
    """
    xp = namespace(race.active)
    if race.all_testing:
        equal: IntArray = race.ones * pulls
        return equal
    if not bool(xp.any(race.remaining > 0)):
        return None
    eligible = race.active if favourites is None else favourites
    chosen = xp.zeros_like(race.active)  # arm-major like its model, arm by arm below: three times as fast
    seeking = ~race.testing  # (R, 1): those that commit and have not met their arm
    for arm in range(race.active.shape[1]):
        column = slice(arm, arm + 1)
        here = seeking & eligible[:, column]
        chosen[:, column] = here | (race.active[:, column] & race.testing)
        seeking &= ~here
    each = xp.where(race.testing, xp.asarray(pulls), race.remaining)  # (R, 1)
    commit: IntArray = xp.astype(chosen, xp.int64) * each
    return commit


def after(race: Race, totals: FloatArray, stays: BoolArray, pulls: int, following: int) -> Race:
    """The race after a batch of `pulls` with these cumulative totals; the next one would take `following` pulls."""
    xp = namespace(totals)
    remaining = race.remaining - pulls * race.several
    if not race.all_testing:
        stays = stays | ~race.testing
        remaining = remaining * xp.astype(race.testing, xp.int64)
    active, ones, several = race.active, race.ones, race.several
    if not bool(xp.all(stays)):
        active = active & stays
        ones = xp.astype(active, xp.int64)
        several = xp.sum(ones, axis=-1, keepdims=True)
        totals = xp.where(active, totals, xp.asarray(-xp.inf))
    moved = Race(race.batch + 1, active, totals, ones, several, remaining, race.testing, race.all_testing)
    return _opened(moved, following)


def _opened(race: Race, pulls: int) -> Race:
    """The race with its next step settled: a test, if several arms are left and the budget allows it."""
    xp = namespace(race.active)
    testing = (pulls * race.several <= race.remaining) & (race.several > 1)
    if pulls == 0:
        testing = xp.zeros_like(testing)
    return race._replace(testing=testing, all_testing=bool(xp.all(testing)))
