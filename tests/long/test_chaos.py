"""What a year of live experiments brings, in a minute: everything stops, dies, fills up and jumps while workers go on.

Both stores write to disk before they answer. Nothing that was acknowledged is lost or counted twice, nobody waits for
longer than the deadline, the log verifies, and the arms are the simulator's. Seeds are fixed; what meets what is not.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from banditto.core.errors import BandittoError, StoreError
from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from tests.live.auditing import start_auditor
from tests.live.crowds import Acknowledged, check
from tests.live.servers import KINDS, PostgresServer
from tests.live.workers import NAME
from tests.live.worlds import finish, place, registration_of, small_policy

pytestmark = pytest.mark.long

WORKERS = 4
DEADLINE = 4.0
HELD = 22.0  # seconds for which somebody sits on the lock
MOST = 18.0  # seconds that anybody may wait: the deadline, two for asking who holds the lock, and a busy machine
ROUNDS = 24
HORIZON = 10_000
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    made = PostgresServer(durable=True)
    yield made
    made.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder on disk that everybody can enter and nobody else can write to."""
    made = Path(tempfile.mkdtemp(prefix="banditto-chaos-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


class Chaos:
    """Whatever can happen to workers and to their store, one thing after the other."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.generator = np.random.default_rng(24)
        self.stops: dict[int, list[tuple[float, float]]] = defaultdict(list)

    def worker(self) -> tuple[int, int]:
        """Slot and process of a random worker."""
        lines = (self.folder / "pids").read_text().splitlines()
        latest = dict(line.split() for line in lines)
        slot = str(self.generator.choice(sorted(latest)))
        return int(slot), int(latest[slot])

    def stop_a_worker(self) -> None:
        slot, process = self.worker()
        begun = time.monotonic()
        self.stop(process)
        self.stops[slot].append((begun, time.monotonic()))

    def stop(self, process: int) -> None:
        """Stop a process for a while, now and then for longer than the deadline."""
        with suppress(ProcessLookupError):  # it is gone already
            os.kill(process, signal.SIGSTOP)
            time.sleep(float(self.generator.choice([0.3, 1.0, DEADLINE + 1])))
            os.kill(process, signal.SIGCONT)

    def kill_a_worker(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.worker()[1], signal.SIGKILL)

    def set_the_clock(self) -> None:
        (self.folder / "clock").write_text(str(float(self.generator.choice([-7200.0, -1.0, 0.0, 1.0, 7200.0]))))

    def backend(self) -> int:
        """A random process of the server that works for a worker."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            query = (
                "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'banditto %' AND pid <> pg_backend_pid()"
            )
            return int(self.generator.choice([row[0] for row in connection.execute(query)] or [0]))

    def stop_a_backend(self) -> None:
        process = self.backend()
        if process:
            self.stop(process)

    def end_a_backend(self) -> None:
        process = self.backend()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (process,))

    def sit_on_the_lock(self) -> None:
        """For longer than anybody may wait; on PostgreSQL a process that was stopped does, which nothing can end."""
        if self.url.startswith("sqlite"):
            with closing(
                sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=60, isolation_level=None)
            ) as file:
                file.execute("BEGIN IMMEDIATE")
                time.sleep(HELD)
            return
        with psycopg.connect(self.url) as connection:
            connection.execute("SELECT * FROM banditto_experiment FOR UPDATE")
            os.kill(connection.info.backend_pid, signal.SIGSTOP)
            time.sleep(HELD)
            os.kill(connection.info.backend_pid, signal.SIGCONT)

    def run(self) -> None:
        """Let it all happen, again and again."""
        kinds: list[Callable[[], None]] = [self.stop_a_worker, self.kill_a_worker, self.set_the_clock]
        if not self.url.startswith("sqlite"):
            kinds += [self.stop_a_backend, self.end_a_backend]
        for number in range(ROUNDS):
            time.sleep(float(self.generator.uniform(0.0, 0.4)))
            kinds[number % len(kinds)]()
        self.sit_on_the_lock()

    def waits(self) -> list[float]:
        """Seconds that workers waited for slow answers, without the time in which they themselves were stopped."""
        found = []
        for path in self.folder.glob("*.log"):
            for line in path.read_text().splitlines():
                if line.startswith("slow "):
                    begun, ended = (float(word) for word in line.split()[1:])
                    away = sum(max(0.0, min(e, ended) - max(b, begun)) for b, e in self.stops[int(path.stem)])
                    found.append(ended - begun - away)
        return found


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_happens(kind: str, server: PostgresServer, open_folder: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{open_folder}/trial.db" if kind == "sqlite" else server.new_schema()
    policy = small_policy(HORIZON)
    Experiment.create(url, NAME, registration_of(policy)).close()
    chaos = Chaos(url, tmp_path)
    command = [sys.executable, "-m", "tests.live.chaos_workers", url, str(tmp_path), str(WORKERS)]
    environment = {**os.environ, "BANDITTO_STORE_DEADLINE": str(DEADLINE)}
    workers = subprocess.Popen(command, cwd=Path(__file__).parents[2], env=environment)
    while not all((tmp_path / f"{slot}.log").exists() for slot in range(WORKERS)):
        assert workers.poll() is None
        time.sleep(0.1)
    auditor = start_auditor(url, 15.0) if kind == "sqlite" and ROOT else None
    chaos.run()
    before = Acknowledged.read(tmp_path).asks
    until = time.monotonic() + 60
    while Acknowledged.read(tmp_path).asks < before + 5 and time.monotonic() < until:
        time.sleep(0.2)  # they go on
    (tmp_path / "stop").touch()
    assert workers.wait(timeout=120) == 0
    seen = Acknowledged.read(tmp_path)
    assert seen.asks >= before + 5
    late = [line for line in seen.errors if line.startswith("late ")]
    assert [line for line in seen.errors if not line.startswith(("late ", "slow "))] == []
    assert late, "somebody sat on the lock, and nobody heard of it"
    assert any("holds the lock" in line for line in late)
    assert max(chaos.waits()) < MOST
    if auditor is not None:
        said, _ = auditor.communicate(timeout=120)
        assert said.startswith("looks: "), said
    (tmp_path / "clock").unlink(missing_ok=True)
    check(url, seen, policy, 7, to_the_end=True)


# -- a disk that is full ----------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 1,500 KiB, which is all in memory."""
    if not ROOT or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    made = Path(tempfile.mkdtemp(prefix="banditto-full-"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k,mode=777", "tmpfs", made], check=False)
    if mounted.returncode:
        made.rmdir()
        pytest.skip("a small disk cannot be mounted here")
    yield made
    subprocess.run(["umount", "-l", made], check=True)
    made.rmdir()


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_loses_nothing(kind: str, server: PostgresServer, small_disk: Path) -> None:
    if kind == "sqlite":
        url = f"sqlite:///{small_disk}/trial.db"
    else:
        schema = server.new_schema()
        owner = server.folder.owner()
        shutil.chown(small_disk, owner)
        space = f"small_{os.getpid()}"
        with psycopg.connect(schema, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE {space} LOCATION '{small_disk}'")
        url = f"{schema}%20-cdefault_tablespace%3D{space}"
    policy = small_policy(HORIZON)
    told: dict[str, float] = {}
    with Experiment.create(url, NAME, registration_of(policy)) as trial:
        with pytest.raises(StoreError, match="full|No space"):
            fill(trial, told)
        for _ in range(3):  # it stays so
            with pytest.raises(StoreError, match="full|No space"):
                fill(trial, told)
        with suppress(BandittoError):
            assert trial.status().events > 0  # SQLite may need room even to read
        subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
        found = verify(url, NAME)
        assert found.holds, found.problem
        rows = trial._store.read(lambda view: {row[:2]: row for row in view.all_tickets(1)})
        assert len(told) > 30
        for ticket, reward in told.items():
            assert rows[place(ticket)][5] == reward
        finish(trial)
    assert verify(url, NAME).holds
    if kind == "postgresql":
        with psycopg.connect(schema, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {schema.rpartition('%3D')[2]} CASCADE")
            connection.execute(f"DROP TABLESPACE {space}")


def fill(trial: Experiment, told: dict[str, float]) -> None:
    """Ask and tell until there is no more room; what was acknowledged is kept."""
    for turn in range(3000):
        names = [ticket.id for ticket in trial.pending(most=20)]
        for name in names or [ticket.id for ticket in trial.ask(20, f"{len(told)}/{turn}/{'x' * 150}")]:
            trial.tell(name, 0.25)
            told[name] = 0.25


# -- a log that is gone -----------------------------------------------------------------------------------------------

DYING = """
import os, signal, sys
from banditto.live.experiment import Experiment
trial = Experiment.open(sys.argv[1], "cta")
trial.tell_many([(ticket.id, 0.5) for ticket in trial.ask(8)])
print(trial.status().head, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(url: str) -> str:
    """The head that a worker was told before it died."""
    done = subprocess.run([sys.executable, "-c", DYING, url], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    return done.stdout.strip()


def test_a_write_ahead_log_that_somebody_removed_is_noticed(tmp_path: Path) -> None:
    """SQLite cannot know; the head of a receipt is no longer in the log. What is left still verifies and goes on."""
    url = f"sqlite:///{tmp_path}/trial.db"
    Experiment.create(url, NAME, registration_of(small_policy(1000))).close()
    first = Experiment.open(url, NAME)
    first.close()
    head = killed(url)
    assert (tmp_path / "trial.db-wal").stat().st_size > 0
    for ending in ("wal", "shm"):
        (tmp_path / f"trial.db-{ending}").unlink(missing_ok=True)
    found = verify(url, NAME, expect=head)
    assert not found.holds
    assert found.problem == "the head of the receipt is not in the log: it was written anew, or is of another run"
    assert verify(url, NAME).holds
    with Experiment.open(url, NAME) as trial:
        finish(trial)
    assert verify(url, NAME).holds


def test_a_server_whose_write_ahead_log_was_removed_does_not_start() -> None:
    server: Any = PostgresServer(durable=True)
    try:
        url = server.new_schema()
        Experiment.create(url, NAME, registration_of(small_policy(1000))).close()
        killed(url)
        server._control("stop", "-m", "immediate", "-w")
        for path in (server.folder / "pg_wal").iterdir():
            if path.is_file():
                path.unlink()
        with pytest.raises(subprocess.CalledProcessError):
            server._control("start", "-w", "-t", "60")
    finally:
        with suppress(subprocess.CalledProcessError):
            server.close()
        shutil.rmtree(server.folder, ignore_errors=True)
