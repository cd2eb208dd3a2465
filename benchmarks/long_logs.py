"""(aa) verify, replicate, status and exports of a million events: seconds and memory. About ten minutes.

Each is in a process of its own. Most of the time goes into playing the experiment.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from benchmarks.live import load, protocol
from benchmarks.measure import line, quick_asked

EVENTS = 10**6
MEGABYTES = 200.0
_SCRIPT = """
import re, sys, time
from pathlib import Path
import banditto as bd
from banditto.live.export import export
what, url, out = sys.argv[1:]
bd.verify, bd.replicate, bd.Experiment  # which loads what they need
begun = time.perf_counter()
if what == "verify":
    assert bd.verify(url, "cta").holds
elif what == "replicate":
    assert bd.replicate(f"{url}#cta", f"{url}#cta").compared == 0
elif what == "status":
    with bd.Experiment.open(url, "cta") as trial:
        trial.status()
else:
    with Path(out).open("w+b") as file:
        export(url, "cta", what, file)
seconds = time.perf_counter() - begun
# of this program alone: what getrusage says begins with the memory of whoever started it
print(seconds, int(re.search("VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1e3)
"""
WHAT = ("verify", "json", "csv", "parquet", "replicate", "status")


def measured(what: str, url: str, folder: str) -> tuple[float, float]:
    """Seconds without imports, and the largest memory in MB with them."""
    arguments = [sys.executable, "-c", _SCRIPT, what, url, f"{folder}/out"]
    seconds, megabytes = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(megabytes)


def main(quick: bool = False) -> None:
    """Print a line for each; PyArrow alone takes more than the limit, so that Parquet has none."""
    events = EVENTS // 50 if quick else EVENTS
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/long.db"
        with bd.Experiment.open(url, "cta", protocol()) as trial:
            load(trial, events)
        for what in WHAT:
            seconds, megabytes = measured(what, url, folder)
            figure = f"{seconds:.1f} s, {megabytes:.0f} MB"
            wanted = "stated" if what == "parquet" else f"< {MEGABYTES:.0f} MB"
            line(f"(aa) {what}: {events:,} events", figure, wanted, what == "parquet" or megabytes < MEGABYTES)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
