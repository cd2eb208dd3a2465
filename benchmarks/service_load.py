"""(bb) The service under load on loopback: requests a second, p50, p99, and the library's own rate. Four minutes.

Two worker processes of `banditto serve`, two processes of callers, on SQLite and PostgreSQL, single steps and blocks of
100 and 1,000. The library's own rate is that of two processes that open the same experiment without a service. Callers
and service share the machine.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
import time
from multiprocessing.pool import Pool
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.live.servers import PostgresServer
from tests.service.services import new_token, service_process

import banditto as bd
from banditto.live.experiment import Experiment
from banditto.live.registration import registered
from banditto.live.verify import verify
from banditto.service.client import RemoteExperiment
from benchmarks.measure import line, quick_asked

PROCESSES = 2
SIZES = (1, 100, 1000)


class Turns(NamedTuple):
    """What one process of callers did: seconds of each request, and the tickets that it got."""

    seconds: list[float]
    tickets: list[str]
    begun: float
    ended: float


class Task(NamedTuple):
    """Whom to call, how many tickets at a time, and for how long."""

    store: str
    address: str  # of a service; empty: the library itself
    token: str
    size: int
    lasting: float


def turned(task: Task) -> Turns:
    """Ask and tell for so long."""
    if task.address:
        with bd.Client(task.address, task.token) as client:
            return _turned(client.open("load"), task)
    with Experiment.open(task.store, "load") as own:
        return _turned(own, task)


def _turned(trial: Experiment | RemoteExperiment, task: Task) -> Turns:
    seconds, tickets = [], []
    trial.status()  # loads what is loaded once
    begun = moment = time.perf_counter()
    while moment - begun < task.lasting:
        answer = trial.ask(task.size)
        asked = time.perf_counter()
        told = trial.tell_many([(ticket.id, 1.0) for ticket in answer])
        assert set(told) == {"recorded"}
        ended = time.perf_counter()
        seconds += [asked - moment, ended - asked]
        tickets += [ticket.id for ticket in answer]
        moment = ended
    return Turns(seconds, tickets, begun, moment)


def together(pool: Pool, task: Task) -> tuple[float, list[float], list[str]]:
    """Let all processes call at once; requests a second come back, how long each took, and all tickets."""
    found = pool.map(turned, [task] * PROCESSES, chunksize=1)
    rate = sum(len(turns.seconds) / (turns.ended - turns.begun) for turns in found)
    times = sorted(second for turns in found for second in turns.seconds)
    return rate, times, [ticket for turns in found for ticket in turns.tickets]


def measured(kind: str, url: str, pool: Pool, lasting: float) -> None:
    protocol = bd.ExploreThenCommit(arms=2, horizon=10**7, rho=0.1, gap=0.002).protocol(seed=1)
    Experiment.create(url, "load", registered(protocol)).close()
    token, every = new_token(url), list[str]()
    with service_process(url, "--workers", str(PROCESSES), "--rate", "100000", "--quiet") as service:
        for size in SIZES:
            ratios = []
            for _ in range(3):  # in turn, so that a noisy machine hits both alike
                own, _, mine = together(pool, Task(url, "", token, size, lasting))
                rate, times, theirs = together(pool, Task(url, service.address, token, size, lasting))
                every += mine + theirs
                ratios.append(rate / own)
            middle, late = times[len(times) // 2], times[int(0.99 * len(times))]
            what = "single steps" if size == 1 else f"blocks of {size:,}"
            figure = f"{rate:,.0f}/s, {1e3 * middle:.1f} and {1e3 * late:.1f} ms"
            line(f"(bb) {kind}, {what}: requests, p50 and p99", figure, "stated", True)
            ratio = statistics.median(ratios)
            met = size == 1 or ratio >= 0.5
            wanted = "stated" if size == 1 else ">= 0.5"
            line(f"(bb) {kind}, {what} over the library's own rate", f"{ratio:.2f}", wanted, met)
    found = verify(url, "load")
    with Experiment.open(url, "load") as trial:
        told = trial.status().tickets
    lost, twice = len(set(every)) - told["told"], len(every) - len(set(every))
    met = found.holds and lost == twice == told["open"] == 0
    line(f"(bb) {kind}: tickets lost and given twice, of {len(every):,}", f"{lost} and {twice}", "0 and 0", met)


def main(quick: bool = False) -> None:
    lasting = 0.5 if quick else 5.0
    server = PostgresServer(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
            measured("SQLite", f"sqlite:///{folder}/load.db", pool, lasting)
            measured("PostgreSQL", server.new_schema(), pool, lasting)
    finally:
        server.close()


if __name__ == "__main__":
    main(quick_asked(__doc__))
