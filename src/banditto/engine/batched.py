"""Batched executions: the plan/draw/decide loop over many replicates at once, by array operations only.

An execution costs O(K log T), whatever T is. Memory is bounded by the block: plans are compared as they are made,
and kept only for a single pair that somebody wants to look at. Pairs of which both sides have spent their horizon are
moved out of the way, so that the last batches cost what the pairs still in them cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray, namespace, taken
from banditto.core.errors import ContractError
from banditto.core.trajectory import Streak, Trajectory
from banditto.engine.backend import HOST, Machine, machine_of
from banditto.engine.block_sizes import pairs_per_block
from banditto.engine.pair_counts import PairCounts, gaps, pseudo_regret
from banditto.engine.player import Batch, Followed, Run, Unit, Watched
from banditto.policies.policy import BatchedPolicy, own_level
from banditto.problems.environment import Environment

MOST_PAIRS_OF_A_CURVE = 1000  # of one block, which is simulated whole anyway
# Pairs are moved out when this share of those in play has finished: earlier it would cost more than it saves.
_WORTH_MOVING = 0.5


class Execution:
    """Many executions of one policy in step; `advance` plays one batch, `pulls` counts pulls per (replicate, arm)."""

    def __init__(
        self,
        policy: BatchedPolicy[Any],
        environment: Environment,
        coins: Coins,
        noise: Noise,
        machine: Machine = HOST,
    ) -> None:
        self._policy = policy
        self._environment = environment
        self._coins = coins
        self._noise = noise
        self._done = False
        self.state = machine.start(policy, coins.count)
        xp = machine.arrays
        self.pulls: IntArray = xp.zeros((policy.arms, coins.count), dtype=xp.int64).T  # (R, K), arm-major
        self._at_most = 0  # no execution has pulled more often than this
        self.spent: IntArray | None = None  # (R,), once somebody may have come to the end

    def advance(self) -> IntArray | None:
        """Play one batch and return its plan; None when all replicates have spent their horizon."""
        horizon = self._policy.horizon
        if self._done:
            return None
        plan = self._policy.plan(self.state)
        if plan is None:
            raise ContractError(f"{self._policy.name} ended before its pulls added up to {horizon}")
        xp = namespace(plan)
        self.pulls += plan
        largest = int(xp.max(plan))
        self._at_most += largest * self._policy.arms
        wanted = plan
        if largest <= 0 or self._at_most >= horizon:  # before that nobody can have come to the end
            spent = self.spent = xp.sum(self.pulls, axis=1)
            if largest <= 0 or int(xp.min(plan)) < 0 or int(xp.max(spent)) > horizon:
                raise ContractError(f"{self._policy.name} planned no pulls, or more than the horizon of {horizon}")
            self._done = int(xp.min(spent)) == horizon
            if self._done:
                return plan
            # totals of pulls that end the horizon decide nothing: do not draw them
            wanted = plan * (spent < horizon)[:, None]
        self._decide(self._environment.draw(wanted, self._noise))
        return plan

    def _decide(self, totals: FloatArray) -> None:
        self.state = self._policy.decide(self.state, totals, self._coins)

    @property
    def horizon(self) -> int:
        """The number of pulls of one execution."""
        return self._policy.horizon

    @property
    def regret(self) -> FloatArray:
        """The pseudo-regret of each replicate so far; shape (R,)."""
        return pseudo_regret(self.pulls, self._environment.means)

    def batches(self) -> Iterator[Batch]:
        """Play to the end; yield each batch as it is played: its pulls, and what a pull of each arm loses."""
        losses = np.array(gaps(self._environment.means))[np.newaxis]
        while (plan := self.advance()) is not None:
            yield plan, losses

    def keep(self, rows: IntArray) -> None:
        """Go on with these replicates alone; the others are forgotten."""
        self._noise.only(rows, self.pulls.shape[0])
        self._coins = self._coins.only(rows)
        self.state, self.pulls = taken(self.state, rows), taken(self.pulls, rows)
        self.spent = None if self.spent is None else taken(self.spent, rows)


class _Tally:
    """What is known of each pair of a block: where it diverged, and both regrets; finished pairs can be moved out."""

    def __init__(self, xp: Any, size: int) -> None:
        self._xp = xp
        self.diverged: IntArray = xp.zeros(size, dtype=xp.int64)  # batch of first divergence, 0 for none
        self.numbers: IntArray = xp.zeros(size, dtype=xp.int64)  # and the number of the first pull that differs
        self.regrets: tuple[FloatArray, FloatArray] = (xp.zeros(size), xp.zeros(size))
        self._rows: IntArray | None = None  # those still in play; None for all
        self._together = xp.ones(size, dtype=xp.bool)  # those of them that have not differed

    def compare(self, batch: int, plans: tuple[IntArray, IntArray], sides: tuple[Execution, Execution]) -> None:
        """Note which pairs differ for the first time, in the plans that both sides have just played."""
        one, two = plans
        apart = one != two
        if not bool(self._xp.any(apart)):
            return
        pulls = sides[0].pulls  # this batch included
        found = self._xp.nonzero(self._xp.any(apart, axis=1) & self._together)[0]
        self._together[found] = False
        rows = found if self._rows is None else self._rows[found]
        self.diverged[rows] = batch
        one, two = one[found], two[found]
        self.numbers[rows] = (pulls[found] - one).sum(axis=1) + _common_pulls(one, two) + 1

    def settle(self, sides: tuple[Execution, Execution], means: tuple[float, ...]) -> None:
        """Store both sides' regret of all pairs that are still in play."""
        rows = slice(None) if self._rows is None else self._rows
        for regret, side in zip(self.regrets, sides, strict=True):
            regret[rows] = pseudo_regret(side.pulls, means)

    def move_out(self, sides: tuple[Execution, Execution], horizon: int, means: tuple[float, ...]) -> None:
        """Settle the pairs of which both sides are done and take them out, if they are many."""
        first, second = sides[0].spent, sides[1].spent
        if first is None or second is None:
            return
        live = self._xp.nonzero((first < horizon) | (second < horizon))[0]
        if 0 < len(live) <= (1.0 - _WORTH_MOVING) * len(first):
            self.settle(sides, means)
            self._keep(live)
            for side in sides:
                side.keep(live)

    def _keep(self, live: IntArray) -> None:
        self._rows = live if self._rows is None else self._rows[live]
        self._together = self._together[live]


class _WinnerTally(_Tally):
    """A tally of pairs that are compared by the winners that their sides name, whenever they name them."""

    def __init__(self, xp: Any, size: int, horizon: int) -> None:
        super().__init__(xp, size)
        self._horizon = horizon
        self._winners: list[IntArray] = [xp.zeros(size, dtype=xp.int64) for _ in range(2)]  # counted from 1; 0: none

    def compare(self, batch: int, plans: tuple[IntArray, IntArray], sides: tuple[Execution, Execution]) -> None:
        """Note the winners that were named just now, and which pairs have two that differ."""
        xp = self._xp
        named = False
        for number, (plan, side) in enumerate(zip(plans, sides, strict=True)):
            found = named_winners(plan, side.spent, self._horizon)
            if found is not None:
                self._winners[number] += found  # 0 before, and 0 ever after
                named = True
        if not named:
            return
        one, two = self._winners
        found = xp.nonzero((one != two) & (one > 0) & (two > 0) & self._together)[0]
        self._together[found] = False
        rows = found if self._rows is None else self._rows[found]
        self.diverged[rows] = batch - 1  # both are known since then: this batch is what is left for a winner
        # the pull after which both winners are known; what is left for the first one is not counted
        spent = [
            side.pulls[found].sum(axis=1) - plan[found].sum(axis=1) for plan, side in zip(plans, sides, strict=True)
        ]
        self.numbers[rows] = xp.minimum(*spent) + 1

    def _keep(self, live: IntArray) -> None:
        super()._keep(live)
        self._winners = [winners[live] for winners in self._winners]


def named_winners(plan: IntArray, spent: IntArray | None, horizon: int) -> IntArray | None:
    """Return for each replicate the arm, from 1, that got all that was left in this batch, or 0; None if all are 0."""
    xp = namespace(plan)
    if spent is None:
        return None
    ended = (spent == horizon) & (xp.max(plan, axis=1) > 0)
    if not bool(xp.any(ended)):
        return None
    winners: IntArray = xp.where(ended, xp.argmax(plan, axis=1) + 1, xp.asarray(0))
    return winners


def _common_pulls(plan: IntArray, other: IntArray) -> IntArray:
    """Return how many pulls two plans (R, K) begin with in common, arms in ascending order; shape (R,)."""
    xp = namespace(plan)
    first = xp.argmax(xp.astype(plan != other, xp.int64), axis=1)[:, None]  # the first arm that they pull unequally
    shared = xp.where(xp.arange(plan.shape[1]) <= first, xp.minimum(plan, other), 0)
    common: IntArray = shared.sum(axis=1)
    return common


@dataclass(frozen=True)
class BatchedPlayer:
    """Plays a policy that works in batches on finitely many arms."""

    run: Run
    policy: BatchedPolicy[Any]

    unit: ClassVar[Unit] = "batch"

    @property
    def block_size(self) -> int:
        """The number of pairs in a block, which is a part of the noise's address."""
        return pairs_per_block(self.run.environment, self.run.backend)

    def executions(self, block: int) -> tuple[Execution, Execution]:
        """Return both sides of a block of pairs: the same coins, fresh noise."""
        run, size = self.run, self.block_size
        machine = machine_of(run.backend)
        coins = machine.coins(run.seed, block * size, size)
        first, second = (machine.noise(run.noise_seed, side, block) for side in (0, 1))
        return (
            Execution(self.policy, run.environment, coins, first, machine),
            Execution(self.policy, run.environment, coins, second, machine),
        )

    def follow(self, coins: Coins, noise: Noise) -> Execution:
        """Return executions with these coins and this noise, to be followed batch by batch."""
        return Execution(self.policy, self.run.environment, coins, noise)

    def play_block(self, start: int, keep: int) -> PairCounts:
        """Play the whole block that begins with pair `start`, and return the counts of its first `keep` pairs."""
        sides = first, second = self.executions(start // self.block_size)
        means, horizon = self.run.environment.means, self.policy.horizon
        xp = namespace(first.pulls)
        size = first.pulls.shape[0]
        tally = _WinnerTally(xp, size, horizon) if own_level(self.policy) == "winner" else _Tally(xp, size)
        for batch in count(1):
            plan, other = first.advance(), second.advance()
            if plan is None and other is None:
                break
            # a side that is done pulls nothing
            one, two = (xp.zeros_like(first.pulls) if p is None else p for p in (plan, other))
            tally.compare(batch, (one, two), sides)
            tally.move_out(sides, horizon, means)
        tally.settle(sides, means)
        return PairCounts.of(tally.diverged, tally.numbers, tally.regrets, keep)

    def trajectories(self, pair: int) -> tuple[Trajectory, Trajectory]:
        """Play one pair, as `play_block` does, and return both of its trajectories."""
        block, row = divmod(pair, self.block_size)
        first, second = (_trajectory(side, row) for side in self.executions(block))
        return first, second

    def watch(self, pair: int, rounds: IntArray) -> tuple[Watched, Watched]:
        """Play one pair, and return what both sides did in these rounds."""
        first, second = (_watched(side, rounds, self.policy.arms) for side in self.trajectories(pair))
        return first, second

    def regrets_at(self, pairs: int, pulls: IntArray) -> FloatArray:
        """Return the regret of the first pairs' executions after each of `pulls`; shape (executions, N)."""
        return regrets_of(self.executions(0), min(pairs, MOST_PAIRS_OF_A_CURVE, self.block_size), pulls)

    def count_differing(self, group: int, size: int) -> int:
        """Return how many of the `size` pairs of a group differ."""
        coins = Coins(self.run.seed, group * size, size)
        one, two = (self.follow(coins, Noise(self.run.noise_seed, side, group)) for side in (0, 1))
        if own_level(self.policy) == "winner":
            return int((pulls_to_winner(one)[0] != pulls_to_winner(two)[0]).sum())
        apart = np.zeros(size, dtype=np.bool_)
        # a side that is done before the other has pulled more in some batch, where that was seen
        while (plan := one.advance()) is not None and (other := two.advance()) is not None and not apart.all():
            apart |= np.any(plan != other, axis=1)
        return int(apart.sum())


def pulls_to_winner(execution: Execution) -> tuple[IntArray, IntArray]:
    """Play to the end, and return the arm that each replicate names, from 1, and the pulls of all arms until then."""
    size = execution.pulls.shape[0]
    winners, pulls = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    while (plan := execution.advance()) is not None:
        found = named_winners(plan, execution.spent, execution.horizon)
        if found is not None:
            winners += found
            pulls += np.where(found > 0, execution.horizon - plan.sum(axis=1), 0)
    return winners, pulls


def regrets_of(sides: Sequence[Followed], pairs: int, pulls: IntArray) -> FloatArray:
    """Return the regret of the first `pairs` replicates of each side after each of `pulls`; shape (executions, N)."""
    regrets = []
    for side in sides:
        regret = np.zeros((pairs, pulls.size), dtype=np.float64)
        spent = np.zeros((pairs, 1), dtype=np.int64)
        for plan, losses in side.batches():
            for slot in range(plan.shape[1]):  # the order of pulls within a batch: ascending
                number, loss = plan[:pairs, slot : slot + 1], losses[:pairs, slot : slot + 1]
                if bool(np.any(number)) and bool(np.any(loss)):
                    regret += loss * np.clip(pulls - spent, 0, number)
                spent += number
        regrets.append(regret)
    return np.concatenate(regrets)


def _watched(trajectory: Trajectory, rounds: IntArray, arms: int) -> Watched:
    return Watched(trajectory.arms_at(rounds), trajectory.digest, arms)


def _trajectory(execution: Execution, row: int) -> Trajectory:
    """Play an execution to its end, and return the trajectory of one replicate."""
    streaks: list[Streak] = []
    for batch in count(1):
        plan = execution.advance()
        if plan is None:
            return Trajectory(tuple(streaks))
        streaks += [Streak(batch, arm, pulls) for arm, pulls in enumerate(plan[row].tolist()) if pulls > 0]
    raise AssertionError("unreachable: `count` does not end")
