"""Write the measured parts of the documentation again: tables between markers, and figures. `make docs-tables`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import banditto as bd
from banditto.measure.crossing_paths import divergence
from banditto.measure.least_regret import least_regret
from banditto.measure.study_file import StudyFile
from banditto.numbers.intervals import clopper_pearson
from banditto.report.figures import draw_design
from banditto.report.ribbons import ribbon_figure, save_ribbons
from banditto.report.style import LOOKS, as_png, drawn_in

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from tests.geometry import test_actions, test_bit_identity, test_design
from tests.statistical import test_mean_rounding, test_random_threshold
from tests.statistical.hard import PAIRS, RHO

from docs import claims, ideas, linear, prices

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#8C8C8C"


def between(path: Path, name: str, content: str) -> None:
    """Replace what stands between a page's two markers."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    head, rest = path.read_text(encoding="utf-8").split(begin)
    path.write_text(head + begin + content + end + rest.split(end)[1], encoding="utf-8")


def threshold_table() -> str:
    lines = [
        f"{PAIRS:,} pairs a row, rho = {RHO}.",
        "",
        "| instance | T | certified: beta | dropped | differ | paper: beta | dropped | differ |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for certified, paper in zip(
        test_random_threshold.measure("certified"), test_random_threshold.measure("paper"), strict=True
    ):
        cells = [certified.instance.name, f"1e{len(str(certified.certificate.horizon)) - 1}"]
        for row in (certified, paper):
            assert isinstance(row.instance.policy, bd.RandomThreshold)
            low, high = clopper_pearson(row.certificate.mismatches, PAIRS, 0.95)
            share = row.certificate.mismatches / PAIRS
            cells += [f"{row.instance.policy.schedule.blowup:,}", f"{row.dropped:.0%}"]
            cells += [f"{share:.4f} ({low:.4f} to {high:.4f})"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def threshold_figure(path: Path) -> None:
    """Thresholds by batch, and measured disagreement against the gap."""
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=RHO)
    rows = policy.describe().to_dict()["batches"]
    figure = Figure(figsize=(10.0, 3.9), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for row in rows:
        left.plot([row["low"], row["high"]], [row["batch"]] * 2, color=BLUE, linewidth=7, solid_capstyle="butt")
    left.set_xscale("log")
    left.invert_yaxis()
    left.set_yticks([row["batch"] for row in rows])
    left.set_xlabel("gap to the leader's mean (in units of reward)")
    left.set_ylabel("batch")
    left.axvline(1.0, color=GREY, linewidth=1, zorder=0)
    left.annotate("rewards in [0, 1]\nhave no gap beyond 1", (1.08, 7.9), color=GREY, fontsize=9, va="bottom")
    left.annotate("left of a bar: kept", (rows[3]["low"] * 0.93, 4), ha="right", va="center", fontsize=9)
    left.annotate("right of it: dropped", (rows[6]["high"] * 1.08, 7), va="center", fontsize=9)
    left.set_title("An arm is dropped at a threshold drawn from the bar", fontsize=10, loc="left")
    gaps = np.geomspace(rows[-1]["low"] * 0.8, min(0.9, rows[3]["high"]), 40)
    shares, lows, highs = [], [], []
    for gap in gaps:
        world = bd.Bernoulli([0.5 - gap / 2, 0.5 + gap / 2])
        certificate = bd.certify(policy, world, pairs=16_384, seed=5)
        shares.append(1 - certificate.agreement)
        lows.append(1 - certificate.interval[1])
        highs.append(1 - certificate.interval[0])
    right.fill_between(gaps, lows, highs, color=BLUE, alpha=0.25, linewidth=0, label="95% interval")
    right.plot(gaps, shares, color=BLUE, label="measured")
    right.axhline(policy.guarantee().total, color=ORANGE, label="proved bound")
    right.set_xscale("log")
    right.set_xticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
    right.xaxis.set_minor_formatter(NullFormatter())
    right.set_ylim(0, 0.115)
    right.set_xlabel("gap between the two means (in units of reward)")
    right.set_ylabel("P(two executions differ)")
    right.set_title("Two arms, T = 1e6, rho = 0.1", fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1.0, 0.85))
    for axes in (left, right):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path)


def rounding_table() -> str:
    lines = [
        f"{PAIRS:,} pairs a row, rho = {RHO}, certified constants.",
        "",
        "| instance | T | batches | dropped | differ |",
        "| --- | --- | --- | --- | --- |",
    ]
    for instance, certificate, dropped in test_mean_rounding.measure("certified"):
        assert isinstance(instance.policy, bd.MeanRounding)
        low, high = clopper_pearson(certificate.mismatches, PAIRS, 0.95)
        share = certificate.mismatches / PAIRS
        lines.append(
            f"| {instance.name} | 1e{len(str(certificate.horizon)) - 1} | {len(instance.policy.schedule.batches)} "
            f"| {dropped:.0%} | {share:.4f} ({low:.4f} to {high:.4f}) |"
        )
    return "\n".join(lines) + "\n"


def rounding_figure(path: Path) -> None:
    """Disagreement against the gap: with the samples that the rounding needs, and with the printed pull counts."""
    figure = Figure(figsize=(10.0, 3.9), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    horizon = 10**5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        printed = test_mean_rounding.as_printed(2, horizon, RHO)
    for policy, colour, label in (
        (printed, ORANGE, "pull counts as printed"),
        (bd.MeanRounding(arms=2, horizon=horizon, rho=RHO), BLUE, "certified constants"),
    ):
        gaps = np.geomspace(0.01, 0.9, 40)
        shares, lows, highs = [], [], []
        for gap in gaps:
            certificate = bd.certify(policy, bd.Bernoulli([0.5 - gap / 2, 0.5 + gap / 2]), pairs=8192, seed=5)
            shares.append(1 - certificate.agreement)
            lows.append(1 - certificate.interval[1])
            highs.append(1 - certificate.interval[0])
        axes.fill_between(gaps, lows, highs, color=colour, alpha=0.25, linewidth=0)
        axes.plot(gaps, shares, color=colour, label=label)
    axes.axhline(RHO, color=GREY, linestyle="--", label="rho = 0.1")
    axes.set_xscale("log")
    axes.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, None)
    axes.set_xlabel("gap between the two means (in units of reward)")
    axes.set_ylabel("P(two executions differ), with 95% bands")
    axes.set_title("Algorithm 1, two arms, T = 1e5", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path)


PRICED: dict[str, Callable[[int, float], Any]] = {
    "CertifiedElimination": lambda t, rho: bd.CertifiedElimination(arms=2, horizon=t, rho=rho),
    "CertifiedElimination, gap named": lambda t, rho: bd.CertifiedElimination(arms=2, horizon=t, rho=rho, gap=0.1),
    "OneCut, gap named": lambda t, rho: bd.OneCut(arms=2, horizon=t, rho=rho, gap=0.1, power=None),
    "RandomThreshold, certified": lambda t, rho: bd.RandomThreshold(arms=2, horizon=t, rho=rho),
    "MeanRounding, certified": lambda t, rho: bd.MeanRounding(arms=2, horizon=t, rho=rho),
    "RandomThreshold, paper": lambda t, rho: bd.RandomThreshold(arms=2, horizon=t, rho=rho, constants="paper"),
    "MeanRounding, paper": lambda t, rho: bd.MeanRounding(arms=2, horizon=t, rho=rho, constants="paper"),
}
PRICE_WORLD = bd.Bernoulli([0.75, 0.85])


def priced(make: Callable[[int, float], Any], horizon: int, rho: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        return bd.certify(make(horizon, rho), PRICE_WORLD, pairs=1024, seed=3).regret.mean


def price_table() -> str:
    lines = [
        "| K = 2, means 0.85 and 0.75, T = 10^8 | regret at ρ = 0.3 | at 0.1 | at 0.03 |",
        "| --- | --- | --- | --- |",
    ]
    for name, make in PRICED.items():
        cells = " | ".join(f"{priced(make, 10**8, rho):,.0f}" for rho in (0.3, 0.1, 0.03))
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines) + "\n"


def price_figure(path: Path) -> None:
    """Regret against rho and against T, with ordinary policies and lower bounds."""
    figure = Figure(figsize=(10.0, 4.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    colours = (BLUE, "#56B4E9", "#6A3D9A", "#009E73", "#CC79A7", ORANGE, "#D55E00")
    rhos = np.geomspace(0.01, 0.5, 9)
    horizons = [10**k for k in range(4, 12)]
    for (name, make), colour in zip(PRICED.items(), colours, strict=True):
        style = "--" if "named" in name else "-"
        left.plot(rhos, [priced(make, 10**8, float(rho)) for rho in rhos], style, color=colour, label=name)
        right.plot(horizons, [priced(make, t, 0.1) for t in horizons], style, color=colour)
    for name, policy, marker in (("UCB1", bd.UCB1(), "s"), ("KL-UCB", bd.KLUCB(), "o")):
        short = [10**4, 10**5, 10**6]
        regrets = [
            bd.certify(policy, PRICE_WORLD, horizon=t, rho=0.1, pairs=20, seed=3, jobs=1).regret.mean for t in short
        ]
        right.plot(short, regrets, marker=marker, color="black", linewidth=1, markersize=4, label=name)
    line = 0.1 / divergence(*PRICE_WORLD.means) * np.log(horizons)
    right.plot(horizons, line, ":", color=GREY, label="Lai and Robbins: a limit, T to infinity")
    least = "no replicable policy with power 0.95 has less"
    left.plot(rhos, [least_regret(PRICE_WORLD.means, float(rho)) for rho in rhos], "-.", color=GREY, label=least)
    right.plot(horizons, [least_regret(PRICE_WORLD.means, 0.1)] * len(horizons), "-.", color=GREY)
    for axes, label in ((left, "rho"), (right, "horizon (pulls)")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    left.set_ylabel("regret (in units of reward)")
    left.set_title("T = 1e8", fontsize=10, loc="left")
    right.set_title("rho = 0.1", fontsize=10, loc="left")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    figure.savefig(path)


def example_table() -> str:
    policy = bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.1)
    body = policy.describe().table().split("\n\n")[1]
    return f"```\n{body}\n\n{policy.guarantee().table()}\n```\n"


def demo_ribbons(path: Path) -> None:
    """The picture of `make demo`, for wide pages and for telephones."""
    study = StudyFile.load(str(DOCS.parent / "examples" / "demo.toml"))
    built = study.built()
    compared = bd.compare(
        built.policies,
        built.environment,
        horizon=study.horizon,
        rho=study.rho,
        pairs=1,
        seed=study.seed or 0,
        curves=True,
    )
    views = [(row.label, row.view) for row in compared.entrants if row.view]
    save_ribbons(path, views, built.environment.means)
    narrow = LOOKS["light", "narrow"]
    with drawn_in(narrow):
        figure = ribbon_figure(views, built.environment.means, narrow)
        path.with_stem(f"{path.stem}-narrow").write_bytes(as_png(figure))


def sizes_table() -> str:
    lines = [
        "| arms | core set at 2 d | g/d | steps | core set at 1.01 d | g/d | steps |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for count, d in ((50, 5), (1000, 10), (10_000, 20), (100_000, 30)):
        for kind in ("gauss", "sphere", "cube", "skewed"):
            cells = [f"{count:,} x {d}, {kind}"]
            for accuracy in (1.0, 0.01):
                design = bd.g_optimal_design(test_design.family(kind, count, d, 0), accuracy=accuracy)
                cells += [f"{design.support / d:.2f} d", f"{design.g_over_d:.4g}", str(design.iterations)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def bits_table() -> str:
    kernels = ("SkylakeX", "Haswell", "Zen", "Nehalem", "Prescott")
    runs = {
        kernel: [test_bit_identity.in_a_process({"OPENBLAS_CORETYPE": kernel}, *mode) for mode in ((), ("blas",))]
        for kernel in kernels
    }
    own, blas = runs[kernels[0]]
    plans = [name for name in own if name in blas]
    lines = [
        f"{len(plans)} plans under several kernels of OpenBLAS, which it chooses by the processor.",
        f"Different from those under {kernels[0]}:",
        "",
        "| | " + " | ".join(kernels[1:]) + " |",
        "| --- |" + " --- |" * (len(kernels) - 1),
    ]
    for label, place in (("this program", 0), ("the same with BLAS and LAPACK", 1)):
        first = runs[kernels[0]][place]
        counts = [sum(runs[k][place][n].split()[0] != first[n].split()[0] for n in plans) for k in kernels[1:]]
        lines.append(f"| {label} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines) + "\n"


def sets_table() -> str:
    lines = ["| set, accuracy 1 | g/d at most | core set | how |", "| --- | --- | --- | --- |"]
    for d in (2, 5, 10, 20):
        polytopes: list[tuple[str, Any]] = [
            ("random polytope", test_actions.random_polytope(d)),
            ("cube", bd.Box.unit(d)),
            ("cube, cut", test_actions.cut_box(d)),
            ("simplex", bd.Simplex(dimension=d)),
            ("ball", bd.Ball(dimension=d)),
            ("ball, cut three times", test_actions.cut_ball(d)),
        ]
        for name, actions in polytopes:
            design = bd.g_optimal_design(actions, accuracy=1.0)
            how = f"{design.maximisations:,} maximisations" if design.maximisations else "all vertices"
            met = "" if design.target_met else " (2 not met)"
            lines.append(f"| {name}, d = {d} | {design.g_over_d:.3g}{met} | {design.support} | {how} |")
    return "\n".join(lines) + "\n"


def design_figure(path: Path) -> None:
    """Arms, a polytope and a cut ball, drawn as `banditto design --plot` does."""
    rng = np.random.default_rng(8)
    turned = rng.standard_normal((300, 2)) * [0.28, 0.09] @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    rows = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [-1.0, 0.5], [0.2, -1.0]]
    shown: list[tuple[str, Any]] = [
        ("300 arms", turned),
        ("a polytope", bd.Polytope(rows=rows, bounds=[0.7, 0.6, 0.7, 0.6, 0.5])),
        ("a ball, cut twice", bd.Ball(dimension=2).cut((1.0, 0.4), 0.7).cut((-0.2, 1.0), -0.4)),
    ]
    figure = Figure(figsize=(12.0, 4.4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, actions) in zip(figure.subplots(1, 3), shown, strict=True):
        design = bd.g_optimal_design(actions, accuracy=1e-4)
        draw_design(axes, design, actions)
        axes.set_title(f"{title}: core set of {design.support}", fontsize=10, loc="left")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path)


def main() -> None:
    between(DOCS / "design.md", "sizes", sizes_table())
    between(DOCS / "design.md", "bits", bits_table())
    between(DOCS / "design.md", "sets", sets_table())
    design_figure(DOCS / "figures" / "design.png")
    between(DOCS / "random-threshold.md", "measured", threshold_table())
    between(DOCS / "mean-rounding.md", "measured", rounding_table())
    between(DOCS / "certified-elimination.md", "example", example_table())
    between(DOCS / "certified-elimination.md", "price", price_table())
    price_figure(DOCS / "figures" / "price.png")
    threshold_figure(DOCS / "figures" / "random-threshold.png")
    rounding_figure(DOCS / "figures" / "mean-rounding.png")
    demo_ribbons(DOCS / "figures" / "ribbons.png")
    ideas.cuts_figures(DOCS / "figures")
    for (page, name), table in linear.TABLES.items():
        between(DOCS / f"{page}.md", name, table())
    for name, table in prices.TABLES.items():
        between(DOCS / "cost.md", name, table())
    prices.cost_figures(DOCS / "figures")
    for page, draw in linear.FIGURES.items():
        draw(DOCS / "figures" / f"{page}.png")
    between(DOCS / "reproduce.md", "claims", claims.claims_page(DOCS / "figures"))


if __name__ == "__main__":
    main()
