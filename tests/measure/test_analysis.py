"""Analyses: critical values, limits of every kind, differences, stages, which pulls are used, checks, and the words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import product
from typing import Any, get_args

import jsonschema
import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, ndtr

import banditto as bd
from banditto.core.errors import ContractError, InvalidArgument
from banditto.core.provenance import provenance
from banditto.core.rewards import Rewards
from banditto.core.text import outwards
from banditto.engine.observations import DecidedBy, Flow, Observations, SeenBatch, State
from banditto.live.analyse import with_checks
from banditto.measure.analysis import critical_values, stages
from banditto.measure.analysis.analysing import analysis_of
from banditto.measure.analysis.analysis import Analysis
from banditto.measure.analysis.checks import ALARM, assignment_check, equal_loss, loss_check
from banditto.measure.analysis.limits import (
    BernsteinLimits,
    BetaMixture,
    BinomialLimits,
    ChernoffLimits,
    Limits,
    NormalLimits,
    NormalMixture,
    SubgaussianLimits,
    Together,
    difference,
)
from banditto.measure.analysis.planned import limits_for
from tests.lazily import Lazily

SHARES = (1e-6, 1e-3, 0.02, 0.05, 0.3)
PLACES = np.array([0.0, 0.5, 1.0, 1.645, 2.0, 2.5, 3.0, 4.0, 6.0])
RATES = [0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.62, 0.8, 0.95, 0.999, 1.0]


# -- critical values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", SHARES)
def test_critical_values_of_one_arm_and_of_two(share: float) -> None:
    assert critical_values.one_sided(share) == pytest.approx(stats.norm.isf(share), rel=1e-12)
    assert critical_values.each(share, 1) == pytest.approx(stats.norm.isf(share / 2), rel=1e-12)
    assert critical_values.all_pairs(share, 2) == pytest.approx(stats.norm.isf(share / 2), rel=1e-12)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("arms", [2, 3, 10, 50])
def test_each_is_sidaks(share: float, arms: int) -> None:
    inside = 1.0 - 2.0 * stats.norm.sf(critical_values.each(share, arms))
    assert inside**arms == pytest.approx(1.0 - share, abs=1e-12)


@pytest.mark.parametrize("share", [1e-3, 0.02, 0.05, 0.3])
@pytest.mark.parametrize("arms", [3, 4, 10, 40])
def test_all_pairs_is_tukeys_range(share: float, arms: int) -> None:
    wanted = stats.studentized_range.isf(share, arms, np.inf) / math.sqrt(2.0)
    assert wanted * (1.0 - 1e-7) <= critical_values.all_pairs(share, arms) <= wanted * (1.0 + 5e-5)


@pytest.mark.parametrize("share", [1e-4, 1e-3, 0.02, 0.3])
@pytest.mark.parametrize("arms", [2, 3, 10])
def test_pairs_beside_means_need_less_and_are_tukeys_if_means_are_anywhere(share: float, arms: int) -> None:
    tukey = critical_values.all_pairs(share, arms)
    assert critical_values.pairs_beside(share, arms, 11.0) == pytest.approx(tukey, rel=5e-5)
    before = 0.0
    for within in (2.0, 2.5, 3.0, 3.5):
        found = critical_values.pairs_beside(share, arms, within)
        assert before < found < min(tukey, math.sqrt(2.0) * within)  # beyond that there is nothing inside
        before = found


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("share", [1e-4, 0.02, 0.3])
def test_one_arm_and_fresh_pulls_are_two_normal_variables(share: float, weight: float) -> None:
    critical = critical_values.each_and_fresh(share, 1, weight)
    root = math.sqrt(1.0 - weight**2)
    law = stats.multivariate_normal([0.0, 0.0], [[1.0, root], [root, 1.0]])
    inside = law.cdf([critical, critical], lower_limit=[-critical, -critical], rng=np.random.default_rng(1))
    assert inside == pytest.approx(1.0 - share, rel=1e-4 * share + 1e-6)


def test_fresh_pulls_that_weigh_nothing_or_all() -> None:
    for arms, share in product((1, 2, 5), SHARES):
        assert critical_values.each_and_fresh(share, arms, 0.0) == critical_values.each(share, arms)
        alone, added = (critical_values.each(share, number) for number in (arms, arms + 1))
        assert alone < critical_values.each_and_fresh(share, arms, 0.3) < critical_values.each(share, 2 * arms)
        nearly = critical_values.each_and_fresh(share, arms, 1.0 - 1e-12)  # all arms' statements are F's
        assert nearly == pytest.approx(added, rel=1e-3)


def test_families_exceed_their_critical_values_as_often_as_they_should() -> None:
    """400,000 draws, 5.3 standard errors: 5e-7 for all four families; 30.8% instead of 30% would be seen."""
    noise, runs, share = np.random.default_rng(4), 400_000, 0.3
    arms, weight = 4, 0.6
    normal, fresh = noise.standard_normal((runs, arms)), noise.standard_normal((runs, 1))
    apart = np.ptp(normal, axis=1) / math.sqrt(2.0)
    both = np.maximum(np.abs(normal), np.abs(math.sqrt(1 - weight**2) * normal + weight * fresh)).max(axis=1)
    found = {
        "each": (np.abs(normal).max(axis=1), critical_values.each(share, arms)),
        "all pairs": (apart, critical_values.all_pairs(share, arms)),
        "fresh": (both, critical_values.each_and_fresh(share, arms, weight)),
    }
    inside = np.where(np.abs(normal).max(axis=1) <= 2.0, apart, 0.0)
    found["pairs beside means"] = (inside, critical_values.pairs_beside(share, arms, 2.0))
    for name, (values, critical) in found.items():
        exceeded = float((values > critical).mean())
        assert abs(exceeded - share) < 5.3 * math.sqrt(share * (1 - share) / runs), name


def test_critical_values_rise_with_arms_and_fall_with_the_share() -> None:
    families: list[Callable[[float, int], float]] = [
        critical_values.each,
        critical_values.all_pairs,
        lambda share, arms: critical_values.each_and_fresh(share, arms, 0.7),
    ]
    for family in families:
        for arms in (2, 3, 7):
            values = [family(share, arms) for share in SHARES]
            assert values == sorted(values, reverse=True)
            assert len(set(values)) == len(values)
        for share in SHARES:
            values = [family(share, arms) for arms in (2, 3, 4, 8, 16, 64)]
            assert values == sorted(values)


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5, 17, 40])
def test_binomial_limits_never_cover_less_than_they_should(count: int) -> None:
    """Exactly, by all outcomes: a lower limit exceeds the rate with probability P(G > x) at most, as an upper one."""
    limits = [BinomialLimits(successes, count) for successes in range(count + 1)]
    lower, upper = (
        np.array([getattr(one, side)(PLACES) for one in limits]) for side in ("lower", "upper")
    )  # (x, place)
    for rate in RATES:
        chances = stats.binom.pmf(np.arange(count + 1), count, rate)[:, np.newaxis]
        tail = ndtr(-PLACES) * (1.0 + 1e-9)
        assert np.all((chances * (lower > rate + 1e-12)).sum(axis=0) <= tail)
        assert np.all((chances * (upper < rate - 1e-12)).sum(axis=0) <= tail)
    assert lower[0].max() == 0.0
    assert upper[-1].min() == 1.0


def test_binomial_limits_are_those_of_clopper_and_pearson() -> None:
    for successes, count in ((0, 9), (1, 9), (5, 9), (9, 9), (37, 1000)):
        found = BinomialLimits(successes, count)
        wanted = stats.binomtest(successes, count).proportion_ci(0.95, "exact")
        place = np.array([stats.norm.isf(0.025)])
        assert found.mean == successes / count
        assert (found.lower(place)[0], found.upper(place)[0]) == pytest.approx((wanted.low, wanted.high), rel=1e-9)


def test_normal_limits_are_exact_and_subgaussian_ones_conservative() -> None:
    """Of Gaussian rewards, in closed form: the mean strays by `reach`, which is so many standard errors."""
    for count, sigma in ((1, 1.0), (16, 0.5), (10**6, 3.0)):
        normal, other = NormalLimits(2.0 * count, count, sigma), SubgaussianLimits(2.0 * count, count, sigma)
        errors = (2.0 - normal.lower(PLACES)) * math.sqrt(count) / sigma
        assert errors == pytest.approx(PLACES, rel=1e-6, abs=1e-9)
        assert normal.upper(PLACES) - 2.0 == pytest.approx(2.0 - normal.lower(PLACES))
        errors = (2.0 - other.lower(PLACES)) * math.sqrt(count) / sigma
        assert np.all(ndtr(-errors) <= ndtr(-PLACES))
        assert other.upper(PLACES) - 2.0 == pytest.approx(2.0 - other.lower(PLACES))


THIRDS = [
    (1 / 3, 1 / 3, 1 / 3),
    (0.9, 0.09, 0.01),
    (0.0, 0.5, 0.5),
    (0.5, 0.0, 0.5),
    (0.98, 0.02, 0.0),
    (0.2, 0.6, 0.2),
]


@pytest.mark.parametrize("kind", [BernsteinLimits, ChernoffLimits])
@pytest.mark.parametrize("count", [1, 2, 3, 12, 30])
def test_limits_of_rewards_between_the_ends_are_conservative(kind: type, count: int) -> None:
    """Exactly, by all numbers of rewards of 0, 1/2 and 1."""
    outcomes = [(half, one) for half in range(count + 1) for one in range(count + 1 - half)]
    lower, upper = [], []
    for half, one in outcomes:
        total, squares = half / 2 + one, half / 4 + one
        found: Limits = kind(total, squares, count) if kind is BernsteinLimits else kind(total, count)
        lower.append(found.lower(PLACES))
        upper.append(found.upper(PLACES))
    counts = np.array([(count - half - one, half, one) for half, one in outcomes])
    tail = ndtr(-PLACES) * (1.0 + 1e-9)
    for law in THIRDS:
        chances = stats.multinomial.pmf(counts, count, law)[:, np.newaxis]
        mean = law[1] / 2 + law[2]
        assert np.all((chances * (np.array(lower) > mean + 1e-12)).sum(axis=0) <= tail)
        assert np.all((chances * (np.array(upper) < mean - 1e-12)).sum(axis=0) <= tail)


ANY_TIME = np.array([math.log(1 / 0.3), math.log(1 / 0.05)])


@pytest.mark.parametrize(("parts", "most"), [(1, 60), (2, 30)])
def test_a_beta_mixture_is_hardly_ever_wrong_at_any_time(parts: int, most: int) -> None:
    """Exactly, path by path: the probability that a truth is excluded at any of the first numbers of pulls.

    Rewards are 0 and 1, or means of two of these, whose mixture is of rewards between the ends.
    """
    limits = {}
    for count in range(1, most + 1):
        for ones in range(parts * count + 1):
            found = BetaMixture(ones / parts, count)
            limits[count, ones] = found.lower(ANY_TIME), found.upper(ANY_TIME)
    for rate in (0.01, 0.1, 0.3, 0.5, 0.9):
        step = stats.binom.pmf(np.arange(parts + 1), parts, rate)
        for place, allowed in ((0, 0.3), (1, 0.05)):
            alive, gone = np.array([1.0]), 0.0
            for count in range(1, most + 1):
                alive = np.convolve(alive, step)
                out = np.array(
                    [
                        limits[count, ones][0][place] > rate or limits[count, ones][1][place] < rate
                        for ones in range(parts * count + 1)
                    ]
                )
                gone += float(alive[out].sum())
                alive = np.where(out, 0.0, alive)
            assert gone <= allowed
            assert gone > 0.0 or parts == 2  # there are such paths


def test_a_normal_mixture_is_hardly_ever_wrong_at_any_time() -> None:
    """4,000 paths of 1,000 pulls: 1,353 or more of them stray with probability 1e-7 if 30% may."""
    noise, sigma, mean = np.random.default_rng(6), 0.5, 0.2
    place = ANY_TIME[:1]
    sums = np.cumsum(noise.normal(mean, sigma, (4000, 1000)), axis=1)
    strayed = np.zeros(4000, dtype=np.bool_)
    for count in range(1, 1001):
        found = NormalMixture(0.0, count, sigma, prior=30.0)
        reach = float(found.upper(place)[0])
        assert found.lower(place)[0] == -reach
        strayed |= np.abs(sums[:, count - 1] / count - mean) > reach
    assert 0 < int(strayed.sum()) < stats.binom.isf(1e-7, 4000, 0.3)


KINDS: dict[str, Limits] = {
    "normal": NormalLimits(7.0, 20, 0.5),
    "binomial": BinomialLimits(7, 20),
    "no success": BinomialLimits(0, 20),
    "no failure": BinomialLimits(20, 20),
    "bernstein": BernsteinLimits(70.0, 40.0, 200),
    "one reward": BernsteinLimits(0.3, 0.09, 1),
    "chernoff": ChernoffLimits(7.25, 20),
    "chernoff, nothing": ChernoffLimits(0.0, 20),
    "chernoff, all": ChernoffLimits(20.0, 20),
    "subgaussian": SubgaussianLimits(7.0, 20, 0.5),
    "beta": BetaMixture(7.5, 20),
    "beta, nothing": BetaMixture(0.0, 20),
    "normal mixture": NormalMixture(7.0, 20, 0.5, 4.0),
}


@pytest.mark.parametrize("name", KINDS)
def test_limits_nest_around_the_mean(name: str) -> None:
    one = KINDS[name]
    places = np.linspace(0.01, 8.0, 200)
    lower, upper = one.lower(places), one.upper(places)
    assert np.all(np.diff(lower) <= 1e-15)
    assert np.all(np.diff(upper) >= -1e-15)
    assert np.all(lower <= one.mean)
    assert np.all(upper >= one.mean)


@pytest.mark.parametrize("count", [10**9, 10**12, 10**14])
@pytest.mark.parametrize("rate", [0.5, 0.01, 0.9999])
def test_limits_of_very_many_rewards_are_the_normal_ones(count: int, rate: float) -> None:
    """To a percent, however large the beta function's arguments; Chernoff's are n kl = -log P(G > x), likewise."""
    deviation = math.sqrt(rate * (1.0 - rate) / count)
    exact, loose = BinomialLimits(round(rate * count), count), ChernoffLimits(rate * count, count)
    for side in ("lower", "upper"):
        reach = np.abs(getattr(exact, side)(PLACES[1:]) - rate) / deviation
        assert reach == pytest.approx(PLACES[1:], rel=0.01)
        reach = np.abs(getattr(loose, side)(PLACES[1:]) - rate) / deviation
        assert reach == pytest.approx(np.sqrt(-2.0 * stats.norm.logsf(PLACES[1:])), rel=0.01)


def test_which_limits_rewards_allow() -> None:
    words = {
        (kind, binary, squares): limits_for(Rewards.of(kind, 0.5), binary, squares).words
        for kind, binary, squares in product(("bounded", "gaussian", "subgaussian"), (True, False), (True, False))
    }
    for binary, squares in product((True, False), repeat=2):
        assert words["gaussian", binary, squares] == "normal"
        assert words["subgaussian", binary, squares] == "subgaussian"
        assert words["bounded", True, squares] == "Clopper-Pearson"
    assert words["bounded", False, True] == "empirical Bernstein"
    assert words["bounded", False, False] == "Chernoff"


# -- differences -------------------------------------------------------------------------------------------------------

HALF = math.sqrt(0.5)
TOGETHER = {
    "equal": Together(p=HALF, q=HALF, line=2.4, first=2.6, second=2.6),
    "fresh": Together(p=0.2, q=math.sqrt(0.96), line=2.5, first=2.8, second=2.5),
    "steep": Together(p=0.96, q=0.28, line=2.2, first=2.8, second=3.5),
    "a corner": Together(p=HALF, q=HALF, line=9.0, first=2.6, second=2.0),
}
PAIRS: dict[str, tuple[Limits, Limits]] = {
    "normal": (NormalLimits(60.0, 100, 0.5), NormalLimits(25.0, 50, 0.5)),
    "binomial": (BinomialLimits(60, 100), BinomialLimits(25, 50)),
    "few": (BinomialLimits(3, 4), BinomialLimits(1, 4)),
    "none": (BinomialLimits(0, 30), BinomialLimits(1, 1000)),
    "bernstein": (BernsteinLimits(600.0, 450.0, 1000), BernsteinLimits(2500.0, 1500.0, 5000)),
    "chernoff": (ChernoffLimits(60.5, 100), ChernoffLimits(25.25, 50)),
    "subgaussian": (SubgaussianLimits(60.0, 100, 0.5), SubgaussianLimits(25.0, 50, 0.5)),
}


def by_brute_force(one: Limits, other: Limits, together: Together) -> tuple[float, float]:
    """The furthest differences at a fine grid of places on the edge of what both may have."""
    start = (together.line - together.q * together.second) / together.p
    x = np.linspace(min(start, together.first), together.first, 40_001)
    y = np.minimum((together.line - together.p * x) / together.q, together.second)
    return float(np.min(one.lower(x) - other.upper(y))), float(np.max(one.upper(x) - other.lower(y)))


@pytest.mark.parametrize("shape", TOGETHER)
@pytest.mark.parametrize("name", PAIRS)
def test_a_difference_is_that_of_brute_force_and_never_narrower(name: str, shape: str) -> None:
    one, other = PAIRS[name]
    together = TOGETHER[shape]
    low, high = difference(one, other, together)
    least, most = by_brute_force(one, other, together)
    assert least - 0.01 * (most - least) <= low <= least + 1e-12
    assert most - 1e-12 <= high <= most + 0.01 * (most - least)
    turned = difference(other, one, together.turned())
    assert turned == pytest.approx((-high, -low), abs=0.005 * (most - least))


@pytest.mark.parametrize(("first", "second"), [((30.0, 40), (9.5, 25)), ((0.0, 8), (8.0, 8)), ((1.0, 1), (400.0, 900))])
def test_a_difference_at_any_time(first: tuple[float, int], second: tuple[float, int]) -> None:
    """The product of both evidences, over a grid of both means: whatever it does not exclude is inside."""
    one, other, line = BetaMixture(*first), BetaMixture(*second), math.log(2 / 0.05)
    together = Together(p=1.0, q=1.0, line=line, first=line - other.least, second=line - one.least)
    low, high = difference(one, other, together)
    means = np.linspace(1e-9, 1.0 - 1e-9, 2001)
    both = one._evidence(means)[:, np.newaxis] + other._evidence(means)[np.newaxis, :]
    apart = (means[:, np.newaxis] - means[np.newaxis, :])[both <= line]
    assert low - 1e-9 <= apart.min() <= low + 0.01 * (high - low) + 1e-3
    assert high - 0.01 * (high - low) - 1e-3 <= apart.max() <= high + 1e-9


def test_a_difference_of_equally_many_gaussian_rewards_is_the_textbooks() -> None:
    one, other = NormalLimits(60.0, 100, 0.5), NormalLimits(50.0, 100, 0.5)
    low, high = difference(one, other, Together(p=HALF, q=HALF, line=1.96, first=2.3, second=2.3))
    reach = 1.96 * 0.5 * math.sqrt(2 / 100)
    assert (low, high) == pytest.approx((0.1 - reach, 0.1 + reach), abs=0.01 * reach)
    assert low <= 0.1 - reach
    assert high >= 0.1 + reach


# -- what was seen, made up --------------------------------------------------------------------------------------------


def one_batch(pulls: int = 8, arms: int = 2, after: int = 1, **options: Any) -> bd.ExploreThenCommit:
    """All arms so often, then the best of them for the rest, which is so long."""
    return bd.ExploreThenCommit(arms=arms, horizon=arms * pulls + after, rho=0.9, gap=0.9, pulls=pulls, **options)


def observed(
    policy: Any,
    *batches: tuple[Sequence[int], Sequence[float]],
    squares: Sequence[Sequence[float]] | None = None,
    names: Sequence[str] = (),
    rewards: Rewards | None = None,
    ends: tuple[float, float] | None = (0.0, 1.0),
    binary: bool = True,
    winner: int | None = None,
    decided_by: DecidedBy | None = None,
    state: State = "finished",
    flow: Flow | None = None,
    warnings: tuple[str, ...] = (),
    horizon: int | None = None,
) -> Observations:
    seen = tuple(
        SeenBatch(tuple(counts), tuple(totals), None if squares is None else tuple(squares[number]))
        for number, (counts, totals) in enumerate(batches)
    )
    arms = len(batches[0][0])
    return Observations(
        names=tuple(names) or tuple("ABCDEFGH"[:arms]),
        policy=policy,
        horizon=horizon or policy.horizon,
        rewards=rewards or Rewards.of("bounded", 0.5),
        batches=seen,
        pulls=tuple(sum(batch.counts[arm] for batch in seen) for arm in range(arms)),
        ends=ends,
        binary=binary,
        winner=winner,
        decided_by=decided_by,
        state=state,
        flow=flow,
        warnings=warnings,
    )


def holds(found: Analysis, means: Sequence[float]) -> bool:
    """Whether all intervals cover the truth."""
    known = dict(zip(found.observations.names, means, strict=True))
    return all(one.low - 1e-12 <= known[one.name] <= one.high + 1e-12 for one in found.arms) and all(
        one.low - 1e-12 <= known[one.arm] - known[one.against] <= one.high + 1e-12
        and (
            one.ratio is None
            or known[one.against] == 0.0
            or one.ratio_low - 1e-12 <= known[one.arm] / known[one.against] <= one.ratio_high + 1e-12
        )
        for one in found.differences
    )


GRID = [0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98]


@pytest.mark.parametrize("confidence", [0.95, 0.7])
def test_one_batch_of_two_arms_covers_all_at_once(confidence: float) -> None:
    """Exactly, by all pairs of totals and over a grid of rates: both means, their difference and their ratio."""
    pulls = 10
    policy = one_batch(pulls)
    tables = {
        totals: analysis_of(observed(policy, ((pulls, pulls), totals), state="stopped"), confidence)
        for totals in product(range(pulls + 1), repeat=2)
    }
    assert tables[3, 7].observations.winner is None
    assert tables[3, 7].arms[tables[3, 7].compared].name == "B"
    for rates in product(GRID, repeat=2):
        chances = [stats.binom.pmf(np.arange(pulls + 1), pulls, rate) for rate in rates]
        covered = math.fsum(
            chances[0][first] * chances[1][second] for (first, second), found in tables.items() if holds(found, rates)
        )
        assert covered >= confidence, rates


@pytest.mark.parametrize("confidence", [0.95, 0.7])
def test_a_commit_and_fresh_pulls_cover_all_at_once(confidence: float) -> None:
    """Exactly, by all totals before and after a commit to the arm that led, over a grid of rates."""
    pulls, after = 5, 8
    policy = one_batch(pulls, after=after)
    tables = {}
    for first, second, fresh in product(range(pulls + 1), range(pulls + 1), range(after + 1)):
        won = int(second > first)
        rest = ((after, 0), (fresh, 0)) if won == 0 else ((0, after), (0, fresh))
        seen = observed(policy, ((pulls, pulls), (first, second)), rest, winner=won, decided_by="lead")
        tables[first, second, fresh] = analysis_of(seen, confidence)
    assert {found.coverage.design for found in tables.values()} == {"fresh"}
    for rates in product(GRID[::2], repeat=2):
        chances = [stats.binom.pmf(np.arange(pulls + 1), pulls, rate) for rate in rates]
        later = [stats.binom.pmf(np.arange(after + 1), after, rate) for rate in rates]
        covered = math.fsum(
            chances[0][first] * chances[1][second] * later[int(second > first)][fresh]
            for (first, second, fresh), found in tables.items()
            if holds(found, rates)
        )
        assert covered >= confidence, rates


# -- stages ------------------------------------------------------------------------------------------------------------


def described(policy: Any) -> list[int]:
    """The pulls of each arm in play, batch by batch, as the policy describes them."""
    return [int(row["pulls per arm"]) for row in policy.describe().to_dict()["batches"]]


STAGED: Lazily[Any] = Lazily(
    {
        "one-cut": lambda: bd.OneCut(arms=3, horizon=10**5, rho=0.3, gap=0.1),
        "early-cut": lambda: bd.EarlyCut(arms=2, horizon=10**5, rho=0.3, gap=0.1),
        "a ladder": lambda: bd.CertifiedElimination(arms=3, horizon=10**6, rho=0.3),
        "a ladder for a gap": lambda: bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.3, gap=0.1),
        "random-threshold": lambda: bd.RandomThreshold(arms=3, horizon=10**6, rho=0.3),
        "mean-rounding": lambda: bd.MeanRounding(arms=3, horizon=10**7, rho=0.3),
        "explore-then-commit": lambda: bd.ExploreThenCommit(arms=3, horizon=10**5, rho=0.3, gap=0.2),
    }
)


@pytest.mark.parametrize("name", STAGED)
def test_stages_share_the_error_and_keep_their_distance(name: str) -> None:
    policy = STAGED[name]
    found = stages.stages_of(policy, policy.horizon)
    sums = np.cumsum(described(policy)).tolist()
    counts = {*sums, *np.cumsum(list(stages._undecided(policy))).tolist()}
    assert math.fsum(stage.share for stage in found) == pytest.approx(1.0, abs=1e-12)
    pulls = [stage.pulls for stage in found]
    assert set(pulls) <= counts
    assert pulls[0] == min(counts)
    assert max(counts) < 1.25 * pulls[-1]
    assert pulls == sorted(set(pulls))
    for passed_over in counts - set(pulls):  # another is not far below
        assert passed_over < 1.6 * max(kept for kept in pulls if kept < passed_over)
    for stage in found:
        rest = max(0, policy.horizon - policy.arms * stage.pulls)
        assert stage.after == (0 if name == "early-cut" else rest)
        assert stage.fresh_weight == pytest.approx(
            math.sqrt(stage.pulls / (stage.pulls + stage.after)) if stage.after >= stage.pulls else 0.0
        )
    shares = [stage.share for stage in found]
    if policy.name in ("one-cut", "explore-then-commit"):
        assert shares == [1.0]
    elif getattr(policy, "gap", None) is None:
        assert len(set(shares)) == 1
    else:
        assert shares == sorted(shares)


def test_early_cut_passes_over_looks_that_are_close_together() -> None:
    policy = STAGED["early-cut"]
    assert len(stages.stages_of(policy, policy.horizon)) < len(described(policy)) / 2


def test_looks_that_are_close_together_fall_back_on_one_just_below() -> None:
    assert stages._spaced([7]) == [7]
    assert stages._spaced([10, 100, 1000, 1020]) == [10, 100, 1000]  # not 1020: then 1000 would have only 100 below it
    assert stages._spaced([100, 110, 121, 133, 146]) == [100, 146]
    assert stages._spaced([100, 120, 144, 173, 207]) == [100, 144, 207]  # the last is kept where the next is close
    assert stages._spaced([100, 125, 200]) == [100, 125, 200]


def test_who_has_stages() -> None:
    assert stages.has_stages(STAGED["one-cut"])
    points = [[1.0, 0.0], [0.0, 1.0]]
    others: list[Any] = [bd.UCB1(), bd.CertifiedLinear(actions=points, horizon=10**6, rho=0.3)]
    assert not any(map(stages.has_stages, others))


@pytest.mark.parametrize("coupled", [True, False])
def test_a_stage_with_a_smaller_share_has_larger_critical_values(coupled: bool) -> None:
    before = stages.Critical(0.0, 0.0, 0.0)
    for share in (1.0, 0.5, 0.1, 0.001):
        stage = stages.PullStage(pulls=100, after=50, share=share)
        found = stages.critical_at(stage, 3, 0.05, "sequence", coupled)
        assert (found.mean > before.mean, found.pair > before.pair) == (True, True)
        before = found


def test_normal_families_need_less_than_a_sum_of_errors() -> None:
    for arms, after in product((2, 3, 10), (0, 1000)):
        stage = stages.PullStage(pulls=100, after=after, share=0.3)
        alone, added = (stages.critical_at(stage, arms, 0.05, "sequence", coupled) for coupled in (True, False))
        assert alone.mean <= added.mean * (1 + 2e-5)
        assert alone.pair <= added.pair * (1 + 2e-5)


# -- which pulls are used ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "data"), [(8, "after"), (20, "after"), (7, "first"), (1, "first")])
def test_fresh_pulls_are_used_where_there_are_more_of_them(after: int, data: str) -> None:
    policy = one_batch(8, after=after)
    seen = observed(policy, ((8, 8), (2, 7)), ((0, after), (0, 1)), winner=1, decided_by="lead")
    found = analysis_of(seen)
    winner = found.arms[1]
    assert (winner.data, winner.used, winner.pulls) == (data, after if data == "after" else 8, 8 + after)
    assert winner.estimate == (1 / after if data == "after" else 7 / 8)
    assert (found.arms[0].data, found.arms[0].used) == ("first", 8)
    assert found.coverage.design == ("fresh" if data == "after" else "one batch")
    assert found.differences[0].estimate == winner.estimate - 2 / 8


def race() -> tuple[bd.RandomThreshold, list[int]]:
    """Three arms in batches; how often each is pulled in each of these."""
    policy = bd.RandomThreshold(arms=3, horizon=1000, rho=0.9, sigma=0.1, rewards="gaussian")
    return policy, described(policy)


def test_an_arm_that_was_dropped_keeps_its_last_stage() -> None:
    policy, (first, second, *_) = race()
    batches = [((first,) * 3, (0.9 * first, 0.8 * first, 0.1 * first)), ((second, second, 0), (second, second, 0.0))]
    gaussian: dict[str, Any] = {"rewards": Rewards.of("gaussian", 0.1), "ends": None, "binary": False}
    found = analysis_of(observed(policy, *batches, state="running", **gaussian))
    assert [arm.used for arm in found.arms] == [first + second, first + second, first]
    assert found.arms[2].estimate == pytest.approx(0.1)
    assert found.arms[found.compared].name == "A"
    both = {one.against: one for one in found.differences}
    assert both["B"].estimate == pytest.approx(0.1 * first / (first + second))
    assert both["C"].estimate == pytest.approx(0.8)  # at the stage that both came to
    assert found.coverage.design == "looks"
    assert found.winner is None
    undecided = analysis_of(observed(policy, batches[0], state="running", **gaussian))
    # the stage's own limits, whatever came after it
    assert (undecided.arms[2].low, undecided.arms[2].high) == (found.arms[2].low, found.arms[2].high)


def test_a_final_choice_among_those_who_are_left_is_no_stage() -> None:
    """Its size depends on how many are left, so that no protocol fixes it; pulls after it are fresh."""
    policy = STAGED["a ladder"]
    pulls = described(policy)
    tests = [((n, n, n), (n // 2, n // 2, n // 2)) for n in pulls]
    final = ((77, 77, 77), (40, 30, 20))
    rest = ((10**6, 0, 0), (500_000, 0, 0))
    found = analysis_of(observed(policy, *tests, final, rest, winner=0, decided_by="coin"))
    assert [(arm.used, arm.data) for arm in found.arms] == [(10**6, "after"), *[(sum(pulls), "first")] * 2]
    short = analysis_of(observed(policy, *tests[:2], final, rest, winner=0, decided_by="coin"))  # no third one fitted
    assert [arm.used for arm in short.arms] == [10**6, *[sum(pulls[:2])] * 2]


def test_observations_that_no_policy_makes() -> None:
    policy = one_batch(8, after=20)
    both = ((8, 8), (2, 7))
    with pytest.raises(ContractError, match="compared arms after it had committed"):
        analysis_of(observed(policy, both, ((0, 4), (0, 4)), both, winner=1))
    with pytest.raises(InvalidArgument, match="^source: got no complete batch"):
        analysis_of(observed(policy, ((7, 7), (2, 7))))
    with pytest.raises(InvalidArgument, match="^source: got no rewards, allowed: rewards of two arms or more$"):
        analysis_of(observed(policy, ((0, 0), (0, 0))))
    with pytest.raises(InvalidArgument, match="^source: got rewards of B alone"):
        analysis_of(observed(policy, ((0, 8), (0, 0))))


def test_rounds_are_analysed_at_any_time() -> None:
    seen = observed(bd.UCB1(), ((90, 10, 0), (60, 2, 0)), horizon=100)
    found = analysis_of(seen)
    assert (found.coverage.design, found.coverage.method) == ("any time", "beta mixture")
    assert [arm.data for arm in found.arms] == ["all", "all", "none"]
    assert [one.against for one in found.differences] == ["B"]
    assert found.arms[2].to_dict()["interval"] is None
    assert "never pulled" in found.table()
    gaussian: dict[str, Any] = {"rewards": Rewards.of("gaussian", 2.0), "ends": None, "binary": False}
    other = analysis_of(observed(bd.UCB1(sigma=2.0), ((90, 10), (60, 2)), horizon=100, **gaussian))
    assert (other.coverage.method, other.differences[0].ratio) == ("normal mixture", None)
    assert "subgaussian with sigma 2" in other.statement


# -- checks ------------------------------------------------------------------------------------------------------------


def test_arms_are_handed_out_as_planned() -> None:
    good = assignment_check(("A", "B"), (1000, 1000), (1000, 1000))
    assert (good.verdict, good.p_value) == ("ok", None)
    assert good.line == "assignment: ok; slots were handed out as planned (A 1,000, B 1,000)"
    bad = assignment_check(("A", "B"), (999, 1000), (1000, 1000))
    assert bad.line == "assignment: ALARM; slots were not handed out as planned: A 999 instead of 1,000"


@pytest.mark.parametrize(
    ("handed", "lost"), [((2000, 2000), (40, 55)), ((50, 70), (0, 9)), ((10, 10), (10, 0)), ((5, 900), (1, 1))]
)
def test_loss_of_two_arms_is_fishers(handed: tuple[int, int], lost: tuple[int, int]) -> None:
    table = np.array([[lost[0], lost[1]], [handed[0] - lost[0], handed[1] - lost[1]]])
    sides = [stats.fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
    assert equal_loss(handed, lost) == pytest.approx(min(1.0, 2 * min(sides)), rel=1e-8)
    assert equal_loss(handed, lost) == pytest.approx(equal_loss(handed[::-1], lost[::-1]), rel=1e-8)


def test_no_loss_and_loss_of_all() -> None:
    assert loss_check(("A", "B"), (10, 10), (0, 0)).line == "lost rewards: ok; no reward is missing"
    assert equal_loss((10, 10), (10, 10)) == 1.0
    assert equal_loss((10, 0, 12), (3, 0, 2)) == min(1.0, 1.5 * equal_loss((10, 12), (3, 2)) * 2)


@pytest.mark.parametrize(("handed", "rate"), [((60, 60), 0.3), ((80, 20), 0.1), ((15, 25, 20), 0.4)])
def test_false_alarms_of_equal_loss_are_rare(handed: tuple[int, ...], rate: float) -> None:
    """Exactly, by all numbers of lost rewards, at the alarm's own level and at a larger one."""
    chances = [stats.binom.pmf(np.arange(out + 1), out, rate) for out in handed]
    alarms = dict.fromkeys((ALARM, 0.05), 0.0)
    numbers: list[Sequence[int]] = [range(out + 1) for out in handed]
    for lost in product(*numbers):
        chance = math.prod(float(one[gone]) for one, gone in zip(chances, lost, strict=True))
        if chance > 1e-9 and any(lost):
            found = equal_loss(handed, lost)
            for level in alarms:
                alarms[level] += chance * (found < level)
    assert all(alarmed <= level for level, alarmed in alarms.items())
    assert alarms[0.05] > 0.0


def test_loss_in_one_arm_is_found() -> None:
    found = loss_check(("old", "new"), (2000, 2000), (40, 200))
    assert found.verdict == "alarm"
    assert found.p_value is not None
    assert found.p_value < 1e-20
    assert "old 40 of 2,000, new 200 of 2,000" in found.line
    same = loss_check(("old", "new"), (2000, 2000), (40, 50))
    assert (same.verdict, same.line[:16]) == ("ok", "lost rewards: ok")
    third = loss_check(("a", "b", "c"), (2000, 2000, 2000), (40, 40, 200))
    assert third.verdict == "alarm"


# -- the result --------------------------------------------------------------------------------------------------------


def decided(totals: tuple[int, int] = (500, 700), **options: Any) -> Analysis:
    """1,000 pulls of each of two arms, and as many after a commit to the second one."""
    policy = one_batch(1000, after=1000)
    seen = observed(policy, ((1000, 1000), totals), ((0, 1000), (0, 700)), winner=1, **options)
    return with_checks(analysis_of(seen))


def test_the_headline_says_who_won_by_what_and_by_how_much() -> None:
    found = decided(decided_by="lead")
    low, high = found.better_by or (0.0, 0.0)
    assert 0.1 < low < 0.2 < high < 0.3
    assert (math.floor(100 * low), math.ceil(100 * high)) == (14, 26)
    assert found.headline == "B won: 70.00% of 1,000; 14 to 26 points better than the next"
    coin = decided((690, 700), decided_by="coin")
    low, high = coin.better_by or (0.0, 0.0)
    assert low < 0.0 < high
    worst, best, _ = outwards(-100 * high, -100 * low, 2)
    assert coin.headline == (
        "B was chosen by the shared rule, because no arm led by enough: 70.00% of 1,000; between "
        f"{best} points worse and {worst.lstrip('-')} points better than the next"
    )
    worse = decided((950, 900), decided_by="coin")
    low, high = worse.better_by or (0.0, 0.0)
    assert high < 0.0
    least, most, _ = outwards(-100 * high, -100 * low, 2)
    assert worse.headline.endswith(f"; {least} to {most} points worse than the best")
    assert decided().headline.startswith("B won: 70.00% of 1,000; ")  # the policy does not tell by what


def test_the_headline_without_a_winner_and_of_other_rewards() -> None:
    policy = one_batch(1000)
    seen = observed(policy, ((1000, 1000), (500, 700)), state="running")
    assert analysis_of(seen).headline.startswith("B leads: 70.00% of 1,000; ")
    assert analysis_of(seen).to_dict()["winner"] is None
    other = observed(policy, ((1000, 1000), (500, 700)), ends=(-2.0, 2.0), binary=False, winner=1, decided_by="lead")
    found = analysis_of(other)
    assert found.headline.startswith("B won: 0.800 on average of 1,000; ")
    assert "points" not in found.table()
    assert "%" not in found.table().replace("95%", "")
    assert found.differences[0].estimate == pytest.approx(0.8)
    assert found.differences[0].ratio is None  # 0 is inside the range
    assert found.coverage.method == "Chernoff"


def test_the_best_of_all_others_is_what_counts() -> None:
    policy = one_batch(500, arms=3)
    found = analysis_of(observed(policy, ((500,) * 3, (300, 290, 100)), winner=0, decided_by="lead"))
    by = {one.against: one for one in found.differences}
    assert found.better_by == (by["B"].low, by["B"].high)
    assert len(found.differences) == 2


def test_squares_make_intervals_of_calm_rewards_narrower() -> None:
    policy = one_batch(2000)
    totals = ((2000, 2000), (1000.0, 1040.0))
    calm = observed(policy, totals, squares=[(510.0, 550.0)], binary=False)
    wild = observed(policy, totals, binary=False)
    first, second = analysis_of(calm), analysis_of(wild)
    assert (first.coverage.method, second.coverage.method) == ("empirical Bernstein", "Chernoff")
    assert first.arms[0].high - first.arms[0].low < 0.5 * (second.arms[0].high - second.arms[0].low)


def test_whether_rewards_are_binary_may_be_said() -> None:
    policy = one_batch(100)
    seen = observed(policy, ((100, 100), (40, 60)), squares=[(40, 60)])
    assert analysis_of(seen, binary=True) == analysis_of(seen)
    assert analysis_of(seen, binary=False).coverage.method == "empirical Bernstein"
    between = observed(policy, ((100, 100), (40, 60)), binary=False)
    with pytest.raises(InvalidArgument, match="^binary: got True, allowed: False: some rewards are between"):
        analysis_of(between, binary=True)


def test_a_ratio_is_from_the_intervals_of_means_and_difference() -> None:
    found = decided(decided_by="lead")
    one, (loser, winner) = found.differences[0], found.arms
    assert one.ratio == pytest.approx(1.4)
    assert one.ratio_low == max(winner.low / loser.high, 1.0 + one.low / loser.high)
    assert one.ratio_high == min(winner.high / loser.low, 1.0 + one.high / loser.low)
    assert (one.ratio_low > 1.0) == (one.low > 0.0)
    # as if the difference were known to be below 0
    worse = replace(one, low=-0.2, high=-0.05).with_ratio(winner, loser)
    assert worse.ratio_low == max(winner.low / loser.high, 1.0 - 0.2 / loser.low)
    assert worse.ratio_high == min(winner.high / loser.low, 1.0 - 0.05 / loser.high) < 1.0
    never = decided((0, 700), decided_by="lead").differences[0]
    assert (never.ratio, never.to_dict()["ratio_interval"]) == (None, None)
    seen = observed(one_batch(100), ((100, 100), (50, 1)), squares=[(40, 0.5)], binary=False)
    rarely = analysis_of(seen).differences[0]  # a mean whose interval begins at 0
    assert (rarely.ratio, rarely.ratio_high) == (50.0, math.inf)
    assert rarely.to_dict()["ratio_interval"] == [rarely.ratio_low, None]
    assert " or more" in analysis_of(seen).table()


@pytest.mark.parametrize("confidence", [0.5, 1.0, 0.0, -1.0, 2.0, math.nan, math.inf, "0.5", "high", None, True])
def test_confidence_is_between_a_half_and_one(confidence: Any) -> None:
    seen = observed(one_batch(8), ((8, 8), (2, 7)))
    with pytest.raises(InvalidArgument, match=r"^confidence: got .*, allowed: a number between 0\.5 and 1, both"):
        analysis_of(seen, confidence)
    text: Any = "0.9"  # a decimal, as elsewhere
    assert analysis_of(seen, text) == analysis_of(seen, 0.9)


def test_more_confidence_is_wider() -> None:
    seen = observed(one_batch(80, after=100), ((80, 80), (20, 70)), ((0, 100), (0, 90)), winner=1)
    before = analysis_of(seen, 0.6)
    for confidence in (0.9, 0.95, 0.999):
        found = analysis_of(seen, confidence)
        assert all(b.low < a.low <= a.high < b.high for a, b in zip(before.arms, found.arms, strict=True))
        one, other = before.differences[0], found.differences[0]
        assert other.low < one.low < one.high < other.high
        before = found


# -- words, data, pictures ---------------------------------------------------------------------------------------------


def odd() -> Analysis:
    """Names that mean something in HTML and to Matplotlib, with checks and a warning."""
    flow = Flow((1000, 1000), (1000, 1000), (1010, 1020), (10, 20))
    names = ("<b>old</b> & $x^2$", "new\N{SNOWMAN}'\"")
    return decided(decided_by="lead", names=names, flow=flow, warnings=("something is <odd>",))


def test_the_table_has_all_parts_in_order() -> None:
    text = odd().table()
    assert str(odd()) == text
    parts = text.split("\n\n")
    assert parts[0] == odd().headline
    assert parts[1].splitlines()[0].split() == ["arm", "estimate", "interval", "pulls", "used"]
    assert "winner, by its lead; pulls after the choice" in parts[1]
    assert "+20.0 points" in parts[2]
    assert parts[3].startswith("All intervals hold at once with a probability of 95% or more")
    assert "It does not depend on rho" in parts[3]
    assert [line.split(":")[0] for line in parts[4].splitlines()] == ["assignment", "lost rewards"]
    assert parts[5] == "warning: something is <odd>"
    assert all(line == line.rstrip() for line in text.splitlines())


def test_html_escapes_names() -> None:
    html = odd()._repr_html_()
    assert "<b>old" not in html
    assert "&lt;b&gt;old" in html
    assert "assignment: ok" in html
    assert "something is &lt;odd&gt;" in html
    assert "warning" not in decided()._repr_html_()


def checked(found: Analysis) -> dict[str, Any]:
    """Plain data that fit their schema and survive JSON."""
    content: dict[str, Any] = {**found.to_dict(), **provenance()}
    schema = json.loads((files("banditto") / "schemas" / "analysis.json").read_text(encoding="utf-8"))
    jsonschema.validate(content, schema)
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    return content


def test_plain_data_fit_the_schema() -> None:
    content = checked(odd())
    assert content["winner"] == content["arms"][1]["name"] == content["differences"][0]["arm"]
    assert (content["decided_by"], content["level"], content["state"]) == ("lead", "sequence", "finished")
    assert content["coverage"]["at_least"] == content["confidence"] == 0.95
    assert content["coverage"]["needs_rho"] is False
    assert [check["name"] for check in content["checks"]] == ["assignment", "lost rewards"]
    assert content["warnings"] == ["something is <odd>"]
    checked(decided((0, 700)))
    rounds = observed(bd.UCB1(), ((90, 10, 0), (60, 2, 0)), horizon=100)
    assert checked(analysis_of(rounds))["arms"][2]["estimate"] is None
    assert set(get_args(State)) == {"running", "finished", "stopped"}


def test_a_frame_has_a_row_for_each_arm_and_each_comparison() -> None:
    frame = decided(decided_by="lead").to_frame()
    assert list(frame.columns) == ["arm", "against", "estimate", "low", "high", "pulls", "used"]
    assert frame["arm"].tolist() == ["A", "B", "B"]
    assert frame["against"].isna().tolist() == [True, True, False]
    assert (frame["low"] < frame["estimate"]).all()
    assert (frame["estimate"] < frame["high"]).all()


def test_a_plot_is_a_figure_of_arms_and_differences() -> None:
    from matplotlib.figure import Figure

    figure = odd().plot()
    assert isinstance(figure, Figure)
    first, second = figure.axes
    assert len(first.get_yticks()) == 2
    assert len(second.get_yticks()) == 1
    figure.canvas.draw()  # odd names included
    many = one_batch(10, arms=60)
    names = [f"arm {number}" for number in range(60)]
    found = analysis_of(observed(many, ((10,) * 60, tuple(range(10)) * 6), names=names))
    assert [len(axes.get_yticks()) for axes in found.plot().axes] == [40, 40]
    rounds = observed(bd.UCB1(), ((90, 10, 0), (60, 2, 0)), horizon=100)
    assert len(analysis_of(rounds).plot().axes[0].get_yticks()) == 2


# -- what a referee found ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (0.12345, 0.12999, ("0.12345", "0.12999")),
        (1000.3941, 1000.4123, ("1000.3941", "1000.4123")),
        (-3.21, 12.9, ("-3.3", "12.9")),
        (0.0, 1.0, ("0.00", "1.00")),
        (1e9, 1.2e9, ("1000000000", "1200000000")),
        (-1e-9, 3e-9, ("-0.00000000100", "0.00000000300")),
        (0.5, 0.5, ("0.500000", "0.500000")),
        (-0.001, 0.9, ("-0.001", "0.900")),
        (-math.inf, math.inf, ("-inf", "inf")),
    ],
)
def test_intervals_are_rounded_outwards(low: float, high: float, written: tuple[str, str]) -> None:
    found = outwards(low, high)
    assert found[:2] == written
    assert float(found[0]) <= low
    assert float(found[1]) >= high


def test_what_is_printed_covers_what_was_found() -> None:
    """Means that are large for their width: four digits would make every one of these intervals miss."""
    policy = bd.ExploreThenCommit(arms=2, horizon=10**6, rho=0.3, gap=1.0, rewards="gaussian", sigma=1.0)
    world = bd.Gaussian([1000.4, 990.0], sigma=1.0)
    missed = 0
    for pair in range(20):
        found = bd.analyse(bd.watch_pair(policy, world, pair=pair).executions[0])
        low, high = found.arm_rows()[0][2].split(" to ")
        assert float(low) <= found.arms[0].low
        assert float(high) >= found.arms[0].high
        missed += not float(low) <= 1000.4 <= float(high)
    assert missed <= 6


def test_arms_that_were_never_pulled_are_no_next() -> None:
    points = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]
    policy = bd.CertifiedLinear(actions=points, horizon=10**6, rho=0.2)
    found = bd.analyse(bd.watch_pair(policy, bd.LinearBernoulli([0.9, 0.2], points)).executions[0])
    assert [arm.data for arm in found.arms] == ["all", "none", "all"]
    assert found.headline.endswith("better than the next that was pulled")


def test_a_winner_without_rewards_is_said_to_have_none() -> None:
    points = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]
    policy = bd.CertifiedLinear(actions=points, horizon=10**6, rho=0.2)
    found = analysis_of(observed(policy, ((900, 0, 900), (700, 0, 300)), winner=1, decided_by="coin"))
    assert found.headline.startswith("B was chosen, and has no rewards yet; of the others A leads: 77.")


@pytest.mark.parametrize("pulls", [10**6, 10**8, 3 * 10**8, 10**9, 10**12])
@pytest.mark.parametrize("successes", [999, 1000, 1001])
def test_rare_successes_among_very_many_pulls(successes: int, pulls: int) -> None:
    """SciPy's inverse of the incomplete beta function is off by far at a few places; checked by the function itself."""
    places = np.array([0.5, 2.0, 2.81, 4.5])
    for limits in (BinomialLimits(successes, pulls), BinomialLimits(pulls - successes, pulls)):
        low, high = limits.lower(places), limits.upper(places)
        assert np.all((low < limits.mean) & (limits.mean < high))
        some = limits.successes
        assert np.all(betainc(float(some), pulls - some + 1.0, low) <= ndtr(-places) * (1 + 1e-6))
        if pulls <= 10**9:  # 1 - p has few digits beyond
            tails = betainc(float(pulls - some), some + 1.0, 1.0 - high)
            assert np.all(tails <= ndtr(-places) * (1 + 1e-3))


def test_a_lead_that_dropped_another_arm_did_not_choose_the_winner() -> None:
    """Two arms are left at the end, and the first of them is played: that is a rule, and no lead."""
    policy = bd.RandomThreshold(arms=3, horizon=10**5, rho=0.3)
    seen = {
        bd.analyse(bd.watch_pair(policy, bd.Bernoulli([0.45, 0.5, 0.0]), pair=pair).executions[0]).decided_by
        for pair in range(12)
    }
    assert seen == {"coin"}


def test_a_policy_that_looks_at_a_commit_in_pieces_is_refused() -> None:
    policy = one_batch(8, after=20)
    pieces = [((8, 8), (2, 7)), ((0, 10), (0, 9)), ((0, 10), (0, 9))]
    with pytest.raises(ContractError, match="several batches after it had committed"):
        analysis_of(observed(policy, *pieces, winner=1, decided_by="lead"))
