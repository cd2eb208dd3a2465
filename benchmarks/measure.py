"""How the benchmarks measure: alternating rounds in one run, medians, ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def alternating(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median times of two calls that take turns, so that a noisy machine hits both alike; one warm-up each."""
    first()
    second()
    times = [(seconds(first), seconds(second)) for _ in range(rounds)]
    return statistics.median(a for a, _ in times), statistics.median(b for _, b in times)


def line(name: str, figure: str, wanted: str, met: bool) -> None:
    print(f"{'ok  ' if met else 'MISS'}  {name:<66} {figure:<28} wanted: {wanted}", flush=True)
