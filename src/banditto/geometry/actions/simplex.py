"""Simplex: mixtures of d pure actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry.actions.polytope import Polytope
from banditto.geometry.actions.sets import (
    Action,
    ConvexSet,
    Direction,
    Slab,
    checked_cut,
    checked_dimension,
    checked_direction,
)
from banditto.numbers.fixed_order import largest


@dataclass(frozen=True, kw_only=True)
class Simplex(ConvexSet):
    """The set `{a : a >= 0, sum a = 1}`: mixtures of d pure actions.

    It lies in a hyperplane that misses 0, so its actions span all d features.

    Args:
        dimension: The number of pure actions, 1 or more.

    Examples:
        >>> Simplex(dimension=3).maximise((1.0, 5.0, 2.0))
        (0.0, 1.0, 0.0)
    """

    dimension: int

    name: ClassVar[str] = "simplex"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checked_dimension(self.dimension))

    def maximise(self, direction: Direction) -> Action:
        """Return the unit vector of the largest entry, the first of ties."""
        best = largest(checked_direction(direction, self.dimension))
        return tuple(float(feature == best) for feature in range(self.dimension))

    def cut(self, normal: Direction, least: float) -> Polytope:
        """Return the actions with `<normal, a> >= least`, as a polytope."""
        return self.polytope().cut(*checked_cut(normal, least, self.dimension))

    def polytope(self) -> Polytope:
        """Return the same set by d + 2 half-spaces."""
        ones = np.ones((1, self.dimension))
        return Polytope(
            rows=np.vstack([-np.eye(self.dimension), ones, -ones]), bounds=(0.0,) * self.dimension + (1.0, -1.0)
        )

    def vertices(self) -> FloatArray:
        """Return the unit vectors."""
        return np.eye(self.dimension)

    def slabs(self) -> list[Slab]:
        """Return the slabs of every feature between 0 and 1, and of the sum 1."""
        rows = np.eye(self.dimension).tolist()
        return [*(Slab(tuple(row), 0.0, 1.0) for row in rows), Slab((1.0,) * self.dimension, 1.0, 1.0)]

    def to_dict(self) -> dict[str, Any]:
        """Return name and dimension as plain data."""
        return {"type": self.name, "dimension": self.dimension}
