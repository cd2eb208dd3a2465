"""Finitely many actions, given by their features."""

from __future__ import annotations

import csv
import math
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.input_files import MIB, Unreadable, text_lines
from banditto.geometry.actions.canonical import BITS, CanonicalActions, canonical, checked_matrix, digest_of
from banditto.geometry.actions.sets import Action, Direction, checked_cut, checked_direction, empty
from banditto.numbers.fixed_order import largest, linear_forms

LONGEST = 1.0 + 1e-9  # of theta: decimals that somebody rounded
_ROUNDING = 2.0**-BITS  # of each feature: what was written down as it was used must be read again


@dataclass(frozen=True, init=False, eq=False)
class FiniteActions:
    """Finitely many actions: K of them with d features, of length 1 at most.

    Args:
        actions: A matrix with a row of features for each action.
        normalise: Whether to divide all actions by the longest one first. Default: longer actions than 1 are refused.
        arms: The numbers of the actions among those that were given first: a cut keeps them. Default 0 to K - 1.

    Examples:
        >>> actions = FiniteActions([[3, 0], [0, 4], [1, 1]], normalise=True)
        >>> len(actions), actions.dimension, actions.maximise((0, 1))
        (3, 2, (0.0, 1.0))
        >>> actions.cut((1, 0), 0.2).arms
        (0, 2)
    """

    canonical: CanonicalActions = field(repr=False)
    arms: tuple[int, ...] = field(repr=False)

    name: ClassVar[str] = "finite"

    def __init__(self, actions: Any, *, normalise: bool = False, arms: tuple[int, ...] | None = None) -> None:
        if not isinstance(actions, CanonicalActions):
            actions = _rounded(actions, normalise)
        object.__setattr__(self, "canonical", actions)
        object.__setattr__(self, "arms", tuple(range(actions.points.shape[1])) if arms is None else arms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteActions) and (self.arms, self.canonical.digest) == (
            other.arms,
            other.canonical.digest,
        )

    def __repr__(self) -> str:
        return f"FiniteActions({len(self.arms)} x {self.dimension}, {self.canonical.digest[:8]})"

    def __hash__(self) -> int:
        return hash((self.arms, self.canonical.digest))

    def __len__(self) -> int:
        return len(self.arms)

    @classmethod
    def load(cls, path: str | Path, *, normalise: bool = False) -> FiniteActions:
        """Read a CSV file, one action a line, an optional line of names before them; return the actions."""
        return cls(read_csv(path), normalise=normalise)

    @classmethod
    def fine(cls, actions: Any, bits: int = 45) -> FiniteActions:
        """Return actions rounded to 45 binary places instead of 20: for actions that every machine computes alike."""
        _rounded(actions, normalise=False)  # is checked as all actions are
        return cls(canonical(actions, bits=bits))

    @classmethod
    def of_integers(cls, rows: list[list[int]], exponents: list[int]) -> FiniteActions:
        """Return the actions of integers (action, feature) and the unit 2^e of each feature, as protocols hold them."""
        matrix = checked_matrix(rows, "actions")
        _, size = _longest(np.ldexp(matrix, np.array(exponents)))
        if size > 1.0 + 2.0 * _ROUNDING * math.sqrt(matrix.shape[1]):
            raise InvalidArgument("actions", f"length {size:.9g}", "actions of length at most 1")
        points = np.array(matrix.T, order="C")
        points.setflags(write=False)
        return cls(CanonicalActions(points, tuple(exponents), digest_of(points, exponents)))

    @property
    def dimension(self) -> int:
        """The number of features."""
        return int(self.canonical.points.shape[0])

    def maximise(self, direction: Direction) -> Action:
        """Return the best action, the first of ties."""
        return self.canonical.action(largest(self._values(checked_direction(direction, self.dimension))))

    def cut(self, normal: Direction, least: float) -> FiniteActions:
        """Return the actions with `<normal, a> >= least`, with their old numbers; refuse if there are none."""
        values, least = checked_cut(normal, least, self.dimension)
        kept = np.flatnonzero(self._values(values) >= least)
        if not kept.size:
            raise empty("actions")
        return self.kept([int(index) for index in kept])

    def kept(self, indices: list[int]) -> FiniteActions:
        """Return the actions at these places of this set, with their old numbers."""
        points = np.ascontiguousarray(self.canonical.points[:, indices])
        exponents, bits = self.canonical.exponents, self.canonical.bits
        left = CanonicalActions(points, exponents, digest_of(points, exponents), bits)
        return FiniteActions(left, arms=tuple(self.arms[index] for index in indices))

    def _values(self, direction: FloatArray) -> FloatArray:
        return linear_forms(self.canonical.points, np.ldexp(direction, np.array(self.canonical.exponents)))

    def to_array(self) -> FloatArray:
        """Return the actions (action, feature) as they are used: in multiples of 2^-20 of each feature's scale."""
        return np.ascontiguousarray(np.ldexp(self.canonical.points, np.array(self.canonical.exponents)[:, None]).T)


def _rounded(actions: Any, normalise: bool) -> CanonicalActions:
    """Return the actions as integers, after dividing by the longest if asked, or refusing actions longer than 1."""
    matrix = checked_matrix(actions, "actions")
    longest, size = _longest(matrix)
    if size > 1.0 + _ROUNDING * math.sqrt(matrix.shape[1]) and not normalise:
        given = f"length {size:.9g} of action {longest}"
        raise InvalidArgument(
            "actions",
            given,
            "rows of length at most 1 (FiniteActions(..., normalise=True) divides by the longest)",
        )
    return canonical(matrix / size if normalise and size > 0.0 else matrix)


def _longest(matrix: FloatArray) -> tuple[int, float]:
    """Return the number of the longest action and its length; scaled, so that no square overflows or vanishes."""
    top = float(np.max(np.abs(matrix)))
    scale = math.frexp(top)[1] if top else 0
    scaled = np.ldexp(np.ascontiguousarray(matrix.T), -scale)
    squares = np.zeros(matrix.shape[0])
    for feature in scaled:
        squares += feature * feature
    index = largest(squares)
    return index, math.ldexp(math.sqrt(float(squares[index])), scale)


def read_csv(path: str | Path) -> list[list[float]]:
    """Return the numbers of a CSV file, row by row; a first line without a number in it is skipped as a header."""
    try:
        with closing(text_lines(path, 256 * MIB)) as text:
            lines = [(number, row) for number, row in enumerate(csv.reader(text), 1) if any(map(str.strip, row))]
    except (Unreadable, csv.Error) as error:
        raise InvalidArgument("actions", str(path), f"a CSV file that can be read ({error})") from None
    if lines and all(_number(cell) is None for cell in lines[0][1]):
        lines = lines[1:]
    if not lines:
        raise InvalidArgument("actions", f"{path} without a row of numbers", "a CSV file with one action a line")
    rows = []
    for number, row in lines:
        if len(row) != len(lines[0][1]):
            given = f"{len(row)} columns in line {number} of {path}"
            raise InvalidArgument("actions", given, f"{len(lines[0][1])} columns in every line")
        values = [_number(cell) for cell in row]
        for cell, value in zip(row, values, strict=True):
            if value is None or not math.isfinite(value):
                raise InvalidArgument("actions", f"{cell.strip()!r} in line {number} of {path}", "finite numbers")
        rows.append([value for value in values if value is not None])
    return rows


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
