"""Rehearsals: a policy played many times on the instance of a plan, before anybody pays for it.

An arm counts as dropped before a share of the horizon if all its pulls are in batches that end by then. Nothing is
asked of the policy but its plans, so that the same rehearsal serves every policy, finite or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins, address_key
from banditto.chance.noise import Noise
from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.engine.batched import Execution
from banditto.engine.player import Followed, player_of, run_of
from banditto.policies.policy import BatchedPolicy
from banditto.problems.environment import Environment
from banditto.problems.environments.bernoulli import Bernoulli

_AT_ONCE = 4096
_FEWEST = 64
_WORTH_MOVING = 0.7  # of the executions in play, if no more go on, they go on without the others
_ROUNDING = 1e-9  # of a gap


class Rehearsal(NamedTuple):
    """Each execution's regret, and its number of pulls after which no arm that is `gap` worse was pulled."""

    regrets: FloatArray  # (N,)
    decided: FloatArray  # (N,)
    horizon: int

    def resolved(self, share: float) -> float:
        """Return the share of executions that dropped all those arms before this share of the horizon was spent.

        The last pull must show it: whoever pulls such an arm to the very end has not dropped it.
        """
        return float(np.mean(self.decided <= _deadline(share, self.horizon)))


def _deadline(share: float, horizon: int) -> float:
    return min(share * horizon, horizon - 1)


class Allowance(NamedTuple):
    """How many executions may miss the promise, that they are decided before a share of the horizon is spent."""

    misses: int
    share: float


def rehearse(policy: BatchedPolicy[Any], environment: Environment, gap: float, executions: int, seed: int) -> Rehearsal:
    """Play so many executions, each with coins and noise of its own; their regrets and decisions come back."""
    found = rehearse_within(policy, environment, gap, executions, seed, None)
    assert found is not None, "nothing ends it"
    return found


def rehearse_within(
    policy: BatchedPolicy[Any],
    environment: Environment,
    gap: float,
    executions: int,
    seed: int,
    allowed: Allowance | None,
) -> Rehearsal | None:
    """Play the same executions, but end as soon as more of them have missed the promise than may; None comes back then.

    Where noise is looked up by address, a few executions are played alone before all others: most that a search tries
    is far from keeping the promise, and those few show it.
    """
    player = player_of(run_of(policy, environment, seed=seed, noise_seed=None, horizon=None))
    noise_seed = address_key("banditto/plan/1", seed)

    def part(start: int, few: int | None = None) -> tuple[FloatArray, FloatArray]:
        coins = Coins(seed, start, min(_AT_ONCE, executions - start))
        execution = player.follow(coins, Noise(noise_seed, 0, start))
        if few is not None:
            assert isinstance(execution, Execution)
            execution.keep(np.arange(few))
        return _followed(execution, gap, few or coins.count)

    def missed(decided: FloatArray) -> int:
        assert allowed is not None
        return int(np.count_nonzero(decided > _deadline(allowed.share, policy.horizon)))

    if allowed is not None and isinstance(environment, Bernoulli):
        few = max(_FEWEST, allowed.misses + allowed.misses // 16 + 1)
        if few <= min(_AT_ONCE, executions) and missed(part(0, few)[1]) > allowed.misses:
            return None
    parts, misses = [], 0
    for start in range(0, executions, _AT_ONCE):
        parts.append(part(start))
        if allowed is not None:
            misses += missed(parts[-1][1])
            if misses > allowed.misses:
                return None
    regrets, decided = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Rehearsal(regrets, decided, policy.horizon)


def _followed(execution: Followed, gap: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Play executions to the end; what each lost comes back, and when it was decided."""
    regrets, decided = np.zeros(count), np.zeros(count)
    rows, clock = np.arange(count), _Clock(count)
    for pulls, losses in execution.batches():
        bad = losses >= gap * (1.0 - _ROUNDING)
        clock.tick(pulls.sum(axis=1), np.any(bad & (pulls > 0), axis=1))
        if isinstance(execution, Execution) and (live := _going_on(execution)) is not None:
            regrets[rows], decided[rows] = execution.regret, clock.decided
            execution.keep(live)
            clock.keep(live)
            rows = rows[live]
    regrets[rows], decided[rows] = execution.regret, clock.decided
    return regrets, decided


def _going_on(execution: Execution) -> IntArray | None:
    """Find the executions that are not done, if so many are that it is worth going on without them; else None."""
    if execution.spent is None:
        return None
    live = np.flatnonzero(execution.spent < execution.horizon)
    return live if 0 < live.size <= _WORTH_MOVING * execution.spent.size else None


class _Clock:
    """Counts each execution's pulls, and remembers the count when it last pulled a bad arm."""

    def __init__(self, count: int) -> None:
        self.spent: FloatArray = np.zeros(count)
        self.decided: FloatArray = np.zeros(count)

    def tick(self, pulls: FloatArray | Any, bad: BoolArray) -> None:
        """Add a batch: its pulls, and which executions pulled a bad arm in it."""
        self.spent = self.spent + pulls
        self.decided = np.where(bad, self.spent, self.decided)

    def keep(self, rows: IntArray) -> None:
        """Go on with these executions alone."""
        self.spent, self.decided = self.spent[rows], self.decided[rows]
