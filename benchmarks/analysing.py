"""(y) `analyse` on a million rewards, from a store and from an exported log: seconds and memory. About 6 minutes."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.live.export import export
from benchmarks.measure import line, quick_asked

REWARDS = 10**6
SECONDS, MEGABYTES = 10.0, 500.0
_SCRIPT = """
import re, sys, time
from pathlib import Path
begun = time.perf_counter()
import banditto as bd
source = sys.argv[1]
bd.analyse(source if "#" in source else Path(source))
seconds = time.perf_counter() - begun
# of this program alone: what getrusage says begins with the memory of whoever started it
print(seconds, int(re.search("VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1e3)
"""


def made(url: str, rewards: int) -> None:
    """Play an experiment with so many rewards, 0 or 1, with a late batch after the commit."""
    policy = bd.OneCut(arms=4, horizon=rewards, rho=0.3, gap=0.02)
    generator = random.Random(7)
    with bd.Experiment.open(url, "big", policy.protocol(seed=1)) as trial:
        while len(answer := trial.ask(10_000)):
            trial.tell_many((ticket.id, float(generator.random() < 0.5 + 0.02 * ticket.arm)) for ticket in answer)


def measured(source: str) -> tuple[float, float]:
    """Analyse in a process of its own; seconds and the largest memory in MB come back, imports included."""
    out = subprocess.run([sys.executable, "-c", _SCRIPT, source], capture_output=True, text=True, check=True).stdout
    seconds, megabytes = out.split()
    return float(seconds), float(megabytes)


def main(quick: bool = False) -> None:
    """Print a line for each source."""
    rewards = 120_000 if quick else REWARDS
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/big.db"
        made(url, rewards)
        file = Path(folder) / "big.json"
        with file.open("w+b") as out:
            export(url, "big", "json", out)
        for name, source in (("a store", f"{url}#big"), ("an exported log, verified", str(file))):
            seconds, megabytes = measured(source)
            figure = f"{seconds:.1f} s, {megabytes:.0f} MB"
            wanted = f"< {SECONDS:.0f} s, < {MEGABYTES:.0f} MB"
            line(f"(y) {rewards:,} rewards from {name}", figure, wanted, seconds < SECONDS and megabytes < MEGABYTES)


if __name__ == "__main__":
    main(quick_asked(__doc__))
