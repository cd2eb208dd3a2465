"""The measured parts of the pages on linear problems; `make docs-tables` runs it."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
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
from banditto.core.arrays import FloatArray
from banditto.core.rewards import Rewards
from banditto.geometry.regression import Regression
from banditto.numbers import lattice
from banditto.numbers.intervals import clopper_pearson
from banditto.policies.shared_linear.estimate_rounding import LatticeRounding, leverage_of

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#8C8C8C"


def canvas(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def bare(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


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


def lattice_figure(path: Path) -> None:
    figure = canvas(11.0, 4.6)
    left, right = figure.subplots(1, 2)
    rng = np.random.default_rng(2)
    centres = np.unique(lattice.nearest(rng.uniform(-3, 3, size=(4000, 2))).centres.round(9), axis=0)
    angles = np.pi / 3 * np.arange(6)
    corner = float(lattice.radius(2))
    turned = angles + _first_corner()
    for centre in centres:
        hexagon = centre + corner * np.column_stack([np.cos(turned), np.sin(turned)])
        left.add_patch(Polygon(hexagon, fill=False, edgecolor=GREY, linewidth=0.8))
    for offset, colour, name in ((0.0, BLUE, "first lab"), (0.0, ORANGE, "second lab")):
        cloud = np.array([0.12, 0.2]) + offset + 0.1 * rng.standard_normal((150, 2))
        left.scatter(*cloud.T, s=7, color=colour, label=f"{name}: estimates in 150 experiments", alpha=0.8)
    left.scatter(*centres.T, s=14, marker="+", color="black", label="what they are rounded to")
    left.set_xlim(-1.9, 1.9)
    left.set_ylim(-1.6, 1.6)
    left.set_aspect("equal")
    left.set_title("rounding x to shared hexagons (d = 2)", loc="left", fontsize=10)
    left.legend(loc="lower center", bbox_to_anchor=(0.5, -0.4), fontsize=8, frameon=False)
    dims = [1, 2, 3, 4, 6, 8, 10, 14, 20]
    curves: dict[str, list[float]] = {"lattice": [], "grid, ours": [], "paper's recipe": []}
    for d in dims:
        points = test_least_squares.sphere(max(60, 4 * d), d)
        lsq = bd.ReplicableLeastSquares(actions=points)
        curves["lattice"].append(lsq.pulls_needed(0.2, 0.1, 1e-7))
        grid = bd.ReplicableLeastSquares(actions=points, rounding="grid", accuracy=1.0)
        curves["grid, ours"].append(grid.pulls_needed(0.2, 0.1, 1e-7))
        curves["paper's recipe"].append(lsq.pulls_needed(0.2, 0.1, 1e-7, constants="paper"))
    for (name, values), colour in zip(curves.items(), (BLUE, GREEN, ORANGE), strict=True):
        right.plot(dims, values, marker="o", markersize=4, color=colour, label=name)
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xticks(dims, [str(d) for d in dims])
    right.minorticks_off()
    right.set_xlabel("dimension")
    right.set_ylabel("pulls")
    left.set_xlabel("first coordinate of x/s")
    left.set_ylabel("second coordinate of x/s")
    right.set_title("pulls for rho = 0.1 and every value within 0.2", loc="left", fontsize=10)
    right.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        bare(axes)
    figure.savefig(path)


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


def threshold_figure(path: Path) -> None:
    """Two arms that are nearly tied: the printed last line beside the shared final choice."""
    figure = canvas(7.2, 4.0)
    axes = figure.subplots()
    gaps = np.array([0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
    kinds: tuple[tuple[Any, str, str], ...] = (("paper", ORANGE, "as printed"), ("certified", BLUE, "certified"))
    for constants, colour, name in kinds:
        shares, lows, highs = [], [], []
        for gap in gaps:
            points = np.array([[0.9, 0.3], [0.9 - 2 * gap / 0.9, -0.3], [-0.5, 0.5], [0.0, 0.6]])
            policy = bd.LinearThreshold(actions=points, horizon=10**9, rho=0.1, constants=constants)
            found = bd.certify(policy, bd.LinearBernoulli([0.9, 0.0], points), pairs=1024, seed=3)
            low, high = clopper_pearson(found.mismatches, found.pairs, 0.95)
            shares.append(found.mismatches / found.pairs)
            lows.append(low)
            highs.append(high)
        axes.fill_between(range(len(gaps)), lows, highs, color=colour, alpha=0.2, linewidth=0)
        axes.plot(range(len(gaps)), shares, marker="o", color=colour, label=name)
    axes.axhline(0.1, color="#D7261E", linewidth=1.0, label="rho")
    axes.set_xticks(range(len(gaps)), [f"{gap:g}" for gap in gaps])
    axes.set_xlabel("gap of the two best arms (in units of reward)")
    axes.set_ylabel("share of pairs that differ")
    axes.legend(frameon=False)
    bare(axes)
    figure.savefig(path)


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


def shrinking_figure(path: Path) -> None:
    """The active set of a polytope after each batch of one execution, with the core set that is pulled next."""
    rows = [[1.0, 0.1], [0.4, 1.0], [-0.8, 0.6], [-0.6, -0.8], [0.5, -0.9]]
    actions: Any = bd.Polytope(rows=rows, bounds=[0.76, 0.71, 0.66, 0.71, 0.66])
    theta = np.array([0.9, 0.32])
    world = bd.LinearBernoulli(theta, actions)
    policy = bd.LeastSquaresRounding(actions=actions, horizon=10**10, rho=0.1)
    coins, rng = Coins(5, 0, 1), np.random.default_rng(1)
    state = policy.init(1)
    stages = []
    while (pulls := policy.plan(state)) is not None:
        places = policy.places(state)
        shown = actions
        for cut in state.active[0]:
            shown = shown.cut(cut[:-1], float(cut[-1]))
        stages.append((shown.vertices(), places[0][pulls[0] > 0], pulls[0][pulls[0] > 0]))
        totals = rng.binomial(pulls, world.means_at(places)).astype(float)
        state = policy.decide(state, totals, coins)
    figure = canvas(3.1 * len(stages), 3.5)
    whole = _ordered(stages[0][0])
    best = np.array(actions.maximise(theta))
    for number, (axes, (corners, core, pulls)) in enumerate(
        zip(figure.subplots(1, len(stages)), stages, strict=True), 1
    ):
        axes.add_patch(Polygon(whole, facecolor="#EEEEEE", edgecolor=GREY, linewidth=0.8))
        axes.add_patch(Polygon(_ordered(corners), facecolor=BLUE, alpha=0.35, edgecolor=BLUE, linewidth=1.2))
        last = number == len(stages)
        axes.scatter(*core.T, s=36, color=ORANGE, zorder=3, label="pulled" if last else None)
        axes.scatter(*best, s=60, marker="*", color="black", zorder=4, label="best action" if last else None)
        axes.set_title(("then for good" if last else f"batch {number}") + f": {pulls.sum():.2g} pulls", fontsize=10)
        axes.set_xlim(-1.15, 1.05)
        axes.set_ylim(-1.0, 1.0)
        axes.set_aspect("equal")
        axes.set_xlabel("feature 1")
        if number == 1:
            axes.set_ylabel("feature 2")
        bare(axes)
        if last:
            axes.legend(frameon=False, fontsize=8, loc="lower left")
    figure.savefig(path)


def _ordered(corners: FloatArray) -> FloatArray:
    middle = corners.mean(axis=0)
    angles = np.arctan2(corners[:, 1] - middle[1], corners[:, 0] - middle[0])
    return np.asarray(corners[np.argsort(angles)])


# -- net-threshold.md and certified-linear.md -------------------------------------------------------------------------


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


def methods_figure(path: Path) -> None:
    """Predicted and measured regret of both plans against the number of arms."""
    figure = canvas(9.5, 4.0)
    counts = (4, 8, 16, 32, 64, 128, 256)
    for axes, d in zip(figure.subplots(1, 2, sharey=True), (2, 6), strict=True):
        methods: tuple[tuple[Any, str], ...] = (("thresholds", ORANGE), ("lattice", BLUE))
        for method, colour in methods:
            predicted, measured = [], []
            for count in counts:
                points = benchmark.arms(count, d)
                policy = bd.CertifiedLinear(actions=points, horizon=10**9, rho=0.1, method=method)
                predicted.append(getattr(policy.costs, method))
                regrets = []
                for seed in range(12):
                    theta = np.random.default_rng([12, seed, d]).standard_normal(d)
                    world = bd.LinearBernoulli(0.999 * theta / np.linalg.norm(theta), points)
                    regrets.append(bd.certify(policy, world, pairs=64, seed=seed).regret.mean)
                measured.append(sum(regrets) / len(regrets))
            axes.plot(counts, predicted, color=colour, linestyle="--", label=f"{method}: predicted")
            axes.plot(counts, measured, color=colour, marker="o", markersize=4, label=f"{method}: measured")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_xlabel("arms on the sphere")
        axes.set_title(f"regret, d = {d}, a thousand million pulls, rho = 0.1", loc="left", fontsize=10)
        bare(axes)
        if d == 2:
            axes.set_ylabel("regret (in units of reward)")
            axes.legend(frameon=False, fontsize=8)
    figure.savefig(path)


def net_figure(path: Path) -> None:
    figure = canvas(7.0, 3.8)
    axes = figure.subplots()
    rows = net_rows()
    for d, style in ((1, "-"), (2, "--")):
        own = [row for row in rows if row[0] == d]
        horizons = [row[1] for row in own]
        axes.plot(horizons, [row[3] for row in own], color=ORANGE, linestyle=style, marker="o", label=f"net, d = {d}")
        axes.plot(horizons, [row[4] for row in own], color=BLUE, linestyle=style, marker="o", label=f"lattice, d = {d}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("horizon (pulls)")
    axes.set_ylabel("regret on the ball (in units of reward)")
    axes.legend(frameon=False, fontsize=9)
    bare(axes)
    figure.savefig(path)


TABLES = {
    ("least-squares", "pulls"): pulls_table,
    ("least-squares", "cells"): cells_table,
    ("linear-threshold", "measured"): threshold_table,
    ("least-squares-rounding", "measured"): sets_table,
    ("least-squares-rounding", "times"): time_table,
    ("net-threshold", "price"): net_table,
    ("certified-linear", "price"): price_table,
}
FIGURES = {
    "least-squares": lattice_figure,
    "linear-threshold": threshold_figure,
    "least-squares-rounding": shrinking_figure,
    "net-threshold": net_figure,
    "certified-linear": methods_figure,
}
