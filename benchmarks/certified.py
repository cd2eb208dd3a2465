"""(f), (g), (h) CertifiedElimination against Algorithm 2 with the paper's constants. A minute.

(f) The ratio of regrets, cell by cell, with equal gaps. (g) The same with linear and geometric gaps. (h) The time for
the search for constants.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.policies.certified_elimination import ladder_search
from benchmarks.measure import line, quick_asked, seconds

BEST, PAIRS = 0.85, 1024
ARMS, HORIZONS, RHOS, GAPS = (2, 5, 10), (10**6, 10**7, 10**8), (0.1, 0.3), (0.1, 0.3)


def cell(arms: int, horizon: int, rho: float, gaps: list[float]) -> tuple[float, float, bd.Certificate]:
    """The ratio of regrets, the paper's and ours, and our certificate; the best arm is last."""
    world = bd.Bernoulli([*(BEST - gap for gap in gaps), BEST])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        paper = bd.RandomThreshold(arms=arms, horizon=horizon, rho=rho, constants="paper")
        ours = bd.CertifiedElimination(arms=arms, horizon=horizon, rho=rho)
    theirs = bd.certify(paper, world, pairs=PAIRS, seed=1)
    mine = bd.certify(ours, world, pairs=PAIRS, seed=1)
    return theirs.regret.mean / mine.regret.mean, theirs.regret.mean, mine


def profile(name: str, arms: int, gap: float) -> list[float]:
    """Gaps of all arms but the best, the largest first."""
    steps = range(arms - 1)
    shapes = {"equal": [1.0 for _ in steps], "linear": [1.0 + k for k in steps], "geometric": [2.0**k for k in steps]}
    return sorted((min(gap * shape, BEST) for shape in shapes[name]), reverse=True)


def table(
    profiles: tuple[str, ...],
    gaps: tuple[float, ...],
    numbers: tuple[int, ...] = ARMS,
    horizons: tuple[int, ...] = HORIZONS,
) -> dict[int, list[float]]:
    ratios: dict[int, list[float]] = {arms: [] for arms in numbers}
    print(f"        {'K':>3} {'T':>5} {'rho':>4} {'gaps':>14} {'paper':>12} {'ours':>10}    ratio   agree   bound")
    for name in profiles:
        for arms in numbers:
            for horizon in horizons:
                for rho in RHOS:
                    for gap in gaps:
                        if name != "equal" and arms == 2:
                            continue
                        ratio, theirs, mine = cell(arms, horizon, rho, profile(name, arms, gap))
                        ratios[arms].append(ratio)
                        power = round(math.log10(horizon))
                        print(
                            f"        {arms:>3}  1e{power:<2} {rho:>5} {name:>9} {gap:<4} {theirs:>12,.0f} "
                            f"{mine.regret.mean:>10,.0f} {ratio:>8.1f} {mine.agreement:>7.1%} {mine.bound or 1:>7.4f}"
                        )
    return ratios


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main(quick: bool = False) -> None:
    numbers, horizons = (ARMS[:2], HORIZONS[:1]) if quick else (ARMS, HORIZONS)
    ladder_search.best_shape.cache_clear()
    bd.CertifiedElimination(arms=3, horizon=10**5, rho=0.21)  # imports
    taken = seconds(lambda: bd.CertifiedElimination(arms=10, horizon=10**7, rho=0.21))
    line("(h) search for the constants, K = 10", f"{taken:.2f} s", "< 1 s", taken < 1.0)
    ratios = table(("equal",), GAPS, numbers, horizons)
    every = [ratio for row in ratios.values() for ratio in row]
    parts = ", ".join(f"{mean(row):.0f}" for row in ratios.values())
    figure = f"{mean(every):.0f} ({parts} for K = {str(numbers)[1:-1]})"
    line("(f) regret of Algorithm 2, paper / CertifiedElimination", figure, ">= 65", mean(every) >= 65)
    line("(f) the worst cell", f"{min(every):.1f}", ">= 1", min(every) >= 1)
    shaped = table(("linear", "geometric"), (0.05,), numbers, horizons)
    others = [ratio for row in shaped.values() for ratio in row]
    line("(g) the same with linear and geometric gaps", f"{mean(others):.0f}, worst {min(others):.1f}", "none", True)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
