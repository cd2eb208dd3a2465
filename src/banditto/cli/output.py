"""What every verb prints with: JSON, errors, warnings, progress, files."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from banditto.engine.blocks import Progress
from banditto.errors import InvalidArgument, ShortHorizonWarning

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
    else:
        message = str(error)
    if as_json:
        code = getattr(error, "code", "usage")
        fields = {"code": code, "argument": argument, "given": given, "allowed": allowed, "message": message}
        sys.stderr.write(json.dumps(fields) + "\n")
    else:
        sys.stderr.write(f"banditto: error: {message}\n")


def option_name(argument: str) -> str:
    """A library argument as it is written on the command line."""
    return "POLICY" if argument in ("policy", "protocol") else "--" + argument.replace("_", "-")


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
def output_directory(path: Path | None) -> Iterator[Path | None]:
    """The directory, made before a long job so that a bad path costs nothing; unmade if the job fails."""
    if path is None:
        yield None
        return
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
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


def write_atomically(path: Path, text: str) -> None:
    """The whole file or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
