"""Rows (arm, reward) of CSV and Parquet files, as they are written there; what they mean is the log's to check."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from banditto.core.errors import InvalidArgument, MissingExtra, shown

PARQUET = ".parquet"

Row = tuple[Any, Any]


def rows_of(path: Path, arm_column: str, reward_column: str) -> Iterator[Row]:
    """The two columns of a file, row by row: Parquet by its suffix, anything else is CSV with a header."""
    if arm_column == reward_column:
        raise InvalidArgument("reward_column", reward_column, "another column than that of the arms")
    if path.suffix == PARQUET:
        return _parquet_rows(path, arm_column, reward_column)
    return _csv_rows(path, arm_column, reward_column)


def _csv_rows(path: Path, arm_column: str, reward_column: str) -> Iterator[Row]:
    try:
        # spreadsheets begin their files with a mark of the encoding, which is no part of the first column's name
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            arm = _place(header, arm_column, "arm_column", path)
            reward = _place(header, reward_column, "reward_column", path)
            for number, line in enumerate((line for line in lines if line), start=1):
                if len(line) != len(header):
                    given = f"{len(line)} columns in row {number} of {path.name}"
                    raise InvalidArgument("log", given, f"{len(header)} columns, as the header has")
                yield line[arm], line[reward]
    except OSError as error:
        raise InvalidArgument("log", str(path), f"a file that can be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidArgument("log", str(path), f"a CSV file in UTF-8, or a Parquet file ({error})") from None


def _parquet_rows(path: Path, arm_column: str, reward_column: str) -> Iterator[Row]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
        arrow: Any = import_module("pyarrow")
    except ImportError:
        raise MissingExtra("reading a Parquet file", "pyarrow", "data") from None
    try:
        with path.open("rb") as raw, parquet.ParquetFile(raw) as file:
            header = file.schema_arrow.names
            _place(header, arm_column, "arm_column", path)
            _place(header, reward_column, "reward_column", path)
            for batch in file.iter_batches(columns=[arm_column, reward_column]):
                columns = (batch.column(name).to_pylist() for name in (arm_column, reward_column))
                yield from zip(*columns, strict=True)
    except OSError as error:
        allowed = f"a file that can be read ({error.strerror or shown(error)})"
        raise InvalidArgument("log", str(path), allowed) from None
    except arrow.ArrowException as error:
        raise InvalidArgument("log", str(path), f"a Parquet file ({shown(error)})") from None


def _place(header: Sequence[str], name: str, argument: str, path: Path) -> int:
    """Where a column is; a name that occurs twice says nothing."""
    if header.count(name) != 1:
        found = ", ".join(header[:20]) + (", ..." if len(header) > 20 else "") if header else "it has none"
        given = f"{name} twice" if name in header else name
        raise InvalidArgument(argument, given, f"one of the columns of {path.name}: {found}")
    return header.index(name)
