"""SQLite files that this user may read and not write, of a trial that may be running.

SQLite reads such a file properly while its log and the index of the log are there: the writer made them, and both take
locks. Without them it would have to make them, which this user cannot. To tell it that nobody writes (immutable=1)
would be a lie as soon as the writer comes back, and what it then reads looks like a damaged file. So the file is copied
with its log, and the copy is used only if nothing was written to the file meanwhile.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

# The system's clock may give two writes of one moment the same time; only an older one tells of every later write.
_SETTLED = 0.05
_LOG_HEAD = 32  # bytes at the beginning of a log, with numbers that change when it is begun anew
# Of a log that cannot be used without writing: no index of it, one that must be made again, one that is going away.
_UNUSABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL}


class CopyConnection(sqlite3.Connection):
    """A connection for reading a store, or a temporary copy of it; closing it deletes the copy."""

    folder: str | None = None

    def close(self) -> None:
        """Close the connection, and delete the copy if there is one."""
        super().close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


class _Trace(NamedTuple):
    """A file's inode number, size and time of change: if any of them differs, the file was written to."""

    number: int
    size: int
    time: int


def connect_reading(path: Path, deadline: float) -> sqlite3.Connection:
    """Connect to a store that this user can only read: to the file itself if it is safe, else to a copy of it."""
    if _for_ever(path):
        return _connected(path, "immutable=1")
    until = time.monotonic() + deadline
    while True:
        made = _live(path) or _copied(path)
        if made is not None:
            return made
        if time.monotonic() > until:
            error = sqlite3.OperationalError(f"the file is being written all the time, for {deadline:.0f} s")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        time.sleep(_SETTLED)


def _for_ever(path: Path) -> bool:
    """Say whether a file is on a read-only file system and has no unfinished log, so that it can be read in place."""
    flag = getattr(os, "ST_RDONLY", 0)
    if not flag or not os.statvfs(path).f_flag & flag:
        return False
    log = _trace_of(beside(path, "wal"))
    return (log is None or not log.size) and not beside(path, "journal").exists()


def beside(path: Path, ending: str) -> Path:
    """Name a file that SQLite has beside a database: its `wal`, `shm` or `journal`."""
    return path.with_name(f"{path.name}-{ending}")


def _connected(path: Path, mode: str) -> CopyConnection:
    address = f"{path.resolve().as_uri()}?{mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, factory=CopyConnection)


def _live(path: Path) -> CopyConnection | None:
    """Connect to a store that is in use, through the files of its writer; return None if they are not usable.

    Where this user may write to the folder, SQLite would make a log that the writer could not write to.
    """
    if os.access(path.parent, os.W_OK) or not (beside(path, "wal").exists() and beside(path, "shm").exists()):
        return None
    made = _connected(path, "mode=ro")
    try:
        made.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        made.close()
        if error.sqlite_errorcode & 0xFF in _UNUSABLE:
            return None
        raise
    except sqlite3.DatabaseError:
        made.close()
        raise
    return made


def _copied(path: Path) -> CopyConnection | None:
    """Copy a store with its write-ahead log, and connect to the copy; return None if it changed meanwhile."""
    before = _traces(path)
    if before is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="banditto-audit-"))  # which nobody else can enter
    try:
        for source in (path, beside(path, "wal"), beside(path, "journal")):
            if source.exists():
                shutil.copyfile(source, folder / source.name)
        if _traces(path) != before:
            raise _Changed
        copy = folder / path.name
        whole = sqlite3.connect(copy, isolation_level=None)
        try:
            whole.execute("PRAGMA journal_mode=DELETE").fetchone()  # what is in the log goes into the file
        except sqlite3.DatabaseError:  # a damaged file is opened as it is, and says so when it is read
            pass
        finally:
            whole.close()
        made = _connected(copy, "mode=ro")
    except (_Changed, FileNotFoundError):  # a log goes when its writer does
        shutil.rmtree(folder, ignore_errors=True)
        if not path.exists():
            raise
        return None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    made.folder = str(folder)
    return made


class _Changed(Exception):
    """Raised when the file was written to while it was being copied."""


def _traces(path: Path) -> tuple[_Trace, _Trace | None, tuple[int, bytes] | None] | None:
    """Return what would differ after any write to a store; None if it was written to a moment ago.

    A log may grow meanwhile: what was added to it is a whole step or is left out. It must not be begun anew.
    """
    file = _trace(path)
    if abs(time.time() - file.time / 1e9) < _SETTLED:
        return None
    log = beside(path, "wal")
    try:
        with log.open("rb") as open_log:
            head: tuple[int, bytes] | None = (os.fstat(open_log.fileno()).st_ino, open_log.read(_LOG_HEAD))
    except FileNotFoundError:
        head = None
    return file, _trace_of(beside(path, "journal")), head


def _trace_of(path: Path) -> _Trace | None:
    """Return the trace of a file that its writer may delete at any moment; None if it is not there.

    To ask first whether it is there would be a race with that writer.
    """
    try:
        return _trace(path)
    except FileNotFoundError:
        return None


def _trace(path: Path) -> _Trace:
    found = path.stat()
    return _Trace(found.st_ino, found.st_size, found.st_mtime_ns)
