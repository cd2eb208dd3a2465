"""What is said of every step: reports for whoever counts, and log lines without anybody's data."""

from __future__ import annotations

import json
import logging
import sqlite3
from pathlib import Path

import pytest

import banditto as bd
from banditto.core.errors import ConflictError, InvalidArgument, StoreError
from banditto.live.experiment import Experiment
from tests.live.worlds import small


def test_every_step_is_reported_once(store_url: str) -> None:
    seen: list[bd.StepReport] = []
    with Experiment.create(store_url, "cta", small(), on_step=seen.append) as trial:
        first = trial.ask(3, request_id="r")
        trial.ask(3, request_id="r")
        with pytest.raises(ConflictError):
            trial.ask(2, request_id="r")
        trial.tell_many([(first[0].id, 0.5), (first[1].id, 1)])
        trial.tell(first[0].id, 0.5)
        with pytest.raises(InvalidArgument):
            trial.tell("cta.9-9", 0.5)
        trial.correct(first[0].id, 0.25, "a typing error")
        trial.missing(first[2].id, "left the page")
        assert trial.missing_older(0, "old") == 0
        trial.stop("enough")
        trial.ask()
    told = [(one.step, one.outcome, one.tickets, one.open_tickets) for one in seen]
    assert told == [
        ("ask", "done", 3, 3),
        ("ask", "repeated", 3, 3),
        ("ask", "conflict", 0, None),
        ("tell", "done", 2, 1),
        ("tell", "repeated", 0, 1),
        ("tell", "refused", 0, None),
        ("correct", "done", 1, 1),
        ("missing", "done", 1, 0),
        ("missing", "nothing", 0, 0),
        ("stop", "done", 1, 0),
        ("ask", "nothing", 0, 0),
    ]
    assert all(one.experiment == "cta" and one.seconds >= one.waited >= 0 for one in seen)


def test_waiting_for_another_writer_is_told(tmp_path: Path) -> None:
    seen: list[bd.StepReport] = []
    path = tmp_path / "trial.db"
    settings = bd.StoreSettings(deadline=1)
    with Experiment.create(f"sqlite:///{path}", "cta", small(), settings=settings, on_step=seen.append) as trial:
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError):
                trial.ask()
            other.execute("ROLLBACK")
        trial.ask()
    assert [one.outcome for one in seen] == ["failed", "done"]
    assert seen[0].waited > 0.9
    assert "lock" in seen[0].problem


def test_whoever_counts_cannot_stop_a_trial(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def count(report: bd.StepReport) -> None:
        raise RuntimeError("the counter is full")

    with Experiment.create(f"sqlite:///{tmp_path}/trial.db", "cta", small(), on_step=count) as trial:
        assert len(trial.ask(3)) == 3
    assert "on_step failed" in caplog.text


def test_log_lines_are_json_and_have_nobodys_data(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    formatter = bd.JsonLogFormatter()
    created = Experiment.create(f"sqlite:///{tmp_path}/trial.db", "cta", small())
    with caplog.at_level(logging.DEBUG, "banditto.live"), created as trial:
        ticket = trial.ask(unit="anna@example.org")[0]
        trial.tell(ticket.id, 0.123, {"revenue": 98.76})
        with pytest.raises(ConflictError):
            trial.tell(ticket.id, 0.456)
        trial.ask(1, request_id="order-4711")
    lines = [formatter.format(record) for record in caplog.records if record.name == "banditto.live"]
    contents = [json.loads(line) for line in lines]
    assert [(line["step"], line["outcome"], line["level"]) for line in contents] == [
        ("ask", "done", "debug"),
        ("tell", "done", "debug"),
        ("tell", "conflict", "info"),
        ("ask", "done", "debug"),
    ]
    for secret in ("anna", "0.123", "0.456", "98.76", "4711", ticket.id):
        assert not any(secret in line for line in lines), secret
    assert all("\n" not in line for line in lines)


def test_nothing_is_printed_unless_somebody_asks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Experiment.create(f"sqlite:///{tmp_path}/trial.db", "cta", small()) as trial:
        trial.ask(2, request_id="r")
        with pytest.raises(ConflictError):
            trial.ask(1, request_id="r")
    assert capfd.readouterr() == ("", "")
