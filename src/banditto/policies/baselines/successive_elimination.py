"""Successive elimination: every surviving arm in turn, dropped once it is clearly behind.

Paper    Even-Dar, Mannor and Mansour 2006, "Action elimination and stopping conditions for the multi-armed bandit and
         reinforcement learning problems", Algorithm 3 (unknown means), with c = 5.
Symbols  t: rewards of each surviving arm, K: arms, delta: failure probability
Departs  delta = 1/T, as regret calls for; the last survivor is played to the end. sigma = 1/2 is the paper's radius
         sqrt(log(c K t^2 / delta) / t); other subgaussian rewards scale it by 2 sigma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from banditto.chance.compiling import compiled
from banditto.core.arrays import FloatArray
from banditto.policies.baselines.scaled import Scaled
from banditto.policies.policy import Kernel, Record


@dataclass(frozen=True, kw_only=True)
class SuccessiveElimination(Scaled):
    """A baseline that plays survivors in turn, and drops those whose mean is two radii or more below the best one's.

    Even-Dar, Mannor, Mansour 2006.

    Args:
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].

    Examples:
        >>> SuccessiveElimination().protocol(seed=1, arms=3, horizon=1000, rho=0.1).policy
        'successive-elimination'
    """

    name: ClassVar[str] = "successive-elimination"
    decision_version: ClassVar[int] = 1

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers p and q that the kernel reads: two radii are p sqrt((q + 2 log t) / t)."""
        return np.array([4.0 * self.sigma, math.log(5.0 * arms * horizon)])

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of the next survivor."""
        return choose


@compiled
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the survivor with the fewest pulls; once all have equally many, drop arms first. No coins are tossed."""
    pulls, averages, dropped = record[0], record[2], record[4]
    following, fewest, most, leader, survivors = -1, np.int64(0), np.int64(0), -np.inf, 0
    for arm in range(pulls.size):
        if dropped[arm] == 0.0:
            survivors += 1
            if following < 0 or pulls[arm] < fewest:
                following, fewest = arm, pulls[arm]
            most = max(most, pulls[arm])
            leader = max(leader, averages[arm])
    if survivors == 1 or fewest < most or most == 0:
        return following
    cut = parameters[0] * math.sqrt((parameters[1] + 2.0 * math.log(most)) / most)
    following = -1
    for arm in range(pulls.size):
        if dropped[arm] == 0.0:
            if leader - averages[arm] >= cut:
                dropped[arm] = 1.0
            elif following < 0:
                following = arm
    return following
