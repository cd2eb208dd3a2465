"""What every verb prints and writes with: JSON, errors, warnings, progress, files."""

from __future__ import annotations

import errno
import json
import logging
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from banditto.cli.own_files import check_folder, check_place
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.provenance import provenance
from banditto.engine.blocks import Progress

EXIT_OK, EXIT_BUG, EXIT_USAGE, EXIT_CHECK, EXIT_CONFLICT, EXIT_INTERRUPTED, EXIT_PIPE = 0, 1, 2, 3, 4, 130, 141
if TYPE_CHECKING:
    from banditto.cli.documents import LiveContent

LIVE_SCHEMA_VERSION: Final = 1


def print_json(content: Mapping[str, object]) -> None:
    """Print one object on stdout."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def print_steps(content: LiveContent, lines: str, as_json: bool, version: int = LIVE_SCHEMA_VERSION) -> None:
    """Print what a live experiment answered: one object, or lines for people."""
    if as_json:
        print_json({"schema_version": version, **content, **provenance()})
    else:
        sys.stdout.write(lines.rstrip("\n") + "\n")


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the warnings raised inside, as lines; the caller prints them where they belong."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ShortHorizonWarning)
        yield lines
    lines += [str(warning.message) for warning in caught]


def print_warnings(lines: list[str]) -> None:
    """Print a line on stderr for each warning."""
    for line in lines:
        sys.stderr.write(f"banditto: warning: {line}\n")


@contextmanager
def progress_bars(quiet: bool, unit: str = "pairs") -> Iterator[Callable[[str, int, int], None] | None]:
    """Draw a bar for each label on a terminal's stderr; what comes is the function that moves them, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(label: str, done: int, total: int) -> None:
            if label not in tasks:
                # what an earlier run left there is not speed
                tasks[label] = bars.add_task(escape(label[:32]), total=None, completed=done, rate="")
            speed = bars.tasks[tasks[label]].speed
            few = label.startswith("drawing") or label == "claims"  # which are not counted in pairs
            rate = "" if speed is None or few else f"{speed:,.0f} {unit}/s"
            bars.update(tasks[label], completed=done, total=total, rate=rate)

        yield show


@contextmanager
def progress_bar(label: str, quiet: bool, unit: str = "pairs") -> Iterator[Progress | None]:
    """Draw one bar; what comes is the function that moves it, or None where nobody would see it."""
    with progress_bars(quiet, unit) as show:
        yield None if show is None else lambda done, total: show(label, done, total)


@contextmanager
def output_directory(path: Path | None, names: Sequence[str], overwrite: bool = False) -> Iterator[Path | None]:
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
        raise InvalidArgument("out", str(path), f"a directory that can be written ({error.strerror})") from None
    check_folder(path, names, overwrite)
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


def place_to_save(text: str | None, overwrite: bool = False) -> Path | None:
    """Check the file of `--save` before the work: a TOML file in a folder that exists."""
    if text is None:
        return None
    if Path(text).suffix != ".toml":
        raise InvalidArgument("save", repr(text), "a file that ends in .toml")
    return check_place(Path(text), "save", overwrite)


def place_to_write(text: str, overwrite: bool = False, argument: str = "out") -> Path:
    """Check the file of `--out` before the work. It is replaced whole, which must not happen to a device or a store."""
    return check_place(Path(text), argument, overwrite)


def write_file(path: Path | None, content: str | bytes | IO[bytes], argument: str) -> None:
    """Write the file that an argument names, whole or not at all; nothing if it names none."""
    if path is None:
        return
    try:
        write_together(path.parent, {path.name: content})
    except OSError as error:
        raise InvalidArgument(argument, str(path), f"a file that can be written ({error.strerror})") from None


def remove_stale(folder: Path, names: Sequence[str]) -> None:
    """Remove files of an earlier report that this one does not have."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


@contextmanager
def spinner(label: str, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """Show what is being done on a terminal's stderr; what comes is the function that says more, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(label) as status:
        yield lambda line: status.update(f"{label}: {line}")


@contextmanager
def told_of_interrupts(what: str) -> Iterator[None]:
    """Say that Ctrl-C left nothing behind, and let it go on."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"banditto: interrupted before the {what} was finished; nothing to report\n")
        raise


@contextmanager
def notices(quiet: bool) -> Iterator[None]:
    """Show what the library logs, such as what it waits for after Ctrl-C."""
    handler = logging.NullHandler() if quiet else logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("banditto: %(message)s"))
    logger = logging.getLogger("banditto")
    logger.addHandler(handler)  # without one, Python would print warnings itself
    try:
        yield
    finally:
        logger.removeHandler(handler)
