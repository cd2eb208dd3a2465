"""PgBouncer in transaction mode before the tests' server: each transaction may get another process of the server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.live.servers import PostgresServer

PORT = 6543
SETTINGS = """
[databases]
* = host={server}
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 3
server_idle_timeout = 1
max_client_conn = 200
logfile = {folder}/log
pidfile = {folder}/pid
"""


def program() -> str:
    """Where PgBouncer is; a test that needs it is skipped without it, and fails where all must be there."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        missing = "PgBouncer is not installed (apt-get install pgbouncer)"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    assert found is not None
    return found


class Pooler:
    """PgBouncer in a folder of its own, on a socket there, as the user of the server: it refuses to be root's."""

    def __init__(self, server: PostgresServer) -> None:
        self._server, self._folder = server, Path(tempfile.mkdtemp(prefix="banditto-pool-"))
        (self._folder / "users").write_text('"postgres" ""\n')
        settings = SETTINGS.format(server=server.folder, port=PORT, folder=self._folder)
        (self._folder / "pgbouncer.ini").write_text(settings)
        owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            found = server.folder.stat()
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, found.st_uid, found.st_gid)
            owner = {"user": found.st_uid, "group": found.st_gid, "extra_groups": []}
        self._process = subprocess.Popen(
            [program(), "-q", str(self._folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL, cwd="/", **owner
        )
        until = time.monotonic() + 60
        while not (self._folder / f".s.PGSQL.{PORT}").exists():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)

    def new_store(self) -> str:
        """The URL of an empty database; PgBouncer does not take options that would name a schema."""
        name = f"d{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        return f"postgresql://postgres@/{name}?host={self._folder}&port={PORT}"

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)
        shutil.rmtree(self._folder, ignore_errors=True)
