"""Claims about multi-armed bandits: their verdicts, and errors of the declared size that must turn them.

Seeds are fixed, so that a verdict is the same in every run. Intervals are at the 95% level; the planted errors are at
least as large as the declared effects, which the rules refuse whatever the noise (Near), or with a probability of more
than 0.999 where a share is counted (4,096 pairs or more).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.schedule import Batch, Schedule
from banditto.measure.certificate import Regret
from banditto.paper import beyond_prices, finite_arms, mean_estimation, printed, undecided, warm_up
from banditto.paper.claims import Effort, Measured, Row, claim_of, claims
from banditto.paper.finite_arms import FIRST, GROWING, SECOND, GrowthProblem, algorithm_1, algorithm_2
from banditto.policies.shared.replicable_mean import RoundedMean, replicable_mean, samples_needed

pytestmark = pytest.mark.slow

QUICK = Effort(True)
GROUPS = ("warm-up", "proposition-2", "theorem-3", "theorem-4", "printed-algorithm-1", "printed-union-bound")
DISAGREEING = {
    *("warm-up-thousand-arms", "printed-algorithm-1", "printed-algorithm-1-ten-arms", "printed-union-bound"),
}
SLOW = {row.name for row in claims() if row.name.startswith("beyond-") or row.seconds[0] >= 1.0}
NAMES = [
    row.name for row in claims() if row.name.startswith((*GROUPS, "conclusion-rho", "beyond-price", "beyond-rivals"))
]


def verdict(name: str, measured: Measured) -> str:
    return Row(claim=claim_of(name), measured=measured).verdict


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in SLOW else n for n in NAMES])
def test_verdicts(name: str) -> None:
    row = claim_of(name)
    assert row.measure is not None
    found = Row(claim=row, measured=row.measure(QUICK))
    assert found.verdict == ("disagrees" if name in DISAGREEING else "agrees")
    if found.verdict == "disagrees":
        assert row.reason


# -- exponents --------------------------------------------------------------------------------------------------------


def effect(name: str) -> float:
    rule: Any = claim_of(name).rule
    return float(rule.detectable)


Make = Callable[[GrowthProblem], Any]


def costing(make: Make, factor: Callable[[GrowthProblem], float]) -> Make:
    """The policy with so many times the pulls: both algorithms pull 1/rho^2 times as often."""
    return lambda problem: make(problem._replace(rho=problem.rho / math.sqrt(factor(problem))))


@pytest.mark.parametrize("direction", [-1.0, pytest.param(1.0, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "measure"),
    [
        (
            "theorem-3-gap",
            lambda x: finite_arms.gap_law(costing(algorithm_1, lambda p: (0.4 / p.gap) ** x), FIRST, QUICK),
        ),
        ("theorem-4-gap", lambda x: finite_arms.gap_law(costing(algorithm_2, lambda p: 2 * p.gap**-x), SECOND, QUICK)),
        ("theorem-3-rho", lambda x: finite_arms.rho_law(costing(algorithm_1, lambda p: p.rho**-x), FIRST, QUICK)),
        ("theorem-4-rho", lambda x: finite_arms.rho_law(costing(algorithm_2, lambda p: 2 * p.rho**-x), SECOND, QUICK)),
        (
            "theorem-4-arms",
            lambda x: finite_arms.arms_law(
                costing(algorithm_2, lambda p: 2 * p.arms**x), GrowthProblem(rho=0.1), (5, 10, 20), QUICK
            ),
        ),
        (
            "theorem-3-horizon",
            lambda x: finite_arms.horizon_law(
                costing(algorithm_1, lambda p: p.mean_logarithm(2) ** x / 30.0**x), GROWING, 22, 2, QUICK
            ),
        ),
        (
            "theorem-4-horizon",
            lambda x: finite_arms.horizon_law(
                costing(algorithm_2, lambda p: 400.0 * p.mean_logarithm(0) ** x), GROWING, 22, 0, QUICK
            ),
        ),
        (
            "theorem-4-saving",
            lambda x: finite_arms.saving(
                costing(algorithm_1, lambda p: (p.logarithm / 30.0) ** x), algorithm_2, GROWING, 22, QUICK
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_policies_that_pull_more_with_a_wrong_exponent_are_noticed(
    name: str, measure: Callable[[float], Measured], direction: float
) -> None:
    found = measure(direction * effect(name))
    assert verdict(name, found) == "disagrees"
    rule: Any = claim_of(name).rule
    assert found.value == pytest.approx(rule.predicted + direction * effect(name), abs=0.6 * effect(name))


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_estimators_that_need_other_powers_are_noticed(direction: float) -> None:
    def needing(name: str, base: Callable[[dict[str, Any]], float]) -> Callable[..., int]:
        power = direction * effect(name)
        return lambda **given: math.ceil(samples_needed(**given) * base(given) ** power)

    name = "proposition-2-radius"
    assert verdict(name, mean_estimation.radius_law(needing(name, lambda g: g["tau"]), QUICK)) == "disagrees"
    name = "proposition-2-rho"
    found = mean_estimation.rho_law("paper", needing(name, lambda g: g["rho"]), QUICK)
    assert verdict(name, found) == "disagrees"
    name = "proposition-2-confidence"
    needs = needing(name, lambda g: -math.log(g["delta"]))
    assert verdict(name, mean_estimation.confidence_law("paper", 1.0, needs, QUICK)) == "disagrees"
    name = "proposition-2-confidence-certified"
    needs = needing(name, lambda g: -math.log(g["delta"]))
    assert verdict(name, mean_estimation.confidence_law("certified", 0.0, needs, QUICK)) == "disagrees"


# -- shares -----------------------------------------------------------------------------------------------------------


def spoilt(share: float, by: Callable[[float], float]) -> Callable[..., RoundedMean]:
    """An estimator that is wrong for this share of all coins; `by` says by how much, given the total."""

    def estimate(total: float, samples: int, *, coins: Coins, **named: Any) -> RoundedMean:
        found = replicable_mean(total, samples, coins=coins, **named)
        wrong = coins.start % 1000 < 1000.0 * share
        return found._replace(value=found.value + by(total)) if wrong else found

    return estimate


@pytest.mark.long
def test_estimates_that_are_off_or_not_shared_are_noticed() -> None:
    name = "proposition-2-accuracy"
    off = mean_estimation.accuracy("paper", spoilt(0.05 + effect(name), lambda total: 1.0), QUICK)
    assert verdict(name, off) == "disagrees"
    name = "proposition-2-replicable"
    apart = mean_estimation.agreement("paper", spoilt(0.1 + effect(name), lambda total: total), QUICK)
    assert verdict(name, apart) == "disagrees"
    name = "proposition-2-replicable-certified"
    # a tenth of the pairs differ already
    apart = mean_estimation.agreement("certified", spoilt(effect(name) / 0.9, lambda total: total), QUICK)
    assert verdict(name, apart) == "disagrees"


def test_too_little_exploration_is_noticed() -> None:
    """A promised gap at which the share of differing pairs is rho plus the effect, and for four times the gap less."""
    name = "warm-up-two-arms"

    def at(share: float, games: list[warm_up.Game]) -> warm_up.Game:
        return min(games, key=lambda game: abs(warm_up.predicted_to_differ(game) - share))

    games = [warm_up.Game(arms=2, rho=0.1, promised=0.1 + 0.001 * k) for k in range(300)]
    assert verdict(name, warm_up.kept_promise(at(0.1 + effect(name), games), QUICK)) == "disagrees"
    name = "warm-up-wrong-gap"
    games = [warm_up.Game(arms=2, rho=0.001 * k, promised=0.4) for k in range(5, 300)]
    assert verdict(name, warm_up.broken_promise((at(0.2 - effect(name), games),), QUICK)) == "disagrees"


def test_coins_that_are_not_shared_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(10**9))
    own = Coins.uniform

    def unshared(self: Coins, *address: Any, **named: Any) -> Any:
        return own(Coins(next(calls), self.start, self.count), *address, **named)

    monkeypatch.setattr(Coins, "uniform", unshared)
    for name, make in (("theorem-3-replicable", algorithm_1), ("theorem-4-replicable", algorithm_2)):
        assert verdict(name, finite_arms.replicable(make, GrowthProblem(rho=0.1, logarithm=30), QUICK)) == "disagrees"
    assert verdict("printed-algorithm-1-repaired", printed.worst_share(bd.MeanRounding, 2, QUICK)) == "disagrees"


def test_a_blow_up_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "printed-union-bound-repaired"

    def smaller(**named: Any) -> bd.RandomThreshold:
        """A bound of rho plus the effect: it goes with the root of the blow-up."""
        return bd.RandomThreshold(**named).relaxed(0.1 + effect(name))

    monkeypatch.setattr(printed, "RandomThreshold", smaller)
    assert verdict(name, printed.proved("certified", QUICK)) == "disagrees"


def test_the_printed_algorithm_is_the_repaired_one_but_for_its_batches() -> None:
    policy = printed.PrintedAlgorithm1(arms=2, horizon=10**5, rho=0.1)
    assert [batch.pulls for batch in policy.schedule.batches[:4]] == [2, 8, 23, 65]
    assert policy.schedule.batches[3].samples == 98
    assert not policy.guarantee().holds


# -- counts -----------------------------------------------------------------------------------------------------------


def hesitant(steps: int) -> bd.RandomThreshold:
    """Algorithm 2 with so many batches in the place of each, whose windows overlap more."""
    policy = undecided.made(30)
    blowup = policy.schedule.blowup
    width = 4.0 * policy.schedule.batches[0].span / blowup / math.sqrt(policy.schedule.batches[0].samples / blowup)
    batches, before = [], 0
    for k in range(2 * steps, 10 * steps):
        c = round(math.exp(k / steps))
        u = width / 2.0 / math.sqrt(c)
        samples = blowup * c
        span = samples * u / 2.0
        batches.append(Batch(samples - before, samples, span * (1.0 + 2.0 / math.sqrt(blowup)), span))
        before = samples
    return replace(policy, schedule=Schedule(blowup, tuple(batches)))


def test_policies_that_are_undecided_more_often_are_noticed() -> None:
    # one batch in the place of each is Algorithm 2 itself, up to rounding
    assert verdict("theorem-4-undecided", undecided.counted_windows([hesitant(1)], QUICK)) == "agrees"
    assert verdict("theorem-4-undecided", undecided.counted_windows([hesitant(4)], QUICK)) == "disagrees"
    assert verdict("theorem-4-undecided-played", undecided.counted_executions(hesitant(4), QUICK)) == "disagrees"


# -- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_a_price_with_another_exponent_is_noticed(direction: float) -> None:
    for name in ("conclusion-rho", "beyond-price-rho"):
        power = 1.0 + direction * effect(name) / 2.0

        def make(problem: beyond_prices.PricedProblem, power: float = power) -> Any:
            return beyond_prices.algorithm_2_certified(problem._replace(rho=problem.rho**power))

        assert verdict(name, beyond_prices.rho_price(make, "planted", QUICK)) == "disagrees"


def test_a_price_that_log_t_multiplies_is_noticed() -> None:
    """Algorithm 2 is one, and another with 0.3 more in the exponent is beyond what any policy needs."""
    name = "beyond-price-additive"
    assert verdict(name, beyond_prices.horizon_price(algorithm_2, beyond_prices.TINY, 11, QUICK)) == "disagrees"
    name = "beyond-price-horizon"

    def dearer(problem: beyond_prices.PricedProblem) -> Any:
        return algorithm_2(problem._replace(rho=0.04 * math.log(problem.horizon) ** (-effect(name) / 2.0)))

    assert verdict(name, beyond_prices.horizon_price(dearer, 0.1, 9, QUICK)) == "disagrees"


@pytest.mark.parametrize(("ratio", "expected"), [(55.0, "disagrees"), (70.0, "agrees")])
def test_a_house_policy_that_saves_less_is_noticed(
    ratio: float, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regrets of which one is so many times the other, each with an interval of a tenth."""

    def regret(make: Any, problem: Any, effort: Effort, seed: int = 0) -> Regret:
        mean = 1e4 * (1.0 if make is beyond_prices.house else ratio)
        return Regret(mean, (0.9 * mean, 1.1 * mean), mean)

    monkeypatch.setattr(beyond_prices, "regret_of", regret)
    for name, rival in (
        ("beyond-rivals-algorithm-1", algorithm_1),
        ("beyond-rivals-algorithm-2", algorithm_2),
    ):
        assert verdict(name, beyond_prices.against(rival, beyond_prices.house, QUICK)) == expected
