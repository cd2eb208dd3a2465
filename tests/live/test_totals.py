"""Whole batches told as totals, on both stores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.core.errors import BandittoError, ConflictError, InvalidArgument
from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from tests.live.test_contract import unchanged
from tests.live.worlds import registration_of, simulated_plans, small, small_policy


@pytest.fixture
def experiment(store_url: str) -> Iterator[Experiment]:
    with Experiment.create(store_url, "cta", small(arm_names=["A", "B"])) as made:
        yield made


def test_totals_are_the_simulators(experiment: Experiment, store_url: str) -> None:
    totals = [[3.25, 3.0], [9.5, 10.5]]
    assert simulated_plans(small_policy(), 7, totals) == [(6, 6), (20, 20), (48, 0)]
    assert experiment.tell_totals(1, {"A": (6, 3.25), "B": (6, 3.0)}) == "recorded"
    assert experiment.tell_totals(1, {"B": (6, 3.0), "A": (6, 3.25)}) == "repeated"
    numbers: Any = {0: (20, 9.5), np.int64(1): (np.int32(20), np.float64(10.5))}
    assert experiment.tell_totals(2, numbers) == "recorded"
    assert experiment.status().plan == {"A": 48}
    other = "^batch 1 was decided with other totals$"
    unchanged(experiment, partial(experiment.tell_totals, 1, {"A": (6, 3.0), "B": (6, 3.0)}), ConflictError, other)
    assert experiment.tell_totals(3, {0: (48, 1), 1: (0, 0)}) == "recorded"
    assert experiment.tell_totals(3, {0: (48, 1), 1: (0, 0)}) == "repeated"
    assert experiment.status().state == "finished"
    ended = "^the experiment is finished$"
    unchanged(experiment, partial(experiment.tell_totals, 4, {0: (48, 1)}), ConflictError, ended)
    assert verify(store_url, "cta").holds


BAD: dict[str, tuple[Any, Any, str]] = {
    "too few": (1, {"A": (5, 3.0), "B": (6, 3.0)}, "^totals: got .*, allowed: the counts that were planned"),
    "one arm": (1, {"A": (6, 3.0)}, "^totals: got .*, allowed: the counts that were planned"),
    "none": (1, {}, "^totals: got .*, allowed: the counts that were planned"),
    "too large": (1, {"A": (6, 6.000001), "B": (6, 3.0)}, "^total: got 6.000001, allowed: the sum of 6 rewards"),
    "too small": (1, {"A": (6, -0.1), "B": (6, 3.0)}, "^total: got -0.1, allowed: the sum of 6 rewards"),
    "nan": (1, {"A": (6, math.nan), "B": (6, 3.0)}, "^total: got nan, allowed: a finite number"),
    "inf": (1, {"A": (6, math.inf), "B": (6, 3.0)}, "^total: got inf, allowed: a finite number"),
    "huge": (1, {"A": (6, 10**400), "B": (6, 3.0)}, "^total: got an integer of"),
    "text": (1, {"A": (6, "3"), "B": (6, 3.0)}, "^total: got 3, allowed: a finite number"),
    "bool": (1, {"A": (6, True), "B": (6, 3.0)}, "^total: got True, allowed: a finite number"),
    "count": (1, {"A": (6.5, 3.0), "B": (6, 3.0)}, "^count: got 6.5"),
    "negative": (1, {"A": (-6, 3.0), "B": (6, 3.0)}, "^count: got -6"),
    "no pair": (1, {"A": 3.0, "B": (6, 3.0)}, "^totals: got 3.0"),
    "no table": (1, [("A", (6, 3.0))], "^totals: got"),
    "unknown arm": (1, {"C": (6, 3.0), "B": (6, 3.0)}, "^arm: got C, allowed: one of A, B"),
    "no arm": (1, {2: (6, 3.0), "B": (6, 3.0)}, "^arm: got 2"),
    "twice": (1, {"A": (6, 3.0), 0: (6, 3.0), "B": (6, 3.0)}, "^totals: got arm A more than once"),
    "later batch": (2, {"A": (6, 3.0), "B": (6, 3.0)}, "^batch: got 2, allowed: 1"),
    "no batch": (0, {"A": (6, 3.0), "B": (6, 3.0)}, "^batch: got 0"),
}


@pytest.mark.parametrize(("batch", "totals", "match"), BAD.values(), ids=BAD.keys())
def test_wrong_totals_change_nothing(experiment: Experiment, batch: Any, totals: Any, match: str) -> None:
    unchanged(experiment, partial(experiment.tell_totals, batch, totals), InvalidArgument, match)


def test_totals_are_refused_once_there_are_tickets(experiment: Experiment) -> None:
    experiment.ask(1)
    experiment.missing("cta.1-1", "lost")
    refused = "^batch 1 has tickets: tell their rewards one by one$"
    act = partial(experiment.tell_totals, 1, {"A": (6, 3.0), "B": (6, 3.0)})
    unchanged(experiment, act, ConflictError, refused)


def test_totals_of_a_batch_that_was_told_by_tickets(experiment: Experiment) -> None:
    """The same totals are what is known already; others are a conflict."""
    experiment.tell_many([(ticket.id, 0.5) for ticket in experiment.ask(12)])
    assert experiment.tell_totals(1, {"A": (6, 3.0), "B": (6, 3.0)}) == "repeated"
    with pytest.raises(ConflictError, match="^batch 1 was decided with other totals$"):
        experiment.tell_totals(1, {"A": (6, 3.5), "B": (6, 3.0)})


def test_a_thousand_million_pulls_take_a_few_batches(store_url: str) -> None:
    policy = bd.RandomThreshold(arms=3, horizon=10**9, rho=0.2)
    with Experiment.create(store_url, "long", registration_of(policy)) as experiment:
        told: list[list[float]] = []
        while (status := experiment.status()).state == "running":
            totals = {arm: (n, float(n * (6 - int(arm)) // 10)) for arm, n in status.plan.items()}
            assert experiment.tell_totals(status.batch, totals) == "recorded"
            told.append([totals.get(str(arm), (0, 0.0))[1] for arm in range(3)])
        assert status.spent == 10**9
        assert len(told) <= 20  # a batch is a factor of e or so
        found = verify(store_url, "long")
        assert found.holds, found.problem
        assert [decision.counts for decision in found.decisions] == simulated_plans(policy, 7, told[:-1])
        assert found.events == 2 + 2 * len(told)


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (-1.0, 0.0), (10, 30), (-1e-300, 1e300)])
def test_reward_ranges(store_url: str, low: float, high: float) -> None:
    """Policies for bounded rewards see shares of the range: both ends decide like 0 and 1."""
    made = registration_of(bd.ExploreThenCommit(arms=2, horizon=200, rho=0.3, gap=0.5), rewards=(low, high))
    with Experiment.create(store_url, "scaled", made) as experiment:
        first = experiment.ask(16).tickets
        experiment.tell_many([(ticket.id, (low, high)[ticket.arm]) for ticket in first])
        assert experiment.status().plan == {"1": 184}
        for reward in (low - abs(low or 1.0), high + abs(high or 1.0)):
            ticket = experiment.ask(1)[0].id
            with pytest.raises(InvalidArgument, match="^reward: got .*, allowed: a number from"):
                experiment.tell(ticket, reward)
        assert verify(store_url, "scaled").decisions[0].totals == (0.0, 8.0)


def test_scaled_totals_are_rounded_once(store_url: str) -> None:
    """Sums in floats, or a share of the range for each reward, would be rounded several times."""
    low, high = 0.1, 0.7
    made = registration_of(bd.ExploreThenCommit(arms=2, horizon=200, rho=0.3, gap=0.5), rewards=(low, high))
    sums, steps = [Fraction(0), Fraction(0)], [Fraction(0), Fraction(0)]
    with Experiment.create(store_url, "scaled", made) as experiment:
        for place, ticket in enumerate(experiment.ask(16)):
            reward = low + 0.01 * place
            experiment.tell(ticket.id, reward)
            sums[ticket.arm] += (Fraction(reward) - Fraction(low)) / (Fraction(high) - Fraction(low))
            steps[ticket.arm] += Fraction(reward)
    expected = tuple(float(total) for total in sums)
    assert expected != tuple((float(total) - 8 * low) / (high - low) for total in steps)
    assert verify(store_url, "scaled").decisions[0].totals == expected


def test_a_range_is_a_check_for_a_policy_with_a_sigma_of_its_own(store_url: str) -> None:
    with Experiment.create(store_url, "unscaled", small(rewards=(10, 30))) as experiment:
        with pytest.raises(InvalidArgument, match="^reward: got .*, allowed: a number from 10 to 30"):
            experiment.tell_many([(ticket.id, 9.0) for ticket in experiment.ask(1)])
        experiment.tell("unscaled.1-1", 20.0)
        experiment.tell_many([(ticket.id, 20.0) for ticket in experiment.ask(11)])
        assert verify(store_url, "unscaled").decisions[0].totals == (120.0, 120.0)


def test_no_range(store_url: str) -> None:
    with Experiment.create(store_url, "free", small(rewards=None)) as experiment:
        for ticket, reward in zip(experiment.ask(3), (-1e308, 1e308, 0.1), strict=True):
            assert experiment.tell(ticket.id, reward) == "recorded"
        with pytest.raises(InvalidArgument, match="^reward: got inf, allowed: a finite number$"):
            experiment.tell("free.1-1", math.inf)
        refused: type[BandittoError] = InvalidArgument
        with pytest.raises(refused, match="^rewards: got no range, allowed: a range such as 0,1"):
            registration_of(bd.CertifiedElimination(arms=2, horizon=10**4, rho=0.2), rewards=(-math.inf, math.inf))


def test_rewards_whose_sum_is_too_large(store_url: str) -> None:
    """Each is finite, their sum is not: the last one is refused, and those before it can be corrected."""
    with Experiment.create(store_url, "free", small(rewards=None)) as experiment:
        tickets = experiment.ask(12).tickets
        experiment.tell_many([(ticket.id, 1e308 if ticket.arm else 0.5) for ticket in tickets[1:]])
        last = partial(experiment.tell, tickets[0].id, 0.5)
        allowed = "^reward: got .* whose sum no float can hold, allowed: rewards whose sum is a finite number$"
        unchanged(experiment, last, InvalidArgument, allowed)
        for ticket in tickets[1:]:
            experiment.correct(ticket.id, 0.5, "another unit")
        assert last() == "recorded"
        assert experiment.status().batch == 2
        assert verify(store_url, "free").holds


def test_totals_as_fractions(experiment: Experiment, store_url: str) -> None:
    long: Any = Fraction(1, 10**5000)
    third: Any = Fraction(1, 3)
    refused = partial(experiment.tell_totals, 1, {"A": (6, long), "B": (6, 3)})
    unchanged(experiment, refused, InvalidArgument, "^total: got a fraction that is too long")
    assert experiment.tell_totals(1, {"A": (6, third), "B": (6, 3)}) == "recorded"
    assert verify(store_url, "cta").decisions[0].totals == (1 / 3, 3.0)
