"""A ticket is of one experiment, has one arm, and a request means one thing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from banditto.core.errors import ConflictError, InvalidArgument
from banditto.live.experiment import Experiment
from banditto.live.registration import Registration
from banditto.live.tickets import Ticket, TicketIds
from banditto.live.verify import verify
from tests.live.test_contract import unchanged
from tests.live.test_metrics import rewritten
from tests.live.worlds import finish, small

KEPT = Path(__file__).parent / "data" / "version-3.db"


@pytest.fixture
def experiment(store_url: str) -> Iterator[Experiment]:
    with Experiment.create(store_url, "cta", small(arm_names=["A", "B"])) as made:
        yield made


# -- tickets -----------------------------------------------------------------------------------------------------------


def test_the_ticket_of_another_experiment_is_refused(experiment: Experiment, store_url: str) -> None:
    """Both have a slot 1-1: before ids had names, the reward of one was taken for the other's."""
    experiment.ask(2)
    for name in ("cta2", "cta.1", "CTA", "cta."):
        with Experiment.create(store_url, name, small()) as other:
            theirs = other.ask(1)[0].id
            assert theirs == f"{name}.1-1"
            allowed = "^ticket: got .*, allowed: a ticket of this experiment, such as cta.1-1$"
            for act in (
                partial(experiment.tell, theirs, 0.5),
                partial(experiment.tell_many, [("cta.1-1", 0.5), (theirs, 0.5)]),
                partial(experiment.missing, theirs, "lost"),
                partial(experiment.missing_many, ["cta.1-1", theirs], "lost"),
                partial(experiment.correct, theirs, 0.5, "typo"),
            ):
                unchanged(experiment, act, InvalidArgument, allowed)
            mine = "^ticket: got cta.1-2, allowed: a ticket of this experiment, such as "
            unchanged(other, partial(other.tell, "cta.1-2", 0.5), InvalidArgument, mine)
            assert other.tell(theirs, 0.5) == "recorded"


def test_a_bare_ticket_is_refused_where_none_was_issued(experiment: Experiment) -> None:
    experiment.ask(2)
    for bare in ("1-1", ".1-1", "cta1-1", "cta..1-1", "cta.cta.1-1", " cta.1-1", "cta.1-1 ", "cta.01-1"):
        unchanged(experiment, partial(experiment.tell, bare, 0.5), InvalidArgument, "^ticket: got .*, such as cta.1-1$")


def test_bare_tickets_stay_valid_where_they_were_issued(tmp_path: Path) -> None:
    """An experiment that began with an earlier version goes on with ids as it always had them."""
    shutil.copy(KEPT, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    with Experiment.open(url, "kept") as trial:
        assert trial.registration.first_version
        assert [line.id for line in trial.pending()][:2] == ["2-3", "2-6"]
        assert trial.tell("2-3", 0.5) == "recorded"
        assert trial.ask(1)[0].id == "2-2-2"
        unchanged(trial, partial(trial.tell, "kept.2-6", 0.5), InvalidArgument, "^ticket: got .*, such as 1-1$")
        finish(trial)
    assert verify(url, "kept").holds


def test_an_old_registration_is_what_it_was(tmp_path: Path) -> None:
    shutil.copy(KEPT, tmp_path / "old.db")
    with Experiment.open(f"sqlite:///{tmp_path}/old.db", "kept") as trial:
        old = trial.registration
    text = old.to_json()
    assert (old.order, '"schema_version":1' in text, "fallback" in text) == ("permuted-blocks/1", True, False)
    assert old.digest == "3c9263f525aa1313a6e048c2745590355b744faea17802346218a3c6f556a717"
    assert Registration.from_json(text) == old
    new = small(arm_names=["A", "B"])
    assert (new.order, '"schema_version":2' in new.to_json()) == ("permuted-blocks/2", True)
    with Experiment.open(f"sqlite:///{tmp_path}/old.db", "kept", new) as trial:  # whoever ran it goes on with it
        assert trial.registration == old
    other = "^experiment kept has another protocol"
    for changed in (small(arm_names=["A", "B"], fallback="A"), small(arm_names=["A", "C"]), small(seed=8)):
        with pytest.raises(ConflictError, match=other):
            Experiment.open(f"sqlite:///{tmp_path}/old.db", "kept", changed)


def test_options_of_version_2_need_its_order() -> None:
    content: dict[str, Any] = {"protocol": small().protocol, "arm_names": ("A", "B"), "rewards": small().rewards}
    choices: tuple[dict[str, Any], ...] = ({"fallback": 0}, {"deadline": 60})
    for options in choices:
        with pytest.raises(InvalidArgument, match="^order: got permuted-blocks/1, allowed: permuted-blocks/2"):
            Registration(**content, **options, order="permuted-blocks/1")
    with pytest.raises(InvalidArgument, match="^order: got permuted-blocks/3"):
        Registration(**content, order="permuted-blocks/3")


def test_ids_are_read_as_they_were_written() -> None:
    for name in ("cta", "a.b", "x.1-1", "1"):
        ids = TicketIds(name, bare=False)
        for ticket in (Ticket(1, 0, 0), Ticket(12, 10**15, 3)):
            assert ids.read(ids.write(ticket)) == ticket
    with pytest.raises(InvalidArgument):
        TicketIds("x", bare=False).read("x.1-1.1-1")  # of the experiment x.1-1


# -- arms --------------------------------------------------------------------------------------------------------------


def test_who_tells_may_say_which_arm_the_ticket_has(experiment: Experiment) -> None:
    first, second = experiment.ask(2).tickets
    names = {0: "A", 1: "B"}
    wrong = 1 - first.arm
    problem = f"^ticket cta.1-1 has the arm {first.arm_name}, not {names[wrong]}$"
    for arm in (wrong, names[wrong]):
        unchanged(experiment, partial(experiment.tell, first.id, 0.5, arm=arm), ConflictError, problem)
        many: list[Any] = [(second.id, 0.5), (first.id, 0.5, None, arm)]
        unchanged(experiment, partial(experiment.tell_many, many), ConflictError, problem)
    assert experiment.tell(first.id, 0.5, arm=first.arm_name) == "recorded"
    assert experiment.tell(first.id, 0.5, arm=first.arm) == "repeated"
    unchanged(experiment, partial(experiment.tell, first.id, 0.5, arm=wrong), ConflictError, problem)  # told, too
    assert experiment.tell_many([(second.id, 0.5, {"x": 1}, second.arm_name)]) == ["recorded"]


@pytest.mark.parametrize("arm", ["C", "", 2, -1, True, 0.0, "0"])
def test_an_arm_that_there_is_not(experiment: Experiment, arm: Any) -> None:
    experiment.ask(1)
    unchanged(experiment, partial(experiment.tell, "cta.1-1", 0.5, arm=arm), InvalidArgument, "^arm: got .*A, B")


# -- requests ----------------------------------------------------------------------------------------------------------


def test_a_request_with_another_number_is_a_conflict(experiment: Experiment, store_url: str) -> None:
    first = experiment.ask(3, "r")
    assert not first.repeated
    again = experiment.ask(3, "r")
    assert (again.tickets, again.repeated) == (first.tickets, True)
    problem = "^request r asked for 3 tickets before, and now for {}$"
    for number in (1, 2, 4, 10_000):
        act = partial(experiment.ask, number, "r")
        unchanged(experiment, act, ConflictError, problem.format(f"{number:,}"))
    with Experiment.open(store_url, "cta") as other:
        unchanged(other, partial(other.ask, 1, "r"), ConflictError, problem.format(1))


def test_a_request_that_got_fewer_is_known_by_what_it_asked_for(experiment: Experiment) -> None:
    experiment.ask(10)
    few = experiment.ask(5, "few")
    assert len(few) == 2
    assert experiment.ask(5, "few").tickets == few.tickets
    unchanged(experiment, partial(experiment.ask, 2, "few"), ConflictError, "asked for 5 tickets before, and now for 2")
    assert experiment.ask(5, "none").state == "waiting"
    assert experiment.ask(4, "none").state == "waiting"  # nothing was given, so that nothing is remembered


def test_a_request_of_an_earlier_version_may_come_again(tmp_path: Path) -> None:
    """Its log does not say how many were asked for: whatever comes now gets the tickets, as before."""
    shutil.copy(KEPT, tmp_path / "old.db")
    with Experiment.open(f"sqlite:///{tmp_path}/old.db", "kept") as trial:
        for number in (3, 5):
            answer = trial.ask(number, "first")
            assert ([ticket.id for ticket in answer], answer.repeated) == (["1-1", "1-2", "1-3"], True)


def test_the_number_that_was_asked_for_is_verified(store_url: str) -> None:
    """A log that says that one ticket was asked for where two were given was written by somebody else."""
    with Experiment.create(store_url, "cta", small()) as trial:
        trial.ask(2, "r")
        engine = trial._store._engine
        with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
            rewritten(connection, '"n":2', '"n":1')
    found = verify(store_url, "cta")
    assert (found.event, found.problem) == (3, "tickets that were not the next ones")


def test_answers_say_it_as_plain_data(experiment: Experiment) -> None:
    first = experiment.ask(1, "r").to_dict()
    assert (first["repeated"], first["fallback"]) == (False, None)
    assert experiment.ask(1, "r").to_dict() == first | {"repeated": True}


def test_a_block_of_ids_is_read_and_written_as_each_of_them() -> None:
    tickets = [Ticket(1, 0, 0), Ticket(999_999, 7, 0), Ticket(10**6, 7, 0), Ticket(2, 10**15, 4)]
    for bare in (False, True):
        ids = TicketIds("cta", bare=bare)
        texts = [ids.write(ticket) for ticket in tickets]
        assert ids.write_all(tickets) == texts
        assert ids.read_all(texts) == [ids.read(text) for text in texts] == tickets
        ids.check_all(texts)
        for bad in ("cta.1-0", "1-1-1", "other.1-1", "", 3, None):
            for act in (ids.read_all, ids.check_all):
                with pytest.raises(InvalidArgument, match="ticket"):
                    act([*texts, bad])
