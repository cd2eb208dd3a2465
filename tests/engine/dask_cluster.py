"""A real Dask cluster of processes on this machine, for tests and benchmarks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


class LocalDask:
    """A scheduler and worker processes of one thread each, without nannies: a worker that dies stays dead."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        self.scheduler = self._started("dask_scheduler", options, environment)
        _wait_for(lambda: file.exists() and file.stat().st_size > 0, "the scheduler")
        self.address = str(json.loads(file.read_text())["address"])

    def start_worker(self, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """One more, with variables of its own; returns before it has joined."""
        options = [self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        options += ["--local-directory", str(self.folder)]
        self.workers.append(self._started("dask_worker", options, environment or {}))
        return self.workers[-1]

    @contextmanager
    def client(self) -> Iterator[Any]:
        """To look inside."""
        distributed: Any = import_module("distributed")
        client = distributed.Client(self.address, timeout=120, set_as_default=False)
        try:
            yield client
        finally:
            client.close()

    def await_workers(self, number: int) -> None:
        """Until exactly so many are there."""
        with self.client() as client:
            _wait_for(lambda: len(client.nthreads()) == number, f"{number} workers")

    def close(self) -> None:
        """Nothing is left running."""
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(timeout=600)

    def _started(self, module: str, options: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{module}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *options],
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,  # Ctrl-C at the client does not reach a real cluster either
            )


@contextmanager
def local_dask(workers: int, environment: Mapping[str, str] | None = None) -> Iterator[LocalDask]:
    """A cluster that is there for as long as it is wanted; variables are for its scheduler."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        dask = LocalDask(Path(folder), environment or {})
        try:
            for _ in range(workers):
                dask.start_worker()
            dask.await_workers(workers)
            yield dask
        finally:
            dask.close()


def _wait_for(there: Any, what: str, seconds: float = 600.0) -> None:
    until = time.monotonic() + seconds
    while not there():
        if time.monotonic() > until:
            raise TimeoutError(f"no {what} within {seconds:g} seconds")
        time.sleep(0.05)
