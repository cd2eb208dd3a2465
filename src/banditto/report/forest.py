"""The forest plot of an analysis: each arm's mean, and the winner against every other arm, with their intervals."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from banditto.measure.analysis.analysis import Analysis
from banditto.report.plotting import MOST_ROWS, PLOT, checked_axes
from banditto.report.style import LOOKS, Look, drawn_in, new_figure, plain

_LETTERS = 12.5  # of the title, in an inch
_SHORT = 4.5  # letters of a label, for an inch of the figure, that are not set smaller


def forest_figure(analysis: Analysis, look: Look = LOOKS["light", "wide"]) -> Figure:
    """Draw means above and differences below, each with its interval; a difference of 0 has a line."""
    arms = [arm for arm in analysis.arms if arm.estimate is not None][:MOST_ROWS]
    differences = analysis.differences[:MOST_ROWS]
    with drawn_in(look):
        rows = [len(arms), len(differences)] if differences else [len(arms)]
        figure = new_figure(look, 1.5 + (0.42 if look.narrow else 0.32) * sum(rows) + 0.5 * len(rows))
        panels = figure.subplots(len(rows), 1, height_ratios=rows, squeeze=False)[:, 0]
        _means(panels[0], analysis, look)
        if differences:
            _differences(panels[1], analysis, look)
        sure = f"intervals hold at once with probability {100.0 * analysis.confidence:g}%"
        lines = [textwrap.fill(line, int(_LETTERS * look.width)) for line in (_title(analysis), sure)]
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10)
    return figure


def forest_plot(analysis: Analysis, ax: Any = None) -> Any:
    """Draw both panels on a new figure; into axes the differences alone, or the means where there are none."""
    if ax is None:
        return forest_figure(analysis)
    axes = checked_axes(ax)
    (_differences if analysis.differences else _means)(axes, analysis, PLOT)
    axes.set_title(_title(analysis), loc="left", fontsize=10)
    return axes


def _means(axes: Axes, analysis: Analysis, look: Look) -> None:
    arms = [arm for arm in analysis.arms if arm.estimate is not None][:MOST_ROWS]
    scale = 100.0 if analysis.percent else 1.0
    for place, arm in enumerate(arms):
        assert arm.estimate is not None
        won = arm.name == analysis.winner
        _row(axes, look, place, (scale * arm.low, scale * arm.estimate, scale * arm.high), won)
    labels = [f"{plain(arm.name)} ({arm.used:,})" for arm in arms]
    _finish(axes, look, labels, "share of rewards that are 1, %" if analysis.percent else "mean reward")


def _differences(axes: Axes, analysis: Analysis, look: Look) -> None:
    differences = analysis.differences[:MOST_ROWS]
    scale = 100.0 if analysis.percent else 1.0
    for place, one in enumerate(differences):
        _row(axes, look, place, (scale * one.low, scale * one.estimate, scale * one.high), one.low > 0.0)
    axes.axvline(0.0, color=look.theme.ink, linewidth=0.8)
    less = " -\n" if look.narrow else " - "  # two long names would leave no room on a narrow screen
    against = [f"{plain(one.arm)}{less}{plain(one.against)}" for one in differences]
    _finish(axes, look, against, "difference, percentage points" if analysis.percent else "difference")


def _title(analysis: Analysis) -> str:
    if analysis.winner is None:
        return "No winner yet"
    words = {"lead": "won, by its lead", "coin": "was chosen by the shared rule: no arm led by enough", None: "won"}
    return f"{plain(analysis.winner)} {words[analysis.decided_by]}"


def _row(axes: Axes, look: Look, place: int, values: tuple[float, float, float], strong: bool) -> None:
    low, middle, high = values
    colour = look.theme.terms[0] if strong else look.theme.terms[-1]
    if math.isfinite(low) and math.isfinite(high):
        axes.plot([low, high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
    inside = colour if strong else look.theme.paper
    axes.plot(middle, place, marker="o", markersize=7, color=colour, markerfacecolor=inside, linestyle="none")


def _finish(axes: Axes, look: Look, labels: list[str], title: str) -> None:
    """Label the rows and the axis of one panel; long labels get smaller letters."""
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    crowded = longest > _SHORT * look.width
    axes.set_yticks(range(len(labels)), labels, fontsize=8 if crowded else 10)
    axes.invert_yaxis()
    axes.margins(x=0.06, y=0.2)
    axes.grid(visible=True, axis="x")
    axes.set_axisbelow(True)
    axes.set_xlabel(textwrap.fill(title, 24) if crowded and look.narrow else title)
