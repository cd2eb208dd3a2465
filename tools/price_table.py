"""Writes the table of prices that pages interpolate: `python -m tools.price_table`. It takes a quarter of an hour."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

from banditto.measure.plan.plans import asked
from banditto.measure.plan.price_table import ARMS, PATH, POWER, RATE, RHOS, SPREADS, PriceRow, variance_of
from banditto.measure.plan.questions import MARGINS
from banditto.measure.plan.rehearsal import rehearse
from banditto.policies.policy import Level
from banditto.policies.shared.replicable import without_warnings

_EXECUTIONS = 4096
_RATES = {"any": None, "rates": RATE}


def row(family: str, arms: int, rho: float, spread: float) -> PriceRow:
    """Work out a row: the most pulls of one-cut and early-cut, and early-cut's mean at the gap, in units of the gap."""
    rate = _RATES[family]
    variance = variance_of(rate)
    gap = spread * variance
    unit = gap * gap / variance
    questions = {level: asked(None, arms, None, "bernoulli", POWER, None, rate, None, None, level) for level in LEVELS}
    with without_warnings():
        one_cut: Any = questions["sequence"].made(gap=gap, rho=rho, horizon=10**15)
        early: Any = questions["winner"].made(gap=gap, rho=rho, horizon=10**15, margin=MARGINS[0])
        fitting = replace(early, horizon=arms * early.cap + 1)
    mean = rehearse(fitting, questions["winner"].instance(gap), gap, _EXECUTIONS, 0).decided.mean()
    values = (one_cut.arms * one_cut.pulls_per_arm, arms * early.cap, float(mean))
    return PriceRow(family, arms, rho, spread, *(float(f"{value * unit:.5g}") for value in values))


LEVELS: tuple[Level, ...] = ("sequence", "winner")


def main() -> None:
    """Write the table; with --more, rows that it has are kept."""
    kept = {}
    if "--more" in sys.argv:
        kept = {tuple(known[:4]): PriceRow(*known) for known in json.loads(PATH.read_text())["rows"]}
    rows = []
    for family in _RATES:
        for arms in ARMS:
            for rho in RHOS:
                rows += [kept.get((family, arms, rho, spread)) or row(family, arms, rho, spread) for spread in SPREADS]
                sys.stderr.write(f"{family} {arms} arms, rho {rho:g}\n")
    PATH.write_text(
        json.dumps({"power": POWER, "rows": rows}, indent=None, separators=(",", ":")).replace("],[", "],\n[")
    )


if __name__ == "__main__":
    main()
