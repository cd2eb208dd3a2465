"""Help pages, examples, completion and mistakes, as somebody meets them who has not read anything."""

from __future__ import annotations

import ast
import os
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from banditto.cli import completions
from banditto.cli.app import app
from banditto.cli.program import program
from banditto.cli.verbs import GROUPS, VERBS
from banditto.problems.policy_names import policy_names
from tests.commands import banditto

pytestmark = pytest.mark.slow


def test_the_list_of_verbs_has_groups_and_a_line_each() -> None:
    page = banditto("--help", env=os.environ | {"COLUMNS": "80"}).stdout
    assert re.findall(r"^(\w+):$", page, re.MULTILINE) == [*GROUPS, "Options"]
    assert list(GROUPS) == ["Simulate", "Plan", "Live", "Inspect"]
    for name, verb in VERBS.items():
        assert re.search(rf"^  {name} +{re.escape(verb.summary)}$", page, re.MULTILINE), name
    assert max(map(len, page.splitlines())) <= 80


def test_no_words_are_the_help_and_a_usage_error() -> None:
    done = banditto()
    assert (done.returncode, done.stdout, done.stderr) == (2, banditto("--help").stdout, "")


@pytest.mark.parametrize("width", ["60", "80", "140"])
def test_every_page_fits_and_shows_flags_as_flags(width: str) -> None:
    for name, verb in VERBS.items():
        page = banditto(name, "--help", env=os.environ | {"COLUMNS": width}).stdout
        lines = [line for line in page.splitlines() if verb.example not in line]
        assert max(map(len, lines)) <= min(int(width), 100), name
        assert f"\nExample:\n  {verb.example}\n" in page
        assert "  --json " in page
        assert "bool" not in page
        assert "<str>" not in page
        assert "\\[" not in page


def test_what_is_required_is_marked_and_is_required() -> None:
    for name in VERBS:
        command = program(app).commands[name]
        page = " ".join(banditto(name, "--help").stdout.split())
        needed = [parameter for parameter in command.params if parameter.required]
        stores = [p for p in command.params if p.name == "store" and "[required; env var" in (p.help or "")]
        assert page.count("[required") == len(needed) + len(stores), name
        for parameter in needed:
            word = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
            assert word in page.partition("[OPTIONS]")[0], name
        if needed:
            refused = banditto(name)
            assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
            assert re.match(r"banditto: error: \S+: got nothing, allowed: [a-zU]", refused.stderr), refused.stderr


def test_out_is_a_folder_and_save_and_figure_are_files_wherever_they_are() -> None:
    meant: dict[str, set[str]] = {}
    for name in VERBS:
        for parameter in program(app).commands[name].params:
            for option in parameter.opts:
                meant.setdefault(option, set()).add(parameter.metavar)
    assert (meant["--out"], meant["--save"], meant["--figure"]) == ({"DIR"}, {"FILE"}, {"FILE"})
    assert "--plot" not in meant


def example_files(folder: Path) -> None:
    """What the examples are about: a log, arms with features, callables."""
    rows = "".join(f"{arm},{int(k % 10 < good)}\n" for k in range(2000) for arm, good in (("a", 4), ("b", 7)))
    (folder / "rewards.csv").write_text("arm,reward\n" + rows)
    (folder / "arms.csv").write_text("1,0\n0,1\n0.6,0.8\n")
    (folder / "prompts.py").write_text(
        "def old(rng):\n    return float(rng.random() < 0.4)\ndef new(rng):\n    return float(rng.random() < 0.7)\n"
    )


LONG = {"attack", "calibrate", "serve"}  # these run for many seconds, or until somebody stops them


def test_the_examples_of_the_help_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example_files(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    codes: dict[str, int] = {}
    order = ["plan", "init", "ask", "tell", "correct", "export", "stop", *VERBS]
    for name in dict.fromkeys(order):
        if name in LONG:
            continue
        program_name, *words = shlex.split(VERBS[name].example)
        assert (program_name, words[0]) == ("banditto", name)
        if name == "replicate":
            log = ("export", "button", "--store", "sqlite:///trial.db", "--format", "json", "--save", "second-lab.json")
            assert banditto(*log, cwd=tmp_path).returncode == 0
        codes[name] = banditto(*words, cwd=tmp_path).returncode
    # a run of one ticket has nothing to analyse and no decision to compare
    assert codes == {name: {"analyse": 2, "replicate": 3}.get(name, 0) for name in codes}


@pytest.mark.long
def test_the_long_examples_run(tmp_path: Path) -> None:
    for name in LONG - {"serve"}:
        assert banditto(*shlex.split(VERBS[name].example)[1:], cwd=tmp_path).returncode == 0


def test_names_that_the_shell_knows_are_those_that_there_are() -> None:
    """They stand in the command line a second time, where reading them loads nothing."""
    from banditto.paper.claims import claims
    from banditto.service.tokens import SCOPES

    assert [claim.name for claim in claims()] == list(completions.CLAIMS)
    assert completions.SCOPES == SCOPES


def completed(words: str) -> list[str]:
    """What bash gets for the last of these words, through typer's own ShellComplete."""
    from typer._completion_classes import BashComplete

    made: Any = program(app)
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in asked.items():
            patch.setenv(name, value)
        return BashComplete(made, {}, "banditto", "_BANDITTO_COMPLETE").complete().split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("banditto re", ["replay", "reproduce", "replicate"]),
        ("banditto certify ran", ["random-threshold", "random-threshold:paper"]),
        ("banditto plan one", ["one-cut"]),
        ("banditto compare --policies ucb1,one", ["ucb1,one-cut"]),
        ("banditto export cta --format ", ["csv", "parquet", "json", "html"]),
        ("banditto reproduce --only theorem-6-r", ["theorem-6-rho", "theorem-6-rho-fixed-gap"]),
        ("banditto certify one-cut --environment g", ["gaussian:"]),
        ("banditto plan --same w", ["winner"]),
        ("banditto design --action-set b", ["ball", "box"]),
        ("banditto token cr", ["create"]),
        ("banditto token create --scope a", ["ask", "admin"]),
        ("banditto certify one-cut --unt", ["--until-settled"]),
        ("banditto --ver", ["--version"]),
    ],
)
def test_the_shell_completes(words: str, wanted: list[str]) -> None:
    assert completed(words) == wanted


def test_all_policies_complete() -> None:
    assert completed("banditto certify ") == policy_names()
    assert {"one-cut", "early-cut", "ucb1", "random-threshold:paper"} <= set(policy_names())


CERTIFY = "certify one-cut --means 0.6,0.5 --gap 0.1 --horizon 1e5 --rho 0.2"
MISTAKES = {
    "certfy": "COMMAND: got 'certfy', allowed: did you mean 'certify'?",
    "certify": "POLICY: got nothing, allowed: a policy such as one-cut",
    "--verbose": "--verbose: got an unknown option, allowed: what `banditto --help` lists",
    "certify onecut --means 0.6,0.5 --horizon 1e5 --rho 0.2": "POLICY: got onecut, allowed: ",
    f"{CERTIFY} --pair 10": "--pair: got an unknown option, allowed: --pairs",
    f"{CERTIFY} --pairs": "--pairs: got nothing, allowed: how many pairs of executions to play",
    f"{CERTIFY} --pairs ten": "--pairs: got ten, allowed: ",
    f"{CERTIFY} --pairs -5": "--pairs: got -5, allowed: ",
    f"{CERTIFY} --json=yes": "--json: got --json=yes, allowed: --json alone",
    f"{CERTIFY} --rho 20%": "--rho: got 20%, allowed: ",
    f"{CERTIFY} --horizon 1.5": "--horizon: got 1.5, allowed: ",
    "certify one-cut --means 0.6 0.5 --gap 0.1 --horizon 1e5 --rho 0.2": "certify: got '0.5' too many, allowed: POLICY",
    "certify one-cut --means 60,50 --gap 0.1 --horizon 1e5 --rho 0.2": "--means: got ",
    "certify one-cut --means 0.6,0.5 --horizon 1e5 --rho 0.2": "--gap: got nothing, allowed: ",
    "certify nowhere.toml --means 0.6,0.5": "POLICY: got nowhere.toml, allowed: ",
    "compare --means 0.6,0.5 --horizon 1e5 --rho 0.2": "--policies: got nothing, allowed: ",
    "compare demo.toml": "STUDY: got demo.toml, allowed: ",
    "plan": "--arms: got nothing, allowed: ",
    "plan --arms two --gap 0.1 --rho 0.2": "--arms: got two, allowed: ",
    "plan --arms 2 --gap 0.1 --rho 0.2 --save plan": "--save: got 'plan', allowed: a file that ends in .toml",
    "select old=prompts:old --gap": "--gap: got nothing, allowed: the smallest lead that matters, such as 0.02",
    "select --gap 0.1": "NAME=MODULE:CALLABLE: got nothing, allowed: ",
    "init": "PROTOCOL: got nothing, allowed: ",
    "ask": "NAME: got nothing, allowed: the name of the experiment",
    "ask cta": "--store: got nothing, allowed: a URL such as sqlite:///trial.db",
    "ask cta --store trial.db": "--store: got trial.db, allowed: ",
    "stop cta --store sqlite:///trial.db": "--reason: got nothing, allowed: some words that will stand in the log",
    "verify cta": "--store: got nothing, allowed: ",
    "replicate a.json": "RUN: got nothing, allowed: another run of the same protocol",
    "export cta --format xlsx --store sqlite:///t.db": "--format: got xlsx, allowed: csv, parquet, json, html",
    "token make": "ACTION: got make, allowed: create, list, revoke",
    "reproduce --only theorem-99": "--only: got theorem-99, allowed: ",
    "policies one-cut": "policies: got 'one-cut' too many, allowed: options alone",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line_that_names_argument_given_and_allowed(words: str, tmp_path: Path) -> None:
    done = banditto(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"banditto: error: {MISTAKES[words]}"), done.stderr
    as_json = banditto(*words.split(), "--json", cwd=tmp_path).stderr
    assert as_json.count("\n") == 1


def test_a_word_in_another_encoding_is_refused(tmp_path: Path) -> None:
    done = banditto("certify", "caf\udce9.toml", "--means", "0.6,0.5", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(
        "banditto: error: POLICY: got 'caf\\udce9.toml', allowed: text in the encoding of this"
    )


def test_summaries_and_modules_are_those_of_functions() -> None:
    for name, verb in VERBS.items():
        tree = ast.parse(Path(str(import_module(f"banditto.cli.{verb.module}").__file__)).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
