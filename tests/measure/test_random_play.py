"""Random play: shares of its regret, who is warned, and what is said of arms that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

import banditto as bd
from banditto.measure.random_play import coin_warning, in_words, is_a_coins, percent, share_of_random_play, what_helps
from banditto.measure.unknown_arms import decided_from, lead_warning, rehearsed_share, share_on_averages
from banditto.policies.shared.replicable import without_warnings
from tests.lazily import Lazily

LINEAR: dict[str, Any] = {"actions": [[1, 0], [0.6, 0.6], [0, 1]], "horizon": 10**6, "rho": 0.3}
SUBGAUSSIAN: dict[str, Any] = {"arms": 3, "horizon": 10**6, "rho": 0.2, "sigma": 2.0}
POLICIES: Lazily[Any] = Lazily(
    {
        "close": lambda: bd.CertifiedElimination(arms=2, horizon=10**4, rho=0.1),
        "promised": lambda: bd.ExploreThenCommit(arms=3, horizon=10**4, rho=0.2, gap=0.25),
        "gaussian": lambda: bd.CertifiedElimination(**SUBGAUSSIAN, rewards="gaussian"),
        "subgaussian": lambda: bd.RandomThreshold(**SUBGAUSSIAN | {"horizon": 10**9}, rewards="subgaussian"),
        "linear": lambda: bd.CertifiedLinear(**LINEAR),
        "linear gaussian": lambda: bd.CertifiedLinear(**LINEAR, sigma=1.0, rewards="gaussian"),
    }
)


def test_the_share_is_of_the_regret_of_equal_pulls() -> None:
    # best 0.9, average 0.6: 0.3 for each of 1000 pulls
    assert share_of_random_play(30.0, (0.9, 0.6, 0.3), 1000) == pytest.approx(0.1)
    assert share_of_random_play(0.0, (0.9, 0.6, 0.3), 1000) == 0.0
    assert share_of_random_play(2.0, (-1.0, -3.0), 2) == pytest.approx(1.0)
    assert share_of_random_play(1e-9, (1e-9, 0.0), 2) == pytest.approx(1.0)


@pytest.mark.parametrize("means", [(), (0.5, 0.5), (0.1 + 0.2, 0.3), (0.0, 0.0, 0.0)])
def test_without_anything_to_lose_there_is_no_share(means: tuple[float, ...]) -> None:
    share = share_of_random_play(0.0, means, 10**15)
    assert share is None
    assert not is_a_coins(share)
    assert percent(share) == "-"
    assert in_words(share, means).startswith("none: all arms" if means else "none: infinitely many")


@pytest.mark.parametrize(("share", "coin"), [(0.0, False), (0.8999, False), (0.9, True), (1.5, True)])
def test_from_nine_tenths_on_a_coin_would_do_as_well(share: float, coin: bool) -> None:
    assert is_a_coins(share) == coin
    assert ("a coin would do as well" in in_words(share, (0.5, 0.6))) == coin


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (0.000123, "0.012%"), (0.0367, "3.7%"), (0.1, "10%"), (0.966, "97%"), (2.0, "200%")],
)
def test_percentages_for_people(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_warning_offers_what_the_policy_has() -> None:
    assert what_helps({"gap": ""}, replicable=True) == "a longer horizon, a larger rho or a named gap would help"
    assert what_helps({"gap": "0.2"}, replicable=True) == "a longer horizon or a larger rho would help"
    assert what_helps({}, replicable=False) == "a longer horizon would help"
    assert coin_warning(0.97, {}, replicable=False).endswith(
        "regret is 97% of random play; a longer horizon would help"
    )


def test_certificates_and_rows_have_the_share() -> None:
    close, world = POLICIES["close"], bd.Bernoulli([0.5, 0.52])
    certificate = bd.certify(close, world, pairs=500)
    assert certificate.share_of_random_play == pytest.approx(certificate.regret.mean / (10**4 * 0.01))
    assert certificate.coin_decides
    assert "a named gap" in certificate.warning
    compared = bd.compare([close, bd.UCB1()], world, pairs=50, rounds=10**6)
    mine, other = compared.entrants
    assert mine.warning.startswith("certified-elimination: a coin would do as well")
    assert other.warning == ""
    assert [row["share_of_random_play"] for row in compared.records()] == [
        row.certificate.share_of_random_play for row in compared.entrants
    ]
    learnt = bd.certify(bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.1), bd.Bernoulli([0.9, 0.1]), pairs=20)
    assert (learnt.coin_decides, learnt.warning) == (False, "")


def test_equal_arms_and_infinitely_many_have_none() -> None:
    equal = bd.certify(POLICIES["close"], bd.Bernoulli([0.5, 0.5]), pairs=10)
    assert (equal.share_of_random_play, equal.coin_decides, equal.warning) == (None, False, "")
    assert "none: all arms are equally good" in equal.table()
    ball = bd.Ball(dimension=2)
    policy = bd.CertifiedLinear(actions=ball, horizon=10**5, rho=0.3)
    endless = bd.certify(policy, bd.LinearBernoulli([0.6, -0.3], ball), pairs=2)
    assert endless.share_of_random_play is None
    assert "none: infinitely many actions" in endless.table()


@pytest.mark.slow
def test_plans_have_the_share_and_warn() -> None:
    found = bd.plan(arms=2, gap=0.5, rho=0.3, policy="explore-then-commit")
    assert found.share_of_random_play == pytest.approx(found.regret.mean / (found.horizon * 0.25))  # half are 0.5 worse
    assert (found.coin_decides, found.warning) == (False, "")
    hasty = bd.plan(arms=2, gap=0.3, rho=0.3, by=1)
    assert hasty.share_of_random_play is not None
    assert hasty.share_of_random_play >= 0.9
    assert "nearly all pulls are spent before the decision" in hasty.warning
    assert not hasty.coin_decides  # it keeps its promise, such as it is


def test_a_lead_is_found_from_which_on_rewards_decide() -> None:
    close = POLICIES["close"]
    lead = decided_from(close)
    assert lead is not None
    for factor, coin in ((0.7, True), (1.4, False)):
        world = bd.Bernoulli([0.5 - factor * lead / 2, 0.5 + factor * lead / 2])
        assert is_a_coins(rehearsed_share(close, world)) == coin
        assert bd.certify(close, world, pairs=4096, seed=3).coin_decides == coin  # other pairs say the same
    assert lead_warning(close, lead) == ""


def test_a_named_gap_that_is_too_narrow_and_a_horizon_that_is_too_short() -> None:
    narrow = bd.CertifiedElimination(arms=2, horizon=10**4, rho=0.1, gap=0.02)
    told = lead_warning(narrow, decided_from(narrow))
    assert "as well as the rewards where the best arm leads by 0.02, the named gap: rewards decide from about 0" in told
    with without_warnings():
        short = bd.RandomThreshold(arms=3, horizon=2000, rho=0.1)
    assert decided_from(short) is None
    assert "whatever the arms are" in lead_warning(short, None)


@pytest.mark.parametrize("name", POLICIES)
def test_every_kind_of_policy_has_a_lead(name: str) -> None:
    policy = POLICIES[name]
    lead = decided_from(policy)
    assert lead is not None
    assert lead > 0.0
    if policy.guarantee().promised_gap is not None:
        assert lead == policy.guarantee().promised_gap
    assert lead_warning(policy, lead) == ""


def test_a_logs_averages_say_what_the_order_of_its_arms_hides() -> None:
    with without_warnings():
        first = bd.RandomThreshold(arms=3, horizon=600, rho=0.1)  # it plays the first arm
    averages = (0.6, 0.5, 0.4)
    assert rehearsed_share(first, bd.Bernoulli(averages)) == pytest.approx(0.0)
    assert is_a_coins(share_on_averages(first, averages))
    assert share_on_averages(bd.UCB1(), averages) is None
    assert share_on_averages(POLICIES["linear"], averages) is None
    assert share_on_averages(first, (0.5, 0.5, 0.5)) is None
