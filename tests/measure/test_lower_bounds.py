"""Lower bounds: every inequality of docs/lower-bounds.md by quadrature or enumeration, and rules that attack them."""

from __future__ import annotations

import math
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, linprog
from scipy.special import ndtr, ndtri
from scipy.stats import binom, norm

import banditto as bd
from banditto.measure import crossing_paths
from banditto.measure.crossing_paths import Demand, coin_moves, coins_swap, divergence, skewness, squared_length
from banditto.measure.crossings import COIN_KAPPA, COIN_WHOLE, KAPPA, WHOLE, crossing_cost, profile

PAGE = Path(__file__).parents[2] / "docs" / "lower-bounds.md"
REWARDS: tuple[Literal["gaussian", "bounded"], ...] = ("gaussian", "bounded")
KINDS: tuple[Literal["one-batch", "adaptive"], ...] = ("one-batch", "adaptive")
QUANTILES = np.linspace(-8.0, 8.0, 3201)


def cost(p: float | np.ndarray[Any, Any]) -> Any:
    """H for Gaussian rewards."""
    return np.vectorize(crossing_cost)(ndtri(p))


# ---- Lemma 1: H and kappa


def test_the_closed_form_of_the_cost_is_its_integral() -> None:
    for quantile in (-3.0, -0.7, 0.0, 0.4, 2.5):
        integral = quad(lambda x: 2.0 * ndtr(x) * ndtr(-x), -12.0, quantile, epsabs=1e-13)[0]
        assert crossing_cost(quantile) == pytest.approx(integral, abs=1e-12)
    assert crossing_cost(12.0) == pytest.approx(WHOLE, abs=1e-12)


def test_the_cost_is_symmetric_and_convex_then_concave() -> None:
    p = np.linspace(1e-6, 1.0 - 1e-6, 4001)
    assert np.allclose(cost(p) + cost(1.0 - p), WHOLE, atol=1e-11)
    bends = np.diff(cost(p), 2)
    assert np.all(bends[: len(bends) // 2 - 1] > -1e-13)
    assert np.all(bends[len(bends) // 2 + 1 :] < 1e-13)


def test_the_hazard_rises_more_slowly_than_one() -> None:
    """The step that makes H convex: h(y) - h(-y) <= 2y, and 2 phi^2/(Phi (1 - Phi)) falls away from 0."""
    y = np.linspace(0.0, 8.0, 801)
    assert np.all(norm.pdf(y) / norm.sf(y) - norm.pdf(y) / norm.cdf(y) <= 2.0 * y + 1e-12)
    assert np.all(np.diff(norm.pdf(y) ** 2 / (norm.cdf(y) * norm.sf(y))) < 0.0)


def test_kappa_is_the_largest_ratio_rounded_up() -> None:
    p = ndtr(QUANTILES)
    assert KAPPA - 1e-5 < np.max(cost(p) / (p * WHOLE)) < KAPPA
    q = 0.775489  # the proof: a q above 1/2 with H(q) <= q H'(q), whose tangent lies above H
    slope = 2.0 * q * (1.0 - q) / norm.pdf(ndtri(q))
    assert cost(q) <= q * slope
    assert slope / WHOLE < KAPPA


def test_kappa_of_coins() -> None:
    angle = np.linspace(1e-3, math.pi / 2.0, 100_001)
    ratios = (angle / 2.0 - np.sin(4.0 * angle) / 8.0) / (np.sin(angle) ** 2 * COIN_WHOLE)
    assert COIN_KAPPA - 1e-4 < np.max(ratios) < COIN_KAPPA
    assert profile(math.inf).whole == pytest.approx(COIN_WHOLE, rel=2e-5)
    assert profile(math.inf).whole < COIN_WHOLE
    assert all(profile(excess).kappa <= COIN_KAPPA for excess in np.geomspace(1e-6, 1.0, 60))


def test_profiles_are_rounded_the_safe_way() -> None:
    for excess in (0.0, 1e-4, 0.01, 0.3):

        def fastest(p: float, excess: float = excess) -> float:
            return float(min(math.sqrt(p * (1.0 - p)), norm.pdf(ndtri(p)) + excess))

        places = [10.0**-k for k in (15, 9, 6, 5, 4, 3, 2)] + [0.1, 0.5]
        pieces = [quad(lambda p: 2.0 * p * (1.0 - p) / fastest(p), *ends, limit=200)[0] for ends in pairwise(places)]
        assert 0.0 < 2.0 * sum(pieces) - profile(excess).whole < 4e-5
        exact = quad(lambda p: 1.0 / fastest(p), 0.25, 0.95, limit=200)[0]
        assert 0.0 < exact - profile(excess).climb(0.25, 0.95) < 1e-4
    assert profile(0.0).whole == pytest.approx(WHOLE, rel=2e-5)
    assert KAPPA < profile(0.0).kappa < KAPPA + 3e-5


@pytest.mark.parametrize("arms", [2, 3, 5, 20])
@pytest.mark.parametrize("excess", [None, 0.02])
def test_costs_of_disjoint_answers_add_up_to_one_at_most(arms: int, excess: float | None) -> None:
    """Lemma 1: sum H(p_a) <= H(1) where the p_a add up to 1; the largest sums are at vertices and edges."""
    p = np.random.default_rng(7).dirichlet(np.full(arms, 0.4), size=4000)
    if excess is None:
        assert np.max(np.sum(cost(np.clip(p, 1e-300, 1.0 - 1e-16)), axis=1)) <= WHOLE + 1e-12
    else:
        grid = ndtr(QUANTILES)
        steps = 2.0 * grid * (1.0 - grid) / np.minimum(np.sqrt(grid * (1.0 - grid)), norm.pdf(QUANTILES) + excess)
        area = np.concatenate([[0.0], np.cumsum((steps[1:] + steps[:-1]) / 2.0 * np.diff(grid))])
        assert np.max(np.sum(np.interp(p, grid, area), axis=1)) <= area[-1] * (1.0 + 1e-6)


# ---- Lemma 2: how fast an answer can change


def test_answers_change_no_faster_than_those_of_a_cut() -> None:
    """Gaussian: for unions of intervals, monotone or not, the quantile of f is Lipschitz, and differences cost H."""
    rng = np.random.default_rng(3)
    shifts = np.linspace(-4.0, 4.0, 1601)
    for _ in range(60):
        ends = np.sort(rng.uniform(-4.0, 4.0, 2 * rng.integers(1, 5)))
        weights = np.tile([-1.0, 1.0], len(ends) // 2)
        f = np.clip(ndtr(ends[:, None] - shifts).T @ weights, 1e-300, 1.0)
        assert np.max(np.abs(np.diff(ndtri(np.clip(f, 1e-6, 1.0 - 1e-6))))) <= (shifts[1] - shifts[0]) * (1 + 1e-6)
        paid = np.sum(2.0 * f[1:] * (1.0 - f[1:]) + 2.0 * f[:-1] * (1.0 - f[:-1])) * (shifts[1] - shifts[0]) / 2.0
        assert paid >= abs(cost(min(f[-1], 1.0 - 1e-16)) - cost(f[0])) - 1e-6


@pytest.mark.parametrize("tosses", [1, 2, 7, 40, 400])
@pytest.mark.parametrize("reach", [0.0, 0.1, 0.5, 0.9])
def test_coins_change_no_faster_than_their_profile(tosses: int, reach: float) -> None:
    """Lemma 3: the best tests of n tosses, those above a cut (Neyman and Pearson), stay within both bounds."""
    excess = (1.0 + reach**2) / (2.0 * math.sqrt((1.0 - reach**2) * tosses))
    bias = (1.0 + reach) / 2.0
    heads = np.arange(tosses + 1)
    chances = binom.pmf(heads, tosses, bias)
    scores = (heads - tosses * bias) / math.sqrt(tosses * bias * (1.0 - bias))
    f = np.concatenate([[0.0], np.cumsum(chances[::-1])]).clip(0.0, 1.0)
    speed = np.concatenate([[0.0], np.cumsum((chances * scores)[::-1])])
    assert np.all(speed <= np.sqrt(f * (1.0 - f)) + 1e-9)
    assert np.all(speed <= norm.pdf(ndtri(f)) + excess + 1e-9)


@pytest.mark.parametrize(
    ("arms", "gap", "begin"),
    [(2, 0.05, 0.5), (2, 0.9, 0.5), (4, 0.3, 0.5), (10, 0.5, 0.5), (2, 0.05, 0.075), (5, 0.08, 0.03)],
)
def test_a_path_of_coins_is_no_longer_and_no_more_skewed_than_we_say(arms: int, gap: float, begin: float) -> None:
    """Theorem 2: Cauchy and Schwarz for its length, stretches for the epsilon of Lemma 3."""
    lift = 1.0 - 1.0 / arms
    shares = [lift] + [lift - 1.0] * (arms - 1)
    moves = ((1, lift * gap), (arms - 1, (lift - 1.0) * gap))

    def information(d: float) -> float:
        return math.fsum(a**2 / ((begin + a * d) * (1.0 - begin - a * d)) for a in shares)

    def third(d: float) -> float:
        rates = [(abs(a), begin + a * d) for a in shares]
        return math.fsum(a**3 * (p**2 + (1.0 - p) ** 2) / (p * (1.0 - p)) ** 2 for a, p in rates)

    exact = quad(lambda d: math.sqrt(information(d)), 0.0, gap)[0] ** 2
    assert exact <= squared_length(begin, moves) * (1.0 + 1e-12)
    if arms == 2 and begin == 0.5:
        assert exact == pytest.approx(2.0 * math.asin(gap) ** 2)
    worst = max(0.5 * third(d) / information(d) ** 1.5 for d in np.linspace(0.0, gap, 1001))
    assert worst <= skewness(begin, moves) <= 1.25 * worst


@pytest.mark.parametrize("tosses", [1, 2, 10, 60])
@pytest.mark.parametrize(("rate", "other"), [(0.5, 0.5), (0.3, 0.45), (0.05, 0.1), (0.02, 0.3)])
def test_tossing_two_coins_cleverly_changes_no_answer_faster(tosses: int, rate: float, other: float) -> None:
    """Lemma 4: the largest E(S - k)_+ of all policies that toss either coin, or stop, found backwards on a grid.

    Values between grid points are interpolated, which is too much for convex functions: by less than 1e-3 here.
    """
    variance = min(rate * (1.0 - rate), other * (1.0 - other))
    unit = math.sqrt(tosses / variance)
    slope = norm.pdf(1.0) / 6.0 * ((1.0 - 2.0 * variance) / math.sqrt(variance) + math.sqrt(8.0 / math.pi))
    excess = (0.5 + slope * (1.0 + math.log(tosses))) / math.sqrt(tosses)
    places = np.linspace(-6.0, 6.0, 4001) - 1e-9  # in units of the largest standard deviation
    value = np.maximum(places, 0.0)
    for _ in range(tosses):
        tried = [value]
        for p, sign in ((rate, -1.0), (other, 1.0)):
            heads, tails = sign / (p * unit), -sign / ((1.0 - p) * unit)
            after = [np.interp(places + step, places, value, left=0.0) for step in (heads, tails)]
            far = [np.maximum(after[k], places + step) for k, step in enumerate((heads, tails))]
            tried.append(p * far[0] + (1.0 - p) * far[1])
        value = np.max(tried, axis=0)
    normal = places * ndtr(places) + norm.pdf(places)
    assert np.max(value - normal) <= excess + 1e-3
    assert norm.pdf(1.0) / 6.0 <= crossing_paths._TAYLOR
    assert math.sqrt(8.0 / math.pi) <= crossing_paths._NORMAL_THIRD


def test_divergences_are_rounded_up() -> None:
    for begin, end in product((0.0, 1e-6, 0.1, 0.4, 0.5, 0.93), (2e-6, 0.100001, 0.3, 0.5000001, 0.999)):
        exact = quad(lambda y, p=begin: (y - p) / (y * (1.0 - y)), begin, end, epsabs=0.0, epsrel=1e-11, limit=200)[0]
        assert exact * (1.0 - 1e-9) <= divergence(begin, end) <= exact * (1.0 + 1e-7)
    assert divergence(0.2, 0.0) == divergence(0.2, 1.0) == math.inf
    assert divergence(0.3, 0.3 + 1e-9) == pytest.approx(1e-18 / 0.42, rel=1e-6)


# ---- rules in one batch that try to beat Theorem 1


def uniform_cut_rule(gap: float, rho: float, beta: float, sigma: float = 0.5) -> float:
    """Pulls of each of two arms that a shared cut, uniform on [-w, w], needs; w keeps P(differ) at rho or below."""

    def shortfall(pulls: float) -> float:
        noise = sigma * math.sqrt(2.0 / pulls)
        wide = WHOLE * noise / (2.0 * rho)

        def area(x: float) -> float:  # the integral of Phi
            return float(x * ndtr(x) + norm.pdf(x))

        right = noise / (2.0 * wide) * (area((gap + wide) / noise) - area((gap - wide) / noise))
        return right - (1.0 - beta)

    return brentq(shortfall, 1.0, 1e12)


def test_the_uniform_cut_never_beats_the_bound_and_meets_it_in_the_limit() -> None:
    assert math.ceil(uniform_cut_rule(0.05, 0.1, 0.05)) == 5717
    assert bd.lower_bound(arms=2, gap=0.05, rho=0.1).per_arm == 5123
    for rho, beta, gap in product((0.3, 0.1, 0.01), (0.3, 0.05, 0.01), (0.01, 0.3)):
        found = bd.lower_bound(arms=2, gap=gap, rho=rho, power=1.0 - beta).per_arm
        assert found <= math.ceil(uniform_cut_rule(gap, rho, beta))
    ratios = [
        uniform_cut_rule(0.05, rho, beta) / bd.lower_bound(arms=2, gap=0.05, rho=rho, power=1.0 - beta).per_arm
        for rho, beta in ((0.1, 0.05), (0.01, 0.01), (0.001, 0.001), (0.0001, 0.0001))
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] < 1.001


def least_rho(differ: Any, wrong_below: Any, wrong_above: Any, beta: float) -> float:
    """The smallest rho over all laws of the coins: differ[D, rule], and each rule's errors at both ends. A program."""
    count = len(wrong_below)
    rows = np.vstack([np.c_[differ, -np.ones(len(differ))], np.append(wrong_below, 0.0), np.append(wrong_above, 0.0)])
    limits = np.append(np.zeros(len(differ)), [beta, beta])
    goal, total = np.append(np.zeros(count), 1.0), np.append(np.ones(count), 0.0)
    found: Any = linprog(goal, A_ub=rows, b_ub=limits, A_eq=[total], b_eq=[1.0], bounds=(0.0, None))
    return float(found.fun) if found.status == 0 else math.nan


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.3, 0.1, 0.05, 0.01])
def test_no_law_of_the_cut_beats_the_bound(beta: float) -> None:
    """The best of all laws of a shared cut, by a linear program, in units of the noise of the lead."""
    ratios = []
    for gap in (2.0, 4.0, 10.0):
        cuts = np.concatenate([[-1e9], np.linspace(-gap - 3.0, gap + 3.0, 301), [1e9]])
        f = ndtr(np.linspace(-gap - 3.0, gap + 3.0, 301)[:, None] - cuts)
        rho = least_rho(2.0 * f * (1.0 - f), ndtr(-gap - cuts), ndtr(cuts - gap), beta)
        if not math.isnan(rho):
            # with this sigma the noise of a lead is 1 where each arm is pulled 1e10 times
            least = bd.lower_bound(arms=2, gap=gap, rho=rho, power=1.0 - beta, sigma=math.sqrt(1e10 / 2.0)).per_arm
            ratios.append(1e10 / least)
    assert len(ratios) >= 2
    assert min(ratios) >= 1.0
    assert ratios[-1] == pytest.approx({0.3: 1.097, 0.1: 1.015, 0.05: 1.012, 0.01: 1.11}[beta], abs=0.003)


def coin_rules(pulls: int, everything: bool) -> Any:
    """Rules for two arms as rows: an answer for each total of 2m tosses (a failure of arm 1 is a success)."""
    totals = 2 * pulls + 1
    if everything:
        return np.array(list(product((0.0, 1.0), repeat=totals)))
    return np.array([[float(total >= cut) for total in range(totals)] for cut in range(totals + 1)])


@pytest.mark.parametrize(
    ("pulls", "everything"), [(1, True), (2, True), (3, True), (4, True), (8, False), (30, False), (120, False)]
)
@pytest.mark.parametrize("gap", [0.1, 0.4, 0.8])
def test_no_rule_for_coins_beats_the_bound(pulls: int, everything: bool, gap: float) -> None:
    """Up to four pulls all rules there are, then all cuts; coins mix them as they like, for the least rho."""
    rules, leads = coin_rules(pulls, everything), np.linspace(-gap, gap, 101)
    f = binom.pmf(np.arange(2 * pulls + 1), 2 * pulls, (1.0 + leads[:, None]) / 2.0) @ rules.T
    tried = 0
    for beta in (0.45, 0.3, 0.1, 0.02):
        rho = least_rho(2.0 * f * (1.0 - f), f[0], 1.0 - f[-1], beta)
        if 1e-6 < rho < 1.0:
            found = bd.lower_bound(arms=2, gap=gap, rho=rho, power=1.0 - beta, rewards="bounded").per_arm
            assert found <= pulls
            tried += 1
    assert tried or gap < 0.4


@pytest.mark.parametrize(
    ("pulls", "gap", "rate"),
    [
        *product((1, 2), (0.1, 0.3, 0.49), (0.5,)),
        (1, 0.6, 0.7),
        (2, 0.6, 0.7),
        *product((10, 40, 200), (0.05, 0.09), (0.1,)),
    ],
)
def test_no_rule_for_low_rates_beats_the_bound(pulls: int, gap: float, rate: float) -> None:
    """Up to two pulls of each of two arms all rules there are, then all cuts of the lead; along the path alone."""
    leads, middle = np.linspace(-gap, gap, 81), min(0.5, rate - gap / 2.0)
    heads = np.arange(pulls + 1)
    shifts = leads[:, None] / 2.0
    first, second = (np.asarray(binom.pmf(heads, pulls, middle + move)) for move in (shifts, -shifts))
    chances = (first[:, :, None] * second[:, None, :]).reshape(len(leads), -1)
    ahead = (heads[:, None] - heads).ravel()
    rules = np.array(list(product((0.0, 1.0), repeat=len(ahead)))) if pulls <= 2 else None
    if rules is None:
        cuts = np.arange(-pulls, pulls + 1)
        rules = np.vstack([ahead > cuts[:, None], ahead >= cuts[:, None]]).astype(float)
    f = np.clip(chances @ rules.T, 0.0, 1.0)
    for beta in (0.45, 0.3, 0.1, 0.02):
        rho = least_rho(2.0 * f * (1.0 - f), f[0], 1.0 - f[-1], beta)
        if 1e-6 < rho < 1.0:
            known: dict[str, Any] = {"rewards": "bounded", "rate_at_most": rate}
            assert bd.lower_bound(arms=2, gap=gap, rho=rho, power=1.0 - beta, **known).per_arm <= pulls


def test_the_figures_for_low_rates_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for kind, rate in product(KINDS, (None, 0.1)):
        found = bd.lower_bound(arms=2, gap=0.01, rho=0.1, rewards="bounded", kind=kind, rate_at_most=rate)
        assert f"{found.per_arm:,}" in text


@pytest.mark.parametrize("arms", [2, 4])
def test_one_cut_never_beats_the_bound_for_low_rates(arms: int) -> None:
    for rho, (rate, gap) in product((0.1, 0.3), ((0.1, 0.01), (0.1, 0.05), (0.5, 0.05), (0.02, 0.002), (0.1, 0.09))):
        policy = bd.OneCut(arms=arms, horizon=10**9, rho=rho, gap=gap, rate_at_most=rate)
        found = bd.lower_bound(arms=arms, gap=gap, rho=rho, rewards="bounded", rate_at_most=rate)
        assert found.per_arm <= policy.schedule.pulls
        if (arms, rho, gap) == (2, 0.1, 0.01):
            assert policy.schedule.pulls < 1.25 * found.per_arm


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arms", [2, 3, 10])
def test_low_rates_need_their_share_of_the_variance(kind: Any, arms: int) -> None:
    """4 b (1 - b) of the figure for all rates in the limit of small gaps, and never more than that figure."""
    known: dict[str, Any] = {"arms": arms, "rho": 0.1, "rewards": "bounded", "kind": kind}
    for rate in (0.02, 0.1, 0.3):
        parts = []
        for gap in (0.02, 1e-3, 1e-5):
            found, every = bd.lower_bound(gap=gap, rate_at_most=rate, **known), bd.lower_bound(gap=gap, **known)
            parts.append((found.per_arm / every.per_arm, found.total / every.total))
        assert parts == sorted(parts)
        assert parts[-1] == pytest.approx((4.0 * rate * (1.0 - rate),) * 2, rel=0.01)
    ladder = [bd.lower_bound(gap=0.05, rate_at_most=rate, **known) for rate in (0.05, 0.06, 0.2, 0.4, 0.5, 0.6, 0.99)]
    assert [one.total for one in ladder] == sorted(one.total for one in ladder)
    assert [one.per_arm for one in ladder] == sorted(one.per_arm for one in ladder)
    assert ladder[-1].per_arm == bd.lower_bound(gap=0.05, **known).per_arm
    assert "any arms with 0/1 rewards and rates of at most 0.06, " in ladder[1].statement


def test_the_bound_for_coins_is_close_for_many_pulls() -> None:
    pulls, gap, beta = 400, 0.2, 0.05
    rules, leads = coin_rules(pulls, everything=False), np.linspace(-gap, gap, 161)
    f = binom.pmf(np.arange(2 * pulls + 1), 2 * pulls, (1.0 + leads[:, None]) / 2.0) @ rules.T
    rho = least_rho(2.0 * f * (1.0 - f), f[0], 1.0 - f[-1], beta)
    found = bd.lower_bound(arms=2, gap=gap, rho=rho, power=1.0 - beta, rewards="bounded").per_arm
    assert (round(rho, 3), found) == (0.091, 317)


@pytest.mark.parametrize("arms", [3, 6])
def test_a_spider_never_beats_the_bound(arms: int) -> None:
    """Play the leader if its lead exceeds a cut from [0, w], else a default: rho is proved for it, power simulated.

    20,000 executions: the standard error of P(right) is below 0.004 and is given to the rule five times over.
    """
    rng, rho, pulls = np.random.default_rng(11), 0.1, 400
    wide = (1.0 - 1.0 / arms) * math.sqrt(2.0 / math.pi) / (rho * math.sqrt(pulls))  # sigma 1/2, proved for any means
    noise = rng.normal(0.0, 0.5 / math.sqrt(pulls), (20_000, arms))
    cuts, default = rng.uniform(0.0, wide, 20_000), rng.integers(arms, size=20_000)
    for gap in (0.6 * wide, wide, 1.5 * wide):
        means = noise + np.where(np.arange(arms) == 0, gap, 0.0)
        top = np.sort(means, axis=1)
        chosen = np.where(top[:, -1] - top[:, -2] > cuts, np.argmax(means, axis=1), default)
        power = min(0.999, np.mean(chosen == 0) + 0.02)
        if power > 0.5:
            assert bd.lower_bound(arms=arms, gap=gap, rho=rho, power=power).per_arm <= pulls


# ---- policies that decide from pull to pull, against Theorem 3


def two_looks(first: float, second: float, low: float, high: float, drift: Any) -> Any:
    """P of each end of a test of a drift against 0 that stops at one of two looks: low and high at each. sigma is 1."""
    mean, noise = drift * first, math.sqrt(first)
    bottom, top = low * noise, high * noise
    nodes, weights = np.polynomial.legendre.leggauss(60)
    left = np.maximum(bottom, mean - 8.0 * noise)
    right = np.maximum(left, np.minimum(top, mean + 8.0 * noise))
    sums = ((left + right) / 2.0)[:, None] + ((right - left) / 2.0)[:, None] * nodes
    density = norm.pdf(sums, mean[:, None], noise) * weights * ((right - left) / 2.0)[:, None]
    later = (sums + drift[:, None] * (second - first)) / math.sqrt(second - first)
    ends = [ndtr((bottom - mean) / noise), ndtr((mean - top) / noise)]
    return np.stack([*ends, np.sum(density * ndtr(-later), axis=1), np.sum(density * ndtr(later), axis=1)], axis=1)


def fewest_expected_pulls(rho: float, beta: float, finer: int) -> float:
    """The fewest expected pulls of the worse arm, at -1, of mixtures of tests; the other arm's mean is known to be 0.

    A linear program over the law of the coins, which choose the cut, the looks and the boundaries together; the
    test may stop early on both sides or on the one that is cheap to stop on. Leads between those of the grid are
    not asked for, in favour of the mixture.
    """
    leads, about = np.linspace(-1.0, 1.0, 40 * finer + 1), 1.0 / (math.pi * rho**2)
    rules: list[tuple[Any, Any]] = [(np.eye(2)[side] * np.ones((len(leads), 1)), np.zeros(2)) for side in (0, 1)]
    sizes = about * np.geomspace(0.05, 3.0, 8 * finer)
    for cut in np.linspace(-1.3, 1.3, 26 * finer + 1):
        drift = leads - cut
        for size in sizes:
            up = ndtr(drift * math.sqrt(size))
            rules.append((np.stack([1.0 - up, up], axis=1), np.array([size, size])))
        for first, ratio, edge in product(sizes[:: 2 * finer], (2.0, 8.0), (0.5, 2.0)):
            for high in (edge, 99.0):
                looks = np.array([first, first, ratio * first, ratio * first])
                rules.append((two_looks(first, ratio * first, -edge, high, drift), looks))
    differ = np.array([1.0 - np.sum(ends**2, axis=1) for ends, _ in rules]).T
    wrong = [[np.sum(ends[0, 1::2]) for ends, _ in rules], [np.sum(ends[-1, ::2]) for ends, _ in rules]]
    limits = np.append(np.full(len(leads), rho), [beta, beta])
    pulls = np.array([ends[0] @ looks for ends, looks in rules])
    ones = np.ones((1, len(rules)))
    found: Any = linprog(pulls, A_ub=np.vstack([differ, wrong]), b_ub=limits, A_eq=ones, b_eq=[1.0], bounds=(0.0, None))
    assert found.status == 0
    return float(found.fun)


def expected(rho: float, beta: float) -> int:
    """The bound in millionths of pulls: it goes with the square of sigma."""
    return bd.lower_bound(arms=2, gap=1.0, rho=rho, power=1.0 - beta, sigma=1000.0, kind="adaptive").per_arm


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "beta"), [(0.3, 0.1), (0.05, 0.2)])  # two more below, on a finer grid
def test_no_mixture_of_sequential_tests_beats_the_adaptive_bound(rho: float, beta: float) -> None:
    assert fewest_expected_pulls(rho, beta, finer=1) >= expected(rho, beta) / 1e6


@pytest.mark.long
@pytest.mark.parametrize(("rho", "beta", "ratio"), [(0.1, 0.05, 1.71), (0.03, 0.01, 1.16), (0.02, 0.01, 1.11)])
def test_no_finer_mixture_beats_the_adaptive_bound_either(rho: float, beta: float, ratio: float) -> None:
    found = fewest_expected_pulls(rho, beta, finer=2) / (expected(rho, beta) / 1e6)
    assert found == pytest.approx(ratio, abs=0.006)


def test_the_adaptive_bound_is_met_in_the_limit() -> None:
    """One batch of the arm that moves, the other's mean known: pulls = H(1)^2/(2 rho)^2 for a cut on [-1, 1]."""
    for rho, most in ((0.01, 1.2), (0.0001, 1.01)):
        assert 1.0 <= WHOLE**2 / (2.0 * rho) ** 2 / (expected(rho, rho) / 1e6) < most + 5.0 * rho


def test_the_tangent_lies_below_both_costs_of_coins() -> None:
    """Theorem 4: h/sqrt(n) above n_0, and Cramer and Rao's below it, are above the tangent of h/sqrt(n) at n*."""
    for paid, share in ((0.02, 0.8), (0.3, 0.5)):
        fewest = (2.0 * COIN_WHOLE * share / (3.0 * paid)) ** 2
        for whole in (COIN_WHOLE, 1.0, WHOLE):
            touch = (whole * share / paid) ** 2
            n = np.geomspace(touch * 1e-4, touch * 100.0, 4001)
            paid_at = np.where(n < fewest, COIN_WHOLE, whole) / np.sqrt(n)
            tangent = whole * (1.5 / math.sqrt(touch) - n / (2.0 * touch**1.5))
            assert np.all(paid_at >= tangent - 1e-12)


# ---- the functions


def test_numbers_by_hand() -> None:
    """gap 0.05, rho 0.1, beta 0.05, sigma 1/2, in the terms of the page."""
    beta, unit = 0.05, 0.25 / (0.1 * 0.05) ** 2
    two = 2.0 / math.pi * unit * (1.0 - 2.0 * KAPPA * beta) ** 2
    four = 4.0 / math.pi * 4.0 / 3.0 * unit * (0.75 - KAPPA * beta) ** 2
    assert bd.lower_bound(arms=2, gap=0.05, rho=0.1).per_arm == math.ceil(two)
    assert bd.lower_bound(arms=4, gap=0.05, rho=0.1).per_arm == math.ceil(four)
    worse = unit / math.pi * (1.0 - KAPPA * 0.1 - (1.0 + KAPPA) * beta) ** 3
    found = bd.lower_bound(arms=4, gap=0.05, rho=0.1, kind="adaptive")
    assert (found.per_arm, found.total) == (math.floor(worse), math.floor(worse * (1.0 + math.sqrt(3.0)) ** 2))
    right = 2.0 * 0.25 / 0.05**2 * ndtri(0.95) ** 2  # rho does not bind: a test of who is best
    assert bd.lower_bound(arms=2, gap=0.05, rho=0.9).per_arm == math.ceil(right)
    line = bd.lai_robbins(arms=3, gap=0.1, horizon=10**6)
    assert (line.per_arm, line.total) == (math.floor(0.5 / 0.01 * math.log(1e6)), math.floor(100.0 * math.log(1e6)))
    coins = bd.lai_robbins(arms=2, gap=0.1, horizon=10**6, rewards="bounded")
    divergence = 0.45 * math.log(0.45 / 0.55) + 0.55 * math.log(0.55 / 0.45)
    assert coins.per_arm == math.floor(math.log(1e6) / divergence)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rewards", REWARDS)
def test_bounds_go_the_way_they_should(kind: Any, rewards: Any) -> None:
    known: dict[str, Any] = {"arms": 3, "gap": 0.1, "rho": 0.1, "power": 0.95, "rewards": rewards, "kind": kind}
    ladders: dict[str, list[Any]] = {
        "gap": [0.999, 0.7, 0.4, 0.2, 0.05, 1e-3],
        "rho": [0.99, 0.5, 0.2, 0.03, 1e-4],
        "power": [0.5001, 0.6, 0.9, 0.99, 1.0 - 1e-9],
        "arms": [2, 3, 10, 1000],
    }
    for name, values in ladders.items():
        found = [bd.lower_bound(**(known | {name: value})) for value in values]
        assert [one.total for one in found] == sorted(one.total for one in found), name
        if name != "arms":
            assert [one.per_arm for one in found] == sorted(one.per_arm for one in found), name
        if rewards == "bounded":  # coins are easier: the fair one has the standard deviation 1/2, the others less
            gaussian = [bd.lower_bound(**(known | {name: value, "rewards": "gaussian"})) for value in values]
            assert all(a.per_arm <= b.per_arm for a, b in zip(found, gaussian, strict=True))


def test_where_nothing_is_proved_the_number_is_trivial() -> None:
    least: dict[str, Any] = {"arms": 2, "gap": 0.9, "rho": 0.99, "power": 0.5001}
    for rewards in ("gaussian", "bounded"):
        assert bd.lower_bound(**least, rewards=rewards).per_arm == 1
        assert bd.lower_bound(**least, rewards=rewards, kind="adaptive").per_arm == 0
    # no share is left, whose square would be large again
    assert bd.lower_bound(arms=2, gap=0.5, rho=1e-3, power=0.51).per_arm == 1
    # an arm need not be pulled at all where another one with a mean of at least the gap cannot be beaten by it
    assert bd.lower_bound(arms=2, gap=0.6, rho=0.01, rewards="bounded", kind="adaptive").per_arm == 0


def test_a_bound_as_data_and_as_text() -> None:
    found = bd.lower_bound(arms=2, gap=0.05, rho=0.1)
    assert found.to_dict() == {"per_arm": 5123, "total": 10246, "statement": found.statement}
    assert "Gaussian arms with sigma 0.5" in found.statement
    assert "at least 5,123 pulls of each arm" in found.statement
    assert found.statement.endswith(".")
    assert found.statement.count(". ") == 0
    assert "5,123" in found.table()
    assert found._repr_html_().startswith("<table>")
    adaptive = bd.lower_bound(arms=2, gap=0.05, rho=0.1, rewards="bounded", kind="adaptive")
    assert "0/1 rewards" in adaptive.statement
    assert "in expectation" in adaptive.statement
    with pytest.raises(AttributeError):
        setattr(found, "total", 1)  # noqa: B010 (mypy refuses the plain way)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": 1}, "arms: got 1, allowed: an integer from 2 to 1000"),
        ({"arms": 1001}, "arms: got 1001, allowed"),
        ({"gap": 0.0}, "gap: got 0.0, allowed: a number from 5e-10 to 10000"),
        ({"gap": math.nan}, "gap: got nan"),
        ({"gap": "wide"}, "gap: got wide"),
        ({"gap": 1.0, "rewards": "bounded"}, "gap: got 1.0, allowed: a number from 1e-09 to 0.999"),
        ({"rho": 0.0}, "rho: got 0.0, allowed: a number between 0 and 1, both excluded"),
        ({"rho": 1e-12}, "rho: got 1e-12, allowed: a number from 1e-09 to 1, which is excluded"),
        ({"power": 0.5}, "power: got 0.5, allowed: a number between 0.5 and 1, both excluded"),
        ({"power": 1.0}, "power: got 1.0"),
        ({"sigma": 0.0}, "sigma: got 0.0"),
        ({"sigma": 1.0, "rewards": "bounded"}, "sigma: got 1.0, allowed: 0.5 for rewards in"),
        ({"rewards": "subgaussian"}, "rewards: got subgaussian, allowed: 'bounded' or 'gaussian'"),
        ({"rate_at_most": 0.1}, "rate_at_most: got 0.1, allowed: none unless rewards are in [0, 1]"),
        ({"rate_at_most": 1.0, "rewards": "bounded"}, "rate_at_most: got 1.0, allowed: a number between 0 and 1"),
        ({"rate_at_most": 0.0, "rewards": "bounded"}, "rate_at_most: got 0.0"),
        ({"rate_at_most": "low", "rewards": "bounded"}, "rate_at_most: got low"),
        (
            {"rate_at_most": 0.05, "rewards": "bounded"},
            "gap: got 0.1, allowed: a number from 1e-09 to 0.05, the largest rate",
        ),
        ({"kind": "best"}, "kind: got best, allowed: 'one-batch' or 'adaptive'"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], message: str) -> None:
    known: dict[str, Any] = {"arms": 2, "gap": 0.1, "rho": 0.1} | changes
    with pytest.raises(bd.InvalidArgument) as caught:
        bd.lower_bound(**known)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_table_of_the_page_is_what_the_code_computes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for arms, rho in product((2, 4, 10), (0.1, 0.3)):
        found = {
            (rewards, kind): bd.lower_bound(arms=arms, gap=0.05, rho=rho, rewards=rewards, kind=kind)
            for rewards, kind in product(REWARDS, KINDS)
        }
        batches = " | ".join(f"{found[rewards, 'one-batch'].per_arm:,}" for rewards in REWARDS)
        adaptive = (found[rewards, "adaptive"] for rewards in REWARDS)
        cells = " | ".join(f"{one.per_arm:,}, {one.total:,}" for one in adaptive)
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {arms} | {rho} |")]
        assert row.startswith(f"| {arms} | {rho} | {batches} | ")
        assert row.endswith(f" | {cells} |")
        if arms == 2:
            assert f"| {math.ceil(uniform_cut_rule(0.05, rho, 0.05)):,} |" in row


def fewest_tosses(low: float, high: float, rho: float, beta: float) -> float:
    """The fewest expected tosses of the arm that moves: n of them and a cut for its successes; coins choose both."""
    rates = np.linspace(low, high, 81)
    most = math.ceil(8.0 / (rho * (high - low)) ** 2)
    rows: list[Any] = []
    for tosses in {math.ceil(most / 1.6**k) for k in range(14)}:
        above: Any = binom.sf(np.arange(-1, tosses + 1), tosses, rates[:, None])
        rows += [(f, tosses) for f in above.T]
    f = np.array([row for row, _ in rows]).T
    limits = np.append(np.full(len(rates), rho), [beta, beta])
    matrix = np.vstack([2.0 * f * (1.0 - f), f[0], 1.0 - f[-1]])
    pulls = np.array([tosses for _, tosses in rows], dtype=float)
    # two more rules toss nothing and always give the same answer
    matrix = np.c_[matrix, np.append(np.zeros(len(rates)), [0.0, 1.0]), np.append(np.zeros(len(rates)), [1.0, 0.0])]
    pulls = np.append(pulls, [0.0, 0.0])
    ones = np.ones((1, len(pulls)))
    found: Any = linprog(pulls, A_ub=matrix, b_ub=limits, A_eq=ones, b_eq=[1.0], bounds=(0.0, None))
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("gap", [0.1, 0.2, 0.4])
@pytest.mark.parametrize(("rho", "beta"), [(0.3, 0.2), (0.15, 0.05)])
def test_no_mixture_of_tosses_beats_the_adaptive_bound(gap: float, rho: float, beta: float) -> None:
    bound = bd.lower_bound(arms=2, gap=gap, rho=rho, power=1.0 - beta, rewards="bounded", kind="adaptive").per_arm
    assert fewest_tosses(0.5 - gap, 0.5 + gap, rho, beta) >= bound


@pytest.mark.parametrize(
    ("low", "high", "rho", "beta"),
    [
        pytest.param(*ends, *demand, marks=[pytest.mark.long] if demand[0] < 0.3 and ends[1] == 0.1 else [])
        for ends in ((0.0, 0.1), (0.01, 0.1), (0.02, 0.3), (0.75, 0.95), (0.6, 1.0))
        for demand in ((0.3, 0.2), (0.15, 0.05))
    ],
)
def test_no_mixture_of_tosses_beats_the_bound_of_a_path(low: float, high: float, rho: float, beta: float) -> None:
    """Theorem 4 for arms anywhere, those with low rates among them; the best arm's rate lies between the two."""
    demand = Demand(rho, 1.0 - beta)
    assert fewest_tosses(low, high, rho, beta) >= coin_moves(demand, low, high)
    gap = (high - low) / 2.0
    if high <= 0.1 and low > 0.0:
        known: dict[str, Any] = {"rewards": "bounded", "kind": "adaptive", "rate_at_most": high}
        found = bd.lower_bound(arms=2, gap=gap, rho=rho, power=1.0 - beta, **known)
        assert found.per_arm == math.floor(coin_moves(demand, low, high) * (1.0 - 1e-9))
        assert found.total == math.floor(coins_swap(demand, high - gap / 2.0, gap) * (1.0 - 1e-9))
