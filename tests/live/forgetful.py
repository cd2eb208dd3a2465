"""A file system that forgets what was not synced when the power goes (FUSE, in memory).

    python -m tests.live.forgetful MOUNTPOINT FILE

It begins with what FILE holds, if that is there. A file FOLDER/.cut that somebody makes cuts the power: from then on
nothing works, and FILE has what a disk would have: of each file what was there at its last fsync, of the folder the
names that it had at its last fsync, and of everything written since a random part, page by page, or nothing.
"""

from __future__ import annotations

import errno
import os
import pickle
import random
import stat
import sys
import time
from pathlib import Path
from typing import Any

from mfusepy import FUSE, FuseOSError, Operations

PAGE = 512  # what a disk writes whole


class File:
    """Bytes as programs see them, and as they are on disk."""

    def __init__(self, content: bytes = b"") -> None:
        self.now, self.kept = bytearray(content), bytes(content)
        self.time = time.time_ns()

    def survived(self, chance: random.Random, share: float) -> bytes:
        """What is found after the power came back, if a share of the pages that were not synced got to the disk."""
        if not share:
            return self.kept
        size = chance.choice([len(self.kept), len(self.now)])
        found = bytearray(self.kept[:size].ljust(size, b"\0"))
        for first in range(0, size, PAGE):
            page = bytes(self.now[first : first + PAGE])
            if chance.random() < share and page:
                found[first : first + len(page)] = page
        return bytes(found[:size])


class Forgetful:
    """One folder of files; `Operations` of the library answers what is not here."""

    use_ns = True

    def __init__(self, kept: Path) -> None:
        found: dict[str, bytes] = pickle.loads(kept.read_bytes()) if kept.exists() else {}
        self.files = {name: File(content) for name, content in found.items()}
        self.named = dict(self.files)  # the folder as it is on disk
        self.open_files: dict[int, File] = {}
        self.kept, self.dead, self.last = kept, False, 0

    def cut(self) -> None:
        """Cut the power; a third of the time nothing survives but what was synced."""
        chance = random.Random(os.urandom(8))
        share = chance.choice([0.0, 0.5, 0.9])
        names = self.named if not share or chance.random() < 0.5 else self.files
        found = {name: file.survived(chance, share) for name, file in names.items()}
        self.dead = True
        self.kept.write_bytes(pickle.dumps(found))

    def _alive(self) -> None:
        if self.dead:
            raise FuseOSError(errno.EIO)

    def _file(self, path: str) -> File:
        self._alive()
        if path[1:] not in self.files:
            raise FuseOSError(errno.ENOENT)
        return self.files[path[1:]]

    def _opened(self, file: File) -> int:
        self.last += 1
        self.open_files[self.last] = file
        return self.last

    def _handled(self, number: int) -> File:
        self._alive()
        return self.open_files[number]

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2, **owner}
        file = self._file(path)
        times = dict.fromkeys(("st_mtime", "st_ctime", "st_atime"), file.time)
        return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": len(file.now), **times, **owner}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *self.files]

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self._alive()
        if path == "/.cut":
            self.cut()
            raise FuseOSError(errno.EIO)
        self.files[path[1:]] = File()
        return self._opened(self.files[path[1:]])

    def open(self, path: str, flags: int) -> int:
        return self._opened(self._file(path))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._handled(fh).now[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        file = self._handled(fh)
        if len(file.now) < offset:
            file.now.extend(b"\0" * (offset - len(file.now)))
        file.now[offset : offset + len(data)] = data
        file.time = time.time_ns()
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        file = self._handled(fh) if fh is not None and fh in self.open_files else self._file(path)
        file.now[length:] = b""
        file.now.extend(b"\0" * (length - len(file.now)))
        file.time = time.time_ns()
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        file = self._handled(fh)
        file.kept = bytes(file.now)
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        self._alive()
        self.named = dict(self.files)
        return 0

    def opendir(self, path: str) -> int:
        return 0

    def unlink(self, path: str) -> int:
        self._file(path)
        del self.files[path[1:]]
        return 0

    def rename(self, old: str, new: str, flags: int = 0) -> int:
        self.files[new[1:]] = self._file(old)
        del self.files[old[1:]]
        return 0

    def release(self, path: str, fh: int) -> int:
        self.open_files.pop(fh, None)
        return 0

    def chmod(self, path: str, mode: int) -> int:
        self._file(path)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        self._file(path)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        self._file(path)
        return 0


if __name__ == "__main__":
    mounted = type("Mounted", (Forgetful, Operations), {})(Path(sys.argv[2]))
    # one request at a time: what is synced must be what was written before
    FUSE(mounted, sys.argv[1], foreground=True, nothreads=True)
