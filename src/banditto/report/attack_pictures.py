"""The pictures of attacks: how often pairs differ on each instance, and what a calibration tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from banditto.measure.attack.attacking import Attack
from banditto.measure.calibrate import Calibration
from banditto.report.plotting import figure_or_axes, percent_axis, soft_grid, titled
from banditto.report.style import Look, plain

_WELL_KNOWN = 30  # pairs; what was seen of fewer is mostly noise


def attack_figure(attack: Attack, ax: Any = None) -> Any:
    """Draw the share of pairs that differ for each instance tried, by the lead of its best arm, against rho."""
    return figure_or_axes(_attack, attack, ax, 3.6)


def _attack(axes: Axes, attack: Attack, look: Look) -> None:
    tried = [one for one in attack.tried if one.pairs >= _WELL_KNOWN] or list(attack.tried)
    tried.sort(key=lambda one: -one.mismatches / one.pairs)
    by_lead = bool(attack.worst.means)
    places = [_lead(one.means) if by_lead else float(number) for number, one in enumerate(tried, 1)]
    shares = [one.mismatches / one.pairs for one in tried]
    sizes = [8.0 + 8.0 * np.log10(one.pairs) for one in tried]
    grey = look.theme.terms[-1]
    axes.scatter(places, shares, s=sizes, color=grey, alpha=0.6, linewidths=0, label="instances that were tried")
    worst, (low, high) = attack.worst, attack.worst.interval
    axes.errorbar(
        [_lead(worst.means) if by_lead else 0.0],
        [worst.differ],
        yerr=np.array([[worst.differ - low], [high - worst.differ]]).clip(0.0),
        fmt="o",
        color=look.theme.policies[0],
        capsize=4,
        label=f"the worst, on {worst.pairs:,} fresh pairs",
    )
    axes.axhline(attack.rho, color=look.theme.alarm, linestyle="--", label=f"allowed: rho = {attack.rho:g}")
    if attack.bound is not None and attack.bound < 1.0:
        label = f"proved bound: {attack.bound:.3g}"
        axes.axhline(attack.bound, color=look.theme.ink, linestyle=":", linewidth=1.2, label=label)
    axes.set_ylim(0.0, min(1.05, 1.15 * max([high, attack.rho, *shares])))
    percent_axis(axes)
    soft_grid(axes)
    axes.set_xlabel("by how much the best arm leads" if by_lead else "instances, the worst first")
    axes.set_ylabel("pairs that differ")
    titled(axes, f"{plain(attack.policy)}: {attack.instances_tried:,} instances tried: {attack.verdict}")


def _lead(means: Sequence[float]) -> float:
    best, second = sorted(means, reverse=True)[:2]
    return best - second


def calibration_figure(calibration: Calibration, ax: Any = None) -> Any:
    """Draw the worst that each attack found against the rho whose constants it attacked."""
    return figure_or_axes(_calibration, calibration, ax, 3.6)


def _calibration(axes: Axes, calibration: Calibration, look: Look) -> None:
    for passed, colour, word in (
        (True, look.theme.policies[0], "attacks that these constants passed"),
        (False, look.theme.terms[-1], "attacks that they did not pass"),
    ):
        steps = [step for step in calibration.steps if step.passed == passed]
        if steps:
            middles = [step.differ for step in steps]
            ends = [
                [step.differ - step.interval[0] for step in steps],
                [step.interval[1] - step.differ for step in steps],
            ]
            axes.errorbar(
                [step.nominal_rho for step in steps],
                middles,
                yerr=np.array(ends).clip(0.0),
                fmt="o" if passed else "x",
                color=colour,
                capsize=4,
                label=word,
            )
    rho, nominal = calibration.rho, calibration.nominal_rho
    axes.axhline(rho, color=look.theme.alarm, linestyle="--", label=f"allowed: rho = {rho:g}")
    axes.axvline(nominal, color=look.theme.ink, linestyle=":", linewidth=1.2, label=f"chosen: {nominal:.3g}")
    axes.set_ylim(bottom=0.0)
    percent_axis(axes)
    soft_grid(axes)
    axes.set_xlabel("rho for which the constants are certified")
    axes.set_ylabel("pairs that differ on the worst instance")
    titled(axes, f"{plain(calibration.policy.name)}: {calibration.label}")
