"""The figure of docs/concepts.md: what a cut from shared coins does that a fixed one does not."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.report.style import Look, new_figure
from docs.drawing import Pens, pens_of

PAIRS, PULLS, GAP = 50, 2000, 0.1
LOW, HIGH = 0.03, 0.23  # where cuts are drawn from


def gaps(pairs: int = PAIRS) -> FloatArray:
    """The gap between two arms as both labs of each pair measure it; shape (pair, lab)."""
    rng = np.random.default_rng(0)
    better, worse = (rng.binomial(PULLS, mean, size=(pairs, 2)) / PULLS for mean in (0.5 + GAP / 2, 0.5 - GAP / 2))
    return np.asarray(better - worse, dtype=np.float64)


def differ(measured: FloatArray, cuts: FloatArray) -> list[bool]:
    """For each pair: does the cut lie between the two gaps?"""
    between = (measured.min(axis=1) <= cuts) & (cuts < measured.max(axis=1))
    return [bool(one) for one in between]


def shared_cuts(pairs: int = PAIRS) -> FloatArray:
    """One cut for each pair, which both of its labs look up."""
    return np.asarray(LOW + (HIGH - LOW) * Coins(0, count=pairs).uniform("cut", 1)[:, 0], dtype=np.float64)


def cuts_figure(look: Look) -> Figure:
    """Pairs of labs, one under the other: a fixed cut at the true gap, and shared random cuts."""
    measured = gaps()
    pens = pens_of(look)
    figure = new_figure(look, 8.0 if look.narrow else 4.6)
    left, right = figure.subplots(*((2, 1) if look.narrow else (1, 2)), sharex=look.narrow, sharey=True)
    for axes, cuts, name in (
        (left, np.full(PAIRS, GAP), "One fixed cut"),
        (right, shared_cuts(), "Cuts from shared coins"),
    ):
        apart = differ(measured, cuts)
        _rows(axes, measured, cuts, apart, pens)
        lines = "\n" if look.narrow else " "
        title = f"{name}:{lines}{sum(apart)} of {PAIRS} pairs decide differently"
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlim(0.0, 0.24)
        if axes is right or not look.narrow:
            axes.set_xlabel("measured gap between two arms (in units of reward)")
        if axes is left or look.narrow:
            axes.set_ylabel("pair of labs")
    left.set_yticks([1, 10, 20, 30, 40, PAIRS])
    left.invert_yaxis()
    handles = [
        Line2D([], [], color=pens.first, marker="o", markersize=4, label="two labs' gaps: same decision"),
        Line2D([], [], color=pens.second, marker="D", markersize=4, label="different decisions"),
        Line2D([], [], color=pens.ink, marker="|", linestyle="none", markersize=9, label="the cut"),
    ]
    columns = 1 if look.narrow else 3
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    return figure


def _rows(axes: Axes, measured: FloatArray, cuts: FloatArray, apart: list[bool], pens: Pens) -> None:
    for number, (pair, cut, different) in enumerate(zip(measured, cuts, apart, strict=True), start=1):
        colour, marker = (pens.second, "D") if different else (pens.first, "o")
        axes.plot(pair, [number, number], color=colour, marker=marker, markersize=2.8, linewidth=1.2)
        axes.plot([cut], [number], color=pens.ink, marker="|", markersize=6, linestyle="none")
