"""The measured parts of the pages on linear problems; `make docs-tables` runs it."""

from __future__ import annotations

import math
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks import linear as benchmark
from tests.policies import test_least_squares
from tests.statistical import test_linear
from tests.statistical.linear_worlds import share_dropped

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.rewards import Rewards
from banditto.geometry.regression import Regression
from banditto.numbers import lattice
from banditto.numbers.intervals import clopper_pearson
from banditto.policies.shared_linear.estimate_rounding import LatticeRounding, leverage_of
from banditto.report.style import Look, new_figure
from docs.drawing import Drawing, panels, pens_of


def spread(mismatches: int, pairs: int) -> str:
    low, high = clopper_pearson(mismatches, pairs, 0.95)
    return f"{mismatches / pairs:.3f} ({low:.3f} to {high:.3f})"


# -- least-squares.md -------------------------------------------------------------------------------------------------


def pulls_table() -> str:
    lines = [
        "| d | lattice | grid, ours | paper's recipe | paper's on our core set | lattice: differ | largest error |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for d in (2, 5, 10):
        points = test_least_squares.sphere(500, d)
        lsq = bd.ReplicableLeastSquares(actions=points)
        ours = lsq.pulls_needed(0.2, 0.1, 1e-7)
        grid = bd.ReplicableLeastSquares(actions=points, rounding="grid").pulls_needed(0.2, 0.1, 1e-7)
        paper = lsq.pulls_needed(0.2, 0.1, 1e-7, constants="paper")
        core = bd.g_optimal_design(points, accuracy=1.0).support
        each = bd.samples_needed(tau=0.2 / math.sqrt(2 * d), delta=1e-7 / core, rho=0.1 / core, constants="paper")
        differ, worst = rounded_pairs(lsq, points, ours)
        cells = [str(d), f"{ours:,}", f"{grid:,}", f"{paper:.2g} ({paper / ours:,.0f} times)"]
        cells += [f"{core * each:.2g} ({core * each / ours:,.0f} times)", spread(differ, 20_000), f"{worst:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def rounded_pairs(lsq: bd.ReplicableLeastSquares, points: FloatArray, pulls: int) -> tuple[int, float]:
    """How many of 20,000 pairs differ, Bernoulli rewards, and the largest error of any arm's value."""
    design, plan = lsq.design, lsq.plan(pulls).pulls
    d = points.shape[1]
    regression = Regression.of(np.ascontiguousarray(np.array(design.actions).T), plan)
    shape, leverage = LatticeRounding(d, Rewards("bounded", 0.5), 0.1), leverage_of(design.g, regression.total)
    theta, rng = 0.05 * points[0], np.random.default_rng(d)
    uniforms = np.concatenate([Coins(4, 0, 20_000).uniform("lattice", 0, k) for k in range(d)], axis=1)
    drawn = []
    for _ in range(2):
        means = 0.5 + theta @ regression.core
        totals = np.array([rng.binomial(n, m, size=20_000) for n, m in zip(plan, means, strict=True)], dtype=float).T
        drawn.append(shape.rounded(regression, totals, 0.5, leverage, uniforms).theta)
    worst = max(float(np.max(np.abs((found - theta) @ points.T))) for found in drawn)
    return int(np.sum(np.any(drawn[0] != drawn[1], axis=1))), worst


def cells_table() -> str:
    lines = [
        "| d | surface S of A_d* | of the cube | of a ball | S R of A_d* | of the cube |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for d in (1, 2, 3, 5, 8, 10, 20):
        surface, radius, ball = (float(f(d)) for f in (lattice.surface, lattice.radius, lattice.ball_surface))
        cube = 2 * d * math.sqrt(d) / 2
        lines.append(f"| {d} | {surface:.2f} | {2 * d} | {ball:.2f} | {surface * radius:.2f} | {cube:.2f} |")
    return "\n".join(lines) + "\n"


DIMENSIONS = [1, 2, 3, 4, 6, 8, 10, 14, 20]


@cache
def pulls_curves() -> dict[str, list[float]]:
    """Pulls that each way of rounding needs in those dimensions."""
    curves: dict[str, list[float]] = {"lattice": [], "grid, ours": [], "paper's recipe": []}
    for d in DIMENSIONS:
        points = test_least_squares.sphere(max(60, 4 * d), d)
        lsq = bd.ReplicableLeastSquares(actions=points)
        curves["lattice"].append(lsq.pulls_needed(0.2, 0.1, 1e-7))
        grid = bd.ReplicableLeastSquares(actions=points, rounding="grid", accuracy=1.0)
        curves["grid, ours"].append(grid.pulls_needed(0.2, 0.1, 1e-7))
        curves["paper's recipe"].append(lsq.pulls_needed(0.2, 0.1, 1e-7, constants="paper"))
    return curves


def lattice_figure(look: Look) -> Figure:
    """Estimates of two labs among the cells of the lattice, and pulls against the dimension."""
    pens = pens_of(look)
    figure = new_figure(look, 8.6 if look.narrow else 4.3)
    left, right = panels(figure, look, 2)
    rng = np.random.default_rng(2)
    centres = np.unique(lattice.nearest(rng.uniform(-3, 3, size=(4000, 2))).centres.round(9), axis=0)
    turned = np.pi / 3 * np.arange(6) + _first_corner()
    corner = float(lattice.radius(2))
    for centre in centres:
        hexagon = centre + corner * np.column_stack([np.cos(turned), np.sin(turned)])
        left.add_patch(Polygon(hexagon, fill=False, edgecolor=pens.back, linewidth=0.8))
    for colour, name in ((pens.first, "first lab"), (pens.second, "second lab")):
        cloud = np.array([0.12, 0.2]) + 0.1 * rng.standard_normal((150, 2))
        left.scatter(
            cloud[:, 0], cloud[:, 1], s=7, color=colour, label=f"{name}: estimates in 150 experiments", alpha=0.8
        )
    left.scatter(centres[:, 0], centres[:, 1], s=14, marker="+", color=pens.ink, label="what they are rounded to")
    left.set_xlim(-1.9, 1.9)
    left.set_ylim(-1.6, 1.6)
    left.set_aspect("equal")
    left.set_title("rounding x to shared hexagons (d = 2)", loc="left", fontsize=10)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8, frameon=False)
    for (name, values), colour in zip(pulls_curves().items(), (pens.first, pens.third, pens.second), strict=True):
        right.plot(DIMENSIONS, values, marker="o", markersize=4, color=colour, label=name)
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xticks(DIMENSIONS, [str(d) for d in DIMENSIONS])
    right.minorticks_off()
    right.set_xlabel("dimension")
    right.set_ylabel("pulls")
    left.set_xlabel("first coordinate of x/s")
    left.set_ylabel("second coordinate of x/s")
    right.set_title("pulls for rho = 0.1 and every value within 0.2", loc="left", fontsize=10)
    right.legend(frameon=False, fontsize=9)
    return figure


def _first_corner() -> float:
    """The angle of a corner of a cell: the direction in which the cell's points reach farthest."""
    angles = np.linspace(-np.pi / 6, np.pi / 6, 721)
    ring = float(lattice.radius(2)) * 0.999 * np.column_stack([np.cos(angles), np.sin(angles)])
    inside = np.all(lattice.nearest(ring).names == 0, axis=1)
    return float(angles[inside].mean())


# -- linear-threshold.md ----------------------------------------------------------------------------------------------


def threshold_table() -> str:
    lines = [f"{test_linear.PAIRS:,} pairs a row, rho = {test_linear.RHO}, certified constants.", ""]
    lines += ["| instance | T | beta | executions that drop an arm | differ |", "| --- | --- | --- | --- | --- |"]
    for number in test_linear.NUMBERS:
        world = test_linear.finite("linear-threshold", number)
        policy: Any = world.policy
        found = bd.certify(policy, world.environment, pairs=test_linear.PAIRS, seed=11)
        cells = [world.name, f"{policy.horizon:.2g}", f"{policy.schedule.blowup:,}"]
        cells += [f"{share_dropped(world, 64):.0%}", spread(found.mismatches, found.pairs)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TIED_GAPS = (0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


@cache
def tied_curve(constants: Literal["certified", "paper"]) -> list[tuple[float, float, float]]:
    """The share of pairs that differ at each of those gaps, and the ends of its interval."""
    rows = []
    for gap in TIED_GAPS:
        points = np.array([[0.9, 0.3], [0.9 - 2 * gap / 0.9, -0.3], [-0.5, 0.5], [0.0, 0.6]])
        policy = bd.LinearThreshold(actions=points, horizon=10**9, rho=0.1, constants=constants)
        found = bd.certify(policy, bd.LinearBernoulli([0.9, 0.0], points), pairs=1024, seed=3)
        rows.append((found.mismatches / found.pairs, *clopper_pearson(found.mismatches, found.pairs, 0.95)))
    return rows


def threshold_figure(look: Look) -> Figure:
    """Two arms that are nearly tied: the printed last line beside the shared final choice."""
    pens = pens_of(look)
    figure = new_figure(look, 3.8)
    axes = figure.subplots()
    kinds: tuple[tuple[Literal["certified", "paper"], str, str], ...] = (
        ("paper", pens.second, "as printed"),
        ("certified", pens.first, "certified"),
    )
    for constants, colour, name in kinds:
        shares, lows, highs = zip(*tied_curve(constants), strict=True)
        axes.fill_between(range(len(TIED_GAPS)), lows, highs, color=colour, alpha=0.2, linewidth=0)
        axes.plot(range(len(TIED_GAPS)), shares, marker="o", color=colour, label=name)
    axes.axhline(0.1, color=pens.alarm, linewidth=1.0, label="rho")
    size = 8 if look.narrow else None
    axes.set_xticks(range(len(TIED_GAPS)), [f"{gap:g}" for gap in TIED_GAPS], fontsize=size)
    axes.set_xlabel("gap of the two best arms (in units of reward)")
    axes.set_ylabel("share of pairs that differ")
    axes.legend(frameon=False)
    return figure


# -- least-squares-rounding.md ----------------------------------------------------------------------------------------


# Where the bound is all but attained: of few pairs more than rho may well differ there.
MORE_PAIRS = {("ball", 2): 1024, ("ball", 10): 512, ("polytope", 5): 1024}


def sets_table() -> str:
    lines = ["rho = 0.2, certified constants, the lattice.", ""]
    lines += ["| set | T | batches | pairs | differ |", "| --- | --- | --- | --- | --- |"]
    for number, (name, d) in enumerate(test_linear.SETS):
        world = test_linear.infinite(bd.LeastSquaresRounding, name, d, number)
        policy: Any = world.policy
        pairs = MORE_PAIRS.get((name, d), test_linear.effort(d)[0])
        found = bd.certify(policy, world.environment, pairs=pairs, seed=11)
        cells = [world.name, f"{policy.horizon:.2g}", str(len(policy.schedule.batches)), str(pairs)]
        lines.append("| " + " | ".join([*cells, spread(found.mismatches, pairs)]) + " |")
    return "\n".join(lines) + "\n"


def time_table() -> str:
    head = "| d | " + " | ".join(f"batch {k}" for k in (1, 2, 3)) + " |"
    lines = [head, "| --- | --- | --- | --- |"]
    for d in benchmark.DIMENSIONS:
        rows = benchmark.batches(d)
        cells = [f"{row.seconds:.2g} s, {row.maximisations:,} LPs, g/d {row.g_over_d:.2f}" for row in rows]
        lines.append(f"| {d} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


POLYTOPE_ROWS = [[1.0, 0.1], [0.4, 1.0], [-0.8, 0.6], [-0.6, -0.8], [0.5, -0.9]]
THETA = np.array([0.9, 0.32])


def polytope() -> Any:
    return bd.Polytope(rows=POLYTOPE_ROWS, bounds=[0.76, 0.71, 0.66, 0.71, 0.66])


@cache
def stages() -> list[tuple[FloatArray, FloatArray, IntArray]]:
    """Corners of the active set before each batch of one execution, the core set that is pulled next, and its pulls."""
    actions = polytope()
    world = bd.LinearBernoulli(THETA, actions)
    policy = bd.LeastSquaresRounding(actions=actions, horizon=10**10, rho=0.1)
    coins, rng = Coins(5, 0, 1), np.random.default_rng(1)
    state = policy.init(1)
    found = []
    while (pulls := policy.plan(state)) is not None:
        places = policy.places(state)
        shown = actions
        for cut in state.active[0]:
            shown = shown.cut(cut[:-1], float(cut[-1]))
        found.append((shown.vertices(), places[0][pulls[0] > 0], pulls[0][pulls[0] > 0]))
        totals = rng.binomial(pulls, world.means_at(places)).astype(float)
        state = policy.decide(state, totals, coins)
    return found


def shrinking_figure(look: Look) -> Figure:
    """The active set of a polytope after each batch of one execution, with the core set that is pulled next."""
    pens, count = pens_of(look), len(stages())
    across = 2 if look.narrow else count
    figure = new_figure(look, 4.9 if look.narrow else 2.7)
    places = list(figure.subplots(-(-count // across), across, squeeze=False).flat)
    whole = _ordered(stages()[0][0])
    best = np.array(polytope().maximise(THETA))
    for number, (axes, (corners, core, pulls)) in enumerate(zip(places, stages(), strict=False), 1):
        axes.add_patch(Polygon(whole, facecolor=look.theme.faint, alpha=0.5, edgecolor=pens.back, linewidth=0.8))
        axes.add_patch(
            Polygon(_ordered(corners), facecolor=pens.first, alpha=0.45, edgecolor=pens.first, linewidth=1.2)
        )
        last = number == count
        axes.scatter(*core.T, s=36, color=pens.second, zorder=3, label="pulled" if last else None)
        axes.scatter(*best, s=60, marker="*", color=pens.ink, zorder=4, label="best action" if last else None)
        axes.set_title(("for good" if last else f"batch {number}") + f": {pulls.sum():.2g} pulls", fontsize=9)
        axes.set_xlim(-1.15, 1.05)
        axes.set_ylim(-1.0, 1.0)
        axes.set_aspect("equal")
        axes.set_xlabel("feature 1")
        if number % across == 1:
            axes.set_ylabel("feature 2")
        if last:
            axes.legend(frameon=False, fontsize=8, loc="lower left")
    for axes in places[count:]:
        axes.set_axis_off()
    return figure


def _ordered(corners: FloatArray) -> FloatArray:
    middle = corners.mean(axis=0)
    angles = np.arctan2(corners[:, 1] - middle[1], corners[:, 0] - middle[0])
    return np.asarray(corners[np.argsort(angles)])


# -- net-threshold.md and certified-linear.md -------------------------------------------------------------------------


@cache
def net_rows() -> list[tuple[int, int, int, float, float]]:
    """(d, T, K, regret of the net, regret of the lattice) on the ball, 64 pairs."""
    rows = []
    for d in (1, 2):
        for digits in (7, 8, 9, 10):
            theta = [-0.8] if d == 1 else [0.64, 0.48]
            world = bd.LinearBernoulli(theta, bd.Ball(dimension=d))
            known: dict[str, Any] = {"actions": bd.Ball(dimension=d), "horizon": 10**digits, "rho": 0.1}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bd.ShortHorizonWarning)
                net, own = bd.NetThreshold(**known), bd.LeastSquaresRounding(**known)
            first, second = (bd.certify(policy, world, pairs=64, seed=1).regret.mean for policy in (net, own))
            rows.append((d, 10**digits, net.arms, first, second))
    return rows


def net_table() -> str:
    lines = [
        "| d | T | actions of the net | regret, net | regret, lattice | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for d, horizon, arms, net, own in net_rows():
        power = round(math.log10(horizon))
        lines.append(f"| {d} | 1e{power} | {arms} | {net:.3g} | {own:.3g} | {net / own:.1f} |")
    return "\n".join(lines) + "\n"


def price_table() -> str:
    lines = [
        "| K | d | T | rho | plan | ours | Algorithm 3, paper | Algorithm 4, paper | ours: agree |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    third: list[float] = []
    fourth: list[float] = []
    for count, d in benchmark.CELLS:
        for horizon in benchmark.HORIZONS:
            for rho in benchmark.RHOS:
                found = benchmark.cell(count, d, horizon, rho)
                own = found.ours.regret.mean
                third.append(found.threshold / own)
                other = "no batch fits"
                if found.rounding is not None:
                    fourth.append(found.rounding / own)
                    other = f"{found.rounding:.3g}"
                cells = [str(count), str(d), f"1e{round(math.log10(horizon))}", f"{rho:g}", found.method]
                cells += [f"{own:.3g}", f"{found.threshold:.3g}", other, f"{found.ours.agreement:.1%}"]
                lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        f"Geometric means of the ratios: {benchmark.mean(third):.0f} against Algorithm 3, {benchmark.mean(fourth):.0f} "
        f"against Algorithm 4 where a batch of it fits; the smallest ratio is {min(third + fourth):.1f}.",
    ]
    return "\n".join(lines) + "\n"


COUNTS = (4, 8, 16, 32, 64, 128, 256)


@cache
def method_curve(method: Literal["lattice", "thresholds"], d: int) -> tuple[list[float], list[float]]:
    """Predicted and measured regret of a plan for each of those numbers of arms."""
    predicted, measured = [], []
    for count in COUNTS:
        points = benchmark.arms(count, d)
        policy = bd.CertifiedLinear(actions=points, horizon=10**9, rho=0.1, method=method)
        predicted.append(getattr(policy.costs, method))
        regrets = []
        for seed in range(12):
            theta = np.random.default_rng([12, seed, d]).standard_normal(d)
            world = bd.LinearBernoulli(0.999 * theta / np.linalg.norm(theta), points)
            regrets.append(bd.certify(policy, world, pairs=64, seed=seed).regret.mean)
        measured.append(sum(regrets) / len(regrets))
    return predicted, measured


def methods_figure(look: Look) -> Figure:
    """Predicted and measured regret of both plans against the number of arms."""
    pens = pens_of(look)
    figure = new_figure(look, 7.0 if look.narrow else 3.9)
    for axes, d in zip(panels(figure, look, 2, sharey=True), (2, 6), strict=True):
        methods: tuple[tuple[Literal["lattice", "thresholds"], str], ...] = (
            ("thresholds", pens.second),
            ("lattice", pens.first),
        )
        for method, colour in methods:
            predicted, measured = method_curve(method, d)
            axes.plot(COUNTS, predicted, color=colour, linestyle="--", label=f"{method}: predicted")
            axes.plot(COUNTS, measured, color=colour, marker="o", markersize=4, label=f"{method}: measured")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
        axes.set_xlabel("arms on the sphere")
        axes.set_title(f"d = {d}, a thousand million pulls, rho = 0.1", loc="left", fontsize=10)
        if d == 2 or look.narrow:
            axes.set_ylabel("regret (in units of reward)")
        if d == 2:
            axes.legend(frameon=False, fontsize=8)
    return figure


def net_figure(look: Look) -> Figure:
    """Regret of the net and of the lattice against the horizon."""
    pens = pens_of(look)
    figure = new_figure(look, 3.6)
    axes = figure.subplots()
    for d, style in ((1, "-"), (2, "--")):
        own = [row for row in net_rows() if row[0] == d]
        horizons = [row[1] for row in own]
        for place, colour, name in ((3, pens.second, "net"), (4, pens.first, "lattice")):
            regrets = [row[place] for row in own]
            axes.plot(horizons, regrets, color=colour, linestyle=style, marker="o", label=f"{name}, d = {d}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("horizon (pulls)")
    axes.set_ylabel("regret on the ball (in units of reward)")
    axes.legend(frameon=False, fontsize=9)
    return figure


TABLES = {
    ("least-squares", "pulls"): pulls_table,
    ("least-squares", "cells"): cells_table,
    ("linear-threshold", "measured"): threshold_table,
    ("least-squares-rounding", "measured"): sets_table,
    ("least-squares-rounding", "times"): time_table,
    ("net-threshold", "price"): net_table,
    ("certified-linear", "price"): price_table,
}
FIGURES: dict[str, Drawing] = {
    "least-squares": lattice_figure,
    "linear-threshold": threshold_figure,
    "least-squares-rounding": shrinking_figure,
    "net-threshold": net_figure,
    "certified-linear": methods_figure,
}
