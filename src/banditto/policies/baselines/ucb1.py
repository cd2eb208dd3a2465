"""UCB1: the arm with the largest upper confidence bound.

Paper    Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem", Figure 1.
Departs  - sigma = 1/2 is the paper's sqrt(2 log t / n); other subgaussian rewards scale it by 2 sigma. Ties go to the
           lowest index.
         - Which arm is largest is decided without every arm's bound: one that was not pulled rises with log t alone, so
           its value at the end of a stretch of rounds is a ceiling for the whole stretch. While the arm pulled last is
           above all other ceilings it stays; otherwise only arms whose ceiling reaches the best bound are worked out.
           The choices are those of the plain formula, bit for bit.
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
class UCB1(Scaled):
    """A baseline that plays each arm once, then the largest mean + 2 sigma sqrt(2 log(t) / n).

    Auer, Cesa-Bianchi, Fischer 2002.

    Args:
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].

    Examples:
        >>> protocol = UCB1().protocol(seed=1, arms=2, horizon=1000, rho=0.1)
        >>> protocol.policy, protocol.horizon
        ('ucb1', 1000)
    """

    name: ClassVar[str] = "ucb1"
    decision_version: ClassVar[int] = 1

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the number that the kernel reads: the factor of log(t) under the root."""
        return np.array([8.0 * self.sigma**2])

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of an arm by upper bounds."""
        return choose

    def memory(self, arms: int) -> int:
        """Return how many numbers the kernel keeps from round to round: five, and a ceiling for each arm."""
        return _CEILINGS + arms


# places in the memory: the round at which the stretch is over, the arm pulled last, the largest ceiling of all others,
# and the factor under the root at the stretch's beginning and end
_END, _LAST, _RIVAL, _LEAST, _MOST, _CEILINGS = range(6)

# Products, roots and sums are rounded correctly and so keep the order of what goes in; the logarithm is off by a few
# units in the last place. That is all that the ceilings need room for.
ROOM = 2.0**-45


@compiled
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the arm for the next round after `played` rounds; UCB1 tosses no coins."""
    averages, shares, memory = record[2], record[3], record[4]
    if played < averages.size:
        return played
    last = int(memory[_LAST])
    if played < memory[_END] and averages[last] + math.sqrt(memory[_LEAST] * shares[last]) > memory[_RIVAL]:
        return last
    return compare(averages, shares, memory, played, parameters[0])


@compiled
def compare(averages: FloatArray, shares: FloatArray, memory: FloatArray, played: int, factor: float) -> int:
    """Return the arm with the largest bound after `played` rounds, and renew ceilings that are out of date."""
    ceilings = memory[_CEILINGS:]
    best = int(memory[_LAST])
    spread = factor * math.log(played)
    if played >= memory[_END]:
        end = played + 4 + (played >> 9)  # short enough for tight ceilings, long enough to be rare
        memory[_END] = end
        memory[_LEAST] = spread * (1.0 - ROOM)
        memory[_MOST] = factor * math.log(end) * (1.0 + ROOM)
        for arm in range(averages.size):
            ceilings[arm] = averages[arm] + math.sqrt(memory[_MOST] * shares[arm])
    else:
        ceilings[best] = averages[best] + math.sqrt(memory[_MOST] * shares[best])
    bound = averages[best] + math.sqrt(spread * shares[best])
    for arm in range(averages.size):
        if ceilings[arm] >= bound:
            upper = averages[arm] + math.sqrt(spread * shares[arm])
            if upper > bound or (upper == bound and arm < best):
                best, bound = arm, upper
    rival = -np.inf
    for arm in range(averages.size):
        if arm != best:
            rival = max(rival, ceilings[arm])
    memory[_LAST], memory[_RIVAL] = best, rival
    return best
