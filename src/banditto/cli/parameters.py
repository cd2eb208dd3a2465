"""Options that several verbs share, and lists of numbers as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from banditto.errors import InvalidArgument
from banditto.exact import parsed_integer, real

Means = Annotated[str, typer.Option("--means", metavar="X,X,...", help="Expected reward of each arm.")]
EnvironmentOption = Annotated[
    str, typer.Option("--environment", metavar="KIND", help="bernoulli, gaussian or gaussian:SIGMA.")
]
Horizon = Annotated[str | None, typer.Option("--horizon", metavar="N", help="Pulls per execution: 1e8 or 100_000_000.")]
Rho = Annotated[
    str | None, typer.Option("--rho", metavar="X", help="Largest allowed probability that two executions differ.")
]
Pairs = Annotated[str, typer.Option("--pairs", metavar="N", help="Pairs of executions to play.")]
Seed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="Seed of the shared coins (default: 0)."),
]
NoiseSeed = Annotated[
    str | None,
    typer.Option("--noise-seed", metavar="N", help="Seed of the rewards (default: derived from --seed)."),
]
Confidence = Annotated[str, typer.Option("--confidence", metavar="X", help="Level of the exact interval.")]
Jobs = Annotated[str, typer.Option("--jobs", metavar="N", envvar="BANDITTO_JOBS", help="Worker processes.")]
Out = Annotated[
    str | None, typer.Option("--out", metavar="DIR", help="Write certificate.json and protocol.toml there.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", envvar="BANDITTO_QUIET", help="No progress, no warnings.")]


def count(text: str, argument: str) -> int:
    """`1e8` or `100_000_000` as an integer; the library checks its range."""
    return parsed_integer(text, argument)


def folder(text: str | None) -> Path | None:
    """The folder of `--out`."""
    if text is None:
        return None
    if not text.strip():
        raise InvalidArgument("out", repr(text), "the name of a directory")
    return Path(text)


def numbers(text: str, argument: str) -> list[float]:
    """`0.9,0.8,0.7` as a list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InvalidArgument(argument, text, "numbers separated by commas, such as 0.9,0.8,0.7")
    return [real(part, argument, "numbers separated by commas, such as 0.9,0.8,0.7") for part in parts]
