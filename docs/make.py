"""Write the measured parts of the documentation again: tables between markers, and figures. `make docs-tables`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import banditto as bd
from banditto.intervals import clopper_pearson
from banditto.report.ribbons import save_ribbons

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from examples import demo
from tests.statistical.test_random_threshold import PAIRS, RHO, measure

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#8C8C8C"


def between(path: Path, name: str, content: str) -> None:
    """Replace what stands between a page's two markers."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    head, rest = path.read_text(encoding="utf-8").split(begin)
    path.write_text(head + begin + content + end + rest.split(end)[1], encoding="utf-8")


def measured_table() -> str:
    lines = [
        f"{PAIRS:,} pairs a row, rho = {RHO}.",
        "",
        "| instance | T | certified: beta | dropped | differ | paper: beta | dropped | differ |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for certified, paper in zip(measure("certified"), measure("paper"), strict=True):
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
    left.set_xlabel("gap to the leader's mean")
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
    right.set_xlabel("gap between the two means")
    right.set_ylabel("P(two executions differ)")
    right.set_title("Two arms, T = 1e6, rho = 0.1", fontsize=10, loc="left")
    right.legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1.0, 0.85))
    for axes in (left, right):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.savefig(path)


def main() -> None:
    between(DOCS / "random-threshold.md", "measured", measured_table())
    threshold_figure(DOCS / "figures" / "random-threshold.png")
    save_ribbons(DOCS / "figures" / "ribbons.png", demo.views(), demo.MEANS)


if __name__ == "__main__":
    main()
