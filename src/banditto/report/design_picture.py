"""The picture of a design: the weight of each action of its core set."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from banditto.geometry.design.design_result import Design
from banditto.report.plotting import MOST_ROWS, figure_or_axes, named_rows, percent_axis, soft_grid, titled
from banditto.report.style import Look

_MOST_FEATURES = 4  # that a label has room for


def weights_figure(design: Design, ax: Any = None) -> Any:
    """Draw a bar for each action of the core set, the heaviest 40 of them; its features stand beside it."""
    return figure_or_axes(_weights, design, ax, 1.2 + 0.28 * min(design.support, MOST_ROWS))


def _weights(axes: Axes, design: Design, look: Look) -> None:
    names = range(design.support) if design.arms is None else design.arms
    rows = sorted(zip(names, design.weights, design.actions, strict=True), key=lambda row: -row[1])[:MOST_ROWS]
    axes.barh(range(len(rows)), [weight for _, weight, _ in rows], height=0.6, color=look.theme.terms[0])
    axes.axvline(1.0 / design.support, color=look.theme.ink, linestyle=":", linewidth=1.2, label="an even share")
    word = "action" if design.arms is None else "arm"
    named_rows(axes, [f"{word} {name}: {_features(action)}" for name, _, action in rows])
    percent_axis(axes, "x")
    soft_grid(axes, "x")
    axes.set_xlabel("share of the pulls")
    more = f", the heaviest {MOST_ROWS} shown" if design.support > MOST_ROWS else ""
    titled(axes, f"{design.support} actions in the core set{more}; g/d = {design.g_over_d:.4g}")


def _features(action: tuple[float, ...]) -> str:
    shown = ", ".join(f"{value:.3g}" for value in action[:_MOST_FEATURES])
    return f"({shown}{', ...' if len(action) > _MOST_FEATURES else ''})"
