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

MAKER = "banditto"  # by which `--figure` and `--plot` know files that may be replaced


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
    terms=("#5B7FA6", "#C9A66B", "#7A9E7E", "#A08BB0", "#8A8A8A"),
)
DARK = Theme(
    name="dark",
    ink="#e6e6e6",
    faint="#4a4f57",
    paper="#16181d",
    alarm="#ff6b6b",
    policies=POLICY_COLOURS[1],
    terms=("#8FB3DA", "#E3C48F", "#A5C8A8", "#C6B3D4", "#B5B5B5"),
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
WIDE, NARROW = 9.0, 4.2
LOOKS = {
    (theme.name, size): Look(theme, width)
    for theme in (LIGHT, DARK)
    for size, width in (("wide", WIDE), ("narrow", NARROW))
}


@contextmanager
def drawn_in(look: Look) -> Iterator[None]:
    """Set Matplotlib up for a look; text stays text in SVG, so files are small and letters sharp."""
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


def new_figure(look: Look, height: float) -> Figure:
    """Make an empty figure that no window manages."""
    figure = Figure(figsize=(look.width, height), dpi=150, layout="constrained")
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
    """Count the columns that the longest label leaves room for."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(int(look.width * 12.5 / (longest + 7)), len(labels), 4))


def plain(name: str) -> str:
    """A name for a figure: short, and as it was written.

    Matplotlib would read what is between two dollars as a formula and leave what begins with _ out of legends.
    """
    shortened = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return (" " if shortened.startswith("_") else "") + shortened.replace("$", r"\$")


def as_svg(figure: Figure) -> bytes:
    """Draw a figure as SVG, the same bytes whenever it is drawn."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": MAKER})
    return out.getvalue()


def as_png(figure: Figure) -> bytes:
    """Draw a figure as PNG; its bytes come back."""
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": MAKER})
    return out.getvalue()
