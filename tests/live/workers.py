"""Workers for the tests: processes forked from one that has imported everything, each with a log of its own.

    python -m tests.live.workers URL FOLDER WORKERS SECONDS KILLS SEED

With KILLS = 0 the workers ask and tell for SECONDS, and longer on a busy machine: until they have asked as often as
`asks_in` says and each of them has told a reward. Otherwise one of them at a time is killed with SIGKILL at a random
moment and another takes its place, until there were KILLS. A worker writes a line to FOLDER/SLOT.log after each answer:
what is there was acknowledged. It goes on until there is a file FOLDER/stop.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from banditto.core.errors import ConflictError
from banditto.live import store
from banditto.live.experiment import Experiment
from tests.live.worlds import hashed_reward, place

NAME = "cta"


def asks_in(seconds: float) -> int:
    """So many asks that writers meet all the time, and often enough even in a moment."""
    return max(100, int(20 * seconds))


def measured(reward: float) -> dict[str, float]:
    """The metrics that are told with a reward: the same, whoever tells it."""
    return {"clicks": float(int(9 * reward)), "revenue": 100 * reward}


class Worker:
    """One process's life: go on where the one before it in the same slot was cut off."""

    def __init__(self, url: str, path: Path) -> None:
        self._stop = path.parent / "stop"
        before = path.read_bytes().decode().splitlines() if path.exists() else []
        self._request = sum(line.startswith("ask ") for line in before)  # the next one; sent again if it was lost
        self._slot = path.stem
        self._log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._experiment = Experiment.open(url, NAME)

    def acknowledged(self, line: str) -> None:
        os.write(self._log, f"{line}\n".encode())

    def run(self) -> None:
        turn = 0
        while not self._stop.exists():
            turn += 1
            request = f"{self._slot}/{self._request}"
            number = 1 + self._request % 3
            answer = self._experiment.ask(number, request)
            if answer.state == "finished":
                return
            if answer.state == "waiting":  # rewards that a worker took to its grave; others may tell them at once, too
                for waiting in self._experiment.pending(most=5):
                    self.tell(waiting.id)
                continue
            self._request += 1
            self.acknowledged(f"ask {request} " + " ".join(f"{ticket.id}={ticket.arm}" for ticket in answer))
            if turn % 7 == 3:
                again = self._experiment.ask(number, request)
                assert (again.tickets, again.repeated) == (answer.tickets, True)
            for ticket in answer:
                if turn % 11 == 5 and ticket.id.count("-") == 1:
                    self.lose(ticket.id)
                else:
                    self.tell(ticket.id)

    def lose(self, ticket: str) -> None:
        try:
            self._experiment.missing(ticket, "lost")
            self.acknowledged(f"missing {ticket}")
        except ConflictError as error:  # a worker that had nothing to do told its reward just before
            if "has the reward" not in str(error):
                raise

    def tell(self, ticket: str) -> None:
        reward = hashed_reward(*place(ticket))
        answer = self._experiment.tell(ticket, reward, measured(reward))
        self.acknowledged(f"tell {ticket} {answer}")


def fork(url: str, path: Path) -> int:
    """A new worker; errors are a line of its log."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        worker = Worker(url, path)
        try:
            worker.run()
            code = 0
        except Exception as error:
            worker.acknowledged(f"error {type(error).__name__}: {error}")
    except Exception as error:
        with path.open("a") as file:
            file.write(f"error {type(error).__name__}: {error}\n")
    finally:
        os._exit(code)


def have_met(paths: list[Path], asks: int) -> bool:
    """Whether each worker has told a reward and all together have asked so often; an error is enough as well."""
    logs = [path.read_text() if path.exists() else "" for path in paths]
    if any("error " in log for log in logs):
        return True
    return all("tell " in log for log in logs) and sum(log.count("ask ") for log in logs) > asks


def main(url: str, folder: Path, workers: int, seconds: float, kills: int, seed: int) -> None:
    store.FIRST_SECONDS = 30.0  # a new worker may come while a slow server starts
    generator = np.random.default_rng(seed)
    until = time.monotonic() + seconds
    paths = [folder / f"{slot}.log" for slot in range(workers)]
    running = [fork(url, path) for path in paths]
    for _ in range(kills):
        time.sleep(float(generator.uniform(0.0, 0.12)))
        slot = int(generator.integers(workers))
        os.kill(running[slot], signal.SIGKILL)
        os.waitpid(running[slot], 0)
        running[slot] = fork(url, paths[slot])
    if kills:
        for process in running:
            os.kill(process, signal.SIGKILL)
    else:
        while time.monotonic() < until or not have_met(paths, asks_in(seconds)):
            time.sleep(0.1)
        (folder / "stop").touch()
    for process in running:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
