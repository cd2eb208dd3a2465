"""Polytope: everything that satisfies finitely many linear inequalities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument, NoMaximum
from banditto.core.exact import Real, real
from banditto.core.tabular import items_in
from banditto.geometry.actions.canonical import checked_matrix
from banditto.geometry.actions.exact_simplex import Vertex
from banditto.geometry.actions.linear_program import LinearProgram
from banditto.geometry.actions.sets import Action, ConvexSet, Direction, Slab, checked_cut, checked_direction
from banditto.geometry.actions.vertices import MOST_BASES, all_vertices
from banditto.numbers.fixed_order import inner

_VERTEX_WORK = 4_000_000  # products of integers that listing the vertices may cost: a second or two


@dataclass(frozen=True, init=False, eq=False)
class Polytope(ConvexSet):
    """The set `{a : rows a <= bounds}`, the numbers taken as they are, to the last bit.

    Args:
        rows: A matrix with a row for each inequality and a column for each feature.
        bounds: The right side of each inequality. A set that is empty or unbounded is refused.

    Examples:
        >>> triangle = Polytope(rows=[[1, 0], [0, 1], [-1, -1]], bounds=[1, 1, 1])
        >>> triangle.maximise((1.0, 0.5))
        (1.0, 1.0)
    """

    rows: FloatArray
    bounds: tuple[float, ...]
    dimension: int

    name: ClassVar[str] = "polytope"

    def __init__(self, *, rows: Sequence[Sequence[float]] | FloatArray, bounds: Iterable[Real]) -> None:
        matrix = checked_matrix(rows, "rows") + 0.0  # a copy, in which -0 is 0
        matrix.setflags(write=False)
        limits = tuple(real(value, "bounds") for value in items_in(bounds, "bounds"))
        if len(limits) != matrix.shape[0]:
            raise InvalidArgument("bounds", f"{len(limits)} numbers", f"{matrix.shape[0]}, one per row")
        largest = float(np.max(np.abs(matrix)))
        if not 1e-100 < largest < 1e100 or max(map(abs, limits)) > 1e100:
            raise InvalidArgument("rows", f"numbers up to {largest:.3g}", "numbers from 1e-100 to 1e100, not all 0")
        object.__setattr__(self, "rows", matrix)
        object.__setattr__(self, "bounds", limits)
        object.__setattr__(self, "dimension", int(matrix.shape[1]))
        _ = self.program  # now, so that a set without maxima is refused at once

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polytope) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.rows.tobytes(), self.bounds))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.rows, self.bounds)  # the solver's memory cannot be sent to another process

    @cached_property
    def program(self) -> LinearProgram:
        """The linear program, with its solver kept warm."""
        try:
            program = LinearProgram(self.rows, np.array(self.bounds))
            program.maximise(np.zeros(self.dimension))
        except NoMaximum as error:
            raise InvalidArgument(
                "polytope", f"an {error.trouble} set ({error.why})", "a bounded set with at least one action"
            ) from None
        return program

    def vertex(self, direction: Direction) -> Vertex:
        """Return the first maximiser (see `exact_simplex`) in exact fractions."""
        return self.program.maximise(checked_direction(direction, self.dimension))

    def maximise(self, direction: Direction) -> Action:
        """Return the first maximiser, each coordinate rounded once, to the nearest float."""
        return self.program.action(checked_direction(direction, self.dimension))

    def cut(self, normal: Direction, least: float) -> Polytope:
        """Return the actions with `<normal, a> >= least`: the set with one more row."""
        values, least = checked_cut(normal, least, self.dimension)
        return Polytope(rows=np.vstack([self.rows, -values[None, :]]), bounds=(*self.bounds, -least))

    def vertices(self) -> FloatArray | None:
        """Return all vertices in lexicographic order if they are few, else None."""
        return self._vertices

    @cached_property
    def _vertices(self) -> FloatArray | None:
        """Return all vertices in lexicographic order if they are few, else None; worked out once."""
        count, dimension = self.rows.shape
        most = min(MOST_BASES, _VERTEX_WORK // (count * dimension * dimension))
        if most <= dimension:
            return None
        found = all_vertices(self.program.rows, self.program.maximise(np.zeros(dimension)), most)
        return None if found is None else np.array([[float(value) for value in point] for point in found])

    def slabs(self) -> list[Slab]:
        """Return a slab for each row, between its minimum and its bound."""
        return self._slabs

    @cached_property
    def _slabs(self) -> list[Slab]:
        """Return a slab for each row, between its minimum and its bound; worked out once."""
        known = {row.tobytes(): bound for row, bound in zip(self.rows, self.bounds, strict=True)}
        slabs = []
        for row, bound in zip(self.rows, self.bounds, strict=True):
            if row.any():
                opposite = known.get((0.0 - row).tobytes())
                low = self._lowest(row) if opposite is None else -opposite
                slabs.append(Slab(tuple(row.tolist()), low, bound))
        return slabs

    def _lowest(self, row: FloatArray) -> float:
        """Return a float that is at most the smallest <row, a> over the set, and hardly less."""
        action = np.array(self.program.action(-row))
        return inner(row, action) - 2.0**-45 * inner(np.abs(row), np.abs(action))

    def to_dict(self) -> dict[str, Any]:
        """Return name, rows and bounds as plain data."""
        return {"type": self.name, "rows": self.rows.tolist(), "bounds": list(self.bounds)}


def _again(rows: FloatArray, bounds: tuple[float, ...]) -> Polytope:
    return Polytope(rows=rows, bounds=bounds)
