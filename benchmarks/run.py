"""All benchmarks: `make bench`. Every figure is a ratio measured in one run, because machines are noisy."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import (
    batched_engine,
    certified,
    cluster,
    design,
    gpu,
    linear,
    live,
    memory,
    peers,
    report,
    round_policies,
)


def main() -> None:
    print(f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores; about forty minutes.")
    for part in (batched_engine, round_policies, memory, report, certified, design, linear, live, peers, cluster, gpu):
        part.main()


if __name__ == "__main__":
    main()
