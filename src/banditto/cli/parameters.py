"""Options that several verbs share, and lists of numbers as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from banditto.core.errors import InvalidArgument
from banditto.core.exact import parsed_integer, real

PolicyArgument = Annotated[
    str, typer.Argument(metavar="POLICY", help="A name such as random-threshold:paper, or a protocol file (.toml).")
]
Means = Annotated[str | None, typer.Option("--means", metavar="X,X,...", help="Expected reward of each arm.")]
EnvironmentOption = Annotated[
    str | None,
    typer.Option(
        "--environment",
        metavar="KIND",
        help="bernoulli (default), gaussian:SIGMA, beta:CONCENTRATION, discrete:FILE (which has its own means).",
    ),
]
ArmCount = Annotated[
    str | None,
    typer.Option("--arms", metavar="K", help="How many arms; with --dimension, actions that are spread out."),
]
KindOption = Annotated[
    str | None,
    typer.Option("--environment", metavar="KIND", help="Rewards that the policy is for: bernoulli or gaussian:SIGMA."),
]
KindDimension = Annotated[
    str | None,
    typer.Option("--dimension", metavar="D", help="Features of --arms actions or of the set; alone: the unit ball."),
]
Theta = Annotated[
    str | None,
    typer.Option("--theta", metavar="X,X,...", help="Of a linear problem: mean <theta, a>, or 1/2 + <theta, a>/2."),
]
Actions = Annotated[
    str | None,
    typer.Option("--actions", metavar="FILE", help="Its actions: a CSV file, one action a line (a header is fine)."),
]
ActionSetOption = Annotated[
    str | None,
    typer.Option("--action-set", metavar="SET", help="Instead of a file of arms: ball, box, simplex or FILE.json."),
]
Dimension = Annotated[str | None, typer.Option("--dimension", metavar="D", help="Features of ball, box or simplex.")]
Normalise = Annotated[bool, typer.Option("--normalise", help="Divide all arms by the length of the longest.")]
Gap = Annotated[
    str | None,
    typer.Option(
        "--gap",
        metavar="X",
        help="The lead that explore-then-commit is promised, or that certified-elimination is tuned for.",
    ),
]
Horizon = Annotated[str | None, typer.Option("--horizon", metavar="N", help="Pulls per execution: 1e8 or 100_000_000.")]
Rho = Annotated[
    str | None, typer.Option("--rho", metavar="X", help="Largest allowed probability that two executions differ.")
]
Pairs = Annotated[str | None, typer.Option("--pairs", metavar="N", help="Pairs of executions to play (default: 1000).")]
Seed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="Seed of the shared coins (default: 0)."),
]
NoiseSeed = Annotated[
    str | None,
    typer.Option("--noise-seed", metavar="N", help="Seed of the rewards (default: derived from --seed)."),
]
Confidence = Annotated[
    str | None, typer.Option("--confidence", metavar="X", help="Level of the exact interval (default: 0.95).")
]
Jobs = Annotated[
    str | None, typer.Option("--jobs", metavar="N", help="Worker processes (default: 1). \\[env var: BANDITTO_JOBS]")
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Instead: a Dask scheduler's, such as tcp://scheduler:8786."),
]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Keep finished pairs, certificate.json and protocol.toml there."),
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
        raise InvalidArgument(argument, repr(text), "numbers separated by commas, such as 0.9,0.8,0.7")
    return [real(part, argument, "numbers separated by commas, such as 0.9,0.8,0.7") for part in parts]


def words(text: str, argument: str) -> list[str]:
    """`ucb1,thompson` as a list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InvalidArgument(argument, repr(text), "names separated by commas, such as random-threshold,ucb1")
    return parts
