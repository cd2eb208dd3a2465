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
    if isinstance(means, str) or not isinstance(means, Iterable):
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
    rows = pulls.shape[0]
    totals = np.empty(pulls.shape[::-1], dtype=np.float64)
    most, added = pulls.max(axis=0).tolist(), pulls.sum(axis=0).tolist()
    for arm, count in enumerate(most):
        if added[arm] == rows * count:  # every replicate pulls it equally often, or none does
            totals[arm] = total(arm, count, rows) if count else 0.0
            continue
        totals[arm] = 0.0
        pulled = pulls[:, arm] > 0
        size = int(np.count_nonzero(pulled))
        if added[arm] == size * count:  # those that pull it do so equally often
            totals[arm, pulled] = total(arm, count, size)
            continue
        for each in np.unique(pulls[pulled, arm]).tolist():
            chosen = pulls[:, arm] == each
            totals[arm, chosen] = total(arm, each, int(np.count_nonzero(chosen)))
    return totals.T
