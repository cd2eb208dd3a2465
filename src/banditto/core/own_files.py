"""Which files a verb may replace: its own, told by how they begin; any other only with `--overwrite`; a store's never.

What is replaced is gone, and a mistyped name is easily somebody's notes, or the write-ahead log of a running trial,
which holds rewards that were acknowledged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from banditto.core.errors import InvalidArgument

_DATABASE = b"SQLite format 3\0"
_LOGS_OF_DATABASES = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")  # WAL, journal
_BESIDE_DATABASES = ("-wal", "-shm", "-journal")
_HEAD, _FOOT = 4096, 65_536
_TICKETS = b"ticket,batch,place,attempt,arm"
_COLUMNS = (b"ticket", b"attempt", b"arm_name", b"digest", b"head")


def check_place(path: Path, argument: str, overwrite: bool) -> Path:
    """Check that a file may be made or replaced; what comes back is where links lead.

    A device is refused, too, and a file that its owner does not want to be written.
    """
    shown = str(path)
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise InvalidArgument(argument, shown, "a file in a folder that exists")
    path = path.resolve() if path.is_symlink() or path.exists() else path  # what a link leads to, not the link
    head, _ = _ends(path, argument, shown)
    if head.startswith(_DATABASE):
        raise InvalidArgument(argument, shown, "a file that is not a database, which would be lost")
    if _is_beside_a_database(path, head):
        raise InvalidArgument(argument, shown, "a file that is no part of a database, which would be lost")
    if path.exists() and not os.access(path, os.W_OK):
        raise InvalidArgument(argument, shown, "a file that can be written (it is read-only)")
    if not overwrite and not is_own(path):
        raise InvalidArgument(argument, shown, "a new file, or one that banditto made; --overwrite replaces any other")
    return path


def check_folder(folder: Path, names: Sequence[str], overwrite: bool, argument: str = "out") -> None:
    """Check that a report may be written to a folder: it replaces an earlier one, or `--overwrite` was said.

    Tables and figures of an earlier report are known by the documents beside them.
    """
    there = [folder / name for name in names if (folder / name).is_file()]
    for path in there:
        check_place(path, argument, overwrite=True)
    own = {path for path in there if is_own(path)}
    known = any(path.suffix in (".json", ".jsonl", ".html") and path.stat().st_size for path in own)
    foreign = [path for path in there if path not in own]
    if foreign and not known and not overwrite:
        how = "--overwrite" if argument == "out" else "overwrite=True"  # on the command line, and in Python
        allowed = f"a folder without such a file, or with an earlier report; {how} replaces it"
        raise InvalidArgument(argument, str(foreign[0]), allowed)


def is_own(path: Path) -> bool:
    """Say whether there is nothing to lose: no file, an empty one, or one that banditto wrote."""
    if not path.exists():
        return True
    head, foot = _ends(path, "out", str(path))
    return not head or any(
        (
            b"\n# banditto protocol, sha256 " in b"\n" + head,
            head.lstrip().startswith(b"{") and b'"schema_version"' in head[:200],
            head.startswith(b'{"ledger":'),
            b'<meta name="generator" content="banditto">' in head,
            head.startswith(_TICKETS),
            head.startswith(b"PAR1") and all(name in foot for name in _COLUMNS),
            head.startswith(b"\x89PNG") and b"tEXtSoftware\0banditto" in head,
            b"<svg" in head and b"<dc:title>banditto</dc:title>" in head,
        )
    )


def _ends(path: Path, argument: str, shown: str) -> tuple[bytes, bytes]:
    """Read how a file begins and ends; nothing if it is not there."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(max(0, path.stat().st_size - _FOOT))
            return head, file.read(_FOOT)
    except FileNotFoundError:
        return b"", b""
    except OSError as error:
        raise InvalidArgument(argument, shown, f"a file that can be written ({error.strerror})") from None


def _is_beside_a_database(path: Path, head: bytes) -> bool:
    """Say whether a file is SQLite's, or would be taken for it: by its content, or by its name and its neighbour."""
    if head.startswith(_LOGS_OF_DATABASES):
        return True
    suffix = next((suffix for suffix in _BESIDE_DATABASES if path.name.endswith(suffix)), None)
    if suffix is None or path.name == suffix:
        return False
    database = path.with_name(path.name.removesuffix(suffix))
    return database.is_file() and _ends(database, "out", str(database))[0][: len(_DATABASE)] in (b"", _DATABASE)
