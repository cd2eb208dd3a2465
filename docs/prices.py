"""The measured parts of docs/cost.md: curves, their table, what ties do to a plan, and what calibration saves."""

from __future__ import annotations

import warnings
from functools import cache

from benchmarks import certified
from matplotlib.figure import Figure

import banditto as bd
from banditto.core.text import PAGE, fitted
from banditto.measure.plan.plans import asked, limit_lines
from banditto.measure.plan.questions import Question
from banditto.measure.plan.rehearsal import rehearse
from banditto.measure.plan.trial_plan import RHOS, CurvePoint, price_curves
from banditto.report.figures import price_figure
from banditto.report.style import Look
from docs.drawing import Drawing

ARMS, GAP, BASELINE, RATE = 4, 0.01, 0.05, 0.1  # 5% against 6%, and no rate above 10%
VISITORS = 200_000
WINNERS_RHO = 0.24  # about what every pull can be repeated with


@cache
def question() -> Question:
    return asked(None, ARMS, None, "bernoulli", 0.95, 1.0, RATE, BASELINE)


@cache
def points() -> list[CurvePoint]:
    return price_curves(question(), GAP)


@cache
def worked() -> bd.TrialPlan:
    return bd.plan(arms=ARMS, gap=GAP, horizon=VISITORS, by=1, rate_at_most=RATE, baseline=BASELINE)


@cache
def worked_winner() -> bd.TrialPlan:
    return bd.plan(arms=ARMS, gap=GAP, rho=WINNERS_RHO, rate_at_most=RATE, baseline=BASELINE, same="winner")


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
    with fitted(PAGE):
        return f"```text\n{worked().table()}\n```\n"


def winner_table() -> str:
    with fitted(PAGE):
        return f"```text\n{worked_winner().table()}\n```\n"


def others_table() -> str:
    """The worked plan on other arms than those that it was made for."""
    rows = [
        ("as planned", [0.05, 0.05, 0.05, 0.06]),
        ("a lead of 0.02", [0.05, 0.05, 0.05, 0.07]),
        ("a lead of half a point", [0.055, 0.055, 0.055, 0.06]),
        ("two best arms, two that are worse", [0.05, 0.05, 0.06, 0.06]),
        ("two best arms, two that are bad", [0.0, 0.0, 0.06, 0.06]),
        ("no differences", [0.06] * 4),
    ]
    lines = ["| arms | means | ends with a best arm | pairs that differ |", "| --- |" + " --- |" * 3]
    for name, means in rows:
        world = bd.Bernoulli(means)
        lag = min((max(means) - mean for mean in means if mean < max(means)), default=0.0)
        played = rehearse(worked().policy, world, lag * 0.999, 8192, 5)
        certificate = bd.certify(worked().policy, world, pairs=65_536, seed=5)
        right = f"{played.resolved(1.0):.3f}" if lag else "always"
        shown = ", ".join(f"{mean:g}" for mean in means)
        lines.append(f"| {name} | {shown} | {right} | {1 - certificate.agreement:.4f} |")
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


def horizon_figure(look: Look) -> Figure:
    return price_figure(points(), "horizon", look, limits=limit_lines(question(), GAP))


def regret_figure(look: Look) -> Figure:
    return price_figure(points(), "regret", look)


FIGURES: dict[str, Drawing] = {"cost-horizon": horizon_figure, "cost-regret": regret_figure}
TABLES = {
    "curves": curves_table,
    "worked": worked_table,
    "winner": winner_table,
    "others": others_table,
    "calibrated": calibrated_table,
}
