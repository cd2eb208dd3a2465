"""What every verb prints with: JSON, errors, warnings, progress, files."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from banditto.engine.blocks import Progress
from banditto.errors import InvalidArgument, ShortHorizonWarning

_OPTIONS = ("means", "environment", "horizon", "rho", "pairs", "seed", "noise_seed", "confidence", "jobs", "out")

EXIT_OK, EXIT_USAGE, EXIT_CHECK, EXIT_CONFLICT, EXIT_INTERRUPTED, EXIT_PIPE = 0, 2, 3, 4, 130, 141


def print_json(content: dict[str, Any]) -> None:
    """One object on stdout."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def print_error(error: Exception, as_json: bool) -> None:
    """One line on stderr, or one object: code, argument, given, allowed, message."""
    argument = given = allowed = None
    if isinstance(error, InvalidArgument):
        argument, given, allowed = option_name(error.argument), error.given, error.allowed
        message = f"{argument}: got {given}, allowed: {allowed}"
    elif isinstance(error, typer.TyperException):
        message = " ".join(error.format_message().split())
        parameter = getattr(error, "param", None)
        argument = getattr(error, "option_name", None) or (parameter and parameter.opts[0])
    elif isinstance(error, OSError):
        message = f"cannot write or read {error.filename or 'the output'}: {error.strerror}"
    else:
        message = str(error)
    if not message:
        return  # the help has been printed instead
    if as_json:
        code = getattr(error, "code", "usage")
        fields = {"code": code, "argument": argument, "given": given, "allowed": allowed, "message": message}
        sys.stderr.write(json.dumps(fields) + "\n")
    else:
        sys.stderr.write(f"banditto: error: {message}\n")


def option_name(argument: str) -> str:
    """A library argument as it is written on the command line; what is inside a file keeps its name."""
    if argument in ("policy", "protocol"):
        return "POLICY"
    return "--" + argument.replace("_", "-") if argument in _OPTIONS else argument


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Warnings raised inside, as lines; the caller prints them where they belong."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ShortHorizonWarning)
        yield lines
    lines += [str(warning.message) for warning in caught]


def print_warnings(lines: list[str]) -> None:
    """Lines on stderr."""
    for line in lines:
        sys.stderr.write(f"banditto: warning: {line}\n")


@contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Progress | None]:
    """A bar with rate and estimate on a terminal's stderr; nothing elsewhere or when quiet."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None, rate="")

        def show(done: int, total: int) -> None:
            speed = bar.tasks[task].speed
            bar.update(task, completed=done, total=total, rate="" if speed is None else f"{speed:,.0f} pairs/s")

        yield show


@contextmanager
def output_directory(path: Path | None, names: Sequence[str]) -> Iterator[Path | None]:
    """The directory, made before a long job so that a bad path costs nothing; unmade if the job fails."""
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
            if (path / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{name} is a directory")
    except OSError as error:
        _remove_empty(made)
        raise InvalidArgument("out", str(path), f"a directory that can be written ({error.strerror})") from None
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


def write_together(folder: Path, contents: dict[str, str]) -> None:
    """All files whole, or none: written beside their places first, then moved into them."""
    written: dict[Path, Path] = {}
    try:
        for name, text in contents.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            written[Path(temporary)] = folder / name
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).chmod(0o644)
        for temporary_path, path in written.items():
            temporary_path.replace(path)
    finally:
        for temporary_path in written:
            temporary_path.unlink(missing_ok=True)


@contextmanager
def notices(quiet: bool) -> Iterator[None]:
    """Show what the library logs, such as what it waits for after Ctrl-C."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("banditto: %(message)s"))
    logger = logging.getLogger("banditto")
    if not quiet:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
