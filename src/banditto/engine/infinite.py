"""Executions on infinite action sets: plans have slots, and every slot says which action it pulls.

The same loop as in `batched`, but nobody can count pulls per arm: regret is added up as it arises. Every replicate has
an active set of its own, so that a design may be needed for each of them; blocks are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import ContractError
from banditto.core.trajectory import Streak, Trajectory
from banditto.engine.batched import regrets_of
from banditto.engine.block_sizes import pairs_per_block
from banditto.engine.pair_counts import PairCounts
from banditto.engine.player import Batch, Run, Unit, Watched
from banditto.policies.policy import PlacedPolicy
from banditto.problems.environment import LinearEnvironment


class PlacedPulls(NamedTuple):
    """Pulls (replicate, slot) of actions (replicate, slot, feature)."""

    pulls: IntArray
    places: FloatArray


class PlacedExecution:
    """Many executions of one policy in step; `advance` plays one batch."""

    def __init__(self, policy: PlacedPolicy[Any], environment: LinearEnvironment, coins: Coins, noise: Noise) -> None:
        self._policy, self._environment, self._coins, self._noise = policy, environment, coins, noise
        self.state = policy.init(coins.count)
        self.spent: IntArray = np.zeros(coins.count, dtype=np.int64)
        self.regret: FloatArray = np.zeros(coins.count, dtype=np.float64)

    def advance(self) -> PlacedPulls | None:
        """Play one batch and return its plan; None when all replicates have spent their horizon."""
        horizon = self._policy.horizon
        if int(self.spent.min()) == horizon:
            return None
        pulls = self._policy.plan(self.state)
        if pulls is None:
            raise ContractError(f"{self._policy.name} ended before its pulls added up to {horizon}")
        places = np.broadcast_to(self._policy.places(self.state), (*pulls.shape, self._environment.actions.dimension))
        self.spent = self.spent + pulls.sum(axis=1)
        if pulls.min() < 0 or not pulls.any() or int(self.spent.max()) > horizon:
            raise ContractError(f"{self._policy.name} planned no pulls, or more than the horizon of {horizon}")
        self.regret = self.regret + (pulls.astype(np.float64) * self._losses(places)).sum(axis=1)
        if int(self.spent.min()) < horizon:
            # totals of pulls that end the horizon decide nothing: do not draw them
            wanted = pulls * (self.spent < horizon)[:, np.newaxis]
            totals = self._environment.draw_at(wanted, places, self._noise)
            self.state = self._policy.decide(self.state, totals, self._coins)
        return PlacedPulls(pulls, places)

    def batches(self) -> Iterator[Batch]:
        """Play to the end; yield each batch as it is played: its pulls, and what a pull of each slot loses."""
        while (plan := self.advance()) is not None:
            yield plan.pulls, self._losses(plan.places)

    def _losses(self, places: FloatArray) -> FloatArray:
        """Return what one pull of each slot loses; a mean that rounding puts above the best loses nothing."""
        losses: FloatArray = np.maximum(self._environment.best - self._environment.means_at(places), 0.0)
        return losses


Slots = list[tuple[tuple[float, ...], int]]


def row_of(plan: PlacedPulls | None, row: int) -> Slots:
    """Return (action, pulls) of one replicate, without slots that have no pulls; none if there is no plan."""
    if plan is None:
        return []
    pulls = plan.pulls[row].tolist()
    return [(tuple(plan.places[row, slot].tolist()), n) for slot, n in enumerate(pulls) if n]


def _common(one: Slots, two: Slots) -> int:
    """Return how many pulls two rows begin with in common."""
    shared = 0
    for (action, pulls), (other, more) in zip(one, two, strict=False):
        if action != other:
            break
        shared += min(pulls, more)
        if pulls != more:
            break
    return shared


@dataclass(frozen=True)
class InfinitePlayer:
    """Plays a policy on an infinite action set."""

    run: Run
    policy: PlacedPolicy[Any]
    environment: LinearEnvironment

    unit: ClassVar[Unit] = "batch"

    @property
    def block_size(self) -> int:
        """The number of pairs in a block, which is a part of the noise's address."""
        return pairs_per_block(self.environment)

    def executions(self, block: int) -> tuple[PlacedExecution, PlacedExecution]:
        """Return both sides of a block of pairs: the same coins, fresh noise."""
        coins = Coins(self.run.seed, block * self.block_size, self.block_size)
        first, second = (self.follow(coins, Noise(self.run.noise_seed, side, block)) for side in (0, 1))
        return first, second

    def follow(self, coins: Coins, noise: Noise) -> PlacedExecution:
        """Return executions with these coins and this noise, to be followed batch by batch."""
        return PlacedExecution(self.policy, self.environment, coins, noise)

    def play_block(self, start: int, keep: int) -> PairCounts:
        """Play the whole block that begins with pair `start`, and return the counts of its first `keep` pairs."""
        first, second = self.executions(start // self.block_size)
        diverged = np.zeros(self.block_size, dtype=np.int64)  # batch of first divergence, 0 for none
        numbers = np.zeros(self.block_size, dtype=np.int64)  # and the number of the first pull that differs
        for batch in count(1):
            before = first.spent
            plan, other = first.advance(), second.advance()
            if plan is None and other is None:
                break
            for row in np.flatnonzero(diverged == 0).tolist():
                one, two = row_of(plan, row), row_of(other, row)
                if one != two:
                    diverged[row], numbers[row] = batch, before[row] + _common(one, two) + 1
        return PairCounts.of(diverged, numbers, (first.regret, second.regret), keep)

    def trajectories(self, pair: int) -> tuple[Trajectory, Trajectory]:
        """Play one pair, and return both trajectories; they number actions alike, as they come up."""
        block, row = divmod(pair, self.block_size)
        numbers: dict[tuple[float, ...], int] = {}
        sides = []
        for execution in self.executions(block):
            streaks: list[Streak] = []
            batch = 0
            while (plan := execution.advance()) is not None:
                batch += 1
                streaks += [Streak(batch, numbers.setdefault(place, len(numbers)), n) for place, n in row_of(plan, row)]
            sides.append(tuple(streaks))
        first, second = (Trajectory(streaks, tuple(numbers)) for streaks in sides)
        return first, second

    def watch(self, pair: int, rounds: IntArray) -> tuple[Watched, Watched]:
        """Play one pair, and return what both sides did in these rounds."""
        first, second = (
            Watched(side.arms_at(rounds), side.digest, len(side.actions)) for side in self.trajectories(pair)
        )
        return first, second

    def regrets_at(self, pairs: int, pulls: IntArray) -> FloatArray:
        """Return the regret of the first pairs' executions after each of `pulls`; shape (executions, N)."""
        return regrets_of(self.executions(0), min(pairs, self.block_size), pulls)

    def count_differing(self, group: int, size: int) -> int:
        """Return how many of the `size` pairs of a group differ."""
        coins = Coins(self.run.seed, group * size, size)
        one, two = (self.follow(coins, Noise(self.run.noise_seed, side, group)) for side in (0, 1))
        apart = np.zeros(size, dtype=np.bool_)
        while (plan := one.advance()) is not None and (other := two.advance()) is not None:
            for row in np.flatnonzero(~apart).tolist():
                apart[row] = row_of(plan, row) != row_of(other, row)
        return int(apart.sum())
