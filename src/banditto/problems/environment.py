"""What an environment is: arms with means, and exact totals of any number of pulls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.rewards import Rewards

# A single reward for compiled loops: from the arm, the law's parameters (K, P), the pair's noise key and the round.
RewardKernel = Callable[[int, FloatArray, np.uint64, int], float]


class Environment(Protocol):
    """Arms with independent rewards."""

    @property
    def name(self) -> str:
        """The name on the command line."""

    @property
    def means(self) -> tuple[float, ...]:
        """The expected reward of each arm."""

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of one reward of each arm."""

    @property
    def largest_count(self) -> int:
        """The most pulls of one arm that `draw` adds up in one batch."""

    @property
    def rewards(self) -> Rewards:
        """What may be assumed of the rewards."""

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """The summed rewards of `pulls` pulls per (replicate, arm), drawn exactly; zero where there are none."""

    def round_kernel(self) -> RewardKernel:
        """A single reward, compiled."""

    def round_parameters(self) -> FloatArray:
        """Numbers handed to the kernel, a row per arm; shape (K, P)."""

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters."""


@runtime_checkable
class LinearEnvironment(Environment, Protocol):
    """Rewards that are linear in an action's features; `means` is empty where the actions are infinitely many."""

    @property
    def actions(self) -> Any:
        """`FiniteActions` or an action set."""

    @property
    def centre(self) -> float:
        """What is left of a mean without `<theta, a>`."""

    @property
    def best(self) -> float:
        """The largest mean of any action."""

    def means_at(self, places: FloatArray) -> FloatArray:
        """The means of actions (replicate, slot, feature); shape (replicate, slot)."""

    def draw_at(self, pulls: IntArray, places: FloatArray, noise: Noise) -> FloatArray:
        """The summed rewards of `pulls` (replicate, slot) pulls of these actions; zero where there are none."""
