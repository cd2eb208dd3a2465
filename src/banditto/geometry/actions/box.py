"""Box: every feature between its own two bounds."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Count, real
from banditto.core.tabular import items_in
from banditto.geometry.actions.canonical import LARGEST
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

MOST_VERTICES = 4096


@dataclass(frozen=True, kw_only=True)
class Box(ConvexSet):
    """The set `{a : low <= a <= high}`.

    Args:
        low: The smallest value of each feature.
        high: The largest value of each feature, at least `low`.

    Examples:
        >>> Box(low=(0.0, 0.0), high=(1.0, 0.5)).maximise((1.0, 1.0))
        (1.0, 0.5)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    dimension: int = field(init=False, repr=False)

    name: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        low, high = (
            tuple(real(value, name) for value in items_in(getattr(self, name), name)) for name in ("low", "high")
        )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if len(low) != len(high) or not low:
            raise InvalidArgument("high", f"{len(high)} numbers", f"as many as low has ({len(low)}), at least one")
        object.__setattr__(self, "dimension", checked_dimension(len(low)))
        if max(map(abs, (*low, *high))) > LARGEST:
            raise InvalidArgument("high", max(map(abs, (*low, *high))), f"numbers up to {LARGEST:g}")
        for feature, (a, b) in enumerate(zip(low, high, strict=True)):
            if a > b:
                raise InvalidArgument("high", f"{b} for feature {feature}", f"at least low, which is {a}")

    @classmethod
    def unit(cls, dimension: Count) -> Box:
        """Return the largest cube around 0 in the unit ball whose sides end after 40 binary places."""
        features = checked_dimension(dimension)
        side = math.isqrt((1 << 80) // features) / (1 << 40)
        return cls(low=(-side,) * features, high=(side,) * features)

    def maximise(self, direction: Direction) -> Action:
        """Return the corner that the signs point to; where a sign is 0, the upper bound."""
        signs = checked_direction(direction, self.dimension)
        return tuple(
            low if sign < 0 else high for sign, low, high in zip(signs.tolist(), self.low, self.high, strict=True)
        )

    def cut(self, normal: Direction, least: float) -> Polytope:
        """Return the actions with `<normal, a> >= least`, as a polytope."""
        return self.polytope().cut(*checked_cut(normal, least, self.dimension))

    def polytope(self) -> Polytope:
        """Return the same set by its 2 d half-spaces."""
        unit = np.eye(self.dimension)
        return Polytope(rows=np.vstack([unit, -unit]), bounds=(*self.high, *(-value for value in self.low)))

    def vertices(self) -> FloatArray | None:
        """Return all corners if they are at most `MOST_VERTICES`, else None."""
        if 2**self.dimension > MOST_VERTICES:
            return None
        sides = (sorted({low, high}, reverse=True) for low, high in zip(self.low, self.high, strict=True))
        return np.array(list(itertools.product(*sides)), dtype=np.float64)

    def slabs(self) -> list[Slab]:
        """Return one slab for each feature."""
        rows = np.eye(self.dimension).tolist()
        return [Slab(tuple(row), low, high) for row, low, high in zip(rows, self.low, self.high, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return name and bounds as plain data."""
        return {"type": self.name, "low": list(self.low), "high": list(self.high)}
