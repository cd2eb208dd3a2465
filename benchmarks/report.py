"""(e) The report of a comparison: time and size, for seven policies, 1,000 pairs, T = 10^8, two cores. A minute."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.measure import line, quick_asked

POLICIES = "random-threshold,random-threshold:paper,mean-rounding,batched-elimination,ucb1,kl-ucb,thompson"


def main(quick: bool = False) -> None:
    pairs, policies = ("20", "random-threshold,ucb1") if quick else ("1000", POLICIES)
    words = [sys.executable, "-m", "banditto", "compare", "--means", "0.5,0.9,0.8,0.3", "--horizon", "1e8"]
    words += ["--rho", "0.1", "--pairs", pairs, "--policies", policies, "--jobs", "2", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run([*words, "--out", folder], check=True, capture_output=True)
        seconds = time.perf_counter() - began
        size = (Path(folder) / "report.html").stat().st_size / 1e6
    figure = f"{seconds:.0f} s, {size:.1f} MB"
    line(
        f"(e) report of {policies.count(',') + 1} policies, {int(pairs):,} pairs, T = 1e8",
        figure,
        "< 60 s, < 3 MB",
        seconds < 60 and size < 3,
    )


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
