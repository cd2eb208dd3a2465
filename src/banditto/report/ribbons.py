"""The ribbon picture: the two executions of a pair side by side, a colour for each arm.

Time runs to the right on a logarithmic axis. Under each pair a thin strip is grey where both sides pull the same arm
and red where they do not: a replicable policy leaves it grey to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.text import hundredths
from banditto.engine.watching import PairView
from banditto.report.colours import ARM_COLOURS, OTHERS
from banditto.report.style import LIGHT, Look, new_figure, plain

PLAIN = Look(LIGHT, 10.0)
SAME, DIFFERENT = "#D9D9D9", "#D7261E"


def ribbon_figure(
    views: Sequence[tuple[str, PairView]],
    means: Sequence[float],
    look: Look = PLAIN,
    arm_names: Sequence[str] = (),
    agreement: Sequence[float] = (),
) -> Figure:
    """Draw a panel for each (title, view), all on one axis; arms without names have numbers.

    `agreement` is the share of all pairs that agree, for each view: with it titles say how typical this pair is.
    """
    figure = new_figure(look, (1.6 if look.narrow else 1.0) + (1.55 if look.narrow else 1.3) * len(views))
    panels = figure.subplots(len(views), 1, squeeze=False, sharex=True)[:, 0]
    count = len(means) or max(view.arms for _, view in views)  # actions of an infinite set have numbers only
    colours = arm_colours(views, count)
    shares: list[float | None] = [*agreement] or [None] * len(views)
    for axes, (title, view), share in zip(panels, views, shares, strict=True):
        _draw(axes, view, colours)
        _name(axes, title, _verdict(view, share), look)
    panels[-1].set_xscale("log")
    panels[-1].set_xlim(min(_start(view) for _, view in views), max(view.horizon for _, view in views))
    panels[-1].set_xlabel("pull number")
    named = [arm for arm in range(count) if colours[arm] != OTHERS]
    what = "arm" if means else "action"
    called = [plain(name) for name in arm_names] or [f"{what} {arm + 1}" for arm in range(count)]
    names = [called[arm] + (f" (mean {means[arm]:.4g})" if means else "") for arm in named]
    arms = [Patch(color=colours[arm], label=name) for arm, name in zip(named, names, strict=True)]
    if len(named) < count:
        arms.append(Patch(color=OTHERS, label=f"all other {what}s"))
    strip = [Patch(color=SAME, label=f"same {what}"), Patch(color=DIFFERENT, label=f"different {what}")]
    labels = [str(patch.get_label()) for patch in (*arms, *strip)]
    columns = _legend_columns(labels, look)
    figure.legend(handles=[*arms, *strip], loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)
    return figure


def _legend_columns(labels: Sequence[str], look: Look) -> int:
    """Return the legend's columns: one line if all labels fit, else at most four."""
    widths = [len(label) + 9 for label in labels]  # in letters, with the patch and what is between columns
    room = int(14.0 * look.width)
    if sum(widths) <= room and len(labels) <= 6:
        return len(labels)
    return max(1, min(2 if look.narrow else 4, room // max(widths)))


def arm_colours(views: Sequence[tuple[str, PairView]], arms: int) -> list[str]:
    """Return a colour for each arm; arms that are seen least share one."""
    if arms <= len(ARM_COLOURS):
        return list(ARM_COLOURS[:arms])
    seen = np.zeros(arms, dtype=np.int64)
    for _, view in views:
        for sequence in (view.first, view.second):
            seen += np.bincount(sequence, minlength=arms)
    most = sorted(np.argsort(-seen, kind="stable")[: len(ARM_COLOURS)].tolist())
    colours = [OTHERS] * arms
    for arm, colour in zip(most, ARM_COLOURS, strict=True):
        colours[arm] = colour
    return colours


def draw_ribbons(axes: Axes, title: str, view: PairView, look: Look, colours: Sequence[str]) -> None:
    """Draw one pair into axes of its own: both executions, where they differ, and in the title whether they do."""
    _draw(axes, view, colours)
    _name(axes, title, _verdict(view, None), look)
    axes.set_xscale("log")
    axes.set_xlim(_start(view), view.horizon)


def _draw(axes: Axes, view: PairView, colours: Sequence[str]) -> None:
    edges = np.append(view.rounds + 1.0, view.horizon + 1.0)
    arms = ListedColormap([to_rgb(colour) for colour in colours])
    for row, sequence in ((1.1, view.first), (0.0, view.second)):
        _ribbon(axes, edges, (row, row + 1.0), sequence, arms, len(colours))
    different = (view.first != view.second).astype(np.int64)
    _ribbon(axes, edges, (-0.45, -0.15), different, ListedColormap([SAME, DIFFERENT]), 2)
    axes.set_ylim(-0.5, 2.15)
    axes.set_yticks([1.6, 0.5, -0.3], ["first lab", "second lab", "same?"])
    axes.tick_params(left=False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _name(axes: Axes, title: str, verdict: str, look: Look) -> None:
    title = plain(title)
    axes.set_title(f"{title}:\n{verdict}" if look.narrow else f"{title}: {verdict}", loc="left", fontsize=10)


def _verdict(view: PairView, share: float | None) -> str:
    """Say whether this pair agrees and, if the share is known, how many pairs do."""
    winner = view.level == "winner"
    if share is None:
        if winner:
            return "the same winner" if view.same else "different winners"
        return "every pull the same" if view.same else "the two labs part ways"
    if winner:
        told = "this pair names one winner" if view.same else "this pair names two winners"
    else:
        told = "this pair agrees" if view.same else "this pair parts"
    return f"{told}; {hundredths(share)} of pairs {'do' if view.same else 'agree'}"


def _start(view: PairView) -> float:
    """Return the pull at which the picture begins: half a decade before either side first changes its arm."""
    changes = [np.flatnonzero(np.diff(sequence)) for sequence in (view.first, view.second)]
    first = min((int(view.rounds[where[0]]) for where in changes if where.size), default=0)
    return max(1.0, first / 3.0)


def _ribbon(
    axes: Axes, edges: FloatArray, rows: tuple[float, float], values: IntArray, colours: ListedColormap, count: int
) -> None:
    axes.pcolormesh(
        edges, list(rows), values[np.newaxis, :], cmap=colours, vmin=-0.5, vmax=count - 0.5, rasterized=True
    )


def save_ribbons(
    path: Path, views: Sequence[tuple[str, PairView]], means: Sequence[float], agreement: Sequence[float] = ()
) -> None:
    """Write the figure as a PNG."""
    ribbon_figure(views, means, agreement=agreement).savefig(path)
