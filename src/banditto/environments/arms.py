"""What all environments with one mean per arm share: checked means, and drawing arm by arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from banditto.arrays import FloatArray, IntArray
from banditto.errors import InvalidArgument
from banditto.exact import Real, real
from banditto.horizons import FEWEST_ARMS, MOST_ARMS


def checked_means(means: Iterable[Real], low: float, high: float, allowed: str) -> tuple[float, ...]:
    """The means as floats in [low, high], two of them or more."""
    if isinstance(means, str):
        raise InvalidArgument("means", means, "a list of numbers")
    values = tuple(real(mean, "means", allowed) for mean in means)
    if not FEWEST_ARMS <= len(values) <= MOST_ARMS:
        raise InvalidArgument("means", f"{len(values)} of them", f"{FEWEST_ARMS} to {MOST_ARMS} arms")
    for value in values:
        if not low <= value <= high:
            raise InvalidArgument("means", value, allowed)
    return values


def draw_by_arm(pulls: IntArray, arms: int, total: Callable[[int, int, int], FloatArray | IntArray]) -> FloatArray:
    """Totals (R, K) where `total(arm, count, size)` draws `size` totals of `count` pulls of one arm.

    Samplers are fastest with a scalar count, and almost always all replicates that pull an arm in a batch pull
    it equally often; so group by count. Memory is arm-major.
    """
    if pulls.shape[1] != arms:
        raise InvalidArgument("environment", f"{arms} arms", f"{pulls.shape[1]} arms, as the policy has")
    totals = np.zeros(pulls.shape[::-1], dtype=np.float64)
    for arm in range(arms):
        wanted = pulls[:, arm]
        most, least = int(wanted.max()), int(wanted.min())
        if most == least:
            if most > 0:
                totals[arm] = total(arm, most, wanted.size)
            continue
        for count in np.unique(wanted[wanted > 0]).tolist():
            rows = np.flatnonzero(wanted == count)
            totals[arm, rows] = total(arm, count, rows.size)
    return totals.T
