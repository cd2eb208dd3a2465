"""Files that somebody names: read whole up to a stated size, and parsed without being led astray by their nesting.

A device such as /dev/zero never ends, a pipe that nobody writes to never begins, and a file of any size fits in no
memory. So what is read must be a regular file, or a pipe that is open already (/dev/stdin, or the shell's <(...)), and
no larger than what it is for.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import stat
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any

from banditto.core.errors import InvalidArgument

KIB, MIB, GIB = 2**10, 2**20, 2**30
MOST_PARTS = 64  # of a key, and levels of nesting
LONGEST_LINE = MIB
_OPEN_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
# a.b.c and so on: the parser's time grows with the square of their number
_LONG_KEY = re.compile(rf"""(?<![\w"'-])(?:["']?[\w-]++["']?[ \t]*\.[ \t]*){{{MOST_PARTS}}}""")


class Unreadable(ValueError):
    """Says in a few words why a file cannot be read; the caller, who knows the argument, turns it into its error."""


class NoText(Unreadable):
    """Says that a file holds bytes that are not UTF-8 text."""


def checked_path(path: object, argument: str) -> Path:
    """Return the path of a file that was given as text or as a path; anything else is refused."""
    if not isinstance(path, str | Path) or not str(path):
        raise InvalidArgument(argument, path, "the path of a file")
    return Path(path)


def opened(path: str | Path, most_bytes: int) -> IO[bytes]:
    """Open a file for reading bytes; `Unreadable` if there is no such file, or it has more than `most_bytes`."""
    pipe = str(path).startswith(_OPEN_PIPES)
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | (0 if pipe else getattr(os, "O_NONBLOCK", 0))
    try:
        handle = os.open(path, flags)  # which does not wait for somebody to write to a pipe
    except OSError as error:
        raise Unreadable(error.strerror or "it cannot be opened") from None
    except ValueError as error:  # a NUL in the name
        raise Unreadable(str(error)) from None
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise Unreadable(os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode) and not (pipe and stat.S_ISFIFO(found.st_mode)):
            raise Unreadable("not a regular file")
        if found.st_size > most_bytes:
            raise Unreadable(f"{sized(found.st_size)}, at most {sized(most_bytes)}")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_text(path: str | Path, most_bytes: int) -> str:
    """Return the whole text of a UTF-8 file; `Unreadable` if it is missing, larger than `most_bytes`, or no text."""
    with opened(path, most_bytes) as file:
        try:
            content = file.read(most_bytes + 1)
        except OSError as error:
            raise Unreadable(error.strerror or "it cannot be read") from None
    if len(content) > most_bytes:  # a pipe does not say how long it is
        raise Unreadable(f"at most {sized(most_bytes)}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoText(f"no UTF-8: {error.reason} at byte {error.start}") from None


def text_lines(path: str | Path, most_bytes: int) -> Generator[str, None, None]:
    """Yield the lines of a file, for a CSV reader; errors are those of `read_text`, and endless lines are refused.

    A caller that may stop before the last line closes the iterator (`contextlib.closing`), and with it the file.
    """
    with opened(path, most_bytes) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        read = 0
        try:
            while line := file.readline(LONGEST_LINE + 1):
                read += len(line)
                if len(line) > LONGEST_LINE or read > most_bytes:
                    long = f"a line of more than {LONGEST_LINE:,} characters"
                    raise Unreadable(long if len(line) > LONGEST_LINE else f"at most {sized(most_bytes)}")
                yield line
        except UnicodeDecodeError as error:
            raise NoText(f"no UTF-8: {error.reason}") from None
        except OSError as error:
            raise Unreadable(error.strerror or "it cannot be read") from None


def parsed_json(text: str) -> Any:
    """Return what JSON text says; ValueError in one line if it is no JSON, nested too deep, or has huge numbers."""
    try:
        return json.loads(text)
    except RecursionError:
        raise Unreadable("nested too deep") from None


def parsed_toml(text: str) -> dict[str, Any]:
    """Return what TOML text says; ValueError in one line if it is no TOML, or nested too deep."""
    if _LONG_KEY.search(text):
        raise Unreadable(f"keys of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise Unreadable("nested too deep") from None


def sized(count: int) -> str:
    """Return a size in bytes as text for people, such as `1.5 MiB`."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
