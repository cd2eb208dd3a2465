"""What is large is read as it comes: `verify` and exports hold a few bytes a ticket, and `status` scans nothing."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import banditto as bd
from banditto.core.digest import canonical_json
from banditto.live.event_log import Event
from banditto.live.exact_sums import sum_text
from banditto.live.experiment import Experiment
from banditto.live.export import export, read_log
from banditto.live.exported_log import ExportedEvents, read_exported
from banditto.live.fold import Course, Standing
from banditto.live.folded_log import FoldedLog
from banditto.live.store import engine_of
from banditto.live.tables import EVENTS, TICKETS
from banditto.live.ticket_book import time_text
from banditto.live.verify import verify
from tests.live.worlds import exported, finish, hashed_reward, place, registration_of, small, small_policy


def long_registration() -> Any:
    """One whose third batch has enough slots."""
    return registration_of(small_policy(10**6), rewards=(0.0, 1.0))


def long_log(number: int) -> Iterator[Event]:
    """Events of single asks and tells of a long batch, as a live run writes them, without their hashes."""
    registration = long_registration()
    standing = Standing.start(Course(registration).start())
    event = 1

    def made(kind: str, body: str) -> Event:
        nonlocal event
        event += 1
        return Event(event, kind, time_text(1_800_000_000_000_000 + event), body, "")

    while standing.stage.length < number:
        counts = list(standing.stage.pulls)
        sums = [sum_text(Fraction(count, 2)) for count in counts]
        content: dict[str, Any] = {"batch": standing.stage.batch, "counts": counts, "sums": sums}
        yield made("totals", canonical_json(content))
        standing.aggregate(counts, [Fraction(count, 2) for count in counts])
        decided, standing = standing.decide()
        yield made("decide", canonical_json(decided))
    batch = standing.stage.batch
    for position, arm in enumerate(standing.stage.order.arms(0, number).tolist()):
        content = {"batch": batch, "n": 1, "slots": [[position, 0, arm]], "request": f"{random.getrandbits(128):032x}"}
        yield made("ask", canonical_json(content))
        yield made("tell", canonical_json({"rewards": [[batch, position, 0, position % 7 / 7]]}))


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [5_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_the_fold_keeps_a_few_bytes_for_each_ticket(number: int) -> None:
    """A slot's arm, state, reward, two times, and a hash of its request with its event: 45 bytes, and room to grow."""
    registration = long_registration()
    fold = FoldedLog(registration, "cta", Event(1, "init", time_text(1_800_000_000_000_000), "{}", ""))
    log = list(long_log(number))
    begun = next(place for place, event in enumerate(log) if event.kind == "tell")
    for event in log[:begun]:
        fold.apply(event)
    fold.standing.stage.order.arms(0, number)  # which are kept for a while, however many there are
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for event in log[begun:]:
        fold.apply(event)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(fold.book) == number
    assert fold.standing.tickets.told == number
    assert 40 * number < after - before < 60 * number
    assert peak - before < 75 * number  # an array that grows is copied


def test_events_of_an_export_are_read_one_by_one(tmp_path: Path) -> None:
    with Experiment.create(f"sqlite:///{tmp_path}/x.db", "cta", long_registration()) as experiment:
        while sum((status := experiment.status()).plan.values()) < 3000:
            experiment.tell_totals(status.batch, {arm: (n, n / 2) for arm, n in status.plan.items()})
        for _ in range(3):
            experiment.tell_many([(ticket.id, 0.5) for ticket in experiment.ask(500)])
    path = tmp_path / "x.json"
    path.write_bytes(exported(f"sqlite:///{tmp_path}/x.db", "cta", "json"))
    lines = path.read_text().splitlines()
    document = json.loads(path.read_text())
    first = next(number for number, line in enumerate(lines) if line == '  "events": [')
    assert len(lines) == first + 1 + len(document["events"]) + 2  # an event on a line
    for line, event in zip(lines[first + 1 :], document["events"], strict=False):
        assert json.loads(line.rstrip(",")) == event
        assert canonical_json(event["content"]) in line  # as it is hashed
    read: list[int] = []
    with path.open(encoding="utf-8") as file:
        events = iter(ExportedEvents(file, read.append))
        assert next(events).kind == "init"


def test_an_export_is_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece is longer than a few lines, and together they are what one piece was."""
    url = f"sqlite:///{tmp_path}/x.db"
    with Experiment.create(url, "cta", small()) as experiment:
        tickets = experiment.ask(12).tickets
        experiment.missing(tickets[2].id, "lost")
        experiment.tell(tickets[1].id, 0.25, {"x": 1})
        finish(experiment)
    whole = {kind: exported(url, "cta", kind) for kind in ("csv", "json")}
    monkeypatch.setattr("banditto.live.export._LINES", 7)

    class Pieces(io.BytesIO):
        longest = 0

        def write(self, piece: Any) -> int:
            self.longest = max(self.longest, len(piece))
            return super().write(piece)

    for kind, content in whole.items():
        with Pieces() as out:
            out.write(b"x" * 100)  # which a store that was lost half way had left
            export(url, "cta", kind, out)
            assert out.getvalue() == content
            assert out.longest < len(content) / 2
    (tmp_path / "x.json").write_bytes(whole["json"])
    with Experiment.open(url, "cta") as experiment:
        assert read_exported(tmp_path / "x.json").pulls == experiment.observations().pulls


def test_csv_lines_are_by_batch_place_and_attempt(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(5)
        experiment.missing_many(["cta.1-4", "cta.1-2"], "lost")
        experiment.ask(3)
        experiment.missing("cta.1-4-2", "lost")
        finish(experiment, block=3)
    rows = exported(store_url, "cta", "csv").decode().splitlines()[1:]
    keys = [tuple(int(cell) for cell in row.split(",")[1:4]) for row in rows]
    assert keys == sorted(keys)
    assert [key for key in keys if key[2] > 1] == [(1, 2, 2), (1, 4, 2), (1, 4, 3)]


# -- what is scanned ---------------------------------------------------------------------------------------------------


@contextmanager
def traced(experiment: Experiment) -> Iterator[list[str]]:
    """What SQLite is told by this handle."""
    said: list[str] = []
    engine = experiment._store._engine

    def connected(connection: Any, record: object) -> None:
        connection.set_trace_callback(said.append)

    experiment._store.let_go()
    sql.event.listen(engine, "connect", connected)
    yield said
    sql.event.remove(engine, "connect", connected)
    experiment._store.let_go()


def plans(url: str, said: list[str]) -> dict[str, str]:
    """How SQLite answers each statement that looks something up."""
    engine = engine_of(url)
    found = {}
    with engine.connect() as connection:
        for text in {line for line in said if line.lstrip().startswith(("SELECT", "WITH"))}:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}").all()
            found[text] = " ".join(str(row[3]) for row in rows)
    engine.dispose()
    return found


def played(url: str) -> Experiment:
    """One that has decided twice, with open tickets, losses and metrics."""
    experiment = Experiment.create(url, "cta", small(arm_names=["A", "B"]))
    while experiment.status().batch < 3:
        tickets = experiment.ask(100)
        experiment.missing(tickets[0].id, "lost")
        told = [(ticket.id, hashed_reward(*place(ticket.id)), {"x": 1.0}) for ticket in tickets][1:]
        experiment.tell_many(told)
        experiment.tell_many([(ticket.id, 0.25) for ticket in experiment.ask(1)])
    experiment.ask(5)
    return experiment


@pytest.mark.parametrize("look", ["status", "ask", "tell", "missing", "pending", "unit", "older"])
def test_no_look_and_no_step_scans_tickets_or_events(look: str, tmp_path: Path) -> None:
    """`status` added up all rewards before; every statement has an index for what it looks up."""
    url = f"sqlite:///{tmp_path}/x.db"
    with played(url), Experiment.open(url, "cta") as fresh:
        acts: dict[str, Callable[[], object]] = {
            "status": lambda: fresh.status(),
            "ask": lambda: fresh.ask(1, "r"),
            "tell": lambda: fresh.tell("cta.3-1", 0.5),
            "missing": lambda: fresh.missing("cta.3-1", "lost"),
            "pending": lambda: fresh.pending(3600, most=1),
            "unit": lambda: fresh.ask(unit="ann"),
            "older": lambda: fresh.missing_older(3600, "lost"),
        }
        with traced(fresh) as said:
            acts[look]()
        found = plans(url, said)
    assert len(found) >= 3
    for text, plan in found.items():
        for table in (TICKETS.name, EVENTS.name):
            assert f"SCAN {table}" not in plan, (text, plan)
        if look == "status":
            assert TICKETS.name not in text, text  # not even by an index: what it says stands in the row and decisions


def test_status_is_what_the_tickets_say(store_url: str) -> None:
    """Counts in the row are those of the table, which nobody counts any more."""
    with played(store_url) as experiment:
        status = experiment.status()
        states = [line[4] for line in experiment._store.read(lambda view: list(view.all_tickets(1)))]
        assert status.tickets == {name: states.count(name) for name in ("open", "told", "missing", "late")}
        assert status.headline is not None
        folded = read_log(store_url, "cta").observations()
        assert folded is not None
        assert folded.batches == experiment.observations().batches


def test_squares_that_decisions_have_are_those_of_the_rewards(store_url: str) -> None:
    """Also after corrections, for which floats are taken away again."""
    made = registration_of(bd.ExploreThenCommit(arms=2, horizon=400, rho=0.3, gap=0.5), rewards=(-1.0, 3.0))
    with Experiment.create(store_url, "cta", made) as experiment:
        tickets = experiment.ask(400).tickets
        rewards = {ticket.id: 4.0 * hashed_reward(*place(ticket.id)) - 1.0 for ticket in tickets}
        first, *rest = tickets
        experiment.tell(first.id, 3.0)
        experiment.tell_many([(ticket.id, rewards[ticket.id]) for ticket in rest[:-1]])
        experiment.correct(first.id, rewards[first.id], "typo")
        experiment.tell(rest[-1].id, rewards[rest[-1].id])
        (batch,) = experiment.observations().batches
    assert batch.squares is not None
    for arm in (0, 1):
        expected = sum(((rewards[t.id] + 1.0) / 4.0) ** 2 for t in tickets if t.arm == arm)
        assert batch.squares[arm] == pytest.approx(expected, rel=1e-12)
    found = verify(store_url, "cta")
    assert found.holds, found.problem


# -- pending -----------------------------------------------------------------------------------------------------------


def test_pending_says_how_many_there_are_when_it_shows_a_part(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        assert (experiment.pending(), experiment.pending().total) == ([], 0)
        experiment.ask(7)
        experiment.tell("cta.1-3", 0.5)
        experiment.missing("cta.1-4", "lost")
        everything = experiment.pending()
        assert (len(everything), everything.total) == (5, 5)
        part = experiment.pending(most=2)
        assert ([line.id for line in part], part.total) == (["cta.1-1", "cta.1-2"], 5)
        assert experiment.pending(most=5).total == 5
        old = experiment.pending(0, most=2)
        assert (len(old), old.total) == (2, 5)
        assert experiment.pending(3600, most=2).total == 0
