"""What an experiment does, on both stores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest

from banditto.core.errors import BandittoError, ConflictError, InvalidArgument
from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from tests.live.worlds import finish, hashed_reward, simulated_arms, small, small_policy, walked_order


@pytest.fixture
def experiment(store_url: str) -> Iterator[Experiment]:
    with Experiment.create(store_url, "cta", small(arm_names=["A", "B"])) as made:
        yield made


def unchanged(experiment: Experiment, act: Callable[[], object], kind: type[BandittoError], match: str) -> None:
    """`act` is refused in one line and leaves no trace."""
    before = experiment.status()
    with pytest.raises(kind, match=match) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert experiment.status() == before
    assert verify(experiment._store.url, experiment.name).holds


# -- asking -----------------------------------------------------------------------------------------------------------


def test_a_whole_run_is_the_simulators(experiment: Experiment, store_url: str) -> None:
    expected = simulated_arms(small_policy(), 7, hashed_reward)
    arms = finish(experiment, block=7)
    assert [[arms[batch, slot] for slot in range(len(row))] for batch, row in enumerate(expected, 1)] == expected
    assert len(arms) == 100
    status = experiment.status()
    assert (status.state, status.spent, status.batch, status.plan) == ("finished", 100, len(expected) + 1, {})
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert [sum(decision.counts) for decision in found.decisions] == [len(row) for row in expected]


def test_tickets_come_in_the_order_of_the_rule(experiment: Experiment) -> None:
    tickets = [experiment.ask()[0] for _ in range(12)]
    assert [ticket.id for ticket in tickets] == [f"1-{place}" for place in range(1, 13)]
    assert [ticket.arm for ticket in tickets] == walked_order(7, 1, (6, 6))
    assert [ticket.arm_name for ticket in tickets] == ["AB"[ticket.arm] for ticket in tickets]
    assert {ticket.batch for ticket in tickets} == {1}


def test_the_same_request_gets_the_same_tickets(experiment: Experiment) -> None:
    first = experiment.ask(3, "r1")
    assert experiment.ask(3, "r1") == first
    assert experiment.ask(5, "r1") == first  # whatever it asks for now
    assert experiment.ask(3, "r2").tickets[0].id == "1-4"
    experiment.stop("enough")
    assert experiment.ask(3, "r1") == first
    assert (len(experiment.ask(3, "r3")), experiment.ask(3, "r3").state) == (0, "stopped")


def test_waiting_finished_and_stopped_are_three_things(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        tickets = experiment.ask(100, "all").tickets
        assert len(tickets) == 12
        waiting = experiment.ask(1, "next")
        assert (waiting.state, waiting.reason, len(waiting)) == ("waiting", "batch 1 waits for 12 rewards", 0)
        experiment.tell_many([(ticket.id, 0.5) for ticket in tickets[1:]])
        assert experiment.ask().reason == "batch 1 waits for 1 rewards"
        experiment.tell(tickets[0].id, 0.5)
        assert experiment.ask(1, "next").tickets[0].batch == 2  # a request that got nothing may be sent again
        finish(experiment)
        assert (experiment.ask().state, experiment.ask().reason) == ("finished", "the experiment is finished")
        with pytest.raises(ConflictError, match="^the experiment is finished$"):
            experiment.stop("too late")


@pytest.mark.parametrize("n", [0, -1, 10_001, 1.5, math.nan, True, "x", None])
def test_bad_numbers_of_tickets(experiment: Experiment, n: Any) -> None:
    unchanged(experiment, lambda: experiment.ask(n), InvalidArgument, "^n: got .*, allowed: an integer from 1 to")


@pytest.mark.parametrize("request_id", ["", "  ", "x" * 201, "a\0b", "\ud800", 5])
def test_bad_request_ids(experiment: Experiment, request_id: Any) -> None:
    unchanged(experiment, lambda: experiment.ask(1, request_id), InvalidArgument, "^request_id: got")


@pytest.mark.parametrize(
    "request_id", ["x" * 200, "\U0001f680" * 200, "a\nb", "'; DROP TABLE banditto_event; --", "%s"]
)
def test_odd_request_ids(experiment: Experiment, store_url: str, request_id: str) -> None:
    assert experiment.ask(2, request_id) == experiment.ask(2, request_id)
    assert verify(store_url, "cta").holds


# -- telling ----------------------------------------------------------------------------------------------------------


def test_the_same_value_again_is_nothing_and_another_one_a_conflict(experiment: Experiment) -> None:
    experiment.ask(2)
    assert experiment.tell("1-1", 0.25) == "recorded"
    before = experiment.status()
    assert experiment.tell("1-1", 0.25) == "repeated"
    assert experiment.status() == before
    conflict = "^ticket 1-1 has the reward 0.25 and was told 0.5; a reward that was wrong can be corrected$"
    unchanged(experiment, lambda: experiment.tell("1-1", 0.5), ConflictError, conflict)
    finish(experiment, lambda batch, slot: 0.25)
    assert experiment.tell("1-1", 0.25) == "repeated"  # its batch is decided long ago
    unchanged(experiment, lambda: experiment.tell("1-1", 0.5), ConflictError, conflict)


UNKNOWN = ["1-3", "2-1", "0-1", "1-0", "1-1-1", "1-1-2", "01-1", "1", "1-", "-1-1", "1-1-1-1", "x", "", "1 -1", "１-1"]
UNKNOWN += ["9999999999999999-1", "1-9999999999999999", "1-1-9999999999999999", "99999999999999999999-1", "1-1\n"]


@pytest.mark.parametrize("ticket", [*UNKNOWN, None, 11])
def test_unknown_tickets(experiment: Experiment, ticket: Any) -> None:
    experiment.ask(2)
    allowed = "^ticket: got .*, allowed: a ticket of this experiment"
    unchanged(experiment, lambda: experiment.tell(ticket, 0.5), InvalidArgument, allowed)
    unchanged(experiment, lambda: experiment.missing(ticket, "lost"), InvalidArgument, allowed)
    unchanged(experiment, lambda: experiment.correct(ticket, 0.5, "typo"), InvalidArgument, allowed)


NUMBERS = [math.nan, math.inf, -math.inf, 1.0000000001, -1e-300, 2, 10**400, True, np.True_, np.float64("nan")]


@pytest.mark.parametrize("reward", [*NUMBERS, "0.5", None, 1j, [0.5], np.array([0.5])])
def test_rewards_that_are_none(experiment: Experiment, reward: Any) -> None:
    experiment.ask(2)
    experiment.tell("1-1", 0.5)
    allowed = "^reward: got .*, allowed: a number from 0 to 1$"
    unchanged(experiment, lambda: experiment.tell("1-2", reward), InvalidArgument, allowed)
    unchanged(experiment, lambda: experiment.correct("1-1", reward, "typo"), InvalidArgument, allowed)


@pytest.mark.parametrize(
    "reward", [0, 1, np.int64(1), np.float32(0.1), np.float64(0.1), -0.0, 5e-324, 1 / 3, 0.1 + 0.2]
)
def test_numbers_of_all_kinds_come_back_as_they_were(experiment: Experiment, store_url: str, reward: Any) -> None:
    experiment.ask(1)
    assert experiment.tell("1-1", reward) == "recorded"
    assert experiment.tell("1-1", float(reward)) == "repeated"
    assert experiment.correct("1-1", 0.75, "typo") == "recorded"
    assert experiment.correct("1-1", reward, "it was right") == "recorded"
    assert verify(store_url, "cta").holds


def test_many_rewards_are_all_told_or_none(experiment: Experiment) -> None:
    experiment.ask(12)
    assert experiment.tell_many([]) == []
    bad: list[tuple[list[tuple[str, float]], type[BandittoError]]] = [
        ([("1-1", 0.5), ("1-13", 0.5)], InvalidArgument),
        ([("1-1", 0.5), ("1-2", math.nan)], InvalidArgument),
        ([("1-1", 0.5), ("1-1", 0.6)], ConflictError),
    ]
    for pairs, kind in bad:
        unchanged(experiment, partial(experiment.tell_many, pairs), kind, "ticket|reward")
    assert experiment.tell_many([("1-1", 0.5), ("1-1", 0.5), ("1-2", 1)]) == ["recorded", "repeated", "recorded"]
    whole = [(f"1-{place}", 0.5 if place != 2 else 1.0) for place in range(1, 13)]
    unchanged(experiment, lambda: experiment.tell_many([*whole, ("1-2", 0.0)]), ConflictError, "1-2")
    assert Counter(experiment.tell_many(whole)) == {"recorded": 10, "repeated": 2}
    assert experiment.status().batch == 2


def test_decisions_do_not_depend_on_the_order_of_arrival(store_url: str) -> None:
    """0.1, 0.2, ... have other float sums forwards than backwards; the log's exact sums are the same."""
    decided = []
    for name, turn in (("one", 1), ("two", -1)):
        with Experiment.create(store_url, name, small()) as experiment:
            tickets = experiment.ask(12).tickets
            for ticket in tickets[::turn]:
                experiment.tell(ticket.id, 0.1 * (int(ticket.id[2:]) % 7))
            decided.append(verify(store_url, name).decisions[0])
    assert (decided[0].totals, decided[0].next_pulls) == (decided[1].totals, decided[1].next_pulls)


# -- corrections, losses, the end -------------------------------------------------------------------------------------


def test_corrections_until_the_batch_is_decided(experiment: Experiment, store_url: str) -> None:
    experiment.ask(12)
    unchanged(experiment, lambda: experiment.correct("1-1", 0.5, "typo"), ConflictError, "^ticket 1-1 is open")
    experiment.tell("1-1", 0.25)
    assert experiment.correct("1-1", 0.75, "typo") == "recorded"
    before = experiment.status()
    assert experiment.correct("1-1", 0.75, "typo") == "repeated"
    assert experiment.status() == before
    reasons: list[Any] = ["", "   ", "x" * 2001, "a\0", "\udfff", None]
    for reason in reasons:
        unchanged(experiment, partial(experiment.correct, "1-1", 0.5, reason), InvalidArgument, "^reason: got")
    experiment.tell_many([(f"1-{place}", 0.5) for place in range(2, 13)])
    assert experiment.correct("1-1", 0.75, "typo") == "repeated"  # sent again because its answer was lost
    decided = "^ticket 1-1 is of batch 1, which is decided$"
    unchanged(experiment, lambda: experiment.correct("1-1", 0.5, "typo"), ConflictError, decided)
    decision = verify(store_url, "cta").decisions[0]
    first = walked_order(7, 1, (6, 6))[0]
    assert decision.totals[first] == 0.75 + 5 * 0.5


def test_a_missing_reward_is_replaced_exactly_and_a_late_one_excluded(experiment: Experiment, store_url: str) -> None:
    tickets = experiment.ask(5).tickets
    experiment.tell("1-2", 0.5)
    unchanged(experiment, lambda: experiment.missing("1-2", "lost"), ConflictError, "^ticket 1-2 has the reward 0.5$")
    for ticket in ("1-4", "1-1"):
        assert experiment.missing(ticket, "left the page") == "recorded"
        assert experiment.missing(ticket, "left the page") == "repeated"
    again = experiment.ask(4).tickets
    assert [ticket.id for ticket in again] == ["1-4-2", "1-1-2", "1-6", "1-7"]
    assert [again[0].arm, again[1].arm] == [tickets[3].arm, tickets[0].arm]
    assert experiment.tell("1-4", 1.0) == "excluded"
    assert experiment.tell("1-4", 1.0) == "excluded"
    unchanged(experiment, lambda: experiment.tell("1-4", 0.0), ConflictError, "^ticket 1-4 has the reward 1.0")
    unchanged(experiment, lambda: experiment.correct("1-4", 0.0, "typo"), ConflictError, "^ticket 1-4 is late")
    assert experiment.missing("1-4", "again") == "repeated"
    assert experiment.missing("1-4-2", "again") == "recorded"
    assert experiment.ask(1)[0].id == "1-4-3"
    finish(experiment, lambda batch, slot: 0.5)
    assert experiment.tell("1-1", 0.9) == "excluded"  # after the end, too
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert found.decisions[0].counts == (6, 6)
    assert found.decisions[0].totals == (3.0, 3.0)
    assert experiment.status().tickets == {"open": 0, "told": 100, "missing": 1, "late": 2}


def test_late_rewards_among_those_that_complete_a_batch(experiment: Experiment, store_url: str) -> None:
    """One call has a reward that comes too late and the last ones that count: the decision follows the latter."""
    experiment.ask(12)
    experiment.missing("1-5", "lost")
    experiment.ask(1)
    pairs = [("1-5-2", 0.5), *((f"1-{place}", 0.5) for place in range(1, 13))]
    told = ["recorded"] * 5 + ["excluded"] + ["recorded"] * 7
    assert experiment.tell_many(pairs) == told
    assert experiment.status().batch == 2
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert found.decisions[0].totals == (3.0, 3.0)


def test_a_stop_keeps_what_is_out(experiment: Experiment, store_url: str) -> None:
    experiment.ask(12)
    assert experiment.stop("harm") == "recorded"
    assert experiment.stop("harm") == "repeated"
    assert experiment.ask().state == "stopped"
    assert experiment.ask().reason == "the experiment is stopped"
    assert set(experiment.tell_many([(f"1-{place}", 0.5) for place in range(1, 12)])) == {"recorded"}
    assert experiment.missing("1-12", "lost") == "recorded"
    assert experiment.tell("1-12", 0.5) == "excluded"
    assert experiment.correct("1-1", 0.25, "typo") == "recorded"
    unchanged(experiment, lambda: experiment.tell_totals(1, {}), ConflictError, "^the experiment is stopped$")
    assert (experiment.status().state, experiment.status().batch) == ("stopped", 1)
    assert verify(store_url, "cta").decisions == ()


def test_the_last_reward_after_a_stop_decides_nothing(experiment: Experiment, store_url: str) -> None:
    experiment.ask(12)
    experiment.stop("harm")
    assert set(experiment.tell_many([(f"1-{place}", 0.5) for place in range(1, 13)])) == {"recorded"}
    status = experiment.status()
    assert (status.state, status.batch, status.told) == ("stopped", 1, {"A": 6, "B": 6})
    assert experiment.correct("1-1", 0.25, "typo") == "recorded"
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert found.decisions == ()


def test_pending_and_status(experiment: Experiment) -> None:
    experiment.ask(3)
    experiment.tell("1-2", 0.5)
    assert [line.id for line in experiment.pending()] == ["1-1", "1-3"]
    assert experiment.pending(3600) == experiment.pending(timedelta(hours=1)) == []
    assert [line.id for line in experiment.pending(0)] == ["1-1", "1-3"]
    assert [line.id for line in experiment.pending(most=1)] == ["1-1"]
    ages: list[Any] = [-1, math.nan, math.inf, 1e10, "x", timedelta(days=-1)]
    for age in ages:
        with pytest.raises(InvalidArgument, match="^older_than: got"):
            experiment.pending(age)
    status = experiment.status()
    assert (status.name, status.state, status.batch, status.horizon) == ("cta", "running", 1, 100)
    assert (status.plan, status.issued, status.spent) == ({"A": 6, "B": 6}, 3, 0)
    arm = walked_order(7, 1, (6, 6))[1]
    assert status.told == {"A": int(arm == 0), "B": int(arm == 1)}
    assert status.tickets == {"open": 2, "told": 1, "missing": 0, "late": 0}
    assert status.events == 4  # init, software, ask, tell
    assert status.digest == experiment.registration.digest
