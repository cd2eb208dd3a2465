"""One execution on the rows of a log, each read once and in order, until the horizon or until an arm has none left.

Nothing is drawn: the policy's own plans and decisions meet the rewards as they were logged. Where a batch asks an arm
for more rows than it has left, what the policy would have done next is unknown, and the run is cut off there. The last
batch decides nothing, so that it needs no rows: a policy may be followed to its horizon by far fewer of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.errors import InvalidArgument
from banditto.core.json_types import Digest, Horizon, Keywords, Natural, Positive
from banditto.core.results import Part, Result, TablePart
from banditto.core.rewards import Rewards
from banditto.core.text import short
from banditto.core.trajectory import SEQUENCE, merged_runs, start_digest, varints
from banditto.engine.batched import BatchedPlayer
from banditto.engine.choosing import chosen_by
from banditto.engine.observations import Observations, SeenBatch
from banditto.engine.player import Run, player_of, run_of
from banditto.measure.log_rows import LogRows, RanDry
from banditto.policies.policy import AnyPolicy, Level, LevelContent, own_horizon, own_level
from banditto.problems.reward_log import LogContent, RewardLog

if TYPE_CHECKING:
    from banditto.engine.rounds import RoundByRound


class Dry(NamedTuple):
    """An arm that had too few rows: in which batch or round, what was asked for and what was left."""

    arm: str
    place: int
    asked: int
    left: int


class Stretch(NamedTuple):
    """One batch: pulls that were decided, and rows that were read, of each arm."""

    pulls: tuple[int, ...]
    read: tuple[int, ...]


class Parting(NamedTuple):
    """How many pulls both replays decided, and the number, from 1, of the first that differs; None if none does.

    At the level of winners: 1 if both name a winner and 0 if not, and 1 again if the two winners differ.
    """

    compared: int
    parted: int | None


_PerArm = Annotated[list[Natural], Keywords(minItems=2)]


class DryContent(TypedDict):
    """A `Dry` as plain data."""

    arm: str
    place: Positive
    asked: Positive
    left: Natural


class StretchContent(TypedDict):
    """A `Stretch` as plain data."""

    pulls: _PerArm
    read: _PerArm


class ReplayedContent(TypedDict):
    """A `Replay` as plain data."""

    policy: str
    level: LevelContent
    log: LogContent
    horizon: Horizon
    seed: Natural
    finished: Annotated[bool, Keywords(description="whether every pull up to the horizon was decided")]
    decided: Positive
    winner: Annotated[
        str | None, Keywords(description="the arm that is named; null at the level of sequences, and where none is")
    ]
    pulls: _PerArm
    read: _PerArm
    averages: Annotated[
        list[float | None], Keywords(minItems=2, description="of the rows that were read, as they were logged")
    ]
    unit: Literal["batch", "round"]
    batches: list[StretchContent]
    dry: Annotated[list[DryContent], Keywords(description="arms that had too few rows, where the run was cut off")]
    digest: Digest


@dataclass(frozen=True, kw_only=True, repr=False)
class Replay(Result):
    """One execution on the rows of a log, up to the horizon or to where an arm had too few rows; `replay` makes it.

    Attributes:
        policy: the policy that decided.
        log: the rows.
        horizon: pulls in the whole execution.
        seed: the seed of the coins.
        pulls: pulls that were decided, of each arm.
        read: rows that were read, of each arm: fewer where the last batch, or a cut, left some pulls without one.
        averages: of the rows that were read, as they were logged; None for an arm without any.
        runs: the sequence of decided pulls, as pairs of an arm and how often in a row.
        unit: "batch" or "round".
        batches: `pulls` and rows `read` of each batch; empty for a policy that works round by round.
        dry: arms that had too few rows where the run was cut off; empty if it was not.

    Examples:
        >>> from banditto import ExploreThenCommit, RewardLog, replay
        >>> log = RewardLog.of([("old", 0), ("new", 1)] * 20)
        >>> found = replay(ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5), log)
        >>> found.finished, found.pulls, found.averages
        (True, (6, 9994), (0.0, 1.0))
    """

    policy: AnyPolicy
    log: RewardLog = field(repr=False)
    horizon: int
    seed: int
    pulls: tuple[int, ...]
    read: tuple[int, ...]
    averages: tuple[float | None, ...]
    runs: tuple[tuple[int, int], ...] = field(repr=False)
    unit: Literal["batch", "round"]
    batches: tuple[Stretch, ...] = field(repr=False)
    dry: tuple[Dry, ...]

    _picture = "log_pictures:replay_figure"
    _named = ("horizon", "seed", "pulls", "averages", "finished", "winner")

    @property
    def finished(self) -> bool:
        """Whether every pull up to the horizon was decided."""
        return not self.dry

    @property
    def level(self) -> Level:
        """What labs are compared by: "sequence", every pull, or "winner", the arm that is named."""
        return own_level(self.policy)

    @property
    def winner(self) -> str | None:
        """The arm that the policy names, at the level of winners; None where it named none, and for other policies."""
        if self.level != "winner" or not self.finished:
            return None
        return self.log.arms[self.runs[-1][0]]

    @property
    def decided(self) -> int:
        """How many pulls were decided by rewards in the log."""
        return sum(self.pulls)

    @property
    def digest(self) -> str:
        """The sha256 of the sequence of decided pulls, in hexadecimal."""
        hasher = start_digest(SEQUENCE)
        for run in self.runs:
            hasher.update(varints(run))
        return hasher.hexdigest()

    def against(self, other: Replay) -> Parting:
        """Compare with another replay of the same policy; how far both go comes back, and the first pull that differs.

        Args:
            other: a replay with the same policy, horizon, seed and arms, on the rows of another log.
        """
        mine = (self.policy, self.horizon, self.seed, self.log.arms)
        if not isinstance(other, Replay) or (other.policy, other.horizon, other.seed, other.log.arms) != mine:
            raise InvalidArgument("other", "another experiment", "a replay of the same policy, horizon, seed and arms")
        if self.level == "winner":
            both = self.winner is not None and other.winner is not None
            return Parting(int(both), 1 if both and self.winner != other.winner else None)
        compared = min(self.decided, other.decided)
        common = 0
        for (arm, pulls), (their_arm, their_pulls) in zip(self.runs, other.runs, strict=False):
            common += min(pulls, their_pulls) if arm == their_arm else 0
            if arm != their_arm or pulls != their_pulls:
                break
        return Parting(compared, common + 1 if common < compared else None)

    def observations(self) -> Observations:
        """Return what was read batch by batch, as `analyse` wants it."""
        return replay_observations(self)

    def told(self) -> str:
        """Say how the replay ended, in a sentence or two."""
        if not self.finished:
            asked = "; ".join(f"{dry.arm} is asked for {dry.asked:,} and has {dry.left:,} left" for dry in self.dry)
            where = f"{self.unit} {self.dry[0].place:,}"
            return (
                f"The log ran dry in {where}: {asked}. Cut off there, with {self.decided:,} of {self.horizon:,} pulls "
                "decided."
            )
        if self.level == "winner":
            pulls = sum(sum(batch.pulls) for batch in self.batches[:-1])
            return f"The winner is {self.winner}, after {pulls:,} pulls; `analyse` says whether by its lead."
        line = f"All {self.horizon:,} pulls are decided."
        unread = self.decided - sum(self.read)
        return f"{line} The log has no rows for the last {unread:,}, which decide nothing." if unread else line

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        pulls = self.pulls
        if self.winner is not None:  # the rest of the horizon, which is the winner's, is no experiment
            pulls = tuple(sum(numbers) for numbers in zip(*(batch.pulls for batch in self.batches[:-1]), strict=True))
        columns = zip(self.log.arms, pulls, self.read, self.log.rewards, self.averages, strict=True)
        return [
            (arm, f"{pulls:,}", f"{read:,}", f"{len(rewards):,}", "-" if average is None else short(average))
            for arm, pulls, read, rewards, average in columns
        ]

    def _parts(self) -> list[Part]:
        return [TablePart(HEADER, self._rows(), "lrrrr"), self.told()]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each arm: pulls that were decided, rows that were read, rows there are, their average."""
        rows = [len(rewards) for rewards in self.log.rewards]
        columns = zip(self.log.arms, self.pulls, self.read, rows, self.averages, strict=True)
        return [dict(zip(("arm", "pulls", "read", "rows", "average"), row, strict=True)) for row in columns]

    def to_dict(self) -> ReplayedContent:
        """Return plain data; `runs`, the sequence of all pulls, is there by its digest."""
        return {
            "policy": self.policy.name,
            "level": self.level,
            "log": self.log.to_dict(),
            "horizon": self.horizon,
            "seed": self.seed,
            "finished": self.finished,
            "decided": self.decided,
            "winner": self.winner,
            "pulls": list(self.pulls),
            "read": list(self.read),
            "averages": list(self.averages),
            "unit": self.unit,
            "batches": [{"pulls": list(batch.pulls), "read": list(batch.read)} for batch in self.batches],
            "dry": [{"arm": dry.arm, "place": dry.place, "asked": dry.asked, "left": dry.left} for dry in self.dry],
            "digest": self.digest,
        }


HEADER = ("arm", "pulls decided", "rows read", "rows", "average")
_ROWS_AT_ONCE = 16_384


def replay(policy: AnyPolicy, log: RewardLog, *, seed: int = 0, horizon: int | None = None) -> Replay:
    """Play one execution of a policy on the rows of a log; what it decided comes back, as far as the rows reach.

    Its coins are those that pair 0 of `certify` has at this seed. Each row is read once and in order.

    Args:
        policy: what decides: a replicable policy, a baseline, or one of your own.
        log: rewards that were logged, for the same number of arms.
        seed: the seed of the coins.
        horizon: pulls in the execution, for a policy that has no horizon of its own; the number of rows by default.

    Examples:
        >>> from banditto import ExploreThenCommit, RewardLog
        >>> log = RewardLog.of([("old", 0), ("new", 1), ("old", 1), ("new", 1)])
        >>> found = replay(ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5), log)
        >>> found.finished, found.dry[0].arm, found.dry[0].asked, found.dry[0].left
        (False, 'old', 6, 2)
    """
    if not isinstance(log, RewardLog):
        raise InvalidArgument("log", log, "a RewardLog, such as RewardLog.read('rewards.csv')")
    rows = LogRows(log)
    if horizon is None and own_horizon(policy) is None:
        horizon = log.rows
    player = player_of(run_of(policy, rows, seed=seed, noise_seed=0, horizon=horizon))
    if isinstance(player, BatchedPlayer):
        return _by_batches(player, rows)
    from banditto.engine.rounds import RoundByRound  # compiled code is loaded only where it is used

    assert isinstance(player, RoundByRound)  # a log has finitely many arms
    return _by_rounds(player, rows)


def _by_batches(player: BatchedPlayer, rows: LogRows) -> Replay:
    """Replay a policy that works in batches, until it ends or an arm has too few rows."""
    run = player.run
    execution = player.follow(Coins(run.seed, 0, 1), Noise(run.noise_seed, 0, 0))
    stretches: list[Stretch] = []
    dry: tuple[Dry, ...] = ()
    while not dry:
        number = len(stretches) + 1
        before, left = list(rows.read), rows.left
        try:
            plan = execution.advance()
        except RanDry as stop:
            wanted = stop.wanted
            short = [arm for arm, pulled in enumerate(wanted) if pulled > left[arm]]
            dry = tuple(Dry(rows.log.arms[arm], number, wanted[arm], left[arm]) for arm in short)
        else:
            if plan is None:
                break
            wanted = plan[0].tolist()
            if rows.read == before:  # the last batch: its rewards decide nothing, and those that are there are read
                rows.take(wanted)
        read = tuple(after - old for after, old in zip(rows.read, before, strict=True))
        stretches.append(Stretch(tuple(wanted), read))
    runs = [(arm, pulls) for stretch in stretches for arm, pulls in enumerate(stretch.pulls) if pulls]
    return _replay(run, rows, "batch", runs, dry, tuple(stretches))


def _by_rounds(player: RoundByRound, rows: LogRows) -> Replay:
    """Replay a policy that chooses round by round, until it ends or an arm has no row left."""
    run, execution = player.run, player.execution(0, 0)
    played: list[int] = []
    pulls = [0] * len(rows.means)
    dry: tuple[Dry, ...] = ()
    while not dry and len(played) < run.horizon:
        arms = np.empty(min(_ROWS_AT_ONCE, run.horizon - len(played)), dtype=np.uint16)
        execution.advance(arms)
        for arm in arms.tolist():
            played.append(arm)
            pulls[arm] += 1
            # the choice was made with rewards that are known; the last one of all needs none
            if pulls[arm] > len(rows.log.rewards[arm]) and len(played) < run.horizon:
                dry = (Dry(rows.log.arms[arm], len(played), 1, 0),)
                break
    rows.take(pulls)
    runs = [(arm, len(list(same))) for arm, same in groupby(played)]
    return _replay(run, rows, "round", runs, dry, ())


def _replay(
    run: Run,
    rows: LogRows,
    unit: Literal["batch", "round"],
    runs: list[tuple[int, int]],
    dry: tuple[Dry, ...],
    batches: tuple[Stretch, ...],
) -> Replay:
    """Build the result from the runs of arms that were decided and the rows that were read."""
    pulls = [0] * len(rows.means)
    for arm, length in runs:
        pulls[arm] += length
    logged = zip(rows.log.rewards, rows.read, strict=True)
    return Replay(
        policy=run.policy,
        log=rows.log,
        horizon=run.horizon,
        seed=run.seed,
        pulls=tuple(pulls),
        read=tuple(rows.read),
        averages=tuple(math.fsum(rewards[:read]) / read if read else None for rewards, read in logged),
        runs=merged_runs(runs),
        unit=unit,
        batches=batches,
        dry=dry,
    )


def replay_observations(found: Replay) -> Observations:
    """Add up the rows that were read, batch by batch; those of a policy that chooses round by round all at once."""
    rows = [np.asarray(values[:read]) for values, read in zip(found.log.scaled(), found.read, strict=True)]
    reads = [stretch.read for stretch in found.batches] if found.unit == "batch" else [found.read]
    begun = [0] * len(rows)
    batches: list[SeenBatch] = []
    for read in reads:
        parts = [values[start : start + count] for values, start, count in zip(rows, begun, read, strict=True)]
        totals, squares = (tuple(math.fsum(part**power) for part in parts) for power in (1, 2))
        batches.append(SeenBatch(tuple(read), totals, squares))
        begun = [start + count for start, count in zip(begun, read, strict=True)]
    if found.dry and found.unit == "batch":
        batches.pop()  # cut off: it is not complete
    last = [arm for arm, pulls in enumerate(found.batches[-1].pulls) if pulls] if found.batches else []
    winner = last[0] if found.finished and len(last) == 1 else None
    seen = [(batch.counts, batch.totals) for batch in batches]
    return Observations(
        names=found.log.arms,
        policy=found.policy,
        horizon=found.horizon,
        rewards=Rewards.of("bounded", 0.5),
        batches=tuple(batch for batch in batches if any(batch.counts)),
        pulls=found.read,
        ends=(found.log.low, found.log.high),
        binary=all(bool(np.all((values == 0.0) | (values == 1.0))) for values in rows),
        winner=winner,
        decided_by=None if winner is None else chosen_by(found.policy, seen, Coins(found.seed)),
        state="finished" if found.finished else "running",
    )
