"""The smallest value that will do, where a larger one does too: by yes and no, or by what a value spends.

Yes stays yes, nearly: where a no may follow, the first yes on a fixed ladder counts, refined downwards. Numbers are
compared on logarithmic scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from banditto.core.exact import first_true
from banditto.core.horizons import LONGEST_HORIZON

_LADDER = 1.6
FINEST = 1.001  # a factor between no and yes that is as good as none

Feasible = Callable[[float], bool]


def smallest(feasible: Feasible, low: float, high: float, finest: float = FINEST) -> float | None:
    """Return the smallest feasible value from `low` to `high`, up to the factor `finest`; None if none is found.

    Where not even `high` is, somewhere below it may be: then up a ladder.
    """
    if feasible(low):
        return low
    if not feasible(high):
        return first_on_ladder(feasible, low, high, _LADDER, finest)
    return _between(feasible, low, high, finest)


def first_on_ladder(
    feasible: Feasible, low: float, high: float, step: float, finest: float = FINEST, begin: float = 0.0
) -> float | None:
    """Find it where a yes may be followed by a no: up a ladder to the first yes, then down towards the no below.

    Rungs below `begin` are taken for a no, unless the first rung that is asked for is a yes.
    """
    before, value, asked = None, low, False
    while value < min(begin, high) or not feasible(value):
        asked = asked or value >= begin
        if value >= high:
            return None
        before, value = value, min(value * step, high)
    if begin > low and not asked:
        return first_on_ladder(feasible, low, high, step, finest)
    return value if before is None else _between(feasible, before, value, finest)


def near(feasible: Feasible, guess: float, low: float, high: float, step: float, finest: float) -> float | None:
    """Find it where it is known about: down from the guess to a no, or up from it to a yes; None if there is none.

    In steps, of which more and more are taken at once, so that a guess may be far off.
    """
    upwards = not feasible(guess)
    rungs, end = [guess], high if upwards else low
    while rungs[-1] != end:
        rungs.append(min(rungs[-1] * step, end) if upwards else max(rungs[-1] / step, end))

    def turned(number: int) -> bool:
        return feasible(rungs[number]) == upwards

    last, reach = len(rungs) - 1, 1
    while reach < last and not turned(reach):
        reach *= 2
    reach = min(reach, last)
    if not turned(reach):
        return None if upwards else rungs[-1]
    number = first_true(turned, reach // 2 + 1, reach)
    no, yes = (number - 1, number) if upwards else (number, number - 1)
    return _between(feasible, rungs[no], rungs[yes], finest)


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
    """Return the smallest value whose spending, which falls, is within the budget; None if there is none.

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
    """Return a number as text with three digits, rounded up, so that what is offered is enough."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value * (1.0 + 1e-6) / unit) * unit:.3g}"


def rounded_up(value: float, digits: int = 4) -> int:
    """Return the next integer up with at most `digits` digits that are not zero."""
    unit = 10 ** max(0, len(str(math.ceil(value))) - digits)
    return int(-(-math.ceil(value) // unit) * unit)
