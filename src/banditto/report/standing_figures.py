"""Where a live experiment stands, as pictures: arms in play over time, and means against the cut that decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from banditto.report.colours import ARM_COLOURS, OTHERS
from banditto.report.style import LOOKS, Look, drawn_in, new_figure, plain

MOST_ARMS = 40  # rows of a figure, so that it stays one
_ROW, _NARROW_ROW = 0.32, 0.42  # inches


class PlayedBatch(NamedTuple):
    """The pulls of a batch, by arm; whether it is decided, or still under way."""

    pulls: tuple[int, ...]
    decided: bool


class SeenSide(NamedTuple):
    """What one run saw at a decision: the mean of each arm that was in play, by its name."""

    label: str
    means: Mapping[str, float]


def play_figure(names: Sequence[str], batches: Sequence[PlayedBatch], look: Look = LOOKS["light", "wide"]) -> Figure:
    """Draw a bar for each arm over the pulls of the batches in which it is in play; what is under way is lighter."""
    shown = list(names)[:MOST_ARMS]
    with drawn_in(look):
        figure = new_figure(look, 1.0 + (_NARROW_ROW if look.narrow else _ROW) * len(shown))
        axes = figure.subplots()
        start = 0
        for batch in batches:
            length = sum(batch.pulls)
            for arm in range(len(shown)):
                if batch.pulls[arm]:
                    axes.barh(
                        arm, length, left=start, height=0.62, color=arm_colour(arm), alpha=1.0 if batch.decided else 0.4
                    )
            start += length
            axes.axvline(start, color=look.theme.ink, linewidth=0.8, linestyle="-" if batch.decided else ":")
        _rows(axes, shown)
        axes.set_xlim(0, max(start, 1))
        axes.set_xlabel("visitors of all arms" + ("" if look.narrow else " together; a line at the end of each batch"))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.locator_params(axis="x", nbins=4 if look.narrow else 7)
    return figure


def means_figure(
    sides: Sequence[SeenSide],
    cuts: Mapping[str, float],
    look: Look = LOOKS["light", "wide"],
    *,
    percent: bool = False,
) -> Figure:
    """Draw each run's means at one decision, a panel for each run, with a line as far behind the best as each cut."""
    scale = 100.0 if percent else 1.0
    names = list(dict.fromkeys(name for side in sides for name in side.means))[:MOST_ARMS]
    with drawn_in(look):
        rows = (_NARROW_ROW if look.narrow else _ROW) * len(names) + 0.75
        figure = new_figure(look, (0.8 if cuts else 0.5) + rows * len(sides))
        panels = figure.subplots(len(sides), 1, squeeze=False, sharex=True)[:, 0]
        draw_means(list(panels), sides, cuts, look, percent=percent)
        if cuts:
            said = " and ".join(f"{scale * cut:.3g}" for cut in cuts.values())
            figure.suptitle(
                f"red line: {said}{' points' if percent else ''} below the best", x=0.01, ha="left", fontsize=9
            )
    return figure


def draw_means(
    panels: Sequence[Axes],
    sides: Sequence[SeenSide],
    cuts: Mapping[str, float],
    look: Look,
    *,
    percent: bool = False,
) -> None:
    """Draw each run's means into a panel of its own, with a line as far behind the best as each cut."""
    scale, unit = (100.0, ", %") if percent else (1.0, "")
    names = list(dict.fromkeys(name for side in sides for name in side.means))[:MOST_ARMS]
    for axes, side in zip(panels, sides, strict=True):
        best = max(side.means.values())
        for row, name in enumerate(names):
            if name in side.means:
                axes.plot(
                    scale * side.means[name], row, marker="o", markersize=7, color=look.theme.ink, linestyle="none"
                )
        for cut, style in zip(cuts.values(), ("-", "--", ":"), strict=False):
            axes.axvline(scale * (best - cut), color=look.theme.alarm, linewidth=1.2, linestyle=style)
        _rows(axes, names)
        axes.margins(x=0.15)
        axes.grid(visible=True, axis="x")
        axes.set_axisbelow(True)
        if side.label:
            axes.set_title(plain(side.label), loc="left", fontsize=10)
    panels[-1].set_xlabel(f"mean when it was decided{unit}")
    panels[-1].locator_params(axis="x", nbins=4 if look.narrow else 7)


def arm_colour(arm: int) -> str:
    """Return the colour that an arm has in every figure; from the eighth on they share one."""
    return ARM_COLOURS[arm] if arm < len(ARM_COLOURS) else OTHERS


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [plain(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
