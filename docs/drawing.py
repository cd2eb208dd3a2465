"""Draws each figure of the pages in four looks: on light and on dark pages, for wide screens and for telephones.

NAME.png is light and wide; the others are NAME-dark.png, NAME-narrow.png and NAME-narrow-dark.png. docs/site_pages.py
shows the one that fits. Files have at most 256 colours, which makes them a third as large.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

from banditto.report.style import LOOKS, MAKER, Look, as_png, drawn_in

Drawing = Callable[[Look], Figure]
FIGURES = Path(__file__).parent / "figures"


class Pens(NamedTuple):
    """Colours of a look by what they are for: three series, what stands back, writing, and what must not be passed."""

    first: str
    second: str
    third: str
    back: str
    ink: str
    alarm: str


def pens_of(look: Look) -> Pens:
    """Return the colours in which a figure is drawn in this look."""
    theme = look.theme
    first, second, third, *_, back = theme.policies
    return Pens(first, second, third, back, theme.ink, theme.alarm)


def panels(figure: Figure, look: Look, count: int, **shared: Any) -> list[Axes]:
    """Make axes beside each other, or below each other in a narrow look."""
    rows, columns = (count, 1) if look.narrow else (1, count)
    return list(figure.subplots(rows, columns, squeeze=False, **shared).flat)


def save(
    name: str, draw: Drawing, looks: Iterable[Look] = tuple(LOOKS.values()), narrow: bool = True, folder: Path = FIGURES
) -> None:
    """Draw a figure in each look and write its files; small pictures have no narrow version of their own."""
    for look in looks:
        ending = ("-narrow" if narrow and look.narrow else "") + ("-dark" if look.theme.name == "dark" else "")
        with drawn_in(look):
            (folder / f"{name}{ending}.png").write_bytes(with_few_colours(as_png(draw(look))))


def with_few_colours(png: bytes) -> bytes:
    """Return the same picture in at most 256 colours, without its transparency."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    made = PngImagePlugin.PngInfo()
    made.add_text("Software", MAKER)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True, pnginfo=made)
    return out.getvalue()
