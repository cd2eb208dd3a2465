"""What a command loads: nothing that it does not need. How long it takes is for benchmarks/start_up.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from banditto.cli.verbs import VERBS
from tests.commands import banditto

pytestmark = pytest.mark.slow

HEAVY = {"numpy", "scipy", "numba", "matplotlib", "sqlalchemy", "pydantic", "rich", "fastapi", "highspy"}
OF_VERBS = {verb.module for verb in VERBS.values()}
SCRIPT = """
import sys
from banditto.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(sys.modules), file=open("loaded.txt", "w"))
"""


def loaded(folder: Path, *words: str, **variables: str) -> tuple[int, set[str]]:
    """The exit code of a command in a process of its own, and the modules that were loaded when it ended."""
    run = [sys.executable, "-c", SCRIPT, *words]
    done = subprocess.run(run, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=600)
    assert "Traceback" not in done.stderr
    return done.returncode, set((folder / "loaded.txt").read_text().split())


@pytest.mark.parametrize(
    ("words", "code", "verbs"),
    [
        ("--version", 0, set()),
        ("--help", 0, set()),
        ("", 2, set()),
        ("certfy", 2, set()),
        ("policies", 0, {"policies"}),
        ("certify", 2, {"certify"}),
        ("certify one-cut --mean 0.5,0.4", 2, {"certify"}),
        ("certify --help", 0, {"certify"}),
        ("plan --help", 0, {"plan"}),
        ("serve --help", 0, {"serve"}),
        ("status", 2, {"status_pending"}),
        ("ask cta", 2, {"ask_tell"}),
        ("export cta --format xls", 2, {"export"}),
    ],
)
def test_commands_that_compute_nothing_load_no_large_library(
    words: str, code: int, verbs: set[str], tmp_path: Path
) -> None:
    found, modules = loaded(tmp_path, *words.split())
    assert found == code
    assert not HEAVY & modules
    assert {name for name in OF_VERBS if f"banditto.cli.{name}" in modules} == verbs


@pytest.mark.parametrize("verb", ["ask", "tell", "status", "pending"])
def test_a_step_of_an_experiment_loads_numpy_and_sqlalchemy_and_none_of_the_others(verb: str, tmp_path: Path) -> None:
    store = ("--store", "sqlite:///trial.db")
    plan = ("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.2", "--save", "plan.toml", "--quiet")
    assert banditto(*plan, cwd=tmp_path).returncode == 0
    assert banditto("init", "plan.toml", "--name", "cta", *store, cwd=tmp_path).returncode == 0
    assert banditto("ask", "cta", *store, cwd=tmp_path).returncode == 0
    reward = ("cta.1-1", "1") if verb == "tell" else ()
    code, modules = loaded(tmp_path, verb, "cta", *reward, *store)
    assert code == 0
    assert HEAVY & modules == {"numpy", "sqlalchemy"}
    assert "sqlalchemy.dialects.postgresql" not in modules
    assert "banditto.engine.blocks" not in modules


def test_a_shell_that_completes_loads_no_large_library(tmp_path: Path) -> None:
    for words in (
        "banditto ",
        "banditto certify ran",
        "banditto compare --policies one-cut,",
        "banditto reproduce --only the",
    ):
        asked = {"_BANDITTO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        code, modules = loaded(tmp_path, **asked)
        assert code == 0
        assert not HEAVY & modules


def test_a_variable_is_read_as_a_flag() -> None:
    """Such as typer reads it, with the library that nothing else needs."""
    words = (
        "certify",
        "certified-elimination",
        "--means",
        "0.5,0.52",
        "--horizon",
        "1e4",
        "--rho",
        "0.1",
        "--pairs",
        "5",
    )
    assert "a coin would do as well" in banditto(*words).stderr
    assert banditto(*words, env=os.environ | {"BANDITTO_QUIET": "1"}).stderr == ""
    assert "BANDITTO_QUIET" in banditto(*words, env=os.environ | {"BANDITTO_QUIET": "much"}).stderr
