"""Instances of a linear problem: parameters that tie the best actions, or put a gap into a policy's windows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.rewards import Rewards
from banditto.geometry.actions.finite import FiniteActions
from banditto.measure.attack.search import UndecidedWindow, windows_of
from banditto.numbers.fixed_order import inner, product
from banditto.policies.shared_linear.linear_policy import largest_parameter
from banditto.problems.environment import Environment
from banditto.problems.environments.linear_rewards import LinearBernoulli, LinearGaussian

Point = tuple[float, ...]

_LONGEST = 0.999  # parameters are at most 1 long, give or take a rounding
_PLACES = (0.5, 0.25, 0.75, 0.0, 1.0)
_DIRECTIONS = 24
_MOST_TIED = 12  # actions whose pairs are tied


class LinearSpace(NamedTuple):
    """The instances that an attack on a linear policy searches; a point is theta, of length at most 1."""

    actions: Any
    rewards: Rewards
    centre: float
    windows: tuple[UndecidedWindow, ...]

    @classmethod
    def of(cls, policy: Any, rewards: Rewards) -> LinearSpace:
        """Make the space of a linear policy with these rewards."""
        widest = 2.0 * largest_parameter(rewards, policy.centre)
        return cls(policy.actions, rewards, policy.centre, tuple(windows_of(policy, widest)))

    @property
    def _slope(self) -> float:
        """The factor of <theta, a> in the mean of a reward."""
        return 0.5 if self.rewards.kind == "bounded" else 1.0

    def environment(self, point: Point) -> Environment:
        """Make an environment with this parameter."""
        if self.rewards.kind == "bounded":
            return LinearBernoulli(point, self.actions)
        return LinearGaussian(point, self.actions, self.rewards.sigma)

    def starts(self, seed: int) -> Iterator[Point]:
        """Yield parameters to begin with: no difference, ties, gaps in windows, all lengths; whatever the seed is."""
        yield (0.0,) * self.actions.dimension
        directions = [*self._ties(), *self._spread()]
        for direction in directions:
            yield tuple((_LONGEST * direction).tolist())
        for place in _PLACES:
            for window in self.windows:
                for direction in directions:
                    if (point := self._scaled(direction, window.at(place))) is not None:
                        yield point
        for length in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01):
            for direction in directions:
                yield tuple((length * direction).tolist())

    def typical(self, gap: float | None) -> Environment:
        """Make an instance that is not chosen to be hard; the second best action lags by `gap` if it can."""
        direction = self._spread()[-1]
        point = None if gap is None else self._scaled(direction, gap)
        return self.environment(point or tuple((_LONGEST * direction).tolist()))

    def widest_lead(self) -> float:
        """Find the widest gap between the best and the second best action that a parameter can bring about."""
        lead = self._lags(self._leading())
        return 0.0 if lead is None else _LONGEST * self._slope * lead

    def leading_by(self, gap: float) -> Environment:
        """Make the instance in whose direction the best action leads most, scaled so that it leads by `gap`.

        Of an infinite set, where actions come as near to the best as one likes, a parameter as long as can be.
        """
        direction = self._leading()
        point = self._scaled(direction, gap) if isinstance(self.actions, FiniteActions) else None
        return self.environment(point or tuple((_LONGEST * direction).tolist()))

    def _leading(self) -> FloatArray:
        """Return the direction in which the best action leads the second best by most."""
        directions = self._spread()
        if not isinstance(self.actions, FiniteActions):
            return directions[-1]
        points = self.actions.to_array()
        directions += [_unit(row) for row in points if inner(row, row) > 0.0]
        # nothing must be won by playing the first action without looking
        others = [d for d in directions if int(np.argmax(product(points, d))) != 0]
        return max(others or directions, key=self._lead)

    def _lead(self, direction: FloatArray) -> float:
        """Return by how much the best of finitely many actions leads along a direction; 0 for a tie."""
        best, second = np.sort(product(self.actions.to_array(), direction))[::-1][:2]
        return float(best - second)

    def _spread(self) -> list[FloatArray]:
        """Return fixed directions: along the features, and all around."""
        d = self.actions.dimension
        coins = Coins(0, 0, _DIRECTIONS)
        u, v = (np.concatenate([coins.uniform("direction", k, f) for f in range(d)], axis=1) for k in (0, 1))
        around = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * math.pi * v)
        return [_unit(row) for row in np.concatenate([np.eye(d), around])]

    def _ties(self) -> list[FloatArray]:
        """Return directions in which two actions tie for the best."""
        if not isinstance(self.actions, FiniteActions):
            return []
        points = self.actions.to_array()[:_MOST_TIED]
        found = []
        for a in range(len(points)):
            for b in range(a):
                middle, apart = points[a] + points[b], points[a] - points[b]
                if (square := inner(apart, apart)) > 0.0:  # leave of the middle what does not tell them apart
                    middle = middle - apart * (inner(apart, middle) / square)
                if inner(middle, middle) > 1e-12:
                    found.append(_unit(middle))
        return found

    def _scaled(self, direction: FloatArray, gap: float) -> Point | None:
        """Scale a direction so that the next best action that is not tied lags by `gap`; None if that cannot be."""
        lags = self._lags(direction)
        if lags is None:
            return None
        length = gap / (lags * self._slope)
        return tuple((length * direction).tolist()) if 0.0 < length <= _LONGEST else None

    def _lags(self, direction: FloatArray) -> float | None:
        if not isinstance(self.actions, FiniteActions):  # the whole width of the set
            ends = [inner(direction, np.array(self.actions.maximise(sign * direction))) for sign in (1.0, -1.0)]
            return ends[0] - ends[1] if ends[0] > ends[1] else None
        values = product(self.actions.to_array(), direction)
        behind = np.max(values) - values
        behind = behind[behind > 1e-9]
        return float(behind.min()) if behind.size else None

    def neighbours(self, point: Point, scale: float, coins: Coins, round_number: int) -> list[Point]:
        """Return a parameter near this one for each coin: longer, shorter or turned, by about `scale`."""
        size = len(point)
        draws = np.concatenate([coins.uniform("attack", round_number, part) for part in range(size + 2)], axis=1)
        found = []
        for row in draws.tolist():
            theta = np.array(point) * math.exp(scale * (2.0 * row[0] - 1.0))
            if row[1] < 0.6:
                length = max(math.sqrt(inner(theta, theta)), 0.01)
                theta = theta + scale * length * (2.0 * np.array(row[2:]) - 1.0) / math.sqrt(size)
            length = math.sqrt(inner(theta, theta))
            found.append(tuple((theta * min(1.0, _LONGEST / max(length, 1e-300))).tolist()))
        return found


def _unit(vector: FloatArray) -> FloatArray:
    return np.asarray(vector / math.sqrt(max(inner(vector, vector), 1e-300)))
