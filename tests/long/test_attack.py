"""Attacks with ten million pairs a cell: what is left of a promise when somebody looks for hours.

False-failure rate: at most 1e-6 over the whole file (exact binomial bounds on fresh pairs, Bonferroni over 72 cells,
fixed seeds). Detectable with probability 0.8 on the instance that the search found: rho + 0.0008 at rho = 0.05, rho +
0.0010 at 0.1, rho + 0.0016 at 0.3 (asserted). CertifiedElimination gets Bernoulli rewards, RandomThreshold and
MeanRounding Gaussian ones, whose totals are several times faster to draw; MeanRounding with five arms or more gets 2e6
pairs and linear policies 4e4, because a pair of theirs costs more.
"""

from __future__ import annotations

from typing import Any

import pytest

import banditto as bd
from banditto.policies.policy import Policy
from banditto.testing import assert_rate_at_most, detectable_rate
from tests.statistical.attacked import ARMS, LINEAR, RHOS, made_linear

pytestmark = pytest.mark.long

LEVEL = 1e-6 / 72
BUDGET, SLOW_BUDGET, LINEAR_BUDGET = 10**7, 2 * 10**6, 40_000
GAUSSIAN: dict[str, Any] = {"rewards": "gaussian", "sigma": 0.5}

# few batches, and still at least ten times the smallest horizon at which an arm can be dropped (asserted)
HORIZONS: dict[Any, dict[int, int]] = {
    bd.CertifiedElimination: dict.fromkeys(ARMS, 10**6),
    bd.RandomThreshold: {2: 10**4, 3: 10**5, 5: 10**6, 10: 10**7},
    bd.MeanRounding: {2: 10**4, 3: 10**4, 5: 10**5, 10: 10**6},
}


def attacked(policy: Policy[Any], budget: int) -> bd.Attack:
    minimum = policy.minimum_horizon()
    assert minimum is not None
    assert policy.horizon >= 10 * minimum
    found = bd.attack(policy, pairs_budget=budget, seed=1, jobs=2)
    assert found.bound is not None
    assert_rate_at_most(found.worst.mismatches, found.worst.pairs, policy.rho, LEVEL)
    return found


def test_what_ten_million_pairs_could_detect() -> None:
    for rho, more in zip(RHOS, (0.0008, 0.0010, 0.0016), strict=True):
        assert detectable_rate(BUDGET // 2, rho, LEVEL) <= rho + more


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("arms", ARMS)
@pytest.mark.parametrize("kind", HORIZONS, ids=lambda kind: kind.name)
def test_no_cell_breaks(kind: Any, arms: int, rho: float) -> None:
    """CertifiedElimination comes near its bound in every cell, so the search is awake."""
    certified = kind is bd.CertifiedElimination
    policy = kind(arms=arms, horizon=HORIZONS[kind][arms], rho=rho, **({} if certified else GAUSSIAN))
    found = attacked(policy, SLOW_BUDGET if kind is bd.MeanRounding and arms >= 5 else BUDGET)
    assert found.worst.differ >= (0.75 if certified else 0.05) * rho


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("arms", ARMS)
@pytest.mark.parametrize("kind", LINEAR)
def test_no_linear_cell_breaks(kind: Any, arms: int, rho: float) -> None:
    assert attacked(made_linear(kind, arms, rho), LINEAR_BUDGET).worst.mismatches > 0
