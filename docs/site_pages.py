"""What is done to the pages on their way into the site (a hook of MkDocs).

Pages must read well where they lie, so they link to source files and name public objects as a reader would. Here links
to source files become pages of the site that show them, and `::: banditto.name` becomes the place of its definition.
Docstrings name pages, docs/name.md: those become links. A figure that was drawn for telephones as well, as NAME-narrow,
is shown as that on narrow screens.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import banditto
from banditto import baselines, environments, policies
from banditto.environment import LinearEnvironment
from banditto.policy import Acting, PlacedPolicy, Policy, Remembering, RoundPolicy

ROOT = Path(__file__).parent.parent
SOURCE = re.compile(r"\]\((?:\.\./)+src/banditto/([\w./]*)\)")
PUBLIC = re.compile(r"^::: banditto\.(\w+)$", flags=re.MULTILINE)
NAMED = re.compile(r"\bdocs/([\w-]+\.md)\b")
FIGURE = re.compile(r'<img [^>]*src="([\w./-]*figures/)([\w-]+)\.png"[^>]*>')

# What an interface asks of a class is described once, under the interface; these few are what its users call.
CALLED = {"guarantee", "minimum_horizon", "describe"}
INTERFACES = (Policy, PlacedPolicy, Acting, RoundPolicy, Remembering, LinearEnvironment)
ASKED = {name for interface in INTERFACES for name in dir(interface) if not name.startswith("_")} - CALLED
ASKED |= {"from_protocol", "with_schedule", "made_for", "made_for_linear"}  # and what the catalogue calls
IMPLEMENTATIONS = {*policies.__all__, *baselines.__all__, *environments.__all__}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for every source file that a page links to, and for every file of a folder that one links to."""
    linked = {name for page in files.documentation_pages() for name in SOURCE.findall(page.content_string)}
    shown = {}
    for name in sorted(linked):
        place = ROOT / "src" / "banditto" / name
        if place.is_dir():
            inside = sorted(path for path in place.glob("*.py") if path.name != "__init__.py")
            shown[_uri(name)] = _folder(name.strip("/"), inside)
            shown |= {_uri(f"{name.strip('/')}/{path.name}"): _listing(path) for path in inside}
        else:
            shown[_uri(name)] = _listing(place)
    for uri, content in shown.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to source files lead to their pages; public names to where they are defined."""
    here = posixpath.dirname(page.file.src_uri)
    markdown = SOURCE.sub(lambda found: f"]({posixpath.relpath(_uri(found[1]), here or '.')})", markdown)
    return PUBLIC.sub(lambda found: _reference(found[1]), markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pages that docstrings name become links, and figures with a narrow version have it on telephones."""

    def link(found: re.Match[str]) -> str:
        target = files.get_file_from_path(found[1])
        return f'<a href="{target.url_relative_to(page.file)}">{found[0]}</a>' if target else found[0]

    def picture(found: re.Match[str]) -> str:
        if not (ROOT / "docs" / "figures" / f"{found[2]}-narrow.png").exists():
            return found[0]
        narrow = f'<source media="(max-width: 40em)" srcset="{found[1]}{found[2]}-narrow.png">'
        return f"<picture>{narrow}{found[0]}</picture>"

    if page.file.src_uri.startswith("api/"):
        html = NAMED.sub(link, html)
    return FIGURE.sub(picture, html)


def _reference(name: str) -> str:
    """What mkdocstrings is asked for."""
    line = f"::: {getattr(banditto, name).__module__}.{name}"
    if name in IMPLEMENTATIONS:
        hidden = "|".join(sorted(ASKED))
        line += f"\n    options:\n      filters: ['!^_', '!^({hidden})$']"
    return line


def _uri(name: str) -> str:
    """Of the page that shows a source file or lists a folder, both named from the package."""
    return f"source/{name.removesuffix('.py')}.md" if name.endswith(".py") else f"source/{name.strip('/')}/index.md"


def _summary(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]


def _listing(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{name}`\n\n~~~~python\n{text}~~~~\n"


def _folder(name: str, inside: list[Path]) -> str:
    rows = "\n".join(f"* [`{path.name}`]({path.stem}.md): {_summary(path)}" for path in inside)
    return f"---\nsearch:\n  exclude: true\n---\n\n# `src/banditto/{name}`\n\n{rows}\n"
