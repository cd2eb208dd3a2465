"""UCB1: the arm with the largest upper confidence bound.

Paper    Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem", Figure 1.
Departs  sigma = 1/2 is the paper's sqrt(2 log t / n); other subgaussian rewards scale it by 2 sigma. Ties go to the
         lowest index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from banditto.arrays import FloatArray
from banditto.exact import scale
from banditto.policy import Kernel, Record
from banditto.protocol import Plain, Protocol, fraction, from_fraction
from banditto.rewards import Rewards


@dataclass(frozen=True, kw_only=True)
class UCB1:
    """Plays each arm once, then the largest mean + 2 sigma sqrt(2 log(t) / n)."""

    sigma: float = 0.5

    name: ClassVar[str] = "ucb1"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", scale(self.sigma, "sigma"))

    @classmethod
    def made_for(cls, rewards: Rewards) -> UCB1:
        """With the scale of the rewards."""
        return cls(sigma=rewards.sigma)

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> UCB1:
        """With a protocol's settings."""
        return cls(sigma=from_fraction(protocol.settings.get("sigma"), "sigma"))

    def parameters(self) -> FloatArray:
        """The factor of log(t) under the root."""
        return np.array([8.0 * self.sigma**2])

    def kernel(self) -> Kernel:
        """The formula, compiled."""
        return choose

    def check_rewards(self, rewards: Rewards) -> None:
        """Any rewards will do."""

    def settings(self) -> Mapping[str, Plain]:
        """What the user chose."""
        return {"sigma": fraction(self.sigma)}

    def resolved(self) -> Mapping[str, Plain]:
        """Nothing beyond the settings."""
        return {}


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
