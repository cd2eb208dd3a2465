"""The least regret on given arms: by hand, against measured policies, and where there is none."""

from __future__ import annotations

from typing import Any

import pytest

import banditto as bd
from banditto.measure.comparison import least_explained
from banditto.measure.crossing_paths import Demand, coin_moves, normal_arm_moves
from banditto.measure.least_regret import least_in_words, least_regret, least_regret_of

ASKED = Demand(0.1, 0.95)


def test_the_arms_of_lower_bound_are_among_those_that_may_be_given() -> None:
    """Where all worse arms are behind by the gap, regret is the gap times the pulls that `lower_bound` prints."""
    coins = bd.lower_bound(arms=3, gap=0.05, rho=0.1, rewards="bounded", kind="adaptive").per_arm
    found = least_regret([0.45, 0.5, 0.45], 0.1)
    assert found is not None
    assert coins <= found / (2 * 0.05) < coins + 1
    normal = bd.lower_bound(arms=3, gap=0.3, rho=0.1, sigma=2.0, kind="adaptive").per_arm
    found = least_regret([-0.3, -0.3, 0.0], 0.1, sigma=2.0)
    assert found is not None
    assert normal <= found / (2 * 0.3) < normal + 1


def test_by_hand() -> None:
    """Gaps 0.1 and 0.4: every worse arm must be told from one that leads the best by 0.1."""
    coins = 0.1 * coin_moves(ASKED, 0.5, 0.7) + 0.4 * coin_moves(ASKED, 0.2, 0.7)
    assert least_regret([0.5, 0.2, 0.6], 0.1) == pytest.approx(coins)
    normal = 0.1 * normal_arm_moves(ASKED, 0.2 / 0.5) + 0.4 * normal_arm_moves(ASKED, 0.5 / 0.5)
    assert least_regret([0.5, 0.2, 0.6], 0.1, sigma=0.5) == pytest.approx(normal)


@pytest.mark.parametrize("means", [[0.5, 0.5], [0.3, 0.7, 0.7], [0.1 + 0.2, 0.3], [0.8], [], [0.4, 0.8]])
def test_where_nothing_is_proved(means: list[float]) -> None:
    assert least_regret(means, 0.1) is None


def test_rates_and_the_ends_of_the_unit_interval() -> None:
    assert least_regret([0.8, 0.9], 0.1) is not None  # 0.9 + 0.1 is 1, whatever the floats say
    assert least_regret([0.0, 0.3], 0.1) is not None
    assert least_regret([0.03, 0.05], 0.1, top=0.07) == pytest.approx(0.02 * coin_moves(ASKED, 0.03, 0.07))
    assert least_regret([0.03, 0.05], 0.1, top=0.06) is None


def policies() -> list[Any]:
    return [
        bd.OneCut(arms=2, horizon=10**6, rho=0.1, gap=0.1),
        bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.1),
        bd.ExploreThenCommit(arms=2, horizon=10**6, rho=0.1, gap=0.1),
        bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1, constants="paper"),
        bd.UCB1(),
    ]


@pytest.mark.parametrize("world", [bd.Bernoulli([0.5, 0.6]), bd.Bernoulli([0.75, 0.85])])
def test_multiples_are_given_for_those_with_a_proof_for_all_arms(world: bd.Bernoulli) -> None:
    compared = bd.compare(policies(), world, pairs=200, rounds=10**4)
    least = least_regret(world.means, 0.1)
    assert least is not None
    assert [row.least_regret for row in compared.entrants] == [least, least, None, None, None]
    assert all(row.certificate.regret.mean > least for row in compared.entrants[:2])
    assert [row["least_regret"] for row in compared.to_dict()["policies"]] == [least, least, None, None, None]
    assert [row["least_regret"] for row in compared.records()] == [least, least, None, None, None]
    (sentence,) = least_explained(compared)
    assert sentence.startswith("No policy that is replicable with rho = 0.1 on all arms with 0/1 rewards, and that")
    assert "to one that leads by 0.1, can do with less regret here than" in sentence
    assert "one-cut" in sentence
    assert "ucb1" not in sentence
    assert "below 1" not in sentence


def test_families_and_rhos_have_sentences_of_their_own() -> None:
    world = bd.Bernoulli([0.03, 0.05])
    known: dict[str, Any] = {"arms": 2, "horizon": 10**7, "gap": 0.02}
    promised = bd.certify(bd.OneCut(rho=0.1, rate_at_most=0.1, **known), world, pairs=20)
    tight = bd.certify(bd.OneCut(rho=0.1, rate_at_most=0.06, **known), world, pairs=20)
    larger = bd.certify(bd.OneCut(rho=0.3, **known), world, pairs=20)
    assert least_regret_of(tight) is None
    assert least_regret_of(promised) == least_regret(world.means, 0.1)
    first, second = least_in_words([("a", promised), ("b", tight), ("c", larger)])
    assert "rho = 0.1 on all arms with 0/1 rewards and rates of at most 0.1, and" in first
    assert "rho = 0.3 on all arms with 0/1 rewards, and" in second


def test_gaussian_arms_and_horizons_that_are_too_short() -> None:
    world = bd.Gaussian([0.0, 0.01], sigma=0.5)
    policy = bd.CertifiedElimination(arms=2, horizon=1000, rho=0.1, rewards="gaussian")
    compared = bd.compare([policy], world, pairs=50)
    (sentence,) = least_explained(compared)
    assert "on all Gaussian arms with sigma 0.5, and" in sentence
    assert sentence.endswith(" (below 1: it does not find such an arm so surely).")


def test_other_rewards_have_none() -> None:
    policy = bd.CertifiedElimination(arms=2, horizon=10**4, rho=0.3)
    for world in (bd.Beta([0.4, 0.5], 4), bd.Bernoulli([0.5, 0.5])):
        assert least_explained(bd.compare([policy], world, pairs=4)) == []
