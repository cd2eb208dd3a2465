"""How figures look: on light and on dark pages, on wide and on narrow screens."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


class Theme(NamedTuple):
    """Colours; those of policies can be told apart with any colour vision (after Okabe and Ito)."""

    name: str
    ink: str
    faint: str
    paper: str
    alarm: str
    policies: tuple[str, ...]


LIGHT = Theme(
    name="light",
    ink="#1f2328",
    faint="#c9ced6",
    paper="#ffffff",
    alarm="#c62828",
    policies=("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#3A9BD9", "#6E6E6E"),
)
DARK = Theme(
    name="dark",
    ink="#e6e6e6",
    faint="#4a4f57",
    paper="#16181d",
    alarm="#ff6b6b",
    policies=("#58B0F0", "#FF9248", "#2FCB9E", "#EC9ACB", "#E9C04A", "#9BD8FF", "#B5B5B5"),
)


class Look(NamedTuple):
    """A theme at a width, in inches; narrow figures stack what wide ones put side by side."""

    theme: Theme
    width: float

    @property
    def narrow(self) -> bool:
        """For telephones."""
        return self.width < 6.0


WIDE, NARROW = 9.0, 4.2
LOOKS = {
    (theme.name, size): Look(theme, width)
    for theme in (LIGHT, DARK)
    for size, width in (("wide", WIDE), ("narrow", NARROW))
}


@contextmanager
def drawn_in(look: Look) -> Iterator[None]:
    """Matplotlib's settings for a look; text stays text in SVG, so files are small and letters sharp."""
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
    with mpl.rc_context(settings):
        yield


def new_figure(look: Look, height: float) -> Figure:
    """An empty figure that no window manages."""
    figure = Figure(figsize=(look.width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def policy_style(look: Look, index: int) -> dict[str, Any]:
    """Colour and dashes of the index-th policy: seven colours, then the same again dashed."""
    colours = look.theme.policies
    dashes = ("-", "--", ":", "-.")[(index // len(colours)) % 4]
    return {"color": colours[index % len(colours)], "linestyle": dashes}


def legend_below(figure: Figure, look: Look, columns: int, axes: Axes | None = None) -> None:
    """A legend under everything."""
    handles, labels = (axes or figure.axes[0]).get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=1 if look.narrow else min(columns, len(labels)),
        frameon=False,
        fontsize=9,
    )


def plain(name: str) -> str:
    """A name as it was written: Matplotlib would read what is between two dollars as a formula."""
    return name.replace("$", r"\$")


def as_svg(figure: Figure) -> bytes:
    """The figure as SVG, the same bytes whenever it is drawn."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def as_png(figure: Figure) -> bytes:
    """The figure as PNG."""
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()
