"""Addresses that readers may have kept: pages of the site and their headings' anchors, in addresses.txt.

`make docs && python -m tests.docs.addresses` adds those of the built site to the file. None ever goes: a heading that
gets a new name keeps its old anchor by a line under `old_anchors` in mkdocs.yml, or by `<a id="old"></a>` on the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import markdown
import yaml

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("addresses.txt")
SETTINGS: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1", flags=re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} .*$", flags=re.MULTILINE)


def kept() -> set[str]:
    """Return the addresses that must lead somewhere for ever."""
    return set(KEPT.read_text(encoding="utf-8").split())


def built(site: Path) -> set[str]:
    """Return all addresses of a built site, but those of source files, which move as the files do."""
    found = set[str]()
    for page in site.rglob("*.html"):
        name = page.relative_to(site).as_posix()
        if name != "404.html" and not name.startswith("source/"):
            text = page.read_text(encoding="utf-8")
            found |= {name, *(f"{name}#{anchor}" for anchor in re.findall(r'<(?:h[1-6]|a) id="([^"]+)"', text))}
    return found


def written(page: str, text: str) -> set[str]:
    """Return the addresses that a page will have, by its headings alone: quickly, without building the site."""
    shown = "\n\n".join(_HEADING.findall(_FENCED.sub("", text)))
    extensions = ["toc", "attr_list", "pymdownx.arithmatex"]
    html = markdown.markdown(shown, extensions=extensions, extension_configs={"pymdownx.arithmatex": {"generic": True}})
    name = f"{page.removesuffix('.md')}.html"
    anchors = {*re.findall(r'<h[1-6] id="([^"]+)"', html), *re.findall(r'<a id="([^"]+)"', _FENCED.sub("", text))}
    anchors |= SETTINGS["extra"]["old_anchors"].get(page, {}).keys()
    return {name, *(f"{name}#{anchor}" for anchor in anchors)}


if __name__ == "__main__":
    KEPT.write_text("".join(f"{address}\n" for address in sorted(kept() | built(ROOT / "site"))), encoding="utf-8")
