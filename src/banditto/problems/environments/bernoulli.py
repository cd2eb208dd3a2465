"""Rewards 0 or 1. The total of n pulls is Binomial(n, mean), drawn exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.exact import Real
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.rewards import Rewards, checked_means
from banditto.problems.environment import RewardKernel


@dataclass(frozen=True)
class Bernoulli:
    """Arms that pay 1 with probability `means[arm]`, else 0.

    Args:
        means: The probability of each arm, from 0 to 1; 2 to 1,000 arms.

    Examples:
        >>> Bernoulli([0.9, 0.8, 0.7]).means
        (0.9, 0.8, 0.7)
    """

    means: tuple[float, ...]

    name: ClassVar[str] = "bernoulli"
    rewards: ClassVar[Rewards] = Rewards("bounded", 0.5)
    largest_count: ClassVar[int] = LONGEST_HORIZON

    def __init__(self, means: Iterable[Real]) -> None:
        object.__setattr__(self, "means", checked_means(means, 0.0, 1.0, "numbers from 0 to 1"))

    @classmethod
    def from_means(cls, means: Iterable[Real]) -> Bernoulli:
        """Return the environment, as the constructor does; every environment has this method."""
        return cls(means)

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return binomial totals of the pulls (replicate, arm)."""
        return noise.binomial_totals(pulls, self.means)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of one reward of each arm: p (1 - p)."""
        return tuple(mean * (1.0 - mean) for mean in self.means)

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single reward, 0 or 1."""
        from banditto.problems.environments import single_rewards  # compiled code is loaded only where it is used

        return single_rewards.bernoulli

    def round_parameters(self) -> FloatArray:
        """Return the numbers that the kernel reads: the means."""
        return np.array(self.means)[:, np.newaxis]

    def to_dict(self) -> dict[str, Any]:
        """Return name and means as plain data."""
        return {"name": self.name, "means": list(self.means)}
