"""Write the measured parts of the documentation again: tables between markers, and figures. `make docs-tables`.

`python docs/make.py figures` draws the figures alone, and `python docs/make.py figures ribbons gallery` those two;
`gallery` are the pictures of the examples.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import banditto as bd
from banditto.engine.watching import PairView
from banditto.measure.crossing_paths import divergence
from banditto.measure.least_regret import least_regret
from banditto.measure.study_file import StudyFile
from banditto.numbers.intervals import clopper_pearson
from banditto.report.figures import draw_design
from banditto.report.ribbons import ribbon_figure
from banditto.report.style import Look, new_figure

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from tests.geometry import test_actions, test_bit_identity, test_design
from tests.statistical import test_mean_rounding, test_random_threshold
from tests.statistical.hard import PAIRS, RHO

from docs import claims, drawing, gallery, ideas, linear, prices
from docs.drawing import panels, pens_of


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


def differing(policy: Any, gaps: Sequence[float], pairs: int) -> list[tuple[float, float, float]]:
    """For two arms with each of these gaps: the share of pairs that differ, and the ends of its interval."""
    found = [bd.certify(policy, bd.Bernoulli([0.5 - g / 2, 0.5 + g / 2]), pairs=pairs, seed=5) for g in gaps]
    return [(1 - one.agreement, 1 - one.interval[1], 1 - one.interval[0]) for one in found]


@cache
def threshold_curve() -> tuple[bd.RandomThreshold, list[float], list[tuple[float, float, float]]]:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=RHO)
    rows = policy.describe().to_dict()["batches"]
    gaps = np.geomspace(rows[-1]["low"] * 0.8, min(0.9, rows[3]["high"]), 40).tolist()
    return policy, gaps, differing(policy, gaps, 16_384)


def threshold_figure(look: Look) -> Figure:
    """Thresholds by batch, and measured disagreement against the gap."""
    policy, gaps, measured = threshold_curve()
    rows, pens = policy.describe().to_dict()["batches"], pens_of(look)
    figure = new_figure(look, 7.4 if look.narrow else 3.9)
    left, right = panels(figure, look, 2)
    for row in rows:
        left.plot([row["low"], row["high"]], [row["batch"]] * 2, color=pens.first, linewidth=7, solid_capstyle="butt")
    left.set_xscale("log")
    left.invert_yaxis()
    left.set_yticks([row["batch"] for row in rows])
    left.set_xlabel("gap to the leader's mean (in units of reward)")
    left.set_ylabel("batch")
    left.axvline(1.0, color=pens.back, linewidth=1, zorder=0)
    beyond = "rewards in [0, 1]\nhave no gap\nbeyond 1"
    left.annotate(beyond, (1.08, 8.3), color=pens.back, fontsize=8, va="bottom")
    left.annotate("left of a bar: kept", (rows[3]["low"] * 0.93, 4), ha="right", va="center", fontsize=9)
    left.annotate("right of it: dropped", (rows[6]["high"] * 1.08, 7), va="center", fontsize=9)
    drawn = (
        "An arm is dropped at\na threshold drawn from the bar"
        if look.narrow
        else "Each bar: where a threshold is drawn from"
    )
    left.set_title(drawn, fontsize=10, loc="left")
    shares, lows, highs = zip(*measured, strict=True)
    right.fill_between(gaps, lows, highs, color=pens.first, alpha=0.25, linewidth=0, label="95% interval")
    right.plot(gaps, shares, color=pens.first, label="measured")
    right.axhline(policy.guarantee().total, color=pens.second, label="proved bound")
    right.set_xscale("log")
    right.set_xticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
    right.xaxis.set_minor_formatter(NullFormatter())
    right.set_ylim(0, 0.115)
    right.set_xlabel("gap between the two means (in units of reward)")
    right.set_ylabel("P(two executions differ)")
    right.set_title("Two arms, T = 1e6, rho = 0.1", fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1.0, 0.85))
    return figure


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


ROUNDED_GAPS = np.geomspace(0.01, 0.9, 40).tolist()


@cache
def rounding_curves() -> dict[str, list[tuple[float, float, float]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        printed = test_mean_rounding.as_printed(2, 10**5, RHO)
    return {
        "pull counts as printed": differing(printed, ROUNDED_GAPS, 8192),
        "certified constants": differing(bd.MeanRounding(arms=2, horizon=10**5, rho=RHO), ROUNDED_GAPS, 8192),
    }


def rounding_figure(look: Look) -> Figure:
    """Disagreement against the gap: with the samples that the rounding needs, and with the printed pull counts."""
    pens = pens_of(look)
    figure = new_figure(look, 3.7)
    axes = figure.subplots()
    for (label, measured), colour in zip(rounding_curves().items(), (pens.second, pens.first), strict=True):
        shares, lows, highs = zip(*measured, strict=True)
        axes.fill_between(ROUNDED_GAPS, lows, highs, color=colour, alpha=0.25, linewidth=0)
        axes.plot(ROUNDED_GAPS, shares, color=colour, label=label)
    axes.axhline(RHO, color=pens.back, linestyle="--", label="rho = 0.1")
    axes.set_xscale("log")
    axes.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, None)
    axes.set_xlabel("gap between the two means (in units of reward)")
    axes.set_ylabel("P(two executions differ), with 95% bands")
    axes.set_title("Algorithm 1, two arms, T = 1e5", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9)
    return figure


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


PRICE_RHOS = np.geomspace(0.01, 0.5, 9).tolist()
PRICE_HORIZONS = [10**k for k in range(4, 12)]
SHORT_HORIZONS = [10**4, 10**5, 10**6]


@cache
def price_curves() -> dict[str, tuple[list[float], list[float]]]:
    """Each replicable policy's regret at those rhos, and at those horizons."""
    return {
        name: ([priced(make, 10**8, rho) for rho in PRICE_RHOS], [priced(make, t, 0.1) for t in PRICE_HORIZONS])
        for name, make in PRICED.items()
    }


@cache
def ordinary_curves() -> dict[str, list[float]]:
    ordinary: dict[str, Any] = {"UCB1": bd.UCB1(), "KL-UCB": bd.KLUCB()}
    common: dict[str, Any] = {"rho": 0.1, "pairs": 20, "seed": 3, "jobs": 1}
    return {
        name: [bd.certify(policy, PRICE_WORLD, horizon=t, **common).regret.mean for t in SHORT_HORIZONS]
        for name, policy in ordinary.items()
    }


def price_figure(look: Look) -> Figure:
    """Regret against rho and against T, with ordinary policies and lower bounds."""
    pens = pens_of(look)
    figure = new_figure(look, 9.6 if look.narrow else 5.0)
    left, right = panels(figure, look, 2, sharey=True)
    for number, (name, (over_rho, over_time)) in enumerate(price_curves().items()):
        style = "--" if "named" in name else "-"
        colour = (*look.theme.policies[:6], look.theme.alarm)[number]
        left.plot(PRICE_RHOS, over_rho, style, color=colour, label=name)
        right.plot(PRICE_HORIZONS, over_time, style, color=colour)
    for (name, regrets), marker in zip(ordinary_curves().items(), "so", strict=True):
        right.plot(SHORT_HORIZONS, regrets, marker=marker, color=pens.ink, linewidth=1, markersize=4, label=name)
    line = 0.1 / divergence(*PRICE_WORLD.means) * np.log(PRICE_HORIZONS)
    right.plot(PRICE_HORIZONS, line, ":", color=pens.back, label="Lai and Robbins: a limit, T to infinity")
    least = "no replicable policy with power 0.95 has less"
    by_rho = np.array([least_regret(PRICE_WORLD.means, rho) for rho in PRICE_RHOS], dtype=np.float64)
    left.plot(PRICE_RHOS, by_rho, "-.", color=pens.back, label=least)
    at_one = np.full(len(PRICE_HORIZONS), least_regret(PRICE_WORLD.means, 0.1), dtype=np.float64)
    right.plot(PRICE_HORIZONS, at_one, "-.", color=pens.back)
    for axes, label in ((left, "rho"), (right, "horizon (pulls)")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
    for axes in (left, right) if look.narrow else (left,):
        axes.set_ylabel("regret (in units of reward)")
    left.set_title("T = 1e8", fontsize=10, loc="left")
    right.set_title("rho = 0.1", fontsize=10, loc="left")
    columns = 1 if look.narrow else 3
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)
    return figure


def example_table() -> str:
    policy = bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.1)
    return f"```\n{policy.describe().batches_table()}\n\n{policy.guarantee().table()}\n```\n"


@cache
def demo_views() -> tuple[list[tuple[str, PairView]], Sequence[float], list[float]]:
    """The first pair of each policy of `make demo`, the means of its arms, and the shares of pairs that agree."""
    study = StudyFile.load(str(DOCS.parent / "examples" / "demo.toml"))
    built = study.built()
    compared = bd.compare(
        built.policies,
        built.environment,
        horizon=study.horizon,
        rho=study.rho,
        pairs=study.pairs or 1000,
        rounds=study.rounds or 2 * 10**7,
        seed=study.seed or 0,
        curves=True,
    )
    views = [(row.label, row.view) for row in compared.entrants if row.view]
    shares = [row.certificate.agreement for row in compared.entrants if row.view]
    return views, built.environment.means, shares


def demo_ribbons(look: Look) -> Figure:
    """The picture of `make demo`."""
    views, means, shares = demo_views()
    return ribbon_figure(views, means, look, agreement=shares)


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
        f"{len(plans)} plans, made under several kernels of OpenBLAS, which picks one to suit the processor.",
        f"The table counts the plans that differ from those under {kernels[0]}:",
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


@cache
def shown_designs() -> list[tuple[str, Any, bd.Design]]:
    rng = np.random.default_rng(8)
    turned = rng.standard_normal((300, 2)) * [0.28, 0.09] @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    rows = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [-1.0, 0.5], [0.2, -1.0]]
    shown: list[tuple[str, Any]] = [
        ("300 arms", turned),
        ("a polytope", bd.Polytope(rows=rows, bounds=[0.7, 0.6, 0.7, 0.6, 0.5])),
        ("a ball, cut twice", bd.Ball(dimension=2).cut((1.0, 0.4), 0.7).cut((-0.2, 1.0), -0.4)),
    ]
    return [(title, actions, bd.g_optimal_design(actions, accuracy=1e-4)) for title, actions in shown]


def design_figure(look: Look) -> Figure:
    """Arms, a polytope and a cut ball, drawn as `banditto design --plot` does."""
    figure = new_figure(look, 11.4 if look.narrow else 3.2)
    for axes, (title, actions, design) in zip(panels(figure, look, 3), shown_designs(), strict=True):
        draw_design(axes, design, actions, look)
        axes.set_title(f"{title}: core set of {design.support}", fontsize=10, loc="left")
    return figure


FIGURES: dict[str, drawing.Drawing] = {
    "design": design_figure,
    "price": price_figure,
    "random-threshold": threshold_figure,
    "mean-rounding": rounding_figure,
    "ribbons": demo_ribbons,
    "shared-cuts": ideas.cuts_figure,
    **prices.FIGURES,
    **linear.FIGURES,
    **claims.FIGURES,
}


def figures(names: Sequence[str]) -> None:
    """Draw the figures with these names, or all of them, in every look."""
    for name in names or (*FIGURES, "gallery"):
        if name == "gallery":
            gallery.figures()
        else:
            drawing.save(name, FIGURES[name])


def main() -> None:
    between(DOCS / "design.md", "sizes", sizes_table())
    between(DOCS / "design.md", "bits", bits_table())
    between(DOCS / "design.md", "sets", sets_table())
    between(DOCS / "random-threshold.md", "measured", threshold_table())
    between(DOCS / "mean-rounding.md", "measured", rounding_table())
    between(DOCS / "certified-elimination.md", "example", example_table())
    between(DOCS / "certified-elimination.md", "price", price_table())
    for (page, name), table in linear.TABLES.items():
        between(DOCS / f"{page}.md", name, table())
    for name, table in prices.TABLES.items():
        between(DOCS / "cost.md", name, table())
    between(DOCS / "reproduce.md", "claims", claims.claims_page())
    figures(())


if __name__ == "__main__":
    if sys.argv[1:2] == ["figures"]:
        figures(sys.argv[2:])
    else:
        main()
