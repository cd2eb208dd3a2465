"""OneCut: its constants, its decisions, and every lemma of its proof, by enumeration and simulation."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.rewards import Rewards, rated_sigma
from banditto.policies.one_cut import cut_constants
from banditto.policies.one_cut.choice import PIECES, CutChoice
from banditto.policies.shared import confidence
from banditto.testing import POLICY_CHECKS, assert_rate_at_most
from banditto.testing.policy_contract import Check
from tests.lazily import Lazily

BOUNDED = Rewards("bounded", 0.5)


def _too_short() -> bd.OneCut:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        return bd.OneCut(arms=6, horizon=400, rho=0.1, gap=0.05)


POLICIES = Lazily(
    {
        "2 arms": lambda: bd.OneCut(arms=2, horizon=10**5, rho=0.2, gap=0.1),
        "2 arms, control": lambda: bd.OneCut(arms=2, horizon=10**5, rho=0.2, gap=0.1, control=1),
        "4 arms": lambda: bd.OneCut(arms=4, horizon=10**6, rho=0.1, gap=0.05),
        "4 arms, control": lambda: bd.OneCut(arms=4, horizon=10**6, rho=0.3, gap=0.05, control=2),
        "5 arms, rates": lambda: bd.OneCut(arms=5, horizon=10**6, rho=0.2, gap=0.02, rate_at_most=0.1),
        "3 arms, Gaussian": lambda: bd.OneCut(arms=3, horizon=10**6, rho=0.3, gap=0.2, sigma=2.0, rewards="gaussian"),
        "two early commits": lambda: bd.OneCut(arms=3, horizon=10**8, rho=0.1, gap=0.005),
        "least regret": lambda: bd.OneCut(arms=3, horizon=10**7, rho=0.1, gap=0.1, power=None),
        "100 arms": lambda: bd.OneCut(arms=100, horizon=10**8, rho=0.1, gap=0.05),
        "too short": _too_short,
    }
)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract(name: str, check: Check) -> None:
    check(POLICIES[name])


def test_the_policies_above_are_of_all_kinds() -> None:
    assert len(POLICIES["two early commits"].schedule.early) == 2
    assert not POLICIES["2 arms"].schedule.knots
    assert len(POLICIES["4 arms"].schedule.knots) == PIECES + 1
    assert POLICIES["too short"].reached_power < 0.5
    assert POLICIES["least regret"].pulls_per_arm > bd.OneCut(arms=3, horizon=10**7, rho=0.1, gap=0.1).pulls_per_arm


# -- constants --------------------------------------------------------------------------------------------------------


def test_the_pages_table_is_what_constructors_find() -> None:
    text = (Path(__file__).parents[2] / "docs" / "one-cut.md").read_text(encoding="utf-8")
    number = r"([\d,]+)"
    rows = re.findall(rf"^\| (\d+) \| {number} \| {number} \| {number} \| {number} \|$", text, flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["2", "4", "10"]
    for arms, *cells in rows:
        said = [int(cell.replace(",", "")) for cell in cells]
        for rho, pulls, least in ((0.1, *said[:2]), (0.3, *said[2:])):
            assert bd.OneCut(arms=int(arms), horizon=10**8, rho=rho, gap=0.05).schedule.pulls == pulls
            assert bd.lower_bound(arms=int(arms), gap=0.05, rho=rho, rewards="bounded").per_arm == least


@pytest.mark.parametrize(("arms", "rho", "most"), [(2, 0.1, 6500), (2, 0.3, 1400), (4, 0.1, 33_000), (10, 0.1, 90_000)])
def test_pulls_at_a_gap_of_a_twentieth(arms: int, rho: float, most: int) -> None:
    policy = bd.OneCut(arms=arms, horizon=10**7, rho=rho, gap=0.05)
    assert policy.pulls_per_arm <= most
    assert policy.guarantee().holds
    assert policy.reached_power >= 0.95


def test_low_rates_are_cheaper() -> None:
    usual = bd.OneCut(arms=4, horizon=10**8, rho=0.3, gap=0.01)
    rare = bd.OneCut(arms=4, horizon=10**8, rho=0.3, gap=0.01, rate_at_most=0.1)
    assert rare.pulls_per_arm < 0.42 * usual.pulls_per_arm
    half = bd.OneCut(arms=4, horizon=10**8, rho=0.3, gap=0.01, rate_at_most=0.7)  # which says next to nothing
    assert half.schedule.pulls == usual.schedule.pulls


def test_settings_are_absent_where_they_are_not_used() -> None:
    assert set(POLICIES["2 arms"].settings()) == {"constants", "rewards", "sigma", "gap", "power"}
    assert POLICIES["5 arms, rates"].settings()["rate_at_most"] == "0.1"
    assert POLICIES["2 arms, control"].settings()["control"] == 1
    assert "power" not in POLICIES["least regret"].settings()
    assert "rate_at_most" not in bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.2).settings()


@pytest.mark.slow
@pytest.mark.parametrize("examples", [25, pytest.param(150, marks=pytest.mark.long)])
def test_the_guarantee_holds_whatever_is_asked(examples: int) -> None:
    asked = given(
        st.integers(2, 60),
        st.integers(2, 15),
        st.floats(0.001, 0.99),
        st.floats(0.001, 0.4),
        st.sampled_from(["bounded", "gaussian", "rated"]),
        st.sampled_from([None, 0, 1]),
        st.sampled_from([0.6, 0.95, 0.999, None]),
    )
    settings(max_examples=examples, deadline=None)(asked(check_guarantee))()


def check_guarantee(
    arms: int, digits: int, rho: float, gap: float, rewards: Any, control: int | None, power: float | None
) -> None:
    kind: dict[str, Any] = {"rate_at_most": 0.45} if rewards == "rated" else {"rewards": rewards}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        horizon = max(10**digits, arms)
        policy = bd.OneCut(arms=arms, horizon=horizon, rho=rho, gap=gap, control=control, power=power, **kind)
    assert policy.guarantee().holds
    assert arms * policy.pulls_per_arm <= policy.horizon
    least = 0.95 if power is None else power
    needed = policy.minimum_horizon()
    if needed is not None and policy.horizon >= needed:
        assert policy.reached_power >= least - 1e-9


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [
        ("gap", 0.0, "a number from"),
        ("gap", 1.2, "to 1"),
        ("gap", "wide", "a number from"),
        ("power", 0.5, "between 0.5 and 1"),
        ("power", 1.0, "between 0.5 and 1"),
        ("control", 4, "0 to 3"),
        ("control", -1, "0 to 3"),
        ("rate_at_most", 0.0, "between 0 and 1"),
        ("rate_at_most", 1.0, "between 0 and 1"),
        ("rate_at_most", 0.01, "to 0.01"),
        ("rewards", "subgaussian", "in \\[0, 1\\] or 'gaussian'"),
        ("constants", "paper", "'certified'"),
        ("rho", 1e-12, "at least 1e-09"),
    ],
)
def test_bad_arguments(argument: str, value: Any, allowed: str) -> None:
    known: dict[str, Any] = {"arms": 4, "horizon": 10**6, "rho": 0.1, "gap": 0.05}
    with pytest.raises(InvalidArgument, match=allowed) as caught:
        bd.OneCut(**known | {argument: value})
    assert "\n" not in str(caught.value)


def test_means_above_the_stated_rate_are_refused() -> None:
    policy = POLICIES["5 arms, rates"]
    bd.certify(policy, bd.Bernoulli([0.1, 0.08, 0.01, 0.0, 0.1]), pairs=1)
    with pytest.raises(InvalidArgument, match=r"^means: got 0.11, allowed: at most 0.1, the rate_at_most"):
        bd.certify(policy, bd.Bernoulli([0.11, 0.08, 0.01, 0.0, 0.1]), pairs=1)
    with pytest.raises(InvalidArgument, match="rates at most 0.1, which the policy was built for"):
        bd.certify(policy, bd.Gaussian([0.1, 0.08, 0.01, 0.0, 0.1]), pairs=1)
    with pytest.raises(InvalidArgument, match=r"^rate_at_most: got 0.1, allowed: none unless rewards are in \[0, 1\]"):
        bd.OneCut(arms=2, horizon=10**6, rho=0.1, gap=0.05, rate_at_most=0.1, rewards="gaussian")


# -- decisions --------------------------------------------------------------------------------------------------------


def chosen(policy: bd.OneCut, means: list[float], coins: Coins) -> IntArray:
    """The arms that rows play for good when every batch brings these means."""
    state = policy.init(coins.count)
    last: Any = None
    while (pulls := policy.plan(state)) is not None:
        last = pulls
        state = policy.decide(state, np.asarray(pulls * np.asarray(means)), coins)
    return np.asarray(last.argmax(axis=1))


def test_a_clear_leader_is_played() -> None:
    for name in ("2 arms", "4 arms", "2 arms, control", "4 arms, control"):
        policy = POLICIES[name]
        means = [0.3] * policy.arms
        means[1] = 0.3 + 1.01 * policy.schedule.width
        assert (chosen(policy, means, Coins(1, 0, 64)) == 1).all()


def test_ties_go_to_the_default_by_a_shared_ranking() -> None:
    policy = POLICIES["4 arms"]
    counts = np.bincount(chosen(policy, [0.5] * 4, Coins(2, 0, 4000)), minlength=4)
    assert (abs(counts - 1000) < 6 * np.sqrt(750)).all()  # fails falsely with 1e-8
    knots = policy.schedule.knots
    with_two_bad = chosen(policy, [0.7, 0.7, 0.7 - 1.01 * knots[-1], 0.0], Coins(2, 0, 4000))
    assert set(with_two_bad.tolist()) == {0, 1}
    middle = 0.5 * (knots[7] + knots[8])  # an arm there is inside for about half of the coins, and then one of three
    played = float(np.mean(chosen(policy, [0.7, 0.7, 0.7 - middle, 0.0], Coins(2, 0, 6000)) == 2))
    assert abs(played - 0.5 / 3.0) < 0.03


def test_a_control_is_kept_unless_another_arm_leads() -> None:
    policy = POLICIES["4 arms, control"]
    assert (chosen(policy, [0.5] * 4, Coins(3, 0, 64)) == 2).all()
    behind = 1.01 * policy.schedule.knots[-1]  # but not where it is far behind two that tie
    assert set(chosen(policy, [0.7, 0.7, 0.7 - behind, 0.0], Coins(3, 0, 200)).tolist()) == {0, 1}
    half = 0.5 * policy.schedule.width
    share = float(np.mean(chosen(policy, [0.5 + half, 0.5, 0.5, 0.5], Coins(4, 0, 4000)) == 0))
    assert abs(share - 0.5) < 0.05  # the cut is uniform; 6 standard errors
    assert "instead of" in str(policy.describe().facts["price of the control"])


def test_early_commits_need_a_large_lead() -> None:
    policy = POLICIES["two early commits"]
    first, second = policy.schedule.early
    assert policy.pulls_per_arm == first.pulls + second.pulls + policy.schedule.pulls
    coins = Coins(5, 0, 8)
    state = policy.init(8)
    pulls = policy.plan(state)
    assert pulls is not None
    assert (pulls == first.pulls).all()
    wide = policy.decide(state, np.asarray(pulls * [0.9, 0.9 - 1.01 * (first.low + first.width), 0.0]), coins)
    after = policy.plan(wide)
    assert after is not None
    assert (after[:, 0] == policy.horizon - 3 * first.pulls).all()
    narrow = policy.plan(policy.decide(state, np.asarray(pulls * [0.9, 0.9 - 0.99 * first.low, 0.0]), coins))
    assert narrow is not None
    assert (narrow == second.pulls).all()


# -- lemmas -----------------------------------------------------------------------------------------------------------


def binomials(pulls: int, rate: float) -> FloatArray:
    return np.asarray([math.comb(pulls, k) * rate**k * (1 - rate) ** (pulls - k) for k in range(pulls + 1)])


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.45, 0.5])
@pytest.mark.parametrize("pulls", [1, 2, 3, 7, 20])
def test_lemma_1_by_enumeration(rate: float, pulls: int) -> None:
    rewards = Rewards.of(None, 0.5, rate)
    bound = confidence.line_noise(rewards, pulls)
    for first, second in itertools.product((0.0, 0.3 * rate, rate), repeat=2):
        law = np.convolve(binomials(pulls, first), binomials(pulls, second)[::-1])  # of X_1 - X_2, in steps of 1/m
        values = np.arange(law.size) / pulls
        distance = float(np.abs(values[:, np.newaxis] - values) @ law @ law)
        assert distance <= bound * (1.0 + 1e-12)


def test_low_rates_are_subgaussian() -> None:
    steps = np.linspace(-30.0, 30.0, 2001)
    for rate in (0.001, 0.05, 0.1, 0.3, 0.49):
        sigma = rated_sigma(rate)
        for lower in (rate, 0.5 * rate, 0.01 * rate):
            exponent = np.log1p(lower * np.expm1(steps)) - lower * steps
            assert (exponent <= sigma**2 * steps**2 / 2.0 + 1e-12).all()
    assert rated_sigma(0.1) == pytest.approx(math.sqrt(0.8 / (2.0 * math.log(9.0))))
    assert [rated_sigma(rate) for rate in (0.4999, 0.5, 0.8)] == [0.5] * 3


def spider_distance(first: FloatArray, second: FloatArray) -> FloatArray:
    """d for rows of means."""

    def heights(means: FloatArray) -> FloatArray:
        ordered = np.sort(means, axis=1)
        leads = ordered[:, -1] - ordered[:, -2]
        return np.where(means == ordered[:, -1:], leads[:, np.newaxis], 0.0)

    return np.asarray(np.abs(heights(first) - heights(second)).sum(axis=1))


@pytest.mark.slow
def test_lemma_2_by_simulation() -> None:
    """120 instances, 20,000 pairs each: a bound that is broken by 3% would be seen; false failures below 1e-6."""
    generator = np.random.default_rng(11)
    bound = 2.0 * math.sqrt(2.0 / math.pi)  # s = 1
    largest = 0.0
    for number in range(120):
        arms = int(generator.choice([2, 3, 4, 10, 20]))
        means = generator.normal(size=arms) * generator.choice([0.0, 0.3, 1.0, 3.0])
        if number % 3 == 0:
            means[:2] = means.max() + 2.0  # two contenders
        deviations = np.ones(arms) if number % 2 else generator.uniform(0.2, 1.0, size=arms)
        pair = [means + deviations * generator.normal(size=(20_000, arms)) for _ in range(2)]
        distances = spider_distance(*pair)
        error = 5.5 * float(distances.std()) / math.sqrt(20_000)
        assert float(distances.mean()) <= bound + error
        largest = max(largest, float(distances.mean()))
    assert largest > 0.97 * bound  # it is attained by two contenders


def test_lemma_2_on_coins_by_enumeration() -> None:
    for rates in ((0.5, 0.5, 0.5), (0.5, 0.5, 0.2), (0.9, 0.9, 0.8), (0.1, 0.05, 0.02)):
        for pulls in (1, 3, 6):
            cells = list(itertools.product(range(pulls + 1), repeat=3))
            laws = [binomials(pulls, rate) for rate in rates]
            weights = np.asarray([math.prod(law[k] for law, k in zip(laws, cell, strict=True)) for cell in cells])
            means = np.asarray(cells) / pulls
            count = len(cells)
            first, second = np.repeat(means, count, axis=0), np.tile(means, (count, 1))
            distance = float(weights @ spider_distance(first, second).reshape(count, count) @ weights)
            assert distance <= confidence.spider_noise(3, BOUNDED, pulls)


def test_lemma_3_by_simulation() -> None:
    """The leader and the arm of rank r on a quarter turn, 40,000 paths of 32 points; 2% would be seen."""
    generator = np.random.default_rng(12)
    angles = (np.arange(32) + 0.5) * (math.pi / 2 / 32)
    for means in ([0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.5, 0.0, 0.0, -2.0]):
        noise, other = generator.normal(size=(2, 40_000, 5))
        lengths = np.zeros((40_000, 4))
        for angle in angles:
            at = means + noise * math.cos(angle) + other * math.sin(angle)
            speed = -noise * math.sin(angle) + other * math.cos(angle)
            order = np.argsort(-at, axis=1)
            ranked = np.take_along_axis(speed, order, axis=1)
            lengths += np.abs(ranked[:, :1] - ranked[:, 1:]) * (math.pi / 2 / 32)
        expected = math.sqrt(math.pi)
        assert (np.abs(lengths.mean(axis=0) - expected) < 0.02 * expected).all()


@pytest.mark.parametrize("name", ["4 arms", "5 arms, rates", "100 arms"])
def test_c_is_the_worst_placement(name: str) -> None:
    """Random placements of arms never need more than C, and the worst ones that are tried come near it."""
    policy = POLICIES[name]
    knots, width, arms = np.asarray(policy.schedule.knots), policy.schedule.width, policy.arms
    density = 1.0 / (PIECES * np.diff(knots))
    bound = float(cut_constants.changes(arms, width, knots[np.newaxis], control=False)[0])
    generator = np.random.default_rng(13)
    ranks = np.arange(3, arms + 1)

    def needed(places: FloatArray) -> float:
        ordered = np.sort(places)  # G_(3), G_(4), ...
        beyond = np.interp(ordered, knots, 1.0 - np.arange(PIECES + 1) / PIECES, left=1.0, right=0.0)
        piece = np.clip(np.searchsorted(knots, ordered, side="right") - 1, 0, PIECES - 1)
        inside = (ordered >= knots[0]) & (ordered < knots[-1])
        sizes = np.arange(2, arms + 1)  # |B| = n with probability Q(G_(n)) - Q(G_(n+1))
        chances = np.append(1.0, beyond) - np.append(beyond, 0.0)
        default = float((chances * (1.0 - 1.0 / sizes)).sum())
        return default + float((width * np.where(inside, density[piece], 0.0) / ranks).sum())

    tried = [needed(generator.uniform(0.5 * knots[0], 1.1 * knots[-1], arms - 2)) for _ in range(500)]
    tried += [needed(np.full(arms - 2, knot)) for knot in knots[:-1]]
    assert max(tried) <= bound * (1.0 + 1e-12)
    assert max(tried) >= 0.85 * bound


@pytest.mark.slow
def test_theorem_1_on_normal_rewards() -> None:
    """The rule on normal means with mixed variances at the window's edges: 60 instances of 40,000 pairs."""
    generator = np.random.default_rng(14)
    for name, arms in (("3 arms, Gaussian", 3), ("Gaussian, 6", 6)):
        policy = (
            POLICIES[name]
            if name in POLICIES
            else bd.OneCut(arms=arms, horizon=10**6, rho=0.3, gap=0.2, sigma=1.0, rewards="gaussian")
        )
        pulls, width, knots = policy.schedule.pulls, policy.schedule.width, policy.schedule.knots
        only_last = replace(policy, schedule=policy.schedule._replace(early=()))
        choice = CutChoice(arms, width, knots, policy.control)
        bound = only_last.guarantee().total
        scale = policy.sigma / math.sqrt(pulls)
        for _ in range(30):
            places = generator.choice([0.0, 0.3 * width, knots[0], knots[4], knots[12], knots[-1]], size=arms)
            places += generator.normal(size=arms) * scale * generator.choice([0.0, 1.0])
            places[0] = places.min()  # a tie at the top, or nearly
            deviations = scale * generator.choice([1.0, 1.0, 0.3], size=arms)
            sides = []
            for _ in range(2):
                means = -places + deviations * generator.normal(size=(40_000, arms))
                sides.append(np.argmax(choice.chosen(pulls * means, pulls, Coins(7, 0, 40_000), 1), axis=1))
            assert_rate_at_most(int((sides[0] != sides[1]).sum()), 40_000, bound, 1e-8)
