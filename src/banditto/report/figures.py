"""The figures: of a comparison, of a design in two dimensions, and of what a smaller rho costs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.text import hundredths, short
from banditto.geometry.actions.sets import ActionSet
from banditto.geometry.design.design_result import Design
from banditto.measure.comparison import Comparison, Entrant
from banditto.measure.plan.trial_plan import CurvePoint
from banditto.measure.plan.yardsticks import LimitLine
from banditto.problems.environment import LinearEnvironment
from banditto.report.style import (
    LIGHT,
    Look,
    as_png,
    as_svg,
    drawn_in,
    legend_below,
    legend_height,
    new_figure,
    plain,
    policy_style,
)

SAME_ARMS = "pairs that pulled the same arms to the end"


def regret_figure(comparison: Comparison, look: Look) -> Figure | None:
    """Draw mean regret against pulls, with bands for nine runs out of ten, and random play; None for equal arms."""
    floor = _smallest_loss(comparison)
    if floor is None:
        return None
    names = [*(plain(row.label) for row in comparison.entrants), "random play"]
    figure = new_figure(look, (5.2 if look.narrow else 4.4) + legend_height(look, names))
    axes = figure.subplots()
    for index, row in enumerate(comparison.entrants):
        if row.curve is None:
            continue
        style = policy_style(look, index)
        axes.fill_between(
            row.curve.pulls,
            np.maximum(row.curve.low, floor),
            np.maximum(row.curve.high, floor),
            color=style["color"],
            alpha=0.18,
            linewidth=0,
        )
        mean = np.where(row.curve.mean >= floor, row.curve.mean, np.nan)  # a logarithmic axis has no zero
        axes.plot(row.curve.pulls, mean, linewidth=1.8, label=plain(row.label), **style)
        axes.plot(row.curve.pulls[-1], max(row.curve.mean[-1], floor), marker="o", markersize=4, color=style["color"])
    means = comparison.environment.means
    if means:
        ends = np.array([1.0, max(row.certificate.horizon for row in comparison.entrants)])
        lag = max(means) - math.fsum(means) / len(means)
        axes.plot(ends, lag * ends, color=look.theme.ink, linewidth=1.0, linestyle=(0, (2, 2)), label="random play")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=floor)
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.set_xlabel("pulls")
    axes.set_ylabel("regret, in rewards")
    legend_below(figure, look)
    return figure


def _smallest_loss(comparison: Comparison) -> float | None:
    """Return the regret of one pull of the second-best arm, where the logarithmic axis begins; None on ties."""
    if isinstance(comparison.environment, LinearEnvironment) and not comparison.environment.means:
        return 1.0  # there is no second-best action in an infinite set
    best = max(comparison.environment.means, default=0.0)
    return min((best - mean for mean in comparison.environment.means if mean < best), default=None)


def agreement_figure(comparison: Comparison, look: Look) -> Figure:
    """Draw the share of pairs that agree, with its exact interval, against 1 - rho."""
    rows = comparison.entrants
    figure = new_figure(look, 1.3 + (0.55 if look.narrow else 0.36) * len(rows))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        certificate = row.certificate
        low, high = certificate.interval
        colour = str(policy_style(look, place)["color"])
        axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.45, solid_capstyle="butt")
        axes.plot(certificate.agreement, place, marker="o", markersize=6, color=colour)
        wanted = 1.0 - certificate.rho
        mark: dict[str, Any] = {"label": f"1 - rho = {wanted:g}"} if place == 0 else {}
        axes.plot([wanted, wanted], [place - 0.5, place + 0.5], color=look.theme.alarm, linewidth=1.4, **mark)
        axes.annotate(
            hundredths(certificate.agreement),
            (1.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(44, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=9,
        )
    _name_rows(axes, rows, look)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], ["0", "20%", "40%", "60%", "80%", "100%"])
    by_winner = any(row.certificate.level == "winner" for row in rows)
    axes.set_xlabel("pairs that agree, by every pull or by their winner" if by_winner else SAME_ARMS)
    legend_below(figure, look)
    return figure


def _name_rows(axes: Axes, rows: tuple[Entrant, ...], look: Look) -> None:
    """Write names on the left, or on a narrow screen above each row."""
    axes.set_ylim(len(rows) - 0.5, -0.6 if look.narrow else -0.5)
    axes.spines["left"].set_visible(False)
    if look.narrow:
        axes.set_yticks([])
        for place, row in enumerate(rows):
            axes.annotate(
                plain(row.label),
                (0.0, place - 0.24),
                xycoords=("axes fraction", "data"),
                ha="left",
                va="bottom",
                fontsize=9,
            )
    else:
        axes.set_yticks(range(len(rows)), [plain(row.label) for row in rows])
        axes.tick_params(left=False)


def divergence_figure(comparison: Comparison, look: Look) -> Figure:
    """Draw the share of pairs that have parted, against the number of pulls."""
    names = [plain(row.label) for row in comparison.entrants]
    figure = new_figure(look, (4.8 if look.narrow else 4.0) + legend_height(look, names))
    axes = figure.subplots()
    lowest = min(min(1.0 / row.certificate.pairs, row.certificate.rho) for row in comparison.entrants) / 2.0
    longest = max(row.certificate.horizon for row in comparison.entrants)
    for index, row in enumerate(comparison.entrants):
        certificate = row.certificate
        pulls = np.array(list(certificate.divergence_pulls), dtype=np.float64)
        parted = np.cumsum(list(certificate.divergence_pulls.values())) / certificate.pairs
        # from the bottom up at the first pull that differs, then to the end
        steps = np.array([lowest, *parted, parted[-1]]) if parted.size else np.array([math.nan, math.nan])
        places = np.array([pulls[0], *pulls, certificate.horizon]) if pulls.size else np.array([1.0, 1.0])
        width = 3.2 - 1.8 * index / max(len(comparison.entrants) - 1, 1)  # those below show beside those above
        axes.plot(
            places, steps, drawstyle="steps-post", linewidth=width, label=plain(row.label), **policy_style(look, index)
        )
    for number, rho in enumerate(sorted({row.certificate.rho for row in comparison.entrants})):
        label: dict[str, Any] = {"label": f"rho = {rho:g}"} if number == 0 else {}
        axes.axhline(rho, color=look.theme.alarm, linewidth=1.2, linestyle=(0, (4, 3)), **label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1.0, longest)
    axes.set_ylim(lowest, 1.5)
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.set_xlabel("pulls")
    axes.set_ylabel("share of pairs that have parted")
    legend_below(figure, look)
    return figure


def guarantee_figure(comparison: Comparison, look: Look) -> Figure | None:
    """Draw the terms of each guarantee, stacked, against rho; None when no policy has a guarantee."""
    rows = tuple(row for row in comparison.entrants if row.certificate.guarantee is not None)
    if not rows:
        return None
    figure = new_figure(look, 1.4 + (0.75 if look.narrow else 0.5) * len(rows))
    axes = figure.subplots()
    widest = 2.0 * max(row.certificate.rho for row in rows)
    named: dict[str, str] = {}
    colours = cycle(look.theme.terms)
    for place, row in enumerate(rows):
        guarantee = row.certificate.guarantee
        assert guarantee is not None
        left = 0.0
        for term in guarantee.terms:
            if term.name not in named:
                # what is too narrow to be seen needs no colour, and no place in the legend
                seen = any(_largest_term(r, term.name) > widest / 400.0 for r in rows)
                named[term.name] = next(colours) if seen else look.theme.terms[-1]
                if seen:
                    axes.barh(place, 0.0, color=named[term.name], label=term.name)
            shown = min(term.value, max(widest - left, 0.0))
            axes.barh(place, shown, left=left, height=0.5, color=named[term.name])
            left += shown
        beyond = guarantee.total > widest
        text = short(guarantee.total) + (f", {guarantee.total / guarantee.rho:.0f} times rho →" if beyond else "")
        axes.annotate(
            text,
            (min(guarantee.total, widest), place),
            xytext=(-6 if beyond else 6, 0),
            textcoords="offset points",
            ha="right" if beyond else "left",
            va="center",
            fontsize=9,
            color="#000000" if beyond else look.theme.ink,
        )
        mark: dict[str, Any] = {"label": f"rho = {guarantee.rho:g}"} if place == 0 else {}
        axes.plot([guarantee.rho] * 2, [place - 0.5, place + 0.5], color=look.theme.alarm, linewidth=1.4, **mark)
    _name_rows(axes, rows, look)
    axes.set_xlim(0.0, widest)
    axes.xaxis.set_major_locator(MaxNLocator(4 if look.narrow else 8))
    axes.set_xlabel("proved bound on P(two executions differ)")
    legend_below(figure, look)
    return figure


def _largest_term(row: Entrant, name: str) -> float:
    guarantee = row.certificate.guarantee
    return max((term.value for term in guarantee.terms if term.name == name), default=0.0) if guarantee else 0.0


PLAIN = Look(LIGHT, 6.4)
_DIRECTIONS = 360


def design_figure(design: Design, actions: FloatArray | ActionSet, look: Look = PLAIN) -> Figure:
    """Draw a design of actions with two features, on a figure of its own."""
    features = actions.shape[1] if isinstance(actions, np.ndarray) else actions.dimension
    if features != 2 or design.dimension != 2:
        given = f"{features} features, of which {design.dimension} are spanned"
        raise InvalidArgument("plot", given, "a design of actions that span two features")
    figure = new_figure(look, look.width * 0.92)
    axes = figure.subplots()
    draw_design(axes, design, actions, look)
    title = f"g/d = {design.g_over_d:.4g}, {design.support} actions in the core set"
    axes.set_title(title, fontsize=10, loc="left")
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=1 if look.narrow else 3, frameon=False)
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([40.0])
    return figure


def draw_design(axes: Axes, design: Design, actions: FloatArray | ActionSet, look: Look = PLAIN) -> None:
    """Draw actions, ellipse and core set of a design into axes."""
    _actions(axes, actions, look)
    _ellipse(axes, design, look)
    core = np.array(design.actions)
    sizes = 30.0 + 500.0 * np.array(design.weights)
    axes.scatter(core[:, 0], core[:, 1], s=sizes, color=look.theme.policies[1], zorder=4, label="core set, by weight")
    axes.axhline(0.0, color=look.theme.faint, linewidth=0.6, zorder=0)
    axes.axvline(0.0, color=look.theme.faint, linewidth=0.6, zorder=0)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("feature 1")
    axes.set_ylabel("feature 2")


def _actions(axes: Axes, actions: FloatArray | ActionSet, look: Look) -> None:
    colour = look.theme.policies[0]
    if isinstance(actions, np.ndarray):
        axes.scatter(actions[:, 0], actions[:, 1], s=9.0, color=colour, alpha=0.6, linewidths=0, label="actions")
        return
    angles = np.linspace(0.0, 2.0 * math.pi, _DIRECTIONS, endpoint=False)
    outline = np.array([actions.maximise((math.cos(angle), math.sin(angle))) for angle in angles])
    axes.fill(outline[:, 0], outline[:, 1], color=colour, alpha=0.3, linewidth=0, label="actions")


def _ellipse(axes: Axes, design: Design, look: Look) -> None:
    """Draw the ellipse on which the design's variance is g."""
    core, weights = np.array(design.actions), np.array(design.weights)
    size = np.max(np.abs(core), axis=0)  # features may be of very different size
    core = core / size
    moment = (core * weights[:, None]).T @ core
    angles = np.linspace(0.0, 2.0 * math.pi, 400)
    circle = np.array([np.cos(angles), np.sin(angles)])
    ellipse = size[:, None] * math.sqrt(design.g) * (np.linalg.cholesky(moment) @ circle)
    axes.plot(ellipse[0], ellipse[1], color=look.theme.ink, linewidth=1.2, label="{a : a' V$^{-1}$ a = g}")


_LABELS = {"horizon": "shortest horizon, pulls", "regret": "expected regret there, in rewards"}
_HEIGHT = 3.6


def price_figure(
    points: Sequence[CurvePoint],
    quantity: Literal["horizon", "regret"],
    look: Look,
    chosen: CurvePoint | None = None,
    limits: Sequence[LimitLine] = (),
) -> Figure:
    """Draw what a smaller rho costs, on logarithmic axes; a ring marks the plan, grey lines are limits of pulls."""
    names = list(dict.fromkeys(point.policy for point in points))
    shown = limits if quantity == "horizon" else ()
    figure = new_figure(look, _HEIGHT + legend_height(look, [*names, *(line.name for line in shown)]))
    axes = figure.subplots()
    for limit, dashes in zip(shown, ("--", ":", "-."), strict=False):
        axes.plot(limit.rhos, limit.pulls, linestyle=dashes, color=look.theme.ink, linewidth=1.0, label=limit.name)
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


def price_files(
    points: Sequence[CurvePoint], chosen: CurvePoint, look: Look, limits: Sequence[LimitLine] = ()
) -> dict[str, bytes]:
    """Draw both price figures; return PNG and SVG files by name, with a CSV of the points."""
    files: dict[str, bytes] = {"curves.csv": curves_csv(points).encode()}
    with drawn_in(look):
        for quantity in ("horizon", "regret"):
            figure = price_figure(points, quantity, look, chosen, limits)
            files[f"figures/{quantity}.png"] = as_png(figure)
            files[f"figures/{quantity}.svg"] = as_svg(figure)
    return files


def curves_csv(points: Sequence[CurvePoint]) -> str:
    """Return the points as CSV: policy, rho, horizon, regret."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CurvePoint._fields)
    writer.writerows(points)
    return out.getvalue()
