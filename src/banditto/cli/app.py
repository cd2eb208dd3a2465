"""The program: its verbs, its exit codes, and one place where every error is printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from banditto.cli.certify import certify
from banditto.cli.output import EXIT_INTERRUPTED, EXIT_PIPE, EXIT_USAGE, print_error
from banditto.cli.policies import policies
from banditto.errors import BandittoError
from banditto.version import __version__

app = typer.Typer(
    name="banditto",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 2 usage, 3 a check failed or is inconclusive, 4 conflict, 130 interrupted.",
)
app.command()(certify)
app.command()(policies)


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
    """Replicable bandits: measure and prove that a second run makes the same decisions."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; no error leaves a traceback."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(args=given, prog_name="banditto", standalone_mode=False)
        sys.stdout.flush()
    except BandittoError as error:
        print_error(error, as_json="--json" in given)
        code = EXIT_USAGE
    except typer.TyperException as error:
        print_error(error, as_json="--json" in given)
        code = EXIT_USAGE
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("banditto: interrupted before anything was finished; run the same command again\n")
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # the reader has gone: say nothing, not even when Python flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_PIPE
    sys.exit(code if isinstance(code, int) else 0)
