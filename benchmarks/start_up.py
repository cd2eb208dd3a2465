"""(dd) How long a command takes to start, in CPU time over what its libraries alone take to load. A minute."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.measure import line, quick_asked

STORE = ("--store", "sqlite:///trial.db")
LIGHT: dict[str, tuple[str, ...]] = {
    "--version": ("--version",),
    "--help": ("--help",),
    "policies": ("policies",),
    "a usage error": ("certify",),
    "certify --help": ("certify", "--help"),
}
STEPS: dict[str, tuple[str, ...]] = {"ask": ("ask", "cta", *STORE), "status": ("status", "cta", *STORE)}


def cpu_seconds(*words: str, folder: str) -> float:
    """User and system time of a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratio(words: tuple[str, ...], libraries: str, rounds: int, folder: str) -> float:
    """Median CPU time of a command over that of loading its libraries, taking turns."""
    pairs = [
        (cpu_seconds("-m", "banditto", *words, folder=folder), cpu_seconds("-c", f"import {libraries}", folder=folder))
        for _ in range(rounds + 1)
    ][1:]  # the first may compile
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def main(quick: bool = False) -> None:
    rounds = 2 if quick else 15
    with tempfile.TemporaryDirectory() as folder:
        plan = ("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.2", "--save", "plan.toml", "--quiet")
        for step in (plan, ("init", "plan.toml", "--name", "cta", *STORE)):
            subprocess.run([sys.executable, "-m", "banditto", *step], cwd=folder, capture_output=True, check=True)
        for name, words in LIGHT.items():
            found = ratio(words, "typer", rounds, folder)
            line(f"(dd) banditto {name}, over loading typer", f"{found:.2f}", "< 2", found < 2.0)
        for name, words in STEPS.items():
            found = ratio(words, "typer, numpy, sqlalchemy.dialects.sqlite", rounds, folder)
            line(f"(dd) banditto {name}, over loading typer, NumPy, SQLAlchemy", f"{found:.2f}", "< 1.6", found < 1.6)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
