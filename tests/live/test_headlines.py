"""Who won stands first, wherever an experiment is looked at: status, exports, the audit report, verify."""

from __future__ import annotations

import base64
import csv
import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import banditto as bd
from banditto.core.errors import ContractError, InvalidArgument
from banditto.engine.observations import Observations
from banditto.live import exported_log
from banditto.live.analyse import analysed_if_possible
from banditto.live.experiment import Experiment
from banditto.live.export import read_log
from banditto.live.exported_log import read_exported
from banditto.live.order import ORDER_RULE_1, ORDER_RULE_2
from banditto.live.reading import Reading
from banditto.live.registration import Registration
from banditto.live.verify import verify
from banditto.report.audit import audit_page
from banditto.report.taught import TAUGHT
from tests.commands import banditto
from tests.live.administrators import allow_tampering_with_file
from tests.live.worlds import exported, registration_of, small

NAMES = ("old", "new", "newer")
LEAD = (0.2, 0.5, 0.8)
TIE = (0.5, 0.5, 0.5)


@cache
def policy() -> bd.OneCut:
    """One batch of all arms, and the winner's pulls after it."""
    return bd.OneCut(arms=3, horizon=3000, rho=0.3, gap=0.3)


def registered(**options: Any) -> Registration:
    return registration_of(policy(), **({"arm_names": list(NAMES)} | options))


def pay(trial: Experiment, means: tuple[float, ...], n: int = 10_000) -> None:
    """Tell the next tickets 0 and 1, in the arms' proportions as nearly as whole numbers are."""
    seen = [0] * len(means)
    rewards = []
    for ticket in trial.ask(n):
        seen[ticket.arm] += 1
        mean, count = means[ticket.arm], seen[ticket.arm]
        rewards.append((ticket.id, float(int(mean * count) - int(mean * (count - 1)))))
    trial.tell_many(rewards)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trial.db"


def test_status_names_the_winner_once_there_is_one(store_url: str) -> None:
    with Experiment.create(store_url, "x", registered()) as trial:
        pay(trial, LEAD, 7)
        begun = trial.status()
        assert (begun.winner, begun.decided_by, begun.headline, begun.estimates) == (None, None, None, ())
        content = begun.to_dict()
        assert (content["headline"], content["estimates"]) == (None, [])
        pay(trial, LEAD)  # which decides
        pay(trial, LEAD, 50)
        committed = trial.status()
        assert (committed.state, committed.winner, committed.decided_by) == ("running", "newer", "lead")
        assert committed.headline is not None
        assert re.match(r"newer won: [0-9.]+% of [0-9,]+; [0-9.]+ to [0-9.]+ points better", committed.headline)
        assert [arm.pulls for arm in committed.estimates] == [
            committed.spent // 3,
            committed.spent // 3,
            committed.spent // 3 + 50,
        ]
        with Experiment.open(store_url, "x") as other:  # as another process sees it
            again = other.status()
        assert again == committed
        assert again.to_dict() == committed.to_dict()
        pay(trial, LEAD)
        finished = trial.status()
        assert (finished.state, finished.winner, finished.decided_by) == ("finished", "newer", "lead")
        found = bd.analyse(trial)
    assert finished.headline == found.headline
    assert finished.to_dict()["estimates"] == found.to_dict()["arms"]
    assert verify(store_url, "x").winner == "newer"


def test_status_says_what_a_coin_chose_and_who_leads(url: str) -> None:
    with Experiment.create(url, "tie", registered()) as trial:
        pay(trial, TIE)
        status = trial.status()
        assert (status.winner in NAMES, status.decided_by) == (True, "coin")
        assert status.headline is not None
        assert " was chosen by the shared rule, because no arm led by enough: " in status.headline
    ladder = registration_of(bd.CertifiedElimination(arms=3, horizon=20_000, rho=0.2), arm_names=list(NAMES))
    with Experiment.create(url, "ladder", ladder) as trial:
        pay(trial, (0.5, 0.5, 0.55))
        running = trial.status()
        trial.stop("enough")
        stopped = trial.status()
    for status in (running, stopped):
        assert (status.winner, status.decided_by) == (None, None)
        assert status.headline is not None
        assert re.match("(old|new|newer) leads: ", status.headline)
    assert verify(url, "ladder").winner is None


def test_status_never_fails_for_want_of_an_analysis(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Experiment.create(url, "x", registered()) as trial:
        pay(trial, LEAD)
        seen = trial.observations()
        assert analysed_if_possible(seen) is not None
        alone = tuple(count if arm == 2 else 0 for arm, count in enumerate(seen.pulls))
        assert analysed_if_possible(replace(seen, pulls=alone)) is None

        def broken(*_: object) -> None:
            raise ContractError("a policy of somebody else")

        monkeypatch.setattr("banditto.measure.analysis.analysing.analysis_of", broken)
        status = trial.status()
    assert (status.headline, status.estimates, status.winner, status.decided_by) == (None, (), "newer", "lead")
    assert json.loads(exported(url, "x", "json"))["analysis"] is None
    page = audit_page(read_log(url, "x"))
    assert "Nothing can be estimated from the batches so far." in page
    assert TAUGHT not in page


@pytest.mark.parametrize(("low", "high"), [(-1e-300, 1e300), (0.0, 1e-300), (-1.5e308, 1.5e308), (0.0, 5e-324)])
def test_no_range_is_too_wide_or_too_narrow(store_url: str, low: float, high: float, tmp_path: Path) -> None:
    """Squares of such rewards are no floats, and PostgreSQL refuses to round them to 0."""
    with Experiment.create(store_url, "x", registered(rewards=(low, high))) as trial:
        ends = {arm: (low, low / 2 + high / 2, high)[arm] for arm in range(3)}
        while trial.status().batch == 1:
            trial.tell_many([(ticket.id, ends[ticket.arm]) for ticket in trial.ask(1000)])
        status = trial.status()
        assert status.winner == "newer"
        assert (status.headline is None) == (high == 1.5e308)
        json.dumps(status.to_dict(), allow_nan=False)
        stored = trial.observations()
    log = read_log(store_url, "x")
    assert alike(log.observations(), stored)
    (tmp_path / "x.json").write_bytes(exported(store_url, "x", "json"))
    assert alike(read_exported(tmp_path / "x.json"), stored)
    assert "The log verifies" in audit_page(log)
    if status.headline is None:
        with pytest.raises(InvalidArgument, match="^source: got rewards from -1.5e.308 to 1.5e.308, allowed: a range"):
            bd.analyse(tmp_path / "x.json")


@pytest.mark.parametrize(("order", "once"), [(ORDER_RULE_1, 1), (ORDER_RULE_2, 0)])
def test_who_asks_again_does_not_add_up_again(url: str, monkeypatch: pytest.MonkeyPatch, order: str, once: int) -> None:
    """Rewards of decided batches never change, so one look at them is enough until the next decision.

    Since version 2 of registrations decisions have what must be added up.
    """
    looks = []
    added_up = Reading.told_sums

    def counted(self: Reading, *args: Any) -> Iterator[Any]:
        looks.append(args)
        return added_up(self, *args)

    monkeypatch.setattr(Reading, "told_sums", counted)
    with Experiment.create(url, "x", replace(registered(), order=order)) as trial:
        pay(trial, LEAD, 5)
        trial.status()
        assert not looks  # nothing is decided
        pay(trial, LEAD)
        for number in range(3):
            pay(trial, LEAD, 10)
            assert trial.status().told == {"newer": 10 * (number + 1)}
        assert len(looks) == once
        pay(trial, LEAD)
        trial.status()
        assert len(looks) == 2 * once


def lines(text: str) -> tuple[str, list[str]]:
    first, *rest = text.splitlines()
    return first, rest


def test_the_command_line_says_it_first(url: str) -> None:
    long = ["a" * 90, "b" * 90, "c" * 90]
    for name, names in (("x", list(NAMES)), ("long", long)):
        with Experiment.create(url, name, registered(arm_names=names)) as trial:
            before = banditto("status", name, "--store", url)
            assert before.stdout.split()[0] == name  # the table of ever, and nothing else
            assert "interval" not in before.stdout
            pay(trial, LEAD)
            headline = trial.status().headline
        text = banditto("status", name, "--store", url).stdout
        first, rest = lines(text)
        assert first == headline
        table = rest[rest.index("", 1) + 1 :]  # below the table of where it stands
        assert re.fullmatch(r"arm +estimate +interval +pulls +used", table[0])
        assert len(table) == 2 + len(NAMES)
        assert max(map(len, table)) <= 100
    rows = dict(line.split(maxsplit=1) for line in banditto("status", "x", "--store", url).stdout.splitlines()[4:6])
    assert rows == {"state": "running", "batch": "2"}
    content = json.loads(banditto("status", "x", "--store", url, "--json").stdout)
    assert (content["schema_version"], content["winner"], content["decided_by"]) == (3, "newer", "lead")
    assert [arm["name"] for arm in content["estimates"]] == list(NAMES)
    assert ", winner newer (level: sequence), head " in banditto("verify", "x", "--store", url).stdout


# -- exports ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def decided(store_url: str) -> str:
    """A store with an experiment that lost rewards and had some corrected, between the ends of their range."""
    with Experiment.create(store_url, "x", registered()) as trial:
        first, second, third = trial.ask(3)
        trial.tell(first.id, 0.5)
        trial.correct(first.id, 1.0, "typo")
        trial.missing(second.id, "lost")
        trial.tell(second.id, 1.0)  # too late
        trial.tell(third.id, 0.25)
        while trial.status().batch == 1:
            pay(trial, LEAD)
        pay(trial, LEAD, 40)
        trial.missing(trial.ask(1)[0].id, "lost")
    return store_url


def alike(one: Observations | None, other: Observations | None) -> bool:
    """Equal, with sums of squares to twelve digits: databases add them up in another order."""
    assert one is not None
    assert other is not None
    for mine, theirs in zip(one.batches, other.batches, strict=True):
        assert mine[:2] == theirs[:2]
        assert mine.squares == pytest.approx(theirs.squares, rel=1e-12)
    return replace(one, batches=()) == replace(other, batches=())


def test_store_log_and_export_have_seen_the_same(decided: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Experiment.open(decided, "x") as trial:
        stored = trial.observations()
    log = read_log(decided, "x")
    assert stored.flow is not None
    assert sum(stored.flow.lost) == 2
    assert not stored.binary
    assert alike(log.observations(), stored)
    (tmp_path / "log.json").write_bytes(exported(decided, "x", "json"))
    for chunk in (1 << 20, 100):  # the head of the file may come in pieces
        monkeypatch.setattr(exported_log, "_CHUNK", chunk)
        assert alike(read_exported(tmp_path / "log.json"), stored)


def test_an_exported_log_has_the_analysis(decided: str, tmp_path: Path) -> None:
    content = json.loads(exported(decided, "x", "json"))
    assert list(content)[-2:] == ["analysis", "events"]
    path = tmp_path / "log.json"
    path.write_bytes(exported(decided, "x", "json"))
    found = bd.analyse(path).to_dict()
    assert content["analysis"] == found == json.loads(json.dumps(bd.analyse(f"{decided}#x").to_dict()))
    assert [check["name"] for check in found["checks"]] == ["assignment", "lost rewards"]


def test_nobody_is_misled_by_an_analysis_in_a_file(decided: str, tmp_path: Path) -> None:
    """Nor does an older file without one, or one that has it elsewhere, read any worse."""
    content = json.loads(exported(decided, "x", "json"))
    right = bd.analyse(f"{decided}#x").to_dict()
    wrong = content["analysis"] | {"winner": "old", "headline": "old won", "events": [], '\n  "events": [': 1}
    older = {key: value for key, value in content.items() if key != "analysis"} | {"schema_version": 1}
    others = {
        "wrong": content | {"analysis": wrong},
        "text": content | {"analysis": 'x\n  "events": ['},
        "null": content | {"analysis": None},
        "older": older,
        "last": older | {"analysis": wrong},
    }
    for name, other in others.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(other, indent=2) + "\n")
        assert bd.analyse(path).to_dict()["headline"] == right["headline"], name
        printed = banditto("analyse", str(path), "--json")
        assert json.loads(printed.stdout)["winner"] == "newer"


def test_an_export_says_who_won_on_stderr(decided: str, url: str, tmp_path: Path) -> None:
    store, headline = ("--store", decided), bd.analyse(f"{decided}#x").headline
    for kind in ("csv", "parquet", "json", "html"):
        words = ("export", "x", *store, "--format", kind, "--save", f"x.{kind}")
        assert banditto(*words, cwd=tmp_path).stderr == f"banditto: wrote x.{kind}\nbanditto: {headline}\n"
        assert banditto(*words, "--quiet", cwd=tmp_path).stderr == ""
    with (tmp_path / "x.csv").open() as file:
        assert {row["status"] for row in csv.DictReader(file)} == {"told", "missing", "late"}  # tickets alone
    assert banditto("export", "x", *store).stderr == ""
    Experiment.create(url, "begun", registered()).close()
    done = banditto("export", "begun", "--store", url, "--save", "begun.csv", cwd=tmp_path)
    assert done.stderr == "banditto: wrote begun.csv\n"


# -- the audit report -------------------------------------------------------------------------------------------------


def test_the_audit_report_begins_with_what_the_experiment_taught(decided: str) -> None:
    page, found = audit_page(read_log(decided, "x")), bd.analyse(f"{decided}#x")
    verdict, section = page.index("The log verifies"), page.index(f"<h2>{TAUGHT}</h2>")
    following = page.index("<h2>", section + 1)
    assert verdict < section == page.index("<h2>")
    body = page[section:following]
    assert body.startswith(f'<h2>{TAUGHT}</h2>\n<p class="headline">{found.headline}</p>')
    for row in (*found.arm_rows(), *found.difference_rows()):
        assert "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" in body
    assert found.statement.replace("'", "&#x27;") in body
    assert "Assignment: ok; slots were handed out as planned" in body
    assert "Lost rewards: ok; no arm loses more than chance explains" in body
    pictures = [base64.b64decode(text).decode() for text in re.findall('data:image/svg.xml;base64,([^"]+)', body)]
    assert len(set(pictures)) == 4  # light and dark, wide and narrow
    assert all("<svg" in picture and "newer won, by its lead" in picture for picture in pictures)
    assert not re.search(r"(src|srcset|href)=[\"'](?!#|data:)", page)
    outcomes = page[page.index("Outcomes and estimation (item 17)") :]
    assert f"Estimates with intervals stand at the top ({TAUGHT})." in outcomes[:400]
    assert "<table" not in outcomes[: outcomes.index("<h2>")]


def test_an_alarm_is_marked(url: str) -> None:
    with Experiment.create(url, "x", registered()) as trial:
        tickets = trial.ask(10_000)
        for ticket in tickets:
            if ticket.arm == 1:
                trial.missing(ticket.id, "lost")
        trial.tell_many([(ticket.id, 1.0) for ticket in tickets if ticket.arm != 1])
        pay(trial, LEAD)
    page = audit_page(read_log(url, "x"))
    assert '<p class="note">Lost rewards: ALARM; some arms lose more than others' in page


def test_who_won_is_said_once(url: str) -> None:
    early = registration_of(bd.EarlyCut(arms=2, horizon=2000, rho=0.3, gap=0.3), arm_names=["old", "new"])
    with Experiment.create(url, "x", early) as trial:
        while trial.status().state == "running":
            pay(trial, (0.1, 0.9))
    page = audit_page(read_log(url, "x"))
    text = re.sub(r'"data:[^"]*"|alt="[^"]*"', "", page)
    assert len(re.findall("new won|winner is|The winner", text)) == 1
    assert "At the last look the best mean led by " in text


def test_before_a_decision_there_is_no_such_section(url: str) -> None:
    with Experiment.create(url, "x", small()) as trial:
        trial.ask(1)
    log = read_log(url, "x")
    page = audit_page(log)
    assert log.analysis() is None
    assert TAUGHT not in page
    assert "No batch is complete yet." in page
    assert json.loads(exported(url, "x", "json"))["analysis"] is None


def test_of_a_bad_log_the_events_before_are_analysed(url: str, tmp_path: Path) -> None:
    with Experiment.create(url, "x", registered()) as trial:
        pay(trial, LEAD)
        pay(trial, LEAD, 40)
        before = trial.observations()
        pay(trial, LEAD, 40)
    with sqlite3.connect(tmp_path / "trial.db") as database:
        (number,) = database.execute("SELECT max(number) FROM banditto_event WHERE kind = 'tell'").fetchone()
        allow_tampering_with_file(database)
        database.execute("UPDATE banditto_event SET time = 'then' WHERE number = ?", (number,))
    log = read_log(url, "x")
    assert log.verification.event == number
    seen = log.observations()
    assert seen is not None
    assert (seen.winner, seen.pulls) == (before.winner, before.pulls)
    page = audit_page(log)
    assert page.index("The log does NOT verify") < page.index(TAUGHT)
    done = banditto("export", "x", "--store", url, "--format", "html", "--save", "x.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "banditto: wrote x.html\n")


def test_where_no_event_verifies_nothing_is_analysed(url: str, tmp_path: Path) -> None:
    Experiment.create(url, "x", registered()).close()
    with sqlite3.connect(tmp_path / "trial.db") as database:
        allow_tampering_with_file(database)
        database.execute("UPDATE banditto_event SET time = 'then'")
    log = read_log(url, "x")
    assert (log.verification.event, log.observations(), log.analysis()) == (1, None, None)
    assert "The log does NOT verify at event 1" in audit_page(log)
