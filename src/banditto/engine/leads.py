"""Executions that note where a lead decided: what an A/A test counts.

They are the first sides of pairs, played once more, on this machine whatever the pairs were played on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import BoolArray, FloatArray
from banditto.engine.batched import Execution
from banditto.engine.block_sizes import pairs_per_block
from banditto.engine.player import Run
from banditto.policies.policy import Leading
from banditto.problems.environment import Environment


class LedExecution(Execution):
    """Many executions in step; `led` (R, 1) says in which of them a lead has decided so far."""

    def __init__(self, policy: Leading[Any], environment: Environment, coins: Coins, noise: Noise) -> None:
        super().__init__(policy, environment, coins, noise)
        self._leading = policy
        self.led: BoolArray = np.zeros((coins.count, 1), dtype=np.bool_)

    def _decide(self, totals: FloatArray) -> None:
        found = self._leading.by_lead(self.state, totals, self._coins)
        if self.spent is not None:  # a decision after the last pull changes nothing, and its totals were not drawn
            found = found & (self.spent < self.horizon)[:, np.newaxis]
        self.led |= found
        super()._decide(totals)


def count_led(run: Run, policy: Leading[Any], executions: int) -> int:
    """Return in how many of a run's first executions a lead decided; they are the first sides of its first pairs."""
    size = pairs_per_block(run.environment)
    led = 0
    for start in range(0, executions, size):
        coins, noise = Coins(run.seed, start, size), Noise(run.noise_seed, 0, start // size)
        execution = LedExecution(policy, run.environment, coins, noise)
        while execution.advance() is not None:
            pass
        led += int(execution.led[: executions - start].sum())
    return led
