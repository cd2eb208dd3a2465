"""What was seen of an experiment, batch by batch: what an analysis begins with, wherever it was played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from banditto.core.errors import InvalidArgument
from banditto.core.rewards import Rewards
from banditto.policies.policy import AnyPolicy

DecidedBy = Literal["lead", "coin"]
State = Literal["running", "finished", "stopped"]


class SeenBatch(NamedTuple):
    """A complete batch: pulls of each arm, the sums of their rewards, and of the squares, in the policy's units.

    Squares are None where rewards were added up elsewhere.
    """

    counts: tuple[int, ...]
    totals: tuple[float, ...]
    squares: tuple[float, ...] | None


class SeenMetric(NamedTuple):
    """A metric that was told with rewards: for each complete batch the number of its values, their sum and squares."""

    name: str
    batches: tuple[SeenBatch, ...]
    smallest: float
    largest: float


class Flow(NamedTuple):
    """How tickets went, arm by arm: planned and assigned in complete batches; handed out and lost in all."""

    planned: tuple[int, ...]
    assigned: tuple[int, ...]
    handed: tuple[int, ...]
    lost: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Observations:
    """What was seen of one execution, and which policy decided.

    Attributes:
        names: of the arms, in order.
        policy: what decided.
        horizon: pulls in the whole execution.
        rewards: what is known of the rewards, in the policy's units.
        batches: the complete batches, in order; one of all pulls for a policy that chooses round by round.
        pulls: rewards of each arm that were told, used or not.
        ends: the low and the high end of rewards, which policies for rewards in [0, 1] see as 0 and 1; None if the
            policy sees rewards in their own units.
        binary: whether every reward was at one of the ends.
        winner: the arm that was named or committed to; None if there is none yet.
        decided_by: what named it; None if the policy does not tell.
        state: "running", "finished" or "stopped".
        flow: how tickets went; None where there were none.
        metrics: what was told with rewards, in units of its own, as many batches as there are of rewards.
        warnings: what contradicts the protocol.
    """

    names: tuple[str, ...]
    policy: AnyPolicy
    horizon: int
    rewards: Rewards
    batches: tuple[SeenBatch, ...]
    pulls: tuple[int, ...]
    ends: tuple[float, float] | None
    binary: bool
    winner: int | None
    decided_by: DecidedBy | None
    state: State
    flow: Flow | None = None
    metrics: tuple[SeenMetric, ...] = ()
    warnings: tuple[str, ...] = ()

    def own_units(self, value: float) -> float:
        """Return a mean, given in the policy's units, in the rewards' own units."""
        if self.ends is None:
            return value
        low, high = self.ends
        return low + value * (high - low)

    def own_difference(self, value: float) -> float:
        """Return a difference of means, given in the policy's units, in the rewards' own units."""
        return value if self.ends is None else value * (self.ends[1] - self.ends[0])


@runtime_checkable
class Observed(Protocol):
    """Anything that can be analysed, because it says what was seen."""

    def observations(self) -> Observations:
        """Return what was seen, batch by batch."""


def check_told(names: Sequence[str], pulls: Sequence[int]) -> None:
    """Refuse to analyse what has no rewards, or those of one arm alone."""
    told = [name for name, count in zip(names, pulls, strict=True) if count]
    if not told:
        raise InvalidArgument("source", "no rewards", "rewards of two arms or more")
    if len(told) == 1:
        raise InvalidArgument("source", f"rewards of {told[0]} alone", "rewards of two arms or more")
