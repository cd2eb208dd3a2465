"""The command line: parse, call the library, print. Data to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit with its code; loading it may be interrupted too."""
    try:
        from banditto.cli.app import run

        code = run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
