"""Beta rewards. Their sums have no closed form, so every single reward is drawn, in pieces of bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditto.chance.noise import Noise, totals_by_arm
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, real
from banditto.core.rewards import Rewards, checked_means
from banditto.problems.environment import RewardKernel

_CONCENTRATIONS = "a number from 0.01 to 1e6"
_MEANS = "numbers from 0.001 to 0.999"


@dataclass(frozen=True)
class Beta:
    """Arms with Beta(c m, c (1 - m)) rewards, m the mean and c the concentration.

    Time grows with the pulls: about 50 ns each. A batch takes at most 10^7 pulls of an arm.

    Args:
        means: The mean of each arm, from 0.001 to 0.999; 2 to 1,000 arms.
        concentration: How close rewards are to their mean, 0.01 to 1e6. Default 2: uniform at the mean 1/2.

    Examples:
        >>> Beta([0.5, 0.25], concentration=3).variances
        (0.0625, 0.046875)
    """

    means: tuple[float, ...]
    concentration: float

    name: ClassVar[str] = "beta"
    rewards: ClassVar[Rewards] = Rewards("bounded", 0.5)
    largest_count: ClassVar[int] = 10**7

    def __init__(self, means: Iterable[Real], concentration: Real = 2.0) -> None:
        value = real(concentration, "concentration", _CONCENTRATIONS)
        if not 0.01 <= value <= 1e6:
            raise InvalidArgument("concentration", concentration, _CONCENTRATIONS)
        object.__setattr__(self, "concentration", value)
        object.__setattr__(self, "means", checked_means(means, 0.001, 0.999, _MEANS))

    @classmethod
    def from_means(cls, means: Iterable[Real], concentration: Real = 2.0) -> Beta:
        """Return the environment, as the constructor does; every environment has this method."""
        return cls(means, concentration)

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return totals of the pulls (replicate, arm), sums of single draws."""
        shapes = self.round_parameters()

        def total(arm: int, count: int, size: int) -> FloatArray:
            if count > self.largest_count:
                allowed = f"at most {self.largest_count:g} pulls of an arm in one batch; bernoulli takes any number"
                raise InvalidArgument("environment", f"beta with {count} pulls", allowed)
            return noise.beta_sums(float(shapes[arm, 0]), float(shapes[arm, 1]), count, size)

        return totals_by_arm(pulls, len(self.means), total)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of one reward of each arm: m (1 - m) / (concentration + 1)."""
        return tuple(mean * (1.0 - mean) / (self.concentration + 1.0) for mean in self.means)

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single reward."""
        from banditto.problems.environments import single_rewards  # compiled code is loaded only where it is used

        return single_rewards.beta

    def round_parameters(self) -> FloatArray:
        """Return the numbers that the kernel reads: the two shapes of each arm."""
        means = np.array(self.means)
        return np.stack([self.concentration * means, self.concentration * (1.0 - means)], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return name, means and concentration as plain data."""
        return {"name": self.name, "means": list(self.means), "concentration": self.concentration}
