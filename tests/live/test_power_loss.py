"""The power goes: every step that was acknowledged is on the disk of SQLite, whatever else got there.

A file system forgets what was not synced (`tests/live/forgetful.py`). Where it cannot be mounted, tests are skipped;
under CI=true they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from banditto.live.experiment import Experiment
from banditto.live.store import Store
from banditto.live.verify import verify
from tests.live.workers import NAME
from tests.live.worlds import registration_of, small_policy

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
# Opens and closes now and then, so that checkpoints, logs that go and logs that come are among what is cut off.
WORKING = """
import sys
from banditto.live.experiment import Experiment
number = int(sys.argv[2])
while True:
    with Experiment.open(sys.argv[1], "cta") as trial:
        for _ in range(int(sys.argv[3])):
            number += 1
            answer = trial.ask(1, f"request {number}")
            for ticket in answer:
                print("ask", number, ticket.id, flush=True)
            for ticket in answer if len(answer) else trial.pending():  # of a worker before
                trial.tell(ticket.id, number / 10**6)
                print("tell", number, ticket.id, flush=True)
"""


@contextmanager
def mounted(place: Path, kept: Path) -> Iterator[None]:
    """The file system, until its power is cut or it is not needed."""
    command = [sys.executable, "-m", "tests.live.forgetful", str(place), str(kept)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while not os.path.ismount(place):
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            why = f"no file system can be mounted here: {process.communicate()[1].strip()[-200:]}"
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(why)
        time.sleep(0.02)
    try:
        yield
    finally:
        subprocess.run([shutil.which("fusermount3") or "fusermount", "-u", "-z", str(place)], check=False)
        process.communicate(timeout=60)


def cut(place: Path) -> None:
    with suppress(OSError):
        (place / ".cut").touch()


def work(url: str, first: int, turns: int, seconds: float, place: Path) -> list[str]:
    """What a worker was told before the power went."""
    command = [sys.executable, "-c", WORKING, url, str(first), str(turns)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
        assert worker.stdout is not None
        heard = [worker.stdout.readline()]  # it has begun
        time.sleep(seconds)
        cut(place)
        worker.kill()
        heard += worker.stdout.readlines()
    return [line for line in heard if line.endswith("\n")]


@pytest.mark.skipif(sys.platform != "linux", reason="needs FUSE")
@pytest.mark.parametrize("turns", [10**6, 3], ids=["one life", "opened and closed"])
def test_what_was_acknowledged_survives_every_cut(turns: int, tmp_path: Path) -> None:
    place, kept = tmp_path / "disk", tmp_path / "kept"
    place.mkdir()
    url = f"sqlite:///{place}/trial.db"
    generator = np.random.default_rng(6)
    asked: dict[str, int] = {}
    told: dict[str, float] = {}
    with mounted(place, kept):
        Experiment.create(url, NAME, registration_of(small_policy(10**6))).close()
        cut(place)
    for life in range(4):
        with mounted(place, kept):
            found = verify(url, NAME)
            assert found.holds, found.problem
            survived(url, asked, told)
            for line in work(url, 10_000 * life, turns, float(generator.uniform(0.1, 1.0)), place):
                kind, number, ticket = line.split()
                if kind == "ask":
                    asked[ticket] = int(number)
                else:
                    told[ticket] = int(number) / 10**6
    with mounted(place, kept):
        assert verify(url, NAME).holds
        survived(url, asked, told)
    assert len(told) >= 4


def survived(url: str, asked: dict[str, int], told: dict[str, float]) -> None:
    with Store(url) as store:
        rows = store.read(lambda view: {f"{NAME}.{row[0]}-{row[1] + 1}": row for row in view.all_tickets(1)})
        requests = store.read(lambda view: dict(view.all_requests(1)))
    assert asked.keys() <= rows.keys()
    assert all(rows[ticket][5] == reward for ticket, reward in told.items())
    assert {f"request {number}" for number in asked.values()} <= requests.keys()


@pytest.mark.skipif(sys.platform != "linux", reason="needs FUSE")
def test_the_file_system_does_forget(tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    place, kept = tmp_path / "disk", tmp_path / "kept"
    place.mkdir()
    lost = 0
    for _ in range(4):
        kept.unlink(missing_ok=True)
        with mounted(place, kept):
            (place / "synced").write_bytes(b"x" * 9000)
            for path in (place / "synced", place):
                handle = os.open(path, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
            (place / "not synced").write_bytes(b"x" * 9000)
            cut(place)
        with mounted(place, kept):
            assert (place / "synced").read_bytes() == b"x" * 9000
            lost += not (place / "not synced").exists() or (place / "not synced").read_bytes() != b"x" * 9000
    assert lost > 0
