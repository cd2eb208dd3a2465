"""(b) UCB1 and Thompson through the whole runner, recording included, against bare Numba loops. Half a minute."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from numba import njit

import banditto as bd
from banditto.core.arrays import FloatArray
from banditto.engine import rounds
from banditto.engine.player import run_of
from banditto.policies.policy import RoundPolicy
from benchmarks.measure import alternating, line, quick_asked

MEANS = np.linspace(0.9, 0.45, 10)
WORLD = bd.Bernoulli(MEANS.tolist())


@njit(cache=True)
def bare_ucb1(means: FloatArray, horizon: int, seed: int) -> float:
    np.random.seed(seed)  # noqa: NPY002 - Numba's own generator, the fastest a bare loop has
    arms = means.size
    pulls, sums = np.zeros(arms, dtype=np.int64), np.zeros(arms)
    for t in range(horizon):
        best = 0
        if t < arms:
            best = t
        else:
            spread = 2.0 * math.log(t)
            bound = -np.inf
            for arm in range(arms):
                upper = sums[arm] / pulls[arm] + math.sqrt(spread / pulls[arm])
                if upper > bound:
                    best, bound = arm, upper
        if np.random.random() < means[best]:  # noqa: NPY002
            sums[best] += 1.0
        pulls[best] += 1
    return float(sums.sum())


@njit(cache=True)
def bare_thompson(means: FloatArray, horizon: int, seed: int) -> float:
    np.random.seed(seed)  # noqa: NPY002
    arms = means.size
    pulls, sums = np.zeros(arms, dtype=np.int64), np.zeros(arms)
    for _ in range(horizon):
        best, largest = 0, -1.0
        for arm in range(arms):
            sample = np.random.beta(1.0 + sums[arm], 1.0 + pulls[arm] - sums[arm])  # noqa: NPY002
            if sample > largest:
                best, largest = arm, sample
        if np.random.random() < means[best]:  # noqa: NPY002
            sums[best] += 1.0
        pulls[best] += 1
    return float(sums.sum())


def compare(policy: RoundPolicy, bare: Callable[[FloatArray, int, int], float], horizon: int, wanted: float) -> None:
    run = run_of(policy, WORLD, seed=1, noise_seed=None, horizon=horizon)

    def runner() -> None:
        rounds.RoundPlayer(run, policy).play_block(0, 2)

    def loop() -> None:
        for seed in range(4):  # two pairs are four executions
            bare(MEANS, horizon, seed)

    own, plain = alternating(runner, loop, rounds=7)
    figure = f"{plain / own:.2f} ({4e-6 * horizon / own:.1f} million pulls/s)"
    line(f"(b) {policy.name}: runner's pulls/s over a bare Numba loop's", figure, f">= {wanted}", plain / own >= wanted)


def main(quick: bool = False) -> None:
    compare(bd.UCB1(), bare_ucb1, 10**4 if quick else 10**6, wanted=1.5)
    compare(bd.Thompson(), bare_thompson, 10**3 if quick else 10**5, wanted=1.2)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
