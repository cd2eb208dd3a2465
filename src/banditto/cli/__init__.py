"""The command line: parse, call the library, print. Data to stdout, everything else to stderr."""

from banditto.cli.app import main

__all__ = ["main"]
