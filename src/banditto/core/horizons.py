"""Batches grow with the horizon: how many there are, how long each is, and which horizons are long enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from banditto.core.errors import InvalidArgument
from banditto.core.exact import first_true, floor_log, floor_power, floor_root, integer, precise

SHORTEST_HORIZON, LONGEST_HORIZON = 10, 10**15
LONGEST_ROUND_HORIZON = 10**9  # a per-round policy takes time for every round; nobody would wait longer
FEWEST_ARMS, MOST_ARMS = 2, 1000


def checked_arms(arms: int) -> int:
    """Return the number of arms, or refuse one that is outside the range that is tested."""
    return integer(arms, "arms", FEWEST_ARMS, MOST_ARMS)


def checked_horizon(horizon: int, arms: int, longest: int = LONGEST_HORIZON) -> int:
    """Return the horizon, or refuse one that is outside the tested range or shorter than one pull per arm."""
    number = integer(horizon, "horizon", SHORTEST_HORIZON, longest)
    if number < arms:
        raise InvalidArgument("horizon", horizon, f"at least one pull for each of the {arms} arms")
    return number


def batch_count(horizon: int) -> int:
    """Return B = floor(log T), the number of batches of a horizon T."""
    return floor_log(horizon)


def batch_growth(horizon: int) -> list[int]:
    """Return floor(q^i), the growing sizes of batches i = 1 to B - 1, where q = T^(1/B) for the horizon T."""
    batches = batch_count(horizon)
    return [floor_power(horizon, i, batches) for i in range(1, batches)]


def useful_horizons(can_drop: Callable[[int], bool], start: int) -> Iterator[int]:
    """Yield the first horizon from `start` on at which some arm could be dropped, then more of them, ascending.

    Usefulness is not monotone in the horizon: q falls back to about e when a batch is added, and each step of a
    floor(q^i) makes that batch dearer at once. Between two such steps it changes once at the most, in practice; so look
    at both ends of each stretch, and bisect in the first one that becomes useful.
    """
    low = start
    for end in _stretch_ends(start):
        if can_drop(low):
            yield low
        elif can_drop(end):
            yield first_true(can_drop, low, end)
        low = end + 1


_FINEST_STEP = 200  # steps of floor(q^i) beyond this value change a batch by less than half a percent


def _stretch_ends(start: int) -> Iterator[int]:
    """Yield the last horizon of each stretch, from `start` on, over which no early batch changes its length."""
    low = start
    while low <= LONGEST_HORIZON:
        batches = batch_count(low)
        with precise():
            end = min(int(Decimal(batches + 1).exp()), LONGEST_HORIZON)
        ends = {end}
        for i in range(1, batches):
            first, last = floor_power(low, i, batches), floor_power(end, i, batches)
            # floor(T^(i/B)) reaches v at the smallest T with T^i >= v^B
            ends |= {floor_root(v**batches - 1, i) for v in range(first + 1, min(last, _FINEST_STEP) + 1)}
        yield from sorted(ends)
        low = end + 1
