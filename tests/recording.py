"""Records documents of every verb under tests/data/recorded: `python -m tests.recording` adds those that are not there.

A recorded document is what a user may have kept, so it is never written again: schemas must read it for good.
"""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import banditto as bd
from banditto.cli import main
from banditto.live.event_log import chained
from tests.live.administrators import allow_tampering_with_file
from tests.paper.test_claims import some_rows

RECORDED = Path(__file__).parent / "data" / "recorded"
NEUTRAL = {"platform": "Linux-6.1-x86_64-with-glibc2.36", "created": "2026-01-01T00:00:00+00:00"}
VERSIONS = {"banditto": "0.1.0", "python": "3.11.7", "numpy": "2.3.5", "scipy": "1.16.3", "numba": "0.63.1"}
FILES = {
    "arms.csv": "1,0\n0,1\n-0.6,0.8\n",
    "rewards.csv": "arm,reward\n" + "b,1\nb,1\nb,0\na,0\na,0\na,1\na,0\n" * 30,
    "box.json": '{"type": "box", "low": [-0.5, -0.5], "high": [0.5, 0.5]}',
    "discrete.toml": "[[arms]]\nvalues = [0, 1]\nprobabilities = [0.5, 0.5]\n"
    "[[arms]]\nvalues = [0, 0.5, 1]\nprobabilities = [0.25, 0.25, 0.5]\n",
    "recorded_arms.py": "def worse(rng): return rng.random() < 0.4\ndef better(rng): return rng.random() < 0.7\n",
    "study.toml": 'title = "Two arms"\nmeans = [0.5, 0.9]\nhorizon = 1e6\nrho = 0.2\npairs = 50\nrounds = 1e4\n'
    'policies = ["certified-elimination", "moss"]\n',
}
MEANS = ("--means", "0.9,0.8,0.7", "--horizon", "1e8", "--rho", "0.1", "--seed", "11")
SHORT = ("--means", "0.6,0.4", "--horizon", "1e4", "--rho", "0.3", "--pairs", "40")
LINEAR = ("--theta", "0.5,0.3", "--horizon", "1e6", "--rho", "0.2", "--pairs", "8")
COIN = ("--means", "0.5,0.52", "--horizon", "1e4", "--rho", "0.1", "--pairs", "200")
SAME = ("--means", "0.5,0.5", "--horizon", "1e4", "--rho", "0.3", "--pairs", "40")
COMPARED = ("--horizon", "1e6", "--rho", "0.2", "--rounds", "1e4", "--pairs", "20")
LIVE = ("--horizon", "2000", "--rho", "0.3", "--seed", "7", "--pairs", "2")
ATTACK = ("--horizon", "1e6", "--rho", "0.1", "--pairs-budget", "1000")
COMMANDS: dict[str, dict[str, tuple[str, ...]]] = {
    "certificate": {
        "pass": ("certify", "random-threshold", *MEANS, "--pairs", "100"),
        "consistent": ("certify", "random-threshold", *MEANS, "--pairs", "6"),
        "coin": ("certify", "certified-elimination", *COIN),
        "same-arms": ("certify", "one-cut", "--gap", "0.2", *SAME),
        "inconclusive": ("certify", "random-threshold", *MEANS, "--pairs", "5"),
        "one-pair": ("certify", "random-threshold", *MEANS, "--pairs", "1"),
        "baseline": ("certify", "ucb1", *SHORT),
        "paper": ("certify", "random-threshold:paper", *SHORT, "--environment", "gaussian:0.25"),
        "settled": ("certify", "ucb1", *SHORT, "--until-settled"),
        "gap": ("certify", "explore-then-commit", "--gap", "0.2", *SHORT),
        "broken-promise": ("certify", "explore-then-commit", "--gap", "0.4", *SHORT),
        "beta": ("certify", "certified-elimination", *SHORT, "--environment", "beta:4"),
        "discrete": ("certify", "batched-elimination", *SHORT[2:], "--environment", "discrete:discrete.toml"),
        "log": ("certify", "certified-elimination", "--log", "rewards.csv", *SHORT[2:]),
        "actions": ("certify", "certified-linear", "--actions", "arms.csv", *LINEAR),
        "ball": ("certify", "certified-linear", "--action-set", "ball", "--dimension", "2", *LINEAR),
        "linear-gaussian": (
            "certify",
            "phased-elimination",
            "--actions",
            "arms.csv",
            *LINEAR,
            "--environment",
            "gaussian:1",
        ),
    },
    "comparison": {
        "arms": (
            *("compare", "--means", "0.5,0.9,0.8", "--gap", "0.1", *COMPARED),
            *("--policies", "random-threshold,explore-then-commit,ucb1"),
        ),
        "study": ("compare", "study.toml"),
        "coin": ("compare", *COIN, "--policies", "certified-elimination,ucb1"),
        "same-arms": ("compare", *SAME, "--policies", "certified-elimination,ucb1"),
        "log": ("compare", "--log", "rewards.csv", *COMPARED, "--policies", "ucb1,certified-elimination"),
        "actions": ("compare", "--theta", "0.5,0.3", "--actions", "arms.csv", *COMPARED, "--policies", "lin-ucb"),
        "box": (
            "compare",
            "--theta",
            "0.5,0.3",
            "--action-set",
            "box.json",
            *COMPARED,
            "--policies",
            "certified-linear",
        ),
    },
    "selection": {
        "lead": ("select", "a=recorded_arms:worse", "b=recorded_arms:better", "--gap", "0.3", "--seed", "2"),
        "control": (
            *("select", "a=recorded_arms:worse", "b=recorded_arms:worse", "c=recorded_arms:worse"),
            *("--gap", "0.3", "--rho", "0.3", "--control", "b"),
        ),
    },
    "policies": {"all": ("policies",), "options": ("policies",)},
    "design": {
        "arms": ("design", "arms.csv", "--pulls", "1e6"),
        "ball": ("design", "--action-set", "ball", "--dimension", "3"),
    },
    "plan": {
        "horizon": ("plan", "--arms", "3", "--gap", "0.2", "--rho", "0.3"),
        "coin": ("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.3", "--by", "0.99", "--resolve", "0.1"),
        "winners": ("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.3", "--same", "winner"),
        "commit": ("plan", "explore-then-commit", "--arms", "2", "--gap", "0.4", "--rho", "0.3"),
        "actions": (
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
        ),
    },
    "attack": {
        "pass": ("attack", "certified-elimination", "--arms", "3", *ATTACK),
        "fail": ("attack", "batched-elimination", "--arms", "2", "--environment", "gaussian:0.5", *ATTACK),
        "actions": ("attack", "linear-threshold:paper", "--actions", "arms.csv", *ATTACK),
        "ball": ("attack", "least-squares-rounding", "--dimension", "2", "--environment", "gaussian:0.5", *ATTACK),
        "winners": ("attack", "early-cut", "--gap", "0.3", "--arms", "3", *ATTACK),
    },
    "calibration": {
        "arms": (
            *("calibrate", "random-threshold", "--arms", "2", "--horizon", "1e6", "--rho", "0.3"),
            *("--pairs-budget", "1000"),
        ),
        "winners": (
            *("calibrate", "early-cut", "--gap", "0.5", "--arms", "2", "--horizon", "1e6", "--rho", "0.3"),
            *("--pairs-budget", "1000"),
        ),
    },
    "reproduction": {
        "agrees": ("reproduce", "--quick", "--only", "lemma-7-design"),
        "conclusion": ("reproduce", "--quick", "--only", "conclusion"),
    },
    "replay": {
        "dry": ("replay", "ucb1", "--log", "rewards.csv", "--rho", "0.3", "--seed", "4"),
        "labs": (
            *("replay", "explore-then-commit", "--gap", "0.4", "--horizon", "1e4", "--log", "rewards.csv"),
            *("--rho", "0.4", "--split"),
        ),
        "coin": ("replay", "random-threshold", "--log", "rewards.csv", "--rho", "0.1"),
        "parted": ("replay", "ucb1", "--log", "rewards.csv", "--rho", "0.4", "--split"),
        "cut": ("replay", "certified-elimination", "--horizon", "1e5", "--log", "rewards.csv", "--rho", "0.4"),
    },
    "doctor": {"plain": ("doctor",)},
}


def spoken(*words: str) -> str:
    """What the command line prints for these words."""
    out, before = io.StringIO(), sys.argv
    sys.argv = ["banditto", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main(list(words))
    finally:
        sys.argv = before
    return out.getvalue()


def document(*words: str) -> dict[str, Any]:
    """The object that the command line prints, with nothing in it that tells of this machine."""
    content: dict[str, Any] = json.loads(spoken(*words, "--json"))
    versions = {name: VERSIONS.get(name) for name in content["versions"]}
    return content | NEUTRAL | {"versions": versions, "command": ["banditto", *words, "--json"]}


def recorded(schema: str, case: str, made: Callable[[], dict[str, Any]]) -> None:
    """Write a document unless it is there."""
    path = RECORDED / schema / f"{case}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(made(), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def stopped(done: int, total: int) -> None:
    """A progress that ends a run after its first block."""
    if done:
        raise KeyboardInterrupt


def interrupted() -> None:
    """Documents of runs that Ctrl-C ended."""
    printed = {"warnings": [], "versions": VERSIONS, **NEUTRAL, "command": ["banditto"]}
    policy, world = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.2), bd.Bernoulli([0.6, 0.4])
    recorded(
        "certificate",
        "interrupted",
        lambda: {**bd.certify(policy, world, pairs=10_000, progress=stopped).to_dict(), **printed},
    )

    def second(label: str, done: int, total: int) -> None:
        if label == "b" and done:
            raise KeyboardInterrupt

    recorded(
        "comparison",
        "interrupted",
        lambda: {
            "title": None,
            **bd.compare(
                [policy, bd.RandomThreshold(arms=2, horizon=10**6, rho=0.2, constants="paper")],
                world,
                labels=["a", "b"],
                pairs=2048,
                progress=second,
            ).to_dict(),
            **printed,
        },
    )

    def measuring(stage: str, done: int, total: int) -> None:
        if stage == "measuring" and done:
            raise KeyboardInterrupt

    recorded(
        "attack",
        "interrupted",
        lambda: {**bd.attack(policy, pairs_budget=20_000, progress=measuring).to_dict(), **printed},
    )
    claims = {"versions": VERSIONS, **NEUTRAL, "command": ["banditto"]}

    def first(label: str, done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    recorded(
        "reproduction",
        "interrupted",
        lambda: {**bd.reproduce(quick=True, only="definition-1", progress=first).to_dict(), **claims},
    )
    recorded("reproduction", "verdicts", lambda: {**some_rows().to_dict(), **claims})


def set_back(database: sqlite3.Connection, name: str) -> None:
    """Write the last event of an experiment's log as by a clock that was set back, with a hash that fits."""
    row = "SELECT id, events FROM banditto_experiment WHERE name = ?"
    key, number = database.execute(row, (name,)).fetchone()
    event = "SELECT kind, body, hash FROM banditto_event WHERE experiment = ? AND number = ?"
    kind, body, _ = database.execute(event, (key, number)).fetchone()
    _, _, previous = database.execute(event, (key, number - 1)).fetchone()
    time = "2026-01-01T00:00:00.000000+00:00"
    head = chained(previous, number, kind, time, body)
    changed = "UPDATE banditto_event SET time = ?, hash = ? WHERE experiment = ? AND number = ?"
    database.execute(changed, (time, head, key, number))
    database.execute("UPDATE banditto_experiment SET head = ? WHERE id = ?", (head, key))
    database.commit()


def live() -> None:
    """Documents of three runs of one protocol, in the order in which they come about."""
    spoken("certify", "certified-elimination", "--means", "0.6,0.4", *LIVE, "--out", "registered")
    run = ("--store", "sqlite:///trial.db")

    def says(schema: str, case: str, *words: str) -> dict[str, Any]:
        found = document(*words)
        recorded(schema, case, lambda: found)
        return found

    for name in ("cta", "other", "third"):
        says("init", "registered", "init", "registered/protocol.toml", *run, "--name", name, "--arm-names", "A,B")
    says("init", "leads", "init", "registered/protocol.toml", *run, "--name", "fourth", "--arm-names", "A,B")
    spoken("certify", "random-threshold", "--means", "0.6,0.4", *LIVE, "--out", "short")
    says("init", "coin", "init", "short/protocol.toml", *run, "--name", "fifth")
    says("verification", "begun", "verify", "cta", *run)
    says("verification", "steady", "verify", "cta", *run)
    says("pending", "none", "pending", "cta", *run)
    says("tickets", "issued", "ask", "cta", *run, "-n", "5", "--request-id", "r1")
    says("tickets", "asked-again", "ask", "cta", *run, "-n", "5", "--request-id", "r1")
    says("told", "recorded", "tell", "cta", "cta.1-1", "1", *run)
    says("told", "repeated", "tell", "cta", "cta.1-1", "1", *run)
    says("changed", "corrected", "correct", "cta", "cta.1-1", "0", "--reason", "typo", *run)
    says("changed", "missing", "missing", "cta", "cta.1-3", "--reason", "lost", *run)
    says("changed", "repeated", "missing", "cta", "cta.1-3", "--reason", "lost", *run)
    says("told", "excluded", "tell", "cta", "cta.1-3", "1", *run)
    says("pending", "some", "pending", "cta", *run)
    says("pending", "counted", "pending", "cta", *run)
    units = ("init", "registered/protocol.toml", *run, "--name", "units", "--arm-names", "A,B", "--fallback", "B")
    document(*units)
    document("ask", "units", *run, "-n", "5")
    says("tickets", "unit", "ask", "units", *run, "--unit", "ann")
    says("lost", "several", "missing", "units", "units.1-1", "units.1-2", "--reason", "lost", *run)
    says("lost", "again", "missing", "units", "units.1-1", "units.1-3", "--reason", "lost", *run)
    says("lost", "old", "missing", "units", "--older-than", "7d", "--reason", "lost", *run)
    document("stop", "units", "--reason", "enough", *run)
    says("tickets", "fallback", "ask", "units", *run, "--unit", "bob")
    plan = says("status", "running", "status", "cta", *run)["plan"]
    says("tickets", "rest", "ask", "cta", *run, "-n", str(sum(plan.values())))
    says("tickets", "waiting", "ask", "cta", *run)
    says("stopped", "recorded", "stop", "cta", "--reason", "enough", *run)
    says("stopped", "repeated", "stop", "cta", "--reason", "enough", *run)
    says("status", "stopped", "status", "cta", *run)
    says("tickets", "stopped", "ask", "cta", *run)
    says("verification", "good", "verify", "cta", *run)
    with contextlib.closing(sqlite3.connect("trial.db")) as database:
        set_back(database, "units")
    says("verification", "set-back", "verify", "units", *run)
    says("verification", "other-head", "verify", "cta", "--expect", "0" * 64, *run)
    says("export", "csv", "export", "cta", *run, "--save", "all.csv")
    says("export", "json", "export", "cta", *run, "--format", "json", "--save", "all.json")
    says("replication", "nothing", "replicate", "sqlite:///trial.db#cta", "sqlite:///trial.db#other")
    says("status", "begun", "status", "other", *run)
    for name, lead in (("other", 0.9), ("third", 0.1)):
        while (status := document("status", name, *run))["state"] == "running":
            lines = [
                f"{status['batch']},{arm},{count},{round(lead * count) if arm == 'A' else 0}\n"
                for arm, count in status["plan"].items()
            ]
            Path("totals.csv").write_text("batch,arm,count,total\n" + "".join(lines))
            says("told", "totals", "tell", name, "--totals", "totals.csv", *run)
    says("status", "finished", "status", "other", *run)
    says("status", "committed", "status", "other", *run)
    says("tickets", "finished", "ask", "other", *run)
    says("replication", "same", "replicate", "sqlite:///trial.db#other", "sqlite:///trial.db#other")
    says("replication", "parted", "replicate", "sqlite:///trial.db#other", "sqlite:///trial.db#third")
    rated = ("--gap", "0.05", "--rate-at-most", "0.1", "--means", "0.05,0.1", "--horizon", "20000", "--rho", "0.3")
    spoken("certify", "one-cut", *rated, "--pairs", "2", "--out", "rated")
    document("init", "rated/protocol.toml", *run, "--name", "rated", "--arm-names", "A,B")
    plan = says("status", "promised", "status", "rated", *run)["plan"]
    lines = [f"1,{arm},{count},{count // 4}\n" for arm, count in plan.items()]
    Path("totals.csv").write_text("batch,arm,count,total\n" + "".join(lines))
    document("tell", "rated", "--totals", "totals.csv", *run)
    says("status", "contradicted", "status", "rated", *run)
    says("status", "by-coin", "status", "rated", *run)
    spoken("certify", "early-cut", "--gap", "0.3", "--means", "0.6,0.4", *LIVE, "--out", "winner")
    for name, ones in (("first", 9), ("second", 8), ("back", 1)):
        document("init", "winner/protocol.toml", *run, "--name", name, "--arm-names", "A,B")
        while (status := document("status", name, *run))["state"] == "running":
            totals = {"A": ones, "B": 10 - ones}
            lines = [f"{status['batch']},{arm},{n},{totals[arm] * n // 10}\n" for arm, n in status["plan"].items()]
            Path("totals.csv").write_text("batch,arm,count,total\n" + "".join(lines))
            document("tell", name, "--totals", "totals.csv", *run)
    says("status", "winner", "status", "first", *run)
    says("status", "named", "status", "first", *run)
    says("analysis", "looks", "analyse", "first", *run)
    says("analysis", "committed", "analyse", "other", *run, "--confidence", "0.9")
    spoken(*COMMANDS["selection"]["lead"], "--store", "sqlite:///race.db#race")
    says("analysis", "tickets", "analyse", "sqlite:///race.db#race", "--not-binary")
    says("replication", "winners", "replicate", "sqlite:///trial.db#first", "sqlite:///trial.db#second")
    says("replication", "other-winner", "replicate", "sqlite:///trial.db#first", "sqlite:///trial.db#back")
    says("doctor", "store", "doctor", *run)
    with contextlib.closing(sqlite3.connect("trial.db")) as database:
        allow_tampering_with_file(database)
        database.execute("UPDATE banditto_event SET body = replace(body, 'typo', 'slip')")
        database.commit()
    says("verification", "bad-event", "verify", "cta", *run)
    says("doctor", "failed", "doctor", *run)


def record() -> None:
    """Record what is not there."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in FILES.items():
            Path(name).write_text(content)
        for schema, cases in COMMANDS.items():
            for case, words in cases.items():
                recorded(schema, case, partial(document, *words))
        interrupted()
        live()


if __name__ == "__main__":
    record()
