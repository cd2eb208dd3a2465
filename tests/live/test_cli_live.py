"""The verbs of live experiments, as they are typed."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import banditto as bd
from banditto.cli import main
from banditto.live import export
from tests.cli.test_cli import schema
from tests.commands import both_or_one
from tests.live.administrators import allow_tampering_with_file
from tests.live.bad_commands import BAD

SCHEMAS = {
    **{"init": "init", "ask": "tickets", "tell": "told", "missing": "changed", "correct": "changed", "stop": "stopped"},
    **{"status": "status", "pending": "pending", "verify": "verification", "replicate": "replication"},
    **{"export": "export", "doctor": "doctor", "analyse": "analysis"},
}
REWARDS = {
    "rewards": "ticket,reward,note\ncta.1-1,1,x\ncta.1-2,0,y\n",
    "columns": "ticket,value\ncta.1-1,1\n",
    "empty": "",
    "header": "cta.1-2,1\n",
    "columns2": "ticket,reward,reward\ncta.1-2,1,0\n",
    "commas": "ticket,reward\ncta.1-1,1\ncta.1-2,0,5\n",
    "high": "ticket,reward\ncta.1-1,1\ncta.1-2,7\n",
    "short": "ticket,reward\ncta.1-2\n",
    "blank": "ticket,reward\ncta.1-1,1\n\ncta.1-2,much\n",
    "metrics": "ticket,metric:revenue,reward,metric:clicks\ncta.1-1,,1,\ncta.1-2, 12.5 ,0,\n",
    "metrics2": "ticket,reward,metric:a,metric:a\ncta.1-2,1,1,1\n",
    "metrics3": "ticket,reward,metric:a b\ncta.1-2,1,\n",
    "metrics4": "ticket,reward,metric:a\ncta.1-1,1,\ncta.1-2,1,much\n",
    "metrics5": "ticket,reward,metric:a\ncta.1-2,1,1e200\n",
    "names": "ticket,reward,arm_name\ncta.1-2,1,C\n",
    "metrics6": "ticket,reward,metric:a\ncta.1-2,1\n",
}
TOTALS = {
    "totals": "1,A,10,4\n1,B,10,5\n",
    "twice": "1,A,10,4\n1,A,10,5\n",
    "batches": "1,A,10,4\n2,B,10,5\n",
    "counts": "1,A,10,4\n1,B,few,5\n",
    "arms": "1,0,10,4\n1,1,10,5\n",
}
Run = Callable[..., tuple[int, str, str]]


@cache
def plan() -> str:
    policy = bd.CertifiedElimination(arms=2, horizon=2_000, rho=0.3)
    return policy.protocol(seed=7).to_toml()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The command line in an empty folder that has a plan; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BANDITTO_STORE", raising=False)
    Path("plan.toml").write_text(plan())
    Path("short.toml").write_text(plan().replace("horizon = 2000", "horizon = 20"))
    for name, lines in REWARDS.items():
        Path(f"{name}.csv").write_text(lines)
    Path("plan.csv").write_text("mine\n")
    os.mkfifo("pipe.html")  # as a device: it can be written to, and must not be replaced
    for name, lines in TOTALS.items():
        Path(f"{name}.csv").write_text("batch,arm,count,total\n" + lines)

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        if "--json" in words and out:
            jsonschema.validate(json.loads(out), schema(SCHEMAS[words[0]]))
        return int(stop.value.code or 0), out, err

    return call


BEGUN: dict[str, bytes] = {}


def begun(run: Run) -> None:
    """An experiment in `trial.db` with two tickets, of which one is told; made once and copied for each test."""
    store, path = ("--store", "sqlite:///trial.db"), Path("trial.db")
    if "trial" not in BEGUN:
        assert run("init", "plan.toml", *store, "--name", "cta", "--arm-names", "A,B")[0] == 0
        assert run("ask", "cta", *store, "-n", "2", "--request-id", "r1")[0] == 0
        assert run("tell", "cta", "cta.1-1", "1", *store)[0] == 0
        assert list(Path().glob("trial.db-*")) == []  # all of it is in one file
        BEGUN["trial"] = path.read_bytes()
    path.write_bytes(BEGUN["trial"])


@pytest.mark.parametrize("ways", ["one", pytest.param("both", marks=pytest.mark.long)])
@pytest.mark.parametrize(("verb", "row"), [(verb, row) for verb, rows in BAD.items() for row in range(len(rows))])
def test_bad_input_is_one_line_and_exit_code_2(verb: str, row: int, ways: str, run: Run) -> None:
    words, argument, given = BAD[verb][row]
    begun(run)
    words = [word.replace("STORE", "sqlite:///trial.db") for word in words]
    for flags in both_or_one(ways, row):
        code, out, err = run(verb, *words, *flags)
        assert (code, out, err.count("\n")) == (2, "", 1)
        if flags:
            content = json.loads(err)
            assert content["argument"] == argument
            assert content["given"] == given.replace("STORE", "sqlite:///trial.db")
        else:
            assert err.startswith(f"banditto: error: {argument}: got {given.replace('STORE', 'sqlite:///trial.db')}")
            assert "allowed: " in err
    assert run("verify", "cta", "--store", "sqlite:///trial.db")[0] == 0


def test_a_registration_says_which_leads_rewards_decide(run: Run) -> None:
    store = ("--store", "sqlite:///trial.db")
    code, out, err = run("init", "plan.toml", *store, "--name", "cta", "--arm-names", "A,B", "--json")
    lead = json.loads(out)["decided_from"]
    assert (code, err, json.loads(out)["coin_decides"], json.loads(out)["warnings"]) == (0, "", False, [])
    code, out, err = run("init", "plan.toml", *store, "--name", "again", "--arm-names", "A,B")
    told = f"Rewards decide where the best arm leads by about {lead:g} or more; below, a coin would do as well."
    assert (code, err, out.splitlines()[3:]) == (0, "", [told])


def test_a_registration_that_a_coin_would_decide_as_well_is_warned_of(run: Run) -> None:
    with pytest.warns(bd.ShortHorizonWarning):
        policy = bd.RandomThreshold(arms=2, horizon=500, rho=0.1)
    Path("short.toml").write_text(policy.protocol(seed=1).to_toml())
    code, out, err = run("init", "short.toml", "--store", "sqlite:///trial.db", "--name", "cta")
    assert code == 0
    assert len(out.splitlines()) == 3
    short, coin = err.splitlines()  # each once, though the policy is made several times
    assert short.startswith("banditto: warning: horizon 500 is too short")
    assert coin.startswith("banditto: warning: a coin would do as well as the rewards whatever the arms are")
    content = json.loads(run("init", "short.toml", "--store", "sqlite:///trial.db", "--name", "b", "--json")[1])
    assert (content["coin_decides"], content["decided_from"], len(content["warnings"])) == (True, None, 2)


def test_a_trial_on_the_command_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITTO_STORE", "sqlite:///trial.db")
    code, out, _ = run("init", "plan.toml", "--name", "cta", "--arm-names", "A,B", "--json")
    assert code == 0
    digest = json.loads(out)["digest"]
    first = json.loads(run("ask", "cta", "-n", "5", "--request-id", "r1", "--json")[1])
    assert first["state"] == "issued"
    assert [set(ticket) for ticket in first["tickets"]] == [{"id", "arm", "arm_name", "batch"}] * 5
    again = json.loads(run("ask", "cta", "-n", "5", "--request-id", "r1", "--json")[1])
    assert again["tickets"] == first["tickets"]
    assert run("tell", "cta", "--from", "rewards.csv")[:2] == (0, "2 recorded\n")
    assert run("tell", "cta", "--from", "rewards.csv")[:2] == (0, "2 repeated\n")
    code, out, err = run("tell", "cta", "cta.1-1", "0")
    assert (code, out) == (4, "")
    assert "cta.1-1" in err
    assert json.loads(run("tell", "cta", "cta.1-1", "0", "--json")[2])["code"] == "conflict"
    assert run("correct", "cta", "cta.1-1", "0", "--reason", "typo")[:2] == (0, "recorded\n")
    assert run("missing", "cta", "cta.1-3", "--reason", "lost", "--by", "ann")[:2] == (0, "recorded\n")
    assert run("tell", "cta", "cta.1-3", "1")[:2] == (0, "1 excluded\n")
    assert "cta.1-3-2" in run("ask", "cta")[1]
    waiting = json.loads(run("pending", "cta", "--json")[1])["tickets"]
    assert [line["id"] for line in waiting] == ["cta.1-4", "cta.1-5", "cta.1-3-2"]
    status = json.loads(run("status", "cta", "--json")[1])
    assert (status["state"], status["digest"]) == ("running", digest)
    assert run("verify", "cta", "--expect", f" {status['head'].upper()} ")[0] == 0
    assert run("verify", "cta", "--expect", "0" * 64)[0] == 3
    assert run("init", "plan.toml", "--name", "cta", "--arm-names", "A,B")[0] == 4
    lines = run("export", "cta")[1].splitlines()
    cells = lines[1].split(",")
    assert cells[:4] == ["cta.1-1", "1", "1", "1"]
    assert cells[6:9] == ["told", "1", "0.0"]
    assert run("export", "cta", "--format", "html", "--save", "audit.html")[0] == 0
    assert "<td>missing cta.1-3</td><td>given up</td><td>lost (said by ann)</td>" in Path("audit.html").read_text()
    assert "typo" in Path("audit.html").read_text()
    assert run("stop", "cta", "--reason", "enough")[:2] == (0, "recorded\n")
    assert json.loads(run("stop", "cta", "--reason", "enough", "--json")[1])["answer"] == "repeated"
    assert json.loads(run("missing", "cta", "cta.1-3", "--reason", "lost", "--json")[1])["answer"] == "repeated"
    assert json.loads(run("tell", "cta", "cta.1-1", "0", "--json")[1])["told"]["repeated"] == 1
    receipt = json.loads(run("export", "cta", "--save", "all.csv", "--json")[1])["receipt"]
    assert run("verify", "cta", "--expect", receipt["head"], "--json")[0] == 0
    assert json.loads(run("ask", "cta", "--json")[1])["state"] == "stopped"


def test_metrics_on_the_command_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITTO_STORE", "sqlite:///trial.db")
    begun(run)  # cta.1-1 was told without metrics
    run("ask", "cta", "-n", "2")
    two = ("--metric", "revenue=-12.5", "--metric", "clicks=3")
    assert run("tell", "cta", "cta.1-3", "1", *two)[:2] == (0, "1 recorded\n")
    assert run("tell", "cta", "cta.1-3", "1", *two, "--json")[0] == 0
    assert run("tell", "cta", "cta.1-3", "1")[:2] == (0, "1 repeated\n")
    code, out, err = run("tell", "cta", "cta.1-3", "1", "--metric", "revenue=1", "--metric", "clicks=3")
    assert (code, out) == (4, "")
    conflict = "ticket cta.1-3 has the metric revenue -12.5 and was told 1.0"
    conflict += "; metrics come with the reward and stay as they are"
    assert err == f"banditto: error: {conflict}\n"
    assert run("tell", "cta", "--from", "metrics.csv")[:2] == (0, "1 recorded, 1 repeated\n")
    assert run("tell", "cta", "--from", "metrics.csv")[:2] == (0, "2 repeated\n")
    assert run("verify", "cta")[0] == 0
    lines = run("export", "cta")[1].splitlines()
    assert lines[0].endswith(",head,metric:clicks,metric:revenue")
    assert [line.split(",")[-2:] for line in lines[1:]] == [["", ""], ["", "12.5"], ["3.0", "-12.5"], ["", ""]]
    told = [line for line in lines if line.split(",")[6] in ("status", "told")]
    Path("again.csv").write_text("\n".join(told))  # what was exported can be told again, which changes nothing
    assert run("tell", "cta", "--from", "again.csv")[:2] == (0, "3 repeated\n")


@pytest.mark.parametrize("words", [("status", "cta"), ("ask",), ("init",), ("replicate",), ("status", "cta", "x")])
def test_passwords_in_the_wrong_place_are_not_printed(words: tuple[str, ...], run: Run) -> None:
    for flags in ([], ["--json"]):
        code, out, err = run(*words, f"postgresql://u:{'secret' * 20}@h/d", *flags)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "secret" not in err


def test_what_is_printed_does_not_command_a_terminal(run: Run) -> None:
    begun(run)
    Path("rewards.csv").write_text("ticket,reward\n\x1b[31m,1\n")
    assert "got \\x1b[31m," in run("tell", "cta", "--from", "rewards.csv", "--store", "sqlite:///trial.db")[2]


@pytest.mark.parametrize("verb", sorted(set(SCHEMAS) - {"replicate"}))
def test_help_names_the_variable_of_the_store(verb: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert "BANDITTO_STORE" in out
    assert "[[" not in out


@pytest.mark.parametrize("words", [("export", "cta", "--store", "sqlite:///trial.db", "--format", "json"), ("--help",)])
def test_a_reader_that_goes_early_is_no_bug(words: tuple[str, ...], run: Run) -> None:
    begun(run)
    run("ask", "cta", "--store", "sqlite:///trial.db", "-n", "300")  # more than a buffer holds
    command = [sys.executable, "-m", "banditto", *words]
    nobody, pipe = os.pipe()
    os.close(nobody)
    done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, timeout=600, check=False)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("names", ["=1+1,plain", "'q,plain", "-x,'-x", "plain,@x"])
def test_an_export_can_be_filled_in_and_told(run: Run, names: str) -> None:
    """Its cells are safe for a spreadsheet, which the names of arms are not."""
    store = ("--store", "sqlite:///trial.db")
    assert run("init", "plan.toml", *store, "--name", "cta", f"--arm-names={names}")[0] == 0
    run("ask", "cta", *store, "-n", "4")
    assert run("export", "cta", *store, "--save", "all.csv")[0] == 0
    with Path("all.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    place, arm = header.index("reward"), header.index("arm_name")
    filled = [[*row[:place], "1", *row[place + 1 :]] for row in rows]
    others = {row[arm] for row in rows}
    assert len(others) == 2 - names.startswith("-x")
    with Path("all.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *filled])
    assert run("tell", "cta", "--from", "all.csv", *store)[:2] == (0, "4 recorded\n")
    if len(others) == 2:  # somebody has mixed up two tickets
        wrong = [[*row[:arm], (others - {row[arm]}).pop(), *row[arm + 1 :]] for row in filled]
        with Path("all.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *wrong])
        assert run("tell", "cta", "--from", "all.csv", *store)[0] == 4


def test_negative_rewards(run: Run) -> None:
    store = ("--store", "sqlite:///trial.db")
    assert run("init", "plan.toml", *store, "--name", "loss", "--rewards", "-1,1")[0] == 0
    run("ask", "loss", *store, "-n", "2")
    assert run("tell", "loss", "loss.1-1", "-0.5", *store)[:2] == (0, "1 recorded\n")
    assert run("tell", "loss", *store, "loss.1-2", "-1e-3")[:2] == (0, "1 recorded\n")
    assert run("correct", "loss", "loss.1-1", "-.25", "--reason", "typo", *store)[0] == 0


def test_a_batch_as_totals(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITTO_STORE", "sqlite:///trial.db")
    assert run("init", "plan.toml", "--name", "cta", "--arm-names", "A,B")[0] == 0
    code, out, err = run("tell", "cta", "--totals", "totals.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "the counts that were planned" in err
    plan = json.loads(run("status", "cta", "--json")[1])["plan"]
    Path("first.csv").write_text(
        "arm,batch,total,count\n" + "".join(f"{arm},1,{count / 2},{count}\n" for arm, count in plan.items())
    )
    rewards = sum(plan.values())
    assert run("tell", "cta", "--totals", "first.csv")[:2] == (0, f"batch 1 recorded: {rewards:,} rewards\n")
    assert json.loads(run("tell", "cta", "--totals", "first.csv", "--json")[1])["told"]["repeated"] == 1
    status = json.loads(run("status", "cta", "--json")[1])
    assert (status["batch"], status["spent"], status["issued"]) == (2, sum(plan.values()), 0)
    Path("first.csv").write_text(Path("first.csv").read_text().replace("B,1,", "B,1,0"))  # 11.5 is 011.5
    assert run("tell", "cta", "--totals", "first.csv")[:2] == (0, f"batch 1 repeated: {rewards:,} rewards\n")
    Path("first.csv").write_text("batch,arm,count,total\n" + f"1,A,{plan['A']},0\n1,B,{plan['B']},0\n")
    code, out, err = run("tell", "cta", "--totals", "first.csv")
    assert (code, out) == (4, "")
    assert "batch 1 was decided with other totals" in err
    assert run("verify", "cta")[0] == 0
    lines = run("export", "cta")[1].splitlines()[1:]
    assert [line.split(",")[5:9] for line in lines] == [
        [arm, "total", str(count), repr(count / 2)] for arm, count in plan.items()
    ]
    assert "Batch 1 was told as totals" in run("export", "cta", "--format", "html")[1]


def test_parquet_without_its_library_is_known_before_the_log_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(run)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(export, "read_log", lambda *_: pytest.fail("verified first"))
    code, out, err = run("export", "cta", "--store", "sqlite:///trial.db", "--format", "parquet", "--save", "x.parquet")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'banditto[data]'" in err
    assert not Path("x.parquet").exists()


def test_the_audit_says_in_which_units_means_are(run: Run) -> None:
    store = ("--store", "sqlite:///trial.db")
    for name, ends in (("plain", "0,1"), ("wide", "1,5")):
        run("init", "plan.toml", *store, "--name", name, "--rewards", ends)
        plan = json.loads(run("status", name, *store, "--json")[1])["plan"]
        rows = "".join(f"1,{arm},{count},{count}\n" for arm, count in plan.items())
        Path("first.csv").write_text("batch,arm,count,total\n" + rows)
        assert run("tell", name, *store, "--totals", "first.csv")[0] == 0
    said = "those that the policy sees, of (reward - 1) / (5 - 1)"
    assert said in run("export", "wide", *store, "--format", "html")[1]
    assert "those that the policy sees" not in run("export", "plain", *store, "--format", "html")[1]


def filled(url: str, name: str, seed: int) -> None:
    import random

    rng = random.Random(seed)
    with bd.Experiment.open(url, name) as trial:
        while True:
            answer = trial.ask(500)
            if not len(answer):
                return
            trial.tell_many([(t.id, float(rng.random() < (0.25, 0.744)[t.arm])) for t in answer])


def test_two_runs_are_compared(run: Run) -> None:
    """Seeds of rewards until one run is the same as the first and one is not; there are both among twelve."""
    found: dict[int, tuple[int, str]] = {}
    for seed in range(12):
        url = f"sqlite:///run{seed}.db"
        run("init", "plan.toml", "--store", url, "--name", "cta", "--arm-names", "A,B")
        filled(url, "cta", seed)
        if seed:
            code, out, _ = run("replicate", "sqlite:///run0.db#cta", f"{url}#cta", "--json")
            found[code] = (seed, out)
        if set(found) == {0, 3}:
            break
    assert set(found) == {0, 3}
    assert json.loads(found[0][1])["same"]
    parted: dict[str, Any] = json.loads(found[3][1])["divergence"]
    assert parted["sides"][0]["next_pulls"] != parted["sides"][1]["next_pulls"]
    assert parted["coins"]
    code, out, _ = run("replicate", "sqlite:///run0.db#cta", f"sqlite:///run{found[3][0]}.db#cta")
    assert code == 3
    assert f"they differ after batch {parted['batch']}" in out


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITTO_STORE", "")
    assert run("doctor")[0] == 0
    begun(run)
    code, out, _ = run("doctor", "--store", "sqlite:///trial.db", "--save", "doctor.html", "--json")
    assert code == 0
    checks = {check["name"]: check["outcome"] for check in json.loads(out)["checks"]}
    assert checks == {"golden sequences": "ok", "store": "ok"}
    assert "Golden digests" in Path("doctor.html").read_text()


def test_long_jobs_say_how_far_they_are(run: Run) -> None:
    begun(run)
    url = "sqlite:///trial.db"
    heard: list[tuple[int, int]] = []
    events = bd.verify(url, "cta", progress=lambda done, total: heard.append((done, total))).events
    assert heard == [(events, events)]
    sides: list[tuple[str, int, int]] = []
    bd.replicate(f"{url}#cta", f"{url}#cta", progress=lambda *place: sides.append(place))
    assert sides == [("run 1", events, events), ("run 2", events, events)]
    code, out, _ = run("replicate", f"{url}#cta", f"{url}#cta")
    assert (code, out.partition(" (")[0]) == (3, "nothing to compare: no batch is decided in both")
    assert run("export", "cta", "--store", url, "--save", "a.csv", "--quiet") == (0, "", "")
    assert run("verify", "cta", "--store", url, "--quiet")[0] == 0


def test_exports_replace_files_and_not_links(run: Run) -> None:
    begun(run)
    Path("old.csv").write_text("old")
    Path("link.csv").symlink_to("old.csv")
    assert run("export", "cta", "--store", "sqlite:///trial.db", "--save", "link.csv", "--overwrite")[0] == 0
    assert Path("link.csv").is_symlink()
    assert Path("old.csv").read_text().startswith("ticket,")
    assert not list(Path().glob(".*"))


def test_exports_of_a_log_that_was_changed(run: Run) -> None:
    begun(run)
    with contextlib.closing(sqlite3.connect("trial.db")) as database, database:  # which commits, not closes
        allow_tampering_with_file(database)
        database.execute("UPDATE banditto_event SET body = replace(body, '1.0', '0.0') WHERE kind = 'tell'")
    store = ("--store", "sqlite:///trial.db")
    code, out, err = run("export", "cta", *store)
    assert (code, out) == (3, "")
    assert err.startswith("banditto: error: event 4: its hash is wrong")
    assert run("export", "cta", *store, "--format", "html", "--save", "audit.html")[0] == 3
    assert "The log does NOT verify at event 4" in Path("audit.html").read_text()
    code, out, err = run("replicate", "sqlite:///trial.db#cta", "sqlite:///trial.db#cta")
    assert (code, out) == (3, "")
    assert err.startswith("banditto: error: run 1: event 4: its hash is wrong")
    assert run("doctor", *store)[0] == 3


def test_an_exported_log_verifies_as_the_store_does_and_not_after_a_change(run: Run) -> None:
    store = ("--store", "sqlite:///trial.db")
    begun(run)
    assert run("export", "cta", *store, "--format", "json", "--save", "cta.json")[0] == 0
    code, out, _ = run("verify", "cta", *store)
    assert code == 0
    assert out.endswith("No batch is decided yet, so there was no decision to check.\n")
    assert run("verify", "cta.json") == run("verify", "sqlite:///trial.db#cta") == (0, out, "")
    content = json.loads(run("verify", "cta.json", "--json")[1])
    jsonschema.validate(content, schema("verification"))
    assert content["verified"]
    assert run("verify", "cta.json", "--expect", content["head"])[0] == 0
    code, out, _ = run("verify", "cta.json", "--expect", "0" * 64)
    assert (code, out) == (
        3,
        "cta does not verify: the head of the receipt is not in the log: it was written anew, or is of another run\n",
    )
    text = Path("cta.json").read_text()
    Path("cut.json").write_text(text.replace('"kind": "ask"', '"kind": "tell"', 1))
    code, out, _ = run("verify", "cut.json")
    assert code == 3
    assert "does not verify: event " in out
    assert run("replicate", "cta.json", "sqlite:///trial.db#cta")[0] == 3
    Path("odd.json").write_text(text.replace('"name": "cta"', '"name": 5', 1))
    code, out, err = run("verify", "odd.json")
    assert (code, out) == (2, "")
    assert err.startswith("banditto: error: EXPERIMENT|LOG: got odd.json, allowed: a log that ")
