"""Thompson sampling with Gaussian posteriors.

Paper    Korda, Kaufmann and Munos 2013, "Thompson sampling for 1-dimensional exponential family bandits", for normal
         rewards of known variance, where Jeffreys' prior is flat; for bounded rewards compare Agrawal and Goyal
         2013, "Further optimal regret bounds for Thompson sampling", Algorithm 2.
Departs  Each arm is played once, as a flat prior needs. Posterior samples are coins, looked up by (round, arm), which
         a pair shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from banditto.chance.splitmix import normal
from banditto.core.arrays import FloatArray
from banditto.policies.baselines.scaled import Scaled
from banditto.policies.policy import Kernel, Record


@dataclass(frozen=True, kw_only=True)
class GaussianThompson(Scaled):
    """A baseline that plays each arm once, then the largest sample from Normal(mean, sigma^2 / n).

    Korda, Kaufmann, Munos 2013.

    Args:
        sigma: The standard deviation of one reward, 1e-6 to 1e6. Default 1/2, for rewards in [0, 1].

    Examples:
        >>> GaussianThompson(sigma=2).parameters(arms=2, horizon=1000).tolist()
        [2.0]
    """

    name: ClassVar[str] = "gaussian-thompson"
    decision_version: ClassVar[int] = 1

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers that the kernel reads: the standard deviation of one reward."""
        return np.array([self.sigma])

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of an arm by posterior samples."""
        return choose


@njit(cache=True, forceinline=True, error_model="numpy")
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the arm with the largest posterior sample, for the round after `played` rounds."""
    averages, shares = record[2], record[3]
    if played < averages.size:
        return played
    best, largest = 0, -np.inf
    for arm in range(averages.size):
        noise = normal(coin_key, played * averages.size + arm)
        sample = averages[arm] + parameters[0] * math.sqrt(shares[arm]) * noise
        if sample > largest:
            best, largest = arm, sample
    return best
