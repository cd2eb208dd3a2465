"""One file that the user names: checked before the work, written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from banditto.cli.output import write_together
from banditto.core.errors import InvalidArgument

_DATABASE = b"SQLite format 3\0"  # how such a file begins


def place_to_save(text: str | None) -> Path | None:
    """The file of `--save`, in a folder that exists; a protocol is TOML."""
    if text is None:
        return None
    path = Path(text)
    if path.suffix != ".toml":
        raise InvalidArgument("save", repr(text), "a file that ends in .toml")
    if not path.parent.is_dir() or path.is_dir():
        raise InvalidArgument("save", text, "a file in a folder that exists")
    return path


def place_to_write(text: str) -> Path:
    """The file of `--out`. It is replaced whole, which must not happen to a device or to a store of experiments."""
    path = Path(text)
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise InvalidArgument("out", text, "a file in a folder that exists")
    if path.exists():
        path = path.resolve()  # what a link leads to, not the link
        try:
            with path.open("rb") as file:
                database = file.read(len(_DATABASE)) == _DATABASE
        except OSError as error:
            raise InvalidArgument("out", text, f"a file that can be written ({error.strerror})") from None
        if database:
            raise InvalidArgument("out", text, "a file that is not a database, which would be lost")
    return path


def write(path: Path, content: str | bytes) -> None:
    """Write the file of `--out`, whole or not at all."""
    try:
        write_together(path.parent, {path.name: content})
    except OSError as error:
        raise InvalidArgument("out", str(path), f"a file that can be written ({error.strerror})") from None


def save(path: Path | None, content: str) -> None:
    """Write it, if there is a place."""
    if path is not None:
        try:
            write_together(path.parent, {path.name: content})
        except OSError as error:
            raise InvalidArgument("save", str(path), f"a file that can be written ({error.strerror})") from None
