"""Finished blocks on disk, so that a run can be stopped anywhere, go on later, and grow.

One JSON object a line: first what is run, then each finished block in the order of its number, each change of plan and
each look at the result. Lines are only added. A block that was kept in part is written again when more of it is kept,
and the later line counts. Every line ends in a checksum that goes on from the one before. A line without its end was
being written when the process was killed: it is dropped and its block played again. Anything else that does not fit is
refused, because nobody could say what was counted.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from banditto.core.errors import ConflictError, InvalidArgument, shown
from banditto.engine.pair_counts import Moments, PairCounts

fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # Windows
    fcntl = None

logger = logging.getLogger(__name__)

FILE_NAME = "blocks.jsonl"
FORMAT = 1
_BEGINNING = b'{"ledger":'
_SECONDS_BETWEEN_SYNCS = 1.0


class _Place(NamedTuple):
    """What is known of the file: its length, the last line's checksum, and what was counted up to there.

    It is one object, replaced at once, so that after an interrupt a line is either written and counted, or neither.
    """

    size: int = 0
    check: int = 0
    following: int = 0  # the first block that is not whole
    counts: PairCounts = PairCounts()  # of all whole blocks
    part: PairCounts | None = None  # of the block after them, if some of it was kept
    plans: tuple[int | None, ...] = ()  # pairs planned at first and, if changed since, at last; None: until settled
    looks: tuple[int, ...] = ()  # pairs at which a result was shown, without repetitions; at most two are remembered


class Ledger:
    """The finished blocks of one run, in a folder of its own; one process at a time may have it open."""

    def __init__(self, folder: Path, run: Mapping[str, Any], block_pairs: int) -> None:
        """Open or make the ledger in `folder`; `run` says what is played, in the order that errors compare it."""
        self.path = folder / FILE_NAME
        self._block_pairs = block_pairs
        self._run = json.loads(_text(dict(run) | {"block_pairs": block_pairs}))
        self._place = _Place()
        self._synced = time.monotonic()
        self._file, self._unlock = _opened(self.path)
        try:
            self._read()
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close and unlock the file; remove it if no block was finished."""
        if self.pairs == 0:
            if fcntl is None:
                self._file.close()  # Windows removes no open file, and the lock is on another one
            with suppress(OSError):  # nothing was finished: leave nothing behind
                self.path.unlink()
        else:
            os.fsync(self._file.fileno())
        self._close()

    def _close(self) -> None:
        self._file.close()
        self._unlock()

    @property
    def pairs(self) -> int:
        """The number of pairs in the finished blocks."""
        part = self._place.part
        return self._place.counts.pairs + (0 if part is None else part.pairs)

    @property
    def counts(self) -> PairCounts:
        """The counts of all finished blocks, merged in their order."""
        part = self._place.part
        return self._place.counts if part is None else self._place.counts.plus(part)

    @property
    def whole(self) -> tuple[PairCounts, int]:
        """The counts of all whole blocks together, and the number of the next block."""
        return self._place.counts, self._place.following

    def plan(self, pairs: int | None) -> None:
        """Record how many pairs are wanted in all, before any is played; None means until the result is settled."""
        plans = self._place.plans
        if not plans:
            self._write({"ledger": FORMAT, **self._run, "numpy": np.__version__, "planned": pairs}, plans=(pairs,))
        elif pairs != plans[-1]:
            self._write({"planned": pairs}, plans=self._plans_with(pairs))

    def _plans_with(self, pairs: int | None) -> tuple[int | None, ...]:
        """Return the first plan and the latest; before the first pair is played a new plan replaces the first."""
        return (*self._place.plans[:1], pairs) if self.pairs else (pairs,)

    def append(self, number: int, block: PairCounts) -> None:
        """Store a finished block; one that is stored already is left as it is."""
        counts, following = self.whole
        part = self._place.part
        if number < following or (part is not None and number == following and block.pairs <= part.pairs):
            return
        regret = block.regret
        line = {
            "block": number,
            "pairs": block.pairs,
            "mismatches": block.mismatches,
            "first_divergence": block.first_divergence,
            "first_pull": block.first_pull,
            "regret": [regret.mean, regret.squares, regret.largest],
        }
        if block.pairs == self._block_pairs:
            self._write(line, counts=counts.plus(block), following=number + 1, part=None)
        else:
            self._write(line, part=block)

    def look(self) -> None:
        """Record that somebody is shown the result of all pairs so far."""
        if self.pairs not in self._place.looks:
            self._write({"look": self.pairs}, looks=_remembered(self._place.looks, self.pairs))

    def as_planned(self) -> bool:
        """Return whether the pairs are as many as planned before the first, and no other number was ever shown."""
        planned = self._place.plans[:1]
        return self._place.plans == planned == (self.pairs,) and set(self._place.looks) <= {self.pairs}

    def _write(self, content: Mapping[str, Any], **changes: Any) -> None:
        """Append a line to the file and, once it is written, take over `changes`; the disk is synced now and then."""
        place = self._place
        text, check = _checked(content, place.check)
        line = f"{text}\n".encode("ascii")
        handle = self._file.fileno()
        os.ftruncate(handle, place.size)  # what an interrupt left behind it
        os.lseek(handle, place.size, os.SEEK_SET)
        written = 0
        while written < len(line):
            written += os.write(handle, line[written:])
        self._place = place._replace(size=place.size + len(line), check=check, **changes)
        if time.monotonic() - self._synced > _SECONDS_BETWEEN_SYNCS:
            os.fsync(handle)
            self._synced = time.monotonic()

    def _read(self) -> None:
        """Read the file from its beginning, line by line; refuse one that is damaged or belongs to another run."""
        self._file.seek(0)
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                if number == 1 and not (line.startswith(_BEGINNING) or _BEGINNING.startswith(line)):
                    raise ConflictError(f"{self.path} is not a ledger: remove the file, or choose another folder")
                logger.warning("%s: the last line was not finished; its block is played again", self.path.name)
                return
            try:
                content = json.loads(line)
                check = int(content.pop("check"), 16)
                expected, _ = _checked(content, self._place.check)
                if f"{expected}\n".encode("ascii") != line or ("ledger" in content) != (number == 1):
                    raise ValueError("the checksum does not match")
                place = self._place._replace(size=self._place.size + len(line), check=check)
                self._place = place._replace(**self._understood(content, number))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise ConflictError(
                    f"line {number} of {self.path} is damaged: remove the file, or choose another folder"
                ) from None

    def _understood(self, content: dict[str, Any], number: int) -> dict[str, Any]:
        """Return what a line changes in `_Place`; raise an error if the line does not fit."""
        if number == 1:
            self._compare(content)
            return {"plans": (content["planned"],)}
        if "planned" in content:
            return {"plans": self._plans_with(content["planned"])}
        if "look" in content:
            return {"looks": _remembered(self._place.looks, content["look"])}
        counts, following = self.whole
        if content["block"] != following:
            raise ValueError("a block is missing")
        block = _block_of(content)
        if block.pairs < self._block_pairs:
            return {"part": block}
        return {"counts": counts.plus(block), "following": following + 1, "part": None}

    def _compare(self, header: dict[str, Any]) -> None:
        """Refuse a file that was written by another run, or by a newer banditto."""
        if header["ledger"] > FORMAT:
            raise ConflictError(f"{self.path} was written by a newer banditto")
        for name, here in self._run.items():
            there = header[name]
            if there != here:
                values = [shown(value[:12] if name == "digest" else value) for value in (there, here)]
                told = f"{name.replace('_', ' ')} {values[0]} there, {values[1]} now"
                raise ConflictError(f"{self.path} belongs to another run: {told}; choose another folder")
        if header["numpy"] != np.__version__:
            logger.warning(
                "%s was begun with NumPy %s, and this is %s: rewards may be drawn differently, but all are fresh",
                *(self.path.name, header["numpy"], np.__version__),
            )


def _opened(path: Path) -> tuple[BinaryIO, Callable[[], object]]:
    """Open the file, or make it, and lock it; return it with the function that unlocks it once it is closed."""
    lock = _lock_of(path) if fcntl is None else partial(_flock, path)  # may refuse, before anything is made
    while True:
        try:
            file = os.fdopen(
                os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644), "r+b", buffering=1 << 16
            )
        except OSError as error:
            allowed = f"a folder that can be written ({error.strerror})"
            raise InvalidArgument("out", str(path.parent), allowed) from None
        try:
            unlock = lock(file)
        except BaseException:
            file.close()
            raise
        if fcntl is None:  # Windows: nobody can have removed a file that is open
            return file, unlock
        try:
            if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file, unlock
        except FileNotFoundError:
            pass
        file.close()  # its last owner has removed it while we waited
        unlock()


def _flock(path: Path, file: BinaryIO) -> Callable[[], object]:
    """Lock the file itself; closing it, or the end of the process, unlocks it. What comes back does nothing."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise _in_use(path) from None
        logger.warning("%s cannot be locked (%s): let no other process use it", path.name, error.strerror)
    return lambda: None


def _lock_of(path: Path) -> Callable[[BinaryIO], Callable[[], object]]:
    """Return a function that locks a file beside this one: on Windows a locked file cannot be read by others.

    Only a lock that the system takes back when a process dies will do: a file that merely exists stays after a crash.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # filelock warns of what is refused here
            from filelock import FileLock, SoftFileLock, Timeout
    except ImportError:
        raise InvalidArgument("out", str(path.parent), "none until filelock is installed, to lock it") from None
    if FileLock is SoftFileLock:
        raise InvalidArgument("out", str(path.parent), "none on this system, which cannot lock files")
    lock = FileLock(path.with_name(path.name + ".lock"), thread_local=False)

    def locked(file: BinaryIO) -> Callable[[], object]:
        """Lock the file beside this one, or refuse if another process has it; return the function that unlocks it."""
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise _in_use(path) from None
        except OSError as error:
            allowed = f"a folder whose files can be locked ({error.strerror})"
            raise InvalidArgument("out", str(path.parent), allowed) from None
        return lock.release

    return locked


def _in_use(path: Path) -> ConflictError:
    return ConflictError(f"{path} is in use by another process: wait for it, or choose another folder")


def _block_of(content: dict[str, Any]) -> PairCounts:
    """Return the counts of a block that a line of the file holds."""
    mean, squares, largest = content["regret"]
    return PairCounts(
        pairs=content["pairs"],
        mismatches=content["mismatches"],
        first_divergence=Counter({int(key): value for key, value in content["first_divergence"].items()}),
        first_pull=Counter({int(key): value for key, value in content["first_pull"].items()}),
        regret=Moments(count=content["pairs"], mean=mean, squares=squares, largest=largest),
    )


def _remembered(looks: tuple[int, ...], pairs: int) -> tuple[int, ...]:
    """Return the looks with one more; two different ones are enough to know, so that memory stays flat."""
    return looks if pairs in looks else (*looks, pairs)[-2:]


def _text(content: Mapping[str, Any]) -> str:
    # floats are written so that reading gives the same bits
    return json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def _checked(content: Mapping[str, Any], before: int) -> tuple[str, int]:
    """Return the text of a line with its checksum, and the checksum."""
    check = zlib.crc32(_text(content).encode("ascii"), before)
    return _text({**content, "check": f"{check:08x}"}), check
