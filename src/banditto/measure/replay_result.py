"""What is left of a replay: who was pulled how often, which rows were read, and where they ran out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.text import html_table, short, text_table
from banditto.core.trajectory import SEQUENCE, start_digest, varints
from banditto.policies.policy import AnyPolicy
from banditto.problems.logs import RewardLog


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
    """How many pulls both replays decided, and the number, from 1, of the first that differs; None if none does."""

    compared: int
    parted: int | None


@dataclass(frozen=True, kw_only=True)
class Replay:
    """One execution on the rows of a log; `dry` says why it was cut off, and is empty if it was not."""

    policy: AnyPolicy
    log: RewardLog = field(repr=False)
    horizon: int
    seed: int
    pulls: tuple[int, ...]  # decided, of each arm
    read: tuple[int, ...]  # rows, of each arm: fewer where the last batch, or a cut, left some pulls without one
    averages: tuple[float | None, ...]  # of the rows that were read, as they were logged
    runs: tuple[tuple[int, int], ...] = field(repr=False)  # (arm, pulls): the sequence of decided pulls
    unit: Literal["batch", "round"]
    batches: tuple[Stretch, ...] = field(repr=False)  # none of a policy that works round by round
    dry: tuple[Dry, ...]

    @property
    def finished(self) -> bool:
        """Whether every pull up to the horizon was decided."""
        return not self.dry

    @property
    def decided(self) -> int:
        """Pulls that were decided by rewards in the log."""
        return sum(self.pulls)

    @property
    def digest(self) -> str:
        """sha256 of the sequence of decided pulls."""
        hasher = start_digest(SEQUENCE)
        for run in self.runs:
            hasher.update(varints(run))
        return hasher.hexdigest()

    def against(self, other: Replay) -> Parting:
        """Where two replays of the same policy part, as far as both were decided."""
        mine = (self.policy, self.horizon, self.seed, self.log.arms)
        if not isinstance(other, Replay) or (other.policy, other.horizon, other.seed, other.log.arms) != mine:
            raise InvalidArgument("other", "another experiment", "a replay of the same policy, horizon, seed and arms")
        compared = min(self.decided, other.decided)
        common = 0
        for (arm, pulls), (their_arm, their_pulls) in zip(self.runs, other.runs, strict=False):
            common += min(pulls, their_pulls) if arm == their_arm else 0
            if arm != their_arm or pulls != their_pulls:
                break
        return Parting(compared, common + 1 if common < compared else None)

    def told(self) -> str:
        """How it ended, in a sentence or two."""
        if not self.finished:
            asked = "; ".join(f"{dry.arm} is asked for {dry.asked:,} and has {dry.left:,} left" for dry in self.dry)
            where = f"{self.unit} {self.dry[0].place:,}"
            return (
                f"The log ran dry in {where}: {asked}. Cut off there, with {self.decided:,} of {self.horizon:,} pulls "
                "decided."
            )
        line = f"All {self.horizon:,} pulls are decided."
        unread = self.decided - sum(self.read)
        return f"{line} The log has no rows for the last {unread:,}, which decide nothing." if unread else line

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        columns = zip(self.log.arms, self.pulls, self.read, self.log.rewards, self.averages, strict=True)
        return [
            (arm, f"{pulls:,}", f"{read:,}", f"{len(rewards):,}", "-" if average is None else short(average))
            for arm, pulls, read, rewards, average in columns
        ]

    def table(self) -> str:
        """A line for each arm, and how it ended."""
        return f"{text_table(HEADER, self._rows(), align='lrrrr')}\n\n{self.told()}"

    def _repr_html_(self) -> str:
        return html_table(HEADER, self._rows())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "policy": self.policy.name,
            "log": self.log.to_dict(),
            "horizon": self.horizon,
            "seed": self.seed,
            "finished": self.finished,
            "decided": self.decided,
            "pulls": list(self.pulls),
            "read": list(self.read),
            "averages": list(self.averages),
            "unit": self.unit,
            "batches": [{"pulls": list(batch.pulls), "read": list(batch.read)} for batch in self.batches],
            "dry": [dry._asdict() for dry in self.dry],
            "digest": self.digest,
        }


HEADER = ("arm", "pulls decided", "rows read", "rows", "average")
