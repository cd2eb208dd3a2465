"""The measured parts of docs/cost.md: curves, their table, what ties do to a plan, and what calibration saves."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

from benchmarks import certified

import banditto as bd
from banditto.measure.plan.plans import asked
from banditto.measure.plan.rehearsal import rehearse
from banditto.measure.plan.trial_plan import RHOS, CurvePoint, price_curves
from banditto.report.figures import price_figure
from banditto.report.style import LOOKS, as_png, drawn_in

ARMS, GAP = 5, 0.05


@cache
def points() -> list[CurvePoint]:
    return price_curves(asked(None, ARMS, None, "bernoulli", 0.95, 0.5), GAP)


@cache
def worked() -> bd.TrialPlan:
    return bd.plan(arms=4, gap=GAP, rho=0.1)


def curves_table() -> str:
    names = list(dict.fromkeys(point.policy for point in points()))
    lines = ["| rho | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for rho in RHOS:
        found = {point.policy: point for point in points() if point.rho == rho}
        cells = [
            f"{found[name].horizon:.3g} ({found[name].regret:.3g})" if name in found else "never" for name in names
        ]
        lines.append(f"| {rho:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def worked_table() -> str:
    return f"```text\n{worked().table()}\n```\n"


def others_table() -> str:
    """The worked plan on other arms than those that it was made for."""
    rows = [
        ("as planned", [0.475, 0.475, 0.475, 0.525]),
        ("a lead of 0.1", [0.425, 0.425, 0.425, 0.525]),
        ("a lead of 0.2", [0.325, 0.325, 0.325, 0.525]),
        ("two best arms, two that are worse", [0.475, 0.475, 0.525, 0.525]),
        ("no differences", [0.5] * 4),
    ]
    lines = ["| arms | means | dropped in time | expected regret | pairs that differ |", "| --- |" + " --- |" * 4]
    for name, means in rows:
        world = bd.Bernoulli(means)
        played = rehearse(worked().policy, world, GAP * 0.999, 8192, 5)
        certificate = bd.certify(worked().policy, world, pairs=8192, seed=5)
        dropped = f"{played.resolved(0.5):.3f}" if max(means) - min(means) > 0.01 else "nothing to drop"
        shown = ", ".join(f"{mean:g}" for mean in means)
        lines.append(
            f"| {name} | {shown} | {dropped} | {certificate.regret.mean:,.0f} | {1 - certificate.agreement:.4f} |"
        )
    return "\n".join(lines) + "\n"


def calibrated_table() -> str:
    """Every problem of the certified grid: the nominal rho, and regret with certified over calibrated constants."""
    lines = ["| K | T | rho | nominal rho | " + " | ".join(f"gap {gap:g}" for gap in certified.GAPS) + " |"]
    lines.append("| --- |" + " --- |" * (3 + len(certified.GAPS)))
    factors = []
    for arms in certified.ARMS:
        for horizon in certified.HORIZONS:
            for rho in certified.RHOS:
                found, row = calibrated_cell(arms, horizon, rho)
                factors += row
                cells = " | ".join(f"{factor:.3f}" for factor in row)
                power = len(str(horizon)) - 1
                lines.append(f"| {arms} | 1e{power} | {rho:g} | {found.nominal_rho:.4g} | {cells} |")
    mean = certified.mean(factors)
    lines += ["", f"Smallest factor {min(factors):.3f}, geometric mean {mean:.3f}."]
    return "\n".join(lines) + "\n"


def calibrated_cell(
    arms: int, horizon: int, rho: float, budget: int = 100_000, pairs: int = 16_384
) -> tuple[bd.Calibration, list[float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        policy = bd.CertifiedElimination(arms=arms, horizon=horizon, rho=rho)
    found = bd.calibrate(policy, pairs_budget=budget)
    factors = []
    for gap in certified.GAPS:
        world = bd.Bernoulli([*(certified.BEST - g for g in certified.profile("equal", arms, gap)), certified.BEST])
        before, after = (bd.certify(p, world, pairs=pairs, seed=1).regret.mean for p in (policy, found.policy))
        factors.append(before / after)
    return found, factors


def cost_figures(folder: Path) -> None:
    for size, ending in (("wide", ""), ("narrow", "-narrow")):
        look = LOOKS["light", size]
        with drawn_in(look):
            (folder / f"cost-horizon{ending}.png").write_bytes(as_png(price_figure(points(), "horizon", look)))
            (folder / f"cost-regret{ending}.png").write_bytes(as_png(price_figure(points(), "regret", look)))


TABLES = {"curves": curves_table, "worked": worked_table, "others": others_table, "calibrated": calibrated_table}
