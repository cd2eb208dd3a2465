"""Rewards that are linear in an action's features, with Gaussian or Bernoulli noise; totals are drawn exactly.

Finitely many actions are arms like any other. Of an infinite set the engine says which actions it pulls (`draw_at`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, real, scale
from banditto.core.horizons import LONGEST_HORIZON, MOST_ARMS
from banditto.core.rewards import Rewards
from banditto.core.tabular import items_in
from banditto.geometry.actions.checking import checked_actions
from banditto.geometry.actions.finite import LONGEST, FiniteActions
from banditto.geometry.actions.sets import ActionSet, ConvexSet
from banditto.numbers.fixed_order import inner, product
from banditto.problems.environment import RewardKernel
from banditto.problems.environments.bernoulli import Bernoulli
from banditto.problems.environments.gaussian import Gaussian


@dataclass(frozen=True, eq=False)
class _Linear:
    """The base of both linear environments: theta, actions, and the mean of each action if they are finitely many."""

    theta: tuple[float, ...]
    actions: FiniteActions | ActionSet = field(repr=False)
    means: tuple[float, ...] = field(repr=False)  # empty for infinite sets
    best: float  # the largest mean of any action

    largest_count: ClassVar[int] = LONGEST_HORIZON

    def _fill(self, theta: Iterable[Real], actions: Any, centre: float, slope: float) -> None:
        """Check theta and the actions, and set them with the means, centre + slope <theta, a>."""
        checked = checked_actions(actions)
        parameter = checked_theta(theta, checked.dimension)
        values: tuple[float, ...] = ()
        if isinstance(checked, FiniteActions):
            if not 2 <= len(checked) <= MOST_ARMS:
                raise InvalidArgument("actions", f"{len(checked)} of them", f"2 to {MOST_ARMS} actions")
            found = product(checked.to_array(), np.array(parameter))
            values = tuple((centre + slope * found).tolist())
            best = max(values)
        else:
            best = centre + slope * inner(np.array(parameter), np.array(checked.maximise(parameter)))
        for name, value in (("theta", parameter), ("actions", checked), ("means", values), ("best", best)):
            object.__setattr__(self, name, value)

    def _means_at(self, places: FloatArray, centre: float, slope: float) -> FloatArray:
        """Return the means of actions (replicate, slot, feature); shape (replicate, slot)."""
        means = np.zeros(places.shape[:2])
        for feature, value in enumerate(self.theta):
            means += places[:, :, feature] * value
        return centre + slope * means

    def _described(self) -> dict[str, Any]:
        """Return theta, the actions and the best mean as plain data, with all means if they are finitely many."""
        what: dict[str, Any] = {"type": "custom", "dimension": self.actions.dimension}
        if isinstance(self.actions, FiniteActions):
            what = {"type": "finite", "actions": len(self.actions), "digest": self.actions.canonical.digest}
        elif isinstance(self.actions, ConvexSet):
            what = self.actions.to_dict()
        return {"theta": list(self.theta), "actions": what, "best": self.best} | (
            {"means": list(self.means)} if self.means else {}
        )


_IN_ORDER = "a list of numbers, in the order of the actions' features"


def checked_theta(theta: Iterable[Real], dimension: int) -> tuple[float, ...]:
    """As many numbers as features, of length 1 at most."""
    if isinstance(theta, Mapping):  # its order need not be that of the actions' features
        raise InvalidArgument("theta", "a dictionary", _IN_ORDER)
    labels = getattr(theta, "index", ())  # of a pandas series; a list has a method of that name
    if not callable(labels) and any(isinstance(label, str) for label in labels):
        raise InvalidArgument("theta", "a series with names", _IN_ORDER)
    values = tuple(real(value, "theta") for value in items_in(theta, "theta"))
    if len(values) != dimension:
        raise InvalidArgument("theta", f"{len(values)} numbers", f"{dimension} numbers, one for each feature")
    length = math.hypot(*values)
    if length > LONGEST:
        raise InvalidArgument("theta", f"length {length:.9g}", "a vector of length (Euclidean norm) at most 1")
    return values


@dataclass(frozen=True, eq=False, init=False)
class LinearGaussian(_Linear):
    """Actions: an action a pays `<theta, a>` and normal noise of standard deviation `sigma`.

    Args:
        theta: What each feature of an action pays; of length 1 at most.
        actions: A matrix with a row of features for each arm, `FiniteActions`, or an action set such as `Ball`.
        sigma: The standard deviation of the noise, 1e-4 to 1e6. Default 1.

    Examples:
        >>> LinearGaussian([0.5, 0.25], [[1, 0], [0, 1]]).means
        (0.5, 0.25)
    """

    sigma: float

    name: ClassVar[str] = "linear-gaussian"
    centre: ClassVar[float] = 0.0

    def __init__(self, theta: Iterable[Real], actions: Any, sigma: Real = 1.0) -> None:
        object.__setattr__(self, "sigma", scale(sigma, "sigma"))
        self._fill(theta, actions, 0.0, 1.0)
        if self.rewards.reach < 1.0:
            raise InvalidArgument("sigma", sigma, "at least 1e-4, so that totals stay exact enough")

    @property
    def rewards(self) -> Rewards:
        """What may be assumed of the rewards: Gaussian with the given standard deviation."""
        return Rewards("gaussian", self.sigma)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of one reward of each arm: sigma^2."""
        return (self.sigma**2,) * len(self.means)

    def means_at(self, places: FloatArray) -> FloatArray:
        """Return the means of actions (replicate, slot, feature); shape (replicate, slot)."""
        return self._means_at(places, 0.0, 1.0)

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return normal totals of the pulls (replicate, arm) of finitely many arms."""
        return Gaussian(self.means, self.sigma).draw(pulls, noise)

    def draw_at(self, pulls: IntArray, places: FloatArray, noise: Noise) -> FloatArray:
        """Return normal totals of the pulls (replicate, slot) of these actions; zero where there are none."""
        spread = self.sigma * np.sqrt(pulls) * noise.normal(pulls.size).reshape(pulls.shape)
        return np.asarray(pulls * self.means_at(places) + spread)

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single reward."""
        return Gaussian(self.means, self.sigma).round_kernel()

    def round_parameters(self) -> FloatArray:
        """Return the numbers that the kernel reads: mean and standard deviation."""
        return Gaussian(self.means, self.sigma).round_parameters()

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters as plain data; of finitely many actions their number and digest."""
        return {"name": self.name, "sigma": self.sigma} | self._described()


@dataclass(frozen=True, eq=False, init=False)
class LinearBernoulli(_Linear):
    """Actions: an action a pays 1 with probability `1/2 + <theta, a>/2`, else 0.

    Args:
        theta: What each feature of an action pays; of length 1 at most.
        actions: A matrix with a row of features for each arm, `FiniteActions`, or an action set such as `Ball`.

    Examples:
        >>> LinearBernoulli([0.5, 0.25], [[1, 0], [0, 1]]).means
        (0.75, 0.625)
    """

    name: ClassVar[str] = "linear-bernoulli"
    centre: ClassVar[float] = 0.5
    rewards: ClassVar[Rewards] = Rewards("bounded", 0.5)

    def __init__(self, theta: Iterable[Real], actions: Any) -> None:
        self._fill(theta, actions, 0.5, 0.5)
        # features and theta may be a rounding longer than 1
        object.__setattr__(self, "means", tuple(min(1.0, max(0.0, mean)) for mean in self.means))

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of one reward of each arm: p (1 - p)."""
        return tuple(mean * (1.0 - mean) for mean in self.means)

    def means_at(self, places: FloatArray) -> FloatArray:
        """Return the means of actions (replicate, slot, feature); shape (replicate, slot)."""
        return np.clip(self._means_at(places, 0.5, 0.5), 0.0, 1.0)

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return binomial totals of the pulls (replicate, arm) of finitely many arms."""
        return Bernoulli(self.means).draw(pulls, noise)

    def draw_at(self, pulls: IntArray, places: FloatArray, noise: Noise) -> FloatArray:
        """Return binomial totals of the pulls (replicate, slot) of these actions; zero where there are none."""
        return noise.binomials(pulls, self.means_at(places)).astype(np.float64)

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single reward, 0 or 1."""
        return Bernoulli(self.means).round_kernel()

    def round_parameters(self) -> FloatArray:
        """Return the numbers that the kernel reads: the means."""
        return Bernoulli(self.means).round_parameters()

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters as plain data; of finitely many actions their number and digest."""
        return {"name": self.name} | self._described()
