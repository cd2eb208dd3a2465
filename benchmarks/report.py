"""The report of a comparison: seven policies, 1,000 pairs, T = 10^8, on two cores. Wanted: 60 s and 3 MB at most."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import line

POLICIES = "random-threshold,random-threshold:paper,mean-rounding,batched-elimination,ucb1,kl-ucb,thompson"


def main() -> None:
    words = [sys.executable, "-m", "banditto", "compare", "--means", "0.5,0.9,0.8,0.3", "--horizon", "1e8"]
    words += ["--rho", "0.1", "--pairs", "1000", "--policies", POLICIES, "--jobs", "2", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run([*words, "--out", folder], check=True, capture_output=True)
        seconds = time.perf_counter() - began
        size = (Path(folder) / "report.html").stat().st_size / 1e6
    figure = f"{seconds:.0f} s, {size:.1f} MB"
    line("(e) report of 7 policies, 1,000 pairs, T = 1e8", figure, "< 60 s, < 3 MB", seconds < 60 and size < 3)


if __name__ == "__main__":
    main()
