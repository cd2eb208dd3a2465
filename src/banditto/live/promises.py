"""Whether rewards contradict what was promised of them: means that are at most `rate_at_most`.

Rewards in [0, 1] with means of at most b, whatever came before: for each q above b the product of (q/b)^x
((1-q)/(1-b))^(1-x) over an arm's rewards x is a supermartingale that starts at 1, since it is convex in x and has the
mean 1 for coins of rate b; and so is its average over some q, here ever closer to b. By Ville's inequality that ever
exceeds 1/p with probability at most p. All arms share p = 1/1000, which is for all looks together, and whatever the
number of an arm's rewards depends on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from banditto.core.exact import open_unit
from banditto.live.registration import Registration

FALSE_ALARMS = 1000  # one experiment in so many that keep their promise is warned of, at most
_STEPS = range(1, 41)  # halfway to the rate in two of them


def contradictions(registration: Registration, seen: Iterable[tuple[Sequence[int], Sequence[float]]]) -> list[str]:
    """Say, in a line for each arm, whose rewards contradict the promised largest rate; `seen` are counts and totals.

    Totals are in the policy's units, in which rewards are from 0 to 1. Nothing comes where nothing was promised.
    """
    rate = promised_rate(registration)
    if rate is None:
        return []
    arms = len(registration.arm_names)
    counts, totals = [0] * arms, [0.0] * arms
    for pulled, paid in seen:
        for arm, (count, total) in enumerate(zip(pulled, paid, strict=True)):
            counts[arm] += count
            totals[arm] += total
    ends = registration.rewards
    units = "" if (ends.low, ends.high) == (0.0, 1.0) else f" where {ends.low:g} is 0 and {ends.high:g} is 1"
    needed = math.log(FALSE_ALARMS * arms)
    return [
        f"arm {name}: the mean of {count:,} rewards is {total / count:.4g}{units}, which contradicts rate_at_most "
        f"{rate:g}; the guarantee does not cover this"
        for name, count, total in zip(registration.arm_names, counts, totals, strict=True)
        if evidence(count, total, rate) > needed
    ]


def promised_rate(registration: Registration) -> float | None:
    """Find the largest rate that the protocol promises; None if it promises none."""
    text = registration.protocol.settings.get("rate_at_most")
    return None if text is None else open_unit(str(text), "rate_at_most")


def evidence(count: int, total: float, rate: float) -> float:
    """Return the log of the evidence against a mean of at most `rate`: likelihood ratios averaged over larger rates."""
    if not count or total <= count * rate:
        return -math.inf
    others = [rate + (1.0 - rate) * 2.0 ** (-step / 2.0) for step in _STEPS]
    gained = [
        total * math.log(other / rate) + (count - total) * (math.log1p(-other) - math.log1p(-rate)) for other in others
    ]
    most = max(gained)
    return most + math.log(math.fsum(math.exp(gain - most) for gain in gained) / len(gained))
