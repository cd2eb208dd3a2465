"""Pages of algorithms: when to use one, how to run it, then the theorem; their figures and commands are today's."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

import banditto as bd
from banditto import policies
from banditto.core.errors import ShortHorizonWarning
from tests.commands import banditto

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# every policy that has its line in mkdocs.yml, and the estimates and designs that policies are built on
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
POLICIES = [name for name in sorted(policies.REGISTRY) if f": {name}.md\n" in NAVIGATION]
PAGES = [*POLICIES, "replicable-mean", "least-squares", "design", "lower-bounds"]
LENGTHY = {
    "baselines",
    "certified-elimination",
    "certified-linear",
    "least-squares-rounding",
}  # whose commands take seconds
SPEC = re.compile(r"`(banditto (?:certify|compare) [^`]+)`")


def text_of(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_when_then_how_then_why(page: str) -> None:
    text = text_of(page)
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings[:2] == ["When to use it", "How to run it"]
    when, rest = text.split("\n## How to run it\n")
    how = rest.split("\n## ")[0]
    # the question that every reader comes with: which of these is for a test of page versions, and which is not
    assert re.search(r"four (page )?versions|Four versions", when), page
    assert "```python\n" in how
    stated = [place for place in map(text.find, ("\n## The theorem", "\n### Theorem 1", "\n## Constants")) if place > 0]
    assert page == "net-threshold" or min(stated) > len(when)  # the net has no theorem of its own


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.long) if page in LENGTHY else page for page in (*PAGES, "baselines")],
)
def test_a_pages_commands_run(page: str, tmp_path: Path) -> None:
    """Those in a sentence and those on a line of their own, with fewer pairs than there."""
    (tmp_path / "arms.csv").write_text("0.9,0.1\n0.2,0.7\n-0.5,0.5\n")
    text = text_of(page)
    lines = [*SPEC.findall(text), *re.findall(r"^(banditto (?:certify|compare) .+)$", text, flags=re.MULTILINE)]
    assert lines or page in ("net-threshold", *PAGES[len(POLICIES) :])
    for line in lines:
        done = banditto(*line.split()[1:], "--pairs", "8", cwd=tmp_path)
        assert done.returncode in (0, 3), (line, done.stderr)


def test_what_pages_say_of_four_versions_of_a_page() -> None:
    """Four versions, 5% against 6%, no rate above 10%, rho = 0.3: the figures by which a reader chooses."""
    repeated = bd.OneCut(arms=4, horizon=200_000, rho=0.3, gap=0.01, rate_at_most=0.1)
    assert (repeated.pulls_per_arm, repeated.minimum_horizon()) == (36_721, 146_884)
    assert repeated.reached_power >= 0.95
    assert "each version to 36,721 visitors, 146,884 in all" in text_of("one-cut")
    assert "takes 146,884" in text_of("lower-bounds")
    named = bd.EarlyCut(arms=4, horizon=200_000, rho=0.3, gap=0.01, rate_at_most=0.1)
    assert 4 * named.cap == 177_992
    assert "after 177,992 at most" in text_of("early-cut")
    least, adaptive = (
        bd.lower_bound(arms=4, gap=0.01, rho=0.3, rewards="bounded", kind="one-batch", rate_at_most=0.1),
        bd.lower_bound(arms=4, gap=0.01, rho=0.3, rewards="bounded", kind="adaptive", rate_at_most=0.1),
    )
    assert (least.per_arm, least.total, adaptive.total) == (7_063, 28_252, 4_482)
    for figure in ("7,063", "28,252", "4,482"):
        assert figure in text_of("lower-bounds")


@pytest.mark.parametrize("page", ["certified-elimination", "random-threshold", "mean-rounding", "explore-then-commit"])
def test_prices_of_four_versions_are_those_of_the_table(page: str) -> None:
    """The row of rho = 0.3 in the table of cost.md, in words."""
    said = {
        "certified-elimination": (1.57e6, "1.57 million visitors"),
        "random-threshold": (3.82e8, "382 million visitors"),
        "mean-rounding": (1.16e8, "116 million\nvisitors"),
        "explore-then-commit": (8.73e4, "87,000 visitors"),
    }
    price, words = said[page]
    assert words in text_of(page)
    (head,) = re.findall(r"^\| rho \| (certified-elimination .+) \|$", text_of("cost"), flags=re.MULTILINE)
    (row,) = re.findall(r"^\| 0\.3 \| (.+e.+) \|$", text_of("cost"), flags=re.MULTILINE)
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert float(cells[page].split(" ")[0]) == price
    assert cells["one-cut"].startswith("1.49e+05 ")
    assert cells["random-threshold:paper"].startswith("8.64e+09 ")


@pytest.mark.parametrize("name", ["certified-elimination", "random-threshold", "mean-rounding"])
def test_200_000_visitors_are_too_few_for_these(name: str) -> None:
    """As their pages say: a coin would do as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        policy = getattr(bd, policies.REGISTRY[name].class_name)(arms=4, horizon=200_000, rho=0.3, rate_at_most=0.1)
    found = bd.certify(policy, bd.Bernoulli([0.05, 0.05, 0.05, 0.06]), pairs=2_048, seed=1)
    assert found.coin_decides
