"""The picture of a reproduction: what was measured of each claim, beside what was predicted."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes

from banditto.paper.claims import AtLeast, AtMost, Measured, Near
from banditto.paper.running import Reproduction
from banditto.report.plotting import figure_or_axes, named_rows, soft_grid, titled
from banditto.report.style import Look

_LEAST, _MOST = 1e-4, 1e4  # of a ratio that is drawn where it is


def claims_figure(reproduction: Reproduction, ax: Any = None) -> Any:
    """Draw what was measured of each claim as a multiple of what was predicted; claims that cannot be are left out."""
    return figure_or_axes(_claims, reproduction, ax, 1.6 + 0.24 * max(len(_drawable(reproduction)), 2))


def _drawable(reproduction: Reproduction) -> list[tuple[str, Near | AtMost | AtLeast, Measured, str]]:
    return [
        (row.claim.name, row.claim.rule, row.measured, row.verdict)
        for row in reproduction.rows
        if isinstance(row.claim.rule, Near | AtMost | AtLeast) and row.measured is not None and row.claim.rule.predicted
    ]


def _claims(axes: Axes, reproduction: Reproduction, look: Look) -> None:
    rows = _drawable(reproduction)
    words = {
        Near: ("o", "should be near 1"),
        AtMost: ("<", "should be at most 1"),
        AtLeast: (">", "should be at least 1"),
    }
    named: set[str] = set()
    for place, (_, rule, measured, verdict) in enumerate(rows):
        low, middle, high = (
            min(max(value / rule.predicted, _LEAST), _MOST)
            for value in (measured.interval[0], measured.value, measured.interval[1])
        )
        colour = look.theme.policies[0] if verdict == "agrees" else look.theme.alarm
        marker, word = words[type(rule)]
        label: dict[str, Any] = {} if word in named else {"label": word}
        named.add(word)
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [place, place], color=colour, linewidth=2.0, alpha=0.5, solid_capstyle="butt")
        axes.plot(middle, place, marker=marker, color=colour, linestyle="none", markersize=6, **label)
    axes.axvline(1.0, color=look.theme.ink, linewidth=1.0, linestyle=":")
    named_rows(axes, [name for name, _, _, _ in rows])
    axes.set_xscale("log")
    soft_grid(axes, "x")
    axes.set_xlabel("measured, divided by predicted")
    titled(axes, reproduction.summary())
