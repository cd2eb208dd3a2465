"""The smallest value that will do, where a larger one does too: by yes and no, or by what a value spends.

Yes stays yes, nearly: where a no may follow, the first yes on a fixed ladder counts, refined downwards. Numbers are
compared on logarithmic scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from banditto.core.horizons import LONGEST_HORIZON

_LADDER = 1.6
FINEST = 1.001  # a factor between no and yes that is as good as none

Feasible = Callable[[float], bool]


def smallest(feasible: Feasible, low: float, high: float, finest: float = FINEST) -> float | None:
    """Find the smallest value from `low` to `high` that is feasible, up to a factor; None if nothing is found.

    Where not even `high` is, somewhere below it may be: then up a ladder.
    """
    if feasible(low):
        return low
    if not feasible(high):
        return first_on_ladder(feasible, low, high, _LADDER, finest)
    return _between(feasible, low, high, finest)


def first_on_ladder(feasible: Feasible, low: float, high: float, step: float, finest: float = FINEST) -> float | None:
    """Find it where a yes may be followed by a no: up a ladder to the first yes, then down towards the no below."""
    before, value = None, low
    while not feasible(value):
        if value >= high:
            return None
        before, value = value, min(value * step, high)
    return value if before is None else _between(feasible, before, value, finest)


def near(feasible: Feasible, guess: float, low: float, high: float, step: float, finest: float) -> float | None:
    """Find it where it is known about: down from the guess to a no, or up from it to a yes; None if there is none."""
    if not feasible(guess):
        return first_on_ladder(feasible, guess, high, step, finest)
    yes = guess
    while yes > low and feasible(max(yes / step, low)):
        yes = max(yes / step, low)
    return yes if yes <= low else _between(feasible, max(yes / step, low), yes, finest)


def _between(feasible: Feasible, no: float, yes: float, finest: float) -> float:
    while yes / no > finest:
        middle = math.sqrt(no * yes)
        if feasible(middle):
            yes = middle
        else:
            no = middle
    return yes


def first_within(
    spending: Callable[[float], float], budget: float, low: float, high: float, finest: float
) -> float | None:
    """Find the smallest value that spends no more than the budget, where spending falls; None if there is none.

    By interpolation on logarithmic scales, on which spending is nearly a line.
    """

    def excess(value: float) -> float:
        return math.log(min(spending(value), 2.0 * LONGEST_HORIZON) / budget)

    no, yes = low, high
    above, below = excess(no), excess(yes)
    if above <= 0.0:
        return low
    if below > 0.0:
        return None
    unused, moved = -below, ""
    while yes / no > finest and unused > finest - 1.0:
        value = no * (yes / no) ** (above / (above - below))
        value = min(max(value, no * math.sqrt(finest)), yes / math.sqrt(finest))
        found = excess(value)
        if found <= 0.0:
            above /= 2.0 if moved == "yes" else 1.0  # else one end might never move
            yes, below, unused, moved = value, found, -found, "yes"
        else:
            below /= 2.0 if moved == "no" else 1.0
            no, above, moved = value, found, "no"
    return yes


def offered(value: float) -> str:
    """Write three digits, rounded up: what is offered must be enough."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value * (1.0 + 1e-6) / unit) * unit:.3g}"


def rounded_up(value: float, digits: int = 4) -> int:
    """Return the next integer with so many digits that are not zero."""
    unit = 10 ** max(0, len(str(math.ceil(value))) - digits)
    return int(-(-math.ceil(value) // unit) * unit)
