"""Replays: rows in their order, the simulator's own decisions, and what is said when the rows run out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.errors import InvalidArgument
from banditto.policies.policy import BatchedPolicy
from tests.lazily import Lazily


def coin_log(sizes: tuple[int, ...], means: tuple[float, ...], seed: int = 3) -> bd.RewardLog:
    """0/1 rewards with these means, arm after arm."""
    noise = np.random.default_rng(seed)
    rows = [(f"arm {k}", int(x)) for k, n in enumerate(sizes) for x in noise.random(n) < means[k]]
    return bd.RewardLog.of(rows)


def by_hand(policy: BatchedPolicy[Any], log: bd.RewardLog, seed: int) -> list[list[int]]:
    """The plans of an execution on the first rows, by the interface alone; until an arm has too few."""
    state, read, plans = policy.init(1), [0] * len(log.arms), []
    while (plan := policy.plan(state)) is not None:
        plans.append(plan[0].tolist())
        ends = [before + more for before, more in zip(read, plans[-1], strict=True)]
        if sum(map(sum, plans)) == policy.horizon:
            break
        if any(end > len(rows) for end, rows in zip(ends, log.rewards, strict=True)):
            break
        totals = [math.fsum(rows[a:b]) for rows, a, b in zip(log.scaled(), read, ends, strict=True)]
        state, read = policy.decide(state, np.array([totals]), Coins(seed, 0, 1)), ends
    return plans


POLICIES: Lazily[Any] = Lazily(
    {
        "certified-elimination": lambda: bd.CertifiedElimination(arms=3, horizon=20_000, rho=0.4),
        "batched-elimination": lambda: bd.BatchedElimination(arms=3, horizon=20_000),
        "explore-then-commit": lambda: bd.ExploreThenCommit(arms=3, horizon=20_000, rho=0.3, gap=0.2),
    }
)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("sizes", [(9000, 9000, 9000), (2000, 60, 2000)])
def test_a_replay_is_the_policy_on_the_first_rows(name: str, sizes: tuple[int, ...]) -> None:
    policy = POLICIES[name]
    log = coin_log(sizes, (0.8, 0.4, 0.5))
    found = bd.replay(policy, log, seed=5)
    plans = by_hand(policy, log, 5)
    assert [list(batch.pulls) for batch in found.batches] == plans
    assert found.pulls == tuple(map(sum, zip(*plans, strict=True)))
    for rewards, read, average in zip(log.rewards, found.read, found.averages, strict=True):
        assert average == (pytest.approx(sum(rewards[:read]) / read) if read else None)
    assert found.finished == (sizes[1] == 9000)
    assert (found.decided == 20_000) == found.finished


@pytest.mark.parametrize("policy", [bd.UCB1(), bd.Thompson(), bd.MOSS(), bd.SuccessiveElimination()])
def test_where_rewards_are_certain_a_replay_is_the_first_pair_of_the_simulator(policy: Any) -> None:
    """The same coins, so the same sequence, round for round and digest for digest."""
    log = bd.RewardLog.of([(arm, reward) for arm, reward in (("a", 1), ("b", 0), ("c", 1)) for _ in range(400)])
    found = bd.replay(policy, log, seed=11, horizon=400)
    simulated = bd.watch_pair(policy, bd.Bernoulli([1.0, 0.0, 1.0]), seed=11, horizon=400)
    assert found.finished
    assert found.digest == simulated.digests[0]
    batched = bd.CertifiedElimination(arms=3, horizon=5000, rho=0.4)
    view = bd.watch_pair(batched, bd.Bernoulli([1.0, 0.0, 1.0]), seed=11, points=5000)
    long = bd.RewardLog.of([(arm, reward) for arm, reward in (("a", 1), ("b", 0), ("c", 1)) for _ in range(5000)])
    arms = np.repeat(*map(np.array, zip(*bd.replay(batched, long, seed=11).runs, strict=True)))
    assert np.array_equal(arms[view.rounds], view.first)


def test_rows_are_read_once_and_in_order() -> None:
    """Successive halves of the rows differ, so the average read says which rows they were."""
    log = bd.RewardLog.of([("a", k / 1000) for k in range(1000)] + [("b", 1)] * 1000)
    found = bd.replay(bd.UCB1(), log, horizon=300)
    assert found.read == found.pulls
    reads = found.read[0]
    assert found.averages[0] == pytest.approx((reads - 1) / 2000)
    shifted = bd.RewardLog.of([("a", 0.5 + k / 2000) for k in range(1000)] + [("b", 1)] * 1000)
    assert bd.replay(bd.UCB1(), shifted, horizon=300).read[0] > reads


def test_a_dry_stream_says_which_arm_what_was_asked_and_what_is_left() -> None:
    policy = POLICIES["certified-elimination"]
    found = bd.replay(policy, coin_log((2000, 150, 2000), (0.8, 0.4, 0.5)))
    first, second = (batch.pulls[1] for batch in found.batches[:2])
    assert first <= 150 < first + second
    assert found.dry == (("arm 1", 2, second, 150 - first),)
    assert found.read == (first,) * 3
    assert found.told() == (
        f"The log ran dry in batch 2: arm 1 is asked for {second:,} and has {150 - first:,} left. Cut off there, with "
        f"{3 * (first + second):,} of 20,000 pulls decided."
    )
    assert found.told() in found.table()
    rounds = bd.replay(bd.UCB1(), coin_log((5, 5, 5), (0.8, 0.4, 0.5)), horizon=100)
    assert (rounds.dry[0].asked, rounds.dry[0].left) == (1, 0)
    assert rounds.dry[0].place == rounds.decided == sum(rounds.read) + 1
    assert max(rounds.pulls) == 6


def test_the_last_batch_and_the_last_round_need_no_rows() -> None:
    policy = POLICIES["explore-then-commit"]
    log = coin_log((policy.pulls, policy.pulls + 7, policy.pulls), (0.2, 0.9, 0.2))
    found = bd.replay(policy, log)
    assert found.finished
    assert found.read == (policy.pulls, policy.pulls + 7, policy.pulls)
    unread = 20_000 - log.rows
    assert found.told() == (
        f"All 20,000 pulls are decided. The log has no rows for the last {unread:,}, which decide nothing."
    )
    certain = bd.RewardLog.of([("a", 1)] * 40 + [("b", 0)] * 40)
    whole = bd.replay(bd.UCB1(), certain, horizon=30)
    assert whole.runs[-1][0] == 0  # the last round is a's
    short = bd.RewardLog.of([("a", 1)] * (whole.pulls[0] - 1) + [("b", 0)] * 40)
    assert bd.replay(bd.UCB1(), short, horizon=30).finished
    assert not bd.replay(bd.UCB1(), short, horizon=31).finished


def test_two_labs_on_two_halves() -> None:
    log = coin_log((4000, 4000, 4000), (0.9, 0.2, 0.3))
    one, two = (bd.replay(POLICIES["explore-then-commit"], half) for half in log.split())
    assert one.against(two) == (20_000, None)
    assert one.digest == two.digest
    first, second = (bd.replay(bd.UCB1(), half, horizon=log.rows) for half in log.split())
    parting = first.against(second)
    assert parting.compared == min(first.decided, second.decided)
    assert parting.parted is not None
    pulled = [np.repeat(*map(np.array, zip(*run.runs, strict=True))) for run in (first, second)]
    apart = np.flatnonzero(pulled[0][: parting.compared] != pulled[1][: parting.compared])
    assert parting.parted == apart[0] + 1
    other: Any
    for other in (one, bd.replay(bd.UCB1(), log, seed=1), 5):
        with pytest.raises(InvalidArgument, match="^other: got another experiment"):
            first.against(other)


def test_a_cut_replay_is_compared_as_far_as_both_go() -> None:
    log = coin_log((2000, 2000, 2000), (0.8, 0.4, 0.5))
    short = bd.RewardLog(arms=log.arms, rewards=tuple(rewards[:200] for rewards in log.rewards))
    whole, cut = (bd.replay(bd.UCB1(), each, horizon=3000) for each in (log, short))
    assert not cut.finished
    assert whole.against(cut) == cut.against(whole) == (cut.decided, None)


REFUSED: Lazily[Any] = Lazily(
    {
        "three arms": lambda: POLICIES["certified-elimination"],
        "two arms": lambda: bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.3),
        "rounds": bd.UCB1,
        "class": lambda: bd.UCB1,
        "linear": lambda: bd.LinearThreshold(actions=[[1, 0], [0, 1], [0.6, 0.6]], horizon=10**5, rho=0.3),
    }
)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("two arms", {}, "^environment: got 3 arms, allowed: 2 arms"),
        ("three arms", {"horizon": 50}, "^horizon: got 50, allowed: 20000"),
        ("three arms", {"seed": -1}, "^seed: got -1"),
        ("rounds", {"horizon": 2}, "^horizon: got 2"),
        ("class", {}, "^policy: got"),
        ("linear", {}, "a linear environment"),
    ],
)
def test_what_cannot_be_replayed(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        bd.replay(REFUSED[name], coin_log((20, 20, 20), (0.5, 0.5, 0.5)), **options)


def test_a_log_is_needed() -> None:
    odd: Any = "rewards.csv"
    with pytest.raises(InvalidArgument, match="^log: got rewards.csv, allowed: a RewardLog"):
        bd.replay(bd.UCB1(), odd)
