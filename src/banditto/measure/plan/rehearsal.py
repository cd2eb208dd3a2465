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
from banditto.engine import batched, infinite
from banditto.engine.pairs import gaps, is_placed, pseudo_regret, study_of
from banditto.policies.policy import BatchedPolicy, PlacedPolicy
from banditto.problems.environment import Environment, LinearEnvironment

_AT_ONCE = 4096
_ROUNDING = 1e-9  # of a gap


class Rehearsal(NamedTuple):
    """Regret of each execution, and the pulls after which no arm that is `gap` worse was pulled again."""

    regrets: FloatArray  # (N,)
    decided: FloatArray  # (N,)
    horizon: int

    def resolved(self, share: float) -> float:
        """How often all those arms were dropped before this share of the horizon was spent."""
        return float(np.mean(self.decided <= share * self.horizon))


def rehearse(policy: BatchedPolicy[Any], environment: Environment, gap: float, executions: int, seed: int) -> Rehearsal:
    """Play that many executions, each with coins and noise of its own; the same ones for the same seed."""
    study_of(policy, environment, seed=seed, noise_seed=None, horizon=None)  # checks that the two fit together
    noise_seed = address_key("banditto/plan/1", seed)
    parts = []
    for start in range(0, executions, _AT_ONCE):
        coins = Coins(seed, start, min(_AT_ONCE, executions - start))
        noise = Noise(noise_seed, 0, start)
        if is_placed(environment) and isinstance(policy, PlacedPolicy):
            assert isinstance(environment, LinearEnvironment)
            parts.append(_placed(infinite.Execution(policy, environment, coins, noise), environment, gap, coins.count))
        else:
            parts.append(_batched(batched.Execution(policy, environment, coins, noise), environment, gap, coins.count))
    regrets, decided = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Rehearsal(regrets, decided, policy.horizon)


def _batched(
    execution: batched.Execution, environment: Environment, gap: float, count: int
) -> tuple[FloatArray, FloatArray]:
    bad = np.array(gaps(environment.means)) >= gap * (1.0 - _ROUNDING)  # (K,)
    clock = _Clock(count)
    while (plan := execution.advance()) is not None:
        clock.tick(plan.sum(axis=1), np.any(plan[:, bad] > 0, axis=1))
    return pseudo_regret(execution.pulls, environment.means), clock.decided


def _placed(
    execution: infinite.Execution, environment: LinearEnvironment, gap: float, count: int
) -> tuple[FloatArray, FloatArray]:
    clock = _Clock(count)
    while (plan := execution.advance()) is not None:
        bad = environment.best - environment.means_at(plan.places) >= gap * (1.0 - _ROUNDING)
        clock.tick(plan.pulls.sum(axis=1), np.any(bad & (plan.pulls > 0), axis=1))
    return execution.regret, clock.decided


class _Clock:
    """Pulls spent by each execution, and when it last pulled a bad arm."""

    def __init__(self, count: int) -> None:
        self.spent: FloatArray = np.zeros(count)
        self.decided: FloatArray = np.zeros(count)

    def tick(self, pulls: FloatArray | Any, bad: BoolArray) -> None:
        """One batch."""
        self.spent = self.spent + pulls
        self.decided = np.where(bad, self.spent, self.decided)
