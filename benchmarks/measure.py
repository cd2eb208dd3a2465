"""What the benchmarks share: alternating rounds in one run, medians, ratios. There is nothing to run here."""

from __future__ import annotations

import argparse
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


def quick_asked(about: str | None) -> bool:
    """Read a script's command line and return whether `--quick` is on it; `about` is the script's docstring."""
    first_line = (about or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=first_line)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs; figures mean nothing")
    quick: bool = parser.parse_args().quick
    if quick:
        print("        --quick: small sizes, so that ok and MISS mean nothing", flush=True)
    return quick


if __name__ == "__main__":
    print("usage: python benchmarks/run.py [--quick] for all benchmarks; each of its neighbours is one of them")
