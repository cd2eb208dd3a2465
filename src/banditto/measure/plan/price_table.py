"""What an experiment costs, at once: interpolated from a table, for whoever drags a slider; `plan` is exact.

Pulls grow like variance / gap^2. What is left depends slowly on the number of arms, on rho, and on gap / variance, by
which the remainders of the proofs grow. The table has that factor; `tools/price_table.py` writes it.
"""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

from banditto.core.errors import InvalidArgument

PATH = Path(__file__).with_name("price_table.json")
POWER = 0.95
ARMS = (2, 3, 4, 6, 10, 20)
RHOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SPREADS = (0.02, 0.1, 0.2, 0.3, 0.5, 0.8)  # gap / variance
Family = Literal["any", "rates"]


class PriceRow(NamedTuple):
    """A row of the table: for whom, and pulls in units of variance / gap^2."""

    family: str
    arms: int
    rho: float
    spread: float
    one_cut: float
    early_cut: float  # the most
    early_cut_mean: float  # where the best arm leads by the gap


class Prices(NamedTuple):
    """About how many pulls of all arms together the cheapest policies take, at a power of 0.95."""

    one_cut: float
    early_cut: float
    early_cut_mean: float


RATE = 0.1  # at most, in the part of the table that is about low rates


def variance_of(rate_at_most: float | None) -> float:
    """Return the largest variance of 0/1 rewards whose rate is at most this; None is any rate."""
    rate = 0.5 if rate_at_most is None else min(rate_at_most, 0.5)
    return rate * (1.0 - rate)


def _families(variance: float) -> list[tuple[Family, float]]:
    """Return the parts of the table that apply to this variance, with their weights."""
    low, high = variance_of(RATE), variance_of(None)
    weight = min(1.0, max(0.0, math.log(variance / low) / math.log(high / low)))
    return [("rates", 1.0 - weight), ("any", weight)]


def prices(arms: int, gap: float, rho: float, rate_at_most: float | None = None) -> Prices:
    """Return about what an experiment takes, for rewards that are 0 or 1; `plan` has the exact answer."""
    if not ARMS[0] <= arms <= ARMS[-1]:
        raise InvalidArgument("arms", arms, f"from {ARMS[0]} to {ARMS[-1]}")
    if not RHOS[0] <= rho <= RHOS[-1]:
        raise InvalidArgument("rho", rho, f"from {RHOS[0]:g} to {RHOS[-1]:g}")
    if not 0.0 < gap < 1.0:
        raise InvalidArgument("gap", gap, "a number between 0 and 1")
    variance = variance_of(rate_at_most)
    spread = min(max(gap / variance, SPREADS[0]), SPREADS[-1])
    corners = product(_families(variance), _between(ARMS, arms), _between(RHOS, rho), _between(SPREADS, spread))
    logs = [0.0, 0.0, 0.0]
    for corner in corners:
        weight = math.prod(part for _, part in corner)
        if weight:
            found = _table()[tuple(value for value, _ in corner)]
            logs = [total + weight * math.log(factor) for total, factor in zip(logs, found, strict=True)]
    unit = variance / (gap * gap)
    return Prices(*(math.exp(log) * unit for log in logs))


def _between(places: tuple[float, ...], value: float) -> list[tuple[float, float]]:
    """Return a value's neighbours in a list, with weights for interpolation on a logarithmic scale."""
    above = next(index for index, place in enumerate(places) if place >= value)
    if places[above] == value:
        return [(places[above], 1.0)]
    low, high = places[above - 1], places[above]
    weight = math.log(value / low) / math.log(high / low)
    return [(low, 1.0 - weight), (high, weight)]


@cache
def _table() -> dict[tuple[object, ...], Prices]:
    content = json.loads(PATH.read_text(encoding="utf-8"))
    rows = [PriceRow(*row) for row in content["rows"]]
    return {row[:4]: Prices(*row[4:]) for row in rows}
