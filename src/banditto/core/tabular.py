"""Data as users have it: lists, dictionaries, generators, arrays, and frames of pandas, polars or anything alike.

A frame is known by its methods, so that none of these libraries is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeGuard

import numpy as np

from banditto.core.errors import InvalidArgument, shown

_MATRIX = "a matrix with a row of numbers for each action"


class Frame(Protocol):
    """A data frame: of pandas, of polars, or alike."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the column of this name."""


def is_frame(data: object) -> TypeGuard[Frame]:
    """Say whether this is a frame: it has named columns, and its columns can be had by their names."""
    if isinstance(data, type | str | Mapping | np.ndarray) or not hasattr(data, "__getitem__"):
        return False
    return hasattr(data, "column_names") or (
        hasattr(data, "columns") and any(hasattr(data, name) for name in ("to_numpy", "__dataframe__", "__array__"))
    )


def column_names(frame: Frame) -> list[Any]:
    """Return the names of a frame's columns, in order."""
    return list(getattr(frame, "column_names", frame.columns))  # Arrow's tables call them otherwise


def column_of(frame: Frame, name: Any) -> list[Any]:
    """Return the values of a column, as Python's own numbers and texts."""
    found = frame[name]
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(found, method):
            return list(getattr(found, method)())
    return list(found)


def columns_named(frame: Frame, wanted: Sequence[str], argument: str) -> list[list[Any]]:
    """Return the values of these columns; each must be there once."""
    names = column_names(frame)
    for name in wanted:
        if names.count(name) != 1:
            there = ", ".join(str(one) for one in names[:20]) + (", ..." if len(names) > 20 else "")
            given = f"the column {name} {names.count(name)} times" if name in names else f"columns {there or 'none'}"
            raise InvalidArgument(argument, given, f"a frame with one column {name}")
    return [column_of(frame, name) for name in wanted]


def matrix_rows(data: Any, argument: str) -> Any:
    """Return the rows of a matrix as a list, or an array as it is; rows may be dictionaries, all with the same keys.

    A dictionary has an entry for each row, by its name, which nobody asks for again. Of a frame all columns are used.
    """
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise InvalidArgument(argument, f"an array of shape {data.shape}", _MATRIX)
        return data
    if is_frame(data):
        return _frame_rows(data, argument)
    if isinstance(data, Mapping):
        data = list(data.values())
    if not has_order(data):
        if hasattr(data, "__array__"):
            return np.asarray(data)
        raise InvalidArgument(argument, data, _MATRIX)
    rows = list(data)
    if not rows:
        raise InvalidArgument(argument, "no rows", _MATRIX)
    if all(isinstance(row, Mapping) for row in rows):
        rows = _record_rows(rows, argument)
    return [_row(row, number, argument) for number, row in enumerate(rows)]


def _frame_rows(frame: Frame, argument: str) -> list[list[Any]]:
    names = column_names(frame)
    if len(set(names)) < len(names):
        raise InvalidArgument(argument, "two columns of one name", "a frame whose columns have different names")
    columns = [column_of(frame, name) for name in names]
    if not columns or not columns[0]:
        raise InvalidArgument(argument, f"a frame with {len(columns)} columns and no rows", _MATRIX)
    for name, values in zip(names, columns, strict=True):
        for value in values:
            if isinstance(value, str) or value is None:
                given = f"{'nothing' if value is None else shown(value)} in the column {name}"
                raise InvalidArgument(argument, given, "a frame whose columns are all numbers, without gaps")
    return [list(row) for row in zip(*columns, strict=True)]


def _record_rows(rows: Sequence[Mapping[Any, Any]], argument: str) -> list[list[Any]]:
    keys = list(rows[0])
    for number, row in enumerate(rows):
        if set(row) != set(keys):
            given = f"row {number} with the keys {', '.join(map(str, row)) or 'none'}"
            raise InvalidArgument(argument, given, f"the keys of row 0 in every row: {', '.join(map(str, keys))}")
    return [[row[key] for key in keys] for row in rows]


def _row(row: Any, number: int, argument: str) -> list[Any]:
    if isinstance(row, Mapping) or not has_order(row):
        raise InvalidArgument(argument, f"{shown(row)} as row {number}", _MATRIX)
    return list(row)


def items_in(data: Any, argument: str, what: str = "a list of numbers") -> list[Any]:
    """Return the items of a list, a generator, a dictionary (its values), a series, or a frame with one column."""
    if is_frame(data):
        names = column_names(data)
        if len(names) != 1:
            raise InvalidArgument(argument, f"a frame with {len(names)} columns", f"{what}, or a frame with one column")
        return column_of(data, names[0])
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, np.ndarray) and data.ndim != 1:
        raise InvalidArgument(argument, f"an array of shape {data.shape}", what)
    if not has_order(data):
        raise InvalidArgument(argument, data, what)
    return list(data)


def has_order(data: object) -> TypeGuard[Iterable[Any]]:
    """Say whether this is a number of items one after the other; text is not, and a set has no order."""
    if isinstance(data, str | bytes | AbstractSet | type) or (isinstance(data, np.ndarray) and not data.ndim):
        return False
    return isinstance(data, Iterable)


def pairs_in(data: Any, names: tuple[str, str], argument: str) -> Iterator[tuple[Any, Any]]:
    """Yield pairs from two columns of a frame, from dictionaries with these two keys, or from pairs as they are.

    What is neither is refused with its number, from 1.
    """
    if is_frame(data):
        first, second = columns_named(data, names, argument)
        yield from zip(first, second, strict=True)
        return
    allowed = f"pairs ({names[0]}, {names[1]}), or a frame with these columns"
    if not has_order(data):
        raise InvalidArgument(argument, data, allowed)
    for number, row in enumerate(data, 1):
        if isinstance(row, Mapping):
            if not set(names) <= set(row):
                given = f"the keys {', '.join(map(str, row)) or 'none'} in row {number}"
                raise InvalidArgument(argument, given, f"the keys {names[0]} and {names[1]}")
            yield row[names[0]], row[names[1]]
        elif not has_order(row):
            raise InvalidArgument(argument, f"{shown(row)} in row {number}", allowed)
        else:
            cells = list(row)
            if len(cells) != 2:
                raise InvalidArgument(argument, f"{len(cells)} items in row {number}", allowed)
            yield cells[0], cells[1]
