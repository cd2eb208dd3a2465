"""What an experiment does, on both stores, in this process and through a service."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest

from banditto.core.errors import BandittoError, ConflictError, InvalidArgument
from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from banditto.service.client import Client
from tests.live.worlds import finish, hashed_reward, place, simulated_arms, small, small_policy, walked_mixed_order
from tests.service.services import new_token, service_in_thread


@pytest.fixture(params=["library", "service"])
def experiments(request: pytest.FixtureRequest, store_url: str) -> Iterator[Callable[..., Any]]:
    """Register an experiment: in this process, or through a client of a real service."""
    with ExitStack() as opened:
        if request.param == "library":
            yield lambda name, made: opened.enter_context(Experiment.create(store_url, name, made))
        else:
            address = opened.enter_context(service_in_thread(store_url))
            client = opened.enter_context(Client(address, new_token(store_url)))
            yield client.open


@pytest.fixture
def experiment(experiments: Callable[..., Any]) -> Any:
    return experiments("cta", small(arm_names=["A", "B"]))


def unchanged(experiment: Experiment, act: Callable[[], object], kind: type[BandittoError], match: str) -> None:
    """`act` is refused in one line and leaves no trace."""
    before = experiment.status()
    with pytest.raises(kind, match=match) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert experiment.status() == before
    assert verify(experiment._store.url, experiment.name).holds


Refused = Callable[[Callable[[], object], type[BandittoError], str], None]


@pytest.fixture
def refused(experiment: Any, store_url: str) -> Iterator[Refused]:
    """What is refused in one line and leaves no trace."""

    def check(act: Callable[[], object], kind: type[BandittoError], match: str) -> None:
        before = experiment.status()
        with pytest.raises(kind, match=match) as caught:
            act()
        assert "\n" not in str(caught.value)
        assert experiment.status() == before

    yield check
    assert verify(store_url, experiment.name).holds


# -- asking -----------------------------------------------------------------------------------------------------------


def test_a_whole_run_is_the_simulators(experiment: Any, store_url: str) -> None:
    expected = simulated_arms(small_policy(), 7, hashed_reward)
    arms = finish(experiment, block=7)
    assert [[arms[batch, slot] for slot in range(len(row))] for batch, row in enumerate(expected, 1)] == expected
    assert len(arms) == 100
    status = experiment.status()
    assert (status.state, status.spent, status.batch, status.plan) == ("finished", 100, len(expected) + 1, {})
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert [sum(decision.counts) for decision in found.decisions] == [len(row) for row in expected]


def test_tickets_come_in_the_order_of_the_rule(experiment: Any) -> None:
    tickets = [experiment.ask()[0] for _ in range(12)]
    assert [ticket.id for ticket in tickets] == [f"cta.1-{place}" for place in range(1, 13)]
    assert [ticket.arm for ticket in tickets] == walked_mixed_order(7, 1, (6, 6))
    assert [ticket.arm_name for ticket in tickets] == ["AB"[ticket.arm] for ticket in tickets]
    assert {ticket.batch for ticket in tickets} == {1}


def test_the_same_request_gets_the_same_tickets(experiment: Any, refused: Refused) -> None:
    first = experiment.ask(3, "r1")
    assert not first.repeated
    again = replace(first, repeated=True)
    assert experiment.ask(3, "r1") == again
    other = "^request r1 asked for 3 tickets before, and now for 5$"
    refused(lambda: experiment.ask(5, "r1"), ConflictError, other)
    assert experiment.ask(3, "r2").tickets[0].id == "cta.1-4"
    experiment.stop("enough")
    assert experiment.ask(3, "r1") == again
    assert (len(experiment.ask(3, "r3")), experiment.ask(3, "r3").state) == (0, "stopped")


def test_waiting_finished_and_stopped_are_three_things(experiments: Callable[..., Any]) -> None:
    with nullcontext(experiments("cta", small())) as experiment:
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


def test_bad_numbers_of_tickets(experiment: Any, refused: Refused) -> None:
    bad: list[Any] = [0, -1, 10_001, 1.5, math.nan, True, "x", None]
    for n in bad:
        refused(partial(experiment.ask, n), InvalidArgument, "^n: got .*, allowed: an integer from 1 to")


def test_bad_request_ids(experiment: Any, refused: Refused) -> None:
    bad: list[Any] = ["", "  ", "x" * 201, "a\0b", "\ud800", 5]
    for request_id in bad:
        refused(partial(experiment.ask, 1, request_id), InvalidArgument, "^request_id: got")


def test_odd_request_ids(experiment: Any, store_url: str) -> None:
    for request_id in ("x" * 200, "\U0001f680" * 200, "a  b", "'; DROP TABLE banditto_event; --", "%s"):
        assert experiment.ask(2, request_id).tickets == experiment.ask(2, request_id).tickets
    assert verify(store_url, "cta").holds


# -- telling ----------------------------------------------------------------------------------------------------------


def test_the_same_value_again_is_nothing_and_another_one_a_conflict(experiment: Any, refused: Refused) -> None:
    experiment.ask(2)
    assert experiment.tell("cta.1-1", 0.25) == "recorded"
    before = experiment.status()
    assert experiment.tell("cta.1-1", 0.25) == "repeated"
    assert experiment.status() == before
    conflict = "^ticket cta.1-1 has the reward 0.25 and was told 0.5; a reward that was wrong can be corrected$"
    refused(lambda: experiment.tell("cta.1-1", 0.5), ConflictError, conflict)
    finish(experiment, lambda batch, slot: 0.25)
    assert experiment.tell("cta.1-1", 0.25) == "repeated"  # its batch is decided long ago
    refused(lambda: experiment.tell("cta.1-1", 0.5), ConflictError, conflict)


UNKNOWN = ["1-3", "2-1", "0-1", "1-0", "1-1-1", "1-1-2", "01-1", "1", "1-", "-1-1", "1-1-1-1", "x", "", "1 -1", "１-1"]
UNKNOWN += ["9999999999999999-1", "1-9999999999999999", "1-1-9999999999999999", "99999999999999999999-1", "1-1\n"]


def test_unknown_tickets(experiment: Any, refused: Refused) -> None:
    experiment.ask(2)
    allowed = "^ticket: got .*, allowed: a ticket of this experiment"
    tickets: list[Any] = ["1-1", *UNKNOWN, *(f"cta.{bare}" for bare in UNKNOWN), None, 11]
    for ticket in tickets:
        refused(partial(experiment.tell, ticket, 0.5), InvalidArgument, allowed)
        refused(partial(experiment.missing, ticket, "lost"), InvalidArgument, allowed)
        refused(partial(experiment.correct, ticket, 0.5, "typo"), InvalidArgument, allowed)


NUMBERS = [math.nan, math.inf, -math.inf, 1.0000000001, -1e-300, 2, 10**400, True, np.True_, np.float64("nan")]


def test_rewards_that_are_none(experiment: Any, refused: Refused) -> None:
    experiment.ask(2)
    experiment.tell("cta.1-1", 0.5)
    allowed = "^reward: got .*, allowed: a number from 0 to 1$"
    rewards: list[Any] = [*NUMBERS, "0.5", None, 1j, [0.5], np.array([0.5])]
    for reward in rewards:
        refused(partial(experiment.tell, "cta.1-2", reward), InvalidArgument, allowed)
        refused(partial(experiment.correct, "cta.1-1", reward, "typo"), InvalidArgument, allowed)


def test_numbers_of_all_kinds_come_back_as_they_were(experiment: Any, store_url: str) -> None:
    rewards: list[Any] = [0, 1, np.int64(1), np.float32(0.1), np.float64(0.1), -0.0, 5e-324, 1 / 3, 0.1 + 0.2]
    for reward in rewards:
        (ticket,) = experiment.ask(1)
        assert experiment.tell(ticket.id, reward) == "recorded"
        assert experiment.tell(ticket.id, float(reward)) == "repeated"
        assert experiment.correct(ticket.id, 0.75, "typo") == "recorded"
        assert experiment.correct(ticket.id, reward, "it was right") == "recorded"
    assert verify(store_url, "cta").holds


def test_many_rewards_are_all_told_or_none(experiment: Any, refused: Refused) -> None:
    experiment.ask(12)
    assert experiment.tell_many([]) == []
    bad: list[tuple[list[tuple[str, float]], type[BandittoError]]] = [
        ([("cta.1-1", 0.5), ("cta.1-13", 0.5)], InvalidArgument),
        ([("cta.1-1", 0.5), ("cta.1-2", math.nan)], InvalidArgument),
        ([("cta.1-1", 0.5), ("cta.1-1", 0.6)], ConflictError),
    ]
    for pairs, kind in bad:
        refused(partial(experiment.tell_many, pairs), kind, "ticket|reward")
    assert experiment.tell_many([("cta.1-1", 0.5), ("cta.1-1", 0.5), ("cta.1-2", 1)]) == [
        "recorded",
        "repeated",
        "recorded",
    ]
    whole = [(f"cta.1-{place}", 0.5 if place != 2 else 1.0) for place in range(1, 13)]
    refused(lambda: experiment.tell_many([*whole, ("cta.1-2", 0.0)]), ConflictError, "cta.1-2")
    assert Counter(experiment.tell_many(whole)) == {"recorded": 10, "repeated": 2}
    assert experiment.status().batch == 2


def test_decisions_do_not_depend_on_the_order_of_arrival(experiments: Callable[..., Any], store_url: str) -> None:
    """0.1, 0.2, ... have other float sums forwards than backwards; the log's exact sums are the same."""
    decided = []
    for name, turn in (("one", 1), ("two", -1)):
        with nullcontext(experiments(name, small())) as experiment:
            tickets = experiment.ask(12).tickets
            for ticket in tickets[::turn]:
                experiment.tell(ticket.id, 0.1 * (place(ticket.id)[1] % 7))
            decided.append(verify(store_url, name).decisions[0])
    assert (decided[0].totals, decided[0].next_pulls) == (decided[1].totals, decided[1].next_pulls)


# -- corrections, losses, the end -------------------------------------------------------------------------------------


def test_corrections_until_the_batch_is_decided(experiment: Any, store_url: str, refused: Refused) -> None:
    experiment.ask(12)
    refused(
        lambda: experiment.correct("cta.1-1", 0.5, "typo"),
        ConflictError,
        "^ticket cta.1-1 is open",
    )
    experiment.tell("cta.1-1", 0.25)
    assert experiment.correct("cta.1-1", 0.75, "typo") == "recorded"
    before = experiment.status()
    assert experiment.correct("cta.1-1", 0.75, "typo") == "repeated"
    assert experiment.status() == before
    reasons: list[Any] = ["", "   ", "x" * 2001, "a\0", "\udfff", None]
    for reason in reasons:
        refused(partial(experiment.correct, "cta.1-1", 0.5, reason), InvalidArgument, "^reason: got")
    experiment.tell_many([(f"cta.1-{place}", 0.5) for place in range(2, 13)])
    assert experiment.correct("cta.1-1", 0.75, "typo") == "repeated"  # sent again because its answer was lost
    decided = "^ticket cta.1-1 is of batch 1, which is decided$"
    refused(lambda: experiment.correct("cta.1-1", 0.5, "typo"), ConflictError, decided)
    decision = verify(store_url, "cta").decisions[0]
    first = walked_mixed_order(7, 1, (6, 6))[0]
    assert decision.totals[first] == 0.75 + 5 * 0.5


def test_a_missing_reward_is_replaced_exactly_and_a_late_one_excluded(
    experiment: Any, store_url: str, refused: Refused
) -> None:
    tickets = experiment.ask(5).tickets
    experiment.tell("cta.1-2", 0.5)
    refused(
        lambda: experiment.missing("cta.1-2", "lost"),
        ConflictError,
        "^ticket cta.1-2 has the reward 0.5$",
    )
    for ticket in ("cta.1-4", "cta.1-1"):
        assert experiment.missing(ticket, "left the page") == "recorded"
        assert experiment.missing(ticket, "left the page") == "repeated"
    again = experiment.ask(4).tickets
    assert [ticket.id for ticket in again] == ["cta.1-4-2", "cta.1-1-2", "cta.1-6", "cta.1-7"]
    assert [again[0].arm, again[1].arm] == [tickets[3].arm, tickets[0].arm]
    assert experiment.tell("cta.1-4", 1.0) == "excluded"
    assert experiment.tell("cta.1-4", 1.0) == "excluded"
    refused(
        lambda: experiment.tell("cta.1-4", 0.0),
        ConflictError,
        "^ticket cta.1-4 has the reward 1.0",
    )
    refused(
        lambda: experiment.correct("cta.1-4", 0.0, "typo"),
        ConflictError,
        "^ticket cta.1-4 is late",
    )
    assert experiment.missing("cta.1-4", "again") == "repeated"
    assert experiment.missing("cta.1-4-2", "again") == "recorded"
    assert experiment.ask(1)[0].id == "cta.1-4-3"
    finish(experiment, lambda batch, slot: 0.5)
    assert experiment.tell("cta.1-1", 0.9) == "excluded"  # after the end, too
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert found.decisions[0].counts == (6, 6)
    assert found.decisions[0].totals == (3.0, 3.0)
    assert experiment.status().tickets == {"open": 0, "told": 100, "missing": 1, "late": 2}


def test_late_rewards_among_those_that_complete_a_batch(experiment: Any, store_url: str) -> None:
    """One call has a reward that comes too late and the last ones that count: the decision follows the latter."""
    experiment.ask(12)
    experiment.missing("cta.1-5", "lost")
    experiment.ask(1)
    pairs = [("cta.1-5-2", 0.5), *((f"cta.1-{place}", 0.5) for place in range(1, 13))]
    told = ["recorded"] * 5 + ["excluded"] + ["recorded"] * 7
    assert experiment.tell_many(pairs) == told
    assert experiment.status().batch == 2
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert found.decisions[0].totals == (3.0, 3.0)


def test_a_stop_keeps_what_is_out(experiment: Any, store_url: str, refused: Refused) -> None:
    experiment.ask(12)
    assert experiment.stop("harm") == "recorded"
    assert experiment.stop("harm") == "repeated"
    assert experiment.ask().state == "stopped"
    assert experiment.ask().reason == "the experiment is stopped"
    assert set(experiment.tell_many([(f"cta.1-{place}", 0.5) for place in range(1, 12)])) == {"recorded"}
    assert experiment.missing("cta.1-12", "lost") == "recorded"
    assert experiment.tell("cta.1-12", 0.5) == "excluded"
    assert experiment.correct("cta.1-1", 0.25, "typo") == "recorded"
    refused(lambda: experiment.tell_totals(1, {}), ConflictError, "^the experiment is stopped$")
    assert (experiment.status().state, experiment.status().batch) == ("stopped", 1)
    assert verify(store_url, "cta").decisions == ()


def test_the_last_reward_after_a_stop_decides_nothing(experiment: Any, store_url: str) -> None:
    experiment.ask(12)
    experiment.stop("harm")
    assert set(experiment.tell_many([(f"cta.1-{place}", 0.5) for place in range(1, 13)])) == {"recorded"}
    status = experiment.status()
    assert (status.state, status.batch, status.told) == ("stopped", 1, {"A": 6, "B": 6})
    assert experiment.correct("cta.1-1", 0.25, "typo") == "recorded"
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert found.decisions == ()


def test_pending_and_status(experiment: Any) -> None:
    experiment.ask(3)
    experiment.tell("cta.1-2", 0.5)
    assert [line.id for line in experiment.pending()] == ["cta.1-1", "cta.1-3"]
    assert experiment.pending(3600) == experiment.pending(timedelta(hours=1)) == []
    assert [line.id for line in experiment.pending(0)] == ["cta.1-1", "cta.1-3"]
    assert [line.id for line in experiment.pending(most=1)] == ["cta.1-1"]
    ages: list[Any] = [-1, math.nan, math.inf, 1e10, "x", timedelta(days=-1)]
    for age in ages:
        with pytest.raises(InvalidArgument, match="^older_than: got"):
            experiment.pending(age)
    status = experiment.status()
    assert (status.name, status.state, status.batch, status.horizon) == ("cta", "running", 1, 100)
    assert (status.plan, status.issued, status.spent) == ({"A": 6, "B": 6}, 3, 0)
    arm = walked_mixed_order(7, 1, (6, 6))[1]
    assert status.told == {"A": int(arm == 0), "B": int(arm == 1)}
    assert status.tickets == {"open": 2, "told": 1, "missing": 0, "late": 0}
    assert status.events == 4  # init, software, ask, tell
    assert status.digest == small(arm_names=["A", "B"]).digest
