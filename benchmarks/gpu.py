"""(g) The batched engine on a GPU: pairs per second, against one core and against raw binomials. Two minutes.

Also whether agreement and regret at 10^7 pairs are those of the CPU. Needs CuPy and a GPU; `python benchmarks/gpu.py`.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.core.errors import InvalidArgument
from banditto.engine.backend import Backend, machine_of
from banditto.engine.batched import BatchedPlayer
from banditto.engine.block_sizes import PAIRS_PER_BLOCK, PAIRS_PER_DEVICE_BLOCK
from banditto.engine.blocks import run_pairs
from banditto.engine.player import Run, run_of
from benchmarks.batched_engine import MEANS, Recorder
from benchmarks.measure import alternating, line, quick_asked

PAIRS = 10**7
BLOCKS = 2


def run_with(policy: Any, backend: Backend) -> Run:
    return run_of(policy, bd.Bernoulli(MEANS), seed=1, noise_seed=None, horizon=None, backend=backend)


def speed(policy: Any, rounds: int) -> None:
    gpu, cpu = machine_of("cupy"), run_with(policy, "numpy")
    cupy = gpu.arrays

    def there() -> None:
        for block in range(BLOCKS):
            player = BatchedPlayer(run_with(policy, "cupy"), policy)
            player.play_block(block * player.block_size, PAIRS_PER_DEVICE_BLOCK)

    def here() -> None:
        for block in range(4):
            BatchedPlayer(cpu, policy).play_block(block * PAIRS_PER_BLOCK, PAIRS_PER_BLOCK)

    on_gpu, on_cpu = alternating(there, here, rounds)
    rate, core = BLOCKS * PAIRS_PER_DEVICE_BLOCK / on_gpu, 4 * PAIRS_PER_BLOCK / on_cpu
    figure = f"{rate / 1e6:.1f} million, {rate / core:.0f} times one core"
    line(f"(g) {policy.name} on the GPU, pairs/s", figure, ">= 25 million, 200", rate >= 25e6 and rate >= 200 * core)

    recorder = Recorder(MEANS)
    run = run_of(policy, recorder, seed=1, noise_seed=None, horizon=None)
    BatchedPlayer(run, policy).play_block(0, PAIRS_PER_BLOCK)
    draws = sum(recorder.draws.values()) / PAIRS_PER_BLOCK
    rows = 1 << 22
    pulls = cupy.full((len(MEANS), rows), 10**6).T
    generator = cupy.random.Generator(cupy.random.XORWOW(1))
    noise = gpu.noise(1, 0, 0)

    def own() -> None:
        noise.binomial_totals(pulls, MEANS)
        cupy.cuda.Device().synchronize()

    def theirs() -> None:
        for mean in MEANS:
            generator.binomial(10**6, mean, rows)
        cupy.cuda.Device().synchronize()

    ours, cupys = alternating(own, theirs, rounds)
    total = rows * len(MEANS)
    share, other = draws * rate * ours / total, draws * rate * cupys / total
    rates = f"our kernel {total / ours / 1e9:.1f}, CuPy {total / cupys / 1e9:.1f}"
    print(f"        {draws:.0f} draws a pair; raw draws: {rates}")
    print(f"        billion a second; the engine runs at {share:.0%} of our kernel's rate, {other:.0%} of CuPy's")


def consistency(policy: Any, pairs: int) -> None:
    began = time.perf_counter()
    there = run_pairs(run_with(policy, "cupy"), pairs).counts
    took = time.perf_counter() - began
    here = run_pairs(run_with(policy, "numpy"), pairs, jobs=os.cpu_count() or 1).counts
    both = (here.mismatches + there.mismatches) / (2 * pairs)
    differ = (there.mismatches - here.mismatches) / pairs / math.sqrt(both * (1.0 - both) * 2.0 / pairs)
    regret = there.regret.mean - here.regret.mean
    error = math.hypot(here.regret.standard_error, there.regret.standard_error)
    figure = f"{there.mismatches} and {here.mismatches} differ, z = {differ:.2f}; regret z = {regret / error:.2f}"
    ok = abs(differ) < 4.5 and abs(regret / error) < 4.5
    line(f"(g) {policy.name}: {pairs:.0e} pairs there ({took:.1f} s) and here", figure, "|z| < 4.5", ok)


def main(quick: bool = False) -> None:
    try:
        machine_of("cupy")
    except InvalidArgument as error:
        print(f"        (g) GPU: not measured, {error}")
        return
    for policy in (
        bd.RandomThreshold(arms=10, horizon=10**10, rho=0.1, constants="paper"),
        bd.CertifiedElimination(arms=10, horizon=10**10, rho=0.1),
    ):
        speed(policy, 1 if quick else 5)
        consistency(policy, PAIRS // 100 if quick else PAIRS)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
