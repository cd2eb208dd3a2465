"""What all policies share that drop arms batch by batch and play one arm at the end.

Each batch pulls every active arm equally often, as long as several are left and the budget allows it. Then one arm
gets all that remains. Axes are (replicate, arm); arrays are arm-major in memory, because the engine draws and
compares one arm of all replicates at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from banditto.core.arrays import BoolArray, FloatArray, IntArray, counted, namespace, times
from banditto.core.exact import integer


class Race(NamedTuple):
    """The state of many executions that drop arms, one row for each replicate; `batch` counts from 1."""

    batch: int
    active: BoolArray  # (R, K)
    totals: FloatArray  # (R, K), cumulative; -inf for a dropped arm
    # the rest follows from these and is kept because making it again costs a pass over (R, K) in every batch

    several: IntArray  # (R, 1): how many arms are active
    remaining: IntArray  # (R, 1): pulls left
    testing: BoolArray  # (R, 1): the batch to come ends in a test
    all_testing: bool


def start(arms: int, horizon: int, replicates: int, pulls: int) -> Race:
    """Return the race before the first batch: all arms active, nothing spent; `pulls` of each arm come first."""
    replicates = integer(replicates, "replicates", 1, 10**9)
    active = np.ones((arms, replicates), dtype=np.bool_).T
    totals = np.zeros((arms, replicates), dtype=np.float64).T

    several = np.full((replicates, 1), arms, dtype=np.int64)
    remaining = np.full((replicates, 1), horizon, dtype=np.int64)
    testing = _testing(several, remaining, pulls)
    return Race(1, active, totals, several, remaining, testing, bool(testing.all()))


def plan(race: Race, pulls: int, favourites: BoolArray | None = None) -> IntArray | None:
    """Return `pulls` of every active arm, or all that remains for the first favourite where no test fits.

    None comes back when every replicate is done.

    Favourites (R, K) are the active arms unless they are named.
    """
    xp = namespace(race.active)
    if race.all_testing:
        return times(race.active, pulls)
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
    """Return the race after a batch of `pulls` with these cumulative totals; the next batch would take `following`.

    `stays` must be False for arms that were dropped before; comparisons with their total of -inf make it so.
    """
    xp = namespace(totals)
    remaining = race.remaining - pulls * race.several
    if not race.all_testing:
        stays = (stays & race.testing) | (race.active & ~race.testing)
        remaining = remaining * xp.astype(race.testing, xp.int64)
    active, several, testing = race.active, race.several, race.testing
    all_testing = False
    if bool(xp.all(stays == active)):  # nobody was dropped, and where all can go on testing they do
        all_testing = race.all_testing and 0 < following * active.shape[1] <= int(xp.min(remaining))
    else:
        active = stays
        several = counted(active)
        totals = xp.where(active, totals, xp.asarray(-xp.inf))
    if not all_testing:
        testing = _testing(several, remaining, following)
        all_testing = bool(xp.all(testing))
    return Race(race.batch + 1, active, totals, several, remaining, testing, all_testing)


def dropped(race: Race, moved: Race) -> BoolArray:
    """Return which rows lost an arm in the test that led from one race to the other; shape (R, 1)."""
    lost: BoolArray = race.testing & (moved.several < race.several)
    return lost


def _testing(several: IntArray, remaining: IntArray, pulls: int) -> BoolArray:
    """Return which rows test next: those with several arms left, if the budget allows `pulls` of each."""
    testing: BoolArray = (pulls * several <= remaining) & (several > 1)
    return testing if pulls else namespace(several).zeros_like(testing)
