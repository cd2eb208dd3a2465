"""Files that are written: into folders that are checked before the work, and whole or not at all."""

from __future__ import annotations

import errno
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from banditto.core.errors import InvalidArgument
from banditto.core.own_files import check_folder


@contextmanager
def output_directory(
    path: Path | None, names: Sequence[str], overwrite: bool = False, argument: str = "out"
) -> Iterator[Path | None]:
    """Make the directory before a long job, so that a bad path costs nothing; unmake it if the job fails."""
    if path is None:
        yield None
        return
    made: list[Path] = []
    try:
        made = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
        for name in names:
            folder = (path / name).parent
            if (path / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{name} is a directory")
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{folder.name} is a file")
    except OSError as error:
        _remove_empty(made)
        raise InvalidArgument(argument, str(path), f"a directory that can be written ({error.strerror})") from None
    check_folder(path, names, overwrite, argument)
    try:
        yield path
    except BaseException:
        _remove_empty(made)
        raise


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:  # innermost first
        if not folder.is_dir() or any(folder.iterdir()):
            return
        folder.rmdir()


def write_together(folder: Path, contents: Mapping[str, str | bytes | IO[bytes]]) -> None:
    """Write all files whole, or none: beside their places first, then moved into them."""
    written: dict[Path, Path] = {}
    made: list[Path] = []
    try:
        for name, content in contents.items():
            path = folder / name
            if not path.parent.exists():
                path.parent.mkdir()
                made.append(path.parent)
            temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}")
            with temporary.open("xb") as file:  # which follows the umask
                written[temporary] = path
                if isinstance(content, str | bytes):
                    file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
                else:
                    shutil.copyfileobj(content, file)
            if path.exists():
                temporary.chmod(path.stat().st_mode & 0o777)
        for temporary_path, path in written.items():
            temporary_path.replace(path)
    finally:
        for temporary_path in written:
            temporary_path.unlink(missing_ok=True)
        _remove_empty(made)


def remove_stale(folder: Path, names: Sequence[str]) -> None:
    """Remove files of an earlier report that this one does not have."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
