"""Workers for the chaos test: they go on after an error of the store, and note how long they waited for an answer.

    python -m tests.live.chaos_workers URL FOLDER WORKERS

A worker that dies is followed by another in its slot until there is a file FOLDER/stop. FOLDER/pids has a line with
slot and process for each. Besides what `tests.live.workers` writes, a log has `slow BEGUN ENDED` for each answer that
took longer than a second, and `late TEXT` for each error. FOLDER/clock has the seconds by which their clocks are wrong.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from banditto.core.errors import StoreError
from banditto.live import store, writing
from tests.live.workers import Worker


class Timed:
    """An experiment that notes the answers that took long."""

    def __init__(self, experiment: Any, note: Any) -> None:
        self._experiment, self._note = experiment, note

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._experiment, name)

        def timed(*given: Any, **named: Any) -> Any:
            begun = time.monotonic()
            try:
                return method(*given, **named)
            finally:
                ended = time.monotonic()
                if ended - begun > 1:
                    self._note(f"slow {begun} {ended}")

        return timed


class ChaosWorker(Worker):
    """One process's life, through errors of the store."""

    def run(self) -> None:
        made: Any = Timed(self._experiment, self.acknowledged)
        self._experiment = made
        while not self._stop.exists():
            try:
                super().run()
                return
            except StoreError as error:
                self.acknowledged(f"late {error}")


def wrong_clock(folder: Path) -> Any:
    """A clock that somebody sets while it is in use."""

    def now() -> str:
        with suppress(OSError, ValueError):
            return (datetime.now(UTC) + timedelta(seconds=float((folder / "clock").read_text()))).isoformat(
                timespec="microseconds"
            )
        return datetime.now(UTC).isoformat(timespec="microseconds")

    return now


def fork(url: str, path: Path) -> int:
    """A new worker; what ends it is a line of its log."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        while True:
            try:
                worker = ChaosWorker(url, path)
                break
            except StoreError:
                time.sleep(0.2)
        try:
            worker.run()
            code = 0
        except Exception as error:
            worker.acknowledged(f"error {type(error).__name__}: {error}")
    finally:
        os._exit(code)


def main(url: str, folder: Path, workers: int) -> None:
    store.FIRST_SECONDS = 30.0
    vars(writing)["now"] = wrong_clock(folder)
    slots: dict[int, int] = {}

    def begin(slot: int) -> None:
        process = fork(url, folder / f"{slot}.log")
        slots[process] = slot
        with (folder / "pids").open("a") as file:
            file.write(f"{slot} {process}\n")

    for slot in range(workers):
        begin(slot)
    while slots:
        process, _ = os.wait()
        slot = slots.pop(process)
        if not (folder / "stop").exists():
            time.sleep(0.1)
            begin(slot)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
