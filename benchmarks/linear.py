"""(l), (m) Linear policies: time per batch on polytopes, regret beside the paper's constants. About five minutes.

(l) LeastSquaresRounding on a polytope: seconds for each batch of one execution (design, rounding and cut) and linear
    maximisations for its design. (m) Regret of CertifiedLinear against Algorithms 3 and 4 with the paper's constants:
    arms on the sphere, theta of length 0.9 along a fixed direction, Bernoulli rewards, 256 pairs a cell.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.policies.least_squares_rounding.accuracies import RoundingBatch, RoundingSchedule
from benchmarks.measure import line, quick_asked

PAIRS = 256
CELLS = ((10, 2), (100, 2), (20, 5), (200, 5), (50, 10))
HORIZONS, RHOS = (10**7, 10**9, 10**11), (0.1, 0.3)
DIMENSIONS = (2, 5, 10, 20)
EPSILONS = (0.2, 0.1, 0.05)


def polytope(dimension: int) -> bd.Polytope:
    """A cube in the unit ball with 2 d corners cut off by random half-spaces."""
    rng = np.random.default_rng([8, dimension])
    rows = rng.standard_normal((2 * dimension, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    box = np.eye(dimension)
    bounds = [0.5] * (2 * dimension) + [1.0 / math.sqrt(dimension)] * (2 * dimension)
    return bd.Polytope(rows=np.asarray(np.round(np.vstack([rows, box, -box]), 3), dtype=np.float64), bounds=bounds)


class Batch(NamedTuple):
    seconds: float
    maximisations: int
    support: int
    g_over_d: float


def batches(dimension: int) -> list[Batch]:
    """Three batches of one execution: what each costs before its first pull."""
    actions = polytope(dimension)
    rho = 0.2 / len(EPSILONS)
    schedule = RoundingSchedule(tuple(RoundingBatch(e, rho) for e in EPSILONS), math.log(3e14))
    policy = bd.LeastSquaresRounding(actions=actions, horizon=10**14, rho=0.2, schedule=schedule)
    theta = np.random.default_rng([9, dimension]).standard_normal(dimension)
    theta *= 0.45 / np.linalg.norm(theta)
    rows = []
    start = time.perf_counter()
    state = policy.init(1)
    for number in range(1, len(EPSILONS) + 1):
        key = state.active[0].tobytes()
        opening = policy._openings.at(key, number)
        assert opening is not None
        design = opening.design
        rows.append(Batch(time.perf_counter() - start, design.maximisations, design.support, design.g_over_d))
        pulls = policy.plan(state)
        assert pulls is not None
        totals = pulls * (0.5 + policy.places(state) @ theta)
        start = time.perf_counter()
        state = policy.decide(state, totals, Coins(1, 0, 1))
    return rows


def arms(count: int, dimension: int) -> FloatArray:
    points = np.random.default_rng([10, count, dimension]).standard_normal((count, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


class Cell(NamedTuple):
    ours: bd.Certificate
    method: str
    threshold: float
    rounding: float | None  # None: the paper's Algorithm 4 has no batch that fits


def cell(count: int, dimension: int, horizon: int, rho: float) -> Cell:
    points = arms(count, dimension)
    theta = np.random.default_rng([11, dimension]).standard_normal(dimension)
    world = bd.LinearBernoulli(0.9 * theta / np.linalg.norm(theta), points)
    known: dict[str, Any] = {"actions": points, "horizon": horizon, "rho": rho}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        ours = bd.CertifiedLinear(**known)
        papers: list[Any] = [
            bd.LinearThreshold(**known, constants="paper"),
            bd.LeastSquaresRounding(**known, constants="paper"),
        ]
    mine = bd.certify(ours, world, pairs=PAIRS, seed=1)
    regrets = [bd.certify(policy, world, pairs=PAIRS, seed=1).regret.mean for policy in papers]
    fits = bool(papers[1].describe().rows)
    return Cell(mine, str(ours.method), regrets[0], regrets[1] if fits else None)


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(cells: tuple[tuple[int, int], ...], horizons: tuple[int, ...]) -> tuple[list[float], list[float]]:
    """Ratios of regret, the paper's Algorithm 3 and 4 over ours, printed cell by cell."""
    print(f"      {'K':>6} {'d':>3} {'T':>5} {'rho':>4} {'plan':>10} {'ours':>12} {'Alg. 3':>14} {'Alg. 4':>14} agree")
    third, fourth = [], []
    for count, dimension in cells:
        for horizon in horizons:
            for rho in RHOS:
                found = cell(count, dimension, horizon, rho)
                own = found.ours.regret.mean
                third.append(found.threshold / own)
                if found.rounding is not None:
                    fourth.append(found.rounding / own)
                other = "none fits" if found.rounding is None else f"{found.rounding:,.0f}"
                print(
                    f"        {count:>4} {dimension:>3}  1e{round(math.log10(horizon)):<2} {rho:>5} {found.method:>10} "
                    f"{own:>12,.0f} {found.threshold:>14,.0f} {other:>14} {found.ours.agreement:>6.1%}"
                )
    return third, fourth


def main(quick: bool = False) -> None:
    for dimension in DIMENSIONS[:2] if quick else DIMENSIONS:
        rows = batches(dimension)
        shown = ", ".join(f"{row.seconds:.3g} s ({row.maximisations} LPs)" for row in rows)
        print(f"      (l) polytope, d = {dimension}, seconds for each of {len(rows)} batches: {shown}", flush=True)
    third, fourth = table(CELLS[:1], HORIZONS[-1:]) if quick else table(CELLS, HORIZONS)
    line("(m) regret, Algorithm 3, paper's constants / CertifiedLinear", f"{mean(third):.1f}", "> 1", mean(third) > 1)
    line("(m) regret, Algorithm 4, paper's constants / CertifiedLinear", f"{mean(fourth):.1f}", "> 1", mean(fourth) > 1)
    line("(m) worst cell", f"{min(third + fourth):.2f}", ">= 1", min(third + fourth) >= 1.0)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
