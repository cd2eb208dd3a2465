"""OneCut on Bernoulli arms: as right as it says, no bad default, little regret. Seeds are fixed."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import binom

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.engine.player import player_of, run_of
from banditto.measure.random_play import share_of_random_play


def played(policy: bd.OneCut, means: list[float], executions: int) -> list[int]:
    """How many executions play each arm for good."""
    player = player_of(run_of(policy, bd.Bernoulli(means), seed=5, noise_seed=6, horizon=None))
    counts = [0] * policy.arms
    followed = player.follow(Coins(5, 0, executions), Noise(6, 0, 0))
    for pulls, _ in followed.batches():
        alone = (pulls > 0).sum(axis=1) == 1
        for arm in range(policy.arms):
            counts[arm] += int((alone & (pulls[:, arm] > 0)).sum())
    return counts


@pytest.mark.parametrize(
    ("options", "base"),
    [
        ({"arms": 2, "rho": 0.1}, 0.475),
        ({"arms": 2, "rho": 0.9}, 0.475),
        ({"arms": 2, "rho": 0.3, "power": 0.7}, 0.475),
        ({"arms": 4, "rho": 0.1}, 0.475),
        ({"arms": 10, "rho": 0.5, "power": 0.8}, 0.475),
        ({"arms": 3, "rho": 0.3, "control": 0}, 0.475),
        ({"arms": 4, "rho": 0.3, "rate_at_most": 0.1}, 0.05),
    ],
)
def test_the_best_arm_is_found_as_often_as_was_said(options: dict[str, Any], base: float) -> None:
    """20,000 executions at the named gap: 0.7% too few of 95% would be seen; false failures 1e-7 in each case."""
    policy = bd.OneCut(horizon=10**8, gap=0.05, **options)
    counts = played(policy, [base] * (policy.arms - 1) + [base + 0.05], 20_000)
    assert sum(counts) == 20_000
    assert counts[-1] >= binom.ppf(1e-7, 20_000, policy.reached_power)


def test_bad_arms_are_not_the_default() -> None:
    """Two arms tie and two are 0.3 worse: 1% plays one of these at most (1.5% would be seen), and regret is low."""
    policy = bd.OneCut(arms=4, horizon=10**7, rho=0.1, gap=0.05)
    counts = played(policy, [0.8, 0.8, 0.5, 0.5], 20_000)
    assert counts[2] + counts[3] <= binom.ppf(1.0 - 1e-7, 20_000, 0.01)
    found = bd.certify(policy, bd.Bernoulli([0.8, 0.8, 0.5, 0.5]), pairs=2000, seed=7)
    share = share_of_random_play(found.regret.mean, [0.8, 0.8, 0.5, 0.5], 10**7)
    assert share is not None
    assert share <= 0.15


@pytest.mark.parametrize(("gap", "digits"), [(0.05, 6), (0.1, 8)])
def test_regret_at_the_named_gap(gap: float, digits: int) -> None:
    """Four times less than CertifiedElimination that was told the same; six were measured."""
    known: dict[str, Any] = {"arms": 2, "horizon": 10**digits, "rho": 0.1, "gap": gap}
    world = bd.Bernoulli([0.5 - gap / 2, 0.5 + gap / 2])
    own = bd.certify(bd.OneCut(**known, power=None), world, pairs=2000, seed=8).regret.mean
    other = bd.certify(bd.CertifiedElimination(**known), world, pairs=2000, seed=8).regret.mean
    assert other >= 4.0 * own
