"""Solving for the one thing that a plan leaves open: monotone, deterministic root-finding.

Feasibility is a yes or no: with a longer horizon, a larger rho or a wider gap, yes stays yes. (Nearly: batches whose
number jumps with the horizon, as those of the paper's algorithms do, make short stretches of no behind a yes. Then the
first yes on a fixed ladder of horizons counts, refined downwards.) Numbers are compared on logarithmic scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_LADDER = 1.6
FINEST = 1.001  # a factor between no and yes that is as good as none

Feasible = Callable[[float], bool]


def smallest(feasible: Feasible, low: float, high: float, finest: float = FINEST) -> float | None:
    """The smallest value from `low` to `high` that is feasible, up to a factor; None if nothing is found.

    Where not even `high` is, somewhere below it may be: then up a ladder.
    """
    if feasible(low):
        return low
    if not feasible(high):
        return first_on_ladder(feasible, low, high, _LADDER, finest)
    return _between(feasible, low, high, finest)


def first_on_ladder(feasible: Feasible, low: float, high: float, step: float, finest: float = FINEST) -> float | None:
    """The same where a yes may be followed by a no: up a ladder to the first yes, then down towards the no below."""
    before, value = None, low
    while not feasible(value):
        if value >= high:
            return None
        before, value = value, min(value * step, high)
    return value if before is None else _between(feasible, before, value, finest)


def near(feasible: Feasible, guess: float, low: float, high: float, step: float, finest: float) -> float | None:
    """The smallest feasible value where it is known about: down from the guess to a no, or up from it to a yes."""
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


def offered(value: float) -> str:
    """Three digits, rounded up: what is offered must be enough."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value * (1.0 + 1e-6) / unit) * unit:.3g}"


def rounded_up(value: float, digits: int = 4) -> int:
    """The next integer with so many digits that are not zero."""
    unit = 10 ** max(0, len(str(math.ceil(value))) - digits)
    return int(-(-math.ceil(value) // unit) * unit)
