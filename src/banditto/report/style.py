"""How figures look: on light and on dark pages, on wide and on narrow screens."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from banditto.report.colours import POLICY_COLOURS

MAKER = "banditto"  # by which `--figure` knows files that may be replaced


class Theme(NamedTuple):
    """Colours of everything that is drawn but arms."""

    name: str
    ink: str
    faint: str
    paper: str
    alarm: str
    policies: tuple[str, ...]
    terms: tuple[str, ...]


LIGHT = Theme(
    name="light",
    ink="#1f2328",
    faint="#c9ced6",
    paper="#ffffff",
    alarm="#c62828",
    policies=POLICY_COLOURS[0],
    terms=(
        *("#5B7FA6", "#C9A66B", "#7A9E7E", "#A08BB0", "#B5656B"),
        *("#2F4858", "#E0D38A", "#5E4B8B", "#9CC5A1", "#8A8A8A"),
    ),
)
DARK = Theme(
    name="dark",
    ink="#e6e6e6",
    faint="#4a4f57",
    paper="#16181d",
    alarm="#ff6b6b",
    policies=POLICY_COLOURS[1],
    terms=(
        *("#8FB3DA", "#E3C48F", "#A5C8A8", "#C6B3D4", "#D98E94"),
        *("#6F93A8", "#F0E6B0", "#9A86CC", "#D0E8D2", "#B5B5B5"),
    ),
)


class Look(NamedTuple):
    """A theme at a width, in inches; narrow figures stack what wide ones put side by side."""

    theme: Theme
    width: float

    @property
    def narrow(self) -> bool:
        """Whether it is narrow, for telephones."""
        return self.width < 6.0


LONGEST_NAME = 28
_ON_SCREEN = 80.0  # pixels that a notebook gives to an inch
WIDE, NARROW = 9.0, 4.2
LOOKS = {
    (theme.name, size): Look(theme, width)
    for theme in (LIGHT, DARK)
    for size, width in (("wide", WIDE), ("narrow", NARROW))
}


@contextmanager
def drawn_in(look: Look) -> Iterator[None]:
    """Set Matplotlib up for a look inside this context; SVG keeps text as text."""
    theme = look.theme
    settings: dict[Any, Any] = {
        "text.color": theme.ink,
        "axes.edgecolor": theme.ink,
        "axes.labelcolor": theme.ink,
        "axes.facecolor": "none",
        "figure.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "legend.labelcolor": theme.ink,
        "grid.color": theme.faint,
        "grid.linewidth": 0.6,
        "font.size": 10.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "banditto",
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font lacks is no reason to speak to the user
        yield


class ShownFigure(Figure):
    """A figure that no window manages; a notebook shows it, whether or not pyplot was ever loaded."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(_ON_SCREEN * inches) for inches in self.get_size_inches())
        return as_png(self), {"width": width, "height": height}


def new_figure(look: Look, height: float) -> Figure:
    """Make an empty figure that no window manages."""
    figure = ShownFigure(figsize=(look.width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def policy_style(look: Look, index: int) -> dict[str, Any]:
    """Return colour and dashes of the index-th policy: seven colours, then the same again dashed."""
    colours = look.theme.policies
    dashes = ("-", "--", ":", "-.")[(index // len(colours)) % 4]
    return {"color": colours[index % len(colours)], "linestyle": dashes}


def legend_below(figure: Figure, look: Look) -> None:
    """Put a legend under everything else in a figure."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = _columns(look, labels)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def legend_height(look: Look, labels: Sequence[str]) -> float:
    """Estimate how many inches a legend of these labels takes."""
    return 0.19 * math.ceil(len(labels) / _columns(look, labels))


def _columns(look: Look, labels: Sequence[str]) -> int:
    """Return how many columns of a legend the longest label leaves room for."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(int(look.width * 12.5 / (longest + 7)), len(labels), 4))


def plain(name: str) -> str:
    """Return a name as figures show it: shortened, with what Matplotlib would interpret escaped.

    Matplotlib would read what is between two dollars as a formula and leave what begins with _ out of legends.
    """
    shortened = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return (" " if shortened.startswith("_") else "") + shortened.replace("$", r"\$")


def as_svg(figure: Figure) -> bytes:
    """Return a figure as SVG, with the same bytes at every run."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": MAKER})
    return out.getvalue()


def as_png(figure: Figure) -> bytes:
    """Return a figure as PNG bytes."""
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": MAKER})
    return out.getvalue()
