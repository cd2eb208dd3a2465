"""(dd) CPU time of `banditto plan`: that says no, that says yes, and with curves; over its start. Five minutes.

`--against CHECKOUT` takes turns with another checkout of this repository instead, and prints by how much this one is
faster; the answers must be the same. A command's CPU time is that of its whole process, with Python's start and all
imports.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import line

CURVES = "--out"
COMMANDS = {  # chosen before anything was made faster
    "no": (
        "--arms 4 --gap 0.001 --rate-at-most 0.1 --horizon 2e4 --by 1",
        "--arms 2 --gap 0.01 --horizon 1e4",
        "--arms 10 --gap 1e-5 --rho 1e-4",
        "--arms 4 --gap 0.01 --rate-at-most 0.1 --horizon 1e4 --same winner",
        "--arms 4 --rho 0.1 --horizon 100",
    ),
    "yes": (
        "--arms 4 --gap 0.01 --rate-at-most 0.1 --horizon 2e5 --by 1",
        "--arms 4 --gap 0.01 --rate-at-most 0.06 --baseline 0.05 --rho 0.3 --same winner",
        "--arms 4 --gap 0.01 --rate-at-most 0.1 --rho 0.1 --by 1",
        "--arms 4 --rho 0.3 --rate-at-most 0.1 --horizon 2e5",
        "--arms 4 --gap 0.05 --regret 1e4",
        "--arms 4 --gap 0.01 --rate-at-most 0.1 --rho 0.3 --by 1 --control 0",
        "--arms 2 --gap 0.3 --rho 0.2",
        "--arms 16 --gap 0.05 --rho 0.03",
        "--arms 10 --gap 0.05 --rho 0.1",
    ),
    "curves": (
        f"--arms 4 --gap 0.01 --rate-at-most 0.1 --horizon 2e5 --by 1 {CURVES}",
        f"--arms 3 --gap 0.1 --rho 0.1 {CURVES}",
        f"--arms 4 --gap 0.01 --rate-at-most 0.1 --rho 0.24 --same winner {CURVES}",
    ),
}
AT_MOST = {"no": 8.0, "yes": 4.0, "curves": 20.0}  # times the start
QUICK = {"no": "--arms 2 --rho 0.1 --horizon 100", "yes": "--arms 2 --gap 0.3 --rho 0.2"}
START = "--arms 2 --gap 0.3 --rho 0.2 --horizon 1000"  # one number too many: refused once everything is loaded


class Spent(NamedTuple):
    """CPU seconds of a command, and what it answered."""

    seconds: float
    answer: str


def spent(checkout: Path, options: str) -> Spent:
    """Run `banditto plan` of a checkout in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        words = [part for word in options.split() for part in ([word, folder] if word == CURVES else [word])]
        command = [sys.executable, "-m", "banditto", "plan", *words, "--seed", "0"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        curves = Path(folder, "curves.csv")
        answer = done.stdout + done.stderr + (curves.read_text() if curves.exists() else "")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, answer)


def against(other: Path, rounds: int) -> None:
    """Print for each command how many times the CPU time of this checkout the other one takes, taking turns."""
    start = min(spent(ROOT, START).seconds for _ in range(3))
    for kind, commands in COMMANDS.items():
        for options in commands:
            turns = [(spent(other, options), spent(ROOT, options)) for _ in range(rounds)]
            ratio = statistics.median(old.seconds / new.seconds for old, new in turns)
            work = statistics.median((old.seconds - start) / max(new.seconds - start, 0.01) for old, new in turns)
            same = "same answer" if all(old.answer == new.answer for old, new in turns) else "ANOTHER ANSWER"
            new = statistics.median(new.seconds for _, new in turns)
            figure = f"{ratio:.1f} times ({work:.1f} but start), {new:.1f} s, {same}"
            line(f"(dd) {kind}: {options}", figure, "3 times", ratio >= 3.0 and same == "same answer")


def main(quick: bool = False) -> None:
    """Print the median of each kind, over a command that is refused once everything is loaded."""
    spent(ROOT, QUICK["yes"])  # compiled code is there from now on
    start = min(spent(ROOT, START).seconds for _ in range(1 if quick else 5))
    for kind, most in AT_MOST.items():
        commands = [QUICK[kind]] if quick and kind in QUICK else [] if quick else COMMANDS[kind]
        found = [spent(ROOT, options).seconds / start for options in commands]
        if found:
            middle = statistics.median(found)
            figure = f"{middle:.1f} times, {min(found):.1f} to {max(found):.1f}"
            line(f"(dd) plan, {kind}: CPU over start ({start:.2f} s)", figure, f"at most {most:g}", middle <= most)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs; figures mean nothing")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout, to take turns with")
    parser.add_argument("--rounds", type=int, default=1, help="turns for each command (default: 1)")
    given = parser.parse_args()
    if given.quick:
        print("        --quick: small sizes, so that ok and MISS mean nothing", flush=True)
    if given.against is not None:
        against(given.against.resolve(), given.rounds)
    else:
        main(quick=given.quick)
