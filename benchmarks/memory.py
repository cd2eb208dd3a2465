"""(d) Peak memory of certifying 10^4 and 10^6 pairs, each in a process of its own. Half a minute."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.measure import line, quick_asked

CHILD = """
import banditto as bd, resource
policy = bd.RandomThreshold(arms=3, horizon=10**6, rho=0.5)
bd.certify(policy, bd.Bernoulli([0.9, 0.5, 0.1]), pairs={pairs})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(pairs: int) -> float:
    done = subprocess.run([sys.executable, "-c", CHILD.format(pairs=pairs)], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024.0


def main(quick: bool = False) -> None:
    if find_spec("resource") is None:
        print("        (d) peak memory: not measured, this system does not say it")
        return
    few, many = peak(10**4), peak(10**5 if quick else 10**6)
    figure = f"{few:.0f} MiB -> {many:.0f} MiB"
    line(f"(d) peak memory, 1e4 -> {'1e5' if quick else '1e6'} pairs", figure, "flat (<= 1.1 times)", many <= 1.1 * few)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
