"""(p) Two processes against one, Dask against two processes, memory on a cluster. About fifteen minutes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.engine.dask_cluster import LocalDask, local_dask

import banditto as bd
from benchmarks.measure import alternating, line, quick_asked, seconds

MEANS = [0.9 - 0.05 * arm for arm in range(10)]
WORKERS = 2
PAIRS = 2048 * 5000  # about half a minute of one core; to start two processes takes about a second
CHILD = """
import banditto as bd, resource
policy = bd.RandomThreshold(arms=3, horizon=10**6, rho=0.5)
with bd.cluster({address!r}) as workers:
    bd.certify(policy, bd.Bernoulli([0.9, 0.5, 0.1]), pairs={pairs}, executor=workers)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@cache
def policy() -> bd.CertifiedElimination:
    """Made once: the search for its constants is no matter of workers."""
    return bd.CertifiedElimination(arms=10, horizon=10**10, rho=0.1)


def certified(pairs: int, jobs: int = 1, address: str | None = None) -> bd.Certificate:
    """Opening a cluster and starting processes are part of the work."""
    if address is None:
        return bd.certify(policy(), bd.Bernoulli(MEANS), pairs=pairs, seed=1, jobs=jobs)
    with bd.cluster(address) as workers:
        return bd.certify(policy(), bd.Bernoulli(MEANS), pairs=pairs, seed=1, executor=workers)


def two_processes_against_one(pairs: int, rounds: int) -> None:
    one, two = alternating(lambda: certified(pairs), lambda: certified(pairs, jobs=2), rounds)
    figure = f"{one / two:.2f} ({one:.1f} s, {two:.1f} s)"
    line(f"(p) two processes over one, median of {rounds} rounds each", figure, ">= 1.7", one / two >= 1.7)


def dask_against_processes(pairs: int, rounds: int, dask: LocalDask) -> None:
    results = [certified(pairs // 100, jobs=WORKERS), certified(pairs // 100, address=dask.address)]
    times = [
        (seconds(lambda: certified(pairs, jobs=WORKERS)), seconds(lambda: certified(pairs, address=dask.address)))
        for _ in range(rounds)
    ]
    pool, cluster = (statistics.median(column) for column in zip(*times, strict=True))
    assert results[0] == results[1]
    figure = f"{cluster / pool - 1.0:+.1%} ({pool:.0f} s, {cluster:.0f} s)"
    line(f"(p) Dask over as many processes, median of {rounds} rounds each", figure, "< +10%", cluster / pool < 1.1)


def peaks(pairs: int, dask: LocalDask) -> tuple[float, float]:
    """Of the client, and of the scheduler and the workers together since they were started; in MiB."""
    code = CHILD.format(pairs=pairs, address=dask.address)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = 0
    for process in (dask.scheduler, *dask.workers):
        status = Path(f"/proc/{process.pid}/status").read_text()
        others += int(status.split("VmHWM:")[1].split()[0])
    return int(done.stdout) / 1024.0, others / 1024.0


def memory(fewer: int, more: int, dask: LocalDask) -> None:
    if not Path("/proc").is_dir():
        print("        (p) peak memory: not measured, this system has no /proc")
        return
    few, many = peaks(fewer, dask), peaks(more, dask)
    figure = " + ".join(f"{a:.0f} -> {b:.0f}" for a, b in zip(few, many, strict=True)) + " MiB"
    flat = all(b <= 1.1 * a for a, b in zip(few, many, strict=True))
    line(f"(p) peak memory, client + cluster, {fewer:.0e} -> {more:.0e} pairs", figure, "flat (<= 1.1 times)", flat)


def main(quick: bool = False) -> None:
    pairs = PAIRS // 100 if quick else PAIRS
    if (os.cpu_count() or 1) < WORKERS:
        print(f"        fewer than {WORKERS} cores: two processes cannot be faster than one here")
    two_processes_against_one(pairs, 1 if quick else 7)
    # what Dask's workers remember of the last hour, to draw it, is no matter of ours
    os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"
    with local_dask(WORKERS) as dask:
        memory(*(10**4, 2 * 10**4) if quick else (5 * 10**5, 4 * 10**6), dask)
        dask_against_processes(4 * pairs, 1 if quick else 3, dask)  # about a minute with two workers


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
