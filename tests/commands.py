"""Commands and scripts, run in this process, as Python takes a second to start; real processes for what needs one."""

from __future__ import annotations

import logging
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from unittest import mock

from banditto.cli import main


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What a program left; the names are those of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def banditto(*arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Finished:
    """Run `banditto` with these arguments in this process; return its exit code and all that it wrote.

    What worker processes write is there as well. Variables are those that commands read while they run; those that
    Python reads when it starts, signals, pipes and terminals need a real process.
    """
    variables = nullcontext() if env is None else mock.patch.dict(os.environ, env, clear=True)
    with variables, mock.patch.object(sys, "argv", ["banditto", *arguments]):
        return _finished(lambda: main(arguments), cwd)


def python(code: str, cwd: Path | None = None) -> Finished:
    """Run a script in this process, every warning an error, as `python -W error` does; return all that it wrote."""

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, "<script>", "exec"), {"__name__": "__main__"})

    with mock.patch.object(sys, "argv", ["script"]):  # a script may write to what it is given
        return _finished(run, cwd)


def interrupted(arguments: Sequence[str], shown: str) -> tuple[int, str, str]:
    """Send Ctrl-C to a command once a pattern is on its terminal; return its exit code, stdout and what was shown.

    The command gets a terminal as stderr, so that its progress says when it is in the middle of its work.
    """
    terminal, its_end = pty.openpty()
    with tempfile.TemporaryFile() as out:
        running = subprocess.Popen(
            [sys.executable, "-m", "banditto", *arguments],
            stdout=out,
            stderr=its_end,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "160"},
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # even in the background
        )
        os.close(its_end)
        seen, asked = "", False
        while part := _read(terminal):
            seen += part
            if not asked and re.search(shown, seen):
                os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all processes
                asked = True
        os.close(terminal)
        code = running.wait(timeout=600)
        assert asked, seen
        return code, _content(out), seen.replace("\r\n", "\n")


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 4096).decode("utf-8", errors="replace")
    except OSError:  # how a terminal ends
        return ""


def _finished(run: Callable[[], object], cwd: Path | None) -> Finished:
    code: object = 0
    with (
        chdir(cwd) if cwd is not None else nullcontext(),
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        with _logging_as_before(), _sent("stdout", 1, out), _sent("stderr", 2, err):
            try:
                run()
            except SystemExit as stop:
                code = stop.code
            except Exception:
                traceback.print_exc()
                code = 1
        assert isinstance(code, int)
        return Finished(returncode=code, stdout=_content(out), stderr=_content(err))


@contextmanager
def _logging_as_before() -> Iterator[None]:
    """Take back what a script does to the logging of this process, which would have ended with a process of its own.

    A handler that stayed would write to the file that stood in for stderr, in another test, when that is closed.
    """
    loggers = [logging.getLogger(name) for name in (None, "banditto", "banditto.live", "banditto.service", "uvicorn")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    try:
        yield
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate


@contextmanager
def _sent(name: str, number: int, file: IO[bytes]) -> Iterator[None]:
    """Send a stream of this process, and of the processes that it starts, to a file."""
    before = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        with os.fdopen(os.dup(number), "w", encoding="utf-8") as stream, mock.patch.object(sys, name, stream):
            yield
    finally:
        os.dup2(before, number)
        os.close(before)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


def both_or_one(ways: str, number: int) -> list[list[str]]:
    """Return the flags with which a bad command is tried: as text and as JSON, or one of them by turns."""
    both: list[list[str]] = [[], ["--json"]]
    return both if ways == "both" else [both[number % 2]]
