"""A plan is right: what it promises happens, on coins and rewards that the planner never saw.

Regret is the mean of 4,096 pairs, measured by `certify`; the interval that a plan prints holds it with four standard
errors of the planner's own mean to spare, and the measured mean adds its own. Arms are dropped as promised if the lower
limit of what was promised is not above the share measured over 8,192 fresh executions: false-failure rate at most 1e-6
for each plan (exact binomial bounds); a plan that keeps its promise of 0.95 in 0.93 of all runs would be refused with
probability 0.99 (asserted).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from scipy.special import betainc

import banditto as bd
from banditto.measure.plan.rehearsal import rehearse
from banditto.numbers.intervals import upper_limit

FRESH, EXECUTIONS, LEVEL = 777, 8192, 1e-6
PLANS: list[dict[str, Any]] = [
    {"arms": 5, "gap": 0.05, "rho": 0.1},
    {"arms": 2, "gap": 0.2, "rho": 0.05},
    {"arms": 10, "gap": 0.1, "horizon": 10**6},
    {"arms": 3, "rho": 0.3, "horizon": 10**5},
    {"arms": 3, "gap": 1.0, "rho": 0.2, "environment": "gaussian:2"},
    {"arms": 3, "gap": 0.2, "rho": 0.3, "policy": "random-threshold"},
    {"arms": 3, "gap": 0.2, "rho": 0.3, "policy": "mean-rounding"},
    {"arms": 4, "gap": 0.1, "rho": 0.1, "policy": "explore-then-commit"},
    {"arms": 3, "gap": 0.3, "rho": 0.5, "policy": "random-threshold:paper"},
    {"arms": 5, "gap": 0.05, "rho": 0.2, "resolve": 0.8, "by": 0.3},
    {"arms": 4, "gap": 0.05, "rho": 0.1},
    {"arms": 4, "gap": 0.05, "rho": 0.2, "policy": "certified-elimination"},
    {"arms": 4, "gap": 0.01, "horizon": 200_000, "rate_at_most": 0.1, "by": 1},
    {"arms": 4, "gap": 0.05, "rho": 0.1, "same": "winner"},
    {"arms": 4, "gap": 0.01, "horizon": 200_000, "rate_at_most": 0.06, "baseline": 0.05, "same": "winner"},
    {"arms": 2, "gap": 0.1, "rho": 0.2, "same": "winner", "control": 0},
]
FEW = (5, 10, 15)  # in `make test`: a named policy, the default and a winner


@cache
def planned(**request: Any) -> bd.TrialPlan:
    return bd.plan(**request)


def kept(successes: int, promised: float) -> bool:
    """Whether so many successes are no evidence against the promise."""
    return upper_limit(successes, EXECUTIONS, LEVEL) >= promised


@pytest.mark.parametrize(
    "request_",
    [pytest.param(plan, marks=[] if k in FEW else pytest.mark.long) for k, plan in enumerate(PLANS)],
    ids=lambda request: "-".join(map(str, request.values())),
)
def test_plans_keep_their_promises(request_: dict[str, Any]) -> None:
    found = planned(**request_)
    fresh = rehearse(found.policy, found.instance, found.gap, EXECUTIONS, seed=FRESH)
    assert kept(round(fresh.resolved(found.question.by) * EXECUTIONS), found.question.resolve)
    certificate = bd.certify(found.policy, found.instance, pairs=4096, seed=FRESH)
    low, high = found.regret.interval
    assert low <= certificate.regret.mean <= high
    assert found.regret.mean == pytest.approx(certificate.regret.mean, rel=0.1)
    assert certificate.verdict in ("PASS", "CONSISTENT")
    share = (fresh.regrets >= low) & (fresh.regrets <= high)
    assert share.mean() >= 0.93


def test_what_four_page_versions_need() -> None:
    """5% against 6% with 200,000 visitors, and 50% against 55% at rho = 0.1."""
    visitors = bd.plan(arms=4, gap=0.01, rate_at_most=0.1, horizon=200_000, by=1)
    assert visitors.rho <= 0.3
    half = planned(arms=4, gap=0.05, rho=0.1)
    assert half.question.by == 0.5
    assert half.horizon <= 260_000
    assert half.policy.name == visitors.policy.name == "one-cut"
    assert half.alternatives[-1].horizon is not None
    assert half.alternatives[-1].horizon > 3 * half.horizon  # certified-elimination's


def test_a_broken_promise_would_be_seen() -> None:
    critical = next(count for count in range(EXECUTIONS) if kept(count, 0.95))
    # P(Binomial(n, 0.93) < critical)
    assert 1.0 - float(betainc(critical, EXECUTIONS - critical + 1, 0.93)) >= 0.99


@pytest.mark.long
def test_costs_are_those_of_the_others() -> None:
    """Ratios to the paper's constants and to an ordinary policy, measured again, within five percent."""
    found = bd.plan(arms=3, gap=0.1, rho=0.2)
    mine = bd.certify(found.policy, found.instance, pairs=4096, seed=FRESH).regret.mean
    with pytest.warns(bd.ShortHorizonWarning):
        paper = bd.RandomThreshold(arms=3, horizon=found.horizon, rho=0.2, constants="paper")
    theirs = bd.certify(paper, found.instance, pairs=64, seed=FRESH).regret.mean
    assert found.ratio_to_paper == pytest.approx(mine / theirs, rel=0.05)
    plain = bd.BatchedElimination(arms=3, horizon=found.horizon)
    ordinary = bd.certify(plain, found.instance, pairs=4096, seed=FRESH, rho=0.2).regret.mean
    assert found.ratio_to_nonreplicable == pytest.approx(mine / ordinary, rel=0.05)
    assert found.paper_horizon is not None
    assert found.paper_horizon > 100 * found.horizon
