"""What several verbs are told: their common options, and what some of these stand for."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from banditto.core.errors import InvalidArgument, MissingExtra
from banditto.core.exact import real
from banditto.problems.spec import typed

if TYPE_CHECKING:
    from banditto.live.experiment import Experiment


class StandsFor:
    """Arguments of the library, beside the one of its own name, that an option or argument of a verb is told as.

    An error about one of them names the option; with `where_given`, only if the option is on the command line, and then
    even if the argument has an option of its own, which is not there.
    """

    def __init__(self, *names: str, where_given: bool = False) -> None:
        self.names = names
        self.where_given = where_given


PolicyArgument = Annotated[
    str,
    typer.Argument(metavar="POLICY", help="A name such as random-threshold:paper, or a protocol file (.toml)."),
    StandsFor("protocol"),
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
    StandsFor("means", where_given=True),
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
        help="The smallest lead that matters to early-cut and one-cut, or that others are tuned for or promised.",
    ),
]
Power = Annotated[
    str | None,
    typer.Option(
        "--power", metavar="X", help="How likely an arm that leads by --gap is found by early-cut or one-cut (0.95)."
    ),
]
Control = Annotated[
    str | None,
    typer.Option(
        "--control", metavar="ARM", help="The arm, from 0, that early-cut or one-cut keeps unless another leads."
    ),
]
RateAtMost = Annotated[
    str | None,
    typer.Option("--rate-at-most", metavar="X", help="A promise: rewards in [0, 1], and no arm's mean above this."),
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
SavedSeed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="Seed of the shared coins (default: 0, or a random one if it is saved)."),
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
    StandsFor("address"),
]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Keep finished pairs, certificate.json and protocol.toml there."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that banditto did not make, too.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", envvar="BANDITTO_QUIET", help="No progress, no warnings.")]
_IN_THE_LOG = StandsFor("arms", "means", "rewards", where_given=True)  # what is wrong with them is in the file
Log = Annotated[
    str | None,
    typer.Option("--log", metavar="FILE", help="Instead of means: logged rewards (CSV, Parquet), resampled by row."),
    _IN_THE_LOG,
]
RowLog = Annotated[
    str | None,
    typer.Option("--log", metavar="FILE", help="Logged rewards (CSV, Parquet), read row by row."),
    _IN_THE_LOG,
]
ArmColumn = Annotated[
    str | None, typer.Option("--arm-column", metavar="NAME", help="The log's column of arms (default: arm).")
]
RewardColumn = Annotated[
    str | None, typer.Option("--reward-column", metavar="NAME", help="The log's column of rewards (default: reward).")
]
RewardRange = Annotated[
    str | None,
    typer.Option("--reward-range", metavar="LO,HI", help="Rescaled from this to [0, 1] (default: 0,1)."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The experiment.")]
TicketArgument = Annotated[str, typer.Argument(metavar="TICKET", help="Its id, as `ask` gave it.")]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="sqlite:///FILE or postgresql://... \\[env var: BANDITTO_STORE]"),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the log.")]


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


def store_url(given: str | None) -> str:
    """Find the store of a live experiment: what `--store` says, or BANDITTO_STORE."""
    url = os.environ.get("BANDITTO_STORE") if given is None else given
    if not url:
        raise InvalidArgument("store", "nothing" if given is None else repr(given), "a URL such as sqlite:///trial.db")
    check_extra()
    return url


def check_store(url: str) -> None:
    """Refuse what is no store's address, or a file that is not there; nothing is opened or made."""
    check_extra()
    from banditto.live.store import Store, shown_url

    store = Store(url)
    store.close()
    if not store.exists():
        raise InvalidArgument("store", shown_url(url), "a file that exists")


def check_extra() -> None:
    """Refuse to go on without what live experiments need, and say how to install it."""
    if find_spec("sqlalchemy") is None:
        raise MissingExtra("a live experiment", "SQLAlchemy", "live")


@contextmanager
def opened(store: str | None, name: str) -> Iterator[Experiment]:
    """Open an experiment that is there, and close it."""
    url = store_url(store)
    from banditto.live.experiment import Experiment

    with Experiment.open(url, name) as experiment:
        yield experiment


def seconds_of(text: str, argument: str) -> float:
    """Read an age as it is typed, such as 90, 45m, 12h or 7d; seconds come back."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        return real(number, argument) * _UNITS[unit]
    except InvalidArgument:
        allowed = "a number of seconds, or one with s, m, h, d or w after it, such as 7d"
        raise InvalidArgument(argument, text, allowed) from None


def reason_of(text: str | None) -> str:
    """Check that a reason was given, and hand it back."""
    if text is None:
        raise InvalidArgument("reason", "nothing", "some words that will stand in the log")
    return text
