"""No address that a reader may have kept stops working, and each page is once in the navigation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mkdocs.config.base import load_config
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from banditto import policies
from docs import site_pages
from tests.docs.addresses import ROOT, SETTINGS, built, kept, written

DOCS = ROOT / "docs"


def test_headings_keep_their_anchors() -> None:
    """On pages that are written by hand; the reference's anchors are looked at in the built site."""
    found = set[str]()
    for page in DOCS.glob("*.md"):
        found |= written(page.name, page.read_text(encoding="utf-8"))
    wanted = {address for address in kept() if not address.startswith("api/")}
    assert len(wanted) > 250
    assert wanted - found == set(), "these are gone: name what they are called now in mkdocs.yml, under old_anchors"


@pytest.mark.long
def test_addresses_of_the_built_site_stay(site: Path) -> None:
    assert kept() - built(site) == set()
    for page in DOCS.glob("*.md"):  # so the quick test above sees what is built
        text = page.read_text(encoding="utf-8")
        assert written(page.name, text) == {one for one in built(site) if one.split("#")[0] == f"{page.stem}.html"}


def test_a_heading_with_a_new_name_is_noticed() -> None:
    text = "# One\n\n## The price of ρ\n\n```\n## no heading\n```\n"
    assert written("one.md", text) == {"one.html", "one.html#one", "one.html#the-price-of"}
    assert "one.html#the-price-of" not in written("one.md", text.replace("price", "cost"))


def test_an_old_anchor_is_put_before_its_heading() -> None:
    config = load_config(str(ROOT / "mkdocs.yml"), hooks=[])
    file = File("one.md", "docs", "site", use_directory_urls=False)
    page = Page(None, file, config)
    config["extra"] = {"old_anchors": {"one.md": {"old": "new"}}}
    given: dict[str, Any] = {"page": page, "config": config, "files": Files([file])}
    changed = site_pages.on_page_content('<h1 id="one">x</h1><h2 id="new">y</h2>', **given)
    assert changed == '<h1 id="one">x</h1><a id="old"></a><h2 id="new">y</h2>'
    with pytest.raises(ValueError, match=r"one\.md has no heading with the anchor new"):
        site_pages.on_page_content('<h2 id="newer">y</h2>', **given)


def entries(nav: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield (title, page) of everything in the navigation."""
    for entry in nav:
        ((title, inside),) = entry.items()
        if isinstance(inside, list):
            yield from entries(inside)
        else:
            yield title, inside


def test_each_page_is_once_in_the_navigation_under_a_title_of_its_own() -> None:
    found = list(entries(SETTINGS["nav"]))
    for column in zip(*found, strict=True):
        assert [one for one, times in Counter(column).items() if times > 1] == []
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    named = {page for _, page in found}
    assert named <= pages
    assert pages - named <= {f"{name}.md" for name in policies.REGISTRY}  # a new policy's page is added by itself


def test_pages_that_are_named_in_the_settings_exist() -> None:
    extra = SETTINGS["extra"]
    for page in (*extra["found_by"], *extra["old_anchors"]):
        assert (DOCS / page).exists(), page


def test_the_home_page_says_what_it_is_in_its_first_line() -> None:
    """In its title or, below a title that says nothing, in the first words of the text."""
    title, first, *_ = (DOCS / "index.md").read_text(encoding="utf-8").split("\n\n")
    found = re.match(r"(?:# |\*\*)?(banditto (?:is|makes|runs) [^.]*)", title if "banditto" in title else first)
    assert found is not None, (title, first)
    assert re.search(r"experiment|A/B test|trial", found[1]), found[1]
