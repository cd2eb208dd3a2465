"""Figures of a plan: what a smaller rho costs in pulls and in regret, one line for each policy."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Literal

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from banditto.measure.plan.price_curves import CurvePoint
from banditto.report.style import Look, as_png, as_svg, drawn_in, legend_below, legend_height, new_figure, policy_style

_LABELS = {"horizon": "shortest horizon, pulls", "regret": "expected regret there, in rewards"}
_HEIGHT = 3.6


def price_figure(
    points: Sequence[CurvePoint], quantity: Literal["horizon", "regret"], look: Look, chosen: CurvePoint | None = None
) -> Figure:
    """Both axes logarithmic; a ring marks the plan."""
    names = list(dict.fromkeys(point.policy for point in points))
    figure = new_figure(look, _HEIGHT + legend_height(look, names))
    axes = figure.subplots()
    for index, name in enumerate(names):
        line = [point for point in points if point.policy == name]
        values = [getattr(point, quantity) for point in line]
        axes.plot(
            [point.rho for point in line], values, marker="o", markersize=3.5, label=name, **policy_style(look, index)
        )
    if chosen is not None:
        axes.plot(
            [chosen.rho],
            [getattr(chosen, quantity)],
            marker="o",
            markersize=11,
            markerfacecolor="none",
            markeredgecolor=look.theme.ink,
            linestyle="none",
            label="this plan",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rho, the largest probability that two runs differ")
    axes.set_ylabel(_LABELS[quantity])
    rhos = sorted({point.rho for point in points})
    axes.set_xticks(rhos)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True, which="major")
    legend_below(figure, look)
    return figure


def price_files(points: Sequence[CurvePoint], chosen: CurvePoint, look: Look) -> dict[str, bytes]:
    """Both figures as PNG and SVG, and the numbers behind them."""
    files: dict[str, bytes] = {"curves.csv": curves_csv(points).encode()}
    with drawn_in(look):
        for quantity in ("horizon", "regret"):
            figure = price_figure(points, quantity, look, chosen)
            files[f"figures/{quantity}.png"] = as_png(figure)
            files[f"figures/{quantity}.svg"] = as_svg(figure)
    return files


def curves_csv(points: Sequence[CurvePoint]) -> str:
    """policy, rho, horizon, regret."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CurvePoint._fields)
    writer.writerows(points)
    return out.getvalue()
