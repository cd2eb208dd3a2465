"""Warm-up I: its constants, its promise, its decisions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.testing import POLICY_CHECKS
from banditto.testing.policy_contract import Check, play

POLICIES = {
    "2 arms": bd.ExploreThenCommit(arms=2, horizon=10**4, rho=0.2, gap=0.2),
    "5 arms, paper": bd.ExploreThenCommit(arms=5, horizon=10**6, rho=0.1, gap=0.05, constants="paper"),
    "7 arms, sigma 1": bd.ExploreThenCommit(arms=7, horizon=10**5, rho=0.5, gap=3.0, sigma=1.0),
    "1000 arms": bd.ExploreThenCommit(arms=1000, horizon=10**15, rho=0.1, gap=0.001),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract(policy: bd.ExploreThenCommit, check: Check) -> None:
    check(policy)


@pytest.mark.parametrize(
    ("constants", "sigma", "pulls"),
    [
        ("paper", 0.5, math.ceil(400 * math.log(10))),
        ("paper", 1.0, math.ceil(1600 * math.log(10))),
        ("certified", 0.5, math.ceil(100 * math.log(2 * 4 / 0.1))),
        ("certified", 1.0, math.ceil(400 * math.log(2 * 4 / 0.1))),
    ],
)
def test_pulls_by_hand(constants: Any, sigma: float, pulls: int) -> None:
    policy = bd.ExploreThenCommit(arms=5, horizon=10**6, rho=0.1, gap=0.1, constants=constants, sigma=sigma)
    assert policy.pulls == pulls
    assert policy.guarantee().total == pytest.approx(8 * math.exp(-pulls * 0.01 / (4 * sigma**2)), rel=1e-7)
    assert policy.guarantee().holds


def test_the_papers_pulls_do_not_always_suffice() -> None:
    """Its bound grows with K, its pulls do not: at rho = 0.9 and 50 arms nothing is proved."""
    policy = bd.ExploreThenCommit(arms=50, horizon=10**6, rho=0.9, gap=0.1, constants="paper")
    assert not policy.guarantee().holds


def test_it_commits_to_the_best_total_and_ties_go_to_the_lowest_index() -> None:
    policy = bd.ExploreThenCommit(arms=3, horizon=10**5, rho=0.1, gap=0.1)
    rows = np.array([[5.0, 9.0, 7.0], [4.0, 4.0, 4.0], [1.0, 8.0, 8.0]])
    plans, _ = play(policy, Coins(1, count=3), lambda pulls, batch: rows)
    assert len(plans) == 2
    assert (plans[0] == policy.pulls).all()
    assert [int(np.flatnonzero(row)[0]) for row in plans[1]] == [1, 0, 1]


def test_the_guarantee_holds_only_under_its_promise() -> None:
    guarantee = bd.ExploreThenCommit(arms=3, horizon=10**5, rho=0.1, gap=0.1).guarantee()
    assert "better than all others by at least 0.1" in guarantee.table()
    assert guarantee.on([0.9, 0.8, 0.8]) is guarantee  # 0.9 - 0.8 is a tenth, whatever floats make of it
    for means in ([0.9, 0.85, 0.1], [0.9, 0.9, 0.1]):
        broken = guarantee.on(means)
        assert not broken.holds
        assert broken.terms[0].name == "promise broken"
        assert "promised were 0.1" in broken.terms[0].statement


def test_certify_shows_no_bound_off_the_promise() -> None:
    policy = bd.ExploreThenCommit(arms=2, horizon=10**5, rho=0.1, gap=0.2)
    kept = bd.certify(policy, bd.Bernoulli([0.3, 0.5]), pairs=200)
    assert kept.bound == policy.guarantee().total
    broken = bd.certify(policy, bd.Bernoulli([0.4, 0.5]), pairs=200)
    assert broken.bound is None
    assert "none: promise broken, the best arm leads by 0.1, promised were 0.2" in broken.table()
    guarantee = broken.to_dict()["guarantee"]
    assert guarantee is not None
    assert guarantee["holds"] is False


def test_a_short_horizon_warns() -> None:
    with pytest.warns(ShortHorizonWarning, match="it must be at least 739"):
        policy = bd.ExploreThenCommit(arms=2, horizon=500, rho=0.05, gap=0.1)
    assert policy.minimum_horizon() == 739
    assert policy.guarantee().total == 0.0
    assert policy.guarantee().on([0.5, 0.5]).holds  # nothing is decided, so nothing can differ
    with pytest.warns(ShortHorizonWarning, match="no horizon in range"):
        tiny = bd.ExploreThenCommit(arms=2, horizon=10**15, rho=0.05, gap=1e-9)
    assert tiny.minimum_horizon() is None
    assert [plan.tolist() for plan in play(tiny, Coins(1))[0]] == [[[10**15, 0]]]


@pytest.mark.parametrize("gap", [0.0, -0.1, 1.5, float("nan"), "wide", None])
def test_bad_gaps(gap: Any) -> None:
    with pytest.raises(InvalidArgument, match="^gap: got"):
        bd.ExploreThenCommit(arms=2, horizon=10**5, rho=0.1, gap=gap)


def test_protocols_without_a_gap_are_refused() -> None:
    policy = bd.ExploreThenCommit(arms=2, horizon=10**5, rho=0.1, gap=0.2)
    content = policy.protocol(seed=1).to_toml()
    with pytest.raises(InvalidArgument, match="settings without 'gap'"):
        bd.policy_of(bd.Protocol.from_toml(content.replace('gap = "0.2"\n', "")))
    with pytest.raises(InvalidArgument, match="^pulls: got"):
        bd.policy_of(bd.Protocol.from_toml(content.replace(f"pulls = {policy.pulls}", "pulls = 0")))
