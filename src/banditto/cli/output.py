"""What every verb prints with: JSON, errors, warnings, progress, files."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from banditto.core.errors import InvalidArgument, ShortHorizonWarning, masked
from banditto.engine.blocks import Progress

_OPTIONS = {
    *("means", "environment", "horizon", "rho", "gap", "pairs", "rounds", "policies", "seed", "noise_seed"),
    *("confidence", "jobs", "out", "accuracy", "action_set", "dimension", "pulls", "plot", "normalise"),
    *("theta", "actions", "arms", "pairs_budget", "regret", "resolve", "by", "save", "only"),
    *("log", "arm_column", "reward_column", "reward_range", "store", "name", "arm_names", "rewards"),
    *("request_id", "reason", "older_than", "format", "totals"),
}
_LIVE = {
    *("init", "ask", "tell", "missing", "correct", "status", "pending", "stop", "verify", "replicate", "export"),
}
_LIVE_OPTIONS = {"store", "arm_names", "rewards", "request_id", "reason", "older_than", "format", "out", "totals"}
_LIVE_ARGUMENTS = {
    **{"name": "NAME", "ticket": "TICKET", "reward": "REWARD", "run": "RUN", "protocol": "PROTOCOL"},
    **{"n": "-n", "expect": "--expect", "from": "--from"},
}
_ARGUMENTS = {"policy": "POLICY", "protocol": "POLICY", "study": "STUDY", "address": "--cluster"}

EXIT_OK, EXIT_BUG, EXIT_USAGE, EXIT_CHECK, EXIT_CONFLICT, EXIT_INTERRUPTED, EXIT_PIPE = 0, 1, 2, 3, 4, 130, 141


def print_json(content: dict[str, Any]) -> None:
    """One object on stdout."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def print_error(error: Exception, command: list[str]) -> None:
    """One line on stderr, or with `--json` one object: code, argument, given, allowed, message."""
    argument = given = allowed = None
    if isinstance(error, InvalidArgument):
        argument, given, allowed = option_name(error.argument, command), error.given, error.allowed
        message = f"{argument}: got {given}, allowed: {allowed}"
    elif isinstance(error, typer.TyperException):
        message = masked(" ".join(error.format_message().split()))
        parameter = getattr(error, "param", None)
        argument = getattr(error, "option_name", None) or (parameter and parameter.opts[0])
    elif isinstance(error, OSError):
        message = f"cannot write or read {error.filename or 'the output'}: {error.strerror}"
    else:
        message = str(error)
    if not message:
        return  # the help has been printed instead
    if "--json" in command:
        code = getattr(error, "code", "usage")
        fields = {"code": code, "argument": argument, "given": given, "allowed": allowed, "message": message}
        sys.stderr.write(json.dumps(fields) + "\n")
    else:
        sys.stderr.write(f"banditto: error: {message}\n")


def option_name(argument: str, command: list[str]) -> str:
    """A library argument as it is written on the command line; what is inside a file keeps its name."""
    if argument == "policy" and "compare" in command[:1]:
        argument = "policies"
    if argument in ("arms", "rewards") and any(word.partition("=")[0] == "--log" for word in command):
        return "--log"  # what is wrong is in the file
    if argument in ("actions", "arms") and "design" in command[:1]:
        return "ARMS"
    if argument == "backend":
        return "--gpu"
    if command[:1] and command[0] in _LIVE:
        return _live_name(argument, command[0])
    if argument in _ARGUMENTS:
        return _ARGUMENTS[argument]
    return "--" + argument.replace("_", "-") if argument in _OPTIONS else argument


def _live_name(argument: str, verb: str) -> str:
    if verb == "replicate" and argument in ("store", "name"):
        return "RUN"
    if verb == "init" and argument == "name":
        return "--name"
    # horizon, rho and the like are in the protocol's file: these verbs have no options for them
    dashed = "--" + argument.replace("_", "-") if argument in _LIVE_OPTIONS else argument
    return _LIVE_ARGUMENTS.get(argument, dashed)


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
def progress_bars(quiet: bool, unit: str = "pairs") -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar for each label, with rate and estimate, on a terminal's stderr; nothing elsewhere or when quiet."""
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
    """One bar."""
    with progress_bars(quiet, unit) as show:
        yield None if show is None else lambda done, total: show(label, done, total)


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
            folder = (path / name).parent
            if (path / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{name} is a directory")
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{folder.name} is a file")
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


def write_together(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """All files whole, or none: written beside their places first, then moved into them."""
    written: dict[Path, Path] = {}
    made: list[Path] = []
    try:
        for name, content in contents.items():
            path = folder / name
            if not path.parent.exists():
                path.parent.mkdir()
                made.append(path.parent)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            written[Path(temporary)] = path
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
            Path(temporary).chmod(0o644)
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


@contextmanager
def spinner(label: str, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """A line that says what is being done, on a terminal's stderr; nothing elsewhere or when quiet."""
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
