"""Players: one for each kind of policy, chosen once for a run. Nobody else asks which kind a policy is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.engine.block_sizes import is_infinite
from banditto.engine.pair_counts import PairCounts
from banditto.engine.run import Run
from banditto.policies.policy import PlacedPolicy, RoundPolicy

Unit = Literal["batch", "round"]


class Watched(NamedTuple):
    """One execution as somebody looks at it: the arms of chosen rounds, the sequence's digest, how many arms it has."""

    pulled: IntArray  # (N,)
    digest: str
    arms: int


Batch = tuple[IntArray, FloatArray]  # pulls (R, slot), and what one pull of each slot loses (R or 1, slot)


class Followed(Protocol):
    """Executions that somebody follows batch by batch, of arms or of an infinite set."""

    @property
    def regret(self) -> FloatArray:
        """What each replicate has lost so far; shape (R,)."""

    def batches(self) -> Iterator[Batch]:
        """Play to the end; yield each batch as it is played."""


class Player(Protocol):
    """What plays the pairs of one run, whatever kind of policy it has."""

    @property
    def unit(self) -> Unit:
        """What the policy decides once in: a batch or a round."""

    @property
    def block_size(self) -> int:
        """How many pairs make one unit of work."""

    def play_block(self, start: int, keep: int) -> PairCounts:
        """Play pairs `start` to `start + keep - 1`, all in one block, and count them."""

    def follow(self, coins: Coins, noise: Noise) -> Followed:
        """Make executions with these coins and this noise, to be followed batch by batch."""

    def watch(self, pair: int, rounds: IntArray) -> tuple[Watched, Watched]:
        """Play one pair, and look at both sides in these rounds (counted from 0, ascending)."""

    def regrets_at(self, pairs: int, pulls: IntArray) -> FloatArray:
        """Regret of the executions of so many pairs, or of fewer if that suffices, after each of `pulls` (ascending).

        The shape is (executions, N).
        """

    def count_differing(self, group: int, size: int) -> int:
        """Count how many of the `size` pairs of a group differ, as cheaply as it can be done.

        Groups may have any size, so that a search can look at hundreds of instances with few pairs each. No result
        that is reported comes from here.
        """


def player_of(run: Run) -> Player:
    """Choose the player for a run's policy and environment."""
    policy = run.policy
    if isinstance(policy, RoundPolicy):
        from banditto.engine.rounds import RoundPlayer  # compiled code is loaded only where it is used

        return RoundPlayer(run, policy)
    if is_infinite(run.environment) and isinstance(policy, PlacedPolicy):
        from banditto.engine.infinite import InfinitePlayer

        return InfinitePlayer(run, policy, run.environment)
    from banditto.engine.batched import BatchedPlayer

    return BatchedPlayer(run, policy)
