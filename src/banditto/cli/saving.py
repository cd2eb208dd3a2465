"""One file that the user names: checked before the work, written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from banditto.cli.output import write_together
from banditto.errors import InvalidArgument


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


def save(path: Path | None, content: str) -> None:
    """Write it, if there is a place."""
    if path is not None:
        try:
            write_together(path.parent, {path.name: content})
        except OSError as error:
            raise InvalidArgument("save", str(path), f"a file that can be written ({error.strerror})") from None
