"""Regret as it grows: the pseudo-regret of single executions at chosen pulls, exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray, IntArray
from banditto.engine import batched, infinite
from banditto.engine.pairs import Study, gaps, is_placed, pairs_per_block, pseudo_regret
from banditto.policies.policy import BatchedPolicy, PlacedPolicy, RoundPolicy
from banditto.problems.environment import LinearEnvironment

POINTS = 160
MOST_BATCHED_PAIRS = 1000  # of one block, which is simulated whole anyway
MOST_ROUND_PAIRS = 24


class Curve(NamedTuple):
    """Mean regret after so many pulls, with the band between the 5% and 95% quantiles of all executions."""

    pulls: IntArray  # (N,)
    mean: FloatArray  # (N,)
    low: FloatArray  # (N,)
    high: FloatArray  # (N,)
    executions: int


def regret_curve(study: Study, pairs: int) -> Curve:
    """The curve of the first `pairs` pairs of a study, or of as many as a picture needs."""
    grid = np.unique(np.geomspace(1, study.horizon, POINTS).astype(np.int64).clip(1, study.horizon))
    grid[-1] = study.horizon
    regrets = regrets_at(study, pairs, grid)
    low, high = np.quantile(regrets, [0.05, 0.95], axis=0)
    return Curve(grid, regrets.mean(axis=0), low, high, regrets.shape[0])


def regrets_at(study: Study, pairs: int, pulls: IntArray) -> FloatArray:
    """Regret of each execution after each number of pulls (ascending); shape (executions, N)."""
    if isinstance(study.policy, RoundPolicy):
        return _round_regrets(study, study.policy, min(pairs, MOST_ROUND_PAIRS), pulls)
    if is_placed(study.environment) and isinstance(study.policy, PlacedPolicy):
        return _placed_regrets(study, study.policy, min(pairs, pairs_per_block(study.environment)), pulls)
    return _batched_regrets(
        study, study.policy, min(pairs, MOST_BATCHED_PAIRS, pairs_per_block(study.environment)), pulls
    )


def _batched_regrets(study: Study, policy: BatchedPolicy[object], pairs: int, pulls: IntArray) -> FloatArray:
    losses = gaps(study.environment.means)
    sides = []
    for execution in batched.executions(study, policy, 0):
        regret = np.zeros((pairs, pulls.size), dtype=np.float64)
        spent = np.zeros((pairs, 1), dtype=np.int64)
        while (plan := execution.advance()) is not None:
            for arm, loss in enumerate(losses):  # the order of pulls within a batch: ascending arms
                count = plan[:pairs, arm : arm + 1]
                if loss > 0.0 and bool(np.any(count)):
                    regret += loss * np.clip(pulls - spent, 0, count)
                spent += count
        sides.append(regret)
    return np.concatenate(sides)


def _placed_regrets(study: Study, policy: PlacedPolicy[object], pairs: int, pulls: IntArray) -> FloatArray:
    environment = study.environment
    assert isinstance(environment, LinearEnvironment)
    sides = []
    for execution in infinite.executions(study, policy, 0):
        regret = np.zeros((pairs, pulls.size), dtype=np.float64)
        spent = np.zeros((pairs, 1), dtype=np.int64)
        while (plan := execution.advance()) is not None:
            losses = np.maximum(environment.best - environment.means_at(plan.places), 0.0)[:pairs]
            for slot in range(plan.pulls.shape[1]):
                count = plan.pulls[:pairs, slot : slot + 1]
                regret += losses[:, slot : slot + 1] * np.clip(pulls - spent, 0, count)
                spent += count
        sides.append(regret)
    return np.concatenate(sides)


def _round_regrets(study: Study, policy: RoundPolicy, pairs: int, pulls: IntArray) -> FloatArray:
    from banditto.engine import rounds  # compiled code is loaded only where it is used

    rows = []
    for pair in range(pairs):
        for side in (0, 1):
            execution = rounds.Execution(study, policy, side, pair)
            counts = []
            for target in pulls.tolist():
                while execution.played < target:
                    size = min(rounds.ROUNDS_PER_CHUNK, target - execution.played)
                    execution.advance(np.empty(size, dtype=np.uint16))
                counts.append(execution.pulls.copy())
            rows.append(pseudo_regret(np.array(counts), study.environment.means))
    return np.array(rows)
