"""What an action set is: a bounded set of vectors that can be maximised over, and cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Count, Real, integer, real
from banditto.core.tabular import has_order
from banditto.geometry.actions.canonical import LARGEST, MOST_FEATURES, SMALLEST

Action = tuple[float, ...]
Direction = Sequence[float] | FloatArray


@runtime_checkable
class ActionSet(Protocol):
    """Every convex set that a policy can play on; your own needs no more than this.

    `maximise` must give the same bits on every machine: use `banditto.numbers.fixed_order`, fractions or integers,
    not BLAS.

    Examples:
        >>> class Segment:
        ...     dimension = 1
        ...     def __init__(self, low=-1.0, high=1.0):
        ...         self.low, self.high = low, high
        ...     def maximise(self, direction):
        ...         return (self.high if direction[0] > 0 else self.low,)
        ...     def cut(self, normal, least):
        ...         edge = least / normal[0]
        ...         return Segment(max(self.low, edge), self.high) if normal[0] > 0 else Segment(self.low, edge)
        >>> isinstance(Segment(), ActionSet)
        True
    """

    @property
    def dimension(self) -> int:
        """The number of features."""
        ...

    def maximise(self, direction: Direction) -> Action:
        """Return an action with the largest `<direction, a>`, always the same one."""
        ...

    def cut(self, normal: Direction, least: float) -> ActionSet:
        """Return the actions with `<normal, a> >= least`; refuse if there are none."""
        ...


class Slab(NamedTuple):
    """A fact about a set: all its actions a satisfy `low <= <normal, a> <= high`."""

    normal: tuple[float, ...]
    low: float
    high: float


class ConvexSet(ABC):
    """The sets of this package: besides maximising and cutting they know their shape, which makes better bounds."""

    name: ClassVar[str]
    dimension: int

    @abstractmethod
    def maximise(self, direction: Direction) -> Action:
        """Return an action with the largest `<direction, a>`, always the same one."""

    @abstractmethod
    def cut(self, normal: Direction, least: float) -> ConvexSet:
        """Return the actions with `<normal, a> >= least`; refuse if there are none."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what `banditto.geometry.actions.action_reading.set_of` reads."""

    def vertices(self) -> FloatArray | None:
        """Return all vertices (action, feature) if they are few, else None."""
        return None

    def slabs(self) -> list[Slab]:
        """Return slabs whose intersection is the set, or holds it."""
        return []

    def reach(self) -> float | None:
        """Return the radius of a ball around 0 that is part of the set's definition; None if there is none."""
        return None


def checked_direction(direction: Direction, dimension: int, argument: str = "direction") -> FloatArray:
    """As many finite numbers as there are features."""
    if not has_order(direction):
        raise InvalidArgument(argument, direction, f"{dimension} numbers, one per feature")
    values = np.array([real(value, argument) for value in direction], dtype=np.float64)
    if values.size != dimension:
        raise InvalidArgument(argument, f"{values.size} numbers", f"{dimension} numbers, one per feature")
    return values


def checked_cut(normal: Direction, least: Real, dimension: int) -> tuple[FloatArray, float]:
    """Return the normal and the level of a half-space `<normal, a> >= least`, or refuse them."""
    values = checked_direction(normal, dimension, "normal")
    largest = float(np.max(np.abs(values)))
    if not SMALLEST <= largest <= LARGEST:
        given = "all zeros" if largest == 0.0 else f"numbers up to {largest:.3g}"
        raise InvalidArgument("normal", given, f"not zero, the largest number from {SMALLEST:g} to {LARGEST:g}")
    return values, real(least, "least")


def checked_dimension(dimension: Count) -> int:
    """Return the number of features, or refuse it: for sets that have no other argument."""
    return integer(dimension, "dimension", 1, MOST_FEATURES)


def empty(what: str) -> InvalidArgument:
    """Return the error for a set without actions; `what` is the argument that caused it."""
    return InvalidArgument(what, "an empty set", "a set with at least one action (no action satisfies all constraints)")
