"""(a) The batched engine against drawing its binomials alone; (c) its cost as the horizon grows. Half a minute."""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import banditto as bd
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import ShortHorizonWarning
from banditto.engine.batched import BatchedPlayer
from banditto.engine.block_sizes import PAIRS_PER_BLOCK
from banditto.engine.player import Run, run_of
from banditto.policies.policy import AnyPolicy
from benchmarks.measure import alternating, line, quick_asked, seconds

MEANS = np.linspace(0.9, 0.45, 10).tolist()
BLOCKS = 4


class Recorder(bd.Bernoulli):
    """Bernoulli arms that note how many totals of how many pulls were drawn of which arm."""

    def __init__(self, means: list[float]) -> None:
        super().__init__(means)
        self.draws: Counter[tuple[int, int]]
        object.__setattr__(self, "draws", Counter())

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        for arm in range(pulls.shape[1]):
            for count, size in zip(*np.unique(pulls[:, arm], return_counts=True), strict=True):
                if count:
                    self.draws[arm, int(count)] += int(size)
        return super().draw(pulls, noise)


def run_with(horizon: int, arms: int = 10) -> Run:
    policy = bd.RandomThreshold(arms=arms, horizon=horizon, rho=0.1, constants="paper")
    return run_of(policy, bd.Bernoulli(MEANS[:arms]), seed=1, noise_seed=None, horizon=None)


def play(what: Run, blocks: int = BLOCKS) -> None:
    assert isinstance(what.policy, bd.RandomThreshold | bd.CertifiedElimination)
    player = BatchedPlayer(what, what.policy)
    for block in range(blocks):
        player.play_block(block * PAIRS_PER_BLOCK, PAIRS_PER_BLOCK)


def against_the_sampler(policy: AnyPolicy, rounds: int) -> None:
    what = run_of(policy, bd.Bernoulli(MEANS), seed=1, noise_seed=None, horizon=None)
    recorder = Recorder(MEANS)
    play(replace(what, environment=recorder))
    generator = np.random.Generator(np.random.SFC64(1))

    def draw_only() -> None:
        # one call with scalar n and p per batch and arm, as large as all the engine's calls for it together
        for (arm, count), size in recorder.draws.items():
            generator.binomial(count, MEANS[arm], size)

    engine, sampler = alternating(lambda: play(what), draw_only, rounds)
    pairs = BLOCKS * PAIRS_PER_BLOCK
    figure = f"{engine / sampler:.2f} ({pairs / engine:,.0f} pairs/s)"
    line(f"(a) engine / NumPy's raw binomials, {policy.name}", figure, "<= 1.4", engine / sampler <= 1.4)


def against_the_horizon(rounds: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        runs = {exponent: run_with(10**exponent, arms=2) for exponent in range(4, 15, 2)}
    for what in runs.values():
        play(what, 1)
    times = {exponent: min(seconds(partial(play, what)) for _ in range(rounds)) for exponent, what in runs.items()}
    for exponent, taken in times.items():
        print(f"        T = 1e{exponent:<2}  {1e6 * taken / (BLOCKS * PAIRS_PER_BLOCK):7.2f} us a pair")
    # logarithmic: cost per batch does not grow, so from the first useful T on cost / log T stays level
    grown = (times[14] / math.log(1e14)) / (times[6] / math.log(1e6))
    line("(c) cost / log T at T = 1e14 over T = 1e6, K = 2", f"{grown:.2f}", "<= 2.0", grown <= 2.0)


def main(quick: bool = False) -> None:
    rounds = 2 if quick else 25
    print("        K = 10, T = 1e10, rho = 0.1; draws: NumPy's, one call with scalar n and p per batch and arm")
    against_the_sampler(bd.RandomThreshold(arms=10, horizon=10**10, rho=0.1, constants="paper"), rounds)
    against_the_sampler(bd.CertifiedElimination(arms=10, horizon=10**10, rho=0.1), rounds)
    against_the_horizon(1 if quick else 5)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
