"""Every page of the site in a real browser: wide and narrow, light and dark; and what the search finds."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.readers import Reader, served
from tests.service.browsers import NARROW, chromium

pytestmark = pytest.mark.long  # builds the site and opens all of it, a minute on two cores

PARTS = 2  # so that two workers share the pages
FIGURES = Path(__file__).parents[2] / "docs" / "figures"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


def paths(site: Path) -> list[str]:
    """Return every page; the one for what is not found has addresses that only a server understands."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html")


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_fits_and_has_its_figures_and_does_not_complain(browser: Any, site: Path, part: int) -> None:
    reader = Reader(browser, site.as_uri())
    every = paths(site)
    assert len(every) > 100
    faults = {path: reader.faults(path) for path in every[part::PARTS]}
    reader.close()
    assert {path: found for path, found in faults.items() if found} == {}


def test_a_page_that_is_not_there(browser: Any, site: Path) -> None:
    with served(site) as address:
        reader = Reader(browser, address)
        assert reader.faults("404.html") == []
        reader.close()


PLANTED = {
    "<div style='width: 2000px'>so wide</div>": r"390 light: too wide: DIV so wide",
    "<p>" + "x" * 400 + "</p>": None,  # a long word is broken
    "<p><code style='white-space: nowrap; word-break: keep-all'>"
    + "x" * 400
    + "</code></p>": r"1280 dark: too wide: CODE",
    "<p style='position: relative; left: -3rem'>too far</p>": r"390 dark: too wide: P too far",
    "<div style='overflow-x: auto'><div style='width: 2000px'>scrolls</div></div>": None,
    "<p><img src='figures/nowhere.png'></p>": r"1280 light: missing: .*nowhere\.png",
    "<p><picture class='only-dark'><img loading='lazy' src='figures/nowhere.png'></picture></p>": r"390 dark: missing",
    "<p hidden><img loading='lazy' src='figures/nowhere.png'></p>": None,
    "<script>console.error('something broke')</script>": r"console: something broke",
    "<script>nobody.knows()</script>": r"console: nobody is not defined",
    "<script src='assets/nowhere.js'></script>": r"console: not fetched: .*nowhere\.js",
}


def test_what_is_wrong_is_found(browser: Any, site: Path, tmp_path: Path) -> None:
    """A page with one fault: the check names it. With something that only looks like one, it says nothing."""
    folder = tmp_path / "site"
    shutil.copytree(site, folder, ignore=shutil.ignore_patterns("source", "api"))
    page = folder / "pages.html"
    text = page.read_text(encoding="utf-8")
    reader = Reader(browser, folder.as_uri())
    for planted, said in PLANTED.items():
        assert "</article>" in text
        page.write_text(text.replace("</article>", f"{planted}</article>"), encoding="utf-8")
        found = "\n".join(reader.faults("pages.html"))
        assert re.search(said, found) if said else not found, (planted, found)
    reader.close()


def test_figures_follow_the_page(browser: Any, site: Path) -> None:
    """They begin as the system is set; then the page's own switch decides, whatever the system says."""
    for theme, dark in (("light", ""), ("dark", "-dark")):
        reader = Reader(browser, site.as_uri(), "dark" if theme == "dark" else "light")
        reader.open("/concepts.html")
        assert reader.theme == theme
        assert f"shared-cuts{dark}.png" in reader.figures()
        reader.switch()
        other = "" if dark else "-dark"
        assert f"shared-cuts{other}.png" in reader.figures()
        reader.resize(NARROW)
        assert f"shared-cuts-narrow{other}.png" in reader.figures()
        assert not any(name.endswith(f"shared-cuts{dark}.png") for name in reader.figures())
        reader.close()


SEARCHES = {
    "A/B test": ["index.html", "cost.html", "live.html"],
    "conversion rate": ["cost.html", "analyse.html"],
    "power": ["cost.html", "certify.html"],
    "sample size": ["cost.html"],
    "Thompson": ["baselines.html"],
    "dashboard": ["pages.html"],
}
FIRST_TEN = """
  const links = [...document.querySelectorAll(".md-search-result__item > a")].slice(0, 10)
  const found = links.map((one) => new URL(one.href).pathname.split("/").pop())
  return wanted.every((page) => found.includes(page))
"""


@pytest.mark.parametrize("opened", ["disk", "server"])
def test_the_search_finds_what_readers_look_for(browser: Any, site: Path, opened: str) -> None:
    """By typing into it; the pages that answer are among the first ten."""
    with served(site) as address:
        reader = Reader(browser, address if opened == "server" else site.as_uri())
        reader.open("/index.html")
        for words, wanted in SEARCHES.items():
            box = reader.page.locator(".md-search__input")
            box.fill("")
            box.press_sequentially(words)
            reader.until(f"((wanted) => {{ {FIRST_TEN} }})({json.dumps(wanted)})")
        assert reader.problems == []
        reader.close()
