"""What an environment is: arms with means, and exact totals of any number of pulls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NotRequired, Protocol, runtime_checkable

import numpy as np
from typing_extensions import TypedDict

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.json_types import AboveZero, Keywords, OpenObject
from banditto.core.rewards import Rewards
from banditto.problems.reward_log import LogContent

# A single reward for compiled loops: from the arm, the law's parameters (K, P), the pair's noise key and the round.
RewardKernel = Callable[[int, FloatArray, np.uint64, int], float]


_Means = Annotated[list[float], Keywords(minItems=2)]
_Theta = Annotated[
    list[float],
    Keywords(minItems=1, description="of a linear environment: what each feature of an action pays"),
]
_Actions = Annotated[
    dict[str, Any],
    Keywords(required=["type"], description="its actions: how many and their digest, or the action set"),
]
_Best = Annotated[float, Keywords(description="the largest mean of any action")]


class _Parameters(TypedDict):
    """The keys that the content of every environment may have."""

    name: str
    sigma: NotRequired[AboveZero]
    concentration: NotRequired[AboveZero]
    arms: NotRequired[Annotated[list[Any], Keywords(minItems=2)]]


class ArmsContent(_Parameters):
    """An environment whose arms have known means, as plain data."""

    means: _Means
    theta: NotRequired[_Theta]
    actions: NotRequired[_Actions]
    best: NotRequired[_Best]


class ActionsContent(_Parameters):
    """A linear environment as plain data; it has no means if there are infinitely many actions."""

    theta: _Theta
    actions: _Actions
    best: _Best
    means: NotRequired[_Means]


class LoggedArmsContent(ArmsContent):
    """An environment of arms as plain data, perhaps with the log that its rewards come from."""

    log: NotRequired[LogContent]


class LoggedActionsContent(ActionsContent):
    """A linear environment as plain data, perhaps with the log that its rewards come from."""

    log: NotRequired[LogContent]


# what `Environment.to_dict` returns: an environment of somebody else's may have keys of its own
EnvironmentContent = Annotated[dict[str, Any], OpenObject(ArmsContent, ActionsContent)]
LoggedContent = Annotated[dict[str, Any], OpenObject(LoggedArmsContent, LoggedActionsContent)]


class Environment(Protocol):
    """Arms with independent rewards, which can be drawn."""

    @property
    def name(self) -> str:
        """The name of the environment on the command line."""

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
        """Return the summed rewards of `pulls` pulls per (replicate, arm), drawn exactly; zero where there are none."""

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single reward."""

    def round_parameters(self) -> FloatArray:
        """Return the numbers handed to the kernel, a row per arm; shape (K, P)."""

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters as plain data."""


@runtime_checkable
class LinearEnvironment(Environment, Protocol):
    """Rewards that are linear in an action's features; `means` is empty where the actions are infinitely many."""

    @property
    def actions(self) -> Any:
        """The actions: `FiniteActions` or an action set."""

    @property
    def centre(self) -> float:
        """The mean of an action whose `<theta, a>` is 0."""

    @property
    def best(self) -> float:
        """The largest mean of any action."""

    def means_at(self, places: FloatArray) -> FloatArray:
        """Return the means of actions (replicate, slot, feature); shape (replicate, slot)."""

    def draw_at(self, pulls: IntArray, places: FloatArray, noise: Noise) -> FloatArray:
        """Return the summed rewards of `pulls` (replicate, slot) pulls of these actions; zero where there are none."""
