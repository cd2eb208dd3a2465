"""Executions on infinite action sets: plans have slots, and every slot says which action it pulls.

The same loop as in `batched`, but nobody can count pulls per arm: regret is added up as it arises. Every replicate has
an active set of its own, so that a design may be needed for each of them; blocks are small.
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import ContractError
from banditto.core.trajectory import Run, Trajectory
from banditto.engine.pairs import PairCounts, Study, pairs_per_block
from banditto.policies.policy import PlacedPolicy
from banditto.problems.environment import LinearEnvironment


class PlacedPlan(NamedTuple):
    """Pulls (replicate, slot) of actions (replicate, slot, feature)."""

    pulls: IntArray
    places: FloatArray


class Execution:
    """Many executions of one policy in step; `advance` plays one batch."""

    def __init__(self, policy: PlacedPolicy[Any], environment: LinearEnvironment, coins: Coins, noise: Noise) -> None:
        self._policy, self._environment, self._coins, self._noise = policy, environment, coins, noise
        self.state = policy.init(coins.count)
        self.spent: IntArray = np.zeros(coins.count, dtype=np.int64)
        self.regret: FloatArray = np.zeros(coins.count, dtype=np.float64)

    def advance(self) -> PlacedPlan | None:
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
        self.regret = self.regret + _losses(pulls, places, self._environment).sum(axis=1)
        if int(self.spent.min()) < horizon:
            # totals of pulls that end the horizon decide nothing: do not draw them
            wanted = pulls * (self.spent < horizon)[:, np.newaxis]
            totals = self._environment.draw_at(wanted, places, self._noise)
            self.state = self._policy.decide(self.state, totals, self._coins)
        return PlacedPlan(pulls, places)


def _losses(pulls: IntArray, places: FloatArray, environment: LinearEnvironment) -> FloatArray:
    """What the pulls of each slot lose; a rounding below the best counts as nothing."""
    losses: FloatArray = pulls.astype(np.float64) * np.maximum(environment.best - environment.means_at(places), 0.0)
    return losses


def executions(study: Study, policy: PlacedPolicy[Any], block: int) -> tuple[Execution, Execution]:
    """Both sides of a block of pairs: the same coins, fresh noise."""
    environment = study.environment
    assert isinstance(environment, LinearEnvironment)
    size = pairs_per_block(environment)
    coins = Coins(study.seed, block * size, size)
    first, second = (Execution(policy, environment, coins, Noise(study.noise_seed, side, block)) for side in (0, 1))
    return first, second


def run_block(study: Study, policy: PlacedPolicy[Any], block: int, keep: int) -> PairCounts:
    """Play a whole block of pairs and count the first `keep` of them."""
    first, second = executions(study, policy, block)
    size = pairs_per_block(study.environment)
    diverged = np.zeros(size, dtype=np.int64)  # batch of first divergence, 0 for none
    numbers = np.zeros(size, dtype=np.int64)  # and the number of the first pull that differs
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


Slots = list[tuple[tuple[float, ...], int]]


def row_of(plan: PlacedPlan | None, row: int) -> Slots:
    """(action, pulls) of one replicate, slots without pulls left out."""
    if plan is None:
        return []
    pulls = plan.pulls[row].tolist()
    return [(tuple(plan.places[row, slot].tolist()), n) for slot, n in enumerate(pulls) if n]


def _common(one: Slots, two: Slots) -> int:
    """How many pulls two rows begin with in common."""
    shared = 0
    for (action, pulls), (other, more) in zip(one, two, strict=False):
        if action != other:
            break
        shared += min(pulls, more)
        if pulls != more:
            break
    return shared


def pair_trajectories(study: Study, policy: PlacedPolicy[Any], pair: int) -> tuple[Trajectory, Trajectory]:
    """The two trajectories of one pair; their actions are numbered alike, as they come up."""
    block, row = divmod(pair, pairs_per_block(study.environment))
    numbers: dict[tuple[float, ...], int] = {}
    sides = []
    for execution in executions(study, policy, block):
        runs: list[Run] = []
        batch = 0
        while (plan := execution.advance()) is not None:
            batch += 1
            runs += [Run(batch, numbers.setdefault(action, len(numbers)), n) for action, n in row_of(plan, row)]
        sides.append(tuple(runs))
    first, second = (Trajectory(runs, tuple(numbers)) for runs in sides)
    return first, second
