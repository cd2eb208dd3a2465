"""The program: its verbs, its exit codes, and one place where every error is caught."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from functools import cache
from typing import Annotated, Any

import typer

from banditto.cli.exit_codes import EXIT_BUG, EXIT_CHECK, EXIT_CONFLICT, EXIT_OK, EXIT_PIPE, EXIT_USAGE
from banditto.cli.output import columns_of
from banditto.cli.program import SETTINGS, Program, program
from banditto.core.errors import BandittoError, ConflictError
from banditto.core.text import fitted
from banditto.version import __version__

app = typer.Typer(
    name="banditto",
    cls=Program,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich takes longer to load than most commands to run
    context_settings=SETTINGS,
    epilog="`banditto COMMAND --help` shows the options of a command, and an example. "
    "Exit codes: 0 ok, 2 usage, 3 a check failed or is inconclusive, 4 conflict, 130 interrupted.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"banditto {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Plan, run and check adaptive experiments that make the same decisions when a second team runs them."""


def run(given: list[str]) -> int:
    """Run the command line and hand back the exit code; no error leaves a traceback."""
    for name in ("stdout", "stderr"):  # a stream that was closed before we started swallows what is written
        if getattr(sys, name) is None:
            setattr(sys, name, io.StringIO())
        with contextlib.suppress(AttributeError, OSError):  # a terminal that cannot show a letter gets its number
            getattr(sys, name).reconfigure(errors="backslashreplace")
    try:
        with fitted(columns_of(sys.stdout)):
            code = _program()(args=_negatives(given) or ["--help"], prog_name="banditto", standalone_mode=False)
        sys.stdout.flush()
    except (BandittoError, typer.TyperException) as error:
        return _failed(error, given)
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_PIPE
    except SystemExit as stop:  # Click and Rich leave with 1 if the reader goes while they write
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        _forget_stdout()
        return EXIT_PIPE
    except OSError as error:
        _forget_stdout()
        return _failed(error, given)
    except Exception as error:
        if "BANDITTO_DEBUG" in os.environ:
            raise
        return _found_a_bug(error, given)
    if not given:
        return EXIT_USAGE  # the help says what is missing
    return code if isinstance(code, int) else EXIT_OK


def _negatives(given: list[str]) -> list[str]:
    """Let negative rewards through: a number is no option, and a blank before it says so."""
    if given[:1] not in (["tell"], ["correct"]):
        return given
    return [f" {word}" if re.fullmatch(r"-[0-9.][0-9.eE+_-]*", word) else word for word in given]


def _failed(error: Exception, given: list[str]) -> int:
    from banditto.cli.usage_errors import print_error

    with contextlib.suppress(OSError):  # stderr may be gone as well
        print_error(error, given, _verb_of(given))
    if getattr(error, "code", "") in ("log", "unfinished"):  # a log that does not verify, a selection without a winner
        return EXIT_CHECK
    return EXIT_CONFLICT if isinstance(error, ConflictError) else EXIT_USAGE


def _found_a_bug(error: Exception, given: list[str]) -> int:
    """Print one line on a bug of ours; the verb is not asked for its options, as it may be what cannot be loaded."""
    from banditto.cli.usage_errors import print_error

    kind = f"{type(error).__name__}: {error}"
    with contextlib.suppress(OSError):
        print_error(RuntimeError(f"this is a bug in banditto ({kind}); BANDITTO_DEBUG=1 shows where"), given)
    return EXIT_BUG


def _verb_of(given: list[str]) -> Any:
    """Find the command that the words begin with, with its parameters; None if they begin with no verb."""
    return _program().commands.get(given[0]) if given else None


@cache
def _program() -> Any:
    """Make the program, once; verbs are made when they are called."""
    return program(app)


def _forget_stdout() -> None:
    """Let Python's flush at exit go nowhere: its reader has gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
