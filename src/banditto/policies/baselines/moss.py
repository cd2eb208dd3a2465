"""MOSS: upper confidence bounds that shrink with an arm's share of the horizon.

Paper    Audibert and Bubeck 2009, "Minimax policies for adversarial and stochastic bandits", section 2.
Departs  sigma = 1/2 is the paper's sqrt(max(log(T / (K n)), 0) / n); other subgaussian rewards scale it by 2 sigma.
         Ties go to the lowest index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from banditto.core.arrays import FloatArray
from banditto.policies.baselines.scaled import Scaled
from banditto.policies.policy import Kernel, Record


@dataclass(frozen=True, kw_only=True)
class MOSS(Scaled):
    """A baseline that plays each arm once, then the largest mean + 2 sigma sqrt(max(log(T / (K n)), 0) / n).

    Audibert, Bubeck 2009.

    Args:
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].

    Examples:
        >>> MOSS().parameters(arms=2, horizon=1000).tolist()  # 2 sigma, and T / K
        [1.0, 500.0]
    """

    name: ClassVar[str] = "moss"
    decision_version: ClassVar[int] = 1

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers that the kernel reads: 2 sigma, and T/K, each arm's share of the horizon."""
        return np.array([2.0 * self.sigma, horizon / arms])

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of an arm by upper bounds."""
        return choose


@njit(cache=True, forceinline=True, error_model="numpy")
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the arm for the next round after `played` rounds; MOSS tosses no coins."""
    averages, shares = record[2], record[3]
    if played < averages.size:
        return played
    best, bound = 0, -np.inf
    for arm in range(averages.size):
        excess = max(math.log(parameters[1] * shares[arm]), 0.0)
        upper = averages[arm] + parameters[0] * math.sqrt(excess * shares[arm])
        if upper > bound:
            best, bound = arm, upper
    return best
