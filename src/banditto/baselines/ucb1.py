"""UCB1: the arm with the largest upper confidence bound.

Paper    Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem", Figure 1.
Departs  sigma = 1/2 is the paper's sqrt(2 log t / n); other subgaussian rewards scale it by 2 sigma. Ties go to the
         lowest index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from banditto.arrays import FloatArray
from banditto.baselines.scaled import Scaled
from banditto.policy import Kernel, Record


@dataclass(frozen=True, kw_only=True)
class UCB1(Scaled):
    """Plays each arm once, then the largest mean + 2 sigma sqrt(2 log(t) / n)."""

    name: ClassVar[str] = "ucb1"
    decision_version: ClassVar[int] = 1

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """The factor of log(t) under the root."""
        return np.array([8.0 * self.sigma**2])

    def kernel(self) -> Kernel:
        """The formula, compiled."""
        return choose


@njit(cache=True, forceinline=True, error_model="numpy")
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """The arm for the next round after `played` rounds; UCB1 tosses no coins."""
    averages, shares = record[2], record[3]
    if played < averages.size:
        return played
    spread = parameters[0] * math.log(played)
    best, bound = 0, -np.inf
    for arm in range(averages.size):
        upper = averages[arm] + math.sqrt(spread * shares[arm])
        if upper > bound:
            best, bound = arm, upper
    return best
