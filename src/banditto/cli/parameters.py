"""What several verbs are told: their common options, and what some of these stand for."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from banditto.cli.completions import ACTION_SETS, among, complete_environment, complete_policy
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real

if TYPE_CHECKING:
    from concurrent.futures import Executor


class StandsFor:
    """Arguments of the library, beside the one of its own name, that an option or argument of a verb is told as.

    An error about one of them names the option; with `where_given`, only if the option is on the command line, and then
    even if the argument has an option of its own, which is not there.
    """

    def __init__(self, *names: str, where_given: bool = False) -> None:
        self.names = names
        self.where_given = where_given


_ARMS, _POLICY, _RUN, _OUTPUT = "Arms and rewards", "Policy", "Simulation", "Output"  # sections of a help page

PolicyArgument = Annotated[
    str,
    typer.Argument(
        metavar="POLICY",
        help="A policy such as one-cut or random-threshold:paper, or a protocol file (.toml).",
        autocompletion=complete_policy,
    ),
    StandsFor("protocol"),
]
Means = Annotated[
    str | None,
    typer.Option(
        "--means", metavar="X,X,...", help="The mean reward of each arm, such as 0.6,0.5.", rich_help_panel=_ARMS
    ),
]
EnvironmentOption = Annotated[
    str | None,
    typer.Option(
        "--environment",
        metavar="KIND",
        help="How rewards are drawn: bernoulli (default), gaussian:SIGMA, beta:CONCENTRATION, or discrete:FILE, which "
        "brings its own means.",
        autocompletion=complete_environment,
        rich_help_panel=_ARMS,
    ),
]
ArmCount = Annotated[
    str | None,
    typer.Option(
        "--arms",
        metavar="K",
        help="The number of arms. With --dimension: that many actions, spread out.",
        rich_help_panel=_ARMS,
    ),
]
KindOption = Annotated[
    str | None,
    typer.Option(
        "--environment",
        metavar="KIND",
        help="The rewards that the policy expects: bernoulli (default) or gaussian:SIGMA.",
        autocompletion=among("bernoulli", "gaussian:"),
        rich_help_panel=_ARMS,
    ),
]
KindDimension = Annotated[
    str | None,
    typer.Option(
        "--dimension",
        metavar="D",
        help="The number of features of the --arms actions or of the --action-set. Alone: the unit ball.",
        rich_help_panel=_ARMS,
    ),
]
Theta = Annotated[
    str | None,
    typer.Option(
        "--theta",
        metavar="X,X,...",
        help="The parameter of a linear problem: action a has the mean <theta, a>, or 1/2 + <theta, a>/2 with 0/1 "
        "rewards.",
        rich_help_panel=_ARMS,
    ),
    StandsFor("means", where_given=True),
]
Actions = Annotated[
    str | None,
    typer.Option(
        "--actions",
        metavar="FILE",
        help="The actions of a linear problem: a CSV file with one action a line (a header is fine).",
        rich_help_panel=_ARMS,
    ),
]
ActionSetOption = Annotated[
    str | None,
    typer.Option(
        "--action-set",
        metavar="SET",
        help="Infinitely many actions instead of a file: ball, box, simplex or FILE.json.",
        autocompletion=among(*ACTION_SETS),
        rich_help_panel=_ARMS,
    ),
]
Dimension = Annotated[
    str | None,
    typer.Option(
        "--dimension", metavar="D", help="The number of features of a ball, box or simplex.", rich_help_panel=_ARMS
    ),
]
Normalise = Annotated[
    bool, typer.Option("--normalise", help="Divide all actions by the length of the longest.", rich_help_panel=_ARMS)
]
Gap = Annotated[
    str | None,
    typer.Option(
        "--gap",
        metavar="X",
        help="The smallest lead that matters. one-cut and early-cut need it; explore-then-commit trusts it.",
        rich_help_panel=_POLICY,
    ),
]
Power = Annotated[
    str | None,
    typer.Option(
        "--power",
        metavar="X",
        help="How likely one-cut or early-cut finds an arm that leads by --gap (default: 0.95).",
        rich_help_panel=_POLICY,
    ),
]
Control = Annotated[
    str | None,
    typer.Option(
        "--control",
        metavar="ARM",
        help="The arm, counted from 0, that one-cut or early-cut keeps unless another one leads.",
        rich_help_panel=_POLICY,
    ),
]
RateAtMost = Annotated[
    str | None,
    typer.Option(
        "--rate-at-most",
        metavar="X",
        help="Your promise that no arm's mean is above this, with rewards in [0, 1]. It makes experiments shorter.",
        rich_help_panel=_POLICY,
    ),
]
Horizon = Annotated[
    str | None,
    typer.Option(
        "--horizon", metavar="N", help="The number of pulls, such as 1e8 or 100_000_000.", rich_help_panel=_POLICY
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(
        "--rho",
        metavar="X",
        help="The largest probability with which two executions may differ.",
        rich_help_panel=_POLICY,
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        "--pairs", metavar="N", help="How many pairs of executions to play (default: 1000).", rich_help_panel=_RUN
    ),
]
Seed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="The seed of the shared coins (default: 0).", rich_help_panel=_RUN),
]
SavedSeed = Annotated[
    str | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="The seed of the shared coins (default: 0; a random one if a protocol is written).",
        rich_help_panel=_RUN,
    ),
]
NoiseSeed = Annotated[
    str | None,
    typer.Option(
        "--noise-seed",
        metavar="N",
        help="The seed of the rewards (default: derived from --seed).",
        rich_help_panel=_RUN,
    ),
]
Confidence = Annotated[
    str | None,
    typer.Option(
        "--confidence", metavar="X", help="The level of the exact interval (default: 0.95).", rich_help_panel=_RUN
    ),
]
Jobs = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="How many processes work at once (default: 1).  [env var: BANDITTO_JOBS]",
        rich_help_panel=_RUN,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on a Dask cluster instead: its scheduler, such as tcp://scheduler:8786.",
        rich_help_panel=_RUN,
    ),
    StandsFor("address"),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Write certificate.json and protocol.toml to this folder, and keep finished pairs there.",
        rich_help_panel=_OUTPUT,
    ),
]
Save = Annotated[
    str | None,
    typer.Option("--save", metavar="FILE", help="Write the protocol to this file (.toml).", rich_help_panel=_OUTPUT),
]
Figure = Annotated[
    str | None,
    typer.Option(
        "--figure", metavar="FILE", help="Draw a figure to this file (.svg or .png).", rich_help_panel=_OUTPUT
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace files even if banditto did not make them.", rich_help_panel=_OUTPUT),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_OUTPUT)]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", envvar="BANDITTO_QUIET", help="Show no progress and no warnings.", rich_help_panel=_OUTPUT
    ),
]
_IN_THE_LOG = StandsFor("arms", "means", "rewards", where_given=True)  # what is wrong with them is in the file
Log = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="FILE",
        help="Draw rewards from the rows of this log (CSV or Parquet), with replacement, instead of from --means.",
        rich_help_panel=_ARMS,
    ),
    _IN_THE_LOG,
]
RowLog = Annotated[
    str,
    typer.Option("--log", metavar="FILE", help="A log of arms and rewards (CSV or Parquet).", rich_help_panel=_ARMS),
    _IN_THE_LOG,
]
ArmColumn = Annotated[
    str | None,
    typer.Option(
        "--arm-column", metavar="NAME", help="The log's column of arms (default: arm).", rich_help_panel=_ARMS
    ),
]
RewardColumn = Annotated[
    str | None,
    typer.Option(
        "--reward-column", metavar="NAME", help="The log's column of rewards (default: reward).", rich_help_panel=_ARMS
    ),
]
RewardRange = Annotated[
    str | None,
    typer.Option(
        "--reward-range",
        metavar="LO,HI",
        help="The smallest and the largest reward in the log; they become 0 and 1 (default: 0,1).",
        rich_help_panel=_ARMS,
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT|LOG", help="An experiment's name, with --store; URL#NAME; or an exported log (.json)."
    ),
    StandsFor("name", "source", "run"),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the experiment.")]
TicketArgument = Annotated[str, typer.Argument(metavar="TICKET", help="The ticket's id, as `ask` gave it.")]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The database: sqlite:///FILE or postgresql://...  [required; env var: BANDITTO_STORE]",
    ),
]
OptionalStore = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="The database: sqlite:///FILE or postgresql://...  [env var: BANDITTO_STORE]"
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Some words that will stand in the log.")]


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}  # seconds


def drawn_seed() -> int:
    """Draw a seed that nobody can guess, for a protocol that real users may be assigned by; TOML has 63 bits for it."""
    return secrets.randbits(63)


def folder(text: str | None) -> Path | None:
    """Check the name of `--out`; the answer is that folder, which need not exist."""
    if text is None:
        return None
    if not text.strip():
        raise InvalidArgument("out", repr(text), "the name of a directory")
    return Path(text)


def words(text: str, argument: str) -> list[str]:
    """Read `ucb1,thompson`; the answer is a name for each part."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InvalidArgument(argument, repr(text), "names separated by commas, such as random-threshold,ucb1")
    return parts


class WorkerOptions(NamedTuple):
    """Where the work is done: `--jobs` processes of this machine, or the workers of `--cluster`."""

    jobs: int
    address: str | None

    @classmethod
    def of(cls, jobs: str | None, cluster: str | None, gpu: bool = False) -> WorkerOptions:
        """Check the flags, of which one is enough; the environment's jobs give way to any. Nothing is started."""
        if gpu and cluster is not None:
            raise InvalidArgument("cluster", cluster, "none with --gpu, which plays on this machine")
        if gpu and jobs is None:
            return cls(1, None)
        if cluster is not None:
            return cls._of_cluster(jobs, cluster)
        from banditto.problems.spec import typed

        return cls(typed("jobs", jobs if jobs is not None else os.environ.get("BANDITTO_JOBS") or "1"), None)

    @classmethod
    def _of_cluster(cls, jobs: str | None, cluster: str) -> WorkerOptions:
        from banditto.engine.dask_cluster import checked_address

        if jobs is not None:
            raise InvalidArgument("jobs", jobs, "none, because the workers of --cluster do the work")
        return cls(1, checked_address(cluster))

    @contextmanager
    def opened(self) -> Iterator[Executor | None]:
        """Open the cluster; what comes is its executor, or None where processes of this machine work."""
        if self.address is None:
            yield None
            return
        from banditto.engine.dask_cluster import cluster

        with cluster(self.address) as executor:
            yield executor


def seconds_of(text: str, argument: str) -> float:
    """Read an age as it is typed, such as 90, 45m, 12h or 7d; seconds come back."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        return real(number, argument) * _UNITS[unit]
    except InvalidArgument:
        allowed = "a number of seconds, or one with s, m, h, d or w after it, such as 7d"
        raise InvalidArgument(argument, text, allowed) from None
