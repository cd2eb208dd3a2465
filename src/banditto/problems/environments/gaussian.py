"""Normal rewards. The total of n pulls is Normal(n mean, n sigma^2), drawn exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.exact import Real, scale
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.rewards import Rewards, checked_means
from banditto.problems.environment import RewardKernel


@dataclass(frozen=True)
class Gaussian:
    """Arms that pay a normal reward with mean `means[arm]` and standard deviation `sigma`.

    Args:
        means: The mean of each arm, at most ten thousand standard deviations from 0; 2 to 1,000 arms.
        sigma: The standard deviation of one reward, 1e-6 to 1e6. Default 1/2.

    Examples:
        >>> Gaussian([1.0, 0.5], sigma=2).variances
        (4.0, 4.0)
    """

    means: tuple[float, ...]
    sigma: float

    name: ClassVar[str] = "gaussian"
    largest_count: ClassVar[int] = LONGEST_HORIZON

    def __init__(self, means: Iterable[Real], sigma: Real = 0.5) -> None:
        object.__setattr__(self, "sigma", scale(sigma, "sigma"))
        reach = self.rewards.reach
        allowed = f"numbers from {-reach:g} to {reach:g}, ten thousand standard deviations"
        object.__setattr__(self, "means", checked_means(means, -reach, reach, allowed))

    @property
    def rewards(self) -> Rewards:
        """What may be assumed of the rewards: Gaussian with the given standard deviation."""
        return Rewards("gaussian", self.sigma)

    @classmethod
    def from_means(cls, means: Iterable[Real], sigma: Real = 0.5) -> Gaussian:
        """Return the environment, as the constructor does; every environment has this method."""
        return cls(means, sigma)

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return normal totals of the pulls (replicate, arm)."""

        return noise.normal_totals(pulls, self.means, self.sigma)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of one reward of each arm: sigma^2."""
        return (self.sigma**2,) * len(self.means)

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single reward."""
        from banditto.problems.environments import single_rewards  # compiled code is loaded only where it is used

        return single_rewards.gaussian

    def round_parameters(self) -> FloatArray:
        """Return the numbers that the kernel reads: mean and standard deviation."""
        return np.array([[mean, self.sigma] for mean in self.means])

    def to_dict(self) -> dict[str, Any]:
        """Return name, means and sigma as plain data."""
        return {"name": self.name, "means": list(self.means), "sigma": self.sigma}
