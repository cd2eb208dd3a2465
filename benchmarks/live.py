"""(l) Live experiments: steps in a second, and what a step costs after a million events. About ten minutes."""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import sqlalchemy as sql
from tests.live.servers import PostgresServer

import banditto as bd
from banditto.live.ask_tell import Transaction
from banditto.live.registration import registered
from banditto.live.store import Store, engine_of
from banditto.live.tables import EVENTS, EXPERIMENTS, REQUESTS, TICKETS
from benchmarks.measure import line, quick_asked

HORIZON = 10**7
SINGLES = 2_000
ROUNDS = 10
FEW, MANY = 10**3, 10**6  # events
STEPS_TOGETHER = 2_000  # while loading: real steps, many in one transaction


def protocol(horizon: int = HORIZON) -> bd.Protocol:
    """Half of the horizon is one batch, so that no decision falls into what is timed."""
    policy = bd.ExploreThenCommit(arms=2, horizon=horizon, rho=0.1, gap=0.002)
    return policy.protocol(seed=1)


def singles(trial: bd.Experiment, number: int) -> float:
    """Seconds for an ask and a tell, the mean of many."""
    began = time.perf_counter()
    for _ in range(number):
        (ticket,) = trial.ask()
        trial.tell(ticket.id, 1.0)
    return (time.perf_counter() - began) / number


def blocks(trial: bd.Experiment, number: int, size: int = 100) -> float:
    """Tickets in a second that are asked for and told in blocks."""
    began = time.perf_counter()
    for _ in range(number):
        trial.tell_many([(ticket.id, 1.0) for ticket in trial.ask(size)])
    return number * size / (time.perf_counter() - began)


def load(trial: bd.Experiment, events: int) -> None:
    """Real steps, one ticket each, but many in one transaction."""

    def some(step: Transaction, pairs: int, start: int) -> None:
        for k in range(pairs):
            (ticket,) = step.ask(1, f"load-{start + k}")
            step.tell([(ticket.id, 1.0, {}, None)])

    done = trial.status().events
    while done < events:
        pairs = min(STEPS_TOGETHER, events - done + 1) // 2
        trial._write(partial(some, pairs=pairs, start=done))
        done = trial.status().events


def totals(url: str, name: str) -> tuple[int, float]:
    """Batches and seconds of a run of 10^9 pulls, told as totals."""
    horizon = 10**9
    policy = bd.CertifiedElimination(arms=3, horizon=horizon, rho=0.1)
    frozen = registered(policy.protocol(seed=1))
    began = time.perf_counter()
    batches = 0
    with bd.Experiment.open(url, name, frozen) as trial:
        while (status := trial.status()).state == "running":
            means = {"0": 0.5, "1": 0.55, "2": 0.6}
            trial.tell_totals(status.batch, {arm: (n, round(n * means[arm])) for arm, n in status.plan.items()})
            batches += 1
        assert status.spent == horizon
    return batches, time.perf_counter() - began


def copied(source: str, target: str) -> None:
    """The same rows in another store: a server takes twice as long for a million steps, and ends with the same."""
    Store(target).write(lambda tx: tx.names())  # makes the tables
    reading, writing = engine_of(source), engine_of(target)
    for table in (EXPERIMENTS, EVENTS, TICKETS, REQUESTS):
        with reading.connect() as old, writing.begin() as new:
            rows = old.execution_options(yield_per=10_000).execute(sql.select(table)).mappings()
            for block in rows.partitions():
                new.execute(table.insert(), [dict(row) for row in block])
    if writing.dialect.name == "postgresql":
        plain: Any = writing.raw_connection().driver_connection
        plain.autocommit = True
        plain.execute("VACUUM ANALYZE")  # as it would have done itself over the months
        plain.close()
    reading.dispose()
    writing.dispose()


def grown(small_url: str, large_url: str, many: int) -> None:
    """A small store and a large one."""
    for url, events in ((small_url, FEW), (large_url, many)):
        with bd.Experiment.open(url, "cta", protocol()) as trial:
            load(trial, events)


def ratio(small_url: str, large_url: str, steps: int) -> tuple[float, float]:
    """Seconds of a step in a small store and in a large one, by turns: the machine's moods meet both alike."""
    with bd.Experiment.open(small_url, "cta") as small, bd.Experiment.open(large_url, "cta") as large:
        rounds = [(singles(small, steps // ROUNDS), singles(large, steps // ROUNDS)) for _ in range(ROUNDS)]
    before, after = (sum(times) / ROUNDS for times in zip(*rounds, strict=True))
    return before, after


def speeds(kind: str, url: str, steps: int) -> None:
    with bd.Experiment.open(url, "cta", protocol()) as trial:
        singles(trial, 50)
        per_step = singles(trial, steps // 4)
        line(f"(l) {kind}: asks and tells, one by one", f"{2.0 / per_step:,.0f}/s", "stated", True)
        line(f"(l) {kind}: tickets in blocks of 100", f"{blocks(trial, steps // 40):,.0f}/s", "stated", True)
    runs = [totals(url, f"totals-{k}") for k in range(steps // 100)]
    batches, seconds = max(batches for batches, _ in runs), sum(seconds for _, seconds in runs)
    figure = f"{batches} batches, {sum(batches for batches, _ in runs) / seconds:,.0f}/s"
    line(f"(l) {kind}: 10^9 pulls told as totals", figure, "few batches", batches < 20)


def growth(kind: str, small_url: str, large_url: str, many: int, steps: int) -> None:
    before, after = ratio(small_url, large_url, steps)
    figure = f"{after / before:.2f} ({1e3 * before:.2f} ms, {1e3 * after:.2f} ms)"
    line(f"(l) {kind}: a step at {many:.0e} events over one at {FEW:.0e}", figure, "<= 1.3", after / before <= 1.3)


def verification(url: str) -> None:
    began = time.perf_counter()
    found = bd.verify(url, "cta")
    rate = found.events / (time.perf_counter() - began)
    line(f"(l) verify: {found.events:,} events", f"{rate:,.0f}/s", "stated", found.holds)


def main(quick: bool = False) -> None:
    many, steps = (2 * FEW, SINGLES // 20) if quick else (MANY, SINGLES)
    server = PostgresServer(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            speeds("SQLite", f"sqlite:///{folder}/speeds.db", steps)
            speeds("PostgreSQL", server.new_schema(), steps)
            files = (f"sqlite:///{folder}/small.db", f"sqlite:///{folder}/large.db")
            grown(*files, many)
            schemas = (server.new_schema(), server.new_schema())
            for file, schema in zip(files, schemas, strict=True):
                copied(file, schema)
            verification(files[1])
            growth("SQLite", *files, many, steps)
            growth("PostgreSQL", *schemas, many, steps)
    finally:
        server.close()


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
