"""Documentation that cannot drift: names exist, links lead somewhere, examples run, numbers are today's."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import banditto as bd
from banditto import confidence, intervals
from banditto.coins import Coins

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_the_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for module, name in re.findall(r"`(confidence|intervals|Coins)\.(?!py\b)(\w+)", text):
        assert hasattr({"confidence": confidence, "intervals": intervals, "Coins": Coins}[module], name), name


def test_every_quantity_of_the_proof_is_on_its_page() -> None:
    text = (ROOT / "docs" / "random-threshold.md").read_text(encoding="utf-8")
    for name in ("log_factor", "width", "ladder", "gap_noise", "undecided_batches", "flip_probability"):
        assert f"`confidence.{name}`" in text
    assert "`confidence.comparison_rounding`" in text
    assert "`confidence.threshold_blowup`" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, timeout=120)


def test_command_lines_in_the_readme_run() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in blocks if not kind for line in block.splitlines() if line.startswith("banditto ")]
    assert len(lines) >= 4
    for line in lines:
        words = [sys.executable, "-m", *line.split()]
        assert subprocess.run(words, capture_output=True, timeout=120, check=False).returncode in (0, 3), line


def test_the_worked_example_is_what_the_code_computes() -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    log, samples, _ = confidence.ladder(2, 10**6, 0.5)
    assert samples[:4] == (2, 10, 34, 104)
    assert round(log, 3) == Decimal("17.767")
    assert policy.schedule.blowup == 29
    assert round(policy.guarantee().total, 4) == 0.0994
    assert bd.RandomThreshold(arms=10, horizon=10**10, rho=0.1).schedule.blowup == 13_210


def test_no_paths_of_a_machine_and_no_registries() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    for name in tracked:
        if name.endswith((".py", ".md", ".toml", ".cff", "Makefile", "run")):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not re.search(r"(?<![\w.])/(root|home|work)/", text), name
