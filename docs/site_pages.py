"""What is done to the pages on their way into the site (a hook of MkDocs).

Pages must read well where they lie, so they link to source files and name public objects as a reader would. Here links
to source files become pages of the site that show them, and `::: banditto.name` becomes the place of its definition.
Docstrings name pages, docs/name.md: those become links. A figure NAME may have other versions: NAME-dark is shown on
dark pages, NAME-narrow on narrow screens, NAME-narrow-dark on both. Pages are also found by words that they do not use,
and by old names of their headings: mkdocs.yml lists both. A policy that is in its registry and not yet in mkdocs.yml or
in the reference is added to both: it takes four files to add one, and these are none of them.
"""

from __future__ import annotations

import ast
import posixpath
import re
import struct
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import banditto
from banditto import policies
from banditto.geometry import actions
from banditto.policies import baselines
from banditto.policies.policy import Acting, PlacedPolicy, Policy, Remembering, RoundPolicy
from banditto.problems import environments
from banditto.problems.environment import LinearEnvironment

ROOT = Path(__file__).parent.parent
SOURCE = re.compile(r"\]\((?:\.\./)+((?:src|examples|tests|benchmarks)/[\w./-]*|[A-Z]+\.md)\)")
LANGUAGES = {".py": "python", ".toml": "toml", ".md": "markdown", ".mjs": "javascript"}
PUBLIC = re.compile(r"^::: banditto\.(\w+)$", flags=re.MULTILINE)
SHOWN = re.compile(r"(^````.*?^````$)", flags=re.DOTALL | re.MULTILINE)  # a page within a page, to be left alone
NAMED = re.compile(r"\bdocs/([\w-]+\.md)\b")
FIGURE = re.compile(r'<img alt="([^"]*)" src="([\w./-]*figures/)([\w-]+)\.png" ?/?>')
NARROW = "(max-width: 40em)"

# What an interface asks of a class is described once, under the interface; these few are what its users call.
CALLED = {"guarantee", "minimum_horizon", "describe"}
INTERFACES = (Policy, PlacedPolicy, Acting, RoundPolicy, Remembering, LinearEnvironment)
ASKED = {name for interface in INTERFACES for name in dir(interface) if not name.startswith("_")} - CALLED
ASKED |= {"from_protocol", "made_for", "made_for_linear"}  # and what the catalogue calls
IMPLEMENTATIONS = {*policies.__all__, *baselines.__all__, *environments.__all__}
REFERENCE = {
    "api/policies.md": policies,
    "api/baselines.md": baselines,
    "api/environments.md": environments,
    "api/actions.md": actions,
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Pages of policies that mkdocs.yml does not name come last among the algorithms."""
    (algorithms,) = (entry["Algorithms"] for entry in config.nav or [] if "Algorithms" in entry)
    listed = {page for entry in algorithms for page in entry.values()}
    for name, policy in policies.REGISTRY.items():
        if f"{name}.md" not in listed:
            algorithms.append({policy.class_name: f"{name}.md"})
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for every source file that a page links to, and for every file of a folder that one links to."""
    texts = [SHOWN.sub("", page.content_string) for page in files.documentation_pages()]
    shown = {}
    for place in sorted({ROOT / name for text in texts for name in SOURCE.findall(text)}):
        if place.is_dir():
            inside = sorted(path for path in place.glob("*.py") if path.name != "__init__.py")
            shown[_uri(place)] = _folder(place, inside)
            shown |= {_uri(path): _listing(path) for path in inside}
        else:
            shown[_uri(place)] = _listing(place)
    for uri, content in shown.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to source files lead to their pages; public names to where they are defined."""
    here = posixpath.dirname(page.file.src_uri)
    if words := config.extra["found_by"].get(page.file.src_uri):
        page.meta["tags"] = words  # which the search looks at first
    if package := REFERENCE.get(page.file.src_uri):
        missing = [name for name in package.__all__ if name not in PUBLIC.findall(markdown)]
        markdown += "".join(f"\n::: banditto.{name}\n" for name in missing)

    def changed(text: str) -> str:
        text = SOURCE.sub(lambda found: f"]({posixpath.relpath(_uri(ROOT / found[1]), here or '.')})", text)
        return PUBLIC.sub(lambda found: _reference(found[1]), text)

    return "".join(part if SHOWN.match(part) else changed(part) for part in SHOWN.split(markdown))


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pages that docstrings name become links, figures get all their versions, and old anchors still lead somewhere."""

    def link(found: re.Match[str]) -> str:
        target = files.get_file_from_path(found[1])
        return f'<a href="{target.url_relative_to(page.file)}">{found[0]}</a>' if target else found[0]

    if page.file.src_uri.startswith("api/"):
        html = NAMED.sub(link, html)
    for old, new in config.extra["old_anchors"].get(page.file.src_uri, {}).items():
        heading = re.search(rf'<h[1-6] id="{re.escape(new)}"', html)
        if heading is None:
            raise ValueError(f"mkdocs.yml: old_anchors: {page.file.src_uri} has no heading with the anchor {new}")
        html = f'{html[: heading.start()]}<a id="{old}"></a>{html[heading.start() :]}'
    return FIGURE.sub(lambda found: pictures(found[1], found[2], found[3]), html)


def pictures(alt: str, path: str, name: str) -> str:
    """Return a figure as HTML: its light and its dark version, of which site.css hides one, each with a narrow one.

    Both are lazy, so a browser does not fetch the one that is hidden.
    """
    dark = _size(f"{name}-dark") is not None
    shown = [_picture(alt, path, name, "", "only-light" if dark else "figure")]
    if dark:
        shown.append(_picture(alt, path, name, "-dark", "only-dark"))
    elif not name.endswith("-dark"):
        shown = [f'<span class="on-white">{shown[0]}</span>']
    return "".join(shown)


def _picture(alt: str, path: str, name: str, theme: str, kind: str) -> str:
    """Return one version; the browser knows its size before it is there, so nothing jumps."""
    wide, narrow = _size(f"{name}{theme}"), _size(f"{name}-narrow{theme}")
    source = ""
    if narrow is not None:
        source = f'<source media="{NARROW}" srcset="{path}{name}-narrow{theme}.png" {narrow}>'
    image = f'<img alt="{alt}" src="{path}{name}{theme}.png" loading="lazy" {wide}>'
    return f'<picture class="{kind}">{source}{image}</picture>'


def _size(name: str) -> str | None:
    """Return width and height of a figure as attributes, or None if there is no such file."""
    file = ROOT / "docs" / "figures" / f"{name}.png"
    if not file.exists():
        return None
    with file.open("rb") as png:
        width, height = struct.unpack(">II", png.read(24)[16:])  # which every PNG begins with
    return f'width="{width}" height="{height}"'


def _reference(name: str) -> str:
    """What mkdocstrings is asked for."""
    line = f"::: {getattr(banditto, name).__module__}.{name}"
    if name in IMPLEMENTATIONS:
        hidden = "|".join(sorted(ASKED))
        line += f"\n    options:\n      filters: ['!^_', '!^({hidden})$']"
    return line


def _uri(place: Path) -> str:
    """Of the page that shows a file or lists a folder."""
    name = place.relative_to(ROOT).as_posix()
    return f"source/{name}/index.md" if place.is_dir() else f"source/{name}.md"


def _summary(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]


def _listing(path: Path) -> str:
    return _page(path, f"~~~~{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}~~~~")


def _folder(place: Path, inside: list[Path]) -> str:
    return _page(place, "\n".join(f"* [`{path.name}`]({path.name}.md): {_summary(path)}" for path in inside))


def _page(place: Path, content: str) -> str:
    """Not for the search: what is found there should be on the pages."""
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{place.relative_to(ROOT).as_posix()}`\n\n{content}\n"
