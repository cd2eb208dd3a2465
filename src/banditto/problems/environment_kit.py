"""What authors of environments import, from one place: `from banditto.problems.environment_kit import Rewards, Noise`.

The interfaces (`Environment`, `LinearEnvironment`), what is known of rewards, the noise that they are drawn with, the
arrays that totals come in, and checked numbers. docs/environments.md and examples/custom_environment.py use it.
"""

from __future__ import annotations

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, integer, open_unit, real, scale
from banditto.core.horizons import LONGEST_HORIZON, MOST_ARMS, checked_arms
from banditto.core.rewards import RewardKind, Rewards, checked_means
from banditto.problems.environment import Environment, LinearEnvironment, RewardKernel

__all__ = [
    "LONGEST_HORIZON",
    "MOST_ARMS",
    "Environment",
    "FloatArray",
    "IntArray",
    "InvalidArgument",
    "LinearEnvironment",
    "Noise",
    "Real",
    "RewardKernel",
    "RewardKind",
    "Rewards",
    "checked_arms",
    "checked_means",
    "integer",
    "open_unit",
    "real",
    "scale",
]
