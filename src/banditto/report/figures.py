"""The figures of a report: regret, agreement, where pairs part, and the guarantees' terms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from banditto.core.text import short
from banditto.measure.compare import Comparison, Entrant
from banditto.problems.environment import LinearEnvironment
from banditto.report.style import Look, legend_below, legend_height, new_figure, plain, policy_style


def regret_figure(comparison: Comparison, look: Look) -> Figure | None:
    """Mean regret against pulls, with a band for nine executions out of ten; None if all arms are equal."""
    floor = _smallest_loss(comparison)
    if floor is None:
        return None
    names = [plain(row.label) for row in comparison.entrants]
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
    """One pull of the second-best arm: regret below that is not drawn on a logarithmic axis."""
    if isinstance(comparison.environment, LinearEnvironment) and not comparison.environment.means:
        return 1.0  # there is no second-best action in an infinite set
    best = max(comparison.environment.means, default=0.0)
    return min((best - mean for mean in comparison.environment.means if mean < best), default=None)


def agreement_figure(comparison: Comparison, look: Look) -> Figure:
    """The share of pairs that agree, with its exact interval, against 1 - rho."""
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
            f"{certificate.agreement:.1%}",
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
    axes.set_xlabel("pairs that pulled the same arms to the end")
    legend_below(figure, look)
    return figure


def _name_rows(axes: Axes, rows: tuple[Entrant, ...], look: Look) -> None:
    """Names on the left, or on a narrow screen above each row."""
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
    """The share of pairs that have parted, against the number of pulls."""
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
    """The terms of each guarantee, stacked, against rho; None when no policy has a guarantee."""
    rows = tuple(row for row in comparison.entrants if row.certificate.guarantee is not None)
    if not rows:
        return None
    figure = new_figure(look, 1.4 + (0.75 if look.narrow else 0.5) * len(rows))
    axes = figure.subplots()
    widest = 2.0 * max(row.certificate.rho for row in rows)
    named: dict[str, str] = {}
    for place, row in enumerate(rows):
        guarantee = row.certificate.guarantee
        assert guarantee is not None
        left = 0.0
        for term in guarantee.terms:
            if term.name not in named:
                named[term.name] = look.theme.terms[len(named) % len(look.theme.terms)]
                # what is too narrow to be seen needs no place in the legend
                if any(_largest_term(r, term.name) > widest / 400.0 for r in rows):
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
