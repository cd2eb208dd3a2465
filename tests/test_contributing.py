"""What contributors meet: the workflow, hooks, forms and the changelog are valid and say what is so."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def read(path: Path) -> Any:
    yaml: Any = import_module("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def check(tool: str, *arguments: object) -> None:
    """Run a tool of this environment, or of the path; one that is not installed checks nothing."""
    found = shutil.which(tool, path=sysconfig.get_path("scripts")) or shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    command = [found, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_and_forms_are_there() -> None:
    assert [path.name for path in WORKFLOWS] == ["tests.yml"]
    assert [path.stem for path in FORMS] == ["bound-exceeded", "bug", "idea"]


def test_the_workflow_fits_its_schema() -> None:
    check("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_forms_fit_their_schema() -> None:
    check("check-jsonschema", "--builtin-schema", "vendor.github-issue-forms", *FORMS)


def test_the_workflow_is_safe() -> None:
    check("zizmor", "--offline", "--no-config", *WORKFLOWS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_jobs_have_limits(path: Path) -> None:
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert PINNED.search(line), line
    workflow = read(path)
    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    for job in workflow["jobs"].values():
        assert job["permissions"] == {"contents": "read"}
        assert 0 < job["timeout-minutes"] <= 90


def test_the_workflow_tries_every_python_that_is_claimed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    matrix = read(GITHUB / "workflows" / "tests.yml")["jobs"]["newest"]["strategy"]["matrix"]
    assert project["requires-python"] == f">={matrix['python'][0]}"
    assert set(claimed) <= set(matrix["python"])
    assert [row["system"] for row in matrix["include"]] == matrix["system"]
    for word in " ".join(row["without"] for row in matrix["include"]).split():
        assert (ROOT / word.removeprefix("--ignore=")).exists(), word


def test_hooks_run_what_make_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)
    assert recipe is not None
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.group(1).splitlines()]
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == commands
    for hook in repository["hooks"]:
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)


def test_the_changelog_is_dated_and_begins_with_what_is_unreleased() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *releases = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert first == "Unreleased"
    dates = []
    for release in releases:
        version, date = release.split(" - ")
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
        dates.append(datetime.date.fromisoformat(date))
    assert dates
    assert dates == sorted(dates, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, flags=re.MULTILINE)) <= kinds


# -- benchmarks ------------------------------------------------------------------------------------------------------

BENCHMARKS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in ("__init__", "run"))


def run_benchmark(path: Path, *options: str) -> str:
    """As a reader would, from the root of the repository."""
    command = [sys.executable, str(path.relative_to(ROOT)), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_every_benchmark_is_listed_and_says_what_it_shows(path: Path) -> None:
    table = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert f"`{path.name}`" in table
    text = path.read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    if path.stem == "measure":
        assert "usage: " in run_benchmark(path)
        return
    assert re.match(r'"""\(\w+\).* minutes?\.', first), first
    for letter in set(re.findall(r'f?"(?:      )?\((\w+)\) ', text)):
        assert re.search(rf"^\| .*\b{letter}\b.*`{path.name}`", table, flags=re.MULTILINE), letter


@pytest.mark.long
@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_every_benchmark_runs_by_itself(path: Path) -> None:
    if path.stem != "measure":
        assert "--quick: small sizes" in run_benchmark(path, "--quick")


def test_all_benchmarks_are_run_by_make_bench() -> None:
    from benchmarks import run

    names = {part.__name__.rpartition(".")[2] for part in run.PARTS}
    assert names == {path.stem for path in BENCHMARKS} - {"measure"}
