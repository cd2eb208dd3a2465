"""All benchmarks: `make bench`. Every figure is a ratio measured in one run, as machines are noisy. An hour."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import (
    analysing,
    batched_engine,
    certified,
    cluster,
    coverage,
    design,
    early_cut,
    eliminations,
    gpu,
    linear,
    live,
    long_logs,
    memory,
    one_cut,
    pages,
    peers,
    plan_speed,
    report,
    round_policies,
    service_load,
    start_up,
    steps,
    two_halves,
)
from benchmarks.measure import quick_asked

PARTS = (
    batched_engine,
    round_policies,
    memory,
    report,
    certified,
    one_cut,
    two_halves,
    early_cut,
    eliminations,
    plan_speed,
    design,
    linear,
    live,
    start_up,
    steps,
    long_logs,
    service_load,
    pages,
    coverage,
    analysing,
    peers,
    cluster,
    gpu,
)


def main(quick: bool = False) -> None:
    takes = "some minutes" if quick else "about an hour"
    print(f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores; {takes}.", flush=True)
    for part in PARTS:
        began = time.perf_counter()
        part.main(quick=quick)
        print(f"        {part.__name__.rpartition('.')[2]} took {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
