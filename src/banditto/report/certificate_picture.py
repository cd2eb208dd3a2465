"""The picture of a certificate: how many pairs had differed by when, and whether that stays below rho."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from banditto.measure.certificate import Certificate
from banditto.report.plotting import figure_or_axes, percent_axis, soft_grid, titled
from banditto.report.style import Look, plain


def certificate_figure(certificate: Certificate, ax: Any = None) -> Any:
    """Draw the share of pairs that differ against pulls, with its interval at the end; a figure or `ax` comes back."""
    return figure_or_axes(_draw, certificate, ax, 3.4)


def _draw(axes: Axes, certificate: Certificate, look: Look) -> None:
    colour, horizon = look.theme.policies[0], certificate.horizon
    low, high = 1.0 - certificate.interval[1], 1.0 - certificate.interval[0]
    differ = certificate.mismatches / certificate.pairs
    pulls = list(certificate.divergence_pulls)
    parted = np.cumsum(list(certificate.divergence_pulls.values())) / certificate.pairs
    start = max(1.0, (min(pulls) if pulls else horizon / 100.0) / 3.0)
    axes.plot(
        [start, *pulls, horizon],
        [0.0, *parted, differ],
        drawstyle="steps-post",
        color=colour,
        label="pairs that differ",
    )
    errors = np.array([[differ - low], [high - differ]]).clip(0.0)
    sure = f"{100.0 * certificate.confidence:g}% interval at the end"
    axes.errorbar(
        [horizon], [differ], yerr=errors, fmt="o", color=colour, capsize=5, markersize=6, label=sure, clip_on=False
    )
    axes.axhline(certificate.rho, color=look.theme.alarm, linestyle="--", label=f"allowed: rho = {certificate.rho:g}")
    if certificate.bound is not None and certificate.bound < 1.0:
        label = f"proved bound: {certificate.bound:.3g}"
        axes.axhline(certificate.bound, color=look.theme.ink, linestyle=":", linewidth=1.2, label=label)
    axes.set_xscale("log")
    axes.set_xlim(start, horizon * (horizon / start) ** 0.03)
    axes.set_ylim(0.0, min(1.05, 1.15 * max(high, certificate.rho)))
    percent_axis(axes)
    soft_grid(axes)
    axes.set_xlabel("pulls")
    axes.set_ylabel("pairs with different winners" if certificate.level == "winner" else "pairs that have parted")
    agreed = f"{certificate.agreement:.1%} of {certificate.pairs:,} pairs agree: {certificate.verdict}"
    titled(axes, f"{plain(certificate.policy)}: {agreed}")
