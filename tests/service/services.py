"""Real services for the tests: in a thread of this process, or in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import uvicorn

from banditto.live.store import Store
from banditto.service.application import make_application
from banditto.service.patient_protocol import PatientProtocol
from banditto.service.service_settings import ServiceSettings
from banditto.service.tokens import create_token
from tests.commands import Finished, banditto

ROOT = Path(__file__).parents[2]


def new_token(url: str, *scopes: str, experiment: str | None = None, life: float | None = None) -> str:
    """The text of a new token; an admin's if no scope is named."""
    with Store(url) as store:
        return create_token(store, scopes or ("admin",), experiment=experiment, life=life)[0]


class ThreadedServer(uvicorn.Server):
    """A server that leaves the signals of this process alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def service_in_thread(url: str, **settings: Any) -> Iterator[str]:
    """The address of a service on a store, with a real socket, in a thread of this process."""
    with served(make_application(ServiceSettings(store=url, **settings))[0]) as address:
        yield address


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address of an application that is served in a thread of this process."""
    config = uvicorn.Config(
        app,
        port=0,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
    )
    server = ThreadedServer(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.002)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def serve_in_vain(*words: str) -> Finished:
    """`banditto serve`, in this process, with words that it should refuse: it would fail if it began to serve."""
    with mock.patch("uvicorn.Config", side_effect=AssertionError("it would have served")):
        return banditto("serve", *words)


class ServiceProcess:
    """`banditto serve` as a user starts it."""

    def __init__(
        self, url: str, *words: str, log: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        command = [sys.executable, "-m", "banditto", "serve", "--json", "--port", "0", *words]
        self.log = subprocess.DEVNULL if log is None else log.open("wb")
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=ROOT,
            env={**os.environ, "BANDITTO_STORE": url, **(environment or {})},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        lines = b""
        while not lines.rstrip().endswith(b"\n}") and (line := self.process.stdout.readline()):
            lines += line
        assert lines, "it did not start"
        self.address: str = json.loads(lines)["address"]

    def wait_until_ready(self, verify: Any = True) -> None:
        """Wait until the first worker answers."""
        for _ in range(600):
            try:
                if httpx.get(f"{self.address}/readyz", verify=verify, timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            assert self.process.poll() is None, "it has ended"
            time.sleep(0.05)
        raise AssertionError("it does not answer")

    def workers(self) -> list[int]:
        """The process ids of the workers."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                words = path.read_text().rpartition(")")[2].split()
                command = (path.parent / "cmdline").read_bytes()
            except OSError:
                continue
            if int(words[1]) == self.process.pid and b"spawn_main" in command:
                found.append(int(path.parent.name))
        return found

    def stop(self) -> int:
        """End it as a system does; its exit code comes back."""
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        if not isinstance(self.log, int):
            self.log.close()
        return code


@contextmanager
def service_process(url: str, *words: str, **more: Any) -> Iterator[ServiceProcess]:
    """`banditto serve`, ready, and ended afterwards."""
    made = ServiceProcess(url, *words, **more)
    try:
        made.wait_until_ready()
        yield made
    finally:
        made.stop()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def post(address: str, token: str, path: str, body: object) -> httpx.Response:
    return httpx.post(f"{address}/v1/experiments/{path}", json=body, headers=bearer(token), timeout=60)
