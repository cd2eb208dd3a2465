"""Each rule of a log, one by one: an event that breaks it is refused though hashes and tables might fit it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from banditto.core.digest import canonical_json
from banditto.core.errors import BandittoError, LogError
from banditto.live.event_log import FIRST_HASH, Event, following
from banditto.live.experiment import Experiment
from banditto.live.fold import Course, Standing
from banditto.live.folded_log import FoldedLog, folded
from banditto.live.reading import Reading
from banditto.live.verify import verify
from tests.live.worlds import exported, registration_of, small, small_policy

Line = tuple[str, dict[str, Any]]
ARMS = [arm for _, arm in Standing.start(Course(small()).start()).hand_out(12)]
TIME = "2026-01-01T00:00:00.000000+00:00"


def fold_of() -> FoldedLog:
    """The fold of a log that has only begun."""
    return FoldedLog(small(), "cta", Event(1, "init", TIME, "{}", ""))


def asked(first: int, last: int, request: str = "r") -> Line:
    slots = [[position, 0, ARMS[position]] for position in range(first, last)]
    return "ask", {"batch": 1, "slots": slots, "request": request}


def told(*positions: int, reward: object = 0.5, kind: str = "tell") -> Line:
    return kind, {"rewards": [[1, position, 0, reward] for position in positions]}


def measured(metrics: object, *positions: int, kind: str = "tell") -> Line:
    """An event with rewards, and with whatever metrics somebody wrote into it."""
    return kind, told(*positions)[1] | {"metrics": metrics}


def corrected(position: int, before: object, after: object, reason: object = "typo") -> Line:
    return "correct", {"ticket": [1, position, 0], "before": before, "after": after, "reason": reason}


def lost(position: int, reason: object = "lost") -> Line:
    return "missing", {"ticket": [1, position, 0], "reason": reason}


def totals(sums: list[str], batch: int = 1, counts: tuple[int, ...] = (6, 6)) -> Line:
    return "totals", {"batch": batch, "counts": list(counts), "sums": sums}


def stopped(reason: object = "enough") -> Line:
    return "stop", {"reason": reason}


DECIDED: Line = ("decide", {"batch": 1, "counts": [6, 6], "sums": ["3/1", "3/1"], "totals": [], "next": []})
TWO = [asked(0, 2)]
NAMED = {"digest": small().digest, "name": "cta"}
FIFTY = measured({f"m{k}": [[1, 0, 0, 1.0]] for k in range(50)}, 0)
BAD: list[tuple[str, list[Line], Line]] = [
    ("not the next ones", [], asked(1, 3)),
    ("not the next ones", [], asked(0, 0)),
    ("not the next ones", [stopped()], asked(0, 2)),
    ("not the next ones", [*TWO, lost(0)], asked(2, 4, "s")),  # one that was lost comes first
    ("not the next ones", [], ("ask", {"batch": 1, "slots": [[0, 0, 1 - ARMS[0]]], "request": "r"})),
    ("1-3 is not open", TWO, told(2)),
    ("1-1 is not open", TWO, told(0, 0)),
    ("reward: got 1.5", TWO, told(0, reward=1.5)),
    ("reward: got 1", TWO, told(0, reward="1")),
    ("1-1 is not missing", TWO, told(0, kind="late")),
    ("reward: got -1", [*TWO, lost(0)], told(0, reward=-1, kind="late")),
    ("1-1 is not open", [*TWO, lost(0)], told(0)),
    ("1-1 is not open", [*TWO, told(0)], lost(0)),
    ("metrics without a name", TWO, measured({}, 0)),
    ("metric revenue without a value", TWO, measured({"revenue": []}, 0)),
    ("1-2, whose reward is not in this event", TWO, measured({"revenue": [[1, 1, 0, 1.0]]}, 0)),
    ("1-1-2, whose reward is not in this event", TWO, measured({"revenue": [[1, 0, 1, 1.0]]}, 0)),
    ("1-1, whose reward is not in this event", [*TWO, told(0)], measured({"revenue": [[1, 0, 0, 1.0]]}, 1)),
    ("metric revenue of ticket 1-1 twice", TWO, measured({"revenue": [[1, 0, 0, 1.0], [1, 0, 0, 2.0]]}, 0)),
    ("metric revenue: got 1", TWO, measured({"revenue": [[1, 0, 0, "1"]]}, 0)),
    ("metric revenue: got True", TWO, measured({"revenue": [[1, 0, 0, True]]}, 0)),
    ("metric revenue: got None", TWO, measured({"revenue": [[1, 0, 0, None]]}, 0)),
    ("metric revenue: got 1e\\+200", TWO, measured({"revenue": [[1, 0, 0, 1e200]]}, 0)),
    ("name of a metric: got a b", TWO, measured({"a b": [[1, 0, 0, 1.0]]}, 0)),
    ("name of a metric: got ''", TWO, measured({"": [[1, 0, 0, 1.0]]}, 0)),
    ("more than 50 names", TWO, measured({f"m{k}": [[1, 0, 0, 1.0]] for k in range(51)}, 0)),
    ("more than 50 names", [*TWO, FIFTY], measured({"more": [[1, 1, 0, 1.0]]}, 1)),
    ("metrics without a name", [*TWO, lost(0)], measured({}, 0, kind="late")),
    ("1-2, whose reward", [*TWO, lost(0)], measured({"x": [[1, 1, 0, 1.0]]}, 0, kind="late")),
    ("another shape", TWO, ("ask", asked(2, 3, "s")[1] | {"metrics": {}})),
    ("another shape", [*TWO, told(0)], ("correct", corrected(0, 0.5, 0.25)[1] | {"metrics": {}})),
    ("1-1 is not told", TWO, corrected(0, 0.5, 0.25)),
    ("was not there", [*TWO, told(0)], corrected(0, 0.75, 0.25)),
    ("reward: got 2", [*TWO, told(0)], corrected(0, 0.5, 2)),
    ("no text", [*TWO, told(0)], corrected(0, 0.5, 0.25, reason=5)),
    ("no text", TWO, lost(0, reason=None)),
    ("no text", [], stopped(reason=["x"])),
    ("a stop after the end", [stopped()], stopped()),
    ("totals of another batch", [], totals(["3/1", "3/1"], batch=2)),
    ("totals of another batch", [], totals(["1/1", "3/1"], counts=(2, 6))),
    ("totals of another batch", TWO, totals(["3/1", "3/1"])),
    ("totals of another batch", [stopped()], totals(["3/1", "3/1"])),
    ("total: got 7", [], totals(["7/1", "3/1"])),
    ("a decision before the last reward", TWO, DECIDED),
    ("a decision that was due", [totals(["3/1", "3/1"])], stopped()),
    ("a decision that was due", [asked(0, 12), told(*range(12))], stopped()),
    ("does not take", [totals(["3/1", "3/1"])], DECIDED),
    ("another shape", [], ("stop", {"reason": "x", "more": 1})),
    ("another shape", [], ("apply", {"reason": "x"})),
]


@pytest.mark.parametrize(("problem", "before", "bad"), BAD)
def test_what_does_not_follow_is_refused(problem: str, before: list[Line], bad: Line) -> None:
    fold = fold_of()
    for number, (kind, content) in enumerate(before, 2):
        fold.apply(Event(number, kind, TIME, canonical_json(content), ""))
    with pytest.raises(BandittoError, match=problem):  # `folded` says of each which event it is
        fold.apply(Event(99, bad[0], TIME, canonical_json(bad[1]), ""))


@pytest.mark.parametrize("metrics", [5, [], "x", None, {"x": 5}, {"x": [5]}, {"x": [[]]}, {"x": [[1, 0, 0, 0, 1.0]]}])
def test_metrics_of_another_shape_are_found(metrics: object) -> None:
    """`folded` says so of whatever a body of another shape raises."""
    registration = small()
    first = following(FIRST_HASH, 1, "init", TIME, {**NAMED, "registration": json.loads(registration.to_json())})
    asking = following(first.hash, 2, "ask", TIME, asked(0, 2)[1])
    telling = following(asking.hash, 3, "tell", TIME, measured(metrics, 0)[1])
    row = {"digest": registration.digest, "registration": registration.to_json(), "created": TIME, "name": "cta"}
    with pytest.raises(LogError, match="^event 3: a body of another shape"):
        list(folded([first, asking, telling], row))


def test_one_experiment_does_not_see_another(store_url: str) -> None:
    """Two of one registration in one store, at different places: nothing of one is the other's."""
    with (
        Experiment.create(store_url, "one", small()) as one,
        Experiment.create(store_url, "two", small()) as two,
    ):
        first = one.ask(12, "r")
        one.tell_many([(ticket.id, 0.5) for ticket in first])  # decided
        one.ask(3, "s")
        assert [ticket.id for ticket in two.ask(2, "r")] == ["two.1-1", "two.1-2"]
        assert two.status().batch == 1
        assert [line.id for line in two.pending()] == ["two.1-1", "two.1-2"]
        assert two.status().tickets == {"open": 2, "told": 0, "missing": 0, "late": 0}
        assert two.tell("two.1-1", 0.75) == "recorded"
        two.missing("two.1-2", "lost")
        assert one.status().tickets == {"open": 3, "told": 12, "missing": 0, "late": 0}
        assert one.tell("one.1-1", 0.5) == "repeated"
        two.tell_many([(ticket.id, 0.25) for ticket in two.ask(11)])
        assert (one.status().batch, two.status().batch) == (2, 2)
        with pytest.raises(LogError):
            one._store.read(swapped)


def swapped(view: Reading) -> None:
    """One experiment's log under the row of the other."""
    one, two = view.find("one"), view.find("two")
    assert one is not None
    assert two is not None
    for _ in folded(view.events(two["id"]), one):
        pass


def test_a_long_list_of_rewards_is_told_whole(store_url: str) -> None:
    """More than one statement of SQL looks up."""
    made = registration_of(small_policy(10**5), rewards=(0.0, 1.0))
    with Experiment.create(store_url, "long", made) as experiment:
        while (status := experiment.status()).batch == 1 or sum(status.plan.values()) < 1500:
            experiment.tell_totals(status.batch, {arm: (n, n / 2) for arm, n in status.plan.items()})
        tickets = experiment.ask(1500).tickets
        assert set(experiment.tell_many([(ticket.id, 0.5) for ticket in tickets])) == {"recorded"}
        assert experiment.status().tickets["told"] == 1500
    assert verify(store_url, "long").holds


def test_an_export_has_every_ticket_as_it_stands(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(4)
        experiment.tell_many([("cta.1-1", 0.5), ("cta.1-2", 1.0)])
        experiment.correct("cta.1-2", 0.25, "typo")
        for ticket in ("cta.1-3", "cta.1-4"):
            experiment.missing(ticket, "lost")
        experiment.tell("cta.1-3", 0.75)
        experiment.ask(1)
    rows = csv.DictReader(io.StringIO(exported(store_url, "cta", "csv").decode()))
    assert [(row["ticket"], row["status"], row["reward"], row["reason"]) for row in rows] == [
        ("cta.1-1", "told", "0.5", ""),
        ("cta.1-2", "told", "0.25", "typo"),
        ("cta.1-3", "late", "0.75", "lost"),
        ("cta.1-3-2", "open", "", ""),
        ("cta.1-4", "missing", "", "lost"),
    ]
