"""The table of prices: near what the policies themselves say, between its rows as well as on them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from banditto.core.errors import InvalidArgument
from banditto.measure.plan.plans import asked
from banditto.measure.plan.price_table import ARMS, POWER, RHOS, SPREADS, prices, variance_of
from banditto.measure.plan.rehearsal import rehearse
from banditto.policies.policy import Level
from banditto.policies.shared.replicable import without_warnings

# chosen before the table was made: between rows in every direction, at the team's question, and on rows
POINTS = [(4, 0.01, 0.3, 0.1), (4, 0.01, 0.1, 0.06), (2, 0.05, 0.1, None)]
MORE = [(3, 0.03, 0.15, None), (5, 0.02, 0.07, 0.2), (8, 0.1, 0.25, None), (15, 0.015, 0.4, 0.12), (2, 0.2, 0.03, 0.4)]


def made(level: Level, arms: int, gap: float, rho: float, rate: float | None) -> Any:
    question = asked(None, arms, None, "bernoulli", POWER, None, rate, None, None, level)
    with without_warnings():
        return question.made(gap=gap, rho=rho, horizon=10**15), question


@pytest.mark.parametrize(
    ("arms", "gap", "rho", "rate"), [*POINTS, *(pytest.param(*point, marks=pytest.mark.long) for point in MORE)]
)
def test_prices_are_those_of_the_policies(arms: int, gap: float, rho: float, rate: float | None) -> None:
    """Within 8%, which pages call about; a mean of 1,024 runs is off by 5% at most once in a thousand."""
    found = prices(arms, gap, rho, rate)
    one_cut, _ = made("sequence", arms, gap, rho, rate)
    early, question = made("winner", arms, gap, rho, rate)
    assert found.one_cut == pytest.approx(arms * one_cut.pulls_per_arm, rel=0.08)
    assert found.early_cut == pytest.approx(arms * early.cap, rel=0.08)
    fitting = replace(early, horizon=arms * early.cap + 1)
    mean = rehearse(fitting, question.instance(gap), gap, 1024, 7).decided.mean()
    assert found.early_cut_mean == pytest.approx(float(mean), rel=0.13)


def test_more_costs_more() -> None:
    for rate in (None, 0.1):
        for arms in (2, 5, 20):
            by_rho = [prices(arms, 0.02, rho, rate) for rho in RHOS]
            by_gap = [prices(arms, gap, 0.1, rate) for gap in (0.005, 0.01, 0.02, 0.04)]
            for line in (by_rho, by_gap):
                for quantity in range(3):
                    values = [one[quantity] for one in line]
                    assert values == sorted(values, reverse=True)
            assert all(one.early_cut_mean < one.early_cut for one in by_rho)
    assert all(a < b for a, b in zip(prices(3, 0.02, 0.1), prices(4, 0.02, 0.1), strict=True))


def test_rows_are_found_again() -> None:
    variance = variance_of(None)
    low, high = prices(ARMS[0], SPREADS[0] * variance, RHOS[0]), prices(ARMS[-1], SPREADS[-1] * variance, RHOS[-1])
    assert all(math.isfinite(value) and value > 1.0 for value in (*low, *high))
    assert prices(4, 0.01, 0.3, 0.5) == prices(4, 0.01, 0.3)  # a rate of one half promises nothing


@pytest.mark.parametrize("wrong", [{"arms": 1}, {"arms": 21}, {"rho": 0.001}, {"rho": 0.6}, {"gap": 0.0}, {"gap": 1.0}])
def test_what_the_table_has_not(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"^{next(iter(wrong))}: got "):
        prices(**({"arms": 4, "gap": 0.1, "rho": 0.1} | wrong))
