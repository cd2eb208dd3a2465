"""(cc) Pages: the first screen of an experiment with a million events, and prices while one drags. About ten minutes.

Times are those of whole answers on loopback, from one worker that has opened the experiment once. Most of the time goes
into playing the experiment.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx
from tests.service.services import new_token, service_process

import banditto as bd
from banditto.service.pages.sessions import COOKIE
from benchmarks.live import load, protocol
from benchmarks.measure import line, quick_asked

EVENTS = 10**6
FIRST_SCREEN, DRAGGED = 1.0, 0.3  # seconds
RHOS = [0.01 * 1.09**step for step in range(45)]  # as a slider would go


def timed(client: httpx.Client, path: str) -> float:
    """Seconds until the whole answer is there."""
    began = time.perf_counter()
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - began


def main(quick: bool = False) -> None:
    """Print a line for each."""
    events = EVENTS // 50 if quick else EVENTS
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/pages.db"
        with bd.Experiment.open(url, "cta", protocol()) as trial:
            load(trial, events)
        cookies = {COOKIE: new_token(url)}
        with (
            service_process(url) as service,
            httpx.Client(base_url=service.address, cookies=cookies, timeout=600) as client,
        ):
            first = timed(client, "/experiments/cta")
            line("(cc) the same for the first time", f"{first:.2f} s", f"< {FIRST_SCREEN:g} s", first < FIRST_SCREEN)
            line("(cc) its checks", f"{timed(client, '/experiments/cta/checks'):.2f} s", "stated", True)
            for path in ("/experiments/cta", "/"):
                median = statistics.median(timed(client, path) for _ in range(5))
                met = median < FIRST_SCREEN
                line(f"(cc) {path} at {events:,} events", f"{median:.2f} s", f"< {FIRST_SCREEN:g} s", met)
            times = sorted(timed(client, f"/plan/prices?rho={rho:.4f}") for rho in RHOS if rho <= 0.5)
            slow = times[round(0.95 * (len(times) - 1))]
            line("(cc) /plan/prices, with its curve, 19 of 20", f"{slow:.3f} s", f"< {DRAGGED:g} s", slow < DRAGGED)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
