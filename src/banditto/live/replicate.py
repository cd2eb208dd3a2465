"""`replicate`: two runs of one protocol side by side, to the first decision that differs and what caused it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import ConflictError, InvalidArgument, LogError
from banditto.core.json_types import Digest, Keywords, Natural
from banditto.core.results import Part, Result, TablePart
from banditto.core.text import short
from banditto.engine.progress import Progress
from banditto.live.checked_words import checked_name
from banditto.live.exported_log import fold_exported
from banditto.live.folded_log import Decision, FoldedLog, folded
from banditto.live.reading import Reading
from banditto.live.registration import Registration
from banditto.live.store import Store, shown_url
from banditto.policies.policy import Level, LevelContent, own_level

_RUN = "URL#NAME, such as sqlite:///trial.db#cta, or the file of an exported log"


class TossContent(TypedDict):
    """A `Toss` as plain data."""

    purpose: str
    batch: Natural
    arm: Natural
    value: float


class SideContent(TypedDict):
    """A `Side` as plain data."""

    means: dict[str, float]
    behind: dict[str, float]
    next_pulls: dict[str, Natural]


class DivergenceContent(TypedDict):
    """A `Divergence` as plain data."""

    batch: Natural
    thresholds: dict[str, Any]
    cuts: dict[str, float]
    coins: list[TossContent]
    sides: Annotated[list[SideContent], Keywords(minItems=2, maxItems=2)]


class ReplicationContent(TypedDict):
    """A `Replication` as plain data."""

    digest: Digest
    runs: Annotated[list[str], Keywords(minItems=2, maxItems=2)]
    decisions: list[Natural]
    compared: Natural
    same: bool
    divergence: DivergenceContent | None
    level: LevelContent
    winners: Annotated[
        list[str | None],
        Keywords(maxItems=2, description="at the level of winners whom each run named, null before; else empty"),
    ]


class Toss(NamedTuple):
    """A coin that a decision used; both runs saw the same."""

    purpose: str
    batch: int
    arm: int
    value: float


class Side(NamedTuple):
    """What one run saw after a batch, and what it did then."""

    means: dict[str, float]  # of the rewards that the policy compares (the batch's, or all so far), in its units
    behind: dict[str, float]  # how far each arm was behind the best
    next_pulls: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first batch after which two runs did different things.

    Attributes:
        batch: its number, from 1.
        thresholds: what the policy says of this batch, such as low and high.
        cuts: thresholds drawn from low to high by a coin of that name.
        coins: the coins that the decision used; both runs saw the same.
        sides: what each run saw: `means`, how far arms were `behind` the best, and the `next_pulls` that it decided.
    """

    batch: int
    thresholds: dict[str, Any]
    cuts: dict[str, float]
    coins: tuple[Toss, ...]
    sides: tuple[Side, Side]

    def to_dict(self) -> DivergenceContent:
        """Return plain data with the names of the attributes."""
        return {
            "batch": self.batch,
            "thresholds": self.thresholds,
            "cuts": self.cuts,
            "coins": [
                {"purpose": toss.purpose, "batch": toss.batch, "arm": toss.arm, "value": toss.value}
                for toss in self.coins
            ],
            "sides": [
                {"means": side.means, "behind": side.behind, "next_pulls": side.next_pulls} for side in self.sides
            ],
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Replication(Result):
    """Two runs of one protocol side by side: whether they made the same decisions, and where they part.

    At the level of winners whom they named is compared, and nothing else: they may stop at different looks.

    Attributes:
        digest: that of the registration, which both share.
        runs: the names of the two experiments.
        decisions: how many decisions each has taken.
        compared: how many decisions were compared: those that both have taken, up to the first that differs. At the
            level of winners 1 if both runs have one, else 0.
        divergence: the first decision that differs, and what caused it; None if there is none. At the level of winners
            it is None if both name the same.
        level: "sequence", or "winner" for a policy that promises the same winner.
        winners: at the level of winners whom each run named, None before; else empty.
    """

    digest: str
    runs: tuple[str, str]
    decisions: tuple[int, int]
    compared: int
    divergence: Divergence | None
    level: Level = "sequence"
    winners: tuple[str | None, ...] = ()

    _picture = "log_pictures:replication_figure"
    _named = ("runs", "level", "same", "compared", "decisions")

    @property
    def same(self) -> bool:
        """Whether all decisions that both have taken are the same; at the level of winners, whether both name the same.

        Where nothing can be compared yet the answer is no.
        """
        return self.divergence is None and self.compared > 0

    @property
    def verdict(self) -> str:
        """Whether the two runs agree, in a sentence."""
        if not self.compared:
            missing = "not both have a winner" if self.level == "winner" else "no batch is decided in both"
            return f"There is nothing to compare yet: {missing}."
        if self.level == "winner":
            if self.divergence is not None:
                return f"Different winners: {self.winners[0]} in run 1, {self.winners[1]} in run 2."
            return f"The same winner: {self.winners[0]}, after {self.decisions[0]} and {self.decisions[1]} looks."
        if self.divergence is not None:
            return f"The runs differ after batch {self.divergence.batch}."
        return f"The same: {self.compared} decision{'s' if self.compared > 1 else ''} of both runs."

    def _parts(self) -> list[Part]:
        parts: list[Part] = [
            self.verdict,
            TablePart(("run", "decisions"), list(zip(self.runs, self.decisions, strict=True))),
        ]
        if self.divergence is not None:
            heads = [f"{what}, run {run}" for what in ("mean", "behind", "next pulls") for run in (1, 2)]
            written: dict[type, Callable[[Any], str]] = {str: str, int: "{:,}".format, float: short}
            arms = [[written[type(value)](value) for value in row.values()][1:] for row in self.records()]
            cuts = [f"cut from coin {name}: {value:.6g}" for name, value in self.divergence.cuts.items()]
            parts += [TablePart(("arm", *heads), arms, "lrrrrrr"), *cuts]
        return [*parts, f"digest {self.digest}"]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each arm at the first decision that differs: what both runs saw, and did then."""
        if self.divergence is None:
            return []
        sides = list(enumerate(self.divergence.sides, 1))
        return [
            {"batch": self.divergence.batch, "arm": arm}
            | {f"mean_{run}": side.means[arm] for run, side in sides}
            | {f"behind_{run}": side.behind[arm] for run, side in sides}
            | {f"next_pulls_{run}": side.next_pulls.get(arm, 0) for run, side in sides}
            for arm in self.divergence.sides[0].means
        ]

    def to_dict(self) -> ReplicationContent:
        """Return plain data with the names of the attributes, and `same`."""
        return {
            "digest": self.digest,
            "runs": list(self.runs),
            "decisions": list(self.decisions),
            "compared": self.compared,
            "same": self.same,
            "divergence": None if self.divergence is None else self.divergence.to_dict(),
            "level": self.level,
            "winners": list(self.winners),
        }


@dataclass(frozen=True, slots=True)
class RecordedCoins(Coins):
    """Coins that remember which of them a decision asked for."""

    tosses: list[Toss] = field(default_factory=list, compare=False)

    def uniform(self, purpose: str, batch: int, arm: int = 0) -> FloatArray:
        """Toss as `Coins` does, and note what came."""
        values = Coins.uniform(self, purpose, batch, arm)
        self.tosses.append(Toss(purpose, int(batch), int(arm), float(values[0, 0])))
        return values


def replicate(first: str, second: str, *, progress: Callable[[str, int, int], None] | None = None) -> Replication:
    """Compare two runs of one protocol; where they first differ comes back, and what caused it.

    Args:
        first: a run as URL#NAME, such as sqlite:///trial.db#cta, or the file of a log from `export --format json`.
        second: another run of the same protocol.
        progress: called with the run, the number of its events that were read, and how many there are.

    Raises:
        InvalidArgument: a run is not there, or is neither URL#NAME nor an exported log.
        ConflictError: the runs have two protocols.
        LogError: a log does not verify.
        StoreError: a store cannot be reached, or is of another kind.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from banditto import Experiment, ExploreThenCommit
        >>> protocol = ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
        >>> with TemporaryDirectory() as folder:
        ...     url = f"sqlite:///{folder}/trial.db"
        ...     for name, successes in (("here", 5.0), ("there", 4.0)):
        ...         with Experiment.open(url, name, protocol) as trial:
        ...             told = trial.tell_totals(1, {0: (6, 1.0), 1: (6, successes)})
        ...     found = replicate(f"{url}#here", f"{url}#there")
        >>> found.same, found.compared
        (True, 1)
    """
    bars = [None if progress is None else partial(progress, f"run {number}") for number in (1, 2)]
    sides = [_read(number, address, bars[number - 1]) for number, address in enumerate((first, second), 1)]
    one, two = (side.decisions for side in sides)
    registration = sides[0].registration
    if sides[1].registration.digest != registration.digest:
        said = [",".join(side.registration.arm_names) for side in sides]
        if sides[0].registration.protocol == sides[1].registration.protocol and said[0] != said[1]:
            raise ConflictError(f"the arms have other names, or another order: {said[0]} and {said[1]}")
        digests = " and ".join(side.registration.digest[:12] for side in sides)
        raise ConflictError(f"these are runs of two protocols (digests {digests}), which say nothing about each other")
    compared = min(len(one), len(two))
    apart = next((k for k in range(compared) if _outcome(one[k]) != _outcome(two[k])), None)
    level, winners = own_level(registration.policy()), [side.standing.stage.winner for side in sides]
    if level == "winner":
        compared = 0 if None in winners else 1
        apart = apart if compared and winners[0] != winners[1] else None
    elif apart is not None:
        compared = apart + 1
    divergence = None if apart is None else explained(registration, one[: apart + 1], two[: apart + 1])
    names = registration.arm_names
    return Replication(
        digest=registration.digest,
        runs=(sides[0].name, sides[1].name),
        decisions=(len(one), len(two)),
        compared=compared,
        divergence=divergence,
        level=level,
        winners=tuple(None if arm is None else names[arm] for arm in winners) if level == "winner" else (),
    )


def _outcome(decision: Decision) -> tuple[tuple[int, ...], int | None]:
    """Return what a decision leads to: the pulls of the next batch, and the winner (None if none is named)."""
    return decision.next_pulls, decision.winner


def split_address(address: str) -> tuple[str, str]:
    """Split URL#NAME into the URL and the checked name."""
    url, mark, name = address.rpartition("#")
    if not mark or not url:
        raise InvalidArgument("run", shown_url(address), _RUN)
    return url, checked_name(name)


def _read(number: int, address: str, progress: Progress | None) -> FoldedLog:
    """Fold the whole log of one run; an error says which run it is about."""
    if not isinstance(address, str | Path):
        raise InvalidArgument("run", address, _RUN)
    address = str(address)
    try:
        if "#" not in address and "://" not in address:
            return fold_exported(Path(address), progress, "run")
        url, name = split_address(address)
        with Store(url) as store:
            return store.read(lambda view: _whole(view, name, progress))
    except LogError as error:
        raise LogError(f"run {number}: {error}") from None


def _whole(view: Reading, name: str, progress: Progress | None) -> FoldedLog:
    """Replay an experiment's log to its end inside a transaction, and return the fold."""
    row = view.find(name)
    if row is None:
        raise InvalidArgument("run", name, f"an experiment of its store: {', '.join(view.names()) or 'none'}")
    events = view.events(row["id"], progress=progress, of=row["events"])
    (_, fold) = deque(folded(events, row), maxlen=1).pop()  # an empty log is an error
    return fold


def explained(registration: Registration, one: Sequence[Decision], two: Sequence[Decision]) -> Divergence:
    """Explain the last of these decisions, the first in which two runs differ: what each saw, cuts and coins."""
    first = grounds_of(registration, one)
    return Divergence(
        batch=one[-1].batch,
        thresholds=first.thresholds,
        cuts=first.cuts,
        coins=first.coins,
        sides=(first.side, grounds_of(registration, two).side),
    )


class Grounds(NamedTuple):
    """The numbers behind one decision: thresholds, cuts, coins, and what the run saw."""

    thresholds: dict[str, Any]
    cuts: dict[str, float]
    coins: tuple[Toss, ...]
    side: Side
    so_far: bool  # whether the policy compares all rewards so far, or those of the batch alone


def grounds_of(registration: Registration, decisions: Sequence[Decision]) -> Grounds:
    """Replay these decisions, and return the numbers behind the last one."""
    policy = registration.policy()
    coins = RecordedCoins(registration.protocol.seed)
    state = policy.init(1)
    spent = 0
    for decision in decisions:
        policy.plan(state)
        coins.tosses.clear()
        spent += sum(decision.counts)
        if spent < registration.protocol.horizon:  # pulls that end the horizon decide nothing
            state = policy.decide(state, np.array([decision.totals], dtype=np.float64), coins)
    batch = decisions[-1].batch
    description = policy.describe()
    rows = description.to_dict()["batches"]
    row = rows[batch - 1] if batch <= len(rows) else {}
    so_far = "so far" in description.header
    tosses = tuple(coins.tosses)
    thresholds = {name: value for name, value in row.items() if value != ""}
    side = _side(registration, decisions if so_far else decisions[-1:])
    return Grounds(thresholds, _cuts(row, tosses), tosses, side, so_far)


# a coin, and the ends between which its cut lies, as policies name them
_CUTS = (
    ("threshold", "low", "high"),
    *(("commit", "commit low", "commit high"), ("commit", "cut low", "cut high"), ("cut", "cut low", "cut high")),
)


def _cuts(row: dict[str, Any], tosses: Sequence[Toss]) -> dict[str, float]:
    """Return the cuts that coins place between two ends of a batch's description, by the coin's purpose."""
    found = {}
    for purpose, low, high in _CUTS:
        values = [toss.value for toss in tosses if toss.purpose == purpose]
        if values and isinstance(row.get(low), int | float) and isinstance(row.get(high), int | float):
            cut = row[low] + values[0] * (row[high] - row[low])
            found[purpose] = float(f"{cut:.5g}")  # the ends are written with six digits
    return found


def _side(registration: Registration, decisions: Sequence[Decision]) -> Side:
    """Return what one run saw at the last of these decisions, and what it did next."""
    names, last = registration.arm_names, decisions[-1]
    means = {
        names[arm]: sum(seen.totals[arm] for seen in decisions) / sum(seen.counts[arm] for seen in decisions)
        for arm, count in enumerate(last.counts)
        if count
    }
    best = max(means.values())
    pulls = {names[arm]: count for arm, count in enumerate(last.next_pulls) if count}
    return Side(means, {name: best - mean for name, mean in means.items()}, pulls)
