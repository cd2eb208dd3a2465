"""The chart of a claim: measured points with their bars, and the line that theory predicts."""

from __future__ import annotations

import math
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from banditto.paper.claims import Chart, Curve
from banditto.report.style import DARK, LIGHT, Look, legend_below, legend_height, new_figure, policy_style

WIDTH = 5.6  # inches; one size for all screens
CHART_LOOKS = {("light", "wide"): Look(LIGHT, WIDTH), ("dark", "wide"): Look(DARK, WIDTH)}
_HEIGHT = 3.1
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ((5.0, 3.0), (1.5, 2.0), (8.0, 2.0, 1.5, 2.0))  # of a chart's first, second and third line of theory
_LONG_LABEL = 36
# where the labels of an axis stand in each decade, by how many decades it has at the most
_MARKS = {0.45: (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0), 0.9: (1.0, 2.0, 3.0, 5.0), 1.9: (1.0, 2.0, 5.0)}


def claim_figure(chart: Chart, look: Look) -> Figure:
    """Points have shapes and colours of their own; lines of the theory are grey, with dashes of their own."""
    curves = [replace(curve, label=curve.label.replace("$", r"\$")) for curve in chart.curves]  # no formulas
    labels = [curve.label for curve in curves]
    joined = sum(not curve.theory for curve in curves) > 1  # a single row of points lies on its theory's line
    figure = new_figure(look, _HEIGHT + legend_height(look, labels))
    axes = figure.subplots()
    number = lines = 0
    for curve in curves:
        if curve.theory:
            dashes = (0, _DASHES[lines % len(_DASHES)])
            axes.plot(curve.x, curve.y, color=look.theme.ink, alpha=0.65, linestyle=dashes, label=curve.label)
            lines += 1
        else:
            _points(axes, curve, look, number, joined)
            number += 1
    if chart.x_log:
        _logarithmic(axes, "x")
    if chart.y_log:
        _logarithmic(axes, "y")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label, fontsize=_size(chart.y_label))
    axes.grid(visible=True, which="major")
    axes.set_axisbelow(True)
    legend_below(figure, look)
    return figure


def _points(axes: Axes, curve: Curve, look: Look, number: int, joined: bool) -> None:
    style = policy_style(look, number) | ({} if joined else {"linestyle": "none"})
    bars = None
    if curve.low:
        below = [max(y - low, 0.0) for y, low in zip(curve.y, curve.low, strict=True)]
        above = [max(high - y, 0.0) for y, high in zip(curve.y, curve.high, strict=True)]
        bars = [below, above]
    axes.errorbar(
        curve.x,
        curve.y,
        yerr=bars,
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=4.5,
        linewidth=1.0,
        capsize=2.0,
        label=curve.label,
        **style,
    )


def _logarithmic(axes: Axes, which: str) -> None:
    """A logarithmic axis that has labels on short ranges too, and not so many that they overlap on long ones."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    for most, marks in _MARKS.items():
        if decades <= most:
            axis.set_major_locator(LogLocator(subs=marks, numticks=20))
            axis.set_major_formatter(lambda value, _: _label(value))
            break
    axis.set_minor_formatter(NullFormatter())


def _label(value: float) -> str:
    if 1e-3 <= value < 1e4:
        return f"{value:.4g}"
    power = math.floor(math.log10(value) + 1e-9)
    return rf"${value / 10.0**power:.3g}\times10^{{{power}}}$"


def _size(label: str) -> float:
    """A long label must not be longer than its axis."""
    return 10.0 if len(label) <= _LONG_LABEL else max(6.0, 10.0 * _LONG_LABEL / len(label))
