"""The command line as a user meets it: exit codes, streams, files; real processes where they matter."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import banditto as bd
from banditto import policies
from banditto.policies import baselines
from tests.commands import Finished, banditto, both_or_one, interrupted
from tests.live.bad_commands import BAD as LIVE_BAD

pytestmark = pytest.mark.slow

CERTIFY = ["certify", "random-threshold", "--means", "0.9,0.8,0.7", "--horizon", "1e8", "--rho", "0.1", "--seed", "11"]


def in_a_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The program as a shell starts it, for what a call of its entry point cannot show."""
    return subprocess.run(
        [sys.executable, "-m", "banditto", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        **options,
    )


def schema(name: str) -> Any:
    return json.loads((files("banditto") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


def test_certify_prints_one_object_that_is_the_library_certificate() -> None:
    done = in_a_process(*CERTIFY, "--pairs", "2000", "--jobs", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("certificate"))
    policy = bd.RandomThreshold(arms=3, horizon=10**8, rho=0.1)
    own = bd.certify(policy, bd.Bernoulli([0.9, 0.8, 0.7]), pairs=2000, seed=11).to_dict()
    assert {key: printed[key] for key in own} == own
    assert printed["command"][-1] == "--json"
    assert printed["verdict"] == "PASS"
    assert printed["bound"] <= printed["rho"]


def test_certify_prints_a_table_for_people() -> None:
    done = banditto(*CERTIFY, "--pairs", "1e3")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\nverdict         PASS\n" in done.stdout
    assert "\nmeasured on     3 arms, 0/1 rewards with means 0.9, 0.8, 0.7\n" in done.stdout
    assert "\nseed            " in done.stdout
    assert "\x1b" not in done.stdout


def test_a_baseline_fails_with_exit_code_3() -> None:
    done = banditto(
        "certify", "ucb1", "--means", "0.9,0.8", "--horizon", "1e4", "--rho", "0.1", "--pairs", "60", "--json"
    )
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("certificate"))
    assert done.returncode == 3
    assert printed["verdict"] == "FAIL"
    assert printed["bound"] is None
    assert printed["constants"] is None


def test_what_is_proved_and_not_contradicted_is_consistent_and_exit_code_0() -> None:
    done = banditto(*CERTIFY, "--pairs", "5")
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(banditto(*CERTIFY, "--pairs", "5", "--json").stdout)
    jsonschema.validate(printed, schema("certificate"))
    needed = printed["pairs_to_settle"]
    assert needed >= 36  # none of so many may differ
    assert printed["verdict"] == "CONSISTENT"
    assert f"CONSISTENT with the proof (by measurement alone about {needed} pairs would settle it)" in done.stdout


def test_inconclusive_is_exit_code_3_and_says_what_would_settle_it() -> None:
    unproved = [word.replace("random-threshold", "random-threshold:paper") for word in CERTIFY]
    done = in_a_process(*unproved, "--pairs", "5")
    assert done.returncode == 3
    needed = json.loads(banditto(*unproved, "--pairs", "5", "--json").stdout)["pairs_to_settle"]
    assert needed >= 36  # none of so many may differ
    assert f"INCONCLUSIVE (about {needed} pairs would settle it)" in done.stdout


COIN = ("--means", "0.5,0.52", "--horizon", "1e4", "--rho", "0.1", "--pairs", "500")
WOULD_DO = "a coin would do as well as the rewards: regret is "


def test_a_certificate_warns_where_a_coin_would_do_as_well() -> None:
    done = banditto("certify", "certified-elimination", *COIN)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"banditto: warning: {WOULD_DO}")
    assert line.endswith("% of random play; a longer horizon, a larger rho or a named gap would help")
    assert "% of the regret of pulling every arm equally often; a coin would do as well" in done.stdout
    assert banditto("certify", "certified-elimination", *COIN, "--quiet").stderr == ""
    printed = json.loads(banditto("certify", "certified-elimination", *COIN, "--json").stdout)
    assert printed["coin_decides"]
    assert printed["share_of_random_play"] == pytest.approx(printed["regret"]["mean"] / 100)
    assert [f"banditto: warning: {text}" for text in printed["warnings"]] == [line]


@pytest.mark.long
def test_a_comparison_warns_by_row_and_its_report_shows_it(tmp_path: Path) -> None:
    words = ("compare", *COIN, "--policies", "certified-elimination,ucb1", "--rounds", "1e6")
    done = banditto(*words, "--out", str(tmp_path))
    assert f"banditto: warning: certified-elimination: {WOULD_DO}" in done.stderr
    assert f"ucb1: {WOULD_DO}" not in done.stderr
    printed = json.loads((tmp_path / "results.json").read_text())
    jsonschema.validate(printed, schema("comparison"))
    assert [row["coin_decides"] for row in printed["policies"]] == [True, False]
    assert [text.partition(":")[0] for text in printed["warnings"]] == ["certified-elimination"]
    report = (tmp_path / "report.html").read_text()
    assert f"certified-elimination: {WOULD_DO}" in report
    assert "<th>of random play</th>" in report


def test_gaussian_rewards_and_paper_constants() -> None:
    done = banditto(
        *("certify", "random-threshold:paper", "--environment", "gaussian:0.25", "--means", "-0.5,0.25", "--json"),
        *("--horizon", "1_000_000", "--rho", "0.3", "--pairs", "200"),
    )
    printed = json.loads(done.stdout)
    assert printed["environment"] == {"name": "gaussian", "means": [-0.5, 0.25], "sigma": 0.25}
    assert printed["constants"] == "paper"
    assert printed["bound"] is None


def test_a_protocol_file_is_a_policy(tmp_path: Path) -> None:
    first = banditto(*CERTIFY, "--pairs", "1000", "--out", str(tmp_path / "new" / "folder"), "--json")
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["blocks.jsonl", "certificate.json", "protocol.toml"]
    assert json.loads((folder / "certificate.json").read_text()) == json.loads(first.stdout)
    again = banditto("certify", str(folder / "protocol.toml"), "--means", "0.9,0.8,0.7", "--pairs", "1000", "--json")
    assert again.returncode == 0
    for key in ("digest", "mismatches", "regret", "seed", "horizon"):
        assert json.loads(again.stdout)[key] == json.loads(first.stdout)[key]
    other = banditto("certify", str(folder / "protocol.toml"), "--means", "0.9,0.8,0.7", "--seed", "3")
    assert (other.returncode, other.stdout) == (2, "")
    assert "--seed: got 3, allowed: 11" in other.stderr


def test_policies() -> None:
    done = banditto("policies", "--json")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("policies"))
    names = [row["name"] for row in printed["policies"]]
    assert names == [*policies.REGISTRY, *baselines.REGISTRY]
    assert {"random-threshold", "mean-rounding", "explore-then-commit", "ucb1", "batched-elimination"} <= set(names)
    assert "random-threshold" in banditto("policies").stdout


COMPARE = [
    *("compare", "--means", "0.5,0.9,0.8", "--horizon", "1e7", "--rho", "0.2", "--rounds", "2e5", "--pairs", "100"),
    *("--policies", "random-threshold,random-threshold:paper,explore-then-commit,ucb1", "--gap", "0.1", "--seed", "4"),
]


def test_compare_prints_one_object_with_the_certificates_of_all() -> None:
    done = banditto(*COMPARE, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("comparison"))
    assert [row["label"] for row in printed["policies"]] == COMPARE[COMPARE.index("--policies") + 1].split(",")
    assert printed["environment"] == {"name": "bernoulli", "means": [0.5, 0.9, 0.8]}
    for row in printed["policies"]:
        name = row["policy"] if row["constants"] in (None, "certified") else f"{row['policy']}:{row['constants']}"
        gap = ["--gap", "0.1"] if row["policy"] == "explore-then-commit" else []
        alone = banditto(
            *("certify", name, "--means", "0.5,0.9,0.8", "--rho", "0.2", "--seed", "4", "--json", *gap),
            *("--horizon", str(row["horizon"]), "--pairs", str(row["pairs"])),
        )
        own = json.loads(alone.stdout)
        assert {key: value for key, value in own.items() if key in row} == {key: row[key] for key in own if key in row}
    ucb1 = printed["policies"][3]
    assert (ucb1["bound"], ucb1["guarantee"], ucb1["constants"]) == (None, None, None)
    assert (ucb1["horizon"], ucb1["executions"]) == (1000, 200)


def test_compare_prints_a_table_for_people() -> None:
    done = banditto(*COMPARE, "--jobs", "2")
    assert (done.returncode, done.stderr) == (0, "")
    found, about, table, explained, *more = done.stdout.split("\n\n")
    assert found.startswith("Two runs with the same seed ")
    assert "0/1 rewards with means " in about
    lines = table.splitlines()
    assert (
        "  ".join(lines[0].split())
        == "policy  horizon  pairs  agree  interval  proved  regret  of  random  play  verdict"
    )
    assert lines[5].startswith("ucb1")
    assert lines[5].endswith("FAIL")
    assert explained.startswith("agree: the share of pairs")
    assert "can do with less regret here than" in " ".join(more).replace("\n", " ")
    assert done.stdout == banditto(*COMPARE).stdout  # whatever the number of workers


def test_a_study_file_is_a_comparison_and_flags_win(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        'title = "Buttons"\nmeans = [0.5, 0.9]\nhorizon = 1e6\nrho = 0.2\npairs = 50\nrounds = 20_000\nseed = 3\n'
        'policies = ["random-threshold", {policy = "explore-then-commit", gap = 0.2, label = "ETC"}, "ucb1"]\n'
    )
    printed = json.loads(banditto("compare", str(study), "--json").stdout)
    assert printed["title"] == "Buttons"
    assert [row["label"] for row in printed["policies"]] == ["random-threshold", "ETC", "ucb1"]
    assert [row["pairs"] for row in printed["policies"]] == [50, 50, 50]
    assert {row["seed"] for row in printed["policies"]} == {3}
    fewer = json.loads(banditto("compare", str(study), "--pairs", "20", "--policies", "moss", "--json").stdout)
    assert [(row["label"], row["pairs"]) for row in fewer["policies"]] == [("moss", 20)]


def test_flags_make_what_they_replace_moot(tmp_path: Path) -> None:
    arm = "[[arms]]\nvalues = [0, 1]\nprobabilities = [{}, {}]\n"
    (tmp_path / "arms.toml").write_text(arm.format(0.1, 0.9) + arm.format(0.7, 0.3))
    study = tmp_path / "study.toml"
    study.write_text('means = [0.5, 0.9]\nhorizon = 1e5\nrho = 0.2\ngap = 0.1\npolicies = ["explore-then-commit"]\n')
    done = banditto("compare", str(study), "--policies", "moss", "--pairs", "3")
    assert (done.returncode, done.stderr) == (0, "")
    done = banditto(
        "compare", str(study), "--environment", f"discrete:{tmp_path / 'arms.toml'}", "--pairs", "3", "--json"
    )
    assert json.loads(done.stdout)["environment"]["name"] == "discrete"
    both = banditto("compare", str(study), "--policies", "moss", "--gap", "0.1")
    assert "--gap: got 0.1, allowed: none" in both.stderr


@pytest.mark.parametrize("name", ["deep.toml", "deep.json"])
def test_deeply_nested_files_are_one_line_errors(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(("" if name.endswith("json") else "arms = ") + "[" * 20_000)
    done = banditto(*command({"environment": f"discrete:{tmp_path / name}", "means": None}, "ucb1"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_letters_that_a_terminal_cannot_show_are_no_errors() -> None:
    done = in_a_process(*COMPARE[:-6], "--policies", "moss", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\xb1" in done.stdout


def test_a_bug_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from banditto.cli import main
    from banditto.measure import certify as certification

    def broken(*arguments: Any, **options: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(certification, "certify", broken)
    with pytest.raises(SystemExit) as stop:
        main(command({}))
    assert stop.value.code == 1
    assert capfd.readouterr().err.count("\n") == 1


def test_certify_takes_explore_then_commit_with_its_gap(tmp_path: Path) -> None:
    options = command({"gap": "0.1", "out": str(tmp_path), "pairs": "100"}, "explore-then-commit")
    kept = banditto(*options, "--json")
    assert json.loads(kept.stdout)["bound"] <= 0.1
    path = str(tmp_path / "protocol.toml")
    again = banditto("certify", path, "--means", "0.9,0.8", "--pairs", "100", "--gap", "0.1", "--json")
    assert json.loads(again.stdout)["digest"] == json.loads(kept.stdout)["digest"]
    other = banditto("certify", path, "--means", "0.9,0.8", "--gap", "0.2")
    assert "--gap: got 0.2, allowed: 0.1, the protocol's own" in other.stderr
    broken = banditto("certify", path, "--means", "0.9,0.85", "--pairs", "200")
    assert "none: promise broken" in broken.stdout


@pytest.mark.parametrize("environment", ["bernoulli", "gaussian:0.5", "beta:2", "discrete:FILE"])
def test_every_environment_on_the_command_line(environment: str, tmp_path: Path) -> None:
    arm = "[[arms]]\nvalues = [0, 0.5, 1]\nprobabilities = [{}, 0.2, {}]\n"
    (tmp_path / "arms.toml").write_text(arm.format(0.1, 0.7) + arm.format(0.7, 0.1))
    from_file = environment == "discrete:FILE"
    spec = f"discrete:{tmp_path / 'arms.toml'}" if from_file else environment
    change: dict[str, str | None] = {"environment": spec, "horizon": "1e4", "rho": "0.5", "pairs": "60"}
    for policy in ("random-threshold", "ucb1"):
        done = banditto(*command(change | ({"means": None} if from_file else {}), policy), "--json")
        printed = json.loads(done.stdout)
        jsonschema.validate(printed, schema("certificate"))
        assert printed["environment"]["name"] == environment.partition(":")[0]
        assert done.returncode == (0 if policy == "random-threshold" else 3)


def test_version_is_light() -> None:
    script = (
        "import sys, banditto.cli\n"
        "try:\n    banditto.cli.main(['--version'])\n"
        "except SystemExit as stop:\n    assert stop.code == 0\n"
        "heavy = {'numba', 'scipy.stats', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == f"banditto {bd.__version__}\n"


def test_help_names_the_verbs_and_exit_codes() -> None:
    done = banditto("--help")
    assert done.returncode == 0
    for word in ("compare", "certify", "plan", "attack", "calibrate", "design", "replay", "policies", "Exit codes"):
        assert word in done.stdout


def test_design_prints_one_object_that_is_the_library_design(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    done = banditto("design", "arms.csv", "--accuracy", "1e-4", "--pulls", "1e6", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("design"))
    own = bd.g_optimal_design([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]], accuracy=1e-4)
    assert {key: printed[key] for key in own.to_dict()} == own.to_dict()
    assert printed["pulls"] == list(own.plan(10**6).pulls)
    assert printed["plan_digest"] == own.plan(10**6).digest
    assert {"arms", "weights", "support", "g", "g_over_d", "target_met", "iterations", "digest"} <= set(printed)


@pytest.mark.parametrize("arguments", [["ball"], ["box"], ["simplex"], ["box.json"]], ids=str)
def test_design_of_an_action_set(arguments: list[str], tmp_path: Path) -> None:
    write_design_files(tmp_path)
    name = arguments[0]
    dimension = [] if name.endswith("json") else ["--dimension", "3"]
    done = banditto("design", "--action-set", name, *dimension, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("design"))
    assert printed["arms"] is None
    assert printed["g_over_d"] <= 1.01


def test_design_prints_a_table_and_draws_a_picture(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    done = banditto("design", "long.csv", "--normalise", "--pulls", "100", "--figure", "a.svg", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "digest" in done.stdout
    assert done.stdout.split("\n\n")[1].split()[:4] == ["arm", "weight", "pulls", "features"]
    assert b"core set, by weight" in (tmp_path / "a.svg").read_bytes()
    drawn = banditto("design", "--action-set", "box.json", "--figure", "b.png", cwd=tmp_path)
    assert drawn.returncode == 0
    assert (tmp_path / "b.png").stat().st_size > 5000


def test_a_design_that_misses_its_target_is_exit_code_3(tmp_path: Path) -> None:
    """A cube of 20 dimensions has too many corners to look at, and the certified bound is not that tight."""
    done = banditto("design", "--action-set", "box", "--dimension", "20", "--accuracy", "0.05", "--json")
    printed = json.loads(done.stdout)
    assert (done.returncode, printed["target_met"]) == (3, False)
    assert printed["g_over_d"] > 1.05


GOOD = {"means": "0.9,0.8", "horizon": "1e6", "rho": "0.1", "pairs": "10"}

PLAN = {"arms": "3", "gap": "0.1", "rho": "0.1"}
ATTACK = {"arms": "3", "horizon": "1e6", "rho": "0.1", "pairs-budget": "1000"}
SPREAD: dict[str, str | None] = {"": "certified-linear", "arms": "5", "dimension": "2"}
LINEAR: dict[str, str | None] = {"means": None, "theta": "0.5,0.3", "actions": "arms.csv"}
LOGGED: dict[str, str | None] = {"means": None, "log": "rewards.csv"}
REPLAY = {"log": "rewards.csv", "rho": "0.3", "horizon": "1000"}

# of every verb that takes --cluster; what answers, but wrongly, is in test_cluster.py
CLUSTER: dict[str, tuple[dict[str, str | None], str, str]] = {
    "cluster of no kind": ({"cluster": "scheduler:8786"}, "--cluster", "scheduler:8786"),
    "cluster without a port": ({"cluster": "tcp://scheduler"}, "--cluster", "tcp://scheduler"),
    "cluster with an odd port": ({"cluster": "tcp://scheduler:x"}, "--cluster", "tcp://scheduler:x"),
    "cluster with a large port": ({"cluster": "tcp://scheduler:87860"}, "--cluster", "tcp://scheduler:87860"),
    "cluster of the web": ({"cluster": "http://scheduler:8787"}, "--cluster", "http://scheduler:8787"),
    "cluster with a path": ({"cluster": "tcp://scheduler:8786/a"}, "--cluster", "tcp://scheduler:8786/a"),
    "empty cluster": ({"cluster": ""}, "--cluster", "''"),
    "jobs on a cluster": ({"cluster": "tcp://scheduler:8786", "jobs": "2"}, "--jobs", "2"),
}


# of every verb that takes --gap, of arms; `policy` is how the verb names its policy
def bad_options(policy: str = "") -> dict[str, tuple[dict[str, str | None], str, str]]:
    one_cut: dict[str, str | None] = {policy: "one-cut", "gap": "0.1"}
    return {
        "rate zero": ({"rate-at-most": "0"}, "--rate-at-most", "0"),
        "rate one": ({"rate-at-most": "1"}, "--rate-at-most", "1"),
        "rate text": ({"rate-at-most": "low"}, "--rate-at-most", "low"),
        "rate for nobody": ({policy: "ucb1", "rate-at-most": "0.5"}, "--rate-at-most", "0.5"),
        "power for nobody": ({"power": "0.9"}, "--power", "0.9"),
        "power of a coin": (one_cut | {"power": "0.5"}, "--power", "0.5"),
        "power one": (one_cut | {"power": "1"}, "--power", "1"),
        "power text": (one_cut | {"power": "high"}, "--power", "high"),
        "control for nobody": ({"control": "0"}, "--control", "0"),
        "control of another experiment": (one_cut | {"control": "3"}, "--control", "3"),
        "control negative": (one_cut | {"control": "-1"}, "--control", "-1"),
        "control text": (one_cut | {"control": "A"}, "--control", "A"),
        "no gap to cut at": (one_cut | {"gap": None}, "--gap", "nothing"),
        "gap wider than rewards": (one_cut | {"gap": "1.5"}, "--gap", "1.5"),
        "gap wider than the rate": (one_cut | {"rate-at-most": "0.05"}, "--gap", "0.1"),
    }


GAUSSIAN_RATE: dict[str, tuple[dict[str, str | None], str, str]] = {
    "rate of Gaussian rewards": ({"environment": "gaussian:1", "rate-at-most": "0.1"}, "--rate-at-most", "0.1"),
}
HIGH_RATES: dict[str, tuple[dict[str, str | None], str, str]] = {
    **GAUSSIAN_RATE,
    "mean above the rate": ({"rate-at-most": "0.85"}, "--means", "0.9"),
    "logged mean above the rate": (LOGGED | {"rate-at-most": "0.5"}, "--log", "0.6666666666666666"),
    "linear mean above the rate": (LINEAR | {"rate-at-most": "0.5"}, "--theta", "0.75"),
}

# of every verb that takes --log
LOGS: dict[str, tuple[dict[str, str | None], str, str]] = {
    "log not there": (LOGGED | {"log": "nowhere.csv"}, "--log", "nowhere.csv"),
    "empty name of a log": (LOGGED | {"log": ""}, "--log", "''"),
    "reward out of range": (LOGGED | {"log": "stars.csv"}, "--log", "3 in row 2 of stars.csv"),
    "reward missing": (LOGGED | {"log": "gaps.csv"}, "--log", "nothing in row 1 of gaps.csv"),
    "log of one arm": (LOGGED | {"log": "alone.csv"}, "--log", "only a"),
    "no such arms": (LOGGED | {"arm-column": "button"}, "--arm-column", "button"),
    "no such rewards": (LOGGED | {"reward-column": "clicks"}, "--reward-column", "clicks"),
    "range upside down": (LOGGED | {"reward-range": "5,0"}, "--reward-range", "5,0"),
    "range of one number": (LOGGED | {"reward-range": "5"}, "--reward-range", "5"),
    "range text": (LOGGED | {"reward-range": "0,all"}, "--reward-range", "all"),
}

# of every verb that plays pairs: what is changed, which argument the message names, what it says was given
SHARED: dict[str, tuple[dict[str, str | None], str, str]] = {
    "rho zero": ({"rho": "0"}, "--rho", "0"),
    "rho one": ({"rho": "1"}, "--rho", "1"),
    "rho above one": ({"rho": "1.5"}, "--rho", "1.5"),
    "rho negative": ({"rho": "-0.1"}, "--rho", "-0.1"),
    "rho nan": ({"rho": "nan"}, "--rho", "nan"),
    "rho text": ({"rho": "small"}, "--rho", "small"),
    "no rho": ({"rho": None}, "--rho", "nothing"),
    "horizon below arms": ({"means": ",".join(["0.5"] * 12), "horizon": "11"}, "--horizon", "11"),
    "horizon not an integer": ({"horizon": "10.5"}, "--horizon", "10.5"),
    "horizon text": ({"horizon": "long"}, "--horizon", "long"),
    "horizon huge": ({"horizon": "1e40"}, "--horizon", "1e40"),
    "horizon hostile": ({"horizon": "1e999999999"}, "--horizon", "1e999999999"),
    "horizon negative": ({"horizon": "-5"}, "--horizon", "-5"),
    "no horizon": ({"horizon": None}, "--horizon", "nothing"),
    "mean above one": ({"means": "0.9,1.1"}, "--means", "1.1"),
    "mean below zero": ({"means": "0.9,-0.1"}, "--means", "-0.1"),
    "mean nan": ({"means": "0.9,nan"}, "--means", "nan"),
    "mean text": ({"means": "0.9,high"}, "--means", "high"),
    "one arm": ({"means": "0.9"}, "--means", "1 of them"),
    "empty means": ({"means": ""}, "--means", "''"),
    "zero pairs": ({"pairs": "0"}, "--pairs", "0"),
    "fractional pairs": ({"pairs": "1.5"}, "--pairs", "1.5"),
    "unknown environment": ({"environment": "gausian"}, "--environment", "gausian"),
    "bad sigma": ({"environment": "gaussian:0"}, "sigma", "0"),
    "bad concentration": ({"environment": "beta:-2"}, "concentration", "-2"),
    "bernoulli with a parameter": ({"environment": "bernoulli:2"}, "--environment", "bernoulli:2"),
    "discrete without a file": ({"environment": "discrete", "means": None}, "--environment", "discrete"),
    "discrete file not there": (
        {"environment": "discrete:nowhere.toml", "means": None},
        "--environment",
        "discrete:nowhere.toml",
    ),
    "discrete with means": ({"environment": "discrete:nowhere.toml"}, "--means", "[0.9, 0.8]"),
    "no means": ({"means": None}, "--means", "nothing"),
    "gap for nobody": ({"gap": "0.1"}, "--gap", "0.1"),
    "gap text": ({"gap": "wide"}, "--gap", "wide"),
    "bad jobs": ({"jobs": "0"}, "--jobs", "0"),
    **CLUSTER,
    "bad seed": ({"seed": "-1"}, "--seed", "-1"),
    "bad noise seed": ({"noise-seed": "x"}, "--noise-seed", "x"),
    "bad confidence": ({"confidence": "1"}, "--confidence", "1"),
    "empty output": ({"out": ""}, "--out", "''"),
    "unwritable output": ({"out": "/dev/null/folder"}, "--out", "/dev/null/folder"),
    "output is a file": ({"out": __file__}, "--out", __file__),
    "theta of the wrong length": (LINEAR | {"theta": "0.5"}, "--theta", "1 numbers"),
    "theta too long": (LINEAR | {"theta": "0.9,0.9"}, "--theta", "length 1.27279221"),
    "theta text": (LINEAR | {"theta": "0.9,up"}, "--theta", "up"),
    "no theta": (LINEAR | {"theta": None}, "--theta", "nothing"),
    "no actions": (LINEAR | {"actions": None}, "--actions", "nothing"),
    "actions not there": (LINEAR | {"actions": "nowhere.csv"}, "--actions", "nowhere.csv"),
    "action too long": (LINEAR | {"actions": "long.csv"}, "--actions", "length 2.23606798 of action 1"),
    "actions and a set": (LINEAR | {"action-set": "ball"}, "--actions", "arms.csv and --action-set ball"),
    "actions with a dimension": (LINEAR | {"dimension": "2"}, "--dimension", "2"),
    "unknown set": (LINEAR | {"actions": None, "action-set": "cube"}, "--action-set", "cube"),
    "set without a dimension": (LINEAR | {"actions": None, "action-set": "ball"}, "--dimension", "nothing"),
    "a dimension for means": ({"dimension": "2"}, "--dimension", "2"),
    "empty name of a file": (LINEAR | {"actions": ""}, "--actions", "''"),
    "empty theta": (LINEAR | {"theta": ""}, "--theta", "''"),
    "theta and means": (LINEAR | {"means": "0.9,0.8"}, "--means", "0.9,0.8"),
    "linear rewards of no kind": (LINEAR | {"environment": "beta:2"}, "--environment", "beta:2"),
    "linear environment with means": ({"environment": "linear-bernoulli"}, "--environment", "linear-bernoulli"),
    **LOGS,
    "log and means": (LOGGED | {"means": "0.9,0.8"}, "--means", "0.9,0.8"),
    "log and environment": (LOGGED | {"environment": "bernoulli"}, "--environment", "bernoulli"),
    "log and discrete arms": (LOGGED | {"environment": "discrete:a.toml"}, "--environment", "discrete:a.toml"),
    "log and theta": (LOGGED | {"theta": "0.5,0.3"}, "--theta", "0.5,0.3"),
    "log and actions": (LOGGED | {"actions": "arms.csv"}, "--actions", "arms.csv"),
    "arms without a log": ({"arm-column": "arm"}, "--arm-column", "arm"),
    "range without a log": ({"reward-range": "0,5"}, "--reward-range", "0,5"),
    "resampled what": ({"environment": "resampled"}, "--environment", "resampled"),
}

BAD: dict[str, dict[str, tuple[dict[str, str | None], str, str]]] = {
    "certify": SHARED
    | bad_options()
    | HIGH_RATES
    | {
        "unknown policy": ({"": "random-treshold"}, "POLICY", "random-treshold"),
        "no gap": ({"": "explore-then-commit"}, "--gap", "nothing"),
        "gap too wide": ({"": "explore-then-commit", "gap": "2"}, "--gap", "2.0"),
        "linear policy without actions": ({"": "linear-threshold"}, "POLICY", "linear-threshold"),
        "linear policy on a log": (LOGGED | {"": "linear-threshold"}, "POLICY", "linear-threshold"),
        "finite policy on a set": (
            LINEAR | {"": "linear-threshold", "actions": None, "action-set": "ball", "dimension": "2"},
            "POLICY",
            "linear-threshold",
        ),
    },
    "compare": SHARED
    | bad_options("policies")
    | HIGH_RATES
    | {
        "unknown policy": ({"policies": "ucb1,random-treshold"}, "--policies", "random-treshold"),
        "unknown constants": ({"policies": "ucb1:paper"}, "--policies", "ucb1:paper"),
        "empty constants": ({"policies": "random-threshold:"}, "--policies", "random-threshold:"),
        "no policies": ({"policies": None}, "--policies", "nothing"),
        "empty policies": ({"policies": "ucb1,,moss"}, "--policies", "'ucb1,,moss'"),
        "policies twice": ({"policies": "ucb1,ucb1"}, "--policies", "ucb1 more than once"),
        "no gap": ({"policies": "explore-then-commit"}, "--gap", "nothing"),
        "zero gap": ({"policies": "explore-then-commit", "gap": "0"}, "--gap", "0.0"),
        "few rounds": ({"rounds": "10"}, "--rounds", "10"),
        "rounds text": ({"rounds": "many"}, "--rounds", "many"),
        "study not there": ({"": "nowhere.toml"}, "STUDY", "nowhere.toml"),
        "study not toml": ({"": __file__}, "STUDY", __file__),
    },
    "attack": {
        **bad_options(),
        **GAUSSIAN_RATE,
        **{name: SHARED[name] for name in SHARED if name.startswith(("rho", "no rho", "horizon", "no horizon", "gap"))},
        "horizon below arms": ({"arms": "12", "horizon": "11"}, "--horizon", "11"),
        "bad jobs": ({"jobs": "0"}, "--jobs", "0"),
        **CLUSTER,
        "bad seed": ({"seed": "-1"}, "--seed", "-1"),
        "bad confidence": ({"confidence": "1"}, "--confidence", "1"),
        "empty output": ({"out": ""}, "--out", "''"),
        "output is a file": ({"out": __file__}, "--out", __file__),
        "unknown policy": ({"": "random-treshold"}, "POLICY", "random-treshold"),
        "policy by rounds": ({"": "ucb1"}, "POLICY", "ucb1"),
        "no arms": ({"arms": None}, "--arms", "nothing"),
        "one arm": ({"arms": "1"}, "--arms", "1"),
        "arms text": ({"arms": "few"}, "--arms", "few"),
        "no gap": ({"": "explore-then-commit"}, "--gap", "nothing"),
        "small budget": ({"pairs-budget": "999"}, "--pairs-budget", "999"),
        "budget text": ({"pairs-budget": "all"}, "--pairs-budget", "all"),
        "unknown environment": ({"environment": "gausian"}, "--environment", "gausian"),
        "environment of no kind": ({"environment": "beta:2"}, "--environment", "beta:2"),
        "environment from a file": ({"environment": "discrete:arms.toml"}, "--environment", "discrete:arms.toml"),
        "bad sigma": ({"environment": "gaussian:0"}, "sigma", "0"),
        "linear policy without actions": ({"": "certified-linear"}, "POLICY", "certified-linear"),
        "features for nobody": ({"dimension": "2"}, "--dimension", "2"),
        "actions for nobody": ({"arms": None, "actions": "arms.csv"}, "--actions", "arms.csv"),
        "finite policy on a ball": (SPREAD | {"": "linear-threshold", "arms": None}, "POLICY", "linear-threshold"),
        "one action": (SPREAD | {"arms": "1"}, "--arms", "1"),
        "other number of actions": (SPREAD | {"actions": "arms.csv", "dimension": None}, "--arms", "5"),
        "number of a set": (SPREAD | {"action-set": "ball"}, "--arms", "5"),
        "dimension zero": (SPREAD | {"dimension": "0"}, "--dimension", "0"),
        "dimension text": (SPREAD | {"dimension": "two"}, "--dimension", "two"),
        "dimension of a file": (SPREAD | {"actions": "arms.csv"}, "--dimension", "2"),
        "actions not there": (
            SPREAD | {"arms": None, "dimension": None, "actions": "nowhere.csv"},
            "--actions",
            "nowhere.csv",
        ),
        "unknown set": (SPREAD | {"arms": None, "action-set": "cube"}, "--action-set", "cube"),
        "protocol not there": ({"": "nowhere.toml"}, "POLICY", "nowhere.toml"),
    },
    "replay": {
        **LOGS,
        **bad_options(),
        "logged mean above the rate": ({"rate-at-most": "0.5"}, "--log", "0.6666666666666666"),
        **{name: SHARED[name] for name in SHARED if name.startswith(("rho", "no rho", "gap"))},
        "no log": ({"log": None}, "--log", "nothing"),
        "columns without a log": ({"log": None, "reward-column": "y"}, "--log", "nothing"),
        "unknown policy": ({"": "random-treshold"}, "POLICY", "random-treshold"),
        "linear policy": ({"": "certified-linear"}, "POLICY", "certified-linear"),
        "protocol not there": ({"": "nowhere.toml"}, "POLICY", "nowhere.toml"),
        "horizon text": ({"horizon": "long"}, "--horizon", "long"),
        "horizon below arms": ({"horizon": "1"}, "--horizon", "1"),
        "bad seed": ({"seed": "-1"}, "--seed", "-1"),
        "no gap": ({"": "explore-then-commit"}, "--gap", "nothing"),
    },
    "plan": {
        "two unknowns": ({"rho": None}, "plan", "gap"),
        "no unknown": ({"horizon": "1e6"}, "plan", "gap and rho and horizon"),
        "regret and no second unknown": ({"regret": "100"}, "plan", "gap and rho and regret"),
        "unknown policy": ({"": "random-treshold"}, "POLICY", "random-treshold"),
        "ordinary policy": ({"": "ucb1"}, "POLICY", "ucb1"),
        "two policies": ({"policy": "mean-rounding"}, "--policy", "mean-rounding"),
        "no arms": ({"arms": None}, "--arms", "nothing"),
        "one arm": ({"arms": "1"}, "--arms", "1"),
        "gap too wide": ({"gap": "2"}, "--gap", "2.0"),
        "gap text": ({"gap": "small"}, "--gap", "small"),
        "rho one": ({"rho": "1"}, "--rho", "1"),
        "rho tiny": ({"rho": "1e-9"}, "--rho", "1e-09"),
        "horizon zero": ({"rho": None, "horizon": "0"}, "--horizon", "0"),
        "regret zero": ({"rho": None, "regret": "0"}, "--regret", "0.0"),
        "resolve one": ({"resolve": "1"}, "--resolve", "1"),
        "power one half": ({"power": "0.5"}, "--power", "0.5"),
        "power and resolve": ({"power": "0.9", "resolve": "0.8"}, "--resolve", "0.8"),
        "rate one": ({"rate-at-most": "1"}, "--rate-at-most", "1"),
        "rate below the gap": ({"rate-at-most": "0.05"}, "--gap", "0.1"),
        "baseline too high": ({"baseline": "1"}, "--baseline", "1.0"),
        "control that is no arm": ({"control": "99"}, "--control", "99"),
        "by text": ({"by": "half"}, "--by", "half"),
        "same what": ({"same": "winners"}, "--same", "winners"),
        "same winner by a policy that repeats every pull": (
            {"same": "winner"},
            "--same",
            "winner with random-threshold",
        ),
        "same sequence by a policy that names a winner": (
            {"": "early-cut", "same": "sequence"},
            "--same",
            "sequence with early-cut",
        ),
        "a winner by a share of the horizon": ({"": None, "same": "winner", "by": "0.5"}, "--by", "0.5"),
        "bad seed": ({"seed": "-1"}, "--seed", "-1"),
        "unknown environment": ({"environment": "beta:2"}, "--environment", "beta:2"),
        "empty output": ({"out": ""}, "--out", "''"),
        "save what": ({"save": "plan.txt"}, "--save", "'plan.txt'"),
        "save where": ({"save": "nowhere/plan.toml"}, "--save", "nowhere/plan.toml"),
        "linear policy without actions": ({"": "certified-linear"}, "POLICY", "certified-linear"),
        "actions not there": ({"": None, "arms": None, "actions": "nowhere.csv"}, "--actions", "nowhere.csv"),
        "unknown set": ({"": None, "arms": None, "action-set": "cube", "dimension": "2"}, "--action-set", "cube"),
        "dimension zero": ({"": None, "dimension": "0"}, "--dimension", "0"),
        "features for nobody": ({"": "random-threshold", "dimension": "2"}, "POLICY", "random-threshold"),
        "impossible": (
            {"rho": None, "horizon": "1000", "": "explore-then-commit"},
            "--horizon",
            "1,000, too short for a gap of 0.1, whatever rho is",
        ),
    },
    "calibrate": {
        **bad_options(),
        **GAUSSIAN_RATE,
        **{name: SHARED[name] for name in SHARED if name.startswith(("rho", "no rho", "horizon", "no horizon", "gap"))},
        "horizon below arms": ({"arms": "12", "horizon": "11"}, "--horizon", "11"),
        "bad jobs": ({"jobs": "0"}, "--jobs", "0"),
        **CLUSTER,
        "bad seed": ({"seed": "-1"}, "--seed", "-1"),
        "unknown policy": ({"": "random-treshold"}, "POLICY", "random-treshold"),
        "ordinary policy": ({"": "batched-elimination"}, "POLICY", "batched-elimination, no constants"),
        "paper's constants": ({"": "random-threshold:paper"}, "POLICY", "random-threshold, paper constants"),
        "no arms": ({"arms": None}, "--arms", "nothing"),
        "small budget": ({"pairs-budget": "999"}, "--pairs-budget", "999"),
        "unknown environment": ({"environment": "beta:2"}, "--environment", "beta:2"),
        "save what": ({"save": "plan.txt"}, "--save", "'plan.txt'"),
        "actions for nobody": ({"arms": None, "actions": "arms.csv"}, "--actions", "arms.csv"),
        "unknown set": (SPREAD | {"arms": None, "action-set": "cube"}, "--action-set", "cube"),
        "features for nobody": ({"dimension": "2"}, "--dimension", "2"),
    },
    "design": {
        "no arms": ({"": None}, "ARMS", "nothing"),
        "arms not there": ({"": "nowhere.csv"}, "ARMS", "nowhere.csv"),
        "ragged": ({"": "ragged.csv"}, "ARMS", "1 columns in line 2 of ragged.csv"),
        "not finite": ({"": "infinite.csv"}, "ARMS", "'inf' in line 1 of infinite.csv"),
        "not a number": ({"": "words.csv"}, "ARMS", "'red' in line 3 of words.csv"),
        "header only": ({"": "header.csv"}, "ARMS", "header.csv without a row of numbers"),
        "empty": ({"": "empty.csv"}, "ARMS", "empty.csv without a row of numbers"),
        "not text": ({"": "binary.csv"}, "ARMS", "binary.csv"),
        "too long": ({"": "long.csv"}, "ARMS", "length 2.23606798 of action 1"),
        "only zeros": ({"": "zeros.csv"}, "ARMS", "nothing but zeros"),
        "arms and a set": ({"action-set": "ball"}, "ARMS", "arms.csv and --action-set ball"),
        "dimension of arms": ({"dimension": "3"}, "--dimension", "3"),
        "accuracy zero": ({"accuracy": "0"}, "--accuracy", "0.0"),
        "accuracy text": ({"accuracy": "high"}, "--accuracy", "high"),
        "pulls zero": ({"pulls": "0"}, "--pulls", "0"),
        "pulls text": ({"pulls": "many"}, "--pulls", "many"),
        "plot of what": ({"figure": "picture.gif"}, "--figure", "'picture.gif'"),
        "plot where": ({"figure": "nowhere/picture.png"}, "--figure", "nowhere/picture.png"),
        "plot of three features": (
            {"": "three.csv", "figure": "a.png"},
            "--figure",
            "3 features",
        ),
        "unknown set": ({"": None, "action-set": "cube"}, "--action-set", "cube"),
        "set without dimension": ({"": None, "action-set": "ball"}, "--dimension", "nothing"),
        "dimension text": ({"": None, "action-set": "ball", "dimension": "two"}, "--dimension", "two"),
        "dimension zero": ({"": None, "action-set": "ball", "dimension": "0"}, "--dimension", "0"),
        "set not there": ({"": None, "action-set": "nowhere.json"}, "--action-set", "nowhere.json"),
        "set with a dimension": ({"": None, "action-set": "box.json", "dimension": "2"}, "--dimension", "2"),
        "set of no type": ({"": None, "action-set": "typeless.json"}, "--action-set", "type None"),
        "unbounded": (
            {"": None, "action-set": "unbounded.json"},
            "polytope",
            "an unbounded set (feature 0 is not bounded from below)",
        ),
        "infeasible": (
            {"": None, "action-set": "infeasible.json"},
            "polytope",
            "an empty set (no action satisfies all rows)",
        ),
    },
    "reproduce": {
        "unknown claim": ({"only": "theorem-99"}, "--only", "theorem-99"),
        "empty claim": ({"only": ""}, "--only", "''"),
        "bad jobs": ({"jobs": "0"}, "--jobs", "0"),
        **CLUSTER,
        "empty output": ({"out": ""}, "--out", "''"),
        "output is a file": ({"out": __file__}, "--out", __file__),
    },
    "policies": {},
}
DESIGN_FILES: dict[str, str | bytes] = {
    "arms.csv": "x,y\n1,0\n0,1\n-0.6,0.8\n",
    "ragged.csv": "0.1,0.2\n0.3\n",
    "infinite.csv": "0.1,inf\n",
    "words.csv": "colour,size\n0.1,0.5\nred,0.5\n",
    "header.csv": "x,y\n",
    "empty.csv": "",
    "binary.csv": b"\xff\xfe\x00\x9f",
    "long.csv": "0.2,0.1\n1,2\n",
    "zeros.csv": "0,0\n0,0\n",
    "three.csv": "1,0,0\n0,1,0\n0,0,1\n",
    "rewards.csv": "arm,reward\n" + "b,1\nb,0\nb,1\na,0\na,1\na,0\na,0\n" * 30,
    "stars.csv": "arm,reward,user\nb,1,x\nb,3,y\na,5,z\na,0,x\n",
    "gaps.csv": "arm,reward\na,\nb,1\n",
    "alone.csv": "arm,reward\na,1\na,0\n",
    "box.json": '{"type": "box", "low": [-0.5, 0], "high": [0.5, 0.25]}',
    "typeless.json": "[]",
    "unbounded.json": '{"type": "polytope", "rows": [[1, 0], [0, 1], [0, -1]], "bounds": [1, 1, 1]}',
    "infeasible.json": '{"type": "polytope", "rows": [[1], [-1]], "bounds": [1, -2]}',
}


def write_design_files(folder: Path) -> None:
    for name, content in DESIGN_FILES.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


# what takes no value can have no bad one; `certify` refuses bad values of its argument in the rows above
VALUELESS = {"--json", "--quiet", "-q", "--help", "-h", "--normalise", "--until-settled", "--gpu", "--quick", "--split"}
VALUELESS |= {"--demo", "--not-binary", "--overwrite"}


def command(change: dict[str, str | None], policy: str = "random-threshold", verb: str = "certify") -> list[str]:
    good: dict[str, str | None] = {
        **{"attack": ATTACK, "calibrate": ATTACK, "plan": PLAN, "design": {}, "reproduce": {}, "replay": REPLAY}.get(
            verb, GOOD
        )
    }
    first: str | None = {"design": "arms.csv", "reproduce": None}.get(verb, policy)
    named = {"policies": policy, "": None} if verb == "compare" else {"": first}
    options = {**good, **named, **change}
    first = options.pop("")
    flags = [x for name, value in options.items() if value is not None for x in (f"--{name}", value)]
    return [verb, *([] if first is None else [first]), *flags]


@pytest.mark.parametrize("ways", ["one", pytest.param("both", marks=pytest.mark.long)])
@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb, rows in BAD.items() for name in rows])
def test_bad_input_is_one_line_and_exit_code_2(
    verb: str, name: str, ways: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, argument, given = BAD[verb][name]
    from banditto.cli import main

    write_design_files(tmp_path)
    monkeypatch.chdir(tmp_path)

    for flags in both_or_one(ways, len(name)):
        with pytest.raises(SystemExit) as stop:
            main([*command(change, verb=verb), *flags])
        out, err = capfd.readouterr()
        assert (stop.value.code, out) == (2, "")
        offers = name == "impossible"  # a plan that cannot be had is followed by what can
        assert (err.count("\n") == 1) is (not offers or bool(flags))
        assert ("What can be had:" in err) is (offers and not flags)
        assert "Traceback" not in err
        if flags:
            content = json.loads(err)
            found = content.pop("offers", [])
            assert all(set(offer) == {"rho", "gap", "horizon", "level"} for offer in found)
            assert bool(found) is offers
            assert set(content) == {"code", "argument", "given", "allowed", "message"}
            assert content["argument"] == argument
            assert content["given"] == given[:77] + "..." if len(given) > 80 else given
        else:
            assert err.startswith(f"banditto: error: {argument}: got {given[:70]}")
            assert "allowed: " in err


def test_every_option_of_every_verb_has_a_bad_value_in_the_table() -> None:
    """A new verb or option cannot be forgotten."""
    from typer.main import get_command

    from banditto.cli.app import app

    verbs: Any = get_command(app)
    assert set(verbs.commands) == set(BAD) | set(LIVE_BAD)
    for verb, details in verbs.commands.items():
        options = {opt for p in details.params for opt in p.opts if p.param_type_name == "option"}
        options |= {
            (p.metavar or p.name).strip("[]").upper() for p in details.params if p.param_type_name == "argument"
        }
        tried = {argument for _, argument, _ in [*BAD.get(verb, {}).values(), *LIVE_BAD.get(verb, [])]}
        assert options - VALUELESS <= tried, verb
        unknown = banditto(verb, "--bogus")
        assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)
        assert "--bogus: got an unknown option, allowed: " in unknown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["certify", "random-treshold", *command({})[2:]], "did you mean 'random-threshold'?"),
        (["certify", "mine:Greedy", *command({})[2:]], "a class of your own takes PlainPolicy, in Python: see "),
        (["certify", "ucb1:paper", *command({})[2:]], "allowed: ucb1 alone"),
        (["certify", "random-threshold:best", *command({})[2:]], "random-threshold with certified or paper"),
        (["certify", "ucb1", *command({"gap": "0.1"})[2:]], "none, because ucb1 does not need one"),
        (["certify", "nowhere.toml", "--means", "0.1,0.2"], "POLICY: got nowhere.toml"),
        (["certify", "random-threshold"], "--means: got nothing"),
        (["compare"], "--means: got nothing"),
        (["compare", "a.toml", "b.toml"], "compare: got 'b.toml' too many, allowed: STUDY and options"),
        (["certify", "random-threshold", "--bogus"], "--bogus: got an unknown option, allowed: "),
        (["certfy"], "COMMAND: got 'certfy', allowed: did you mean 'certify'?"),
        (["certify", "thompson", *command({"environment": "gaussian"})[2:]], "rewards in [0, 1]"),
        (["certify", "ucb1", *command({"horizon": "1e12"})[2:]], "an integer from 10 to 1e9"),
    ],
)
def test_other_mistakes(arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    from banditto.cli import main

    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capfd.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_file_in_the_way_is_found_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "protocol.toml").mkdir()
    done = banditto(*command({"out": str(tmp_path)}))
    assert (done.returncode, done.stdout) == (2, "")
    assert "protocol.toml is a directory" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["protocol.toml"]


@pytest.mark.parametrize("settings", ["5", '"constants rewards sigma"', '["constants", "rewards", "sigma"]', "{}"])
def test_odd_protocol_files_are_one_line_errors(settings: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    content = policy.protocol(seed=1).to_toml()
    body = content.replace("[settings]", f"settings = {settings}\n[old]", 1)
    path.write_text(body)
    done = banditto("certify", str(path), "--means", "0.1,0.2")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("pulls = 58", "pulls = -58"), "pulls: got -58"),
        (('span = "0x', 'span = "-0x'), "cuts with low >= 0 and span > 0"),
        (("blowup = 29", 'blowup = "many"'), "blowup: got many"),
        (("decision_version = 1", "decision_version = 2"), "decision_version: got 2"),
        (("schema_version = 1", "schema_version = 9"), "a newer banditto wrote this"),
    ],
)
def test_tampered_protocols_are_refused(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    content = policy.protocol(seed=1).to_toml()
    assert change[0] in content
    path = tmp_path / "changed.toml"
    path.write_text(content.replace(*change))
    done = banditto("certify", str(path), "--means", "0.1,0.2")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_a_changed_cut_has_no_proof(tmp_path: Path) -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    content = policy.protocol(seed=1).to_toml()
    path = tmp_path / "changed.toml"
    path.write_text(content.replace('low = "0x1.', 'low = "0x1.1', 1))
    done = banditto("certify", str(path), "--means", "0.1,0.2", "--pairs", "100", "--json")
    assert json.loads(done.stdout)["bound"] is None


def test_a_baseline_protocol_is_a_policy_too(tmp_path: Path) -> None:
    first = banditto(*command({"out": str(tmp_path), "horizon": "1000"}, "ucb1"), "--json")
    again = banditto("certify", str(tmp_path / "protocol.toml"), "--means", "0.9,0.8", "--pairs", "10", "--json")
    assert json.loads(again.stdout)["digest"] == json.loads(first.stdout)["digest"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_and_closed_streams_are_no_tracebacks() -> None:
    full = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m banditto policies > /dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert full.returncode == 2
    assert full.stderr.count("\n") == 1
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m banditto policies >&-"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in closed.stderr


def test_nothing_is_left_behind_by_a_failed_run(tmp_path: Path) -> None:
    done = banditto(*command({"out": str(tmp_path / "a" / "b"), "pairs": "0"}))
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_short_horizon_warns_on_stderr_or_in_the_json() -> None:
    plain = banditto(*command({"horizon": "100", "rho": "0.2", "pairs": "1000"}))
    assert plain.stderr.startswith("banditto: warning: horizon 100 is too short for random-threshold")
    assert plain.stderr.count("\n") == 1
    assert banditto(*command({"horizon": "100", "rho": "0.2", "pairs": "100"}), "--quiet").stderr == ""
    printed = banditto(*command({"horizon": "100", "rho": "0.2", "pairs": "100"}), "--json")
    assert printed.stderr == ""
    assert "too short" in json.loads(printed.stdout)["warnings"][0]


def test_environment_variables_are_weaker_than_flags() -> None:
    variables = os.environ | {"BANDITTO_JOBS": "many"}
    wrong = banditto(*CERTIFY, "--pairs", "500", env=variables)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--jobs: got many" in wrong.stderr
    assert banditto(*CERTIFY, "--pairs", "500", "--jobs", "1", env=variables).returncode == 0
    short = command({"horizon": "100", "rho": "0.2", "pairs": "100"})
    assert banditto(*short, env=os.environ | {"BANDITTO_QUIET": "1"}).stderr == ""


def test_a_broken_pipe_is_silent() -> None:
    line = f"{sys.executable} -m banditto {' '.join(CERTIFY)} --pairs 100 --json | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "{\n"
    assert done.stderr == ""


def interrupted_early(arguments: list[str], seconds: float) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that gets Ctrl-C at some moment while it starts."""
    running = subprocess.Popen(
        [sys.executable, "-m", "banditto", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # even if we run in the background
    )
    time.sleep(seconds)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all processes
    try:
        out, err = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        # a library that Python is just importing may swallow it, on a busy machine once in dozens: one presses again
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
    return running.returncode, out, err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_prints_what_was_finished(jobs: str) -> None:
    command = [*CERTIFY, "--pairs", "1_000_000_000", "--jobs", jobs, "--json"]
    code, out, err = interrupted(command, r"[1-9]\d*/1000000000")
    assert code == 130, err
    printed = json.loads(out)
    assert printed["interrupted"]
    assert 0 < printed["pairs"] < 1_000_000_000
    assert f"--pairs {printed['pairs']}" in err
    assert "Traceback" not in err
    policy = bd.RandomThreshold(arms=3, horizon=10**8, rho=0.1)
    same = bd.certify(policy, bd.Bernoulli([0.9, 0.8, 0.7]), pairs=printed["pairs"], seed=11)
    assert same.mismatches == printed["mismatches"]


@pytest.mark.parametrize(("seconds", "jobs"), [(0.4, "2"), (0.7, "2"), (1.0, "2"), (0.4, "1")])
def test_ctrl_c_while_workers_start_leaves_no_traceback(seconds: float, jobs: str) -> None:
    for _ in range(3):
        code, _, err = interrupted_early([*CERTIFY, "--pairs", "1_000_000_000", "--jobs", jobs, "--quiet"], seconds)
        if code != 1:  # with which Python ends if it is still reading its own settings
            break
    assert code in (130, -signal.SIGINT), err
    assert err.count("Traceback") <= (code != 130), err  # only while Python itself still starts


def test_a_terminal_gets_a_progress_bar_and_a_pipe_does_not() -> None:
    arguments = [sys.executable, "-m", "banditto", *CERTIFY, "--pairs", "60_000"]
    parent, child = pty.openpty()
    running = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=child, env=os.environ | {"TERM": "xterm"})
    os.close(child)
    seen = b""
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(parent)
    running.communicate(timeout=600)
    assert running.returncode == 0
    assert b"certify" in seen
    assert b"pairs/s" in seen
    assert banditto(*arguments[3:]).stderr == ""


LINEAR_FLAGS = ["--theta", "0.5,0.3", "--horizon", "1e7", "--rho", "0.2", "--pairs", "32"]


@pytest.mark.parametrize(
    "where", [["--actions", "arms.csv"], ["--action-set", "ball", "--dimension", "2"], ["--action-set", "box.json"]]
)
def test_a_linear_problem_is_certified(where: list[str], tmp_path: Path) -> None:
    write_design_files(tmp_path)
    done = banditto("certify", "certified-linear", *where, *LINEAR_FLAGS, "--json", "--out", "o", cwd=tmp_path)
    assert done.returncode in (0, 3)
    assert done.stderr == ""
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("certificate"))
    assert printed["environment"]["name"] == "linear-bernoulli"
    assert printed["environment"]["theta"] == [0.5, 0.3]
    # a second lab needs the protocol and a world; the actions are in it
    again = banditto("certify", "o/protocol.toml", "--theta", "0.5,0.3", "--pairs", "32", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["digest"] == printed["digest"]
    assert json.loads(again.stdout)["mismatches"] == printed["mismatches"]
    elsewhere = ["--theta", "0.5,0.3", "--action-set", "simplex", "--dimension", "2"]
    other = banditto("certify", "o/protocol.toml", *elsewhere, cwd=tmp_path)
    assert other.returncode == 2
    assert "other actions" in other.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "policies", "file"),
    [
        (["--actions", "arms.csv"], "certified-linear,linear-threshold,phased-elimination,lin-ucb,ucb1", "actions.csv"),
        (["--action-set", "box.json"], "least-squares-rounding,net-threshold:paper", "action_set.json"),
    ],
)
def test_a_linear_comparison_can_be_rebuilt(where: list[str], policies: str, file: str, tmp_path: Path) -> None:
    write_design_files(tmp_path)
    flags = [*where, *LINEAR_FLAGS, "--policies", policies, "--rounds", "1e4", "--environment", "gaussian:1"]
    done = banditto("compare", *flags, "--json", "--out", "report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("comparison"))
    assert (tmp_path / "report" / file).exists()
    assert "theta (0.5, 0.3)" in (tmp_path / "report" / "report.html").read_text()
    again = banditto("compare", "report/study.toml", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["policies"] == printed["policies"]


def test_means_take_the_place_of_a_linear_problem(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    (tmp_path / "study.toml").write_text(
        'theta = [0.5, 0.3]\nactions = "arms.csv"\nhorizon = 1e6\nrho = 0.3\npolicies = ["lin-ucb", "ucb1"]\n'
        "rounds = 1e4\npairs = 2\n"
    )
    assert banditto("compare", "study.toml", cwd=tmp_path).returncode == 0
    means = banditto("compare", "study.toml", "--means", "0.5,0.4", "--policies", "ucb1", "--json", cwd=tmp_path)
    assert json.loads(means.stdout)["environment"]["name"] == "bernoulli"
    ball = banditto(
        "compare",
        "study.toml",
        "--action-set",
        "ball",
        "--dimension",
        "2",
        "--policies",
        "certified-linear",
        "--pairs",
        "4",
        "--json",
        cwd=tmp_path,
    )
    assert json.loads(ball.stdout)["environment"]["actions"]["type"] == "ball"


def test_a_log_is_certified_and_compared(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    flags = ["--log", "rewards.csv", "--horizon", "1e6", "--rho", "0.2", "--pairs", "60"]
    done = banditto("certify", "certified-elimination", *flags, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("certificate"))
    log = bd.RewardLog.read(tmp_path / "rewards.csv")
    own = bd.certify(bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.2), bd.Resampled(log), pairs=60)
    assert printed["environment"] == bd.Resampled(log).to_dict()
    assert {key: printed[key] for key in own.to_dict()} == own.to_dict()
    shown = banditto("certify", "ucb1", *flags[:4], "--horizon", "100", *flags[4:], cwd=tmp_path).stdout
    assert shown.count("drawn with replacement") == 1
    compared = banditto("compare", *flags, "--policies", "ucb1,moss", "--rounds", "1e4", cwd=tmp_path)
    lines = compared.stdout.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("arm "))
    assert [line.split() for line in lines[begin : begin + 4]] == [
        ["arm", "rows", "average"],
        ["---", "----", "-------"],
        ["b", "90", "0.6667"],
        ["a", "120", "0.25"],
    ]
    assert lines[-1].startswith("Rewards are drawn with replacement from the rows of the log")


@pytest.mark.long
def test_a_comparison_on_a_log_can_be_rebuilt_and_checks_the_log(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    flags = ["--log", "stars.csv", "--arm-column", "user", "--reward-range", "0,5", "--horizon", "1e5", "--rho", "0.3"]
    more = ["--policies", "certified-elimination,ucb1", "--rounds", "1e4", "--pairs", "30", "--json"]
    done = banditto("compare", *flags, *more, "--out", "report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("comparison"))
    assert printed["environment"]["log"]["arms"] == ["x", "y", "z"]
    assert printed["environment"]["means"] == [0.1, 0.6, 1.0]
    page = (tmp_path / "report" / "report.html").read_text()
    assert "3 arms of a log with 4 rows, average rewards x 0.1, y 0.6, z 1" in page
    assert "Rewards are drawn with replacement" in page
    again = banditto("compare", "report/study.toml", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["policies"] == printed["policies"]
    written = (tmp_path / "report" / "log.csv").read_text()
    (tmp_path / "report" / "log.csv").write_text(written + "x,2\n")
    other = banditto("compare", "report/study.toml", cwd=tmp_path)
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr.startswith(f"banditto: error: log_digest: got {printed['environment']['log']['digest']}")


def test_means_and_a_log_take_each_others_place(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    rest = 'horizon = 1e6\nrho = 0.3\npolicies = ["ucb1"]\nrounds = 1e4\npairs = 2\n'
    (tmp_path / "logged.toml").write_text('log = "stars.csv"\nreward_range = [0, 5]\n' + rest)
    (tmp_path / "means.toml").write_text('means = [0.1, 0.2]\nenvironment = "gaussian:1"\n' + rest)
    (tmp_path / "both.toml").write_text('means = [0.1, 0.2]\nlog = "rewards.csv"\n' + rest)
    found = [
        json.loads(banditto("compare", *flags, "--json", cwd=tmp_path).stdout)["environment"]["name"]
        for flags in (
            ["logged.toml"],
            ["logged.toml", "--means", "0.1,0.2"],
            ["means.toml"],
            ["means.toml", "--log", "rewards.csv"],
            ["logged.toml", "--log", "rewards.csv"],  # with a range of its own
        )
    ]
    assert found == ["resampled", "bernoulli", "gaussian", "resampled", "resampled"]
    both = banditto("compare", "both.toml", cwd=tmp_path)
    assert "--means: got 0.1,0.2, allowed: none, because the log has its own arms and rewards" in both.stderr


def test_a_replay_prints_one_object_that_is_the_library_replay(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    done = banditto("replay", "ucb1", "--log", "rewards.csv", "--rho", "0.3", "--seed", "4", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("replay"))
    log = bd.RewardLog.read(tmp_path / "rewards.csv")
    own = bd.replay(bd.UCB1(), log, seed=4)
    assert printed["labs"] == [json.loads(json.dumps(own.to_dict()))]
    assert (printed["compared"], printed["parted"]) == (None, None)
    assert own.horizon == log.rows == 210
    shown = banditto("replay", "ucb1", "--log", "rewards.csv", "--rho", "0.3", "--seed", "4", cwd=tmp_path)
    assert shown.stdout == own.table() + "\n"


def test_a_replay_warns_where_a_coin_would_do_as_well(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    words = ("replay", "random-threshold", "--log", "rewards.csv", "--rho", "0.1")
    done = banditto(*words, cwd=tmp_path)
    assert done.stderr.count("\n") == 2
    assert done.stderr.splitlines()[1].startswith(f"banditto: warning: {WOULD_DO}")
    assert "% of random play, if the arms pay what the log's averages say; " in done.stderr
    printed = json.loads(banditto(*words, "--json", cwd=tmp_path).stdout)
    jsonschema.validate(printed, schema("replay"))
    assert printed["coin_decides"]
    assert printed["share_of_random_play"] >= 0.9
    assert [f"banditto: warning: {text}" for text in printed["warnings"]] == done.stderr.splitlines()
    baseline = json.loads(banditto(*words[:1], "ucb1", *words[2:], "--json", cwd=tmp_path).stdout)
    assert (baseline["coin_decides"], baseline["share_of_random_play"], baseline["warnings"]) == (False, None, [])


def test_a_replay_in_two_labs(tmp_path: Path) -> None:
    write_design_files(tmp_path)
    flags = ("--log", "rewards.csv", "--rho", "0.4", "--split")
    commit = ("explore-then-commit", "--gap", "0.4", "--horizon", "1e4")
    same = banditto("replay", *commit, *flags, cwd=tmp_path)
    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout.count("All 10,000 pulls are decided.") == 2
    assert same.stdout.endswith("The same arms in all 10,000 pulls that both labs decided.\n")
    apart = banditto("replay", "ucb1", *flags, "--json", cwd=tmp_path)
    printed = json.loads(apart.stdout)
    jsonschema.validate(printed, schema("replay"))
    assert apart.returncode == 3
    assert 1 <= printed["parted"] <= printed["compared"]
    told = banditto("replay", "ucb1", *flags, cwd=tmp_path).stdout
    assert f"The two labs part at pull {printed['parted']:,} of {printed['compared']:,} that both decided." in told
    stars = ("--log", "stars.csv", "--reward-range", "0,5", "--arm-column", "user")
    single = banditto("replay", "ucb1", *stars, *flags[2:], cwd=tmp_path)
    assert (single.returncode, single.stdout) == (2, "")
    assert single.stderr.startswith("banditto: error: --log: got one row of y, allowed: two rows of each arm")
    policy = bd.ExploreThenCommit(arms=2, horizon=10**4, rho=0.4, gap=0.4)
    protocol = policy.protocol(seed=0)
    (tmp_path / "p.toml").write_text(protocol.to_toml())
    assert banditto("replay", "p.toml", "--log", "rewards.csv", "--split", cwd=tmp_path).stdout == same.stdout


def attack(policy: str, *flags: str, **options: Any) -> Finished:
    return banditto(*command(dict[str, str | None](ATTACK) | {"arms": None}, policy, "attack"), *flags, **options)


def test_plan_prints_one_object_that_is_the_library_plan(tmp_path: Path) -> None:
    words = ("--arms", "3", "--gap", "0.2", "--rho", "0.3", "--seed", "0")
    done = banditto("plan", *words, "--json", "--save", "p.toml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("plan"))
    own = bd.plan(arms=3, gap=0.2, rho=0.3)
    assert {name: printed[name] for name in own.to_dict()} == own.to_dict()
    assert bd.Protocol.load(tmp_path / "p.toml") == own.protocol
    means = "0.4,0.4,0.6"
    certified = banditto("certify", "p.toml", "--means", means, "--pairs", "1000", "--json", cwd=tmp_path)
    assert certified.returncode == 0
    certificate = json.loads(certified.stdout)
    low, high = printed["regret_interval"]
    assert low <= certificate["regret"]["mean"] <= high
    assert certificate["digest"] == printed["digest"]


@pytest.mark.long
def test_a_plan_warns_where_all_pulls_come_before_the_decision() -> None:
    words = ("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.3", "--by", "1")
    done = banditto(*words)
    assert done.returncode == 0
    assert done.stderr.endswith("of random play: nearly all pulls are spent before the decision\n")
    assert "of random play" in done.stdout
    printed = json.loads(banditto(*words, "--json").stdout)
    jsonschema.validate(printed, schema("plan"))
    assert not printed["coin_decides"]  # it is right in the end
    assert [f"banditto: warning: {text}\n" for text in printed["warnings"]] == [done.stderr]


def test_plan_for_the_same_winner(tmp_path: Path) -> None:
    """The team's question: 5% against 6%, four versions; the protocol is that of the policy that names a winner."""
    words = ("plan", "--arms", "4", "--gap", "0.01", "--baseline", "0.05", "--rate-at-most", "0.06", "--rho", "0.3")
    done = banditto(*words, "--same", "winner", "--json", "--save", "p.toml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("plan"))
    assert (printed["level"], printed["policy"], printed["lower_bound"]) == ("winner", "early-cut", None)
    assert printed["horizon"] == 4 * printed["pulls"]["cap"] + 1
    assert 4 * printed["pulls"]["mean"] <= 80_000
    assert [place["gap"] for place in printed["pulls_elsewhere"]] == [0.02, 0.0]
    protocol = bd.Protocol.load(tmp_path / "p.toml")
    assert (protocol.policy, protocol.settings["level"], protocol.digest) == ("early-cut", "winner", printed["digest"])


@pytest.mark.long
def test_plan_writes_curves(tmp_path: Path) -> None:
    done = banditto(
        "plan", "explore-then-commit", "--arms", "2", "--gap", "0.4", "--rho", "0.3", "--out", "o", cwd=tmp_path
    )
    assert done.returncode == 0
    assert done.stdout.startswith("plan")
    names = {str(path.relative_to(tmp_path / "o")) for path in (tmp_path / "o").rglob("*") if path.is_file()}
    figures = {f"figures/{name}.{kind}" for name in ("horizon", "regret") for kind in ("png", "svg")}
    assert names == {"plan.json", "protocol.toml", "curves.csv"} | figures
    rows = (tmp_path / "o" / "curves.csv").read_text().splitlines()
    assert rows[0] == "policy,rho,horizon,regret"
    assert {row.split(",")[0] for row in rows[1:]} >= {"certified-elimination", "random-threshold:paper"}
    jsonschema.validate(json.loads((tmp_path / "o" / "plan.json").read_text()), schema("plan"))


def test_plans_of_linear_problems(tmp_path: Path) -> None:
    done = banditto(
        *(
            "plan",
            "least-squares-rounding",
            "--arms",
            "6",
            "--dimension",
            "2",
            "--gap",
            "0.2",
            "--rho",
            "0.3",
            "--json",
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("plan"))
    assert printed["arms"] == 6


@pytest.mark.long
def test_calibrate_says_that_nothing_is_certified(tmp_path: Path) -> None:
    flags = ("--arms", "2", "--horizon", "1e6", "--rho", "0.3", "--pairs-budget", "4000", "--seed", "0")
    done = banditto("calibrate", "random-threshold", *flags, "--save", "p.toml", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("calibration"))
    assert printed["constants"] == "calibrated, not certified"
    assert printed["bound"] is None
    assert (tmp_path / "p.toml").read_text().startswith("# calibrated, not certified: ")
    policy = bd.policy_of(bd.Protocol.load(tmp_path / "p.toml"))
    assert policy.settings()["constants"] == "calibrated, not certified"
    for verb, more in (("certify", ("--means", "0.4,0.6", "--pairs", "50")), ("attack", ("--pairs-budget", "1000"))):
        shown = banditto(verb, "p.toml", *more, cwd=tmp_path)
        assert "calibrated, not certified" in shown.stdout
        assert "calibrated, not certified" in banditto(verb, "p.toml", *more, "--json", cwd=tmp_path).stdout
    again = banditto("calibrate", "p.toml", cwd=tmp_path)
    assert again.returncode == 2
    assert "certified constants" in again.stderr
    text = banditto("calibrate", "random-threshold", *flags).stdout
    assert "calibrated, not certified" in text


def test_attack_prints_one_object_that_is_the_library_attack() -> None:
    done = attack("certified-elimination", "--arms", "3", "--seed", "5", "--jobs", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.validate(printed, schema("attack"))
    policy = bd.CertifiedElimination(arms=3, horizon=10**6, rho=0.1)
    own = bd.attack(policy, pairs_budget=1000, seed=5).to_dict()
    assert {key: printed[key] for key in own} == own
    assert set(printed["worst"]) == {"environment", "means", "pairs", "mismatches", "differ", "interval"}


def test_attack_finds_what_is_not_replicable_with_exit_code_3() -> None:
    done = attack("batched-elimination", "--arms", "3", "--environment", "gaussian:0.5")
    assert (done.returncode, done.stderr) == (3, "")
    assert "worst instance  3 arms, Gaussian rewards (sigma 0.5) with means " in done.stdout
    assert "verdict         FAIL: at least" in done.stdout


@pytest.mark.parametrize(
    ("policy", "where", "name"),
    [
        ("certified-linear", ["--arms", "3", "--dimension", "2"], "finite"),
        ("linear-threshold:paper", ["--actions", "arms.csv"], "finite"),
        pytest.param(
            *("least-squares-rounding", ["--dimension", "2", "--environment", "gaussian:0.5"], "ball"),
            marks=pytest.mark.long,
        ),
        ("phased-elimination", ["--actions", "long.csv", "--normalise", "--environment", "gaussian:0.5"], "finite"),
    ],
)
def test_attack_on_linear_policies_and_on_their_protocols(
    policy: str, where: list[str], name: str, tmp_path: Path
) -> None:
    write_design_files(tmp_path)
    first = attack(policy, *where, "--quiet", "--json", "--out", "o", cwd=tmp_path)
    assert (first.returncode in (0, 3), first.stderr) == (True, "")
    printed = json.loads(first.stdout)
    jsonschema.validate(printed, schema("attack"))
    assert printed["worst"]["environment"]["actions"]["type"] == name
    assert json.loads((tmp_path / "o" / "attack.json").read_text()) == printed
    again = banditto("attack", "o/protocol.toml", "--pairs-budget", "1000", "--json", cwd=tmp_path)
    for key in ("worst", "digest", "rho", "horizon"):
        assert json.loads(again.stdout)[key] == printed[key]


def test_flags_may_only_repeat_the_protocol_that_is_attacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from banditto.cli import main

    write_design_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {"horizon": 10**6, "rho": 0.1}
    points = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]
    made: dict[str, Any] = {
        "arms": bd.CertifiedElimination(arms=3, **known),
        "linear": bd.LinearThreshold(actions=points, **known),
        "ball": bd.LeastSquaresRounding(actions=bd.Ball(dimension=2), **known),
        "rounds": bd.UCB1(),
    }
    for name, policy in made.items():
        protocol = policy.protocol(seed=0, **({"arms": 3, **known} if name == "rounds" else {}))
        Path(f"{name}.toml").write_text(protocol.to_toml())
    repeated = {
        "arms": "--arms 3 --horizon 1e6 --rho 0.1 --seed 0 --environment bernoulli",
        "linear": "--actions arms.csv --arms 3",
        "ball": "--action-set ball --dimension 2",
    }
    for name, flags in repeated.items():
        with pytest.raises(SystemExit) as stop:
            main(["attack", f"{name}.toml", "--pairs-budget", "1000", "--quiet", *flags.split()])
        assert (stop.value.code, capfd.readouterr().err) == (0, "")
    refused = [
        ("arms", "--arms 4", "--arms: got 4, allowed: 3, the protocol's own"),
        ("arms", "--gap 0.1", "--gap: got 0.1, allowed: none: the protocol has none"),
        ("arms", "--rho 0.2", "--rho: got 0.2, allowed: 0.1, the protocol's own"),
        ("arms", "--environment gaussian:0.5", "allowed: bernoulli, the protocol's own"),
        ("arms", "--dimension 2", "--dimension: got 2, allowed: none: the protocol is for arms without features"),
        ("linear", "--dimension 3", "--dimension: got 3, allowed: 2, the protocol's own"),
        ("linear", "--action-set ball --dimension 2", "--action-set: got ball, allowed: the protocol's own actions"),
        ("linear", "--actions three.csv", "--actions: got three.csv, allowed: the protocol's own actions"),
        ("linear", "--normalise", "--normalise: got it"),
        ("ball", "--arms 3", "--arms: got 3, allowed: none: the protocol has a set of actions"),
        ("rounds", "--arms 3", "POLICY: got ucb1, allowed: a policy that works in batches"),
    ]
    for name, flags, said in refused:
        with pytest.raises(SystemExit) as stop:
            main(["attack", f"{name}.toml", *flags.split()])
        out, err = capfd.readouterr()
        assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
        assert said in err


def test_options_of_a_protocol_may_only_be_repeated(tmp_path: Path) -> None:
    place = ("--means", "0.03,0.06,0.02", "--pairs", "20", "--json")
    options = ("--gap", "0.05", "--power", "0.9", "--control", "2", "--rate-at-most", "0.1")
    kept = banditto("certify", "one-cut", *place, *options, "--horizon", "1e5", "--rho", "0.3", "--out", str(tmp_path))
    own = bd.OneCut(arms=3, horizon=10**5, rho=0.3, gap=0.05, power=0.9, control=2, rate_at_most=0.1)
    assert json.loads(kept.stdout)["digest"] == own.protocol(seed=0).digest
    path = str(tmp_path / "protocol.toml")
    same = ("--gap", "5e-2", "--power", "0.90", "--control", "2", "--rate-at-most", ".1")
    again = banditto("certify", path, *place, *same)
    assert json.loads(again.stdout)["mismatches"] == json.loads(kept.stdout)["mismatches"]
    attacked = banditto("attack", path, "--pairs-budget", "1000", *same, "--json")
    assert json.loads(attacked.stdout)["digest"] == own.protocol(seed=0).digest
    assert max(json.loads(attacked.stdout)["worst"]["means"]) <= 0.1
    for option, value, allowed in (
        ("--gap", "0.04", "0.05"),
        ("--power", "0.95", "0.9"),
        ("--control", "0", "2"),
        ("--rate-at-most", "0.2", "0.1"),
    ):
        for verb in (("certify", path, *place[:2]), ("attack", path)):
            other = banditto(*verb, option, value)
            said = f"banditto: error: {option}: got {value}, allowed: {allowed}, the protocol's own, or none\n"
            assert (other.returncode, other.stderr) == (2, said)
    plain = bd.CertifiedElimination(arms=3, horizon=10**5, rho=0.3)
    (tmp_path / "plain.toml").write_text(plain.protocol(seed=0).to_toml())
    other = banditto("certify", str(tmp_path / "plain.toml"), *place[:2], "--control", "0", "--json")
    assert json.loads(other.stderr)["message"] == "--control: got 0, allowed: none: the protocol has none"


@pytest.mark.parametrize(
    "policy", ["certified-elimination", "random-threshold", "mean-rounding", "explore-then-commit", "one-cut"]
)
def test_a_rate_is_promised_to_every_policy_that_takes_one(policy: str, tmp_path: Path) -> None:
    gap = ("--gap", "0.05") if policy in ("explore-then-commit", "one-cut") else ()
    options = ("--means", "0.02,0.09", "--horizon", "1e6", "--rho", "0.3", "--pairs", "5", "--rate-at-most", "0.1")
    done = banditto("certify", policy, *options, *gap, "--out", str(tmp_path))
    assert (done.returncode, done.stderr) in ((0, ""), (3, ""))
    assert bd.Protocol.load(tmp_path / "protocol.toml").settings["rate_at_most"] == "0.1"


def test_compare_hands_options_to_those_who_take_them() -> None:
    place = ("compare", "--means", "0.02,0.09", "--horizon", "1e5", "--rho", "0.3", "--pairs", "5", "--rounds", "1e4")
    options = ("--gap", "0.05", "--power", "0.9", "--control", "0", "--rate-at-most", "0.1")
    done = banditto(*place, "--policies", "one-cut,certified-elimination,random-threshold,ucb1", *options, "--json")
    rows = json.loads(done.stdout)["policies"]
    made = [
        bd.OneCut(arms=2, horizon=10**5, rho=0.3, gap=0.05, power=0.9, control=0, rate_at_most=0.1),
        bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.3, gap=0.05, rate_at_most=0.1),
        bd.RandomThreshold(arms=2, horizon=10**5, rho=0.3, rate_at_most=0.1),
    ]
    assert [row["digest"] for row in rows[:3]] == [policy.protocol(seed=0).digest for policy in made]
    nobody = banditto(*place, "--policies", "random-threshold,ucb1", "--power", "0.9", "--json")
    said = "--power: got 0.9, allowed: none, because no policy here needs one"
    assert (nobody.returncode, json.loads(nobody.stderr)["message"]) == (2, said)


def test_ctrl_c_during_an_attack() -> None:
    arguments = command({"pairs-budget": "9e8"}, "certified-elimination", "attack")
    code, out, err = interrupted([*arguments, "--json"], r"searching.* [1-9]\d*/")
    assert (code, out) == (130, "")
    assert "interrupted before the search was finished" in err
    assert "Traceback" not in err


def test_a_protocol_without_a_gap_can_be_certified(tmp_path: Path) -> None:
    first = banditto(*command({"out": str(tmp_path)}, "certified-elimination"), "--json")
    again = banditto("certify", str(tmp_path / "protocol.toml"), "--means", "0.9,0.8", "--pairs", "10", "--json")
    assert json.loads(again.stdout)["mismatches"] == json.loads(first.stdout)["mismatches"]
