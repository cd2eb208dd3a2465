"""Attacks find what is not replicable, and nothing where the guarantee holds.

False-failure rate: at most 1e-6 over the whole file (exact binomial bounds on fresh pairs, Bonferroni over LOOKS
comparisons, fixed seeds). Detectable in a cell of 2e5 pairs, with probability 0.8, on the instance that the search
found: a P(differ) of 0.0555 at rho = 0.05, 0.1070 at 0.1 and 0.3105 at 0.3; of a linear cell at rho = 0.3 0.401
(asserted).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.numbers.intervals import lower_limit, upper_limit
from banditto.policies.policy import Policy
from banditto.testing import assert_rate_at_most, detectable_rate
from banditto.testing.hard_instances import hard_instances
from tests.statistical.attacked import (
    ARMS,
    HORIZONS,
    LINEAR,
    NAMES,
    RHOS,
    BrokenInOneOrder,
    MostlyShared,
    made,
    made_linear,
)
from tests.statistical.test_certified_elimination import world as certified_world
from tests.statistical.test_mean_rounding import as_printed

LOOKS = 500
LEVEL = 1e-6 / LOOKS
BUDGET = 200_000
LINEAR_BUDGET = 2000
LEAST_FRESH = 100_000
KNOWN_PAIRS = 2048


def checked(policy: Policy[Any], budget: int, seed: int) -> bd.Attack:
    """An attack on an intact policy, which must not break it."""
    found = bd.attack(policy, pairs_budget=budget, seed=seed)
    assert found.bound is not None
    assert found.worst.pairs >= budget // 2
    assert_rate_at_most(found.worst.mismatches, found.worst.pairs, policy.rho, LEVEL)
    return found


def known_instances(name: str, policy: Policy[Any]) -> list[Any]:
    """What the other tests call hard, with this many arms."""
    if isinstance(policy, bd.CertifiedElimination):
        return [certified_world(policy, np.random.default_rng([78, number])) for number in range(8)]
    horizons = HORIZONS[NAMES[name]]
    rows = hard_instances(lambda arms, horizon: NAMES[name](arms=arms, horizon=horizon, rho=policy.rho), horizons)
    return [row.environment for row in rows if row.policy.arms == policy.arms]


def test_what_a_cell_could_detect() -> None:
    for rho, rate in zip(RHOS, (0.0555, 0.1070, 0.3105), strict=True):
        assert detectable_rate(LEAST_FRESH, rho, LEVEL) <= rate
    assert detectable_rate(LINEAR_BUDGET // 2, 0.3, LEVEL) <= 0.401


@pytest.mark.parametrize("arms", [ARMS[0], *(pytest.param(arms, marks=pytest.mark.long) for arms in ARMS[1:])])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (k > 1)) for k, name in enumerate(NAMES)]
)
def test_no_cell_breaks_and_the_search_is_awake(name: str, arms: int) -> None:
    """No instance is above rho; what is found is no less than half of what the other tests know.

    The latter fails by chance with probability 1e-6 at most if the instance found is truly at least half as bad as
    those that are known. Detectable with probability 0.8: a search that finds 0.02 where 0.085 is known (asserted).
    """
    assert upper_limit(2000 + 40, 100_000, LEVEL) < 0.5 * lower_limit(174 - 11, KNOWN_PAIRS, LEVEL)
    least = 0.7 if name == "certified-elimination" else 0.1  # of rho; 8 standard errors below 0.8 rho
    for number, rho in enumerate(RHOS):
        policy = made(name, arms, rho)
        found = checked(policy, BUDGET, seed=number)
        worst = found.worst
        assert worst.differ >= least * rho, found.table()
        if rho != 0.1 or arms == 3:
            continue
        for seed, world in enumerate(known_instances(name, policy), 50):
            known = bd.certify(policy, world, pairs=KNOWN_PAIRS, seed=seed)
            sure = lower_limit(known.mismatches, known.pairs, LEVEL)
            assert upper_limit(worst.mismatches, worst.pairs, LEVEL) >= 0.5 * sure, (known.table(), found.table())


@pytest.mark.parametrize("arms", ARMS)
def test_explore_then_commit_keeps_its_word_where_its_promise_is_kept(arms: int) -> None:
    for number, rho in enumerate(RHOS):
        policy = bd.ExploreThenCommit(arms=arms, horizon=10**6, rho=rho, gap=0.1)
        found = checked(policy, BUDGET // 4, seed=number)
        best, second = sorted(found.worst.means, reverse=True)[:2]
        assert best - second >= 0.1 - 1e-12
        assert found.worst.mismatches > 0


@pytest.mark.parametrize(
    ("arms", "rho"),
    [
        (2, 0.1),
        pytest.param(3, 0.3, marks=pytest.mark.long),
        pytest.param(5, 0.05, marks=pytest.mark.long),
        pytest.param(10, 0.1, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("kind", LINEAR)
def test_no_linear_cell_breaks(kind: Any, arms: int, rho: float) -> None:
    found = checked(made_linear(kind, arms, rho), LINEAR_BUDGET, seed=1)
    assert found.worst.mismatches > 0


@pytest.mark.filterwarnings("ignore::banditto.core.errors.ShortHorizonWarning")
def test_algorithm_1_as_printed_is_found() -> None:
    """A fifth of all pairs differ at level 1e-9 on some instance, at rho = 0.1, of which the attack knows nothing."""
    found = bd.attack(as_printed(2, 10**5, 0.1), pairs_budget=20_000)
    assert found.verdict == "FAIL"
    assert lower_limit(found.worst.mismatches, found.worst.pairs, 1e-9) > 0.2
    assert found.bound is None


def test_the_last_line_of_algorithm_3_is_found() -> None:
    """Two best actions can be tied, and then half of all pairs differ."""
    points = [[0.9, 0.3], [0.9, -0.3], [-0.5, 0.5], [0.0, 0.6]]
    paper = bd.LinearThreshold(actions=points, horizon=10**9, rho=0.1, constants="paper")
    found = bd.attack(paper, pairs_budget=1500)
    assert found.verdict == "FAIL"
    assert lower_limit(found.worst.mismatches, found.worst.pairs, 1e-9) > 0.3


@pytest.mark.parametrize("rho", [0.01, 0.05])
def test_a_planted_fault_is_found(rho: float) -> None:
    """Executions that share 99% of their coins are refused, intact ones are not (with rho = 0.05: above).

    The verdict FAIL has level 0.025; the lower limit at LEVEL is above rho as well.
    """
    known: dict[str, Any] = {"arms": 3, "horizon": 10**6, "rho": rho}
    if rho not in RHOS:
        checked(bd.CertifiedElimination(**known), BUDGET, seed=9)
    found = bd.attack(MostlyShared(**known), pairs_budget=BUDGET, seed=9)
    assert found.verdict == "FAIL"
    assert lower_limit(found.worst.mismatches, found.worst.pairs, LEVEL) > rho, found.table()


def test_a_fault_in_one_order_of_the_arms_is_found() -> None:
    """Five arms have a hundred and twenty orders; the fault shows in six of them."""
    known: dict[str, Any] = {"arms": 5, "horizon": 10**6, "rho": 0.1}
    found = bd.attack(BrokenInOneOrder(**known), pairs_budget=50_000, seed=2)
    assert found.verdict == "FAIL"
    assert lower_limit(found.worst.mismatches, found.worst.pairs, LEVEL) > 0.1, found.table()
    first, second = np.argsort(found.worst.means)[::-1][:2]
    assert (first, second) == (2, 1)
