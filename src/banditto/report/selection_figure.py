"""The figure of a selection: each arm's mean, and how far the leader had to be ahead."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from banditto.core.text import short
from banditto.live.selection import Selection
from banditto.report.plotting import figure_or_axes
from banditto.report.style import Look, plain


def selection_figure(selection: Selection, ax: Any = None) -> Any:
    """Draw a point for each arm, the winner filled, and the stretch below the best mean that is too near to it."""
    return figure_or_axes(_selection, selection, ax, 1.4 + 0.34 * len(selection.estimates))


def _selection(axes: Axes, selection: Selection, look: Look) -> None:
    theme = look.theme
    names = list(selection.estimates)
    means = [selection.estimates[name].mean or 0.0 for name in names]
    best = max(means)
    too_near = f"within {short(selection.needed_lead)} of the best: not enough for a lead"
    axes.axvspan(best - selection.needed_lead, best, color=theme.faint, alpha=0.5, linewidth=0, label=too_near)
    for place, (name, mean) in enumerate(zip(names, means, strict=True)):
        won = name == selection.winner
        colour = theme.policies[0] if won else theme.policies[-1]
        inside = colour if won else theme.paper
        axes.plot(mean, place, marker="o", markersize=8, color=colour, markerfacecolor=inside, linestyle="none")
    axes.set_yticks(range(len(names)), [_label(selection, name) for name in names])
    axes.invert_yaxis()
    axes.margins(x=0.08, y=0.25)
    axes.grid(visible=True, axis="x")
    axes.set_axisbelow(True)
    axes.set_xlabel("mean reward")
    word = "by its lead" if selection.decided_by == "lead" else "by the shared coin: nobody led by enough"
    if selection.decided_by == "coin" and selection.winner == selection.control:
        word = "as the control: nobody led by enough"
    axes.set_title(f"{plain(selection.winner)} wins, {word}", loc="left", fontsize=11)


def _label(selection: Selection, name: str) -> str:
    return f"{plain(name)} ({selection.estimates[name].pulls:,})"
