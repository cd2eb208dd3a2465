"""What the pictures of results have in common: a new figure, or axes that the caller brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from banditto.core.errors import InvalidArgument
from banditto.report.style import LIGHT, Look, drawn_in, legend_below, legend_height, new_figure

R = TypeVar("R")
PLOT = Look(LIGHT, 8.0)
MOST_ROWS = 40  # of one picture, so that it stays one
Draw = Callable[[Axes, R, Look], None]


def figure_or_axes(draw: Draw[R], result: R, ax: Any, height: float, *, legend: bool = True) -> Figure | Axes:
    """Draw a result into the axes, which come back; or without axes into a new figure of this height, in inches."""
    if ax is not None:
        axes = checked_axes(ax)
        draw(axes, result, PLOT)
        if legend and axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8, framealpha=0.85, edgecolor="none")
        return axes
    with drawn_in(PLOT):
        figure = new_figure(PLOT, height)
        axes = figure.subplots()
        draw(axes, result, PLOT)
        engine = figure.get_layout_engine()
        if isinstance(engine, ConstrainedLayoutEngine):
            engine.set(h_pad=0.09)  # inches: a title does not touch the edge
        names = axes.get_legend_handles_labels()[1] if legend else []
        if names:
            figure.set_figheight(height + legend_height(PLOT, names))
            legend_below(figure, PLOT)
    return figure


def checked_axes(ax: Any) -> Axes:
    """Refuse what is not one pair of Matplotlib axes."""
    if not isinstance(ax, Axes):
        raise InvalidArgument(
            "ax", type(ax).__name__, "Matplotlib axes, such as those of `figure, ax = plt.subplots()`"
        )
    return ax


def titled(axes: Axes, title: str) -> None:
    """Write what a picture shows above its left end; a dollar is a dollar."""
    axes.set_title(title.replace(r"\$", "$").replace("$", r"\$"), loc="left", fontsize=10)


def named_rows(axes: Axes, names: list[str]) -> None:
    """Name the rows of a picture, from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", left=False)


def percent_axis(axes: Axes, which: str = "y") -> None:
    """Write the numbers of an axis, which are shares, in percent."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(lambda value, _: f"{100.0 * value:g}%")


def whole_numbers(axes: Axes, which: str = "x") -> None:
    """Write the numbers of an axis with commas."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def numbered(axes: Axes, most: int) -> None:
    """Number what stands side by side, from 1; of many, a few."""
    axes.set_xlim(0.4, most + 0.6)
    axes.set_xticks(range(1, most + 1, -(-most // 20)))


def soft_grid(axes: Axes, which: str = "both") -> None:
    """Draw a grid behind everything else."""
    axes.grid(visible=True, axis="x" if which == "x" else "y" if which == "y" else "both")
    axes.set_axisbelow(True)
