"""Rewards that will not come: in bulk, by a rule, by a deadline; and slots that wait to be handed out again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from banditto.core.errors import ConflictError, InvalidArgument
from banditto.live import experiment as experiment_module
from banditto.live import reading, writing
from banditto.live.checked_words import earlier
from banditto.live.event_log import FIRST_HASH, Event, chained
from banditto.live.experiment import Experiment
from banditto.live.store import engine_of
from banditto.live.tables import EVENTS, EXPERIMENTS, QUEUE
from banditto.live.verify import verified, verify
from tests.live.administrators import allow_tampering
from tests.live.test_contract import unchanged
from tests.live.worlds import finish, registration_of, small, small_policy

DAY = 24 * 3600
KEPT = Path(__file__).parent / "data" / "version-3.db"


@pytest.fixture
def experiment(store_url: str) -> Iterator[Experiment]:
    with Experiment.create(store_url, "cta", small(arm_names=["A", "B"])) as made:
        yield made


class Clock:
    """What steps take for the time, which a test sets."""

    def __init__(self) -> None:
        self.time = "2026-01-01T12:00:00.000000+00:00"

    def __call__(self) -> str:
        return self.time

    def passes(self, seconds: float) -> None:
        self.time = earlier(self.time, -seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (experiment_module, reading, writing):
        monkeypatch.setattr(module, "now", made)
    return made


def events(experiment: Experiment, kind: str = "lost") -> list[Event]:
    log = experiment._store.read(lambda view: list(view.events(view.known(experiment.name)["id"])))
    return [event for event in log if event.kind == kind]


def rewritten(url: str, change: Callable[[str, str], str]) -> None:
    """Change bodies by their kinds, with hashes that fit."""
    engine = engine_of(url)
    with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
        previous = FIRST_HASH
        allow_tampering(connection)
        for row in connection.execute(sql.select(EVENTS).order_by(EVENTS.c.number)).mappings().all():
            body = change(row["kind"], row["body"])
            previous = chained(previous, row["number"], row["kind"], row["time"], body)
            connection.execute(EVENTS.update().where(EVENTS.c.number == row["number"]).values(body=body, hash=previous))
        connection.execute(EXPERIMENTS.update().values(head=previous))
    engine.dispose()


# -- in bulk -----------------------------------------------------------------------------------------------------------


def test_several_at_once_are_one_event_that_says_who_and_why(experiment: Experiment, store_url: str) -> None:
    experiment.ask(6)
    experiment.tell("cta.1-2", 0.5)
    before = experiment.status().events
    tickets = ["cta.1-4", "cta.1-1", "cta.1-4", "cta.1-6"]
    answers = experiment.missing_many(tickets, "left the page", by="ann")
    assert answers == ["recorded", "recorded", "repeated", "recorded"]
    assert experiment.status().events == before + 1
    (event,) = events(experiment)
    assert event.content == {"tickets": [[1, 3, 0], [1, 0, 0], [1, 5, 0]], "reason": "left the page", "by": "ann"}
    assert experiment.missing_many(tickets, "left the page", by="ann") == ["repeated"] * 4
    assert experiment.missing_many(iter(["cta.1-4", "cta.1-3"]), "lost") == ["repeated", "recorded"]
    assert events(experiment)[1].content["tickets"] == [[1, 2, 0]]
    assert experiment.missing_many([], "nothing") == []
    assert len(events(experiment)) == 2
    again = [ticket.id for ticket in experiment.ask(5)]
    assert again == ["cta.1-4-2", "cta.1-1-2", "cta.1-6-2", "cta.1-3-2", "cta.1-7"]  # in the order of the losses
    assert verify(store_url, "cta").holds


def test_all_of_them_or_none(experiment: Experiment) -> None:
    experiment.ask(3)
    experiment.tell("cta.1-2", 0.5)
    told = ["cta.1-1", "cta.1-2"]
    unchanged(experiment, partial(experiment.missing_many, told, "x"), ConflictError, "^ticket cta.1-2 has the reward")
    for other in ("cta.1-4", "1-1", "x.1-1"):
        act = partial(experiment.missing_many, ["cta.1-1", other], "x")
        unchanged(experiment, act, InvalidArgument, "^ticket: got")
    many = [f"cta.1-{k}" for k in range(1, 10_002)]
    unchanged(experiment, partial(experiment.missing_many, many, "x"), InvalidArgument, "^tickets: got 10,001 of them")
    names: list[Any] = ["x" * 1001, "a\0", "\ud800", 5]
    for by in names:
        one = partial(experiment.missing, "cta.1-1", "x", by=by)
        unchanged(experiment, one, InvalidArgument, "^by: got")


# -- by a rule ---------------------------------------------------------------------------------------------------------


def test_those_that_have_waited_longer_are_given_up(experiment: Experiment, clock: Clock, store_url: str) -> None:
    experiment.ask(3)
    clock.passes(5 * DAY)
    experiment.ask(2)
    experiment.tell("cta.1-2", 0.5)
    clock.passes(3 * DAY)
    assert experiment.missing_older(timedelta(days=8), "silence", by="cron") == 0  # older than, not as old as
    assert events(experiment) == []
    assert experiment.missing_older(7 * DAY, "silence", by="cron") == 2
    (event,) = events(experiment)
    places = [[1, 0, 0], [1, 2, 0]]
    assert event.content == {"tickets": places, "reason": "silence", "by": "cron", "older_than": float(7 * DAY)}
    assert experiment.missing_older(7 * DAY, "silence") == 0
    assert [ticket.id for ticket in experiment.ask(3)] == ["cta.1-1-2", "cta.1-3-2", "cta.1-6"]
    assert experiment.missing_older(0, "all of them") == 2  # those of this very moment have not waited
    found = verify(store_url, "cta")
    assert found.holds, found.problem


def test_more_than_fit_into_one_event(store_url: str, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    for module in ("banditto.live.ask_tell", "banditto.live.experiment"):
        monkeypatch.setattr(f"{module}.MOST_LOST", 4)
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(10)
        clock.passes(60)
        assert experiment.missing_older(30, "silence") == 10
        assert [len(event.content["tickets"]) for event in events(experiment)] == [4, 4, 2]
        assert [ticket.id for ticket in experiment.ask(10)] == [f"cta.1-{k}-2" for k in range(1, 11)]
    assert verify(store_url, "cta").holds


@pytest.mark.parametrize("age", [-1, float("nan"), float("inf"), 1e10, "7d", None, timedelta(days=-1)])
def test_bad_ages(experiment: Experiment, age: Any) -> None:
    unchanged(experiment, partial(experiment.missing_older, age, "x"), InvalidArgument, "^older_than: got")


AGES: dict[str, tuple[str, str]] = {
    "older": ('"older_than":60.0', '"older_than":86400.0'),
    "a moment older": ('"older_than":60.0', '"older_than":90.000003'),
    "negative": ('"older_than":60.0', '"older_than":-1.0'),
    "text": ('"older_than":60.0', '"older_than":"60"'),
    "nothing": ('"older_than":60.0', '"older_than":null'),
    "true": ('"older_than":60.0', '"older_than":true'),
    "a list": ('"older_than":60.0', '"older_than":[]'),
    "nobody": ('"by":"ann"', '"by":null'),
    "no tickets": ("[[1,0,0],[1,1,0]]", "[]"),
    "one twice": ("[[1,0,0],[1,1,0]]", "[[1,0,0],[1,0,0]]"),
    "one that is not out": ("[[1,0,0],[1,1,0]]", "[[1,0,0],[1,2,0]]"),
}


@pytest.mark.parametrize("what", AGES)
def test_a_forged_rule_is_found(what: str, clock: Clock, tmp_path: Path) -> None:
    """Whoever gives up tickets that he does not like, and says that they were old, is found by their times."""
    url = f"sqlite:///{tmp_path}/x.db"
    with Experiment.create(url, "cta", small()) as experiment:
        experiment.ask(2)
        clock.passes(90)
        assert experiment.missing_older(60, "silence", by="ann") == 2
    assert verify(url, "cta").holds
    old, new = AGES[what]
    rewritten(url, lambda kind, body: body.replace(old, new) if kind == "lost" else body)
    found = verify(url, "cta")
    assert (found.holds, found.event) == (False, 4), found


def test_a_rule_may_be_as_strict_as_the_times_allow(clock: Clock, tmp_path: Path) -> None:
    """Ages are checked to the microsecond, the rounding of a float aside."""
    url = f"sqlite:///{tmp_path}/x.db"
    with Experiment.create(url, "cta", small()) as experiment:
        experiment.ask(1)
        clock.passes(0.3)
        assert experiment.missing_older(0.3, "x") == 0
        assert experiment.missing_older(0.299999, "x") == 1
    assert verify(url, "cta").holds


# -- by a deadline -----------------------------------------------------------------------------------------------------


def test_a_deadline_closes_what_is_overdue_as_an_event(store_url: str, clock: Clock) -> None:
    with Experiment.create(store_url, "cta", small(deadline=timedelta(hours=1))) as experiment:
        assert experiment.registration.deadline == 3600
        experiment.ask(8, "r")
        clock.passes(1800)
        experiment.ask(4)
        experiment.tell_many([(f"cta.1-{k}", 0.5) for k in range(1, 7)])
        assert experiment.ask().state == "waiting"  # nothing is overdue
        clock.passes(1801)
        assert [ticket.id for ticket in experiment.ask(8, "r")] == [f"cta.1-{k}" for k in range(1, 9)]  # said before
        assert events(experiment) == []
        assert experiment.tell("cta.1-7", 0.5) == "recorded"  # who comes before anybody asks is in time
        assert [ticket.id for ticket in experiment.ask(3)] == ["cta.1-8-2"]
        (event,) = events(experiment)
        assert event.content == {
            "tickets": [[1, 7, 0]],
            "reason": "no reward before the deadline of the registration",
            "by": "banditto",
            "older_than": 3600,
        }
        assert experiment.tell("cta.1-8", 0.5) == "excluded"
        clock.passes(10 * DAY)
        answer = experiment.ask(unit="ann")
        assert answer[0].id == "cta.1-9-2"
        assert experiment.status().tickets == {"open": 1, "told": 7, "missing": 5, "late": 1}
        experiment.stop("enough")
        clock.passes(10 * DAY)
        assert experiment.ask().state == "stopped"
        assert len(events(experiment)) == 2  # after the end nothing is closed
    found = verify(store_url, "cta")
    assert found.holds, found.problem


def test_without_a_deadline_tickets_wait_for_ever(store_url: str, clock: Clock) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(12)
        clock.passes(10**8)
        assert experiment.ask().state == "waiting"


def test_a_run_with_a_deadline_goes_to_its_end(store_url: str, clock: Clock) -> None:
    with Experiment.create(store_url, "cta", small(deadline=60)) as experiment:
        experiment.ask(12)
        for _ in range(3):
            clock.passes(61)
            experiment.ask(12)
        finish(experiment)
        assert experiment.status().state == "finished"
        assert experiment.status().tickets["missing"] == 36
    assert verify(store_url, "cta").holds


@pytest.mark.parametrize("deadline", [0, -5, 1.5, float("nan"), 10**9 + 1, "60", True, timedelta(milliseconds=1)])
def test_bad_deadlines(deadline: Any) -> None:
    with pytest.raises(InvalidArgument, match="^deadline: got"):
        small(deadline=deadline)


# -- slots that wait ---------------------------------------------------------------------------------------------------


@contextmanager
def statements(experiment: Experiment) -> Iterator[list[tuple[str, int]]]:
    """What SQLite is told, and how many bytes of parameters and rows come with it."""
    said: list[tuple[str, int]] = []

    def connected(connection: Any, record: object) -> None:
        connection.set_trace_callback(lambda text: said.append((text, len(text))))

    engine = experiment._store._engine
    experiment._store.let_go()
    sql.event.listen(engine, "connect", connected)
    yield said
    sql.event.remove(engine, "connect", connected)
    experiment._store.let_go()


def test_a_step_does_not_cost_more_with_slots_that_wait(tmp_path: Path) -> None:
    """Before, every step wrote all of them: here what is written, and how many rows a step touches, stays the same."""
    sizes, changes = [], []
    for waiting in (5, 1000):
        url = f"sqlite:///{tmp_path}/{waiting}.db"
        with Experiment.create(url, "cta", registration_of(small_policy(10**5), rewards=(0.0, 1.0))) as experiment:
            while sum((status := experiment.status()).plan.values()) < 3000:
                experiment.tell_totals(status.batch, {arm: (n, n / 2) for arm, n in status.plan.items()})
            tickets = [ticket.id for ticket in experiment.ask(2000)]
            experiment.missing_many(tickets[:waiting], "lost")
            with statements(experiment) as said:
                experiment.ask(1)
                experiment.tell(tickets[-1], 0.5)
                experiment.missing(tickets[-2], "lost")
            sizes.append(sum(length for text, length in said))
            changes.append(len(said))
            # SQLite says a statement once more where it has a trigger
            assert len({text for text, _ in said if text.startswith("INSERT INTO banditto_event")}) == 3
            progress = experiment._store.read(lambda view: view.known("cta"))["progress"]
            assert len(progress) < 400
            assert json.loads(progress)["queue"] == [1, waiting + 1]
        assert verify(url, "cta").holds
    assert changes[0] == changes[1]
    assert abs(sizes[0] - sizes[1]) < 200  # numbers have more digits


def test_the_first_that_wait_are_found_by_an_index(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    Experiment.create(url, "cta", small()).close()
    engine = engine_of(url)
    query = sql.select(QUEUE.c.position).where(QUEUE.c.experiment == 1, QUEUE.c.place < 5).order_by(QUEUE.c.place)
    with engine.connect() as connection:
        for statement in (query, QUEUE.delete().where(QUEUE.c.experiment == 1, QUEUE.c.place < 5)):
            text = str(statement.compile(engine, compile_kwargs={"literal_binds": True}))
            plan = " ".join(str(row[3]) for row in connection.execute(sql.text(f"EXPLAIN QUERY PLAN {text}")))
            assert "SEARCH" in plan
            assert "SCAN" not in plan
    engine.dispose()


def test_slots_come_again_in_the_order_in_which_they_were_lost(experiment: Experiment, store_url: str) -> None:
    experiment.ask(12)
    for ticket in ("cta.1-7", "cta.1-2", "cta.1-9"):
        experiment.missing(ticket, "lost")
    assert [ticket.id for ticket in experiment.ask(2)] == ["cta.1-7-2", "cta.1-2-2"]
    experiment.missing("cta.1-7-2", "lost again")
    experiment.missing_many(["cta.1-12", "cta.1-1"], "lost")
    assert [ticket.id for ticket in experiment.ask(1)] == ["cta.1-9-2"]
    with Experiment.open(store_url, "cta") as other:
        assert [ticket.id for ticket in other.ask(9)] == ["cta.1-7-3", "cta.1-12-2", "cta.1-1-2"]
    assert experiment.ask().state == "waiting"
    finish(experiment)
    engine = engine_of(store_url)
    with engine.connect() as connection:
        assert connection.execute(sql.select(QUEUE)).all() == []
    engine.dispose()
    assert verify(store_url, "cta").holds


def test_a_changed_queue_is_found(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(4)
        experiment.missing_many(["cta.1-1", "cta.1-3"], "lost")
    changes = [
        QUEUE.update().where(QUEUE.c.place == 0).values(position=3),
        QUEUE.update().where(QUEUE.c.place == 1).values(attempt=2),
        QUEUE.update().where(QUEUE.c.place == 1).values(place=7),
        QUEUE.delete().where(QUEUE.c.place == 1),
        QUEUE.insert().values(experiment=1, place=2, position=1, attempt=1),
    ]
    engine = engine_of(store_url)
    for change in changes:
        with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin() as begun:
            connection.execute(change)
            problem = verified(reading.Reading(connection), "cta")[0].problem
            assert problem == "the table of slots that wait to be handed out again has others than the log"
            begun.rollback()
    engine.dispose()
    assert verify(store_url, "cta").holds


# -- logs of earlier versions ------------------------------------------------------------------------------------------


def test_losses_of_an_earlier_version_are_verified_and_may_be_told_late(tmp_path: Path) -> None:
    shutil.copy(KEPT, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    with Experiment.open(url, "kept") as trial:
        assert len(events(trial, "missing")) == 6
        assert trial.tell("2-2", 0.5) == "excluded"
        assert trial.missing("2-2", "again") == "repeated"
        assert trial.missing_older(0, "all", by="ann") == 4
        assert [event.content["by"] for event in events(trial)] == ["ann"]
        assert [ticket.id for ticket in trial.ask(5)] == ["2-2-2", "2-7-2", "2-4-2", "2-5-3", "2-3-2"]
    assert verify(url, "kept").holds


def test_a_forged_loss_of_an_earlier_version_is_found(tmp_path: Path) -> None:
    shutil.copy(KEPT, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    assert verify(url, "kept").holds
    rewritten(url, lambda kind, body: body.replace("[2,6,0]", "[2,7,0]") if kind == "missing" else body)
    assert not verify(url, "kept").holds
