"""What all environments with one mean per arm share: checked means."""

from __future__ import annotations

from collections.abc import Iterable

from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, real
from banditto.core.horizons import FEWEST_ARMS, MOST_ARMS


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
