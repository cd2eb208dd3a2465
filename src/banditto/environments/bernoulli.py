"""Rewards 0 or 1. The total of n pulls is Binomial(n, mean), drawn exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from banditto.arrays import FloatArray, IntArray
from banditto.environments.arms import checked_means, draw_by_arm
from banditto.noise import Noise
from banditto.rewards import Rewards


@dataclass(frozen=True)
class Bernoulli:
    """Arms that pay 1 with probability `means[arm]`, else 0."""

    means: tuple[float, ...]

    name: ClassVar[str] = "bernoulli"
    rewards: ClassVar[Rewards] = Rewards("bounded", 0.5)

    def __init__(self, means: Iterable[float]) -> None:
        object.__setattr__(self, "means", checked_means(means, 0.0, 1.0, "numbers from 0 to 1"))

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Binomial totals."""
        return draw_by_arm(
            pulls, len(self.means), lambda arm, count, size: noise.binomial(count, self.means[arm], size)
        )

    def round_law(self) -> tuple[bool, float]:
        """0-or-1 valued."""
        return True, 0.0

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters."""
        return {"name": self.name, "means": list(self.means)}
