"""Exports say what the log says, in every format, and nothing in them is taken for a formula or for markup."""

from __future__ import annotations

import csv
import io
import json
import re
from importlib import import_module
from typing import Any

import pytest

from banditto.core.digest import canonical_json
from banditto.live.event_log import FIRST_HASH, chained
from banditto.live.experiment import Experiment
from banditto.live.export import COLUMNS, VerifiedLog, read_log
from banditto.live.registration import Registration
from banditto.report.audit import audit_page
from tests.live.worlds import exported, small

FORMULA = "=cmd|' /C calc'!A0"
MARKUP = '<script>alert(1)</script>, "quoted"'


@pytest.fixture
def log(store_url: str) -> VerifiedLog:
    """One batch of tickets with a correction, a reward that never came and one that came late, and one of totals."""
    with Experiment.create(store_url, "cta", small(arm_names=[FORMULA, MARKUP])) as trial:
        trial.tell_many([(ticket.id, 0.5) for ticket in trial.ask(12) if ticket.id not in ("cta.1-2", "cta.1-3")])
        trial.correct("cta.1-1", 0.1, "+1 was typed")
        trial.missing("cta.1-2", MARKUP)
        trial.missing("cta.1-3", "-")
        trial.tell("cta.1-3", 1.0)
        again = trial.ask(2)
        assert [ticket.id for ticket in again] == ["cta.1-2-2", "cta.1-3-2"]
        trial.tell_many([(ticket.id, 0.5) for ticket in again])
        trial.tell_totals(2, {arm: (count, count / 4) for arm, count in trial.status().plan.items()})
        trial.ask(1)
    return read_log(store_url, "cta")


def lines_of(url: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(url, "cta", "csv").decode())))


def test_every_ticket_has_a_line(log: VerifiedLog, store_url: str) -> None:
    lines = lines_of(store_url)
    assert list(lines[0]) == list(COLUMNS)
    tickets = [line["ticket"] for line in lines]
    totals = [line for line in lines if line["status"] == "total"]
    slots = ["1-1", "1-2", "1-2-2", "1-3", "1-3-2", *(f"1-{place}" for place in range(4, 13))]
    assert tickets == [*(f"cta.{slot}" for slot in slots), *[""] * len(totals), "cta.3-1"]
    found = {line["ticket"]: line for line in lines}
    assert [found["cta.1-1"][name] for name in ("status", "reward", "reason")] == ["told", "0.1", "'+1 was typed"]
    assert [found["cta.1-2"][name] for name in ("status", "reward", "reason")] == ["missing", "", MARKUP]
    assert [found["cta.1-3"][name] for name in ("status", "reward", "reason")] == ["late", "1.0", "'-"]
    assert [found["cta.1-3-2"][name] for name in ("status", "reward", "attempt")] == ["told", "0.5", "2"]
    assert (found["cta.3-1"]["status"], found["cta.3-1"]["answered"]) == ("open", "")
    assert {(line["digest"], line["head"]) for line in lines} == {(log.row["digest"], log.row["head"])}


def test_pulls_and_rewards_add_up_to_the_decisions(log: VerifiedLog, store_url: str) -> None:
    lines = [line for line in lines_of(store_url) if line["status"] in ("told", "total")]
    for decision in log.verification.decisions:
        for arm, count in enumerate(decision.counts):
            mine = [line for line in lines if (line["batch"], line["arm"]) == (str(decision.batch), str(arm))]
            assert sum(int(line["pulls"]) for line in mine) == count
            assert sum(float(line["reward"]) for line in mine) == pytest.approx(decision.totals[arm], rel=1e-12)


@pytest.mark.usefixtures("log")
def test_no_cell_is_a_formula(store_url: str) -> None:
    cells = [cell for line in csv.reader(io.StringIO(exported(store_url, "cta", "csv").decode())) for cell in line]
    assert f"'{FORMULA}" in cells
    for cell in cells:
        assert cell[:1] not in tuple("=+-@\t\r\n") or re.fullmatch(r"-?[0-9.e+-]+", cell), cell


@pytest.mark.usefixtures("log")
def test_parquet_is_the_same_table(store_url: str) -> None:
    parquet: Any = import_module("pyarrow.parquet")
    rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(exported(store_url, "cta", "parquet"))).to_pylist()
    for row, line in zip(rows, lines_of(store_url), strict=True):
        for name in COLUMNS:
            text = "" if row[name] is None else repr(row[name]) if isinstance(row[name], float) else str(row[name])
            assert line[name] in (text, f"'{text}")


@pytest.mark.usefixtures("log")
def test_whoever_has_the_json_can_check_the_chain(store_url: str) -> None:
    content = json.loads(exported(store_url, "cta", "json"))
    previous = FIRST_HASH
    for number, event in enumerate(content["events"], 1):
        assert event["number"] == number
        body = canonical_json(event["content"])
        previous = chained(previous, number, event["kind"], event["time"], body)
        assert event["hash"] == previous
    assert previous == content["head"]
    registration = Registration.from_json(json.dumps(content["registration"]))
    assert registration.digest == content["digest"] == content["events"][0]["content"]["digest"]


HEADINGS = [
    *("Protocol and registration (item 24)", "Trial design and planned adaptations (items 3a and 3b)"),
    *("Sample size and decision rules (items 7a and 7b)", "Statistical methods (item 12)"),
    *("Randomisation: sequence generation and allocation (items 8 to 10)",),
    *("Interim decisions that were taken (items 14b and 14c)",),
    *("Participant flow and numbers analysed (items 13 and 16)", "Outcomes and estimation (item 17)"),
    "Corrections, exclusions and stopping (items 3c and 14b)",
]


def test_the_audit_report_is_whole_and_loads_nothing(log: VerifiedLog) -> None:
    text = audit_page(log)
    places = [text.index(heading) for heading in HEADINGS]
    assert len(set(places)) == len(HEADINGS)
    assert "<script" not in text
    assert not re.search(r"(src|href)=[\"'](?!#|data:)", text)
    for said in (log.row["digest"], log.row["head"], "0.5 to 0.1"):
        assert said in text
    for said in ("correction of cta.1-1", "missing cta.1-2", "late cta.1-3"):
        assert said in text
    assert "Batch 2 was told as totals" in text
