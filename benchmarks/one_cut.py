"""(r) OneCut: regret against CertifiedElimination; (s) attacks with a million pairs a cell. About 20 minutes.

Attacks are on 2 to 20 arms, four rhos and four laws of rewards.

In each cell arms are placed where the proof says that it is hardest to agree: ties, leads within the cut, arms at the
edges of the window. Each placement is tried with few pairs, and the worst one is played with a million fresh ones. A
cell counts as broken if the exact lower limit of its share of different pairs exceeds rho, at an error of 1e-6 over all
cells together.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.numbers.intervals import lower_limit
from benchmarks.measure import line, quick_asked

ARMS = (2, 3, 5, 10, 20)
RHOS = (0.01, 0.1, 0.3, 0.5)
PAIRS, PILOT = 1_000_000, 20_000
ERROR = 1e-6
TOP = 0.55  # the best mean
REGRETS = (  # arms, gap, horizon, and the ratio that is wanted
    (2, 0.05, 10**6, 4.0),
    (2, 0.1, 10**6, 4.0),
    (2, 0.05, 10**7, 4.0),
    (2, 0.05, 10**8, 4.0),
    (2, 0.1, 10**8, 4.0),
    (4, 0.05, 10**7, 2.0),
    (5, 0.1, 10**7, 2.0),
    (10, 0.1, 10**7, 2.0),
)

Law = Callable[[int, float], tuple[Sequence[float], Sequence[float]]]


def coins(arm: int, mean: float) -> tuple[Sequence[float], Sequence[float]]:
    """0 or 1."""
    return (0.0, 1.0), (1.0 - mean, mean)


def three_points(arm: int, mean: float) -> tuple[Sequence[float], Sequence[float]]:
    """0, 1/2 or 1, with 1/2 as often as can be without the variance getting small."""
    middle = min(mean, 1.0 - mean) * 0.5
    return (0.0, 0.5, 1.0), (1.0 - mean - middle / 2.0, middle, mean - middle / 2.0)


def skewed(arm: int, mean: float) -> tuple[Sequence[float], Sequence[float]]:
    """0 or 1, all means lower by 0.35: the best arm pays in a fifth of its pulls."""
    return coins(arm, max(mean - 0.35, 0.01))


def mixed(arm: int, mean: float) -> tuple[Sequence[float], Sequence[float]]:
    """Every second arm pays nearly always the same."""
    if arm % 2 == 0:
        return coins(arm, mean)
    return (mean - 0.05, mean + 0.05), (0.5, 0.5)


LAWS: dict[str, Law] = {"coins": coins, "three points": three_points, "skewed": skewed, "mixed variances": mixed}


class Cell(NamedTuple):
    """The worst placement of a cell: its share of different pairs, and the exact lower limit of that."""

    arms: int
    rho: float
    law: str
    control: int | None
    place: str
    share: float
    limit: float

    @property
    def broken(self) -> bool:
        """Whether rho is exceeded."""
        return self.limit > self.rho


def placements(policy: bd.OneCut) -> Iterator[tuple[str, list[float]]]:
    """Yield how far arms are behind the best mean, by name."""
    width, knots, others = policy.schedule.width, policy.schedule.knots, policy.arms - 2
    if not knots:
        for share in (0.0, 0.25, 0.5, 0.9):
            yield f"lead {share:g} w", [0.0, share * width]
        return
    edges = {"beginning": knots[0], "quarter": knots[4], "middle": knots[8], "end": knots[-2]}
    for lead in (0.0, 0.3, 0.6):
        for name, edge in edges.items():
            yield f"lead {lead:g} w, others at the window's {name}", [0.0, lead * width, *[edge] * others]
        spread = np.linspace(knots[0], knots[-1], others).tolist() if others > 1 else [knots[0]]
        yield f"lead {lead:g} w, others over the window", [0.0, lead * width, *spread]
    yield "all tied", [0.0] * policy.arms
    yield "all but one tied", [0.0, *[0.5 * width] * (policy.arms - 1)]


def attacked(
    arms: int,
    rho: float,
    law: str,
    *,
    control: int | None = None,
    pairs: int = PAIRS,
    pilot: int = PILOT,
    cells: int,
    backend: Literal["numpy", "cupy"] = "numpy",
) -> Cell:
    """Find the worst placement of a cell and play it again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        policy = bd.OneCut(arms=arms, horizon=10**12, rho=rho, gap=0.05, control=control)

    def different(behind: list[float], count: int, seed: int) -> int:
        rows: list[Any] = [LAWS[law](arm, max(TOP - far, 0.06)) for arm, far in enumerate(behind)]
        binary = all(values == (0.0, 1.0) for values, _ in rows)
        world = bd.Bernoulli([probabilities[1] for _, probabilities in rows]) if binary else bd.Discrete(rows)
        return bd.certify(policy, world, pairs=count, seed=seed, backend=backend).mismatches

    tried = {name: different(behind, pilot, 1) for name, behind in placements(policy)}
    worst = max(tried, key=lambda name: tried[name])
    found = different(dict(placements(policy))[worst], pairs, 2)
    return Cell(arms, rho, law, control, worst, found / pairs, lower_limit(found, pairs, ERROR / cells))


def regrets(arms: int, gap: float, horizon: int, pairs: int) -> tuple[float, float]:
    """Return the regret of OneCut and of CertifiedElimination, both told the gap by which all others are worse."""
    world = bd.Bernoulli([0.5 - gap / 2.0] * (arms - 1) + [0.5 + gap / 2.0])
    known: dict[str, Any] = {"arms": arms, "horizon": horizon, "rho": 0.1, "gap": gap}
    made = (bd.OneCut(**known, power=None), bd.CertifiedElimination(**known))
    own, other = (bd.certify(policy, world, pairs=pairs, seed=3).regret.mean for policy in made)
    return own, other


def main(quick: bool = False) -> None:
    """Print a line for each problem and each cell."""
    for arms, gap, horizon, least in REGRETS[:1] if quick else REGRETS:
        own, other = regrets(arms, gap, horizon, 200 if quick else 10_000)
        what = f"(r) regret, CertifiedElimination over OneCut: K = {arms}, gap {gap:g}, T = {horizon:.0e}"
        line(what, f"{other / own:.2f} ({own:,.0f})", f"{least:g} at least", other / own >= least)
    grid: list[tuple[int, float, str, int | None]] = [
        (arms, rho, law, None) for arms in ARMS for rho in RHOS for law in LAWS
    ]
    grid += [(arms, 0.1, "coins", control) for arms in ARMS for control in sorted({1, arms - 1})]
    if quick:
        grid = [(3, 0.3, "three points", None)]
    for arms, rho, law, control in grid:
        pairs, pilot = (20_000, 1000) if quick else (PAIRS, PILOT)
        cell = attacked(arms, rho, law, control=control, pairs=pairs, pilot=pilot, cells=len(grid))
        named = "" if control is None else ", control"
        figure = f"{cell.share:.5f}, {cell.share / rho:.2f} rho"
        line(f"(s) K = {arms}, {law}{named}: {cell.place}", figure, f"{rho:g} at most", not cell.broken)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
