"""Figures of the pages: each has the versions that it needs, in the colours of its theme, and none is large."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
from PIL import Image

from banditto.report.style import DARK, LIGHT, LOOKS, new_figure
from docs import drawing, site_pages

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
SHOWN = sorted(
    {
        name
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        for name in re.findall(r"!\[[^]]*\]\((?:docs/)?figures/([\w-]+)\.png\)", page.read_text(encoding="utf-8"))
    }
)
WIDEST = 700  # pixels that a telephone shows sharply


def versions(name: str) -> list[str]:
    """Return the names of all files that a figure must have; one that is dark itself is shown as it is."""
    if name.endswith("-dark"):
        return [name]
    with Image.open(FIGURES / f"{name}.png") as image:
        sizes = ["", "-narrow"] if image.width > WIDEST else [""]
    return [f"{name}{size}{theme}" for size in sizes for theme in ("", "-dark")]


@pytest.mark.parametrize("name", SHOWN)
def test_a_figure_has_all_its_versions(name: str) -> None:
    for version in versions(name):
        file = FIGURES / f"{version}.png"
        assert file.stat().st_size < 100_000, version
        with Image.open(file) as image:
            assert image.mode == "P", "more than 256 colours make a file three times as large"
            assert "-narrow" not in version or image.width <= WIDEST
            corner = image.convert("RGB").getpixel((1, image.height - 2))
        assert isinstance(corner, tuple)
        assert (sum(corner) < 3 * 64) == version.endswith("-dark"), version


def test_no_figure_is_left_that_no_page_shows() -> None:
    wanted = {f"{version}.png" for name in SHOWN for version in versions(name)}
    listed = subprocess.run(["git", "ls-files", "docs/figures"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {Path(line).name for line in listed.stdout.split()} <= wanted
    assert sum((FIGURES / name).stat().st_size for name in wanted) < 4_000_000


@pytest.mark.slow  # what measures the figures is imported here, and by no other test
def test_every_figure_is_drawn_or_photographed_by_a_command() -> None:
    make, gallery = import_module("docs.make"), import_module("docs.gallery")
    drawn = {*make.FIGURES, *(f"example-{name.replace('_', '-')}" for name in gallery.FIGURES)}
    assert {name for name in SHOWN if not name.startswith("pages-")} == drawn


def test_a_figure_is_drawn_in_four_looks(tmp_path: Path) -> None:
    drawing.save("x", lambda look: new_figure(look, 1.0), folder=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "x.png",
        "x-dark.png",
        "x-narrow.png",
        "x-narrow-dark.png",
    }
    for version, paper in (("x", LIGHT.paper), ("x-narrow-dark", DARK.paper)):
        with Image.open(tmp_path / f"{version}.png") as image:
            assert image.convert("RGB").getpixel((5, 5)) == tuple(bytes.fromhex(paper[1:]))
    for look in LOOKS.values():
        assert len(set(drawing.pens_of(look))) == len(drawing.Pens._fields)  # no two can be mistaken for each other


def test_a_figure_becomes_all_its_versions() -> None:
    html = site_pages.pictures("what it shows", "../figures/", "shared-cuts")
    assert html.count("<picture") == html.count("<img") == html.count("<source") == html.count('loading="lazy"') == 2
    assert 'class="only-light"><source media="(max-width: 40em)" srcset="../figures/shared-cuts-narrow.png"' in html
    assert 'class="only-dark"><source media="(max-width: 40em)" srcset="../figures/shared-cuts-narrow-dark.png"' in html
    assert 'src="../figures/shared-cuts-dark.png"' in html
    alone = site_pages.pictures("what it shows", "figures/", "pages-experiment-narrow-dark")
    assert alone.count("<img") == 1
    assert "on-white" not in alone
