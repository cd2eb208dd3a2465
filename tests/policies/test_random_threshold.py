"""Algorithm 2: its constants, its decisions, its promises on paper."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.schedule import Schedule
from banditto.policies.random_threshold.random_threshold import RandomThreshold
from banditto.policies.shared import confidence
from banditto.policies.shared.elimination import Race
from banditto.testing import POLICY_CHECKS
from banditto.testing.policy_contract import Check, play

POLICIES = {
    "2 arms": bd.RandomThreshold(arms=2, horizon=10**5, rho=0.2),
    "5 arms, paper": bd.RandomThreshold(arms=5, horizon=10**9, rho=0.1, constants="paper"),
    "7 arms, sigma 1": bd.RandomThreshold(arms=7, horizon=10**8, rho=0.5, sigma=1.0),
    "3 arms, Gaussian": bd.RandomThreshold(arms=3, horizon=10**7, rho=0.3, sigma=0.2, rewards="gaussian"),
    "1000 arms": bd.RandomThreshold(arms=1000, horizon=10**15, rho=0.1),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract(policy: RandomThreshold, check: Check) -> None:
    check(policy)


def schedule_of(policy: RandomThreshold) -> Schedule:
    return policy.schedule


# -- constants --------------------------------------------------------------------------------------------------------


def test_paper_constants_by_hand() -> None:
    """K = 5, T = 10^8, rho = 0.1: B = 18, q = 10^(8/18), beta = 2500, as printed in Algorithm 2."""
    blowup, batches = schedule_of(bd.RandomThreshold(arms=5, horizon=10**8, rho=0.1, constants="paper"))
    assert blowup == 2500
    growth = [2, 7, 21, 59, 166, 464, 1291, 3593, 10_000]
    assert [batch.pulls for batch in batches] == [2500 * n for n in growth]
    log = math.log(2 * 5 * 10**8 * 18)
    for i, batch in enumerate(batches):
        c = sum(growth[: i + 1])
        wide, narrow = math.sqrt(2 * log / c), math.sqrt(2 * log / (2500 * c))
        assert batch.samples == 2500 * c
        assert batch.low / batch.samples == pytest.approx(wide / 2 + narrow, rel=1e-12)
        assert (batch.low + batch.span) / batch.samples == pytest.approx(wide + narrow, rel=1e-12)


@pytest.mark.parametrize(
    ("arms", "rho", "blowup"), [(2, 0.1, 2304), (5, 0.1, 2500), (10, 0.1, 10_000), (10, 0.3, 2304), (7, 0.07, 10_000)]
)
def test_paper_blowup_takes_rho_as_a_decimal(arms: int, rho: float, blowup: int) -> None:
    assert schedule_of(bd.RandomThreshold(arms=arms, horizon=10**12, rho=rho, constants="paper")).blowup == blowup


@pytest.mark.parametrize(("rewards", "blowup"), [("subgaussian", 46), ("bounded", 29), ("gaussian", 29)])
def test_certified_blowup_for_two_arms(rewards: Any, blowup: int) -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1, rewards=rewards)
    assert schedule_of(policy).blowup == blowup


def bound_with(policy: RandomThreshold, blowup: int, at_least: int = 0) -> float:
    """The proof's total at another blow-up, from the definitions and in floats."""
    arms, horizon = policy.arms, policy.horizon
    batches = int(math.log(horizon))
    log = math.log(2 * arms * horizon * batches)
    growth = [math.floor(horizon ** (i / batches) * (1 + 1e-12)) for i in range(1, batches)]
    cumulative = list(itertools.accumulate(growth))
    reachable = [c for c in cumulative if 2 * blowup * c <= horizon and arms * blowup * growth[0] <= horizon]
    widths = [2 * policy.sigma * math.sqrt(2 * log / c) for c in reachable]
    reach = 1.0 if policy.rewards == "bounded" else 1e4 * policy.sigma
    more = [1e-12 * u + 2.0**-50 * reach for u in widths]
    windows = [(u / 2 - d, u * (1 + 2 / math.sqrt(blowup)) + 2 * d) for u, d in zip(widths, more, strict=True)]
    most = max((sum(low <= gap <= high for low, high in windows) for gap, _ in windows), default=0)
    most = max(most, at_least)
    two = math.sqrt(2) if policy.rewards == "subgaussian" else 2 / math.sqrt(math.pi)
    narrowest = 2 * policy.sigma * math.sqrt(2 * log / cumulative[-1])
    rounding = 2.0**-47 + 2.0**-48 * reach / narrowest
    kappa = two if arms == 2 else 1 + math.sqrt(2 * math.log(2 * arms))
    return 2 / horizon + (arms - 1) * most * (kappa / math.sqrt(blowup * log) + rounding)


@pytest.mark.slow
@given(st.integers(2, 30), st.integers(3, 15), st.floats(0.01, 0.9), st.sampled_from(["bounded", "subgaussian"]))
@settings(max_examples=80)
def test_certified_blowup_is_the_smallest_that_its_proof_allows(
    arms: int, digits: int, rho: float, rewards: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        policy = bd.RandomThreshold(arms=arms, horizon=10**digits, rho=rho, rewards=rewards)
    guarantee = policy.guarantee()
    assert guarantee.holds
    blowup, batches = schedule_of(policy)
    if batches:
        assert guarantee.total == pytest.approx(bound_with(policy, blowup), rel=1e-9)
    if 1 < blowup < policy.horizon:
        for smaller in {blowup - 1, max(1, int(0.9 * blowup)), max(1, blowup // 2)} - {blowup}:
            assert bound_with(policy, smaller, at_least=1) > rho * (1 - 1e-9)


def test_paper_mode_shows_what_its_own_union_bound_gives() -> None:
    guarantee = bd.RandomThreshold(arms=10, horizon=10**10, rho=0.1, constants="paper").guarantee()
    assert not guarantee.holds
    assert guarantee.total == pytest.approx(96 * 0.1, rel=1e-6)
    assert "9216" in guarantee.note


def test_constants_that_the_proof_is_not_about_have_no_guarantee() -> None:
    for constants in ("certified", "paper"):
        policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1, constants=constants)
        protocol = policy.protocol(seed=1).to_dict()
        protocol["resolved"]["blowup"] = 10**12  # the batches stay as they are
        changed: Any = bd.policy_of(bd.Protocol.from_dict(protocol))
        assert not changed.guarantee().holds
        assert changed.guarantee().total == 1.0


def test_outside_their_windows_good_means_decide_alike() -> None:
    """Lemma 2 at its edges: means off by up to U~/2, coins at either end; just inside, a pair can differ."""
    policy = POLICIES["2 arms"]
    batch = schedule_of(policy).batches[4]
    n, span = batch.samples, batch.span
    narrow = (batch.low - span) / n  # U~
    wide = 2 * span / n  # U

    def dropped(gap: float, leader_off: float, other_off: float, coin: float) -> bool:
        difference = n * (gap + leader_off - other_off)
        return bool(difference > batch.low + coin * span)

    corners = list(itertools.product((-narrow / 2, narrow / 2), (-narrow / 2, narrow / 2), (0.0, 1.0)))
    for gap, alike in (
        (wide / 2 * 0.999, True),
        (wide / 2 * 1.001, False),
        ((wide + 2 * narrow) * 0.999, False),
        ((wide + 2 * narrow) * 1.001, True),
    ):
        decisions = {dropped(gap, *corner) for corner in corners}
        assert (len(decisions) == 1) == alike, gap


def test_undecided_batches_counts_overlapping_windows() -> None:
    """Against a fine grid of gaps, for the widths of many horizons."""
    for horizon in (10**4, 10**6, 10**9, 10**12):
        policy = POLICIES["2 arms"].__class__(arms=2, horizon=horizon, rho=0.3)
        blowup, batches = schedule_of(policy)
        widths = [2 * batch.span / batch.samples for batch in batches]
        grid = np.geomspace(min(widths) / 4, 2 * max(widths), 200_000)
        inside = [(grid >= u / 2) & (grid <= u * (1 + 2 / math.sqrt(blowup))) for u in widths]
        log = confidence.log_factor(2, horizon, int(math.log(horizon)))
        exact = [confidence.width(0.5, log, batch.samples // blowup) for batch in batches]
        assert confidence.undecided_batches(exact, blowup, 1.0) == np.sum(inside, axis=0).max()


# -- decisions --------------------------------------------------------------------------------------------------------


def decide_once(policy: RandomThreshold, gaps: list[float], replicate: int = 0) -> tuple[list[bool], float]:
    """Which arms stay after the first test when arm j is `gaps[j]` cuts behind the leader."""
    coins = Coins(1, replicate)
    batch = schedule_of(policy).batches[0]
    cut = batch.low + float(coins.uniform("threshold", 1)[0, 0]) * batch.span
    totals = np.array([[1e6 - gap * cut for gap in gaps]])
    state = policy.decide(policy.init(1), totals, coins)
    return state.active[0].tolist(), cut


def test_the_cut_is_shared_and_an_arm_on_it_stays() -> None:
    policy = POLICIES["3 arms, Gaussian"]
    assert decide_once(policy, [0.0, 0.99, 1.01])[0] == [True, True, False]
    batch = schedule_of(policy).batches[0]
    low, high = batch.low, batch.low + batch.span
    cuts = [decide_once(policy, [0, 0, 0], replicate)[1] for replicate in range(50)]
    assert all(low <= cut < high for cut in cuts)
    assert len(set(cuts)) == 50
    # totals that are exact multiples: an arm exactly on the cut is kept, one unit further it is not
    coins = Coins(1)
    cut = math.floor(cuts[0])
    for behind, stays in ((cut, True), (cut + 1, False)):
        state = policy.decide(policy.init(1), np.array([[1000.0 + cut, 1000.0 + cut - behind, 1000.0 + cut]]), coins)
        assert state.active[0].tolist() == [True, stays, True]


@given(st.lists(st.integers(0, 20_000), min_size=5, max_size=5, unique=True), st.permutations(range(5)))
@settings(max_examples=50)
def test_permuting_the_arms_permutes_the_decision(totals: list[int], order: list[int]) -> None:
    policy = POLICIES["5 arms, paper"]
    start = policy.init(1)
    coins = Coins(9)
    plain = policy.decide(start, np.array([totals], dtype=np.float64), coins).active[0]
    permuted = policy.decide(start, np.array([[totals[j] for j in order]], dtype=np.float64), coins).active[0]
    assert permuted.tolist() == [plain[j] for j in order]


@given(st.integers(0, 2**32), st.integers(0, 1000))
@settings(max_examples=40)
def test_the_leader_is_never_dropped(seed: int, replicate: int) -> None:
    policy = POLICIES["2 arms"]
    generator = np.random.default_rng(seed)
    coins = Coins(4, replicate)
    state = policy.init(1)
    while (plan := policy.plan(state)) is not None:
        before = state
        state = policy.decide(state, np.round(plan * generator.random(2)), coins)
        leaders = np.where(before.active, state.totals, -np.inf)
        assert state.active[0, int(np.argmax(leaders[0]))]


def test_the_end_plays_the_lowest_active_arm() -> None:
    policy = bd.RandomThreshold(arms=4, horizon=10**8, rho=0.1)

    def second_is_bad(pulls: IntArray, batch: int) -> FloatArray:
        rates: FloatArray = pulls * np.array([0.1, 0.9, 0.9, 0.9])
        return rates

    plans, state = play(policy, Coins(2), second_is_bad)
    assert state.active[0].tolist() == [False, True, True, True]
    assert np.flatnonzero(plans[-1][0]).tolist() == [1]
    assert int(np.sum(plans)) == 10**8


def test_the_budget_is_tested_with_the_arms_that_are_left() -> None:
    """A batch that K arms cannot afford is played once enough of them have been dropped."""
    policy = bd.RandomThreshold(arms=10, horizon=10**8, rho=0.1, constants="paper")

    def one_good(pulls: IntArray, batch: int) -> FloatArray:
        rates: FloatArray = pulls * np.array([0.9, 0.88] + [0.05] * 8)
        return rates

    dropped, _ = play(policy, Coins(2), one_good)
    tied, _ = play(policy, Coins(2), lambda pulls, batch: pulls.astype(np.float64))
    assert len(dropped) > len(tied)


# -- horizons ---------------------------------------------------------------------------------------------------------


def best_case_drops(policy: RandomThreshold) -> bool:
    """Play the best case for dropping: one arm pays always, the others never, and the coin is 0."""

    class Zero(Coins):
        def uniform(self, purpose: str, batch: int, arm: int = 0) -> FloatArray:
            return np.zeros((1, 1))

    def extreme(pulls: IntArray, batch: int) -> FloatArray:
        totals = np.zeros(pulls.shape)
        totals[:, 0] = pulls[:, 0]
        return totals

    state: Race
    plans, state = play(policy, Zero(0), extreme)
    # dropped, and in time: a pull was left for somebody else
    return not bool(state.active.all()) and int(np.count_nonzero(plans[-1])) < policy.arms


def at_horizon(arms: int, horizon: int, rho: float) -> tuple[RandomThreshold, bool]:
    """The policy, and whether its constructor warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy = bd.RandomThreshold(arms=arms, horizon=horizon, rho=rho)
    return policy, bool(caught)


@pytest.mark.parametrize(("arms", "rho"), [(2, 0.5), (2, 0.2), (3, 0.5), (3, 0.9), (2, 0.1), (4, 0.8)])
def test_minimum_horizon_is_the_smallest_at_which_an_arm_can_be_dropped(arms: int, rho: float) -> None:
    base = bd.RandomThreshold(arms=arms, horizon=10**9, rho=rho)
    minimum = base.minimum_horizon()
    assert minimum == next(horizon for horizon in itertools.count(10) if base._can_drop_at(horizon))
    for horizon in (minimum - 1, minimum, minimum + 1, 2 * minimum, 10, 100):
        policy, warned = at_horizon(arms, horizon, rho)
        assert best_case_drops(policy) == (not warned) == base._can_drop_at(horizon)
        assert warned or horizon >= minimum


def test_a_short_horizon_is_warned_about_by_name() -> None:
    with pytest.warns(ShortHorizonWarning, match=r"must be at least 51301"):
        bd.RandomThreshold(arms=5, horizon=1000, rho=0.1)
    with pytest.warns(ShortHorizonWarning, match="no horizon in range is long enough"):
        bd.RandomThreshold(arms=1000, horizon=10**15, rho=0.001)


def test_when_rho_is_below_two_over_t_nothing_is_tested() -> None:
    with pytest.warns(ShortHorizonWarning):
        policy = bd.RandomThreshold(arms=2, horizon=10, rho=0.1)
    assert policy.guarantee().holds
    assert policy.guarantee().total == 0.0
    plans, _ = play(policy, Coins(1))
    assert [plan.tolist() for plan in plans] == [[[10, 0]]]


@pytest.mark.parametrize("arms", [2, 3, 10, 1000])
@pytest.mark.parametrize("exponent", [1, 2, 4, 9, 15])
@pytest.mark.parametrize("constants", ["certified", "paper"])
def test_pulls_add_up_over_the_whole_range(arms: int, exponent: int, constants: Any) -> None:
    horizon = max(10**exponent, arms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        policy = bd.RandomThreshold(arms=arms, horizon=horizon, rho=0.1, constants=constants)
    plans, _ = play(policy, Coins(3, count=5))
    assert [int(total) for total in np.sum(plans, axis=(0, 2))] == [horizon] * 5


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rho": 0}, "^rho: got 0"),
        ({"rho": 1}, "^rho: got 1"),
        ({"rho": math.nan}, "^rho: got nan"),
        ({"rho": "much"}, "^rho: got much"),
        ({"horizon": 9}, "^horizon: got 9"),
        ({"horizon": 10**15 + 1}, "^horizon: got 1000000000000001, allowed: an integer from 10 to 1e15"),
        ({"horizon": 1e40}, "^horizon: got 1e"),
        ({"horizon": 12.5}, "^horizon: got 12.5"),
        ({"arms": 20, "horizon": 19}, "at least one pull for each of the 20 arms"),
        ({"arms": 1}, "^arms: got 1, allowed: an integer from 2 to 1000"),
        ({"arms": 1001}, "^arms: got 1001"),
        ({"constants": "guessed"}, "^constants: got guessed, allowed: 'certified' or 'paper'"),
        ({"sigma": 0.0}, "^sigma: got 0.0"),
        ({"sigma": 0.4, "rewards": "bounded"}, "^sigma: got 0.4"),
        ({"rewards": "cauchy"}, "^rewards: got cauchy"),
    ],
)
def test_bad_arguments_are_refused_at_once(change: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"arms": 3, "horizon": 10**6, "rho": 0.2}
    with pytest.raises(InvalidArgument, match=said):
        bd.RandomThreshold(**good | change)


def test_rewards_that_the_guarantee_does_not_cover_are_refused() -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.2)
    bd.certify(policy, bd.Gaussian([0.0, 1.0], sigma=0.5), pairs=1)  # the same kappa
    with pytest.raises(InvalidArgument, match=r"^environment: got gaussian rewards, sigma 1, allowed: rewards in"):
        bd.certify(policy, bd.Gaussian([0.0, 1.0], sigma=1.0), pairs=1)
