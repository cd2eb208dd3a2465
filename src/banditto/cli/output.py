"""What every verb prints and writes with: JSON, errors, warnings, progress, files."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TextIO

from banditto.cli.exit_codes import EXIT_CHECK as EXIT_CHECK
from banditto.cli.exit_codes import EXIT_INTERRUPTED as EXIT_INTERRUPTED
from banditto.cli.exit_codes import EXIT_OK as EXIT_OK
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.output_files import output_directory as output_directory
from banditto.core.output_files import remove_stale as remove_stale
from banditto.core.output_files import write_together as write_together
from banditto.core.own_files import check_place
from banditto.core.text import filled

if TYPE_CHECKING:
    from banditto.cli.documents import LiveContent
    from banditto.engine.progress import Progress

LIVE_SCHEMA_VERSION: Final = 1


def print_json(content: Mapping[str, object]) -> None:
    """Print one object on stdout."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def columns_of(stream: TextIO) -> int | None:
    """Return how wide a terminal is, by COLUMNS if that is set; None for a pipe or a file, which get whole rows."""
    if not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) else os.get_terminal_size(stream.fileno()).columns or 80


def print_text(text: str) -> None:
    """Print tables and sentences on stdout, in lines that fit the terminal."""
    sys.stdout.write(filled(text.rstrip("\n")) + "\n")


def print_steps(content: LiveContent, lines: str, as_json: bool, version: int = LIVE_SCHEMA_VERSION) -> None:
    """Print what a live experiment answered: one object, or lines for people."""
    if as_json:
        from banditto.core.provenance import provenance

        print_json({"schema_version": version, **content, **provenance()})
    else:
        print_text(lines)


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
            rate = "" if speed is None or few else f"{speed:{',.0f' if speed >= 10.0 else '.2g'}} {unit}/s"
            bars.update(tasks[label], completed=done, total=total, rate=rate)

        yield show


@contextmanager
def progress_bar(label: str, quiet: bool, unit: str = "pairs") -> Iterator[Progress | None]:
    """Draw one bar; what comes is the function that moves it, or None where nobody would see it."""
    with progress_bars(quiet, unit) as show:
        yield None if show is None else lambda done, total: show(label, done, total)


def place_to_save(text: str | None, overwrite: bool = False) -> Path | None:
    """Check the file of `--save` before the work: a TOML file in a folder that exists."""
    if text is None:
        return None
    if Path(text).suffix != ".toml":
        raise InvalidArgument("save", repr(text), "a file that ends in .toml")
    return check_place(Path(text), "save", overwrite)


def place_to_write(text: str, overwrite: bool = False, argument: str = "save") -> Path:
    """Check the file that an option names before the work: it is replaced whole, and must be no device and no store."""
    return check_place(Path(text), argument, overwrite)


def write_file(path: Path | None, content: str | bytes | IO[bytes], argument: str) -> None:
    """Write the file that an argument names, whole or not at all; nothing if it names none."""
    if path is None:
        return
    try:
        write_together(path.parent, {path.name: content})
    except OSError as error:
        raise InvalidArgument(argument, str(path), f"a file that can be written ({error.strerror})") from None


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
