"""Batched executions: the plan/draw/decide loop over many replicates at once, by array operations only.

An execution costs O(K log T), whatever T is. Memory is bounded by the block: plans are compared as they are made,
and kept only for a single pair that somebody wants to look at.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from banditto.arrays import IntArray
from banditto.coins import Coins
from banditto.engine.pairs import PairCounts, Study, pairs_per_block, pseudo_regret
from banditto.environment import Environment
from banditto.errors import ContractError
from banditto.noise import Noise
from banditto.policy import BatchedPolicy
from banditto.trajectory import Run, Trajectory


class Execution:
    """Many executions of one policy in step; `advance` plays one batch, `pulls` counts per (replicate, arm)."""

    def __init__(self, policy: BatchedPolicy[Any], environment: Environment, coins: Coins, noise: Noise) -> None:
        self._policy = policy
        self._environment = environment
        self._coins = coins
        self._noise = noise
        self._done = False
        self.state = policy.init(coins.count)
        self._at_most = 0  # no execution has pulled more often than this
        self.pulls: IntArray = np.zeros((policy.arms, coins.count), dtype=np.int64).T  # (R, K), arm-major

    def advance(self) -> IntArray | None:
        """Play one batch and return its plan; None when all replicates have spent their horizon."""
        horizon = self._policy.horizon
        if self._done:
            return None
        plan = self._policy.plan(self.state)
        if plan is None:
            raise ContractError(f"{self._policy.name} ended before its pulls added up to {horizon}")
        self.pulls += plan
        largest = int(plan.max())
        self._at_most += largest * self._policy.arms
        wanted = plan
        if largest <= 0 or self._at_most >= horizon:  # before that nobody can have come to the end
            spent = self.pulls.sum(axis=1)
            if largest <= 0 or plan.min() < 0 or spent.max() > horizon:
                raise ContractError(f"{self._policy.name} planned no pulls, or more than the horizon of {horizon}")
            self._done = int(spent.min()) == horizon
            if self._done:
                return plan
            # totals of pulls that end the horizon decide nothing: do not draw them
            wanted = plan * (spent < horizon)[:, np.newaxis]
        totals = self._environment.draw(wanted, self._noise)
        self.state = self._policy.decide(self.state, totals, self._coins)
        return plan


def executions(study: Study, policy: BatchedPolicy[Any], block: int) -> tuple[Execution, Execution]:
    """Both sides of a block of pairs: the same coins, fresh noise."""
    size = pairs_per_block(study.environment)
    coins = Coins(study.seed, block * size, size)
    first, second = (Noise(study.noise_seed, side, block) for side in (0, 1))
    return (
        Execution(policy, study.environment, coins, first),
        Execution(policy, study.environment, coins, second),
    )


def run_block(study: Study, policy: BatchedPolicy[Any], block: int, keep: int) -> PairCounts:
    """Play a whole block of pairs and count the first `keep` of them."""
    first, second = executions(study, policy, block)
    size = pairs_per_block(study.environment)
    diverged = np.zeros(size, dtype=np.int64)  # batch of first divergence, 0 for none
    pulls = np.zeros(size, dtype=np.int64)  # and the number of the first pull that differs
    for batch in count(1):
        plan, other = first.advance(), second.advance()
        if plan is None and other is None:
            break
        # a side that is done pulls nothing
        one, two = (np.zeros_like(first.pulls) if p is None else p for p in (plan, other))
        apart = one != two
        if np.any(apart):
            rows = np.flatnonzero(np.any(apart, axis=1) & (diverged == 0))
            diverged[rows] = batch
            pulls[rows] = (first.pulls[rows] - one[rows]).sum(axis=1) + _common_pulls(one[rows], two[rows]) + 1
    means = study.environment.means
    regrets = pseudo_regret(first.pulls, means), pseudo_regret(second.pulls, means)
    return PairCounts.of(diverged, pulls, regrets, keep)


def _common_pulls(plan: IntArray, other: IntArray) -> IntArray:
    """How many pulls two plans (R, K) begin with in common, arms in ascending order; shape (R,)."""
    first = np.argmax(plan != other, axis=1)[:, np.newaxis]  # the first arm that they pull unequally often
    shared = np.where(np.arange(plan.shape[1]) <= first, np.minimum(plan, other), 0)
    common: IntArray = shared.sum(axis=1)
    return common


def pair_trajectories(study: Study, policy: BatchedPolicy[Any], pair: int) -> tuple[Trajectory, Trajectory]:
    """The two trajectories of one pair, the same ones that `run_block` counts."""
    block, row = divmod(pair, pairs_per_block(study.environment))
    first, second = (_trajectory(side, row) for side in executions(study, policy, block))
    return first, second


def _trajectory(execution: Execution, row: int) -> Trajectory:
    runs: list[Run] = []
    for batch in count(1):
        plan = execution.advance()
        if plan is None:
            return Trajectory(tuple(runs))
        runs += [Run(batch, arm, pulls) for arm, pulls in enumerate(plan[row].tolist()) if pulls > 0]
    raise AssertionError("unreachable: `count` does not end")
