"""Ridge regression for compiled loops: what LinUCB and linear Thompson sampling share.

Symbols  V = R'R: lambda + sum of a a' over the rounds, b: sum of a (reward - centre)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numba import njit

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real, scale
from banditto.core.horizons import checked_arms
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.geometry.actions.checking import actions_from_plain, actions_to_plain, finite_actions
from banditto.geometry.actions.finite import FiniteActions
from banditto.policies.policy import Record
from banditto.policies.shared_linear.linear_policy import check_linear, usual_centre


@dataclass(frozen=True, kw_only=True)
class RidgeRegression(WithProtocol):
    """The base of policies that estimate theta, where reward - `centre` = <theta, a> + sigma-subgaussian noise.

    `centre` is 1/2 for rewards in [0, 1] whose mean is 1/2 + <theta, a>; normal rewards have 0.
    """

    actions: FiniteActions
    sigma: float = 0.5
    centre: float = 0.5
    regularisation: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", finite_actions(self.actions))
        checked_arms(len(self.actions))
        for name in self._numbers():
            checked = real(self.centre, name) if name == "centre" else scale(getattr(self, name), name)
            object.__setattr__(self, name, checked)

    @property
    def arms(self) -> int:
        """The number of actions."""
        return len(self.actions)

    @classmethod
    def _numbers(cls) -> list[str]:
        return [field.name for field in fields(cls) if field.name != "actions"]

    @classmethod
    def made_for_linear(cls, actions: FiniteActions, rewards: Rewards, horizon: int) -> Self:
        """Return the policy made for these rewards, with their sigma."""
        return cls(actions=actions, sigma=rewards.sigma, centre=usual_centre(rewards))

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> Self:
        """Return the policy that a protocol describes, with its settings."""
        numbers = {name: from_fraction(protocol.settings.get(name), name) for name in cls._numbers()}
        return cls(actions=finite_actions(actions_from_plain(protocol.settings.get("actions"))), **numbers)

    def memory(self, arms: int) -> int:
        """Return how many numbers the kernel keeps.

        They are the last arm, log det V, a vector, R, and `|a|^2` in the norm of V^-1 for each arm.
        """
        dimension = self.actions.dimension
        return 2 + dimension + dimension**2 + arms

    def problem(self, arms: int, own: tuple[float, float, float]) -> FloatArray:
        """Return the numbers that the kernel reads: dimension, lambda, centre, three of the policy's own, features."""
        self._check_arms(arms)
        head = [self.actions.dimension, self.regularisation, self.centre, *own]
        return np.concatenate([head, self.actions.to_array().reshape(-1)])

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Accept any rewards of as many arms as there are actions; refuse others."""
        if len(means):
            self._check_arms(len(means))

    def check_actions(self, actions: Any, centre: float) -> None:
        """Refuse an environment with other actions, or with rewards that are linear around another centre."""
        check_linear(self.actions, self.centre, actions, centre)

    def _check_arms(self, arms: int) -> None:
        if arms != len(self.actions):
            raise InvalidArgument("environment", f"{arms} arms", f"{len(self.actions)} arms, as the policy has actions")

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose, including the actions."""
        numbers = {name: fraction(getattr(self, name)) for name in self._numbers()}
        return {"actions": actions_to_plain(self.actions)} | numbers

    def resolved(self) -> Mapping[str, Plain]:
        """Return an empty mapping: the settings say all."""
        return {}


_HEAD = 6  # numbers before the features
_STRETCH = 1024  # rounds after which V is made anew


@njit(cache=True, forceinline=True)
def is_due(played: int) -> bool:
    """Return whether to recompute R from scratch: often at first, when V grows fastest, then once in 1024 rounds."""
    return played % _STRETCH == 0 or (played < _STRETCH and played & (played - 1) == 0)


@njit(cache=True, forceinline=True)
def features_of(parameters: FloatArray, arms: int) -> FloatArray:
    """Return the features (arm, feature) that the kernel's parameters hold."""
    dimension = int(parameters[0])
    return parameters[_HEAD : _HEAD + arms * dimension].reshape(arms, dimension)


@njit(cache=True, forceinline=True)
def root_of(memory: FloatArray, dimension: int) -> FloatArray:
    """Return the part of the kernel's memory that holds R, the upper triangular root of V: V = R'R."""
    return memory[2 + dimension : 2 + dimension + dimension * dimension].reshape(dimension, dimension)


@njit(cache=True, error_model="numpy")
def factorise(pulls: IntArray, features: FloatArray, regularisation: float, root: FloatArray) -> None:
    """Write the upper triangular R with R'R = lambda + sum of n a a' into `root`, from the counts n of pulls."""
    size = root.shape[0]
    root[:] = 0.0
    for i in range(size):
        root[i, i] = regularisation
    for arm in range(pulls.size):
        if pulls[arm] > 0:
            for i in range(size):
                weight = pulls[arm] * features[arm, i]
                for j in range(i, size):
                    root[i, j] += weight * features[arm, j]
    for k in range(size):
        pivot = math.sqrt(root[k, k])
        for j in range(k, size):
            root[k, j] /= pivot
        for i in range(k + 1, size):
            for j in range(i, size):
                root[i, j] -= root[k, i] * root[k, j]


@njit(cache=True, error_model="numpy")
def update(root: FloatArray, vector: FloatArray) -> None:
    """Change R in place so that R'R grows by vector vector', by rotations; `vector` is overwritten."""
    for k in range(vector.size):
        pivot = math.sqrt(root[k, k] * root[k, k] + vector[k] * vector[k])
        cosine, sine = root[k, k] / pivot, vector[k] / pivot
        root[k, k] = pivot
        for j in range(k + 1, vector.size):
            old = root[k, j]
            root[k, j] = cosine * old + sine * vector[j]
            vector[j] = cosine * vector[j] - sine * old


@njit(cache=True, error_model="numpy")
def forward(root: FloatArray, vector: FloatArray) -> None:
    """Solve R'x = vector for x, and write x over `vector`."""
    for k in range(vector.size):
        vector[k] /= root[k, k]
        for j in range(k + 1, vector.size):
            vector[j] -= root[k, j] * vector[k]


@njit(cache=True, error_model="numpy")
def backward(root: FloatArray, vector: FloatArray) -> None:
    """Solve R x = vector for x, and write x over `vector`."""
    for k in range(vector.size - 1, -1, -1):
        rest = vector[k]
        for j in range(k + 1, vector.size):
            rest -= root[k, j] * vector[j]
        vector[k] = rest / root[k, k]


@njit(cache=True, forceinline=True, error_model="numpy")
def inner(left: FloatArray, right: FloatArray) -> float:
    """Return the inner product of two vectors."""
    result = 0.0
    for index in range(left.size):
        result += left[index] * right[index]
    return result


@njit(cache=True, error_model="numpy")
def weigh(record: Record, features: FloatArray, centre: float, vector: FloatArray) -> None:
    """Write the sum of a (reward - centre) over all rounds into `vector`, from each arm's sum: no errors build up."""
    pulls, sums = record[0], record[1]
    vector[:] = 0.0
    for arm in range(pulls.size):
        if pulls[arm] > 0:
            weight = sums[arm] - centre * pulls[arm]
            for index in range(vector.size):
                vector[index] += weight * features[arm, index]
