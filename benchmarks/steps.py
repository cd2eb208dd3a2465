"""(z) What a step costs: CPU time of asks and tells over hand-written SQL that writes the same log. A minute."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.live.fold import Course
from benchmarks.measure import line, quick_asked

ROUNDS = 10
SINGLES, BLOCKS, BLOCK = 200, 10, 100  # in a round
_SINGLE_LIMIT, _BLOCK_LIMIT = 3.0, 2.0


def registration() -> bd.Registration:
    """Half of the horizon is one batch, so that no decision falls into what is timed."""
    policy = bd.ExploreThenCommit(arms=2, horizon=10**7, rho=0.1, gap=0.002)
    return bd.Registration.of(policy.protocol(seed=1))


class HandWritten:
    """Asks and tells with Python's own driver: the statements that must be run, and the hash chain, and no more.

    It writes what banditto writes: `verify` must pass. It checks nothing, knows one policy's first batch alone, keeps
    no promise about lost connections, and is what somebody would write who needs only this.
    """

    def __init__(self, path: Path, registration: bd.Registration) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA synchronous=FULL")
        self._order = Course(registration).start().order

    def ask(self, n: int) -> list[str]:
        run = self._db.execute
        run("BEGIN IMMEDIATE")
        row = run("SELECT id, events, head, progress FROM banditto_experiment WHERE name = 'cta'").fetchone()
        request, now = uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="microseconds")
        run("SELECT event FROM banditto_request WHERE experiment = ? AND request = ?", (row[0], request)).fetchone()
        progress = json.loads(row[3])
        first = progress["issued"]
        slots = [[first + k, 0, arm] for k, arm in enumerate(self._order.arms(first, first + n).tolist())]
        progress["issued"] += n
        progress["tickets"][0] += n
        self._event(row, "ask", now, {"batch": 1, "n": n, "request": request, "slots": slots}, progress)
        rows = [(row[0], 1, position, 0, arm, now, "open") for position, _, arm in slots]
        self._db.executemany(
            "INSERT INTO banditto_ticket (experiment, batch, position, attempt, arm, issued, status)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        run("INSERT INTO banditto_request VALUES (?, ?, ?)", (row[0], request, row[1] + 1))
        run("COMMIT")
        return [f"cta.1-{position + 1}" for position, _, _ in slots]

    def tell(self, tickets: list[str]) -> None:
        run = self._db.execute
        positions = [int(ticket.rpartition("-")[2]) - 1 for ticket in tickets]
        run("BEGIN IMMEDIATE")
        row = run("SELECT id, events, head, progress FROM banditto_experiment WHERE name = 'cta'").fetchone()
        found = run(
            "SELECT arm, status FROM banditto_ticket WHERE experiment = ? AND batch = 1 AND position BETWEEN ? AND ?",
            (row[0], min(positions), max(positions)),
        ).fetchall()
        progress = json.loads(row[3])
        for arm, _ in found:
            progress["counts"][arm] += 1
            progress["sums"][arm] = f"{int(progress['sums'][arm].partition('/')[0]) + 1}/1"
            progress["squares"][arm] += 1.0
        progress["tickets"][0] -= len(tickets)
        progress["tickets"][1] += len(tickets)
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self._event(row, "tell", now, {"rewards": [[1, position, 0, 1.0] for position in positions]}, progress)
        self._db.executemany(
            "UPDATE banditto_ticket SET status = 'told', reward = 1.0"
            " WHERE experiment = ? AND batch = 1 AND position = ? AND attempt = 0",
            [(row[0], position) for position in positions],
        )
        run("COMMIT")

    def _event(self, row: tuple[int, int, str, str], kind: str, now: str, content: object, progress: object) -> None:
        body = json.dumps(content, sort_keys=True, separators=(",", ":"))
        text = "\n".join((row[2], str(row[1] + 1), kind, now, body))
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._db.execute(
            "INSERT INTO banditto_event VALUES (?, ?, ?, ?, ?, ?)", (row[0], row[1] + 1, kind, now, body, digest)
        )
        self._db.execute(
            "UPDATE banditto_experiment SET events = ?, head = ?, progress = ? WHERE id = ?",
            (row[1] + 1, digest, json.dumps(progress, separators=(",", ":")), row[0]),
        )


def spent(act: Callable[[], None], times: int) -> float:
    """CPU seconds of this process."""
    began = time.process_time()
    for _ in range(times):
        act()
    return time.process_time() - began


def ratios(folder: Path, rounds: int) -> tuple[float, float, float]:
    """Ratios of banditto's CPU time, singles and blocks, and milliseconds of one of its steps."""
    frozen = registration()
    with bd.Experiment.create(f"sqlite:///{folder}/ours.db", "cta", frozen) as ours:
        with bd.Experiment.create(f"sqlite:///{folder}/hand.db", "cta", frozen) as other:
            first = other.ask(1)  # with the event that says which software writes
            other.tell(first[0].id, 1.0)
        hand = HandWritten(folder / "hand.db", frozen)

        def single() -> None:
            (ticket,) = ours.ask()
            ours.tell(ticket.id, 1.0)

        def block() -> None:
            ours.tell_many([(ticket.id, 1.0) for ticket in ours.ask(BLOCK)])

        pairs: tuple[tuple[Callable[[], None], Callable[[], None], int], ...] = (
            (single, lambda: hand.tell(hand.ask(1)), SINGLES),
            (block, lambda: hand.tell(hand.ask(BLOCK)), BLOCKS),
        )
        found, cost = [], 0.0
        for mine, theirs, number in pairs:
            spent(mine, number // 4), spent(theirs, number // 4)
            times = [(spent(mine, number), spent(theirs, number)) for _ in range(rounds)]  # by turns
            found.append(sorted(one / two for one, two in times)[rounds // 2])
            cost = cost or 1e3 * min(one for one, _ in times) / (2 * number)
    for name in ("ours", "hand"):
        assert bd.verify(f"sqlite:///{folder}/{name}.db", "cta").holds, name
    return found[0], found[1], cost


def main(quick: bool = False) -> None:
    """Print the two ratios, on a RAM disk where there is one: what is measured is what we do, not the disk."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and shutil.disk_usage(memory).free > 1e9 else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        single, block, cost = ratios(Path(folder), 2 if quick else ROUNDS)
    figure = f"{single:.2f} ({cost:.2f} ms of CPU)"
    line("(z) SQLite: a single ask or tell over hand-written SQL", figure, "<= 3", single <= _SINGLE_LIMIT)
    line("(z) SQLite: blocks of 100 over hand-written SQL", f"{block:.2f}", "<= 2", block <= _BLOCK_LIMIT)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
