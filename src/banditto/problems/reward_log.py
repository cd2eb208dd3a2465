"""A log of rewards, arm by arm in the order of its rows, with the range that rewards were declared to have.

Policies for bounded rewards want them in [0, 1]. A log says which range its rewards have, and they are rescaled by that
and by nothing else: not by what happens to be the largest of them, which would make the scale depend on the data.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typing_extensions import TypedDict

from banditto.core.errors import InvalidArgument, MissingExtra, shown
from banditto.core.exact import EXACT_INTEGERS, Real, is_rounded, real
from banditto.core.horizons import FEWEST_ARMS, MOST_ARMS
from banditto.core.input_files import GIB, NoText, Unreadable, checked_path, opened, text_lines
from banditto.core.json_types import Digest, Interval, Keywords, Positive
from banditto.core.results import Part, Result, TablePart
from banditto.core.tabular import Frame, items_in, pairs_in
from banditto.core.text import short

PARQUET = ".parquet"
LARGEST_FILE = 4 * GIB
MOST_ROWS = 10**8  # some 4 GB of memory

Row = tuple[Any, Any]


def rows_of(path: Path, arm_column: str, reward_column: str) -> Generator[Row, None, None]:
    """Return an iterator over the rows of a file's two columns: Parquet by its suffix, else CSV with a header."""
    if arm_column == reward_column:
        raise InvalidArgument("reward_column", reward_column, "another column than that of the arms")
    if path.suffix == PARQUET:
        return _parquet_rows(path, arm_column, reward_column)
    return _csv_rows(path, arm_column, reward_column)


def _csv_rows(path: Path, arm_column: str, reward_column: str) -> Generator[Row, None, None]:
    """Yield the two columns of a CSV file, row by row."""
    try:
        # spreadsheets begin their files with a mark of the encoding, which is no part of the first column's name
        with closing(text_lines(path, LARGEST_FILE)) as text:
            lines = csv.reader(text, strict=True)
            header = next(lines, [])
            arm = _place(header, arm_column, "arm_column", path)
            reward = _place(header, reward_column, "reward_column", path)
            for number, line in enumerate((line for line in lines if line), start=1):
                if len(line) != len(header):
                    given = f"{len(line)} columns in row {number} of {path.name}"
                    raise InvalidArgument("log", given, f"{len(header)} columns, as the header has")
                yield line[arm], line[reward]
    except (NoText, csv.Error) as error:
        raise InvalidArgument("log", str(path), f"a CSV file in UTF-8, or a Parquet file ({error})") from None
    except Unreadable as error:
        raise InvalidArgument("log", str(path), f"a file that can be read ({error})") from None


def _parquet_rows(path: Path, arm_column: str, reward_column: str) -> Generator[Row, None, None]:
    """Yield the two columns of a Parquet file, row by row."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
        arrow: Any = import_module("pyarrow")
    except ImportError:
        raise MissingExtra("reading a Parquet file", "pyarrow", "data") from None
    try:
        with opened(path, LARGEST_FILE) as raw, parquet.ParquetFile(raw) as file:
            header = file.schema_arrow.names
            _place(header, arm_column, "arm_column", path)
            _place(header, reward_column, "reward_column", path)
            for batch in file.iter_batches(columns=[arm_column, reward_column]):
                columns = (batch.column(name).to_pylist() for name in (arm_column, reward_column))
                yield from zip(*columns, strict=True)
    except (OSError, Unreadable) as error:
        allowed = f"a file that can be read ({getattr(error, 'strerror', None) or shown(error)})"
        raise InvalidArgument("log", str(path), allowed) from None
    except arrow.ArrowException as error:
        raise InvalidArgument("log", str(path), f"a Parquet file ({shown(error)})") from None


def _place(header: Sequence[str], name: str, argument: str, path: Path) -> int:
    """Return the number of a column; refuse a name that does not occur, or occurs twice."""
    if header.count(name) != 1:
        found = ", ".join(header[:20]) + (", ..." if len(header) > 20 else "") if header else "it has none"
        given = f"{name} twice" if name in header else name
        raise InvalidArgument(argument, given, f"one of the columns of {path.name}: {found}")
    return header.index(name)


LONGEST_NAME = 60
_TRUTH = {"true": 1.0, "false": 0.0}


class LogContent(TypedDict):
    """Which log rewards came from, as plain data: names, rows of each arm, declared range, sha256 of the content."""

    arms: Annotated[list[str], Keywords(minItems=2)]
    rows: Annotated[list[Positive], Keywords(minItems=2)]
    range: Interval
    digest: Digest


@dataclass(frozen=True, kw_only=True, repr=False)
class RewardLog(Result):
    """The rewards of each arm, as they were logged; made by `read` from a file or by `of` from rows in memory.

    Args:
        arms: The names of the arms, all different, 2 to 1,000 of them.
        rewards: The rewards of each arm, in the order of the rows; one or more.
        low: The smallest reward that there could have been, declared and not read off the data. Default 0.
        high: The largest one, above `low`. Default 1.

    Examples:
        >>> log = RewardLog.of([("old", 0), ("new", 1), ("old", 1), ("new", 1)])
        >>> log.arms, log.rewards
        (('old', 'new'), ((0.0, 1.0), (1.0, 1.0)))
    """

    arms: tuple[str, ...]
    rewards: tuple[tuple[float, ...], ...] = field(repr=False)  # of each arm, in the order of the rows
    low: float = 0.0
    high: float = 1.0

    _picture = "log_pictures:log_figure"
    _named = ("arms", "rows", "low", "high")

    def __post_init__(self) -> None:
        low, high = real(self.low, "low"), real(self.high, "high")
        if not low < high or math.isinf(high - low):
            raise InvalidArgument("high", self.high, f"a number above low, which is {low:g}, and not out of reach")
        given = items_in(self.arms, "arms", "a list of names")
        names = tuple(_name(arm, f"arm {number}") for number, arm in enumerate(given, start=1))
        lists = "a list of numbers for each arm"
        logged = [items_in(rewards, "rewards", lists) for rewards in items_in(self.rewards, "rewards", lists)]
        if not FEWEST_ARMS <= len(names) <= MOST_ARMS:
            few = f"{len(names)} of them" if len(names) != 1 else f"only {names[0]}"
            raise InvalidArgument("arms", few, f"{FEWEST_ARMS} to {MOST_ARMS} arms in a log")
        if len(set(names)) < len(names) or len(names) != len(logged):
            raise InvalidArgument("arms", list(names), f"{len(logged)} different names, one for each arm")
        for name, rewards in zip(names, logged, strict=True):
            if not rewards:
                raise InvalidArgument("arms", f"{name} without a row", "arms with one row or more")
            for number, reward in enumerate(rewards, start=1):
                _reward(reward, low, high, f"row {number} of {name}")
        # a negative zero is a zero: equal logs have equal digests
        plain = tuple(tuple(float(reward) + 0.0 for reward in rewards) for rewards in logged)
        for key, value in (("arms", names), ("rewards", plain), ("low", low + 0.0), ("high", high + 0.0)):
            object.__setattr__(self, key, value)

    @classmethod
    def of(
        cls,
        rows: Iterable[Any] | Mapping[Any, Any] | Frame,
        *,
        low: Real = 0.0,
        high: Real = 1.0,
        arms: Sequence[str] | None = None,
        source: str = "the log",
        arm_column: str = "arm",
        reward_column: str = "reward",
    ) -> RewardLog:
        """Return the log of rows in memory. Errors name the row, counted from 1, of `source`.

        Args:
            rows: Pairs (arm, reward); or a pandas or polars frame, or dictionaries, with a column for each of the two;
                or a dictionary with the rewards of each arm. A reward is a number from `low` to `high`, true or false.
            low: The smallest reward that there could have been. Default 0.
            high: The largest one. Default 1.
            arms: The arms in the order of their numbers; all must appear. By default in the order of their
                first rows, or by number where they are called 0, 1, 2 and so on.
            source: What errors call the rows.
            arm_column: The name of a frame's column of arms. Other columns are left alone.
            reward_column: The name of its column of rewards.
        """
        bottom, top = real(low, "low"), real(high, "high")
        arms = None if arms is None else items_in(arms, "arms", "a list of names")
        found: dict[str, list[float]] = {str(name): [] for name in arms or ()}
        columns = (arm_column, reward_column)
        if isinstance(rows, Mapping) and set(columns) <= set(rows):  # columns, as `DataFrame.to_dict("list")` has them
            rows = list(zip(rows[arm_column], rows[reward_column], strict=True))
        pairs = _by_arm(rows) if isinstance(rows, Mapping) else pairs_in(rows, columns, "log")
        for number, (arm, reward) in enumerate(pairs, start=1):
            where = f"row {number} of {source}"
            name = _name(arm, where)
            if name not in found:
                if arms is not None:
                    raise InvalidArgument("arms", f"{name} in {where}", ", ".join(found))
                if len(found) == MOST_ARMS:
                    raise InvalidArgument("arms", f"arm {MOST_ARMS + 1} in {where}", f"at most {MOST_ARMS} arms")
                found[name] = []
            if number > MOST_ROWS:
                raise InvalidArgument("log", f"{source} with more rows", f"at most {shown(MOST_ROWS)} rows")
            found[name].append(_reward(reward, bottom, top, where))
        if not found:
            raise InvalidArgument("log", f"{source} without a row", "rows of arms and rewards")
        rewards = tuple(tuple(values) for values in found.values())
        if arms is None and set(found) == {str(number) for number in range(len(found))}:  # numbers, as we export them
            order = sorted(found, key=int)
            rewards = tuple(tuple(found[name]) for name in order)
            return cls(arms=tuple(order), rewards=rewards, low=bottom, high=top)
        return cls(arms=tuple(found), rewards=rewards, low=bottom, high=top)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        arm_column: str = "arm",
        reward_column: str = "reward",
        low: Real = 0.0,
        high: Real = 1.0,
        arms: Sequence[str] | None = None,
    ) -> RewardLog:
        """Read a CSV file with a header, or a Parquet file (`pip install 'banditto[data]'`), and return its log.

        Args:
            path: The file; one that ends in .parquet is Parquet, anything else CSV.
            arm_column: The name of the column of arms. Other columns are left alone.
            reward_column: The name of the column of rewards.
            low: The smallest reward that there could have been. Default 0.
            high: The largest one. Default 1.
            arms: The arms in the order of their numbers; all must appear. By default in the order of their
                first rows, or by number where they are called 0, 1, 2 and so on.
        """
        file = checked_path(path, "log")
        with closing(rows_of(file, arm_column, reward_column)) as rows:  # a bad row ends the reading in the middle
            return cls.of(rows, low=low, high=high, arms=arms, source=file.name)

    @property
    def rows(self) -> int:
        """The number of rows of all arms together."""
        return sum(len(rewards) for rewards in self.rewards)

    @property
    def rescaled(self) -> bool:
        """Whether the declared range is not [0, 1]."""
        return (self.low, self.high) != (0.0, 1.0)

    def scaled(self) -> tuple[tuple[float, ...], ...]:
        """Return the rewards in [0, 1]: (reward - low) / (high - low)."""
        span = self.high - self.low
        return tuple(tuple((reward - self.low) / span for reward in rewards) for rewards in self.rewards)

    @property
    def digest(self) -> str:
        """The sha256 of names, range and rewards in order: the same for a CSV and a Parquet file of the same rows."""
        hasher = hashlib.sha256(f"banditto/log/1|{self.low.hex()}|{self.high.hex()}|".encode())
        for name, rewards in zip(self.arms, self.rewards, strict=True):
            hasher.update(f"{len(name.encode())}|{name}|{len(rewards)}|".encode())
            hasher.update(np.array(rewards, dtype="<f8").tobytes())
        return hasher.hexdigest()

    def split(self) -> tuple[RewardLog, RewardLog]:
        """Return two logs that share no row: the first, third, fifth ... row of each arm, and the others."""
        for name, rewards in zip(self.arms, self.rewards, strict=True):
            if len(rewards) < 2:
                raise InvalidArgument("log", f"one row of {name}", "two rows of each arm or more, to be split")
        odd, even = (tuple(rewards[start::2] for rewards in self.rewards) for start in (0, 1))
        return (
            RewardLog(arms=self.arms, rewards=odd, low=self.low, high=self.high),
            RewardLog(arms=self.arms, rewards=even, low=self.low, high=self.high),
        )

    def to_csv(self) -> str:
        """Return the log as CSV with columns arm and reward, arm by arm; `read` gives the same log back."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("arm", "reward"))
        for name, rewards in zip(self.arms, self.rewards, strict=True):
            writer.writerows((name, repr(reward)) for reward in rewards)
        return out.getvalue()

    def _parts(self) -> list[Part]:
        rows = [
            (name, f"{len(rewards):,}", short(math.fsum(rewards) / len(rewards)))
            for name, rewards in zip(self.arms, self.rewards, strict=True)
        ]
        return [TablePart(("arm", "rows", "mean"), rows, "lrr"), f"rewards from {self.low:g} to {self.high:g}"]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each row, arm by arm: what `of` makes the same log of."""
        return [
            {"arm": name, "reward": reward}
            for name, rewards in zip(self.arms, self.rewards, strict=True)
            for reward in rewards
        ]

    def to_dict(self) -> LogContent:
        """Return what tells which log it was, as plain data.

        `low` and `high` are its `range`; `rewards` are represented by the number of rows of each arm and by the digest.
        """
        return {
            "arms": list(self.arms),
            "rows": [len(rewards) for rewards in self.rewards],
            "range": [self.low, self.high],
            "digest": self.digest,
        }


def _by_arm(rows: Mapping[Any, Any]) -> Iterator[Row]:
    """Yield an arm and its reward, for all rewards of each arm in turn."""
    for arm, rewards in rows.items():
        yield from ((arm, reward) for reward in items_in(rewards, "log", f"a list of rewards for {shown(arm)}"))


def _name(arm: Any, where: str) -> str:
    text = "" if arm is None else str(arm)
    if not text.strip() or len(text) > LONGEST_NAME or not text.isprintable():
        allowed = f"a name for every arm, one line of at most {LONGEST_NAME} characters"
        raise InvalidArgument("arms", f"{shown(arm)} in {where}", allowed)
    return text


def _reward(reward: Any, low: float, high: float, where: str) -> float:
    """Return a reward as a float, or refuse it: it must be a number in the declared range."""
    value = math.nan
    if isinstance(reward, bool):
        value = float(reward)
    elif isinstance(reward, str) and reward.strip().lower() in _TRUTH:
        value = _TRUTH[reward.strip().lower()]
    elif reward is not None:
        try:
            value = float(reward)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
    rounded = abs(value) >= EXACT_INTEGERS and is_rounded(reward, value)
    if rounded or not low <= value <= high:  # nor is anything that is no number
        given = "nothing" if reward is None or (isinstance(reward, str) and not reward) else shown(reward)
        allowed = f"numbers from {low:g} to {high:g}, the declared range"
        raise InvalidArgument("rewards", f"{given} in {where}", allowed)
    return value
