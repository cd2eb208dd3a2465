"""Rehearsals: a policy played many times on the instance of a plan, before anybody pays for it.

An arm counts as dropped before a share of the horizon if all its pulls are in batches that end by then. Nothing is
asked of the policy but its plans, so that the same rehearsal serves every policy, finite or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins, address_key
from banditto.chance.noise import Noise
from banditto.core.arrays import BoolArray, FloatArray
from banditto.engine.player import Followed, player_of, run_of
from banditto.policies.policy import BatchedPolicy
from banditto.problems.environment import Environment

_AT_ONCE = 4096
_ROUNDING = 1e-9  # of a gap


class Rehearsal(NamedTuple):
    """Regret of each execution, and the pulls after which no arm that is `gap` worse was pulled again."""

    regrets: FloatArray  # (N,)
    decided: FloatArray  # (N,)
    horizon: int

    def resolved(self, share: float) -> float:
        """Return the share of executions that dropped all those arms before this share of the horizon was spent.

        The last pull must show it: whoever pulls such an arm to the very end has not dropped it.
        """
        return float(np.mean(self.decided <= min(share * self.horizon, self.horizon - 1)))


def rehearse(policy: BatchedPolicy[Any], environment: Environment, gap: float, executions: int, seed: int) -> Rehearsal:
    """Play so many executions, each with coins and noise of its own; their regrets and decisions come back."""
    player = player_of(run_of(policy, environment, seed=seed, noise_seed=None, horizon=None))
    noise_seed = address_key("banditto/plan/1", seed)
    parts = []
    for start in range(0, executions, _AT_ONCE):
        coins = Coins(seed, start, min(_AT_ONCE, executions - start))
        parts.append(_followed(player.follow(coins, Noise(noise_seed, 0, start)), gap, coins.count))
    regrets, decided = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Rehearsal(regrets, decided, policy.horizon)


def _followed(execution: Followed, gap: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Play executions to the end; what each lost comes back, and when it was decided."""
    clock = _Clock(count)
    for pulls, losses in execution.batches():
        bad = losses >= gap * (1.0 - _ROUNDING)
        clock.tick(pulls.sum(axis=1), np.any(bad & (pulls > 0), axis=1))
    return execution.regret, clock.decided


class _Clock:
    """Pulls spent by each execution, and when it last pulled a bad arm."""

    def __init__(self, count: int) -> None:
        self.spent: FloatArray = np.zeros(count)
        self.decided: FloatArray = np.zeros(count)

    def tick(self, pulls: FloatArray | Any, bad: BoolArray) -> None:
        """Add a batch: its pulls, and which executions pulled a bad arm in it."""
        self.spent = self.spent + pulls
        self.decided = np.where(bad, self.spent, self.decided)
