"""The pictures of a comparison: what replicability costs, and the figures of the report one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from banditto.core.errors import InvalidArgument
from banditto.measure.comparison import Comparison, Picture
from banditto.problems.environments.resampled import Resampled
from banditto.report.figures import agreement_figure, divergence_figure, guarantee_figure, regret_figure
from banditto.report.plotting import figure_or_axes, percent_axis, soft_grid, titled
from banditto.report.report_folder import illustrated
from banditto.report.ribbons import ribbon_figure
from banditto.report.style import LOOKS, Look, drawn_in, plain, policy_style


def comparison_figure(comparison: Comparison, kind: Picture, ax: Any = None) -> Any:
    """Draw what each policy loses against how often its pairs agree, or a figure of the report."""
    if kind not in get_args(Picture):
        raise InvalidArgument("kind", kind, ", ".join(get_args(Picture)))
    if not comparison.entrants:
        raise InvalidArgument("comparison", "no finished policy", "a comparison with one policy or more")
    if kind == "price":
        return figure_or_axes(_price, comparison, ax, 4.0)
    if ax is not None:
        raise InvalidArgument("ax", "axes", f'axes with kind="price"; "{kind}" is a figure of its own')
    look = LOOKS["light", "wide"]
    with drawn_in(look):
        figure = _DRAWN[kind](comparison, look)
    if figure is None:
        why = {"regret": "arms that are not all equally good", "guarantee": "a policy with a guarantee"}
        raise InvalidArgument("kind", kind, f"a kind that this comparison has; {kind} needs {why[kind]}")
    return figure


def _ribbons(comparison: Comparison, look: Look) -> Figure:
    world = comparison.environment
    views = [(row.label, row.view) for row in illustrated(comparison).entrants if row.view is not None]
    return ribbon_figure(views, world.means, look, world.log.arms if isinstance(world, Resampled) else ())


_DRAWN: dict[str, Callable[[Comparison, Look], Figure | None]] = {
    "agreement": agreement_figure,
    "regret": lambda comparison, look: regret_figure(illustrated(comparison), look),
    "ribbons": _ribbons,
    "divergence": divergence_figure,
    "guarantee": guarantee_figure,
}


def _price(axes: Axes, comparison: Comparison, look: Look) -> None:
    rows = [row.certificate for row in comparison.entrants]
    shares = [row.share_of_random_play for row in rows]
    known = all(share is not None for share in shares)
    values = [
        share if known and share is not None else row.regret.mean for share, row in zip(shares, rows, strict=True)
    ]
    for number, rho in enumerate(sorted({row.rho for row in rows})):
        label: dict[str, Any] = {"label": f"1 - rho = {1.0 - rho:g}"} if number == 0 else {}
        axes.axvline(1.0 - rho, color=look.theme.alarm, linewidth=1.2, linestyle="--", **label)
    for number, (entrant, row, value) in enumerate(zip(comparison.entrants, rows, values, strict=True)):
        colour = str(policy_style(look, number)["color"])
        axes.plot(row.interval, [value, value], color=colour, linewidth=2.0, alpha=0.5, solid_capstyle="butt")
        reach = row.regret.interval[1] - row.regret.mean
        if math.isfinite(reach) and row.regret.mean > 0.0:
            ends = [value * (1.0 - min(reach / row.regret.mean, 0.99)), value * (1.0 + reach / row.regret.mean)]
            axes.plot([row.agreement] * 2, ends, color=colour, linewidth=2.0, alpha=0.5, solid_capstyle="butt")
        marker = "osD^vP*X"[number % 8]
        axes.plot(
            row.agreement,
            value,
            marker=marker,
            markersize=8,
            color=colour,
            linestyle="none",
            label=plain(entrant.label),
        )
    if all(value > 0.0 for value in values):
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 2.0, max(values) * 2.0)
    axes.set_xlim(-0.02, 1.02)
    percent_axis(axes, "x")
    if known:
        percent_axis(axes)
    soft_grid(axes)
    axes.set_xlabel("pairs that agree")
    axes.set_ylabel("regret, as a share of random play" if known else "regret, in rewards")
    titled(axes, "Further right: two labs agree more often. Further down: less is lost.")
