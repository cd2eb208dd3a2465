"""(q) In how many random policies CertifiedElimination's search finds that eliminations pay. Half a minute."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from benchmarks.measure import quick_asked

POLICIES = 80


class Count(NamedTuple):
    """Policies that were made, those of them that test at all, and those that eliminate."""

    made: int
    testing: int
    eliminating: int


def policy(number: int) -> bd.CertifiedElimination:
    """Make a policy for 3 to 100 arms, T from 10^4 to 10^12, rho from 0.01 to 0.5; every second one is told a gap."""
    draw = np.random.default_rng([20, number]).uniform
    arms = int(3.0 * (101 / 3) ** draw())
    horizon = int(10.0 ** draw(4, 12))
    rho = round(float(0.01 * 50.0 ** draw()), 4)
    gap = round(float(0.01 * 50.0 ** draw()), 4) if number % 2 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        return bd.CertifiedElimination(
            arms=arms, horizon=horizon, rho=rho, gap=gap, rewards="gaussian" if number % 4 > 1 else "bounded"
        )


def count(policies: int = POLICIES) -> Count:
    """Make all of them and count."""
    batches = [policy(number).schedule.batches for number in range(policies)]
    eliminating = sum(any(batch.eliminate is not None for batch in rows) for rows in batches)
    return Count(len(batches), sum(bool(rows) for rows in batches), eliminating)


def main(quick: bool = False) -> None:
    """Print the count in one line."""
    found = count(8 if quick else POLICIES)
    print(f"{found.made} random policies: {found.testing} have batches with tests, {found.eliminating} eliminations.")


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
