"""Time: clocks that are set back are reported, and two versions of the software may take turns."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from banditto.cli import main
from banditto.core.errors import LogError
from banditto.live import follower as module
from banditto.live.event_log import FIRST_HASH, following
from banditto.live.experiment import Experiment
from banditto.live.export import read_log
from banditto.live.folded_log import folded
from banditto.live.ticket_book import microseconds, time_text
from banditto.live.verify import verify
from banditto.report.audit import audit_page
from tests.live.test_lost import Clock, clock
from tests.live.worlds import finish, small

__all__ = ["clock"]  # a fixture


def software(experiment: Experiment) -> list[str]:
    log = experiment._store.read(lambda view: list(view.events(view.known(experiment.name)["id"])))
    return [event.content["versions"]["banditto"] for event in log if event.kind == "software"]


# -- clocks ------------------------------------------------------------------------------------------------------------


def test_a_clock_that_runs_backwards_is_reported_and_is_no_fault(store_url: str, clock: Clock) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(3)  # events 2 and 3
        clock.passes(-90.25)
        experiment.tell("cta.1-1", 0.5)  # event 4, before the one before it
        clock.passes(10)
        experiment.tell("cta.1-2", 0.5)
        clock.passes(-0.000001)
        experiment.tell("cta.1-3", 0.5)  # event 6
        clock.passes(3600)
        finish(experiment)
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    steps = found.clock_steps
    assert steps is not None
    assert (steps.number, steps.largest, steps.first) == (2, 90.25, 4)
    assert found.to_dict()["clock_steps"] == {"number": 2, "largest": 90.25, "first": 4}
    assert "A clock ran backwards 2 times, by 90.25 s at the most, first at event 4." in audit_page(
        read_log(store_url, "cta")
    )


def test_a_clock_that_stands_still_or_goes_on_is_not_mentioned(store_url: str, clock: Clock) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(3)
        experiment.tell("cta.1-1", 0.5)
        clock.passes(1e8)
        experiment.tell("cta.1-2", 0.5)
    found = verify(store_url, "cta")
    assert (found.holds, found.clock_steps, found.to_dict()["clock_steps"]) == (True, None, None)
    assert "ran backwards" not in audit_page(read_log(store_url, "cta"))


def test_the_command_line_says_so(clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Experiment.create(url, "cta", small()) as experiment:
        experiment.ask(1)
        clock.passes(-2)
        experiment.tell("cta.1-1", 0.5)
    for words in ((), ("--json",)):
        with pytest.raises(SystemExit) as stop:
            main(["verify", "cta", "--store", url, *words])
        assert not stop.value.code
        out = capsys.readouterr().out
        if words:
            assert json.loads(out)["clock_steps"] == {"number": 1, "largest": 2.0, "first": 4}
        else:
            assert "A clock ran backwards once, by 2 s at the most, first at event 4." in out


def test_a_clock_that_is_set_back_does_not_give_tickets_up_too_early(store_url: str, clock: Clock) -> None:
    with Experiment.create(store_url, "cta", small(deadline=60)) as experiment:
        experiment.ask(12)
        clock.passes(-3600)
        assert experiment.ask().state == "waiting"
        assert experiment.missing_older(0, "all") == 0  # as that clock says, they are not out yet
        clock.passes(3661)
        assert len(experiment.ask(12)) == 12
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    assert found.clock_steps is None  # no event was written while it was wrong


@pytest.mark.parametrize(
    "time",
    [
        *("then", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00.000000Z", "2026-01-01 00:00:00.000000+00:00"),
        *("2026-13-01T00:00:00.000000+00:00", "2026-01-01T00:00:00.000000+01:00", "2026-W01-4T00:00:00.000000+00:00"),
    ],
)
def test_times_are_as_banditto_writes_them(time: str) -> None:
    registration = small()
    content = {"registration": json.loads(registration.to_json()), "digest": registration.digest, "name": "cta"}
    first = following(FIRST_HASH, 1, "init", "2026-01-01T00:00:00.000000+00:00", content)
    second = following(first.hash, 2, "stop", time, {"reason": "x"})
    row: dict[str, object] = {"digest": registration.digest, "registration": registration.to_json(), "name": "cta"}
    row |= {"created": first.time, "head": second.hash, "events": 2}
    with pytest.raises(LogError, match="^event 2: "):
        list(folded([first, second], row))


def test_times_are_read_as_they_were_written() -> None:
    zone = "+00:00"
    for day in ("1970-01-01T00:00:00.000000", "2026-11-17T20:27:10.426201", "1969-12-31T23:59:59.999999"):
        text = day + zone
        assert time_text(microseconds(text)) == text
        assert microseconds(text) == round((datetime.fromisoformat(text)).timestamp() * 10**6)


# -- versions of the software ------------------------------------------------------------------------------------------


def written_by(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    versions = module.SOFTWARE | {"banditto": version}
    monkeypatch.setattr(module, "SOFTWARE", versions)
    monkeypatch.setattr(module, "_SOFTWARE_TEXT", json.dumps(versions))


def test_versions_that_take_turns_add_an_event_each(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, each of them noted at every step that it was not the one that had written last."""
    with Experiment.create(store_url, "cta", small()) as experiment:
        tickets = experiment.ask(12).tickets
        before = experiment.status().events
        for number, ticket in enumerate(tickets):
            written_by(monkeypatch, ("99.0.1", "99.0.2")[number % 2])
            experiment.tell(ticket.id, 0.5)
        assert experiment.status().events == before + 12 + 2 + 1  # rewards, versions, the decision
        assert software(experiment)[1:] == ["99.0.1", "99.0.2"]
        row = experiment._store.read(lambda view: view.known("cta"))
        assert [line["banditto"] for line in json.loads(row["software"])] == software(experiment)
    found = verify(store_url, "cta")
    assert found.holds, found.problem


def test_a_version_that_changes_nothing_leaves_no_trace(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(12, "r")
        events = experiment.status().events
        written_by(monkeypatch, "99.0.1")
        assert experiment.ask(12, "r").repeated
        assert experiment.ask(1).state == "waiting"
        assert experiment.ask(unit="ann").state == "waiting"
        assert experiment.missing_older(3600, "none is as old") == 0
        assert experiment.status().events == events
    assert verify(store_url, "cta").holds


@pytest.mark.parametrize("text", ["", "[]", '[{"banditto": "1"}]', "{", '"x"', "null", "{}"])
def test_other_versions_in_the_row_are_found(store_url: str, text: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(1)
        row = experiment._store.read(lambda view: view.known("cta"))
        saved = (row["id"], row["events"], row["head"], row["progress"], text)
        experiment._store.write(lambda rows: rows.save(*saved))
    problem = verify(store_url, "cta").problem
    assert problem in (
        "the experiment's row has other versions of the software than its log",
        "a table beside the log has a row of another shape",
    )
