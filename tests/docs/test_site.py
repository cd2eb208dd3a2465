"""The site as it is built: no warning, nothing from outside, links and anchors lead somewhere, every name is there."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import banditto as bd

pytestmark = pytest.mark.long  # builds the site, in half a minute

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# what a browser fetches by itself, as opposed to what a reader may click on
FETCHED = {"img": "src", "script": "src", "source": "srcset", "iframe": "src", "video": "src", "audio": "src"}
WITHOUT_END = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(HTMLParser):
    """One page: what it fetches and links to, its anchors, its formulas, its text, and what of that is prose."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.formulas: list[str] = []
        self.prose: list[str] = []
        self.text = ""
        self.open: list[tuple[str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("next", "prev", "canonical"):
            self.fetched.append(given["href"])
        if FETCHED.get(tag, "") in given:
            self.fetched.append(given[FETCHED[tag]])
        if tag not in WITHOUT_END:
            self.open.append((tag, given.get("class", "")))
        if "arithmatex" in given.get("class", ""):
            self.formulas.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if any("arithmatex" in kind for _, kind in self.open):
            self.formulas[-1] += data
        elif not any(tag in ("code", "pre", "script", "style", "title") for tag, _ in self.open):
            self.prose.append(data)


@cache
def page_at(path: Path) -> Page:
    return Page(path)


def pages(site: Path) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): page_at(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_is_built(site: Path) -> None:
    built = set(pages(site))
    for page in [*DOCS.glob("*.md"), *DOCS.glob("api/*.md")]:
        assert page.relative_to(DOCS).with_suffix(".html").as_posix() in built
    assert not list(site.glob("*.py"))


def test_nothing_is_fetched_from_outside(site: Path) -> None:
    for name, page in pages(site).items():
        assert page.fetched
        for address in page.fetched:
            parts = urlsplit(address)
            assert not parts.scheme or parts.scheme == "data", (name, address)
            assert not parts.netloc, (name, address)
            here = site if parts.path.startswith("/") else (site / name).parent
            assert (here / unquote(parts.path).lstrip("/")).is_file(), (name, address)
    for style in site.rglob("*.css"):
        for address in re.findall(r"url\(([^)]*)\)", style.read_text(encoding="utf-8")):
            place = address.strip("\"'")
            assert place.startswith(("data:", "#")) or (style.parent / place).is_file(), (style.name, place)


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    built = pages(site)
    followed = 0
    for name, page in built.items():
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            assert not parts.scheme, (name, address)
            here = site if parts.path.startswith("/") else (site / name).parent
            target = (here / unquote(parts.path).lstrip("/")).resolve() if parts.path else site / name
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), (name, address)
            # an address that ends in # alone is the top of the page
            if parts.fragment:
                assert unquote(parts.fragment) in page_at(target).anchors, (name, address)
            followed += 1
    assert followed > 1000


def test_no_markdown_is_left_over(site: Path) -> None:
    """Lists, tables, formulas and emphasis that the site's dialect does not see would stand there as they are typed."""
    left = re.compile(r"\$|\*\*|\]\(|^:::|\n(?:[*-]|\d\.) |(?:^|\n)\|", flags=re.MULTILINE)
    for name, page in pages(site).items():
        for text in page.prose:
            assert not left.search(text), (name, text)


def test_formulas_can_be_set(site: Path) -> None:
    formulas = [formula.strip() for page in pages(site).values() for formula in page.formulas]
    assert len(formulas) > 500
    assert all(formula[:2] + formula[-2:] in (r"\(\)", r"\[\]") for formula in formulas)
    node = shutil.which("node")
    if node is None:
        pytest.skip("node, which is not installed, would have to typeset them")
    program = (
        "const katex = require(process.argv[1]);"
        "const lines = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "for (const line of lines) katex.renderToString(line.slice(2, -2), { throwOnError: true, strict: 'error' })"
    )
    script = str(DOCS / "assets" / "katex" / "katex.min.js")
    done = subprocess.run(
        [node, "-e", program, script], input=_json(formulas), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr


def _json(texts: list[str]) -> str:
    return "[" + ",".join('"' + text.replace("\\", "\\\\").replace("\n", " ") + '"' for text in texts) + "]"


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """With its docstring, of which every line must have come through as it was meant: <a, b> is no tag."""
    reference = [page for name, page in pages(site).items() if name.startswith("api/")]
    anchors = set[str]().union(*(page.anchors for page in reference))
    text = " ".join(" ".join(page.text.split()) for page in reference)
    for name in set(bd.__all__) - {"__version__"}:
        public = getattr(bd, name)
        assert f"{public.__module__}.{name}" in anchors, name
        assert public.__doc__, name
        for line in inspect.cleandoc(public.__doc__).split("\n\nExamples:")[0].split("\n"):
            if line in ("Args:", "Attributes:", "Raises:", "Returns:"):
                continue  # headings of tables
            shown = re.sub(r"^ {4}(\w+: )?", "", line)  # an argument's name stands in a column of its own
            assert " ".join(re.sub("[`*]", "", shown).split()) in text, (name, line)


def _named(page: str) -> list[str]:
    return re.findall(r"`([a-z_]+(?:\.\w+)+)`", (DOCS / page).read_text(encoding="utf-8"))


def test_what_the_proofs_are_computed_by_exists() -> None:
    """A name begins with its module, of which there is one of that name."""
    named = _named("proofs.md")
    assert len(named) > 35
    package = Path(bd.__file__).parent
    modules = {path.stem: path for path in package.rglob("*.py") if path.parent.name != "cli"}
    for name in named:
        module, *parts = name.split(".")
        path = modules[module].relative_to(package.parent).with_suffix("")
        found: Any = import_module(".".join(path.parts))
        for part in parts:
            assert hasattr(found, part) or part in getattr(found, "__annotations__", {}), name
            found = getattr(found, part, None)


def test_every_proof_is_in_the_index() -> None:
    """A heading that says lemma, theorem or proof, on a page of mkdocs.yml, is linked to by the anchor that it gets."""
    index = (DOCS / "proofs.md").read_text(encoding="utf-8")
    order = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)#([\w-]+)\)", index))
    headings = 0
    for page in sorted(DOCS.glob("*.md")):
        if page.name in ("index.md", "concepts.md", "proofs.md") or f": {page.name}\n" not in order:
            continue
        shown = re.sub(r"^````.*?^````$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for heading in re.findall(r"^#{2,3} (.*(?:[Ll]emma|[Tt]heorem|[Pp]roof).*)$", shown, flags=re.MULTILINE):
            anchor = re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-")
            assert (page.name, anchor) in linked, (page.name, heading)
            headings += 1
    assert headings >= 18
