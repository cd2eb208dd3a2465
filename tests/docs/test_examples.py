"""The scripts, the demo and the ribbon picture. Figures are checked by eye; here that they say what happened."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples.certify_in_batches import Commit
from matplotlib.image import imread
from scipy.special import bdtrc

import banditto as bd
from banditto.engine.watching import PairView
from banditto.measure.study_file import StudyFile
from banditto.report.ribbons import ribbon_figure, save_ribbons
from banditto.testing import BATCHED_CHECKS
from tests.commands import python

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = StudyFile.load(str(EXAMPLES / "demo.toml"))


def views() -> list[tuple[str, PairView]]:
    built = DEMO.built()
    chosen = [(label, p) for label, p in zip(built.labels, built.policies, strict=True) if label != "thompson"]
    labels, policies = zip(*chosen, strict=True)
    compared = bd.compare(
        policies, built.environment, labels=labels, horizon=DEMO.horizon, pairs=1, seed=DEMO.seed or 0, curves=True
    )
    return [(row.label, row.view) for row in compared.entrants if row.view is not None]


def test_the_demo_shows_agreement_and_disagreement(tmp_path: Path) -> None:
    found = {label: view.same for label, view in views()}
    assert found["random-threshold"]
    assert found["certified-elimination"]
    assert not found["ucb1"]
    pair = [(label, view) for label, view in views() if label in ("random-threshold", "ucb1")]
    save_ribbons(tmp_path / "ribbons.png", pair, (0.5, 0.9, 0.8, 0.3))
    pixels = imread(tmp_path / "ribbons.png")
    assert pixels.shape[1] == 1500
    red = np.array([0xD7, 0x26, 0x1E]) / 255
    reddish = np.asarray(np.all(np.abs(pixels[..., :3] - red) < 0.02, axis=-1))
    top, bottom = reddish[: pixels.shape[0] // 2 - 60], reddish[pixels.shape[0] // 2 :]
    assert not top.any()
    assert bottom.any()
    titles = [axes.get_title(loc="left") for axes in ribbon_figure(pair, (0.5, 0.9, 0.8, 0.3)).axes]
    assert titles == ["random-threshold: every pull the same", "ucb1: the two labs part ways"]
    figure = ribbon_figure(pair, (0.5, 0.9, 0.8, 0.3), agreement=(0.69, 0.0))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "random-threshold: this pair agrees; 69.0% of pairs do",
        "ucb1: this pair parts; 0.0% of pairs agree",
    ]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1


def test_arms_have_their_names_in_the_legend() -> None:
    view = bd.watch_pair(bd.UCB1(), bd.Bernoulli([0.2, 0.7]), horizon=100)
    legend = ribbon_figure([("x", view)], (0.2, 0.7), arm_names=("free", "25%")).legends[0]
    assert [text.get_text() for text in legend.get_texts()][:2] == ["free (mean 0.2)", "25% (mean 0.7)"]


@pytest.mark.parametrize("arms", [2, 9])
def test_any_number_of_arms_can_be_drawn(arms: int, tmp_path: Path) -> None:
    means = np.linspace(0.1, 0.9, arms).tolist()
    policy = bd.RandomThreshold(arms=arms, horizon=10**9, rho=0.2)
    save_ribbons(tmp_path / "x.png", [("x", bd.watch_pair(policy, bd.Bernoulli(means), points=50))], means)
    assert (tmp_path / "x.png").stat().st_size > 5000


# What each script prints. Rewards may be drawn otherwise by another NumPy, so verdicts are checked only where the rate
# is more than eight standard errors from what would change them: false-failure rate at most 1e-15 each.
PRINTED = {
    "first_comparison": (
        r"^certified-elimination +100,000,000 +500 .* PASS$",
        r"^thompson: \d% of pairs agree to the last of 5,000 pulls\.$",
    ),
    # its rewards and coins are made of words that no library can change, so that it prints the same everywhere
    "certify_your_own_policy": (
        r"^cuts from a window of 0\.0:  60% .*: FAIL$",
        r"^cuts from a window of 0\.4:  92% .*: PASS$",
    ),
    "certify_in_batches": (r"^cells of 1e-09: .*: FAIL$", r"^cells of   0\.3: .*: PASS$"),
    "custom_environment": (
        r"pays on average 0\.180, 0\.300, 0\.135$",
        r"^certified-elimination .* PASS$",
        r"^ucb1 .* FAIL$",
    ),
    "plan_a_trial": (r"^  0\.3 .* [0-9a-f]{12}$", r"^ 0\.03 ", r"^  batch 1: \d+ patients for each of them$"),
    "live_trial": (r"^\d+ events, verified\n\d+ events, verified\nThe same \d decisions\.$",),
    "linear_polytope": (
        r"^  0\.7 and 0\.2 for 12% of the patients$",
        r"^The best doses are 0\.7 and 0\.2: 74% succeed\.$",
    ),
    "real_data": (r"^free +98,080 +6,822 +6,822 +0\.7819$", r"^All 100,000 pulls are decided\.", r"^verdict +PASS$"),
    "select_classifiers": (
        r"^here: neighbours, after [\d,]+ samples\n\n",
        r"^there: neighbours, after ",
        r"^proved  two labs name different winners with probability 0\.1 at the most$",
    ),
    "select_scorers": (r"^balance +0\.\d+ +\d+  winner", r"^level   winner: "),
    "select_simulator": (r"^medium +0\.\d+ +[\d,]+  winner", r"\nmedium\n$"),
    "second_lab": (
        r"^First run: [0-9a-f]{16} here, [0-9a-f]{16} in the second lab\.$",
        r"of 40 runs are the same in both labs",
    ),
}


def in_a_process(path: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-W", "error", str(path)]
    return subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def printed() -> Callable[[str], str]:
    """What a script prints; it runs once; the one that starts itself again runs as a reader would run it."""

    @cache
    def run(name: str) -> str:
        path = EXAMPLES / f"{name}.py"
        done = in_a_process(path) if name == "second_lab" else python(path.read_text(encoding="utf-8"))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def test_every_script_is_tested_and_on_its_page() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*PRINTED, "__init__"}
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    for name in PRINTED:
        assert f"](../examples/{name}.py)" in page


# the others in make check-long
FIRST = ("first_comparison", "certify_in_batches", "certify_your_own_policy", "custom_environment")


@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.long) for name in PRINTED]
)
def test_a_script_runs_and_prints(name: str, printed: Callable[[str], str]) -> None:
    for pattern in PRINTED[name]:
        assert re.search(pattern, printed(name), flags=re.MULTILINE), pattern


@pytest.mark.parametrize("name", PRINTED)
def test_a_script_is_short_and_uses_public_names(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    assert text.startswith('"""')
    assert '\nif __name__ == "__main__":\n' in text
    assert set(re.findall(r"^(?:from|import) (banditto[\w.]*)", text, flags=re.MULTILINE)) <= {
        "banditto",
        "banditto.testing",
    }
    assert set(re.findall(r"\bbd\.(\w+)", text)) <= set(bd.__all__)
    assert not re.findall(r"^(?:from|import) (?:examples|tests|docs|benchmarks)\b", text, flags=re.MULTILINE)


def test_the_second_lab_does_what_the_first_did(printed: Callable[[str], str]) -> None:
    """Runs differ with probability 0.1 at most.

    False-failure rate: 16 of 40 or more differ with probability 6e-7. Detectable: labs that differ in half of their
    runs are refused with probability 0.9.
    """
    found = re.search(r"^(\d+) of 40 runs", printed("second_lab"), flags=re.MULTILINE)
    assert found is not None
    assert 40 - int(found[1]) < 16
    assert bdtrc(15, 40, 0.1) <= 1e-6
    assert bdtrc(15, 40, 0.5) >= 0.9


@pytest.mark.long
def test_what_the_plans_cost(printed: Callable[[str], str]) -> None:
    """A smaller rho takes more patients and costs more, and each bound is at most its rho."""
    rows = re.findall(r"^ +(0\.\d+) +([\d,]+) +([\d,]+) +(0\.\d+) ", printed("plan_a_trial"), flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["0.3", "0.1", "0.03"]
    assert all(float(bound) <= float(rho) for rho, _, _, bound in rows)
    for column in (1, 2):
        values = [int(row[column].replace(",", "")) for row in rows]
        assert values == sorted(set(values))


def test_the_short_policy_passes_all_checks_but_those_that_the_page_names() -> None:
    refused = []
    for check in BATCHED_CHECKS:
        try:
            check(Commit(0.3))
        except (AssertionError, TypeError) as error:
            refused.append((check.__name__, str(error)))
    assert [name for name, _ in refused] == ["check_array_standard", "check_protocol_round_trip"]
    assert refused[1][1] == "Commit has no classmethod from_protocol(protocol)"
