"""What an environment is: arms with means, and exact totals of any number of pulls."""

from __future__ import annotations

from typing import Any, Protocol

from banditto.arrays import FloatArray, IntArray
from banditto.noise import Noise
from banditto.rewards import Rewards


class Environment(Protocol):
    """Arms with independent rewards."""

    @property
    def name(self) -> str:
        """The name on the command line."""

    @property
    def means(self) -> tuple[float, ...]:
        """The expected reward of each arm."""

    @property
    def rewards(self) -> Rewards:
        """What may be assumed of the rewards."""

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """The summed rewards of `pulls` pulls per (replicate, arm), drawn exactly; zero where there are none."""

    def round_law(self) -> tuple[bool, float]:
        """Single rewards for compiled loops: (valued 0 or 1, standard deviation if Gaussian)."""

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters."""
