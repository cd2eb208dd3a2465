"""docs/add-a-policy.md, followed to the letter in a copy of the repository: what it says is all that it takes.

The copy is a repository after the page's four steps; the contract suite, linters and the command line are run in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add-a-policy.md").read_text(encoding="utf-8")
# a block runs to a line with as many backticks as it began with
BLOCKS: dict[str, str] = {
    title: text
    for _, title, text in re.findall(r'^(`{3,})\w+ title="(.*?)"\n(.*?)^\1$', PAGE, flags=re.DOTALL | re.MULTILINE)
}
REGISTRY = "src/banditto/policies/__init__.py"
FILES = ("src/banditto/policies/rounded_commit.py", "tests/policies/test_rounded_commit.py", "docs/rounded-commit.md")
PLACES = {  # where the page says that a line of the registry belongs: from here to there
    "under TYPE_CHECKING": ("if TYPE_CHECKING:\n", "\n__all__"),
    "in __all__": ("__all__ = [\n", "]\n"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository after steps 1 to 4."""
    folder = tmp_path_factory.mktemp("copy") / "banditto"
    ignored = shutil.ignore_patterns("__pycache__", "figures", "golden_protocols", "golden.json", ".*")
    for name in ("src", "tests", "docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for file in (*ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "LICENSE"):
        shutil.copy(file, folder)
    for name in FILES:
        assert not (folder / name).exists(), "the page must add what is not there"
        (folder / name).write_text(BLOCKS[name], encoding="utf-8")
    text = (folder / REGISTRY).read_text(encoding="utf-8")
    for place, (before, after) in PLACES.items():
        start = text.index(before) + len(before)
        end = text.index(after, start)
        lines = [*text[start:end].splitlines(keepends=True), BLOCKS[f"{REGISTRY}, {place}"]]
        text = text[:start] + "".join(sorted(lines)) + text[end:]  # in alphabetical order
    assert text.endswith("\n}\n")
    text = text.removesuffix("}\n") + BLOCKS[f"{REGISTRY}, in REGISTRY"] + "}\n"
    (folder / REGISTRY).write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, *command: str, where: Path | None = None) -> str:
    """What a command prints that finds banditto in a folder; it must end well."""
    variables = os.environ | {"PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=where or folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=600,  # compiled code is made anew in the copy
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_four_files_and_one_test_for_outside() -> None:
    expected = {*FILES, *(f"{REGISTRY}, {place}" for place in (*PLACES, "in REGISTRY")), "test_mine.py"}
    assert set(BLOCKS) == expected


def test_the_page_begins_with_a_class_in_plain_python_that_prints_what_it_says() -> None:
    code, printed = re.findall(r"^```(?:python|text)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)[:2]
    assert PAGE.index(code) < PAGE.index("## In four files")
    found = re.search(r"^class EpsilonGreedy:.*?(?=\n\n\n)", code, flags=re.DOTALL | re.MULTILINE)
    assert found is not None
    assert len(found[0].splitlines()) <= 15
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.long
def test_the_new_tests_and_those_that_look_at_the_registry_pass(copy: Path) -> None:
    """The contract suite, and every test that a policy can break by being there."""
    printed = run(
        *(copy, "pytest", "-p", "no:cacheprovider", "-rs", "tests/policies/test_rounded_commit.py"),
        *(
            "tests/test_public_api.py",
            "tests/docs/test_docs.py",
            "tests/measure/test_plan.py",
            "tests/cli/test_cli.py",
        ),
        *("-k", "rounded or unlisted or not_listed or names or signatures or its_page or curves_have or test_policies"),
    )
    assert "skipped" not in printed
    found = re.search(r"(\d+) passed", printed)
    assert found is not None
    assert int(found[1]) > 100


@pytest.mark.long
def test_linters_and_types_are_content(copy: Path) -> None:
    changed = [REGISTRY, *(name for name in FILES if name.endswith(".py"))]
    run(copy, "ruff", "check", "--no-cache", *changed)
    run(copy, "ruff", "format", "--no-cache", "--check", *changed)
    assert "no issues found in 3 source files" in run(copy, "mypy", *changed)


def test_layers_are_kept(copy: Path) -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    variables = os.environ | {"PYTHONPATH": str(copy / "src")}
    command = [sys.executable, "-c", code]

    def lint() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=copy, env=variables, capture_output=True, text=True, timeout=600, check=False
        )

    done = lint()
    assert done.returncode == 0, done.stdout
    module = copy / FILES[0]
    kept = module.read_text(encoding="utf-8")
    module.write_text(f"{kept}\nfrom banditto.measure import certify\n", encoding="utf-8")
    broken = lint()
    module.write_text(kept, encoding="utf-8")
    assert broken.returncode == 1  # so it was this copy that was looked at
    assert "banditto.policies.rounded_commit -> banditto.measure.certify" in broken.stdout


@pytest.mark.long
def test_the_command_line_knows_it(copy: Path) -> None:
    """Verdicts are far from being others (0.1 is seven standard errors above the attack's 0.094): rate below 1e-9."""
    listed = json.loads(run(copy, "banditto", "policies", "--json"))["policies"]
    assert [row["kind"] for row in listed if row["name"] == "rounded-commit"] == ["replicable"]
    words = re.findall(r"^banditto (.*rounded-commit.*)$", PAGE, flags=re.MULTILINE)
    assert [line.split()[0] for line in words] == ["certify", "attack"]
    for line in words:
        found = json.loads(run(copy, "banditto", *line.split(), "--json"))
        assert found["policy"] == "rounded-commit"
        assert found["verdict"] == "PASS"


@pytest.mark.long
def test_outside_the_repository(tmp_path: Path) -> None:
    """The same module in a folder of its own, and this very banditto, which does not list it."""
    (tmp_path / "rounded_commit.py").write_text(BLOCKS[FILES[0]], encoding="utf-8")
    (tmp_path / "test_mine.py").write_text(BLOCKS["test_mine.py"], encoding="utf-8")
    printed = run(ROOT, "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py", where=tmp_path)
    assert re.search(r"(\d+) passed", printed)
