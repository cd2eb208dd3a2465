"""The curve of a plan's page as a drawing inside the page: it must follow a slider, and Matplotlib takes too long.

Colours come from the page's style, which has those of figures, so that it is in the dark what figures are there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from banditto.measure.plan.trial_plan import CurvePoint
from banditto.measure.plan.yardsticks import LimitLine

WIDTH, HEIGHT = 480.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 82.0, 14.0, 12.0, 40.0


class CurveLine(NamedTuple):
    """A line of the drawing: its name, the class that gives it a colour, and its path."""

    name: str
    kind: str
    path: str


class Tick(NamedTuple):
    """A mark on an axis: where, and what it says."""

    place: float
    text: str


class PriceCurve(NamedTuple):
    """A drawing of what a smaller rho costs, on logarithmic axes."""

    lines: tuple[CurveLine, ...]
    across: tuple[Tick, ...]
    upwards: tuple[Tick, ...]
    chosen: tuple[float, float]
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM


def price_curve(points: Sequence[CurvePoint], limits: Sequence[LimitLine], chosen: tuple[float, float]) -> PriceCurve:
    """Lay out the drawing; `chosen` is the plan's rho and visitors, which gets a ring."""
    rhos = sorted({point.rho for point in points})
    values = [float(point.horizon) for point in points]
    values += [value for line in limits for value in line.pulls if value >= 1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def across(rho: float) -> float:
        share = math.log(rho / rhos[0]) / math.log(rhos[-1] / rhos[0])
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def upwards(visitors: float) -> float:
        share = (math.log10(max(visitors, 10.0**low)) - low) / (high - low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def path(places: Sequence[tuple[float, float]]) -> str:
        return "M" + " L".join(f"{across(rho):g},{upwards(visitors):g}" for rho, visitors in places)

    names = list(dict.fromkeys(point.policy for point in points))
    lines = [
        CurveLine(name, f"policy-{index}", path([(one.rho, one.horizon) for one in points if one.policy == name]))
        for index, name in enumerate(names)
    ]
    lines += [
        CurveLine(line.name, f"limit-{index}", path(list(zip(line.rhos, line.pulls, strict=True))))
        for index, line in enumerate(limits)
    ]
    return PriceCurve(
        tuple(lines),
        tuple(Tick(across(rho), f"{rho:g}") for rho in rhos),
        tuple(Tick(upwards(10.0**power), _named(power)) for power in range(low, high + 1)),
        (across(chosen[0]), upwards(chosen[1])),
    )


def _named(power: int) -> str:
    """Return a power of ten in words, such as 10 thousand."""
    names = {3: "thousand", 6: "million", 9: "billion", 12: "trillion"}
    whole = 3 * (power // 3)
    return f"{10 ** (power - whole):,} {names[whole]}" if whole in names else f"{10**power:,}"
