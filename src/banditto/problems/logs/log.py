"""A log of rewards, arm by arm in the order of its rows, with the range that rewards were declared to have.

Policies for bounded rewards want them in [0, 1]. A log says which range its rewards have, and they are rescaled by that
and by nothing else: not by what happens to be the largest of them, which would make the scale depend on the data.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from banditto.core.errors import InvalidArgument, shown
from banditto.core.exact import Real, real
from banditto.core.horizons import FEWEST_ARMS, MOST_ARMS
from banditto.problems.logs.files import rows_of

LONGEST_NAME = 60
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, kw_only=True)
class RewardLog:
    """The rewards of each arm, as they were logged; made by `read` from a file or by `of` from rows in memory."""

    arms: tuple[str, ...]
    rewards: tuple[tuple[float, ...], ...] = field(repr=False)  # of each arm, in the order of the rows
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low, high = real(self.low, "low"), real(self.high, "high")
        if not low < high or math.isinf(high - low):
            raise InvalidArgument("high", self.high, f"a number above low, which is {low:g}, and not out of reach")
        names = tuple(_name(arm, f"arm {number}") for number, arm in enumerate(self.arms, start=1))
        if not FEWEST_ARMS <= len(names) <= MOST_ARMS:
            given = f"{len(names)} of them" if len(names) != 1 else f"only {names[0]}"
            raise InvalidArgument("arms", given, f"{FEWEST_ARMS} to {MOST_ARMS} arms in a log")
        if len(set(names)) < len(names) or len(names) != len(self.rewards):
            raise InvalidArgument("arms", list(names), f"{len(self.rewards)} different names, one for each arm")
        for name, rewards in zip(names, self.rewards, strict=True):
            if not rewards:
                raise InvalidArgument("arms", f"{name} without a row", "arms with one row or more")
            for number, reward in enumerate(rewards, start=1):
                _reward(reward, low, high, f"row {number} of {name}")
        # a negative zero is a zero: equal logs have equal digests
        plain = tuple(tuple(float(reward) + 0.0 for reward in rewards) for rewards in self.rewards)
        for key, value in (("arms", names), ("rewards", plain), ("low", low + 0.0), ("high", high + 0.0)):
            object.__setattr__(self, key, value)

    @classmethod
    def of(
        cls,
        rows: Iterable[tuple[Any, Any]],
        *,
        low: Real = 0.0,
        high: Real = 1.0,
        arms: Sequence[str] | None = None,
        source: str = "the log",
    ) -> RewardLog:
        """From pairs (arm, reward). Arms are numbered as they first appear, or as `arms` lists them; all must appear.

        A reward is a number from `low` to `high`, true or false. Errors name the row, counted from 1, of `source`.
        """
        bottom, top = real(low, "low"), real(high, "high")
        if isinstance(arms, str):
            raise InvalidArgument("arms", arms, "a list of names")
        found: dict[str, list[float]] = {str(name): [] for name in arms or ()}
        for number, (arm, reward) in enumerate(rows, start=1):
            where = f"row {number} of {source}"
            name = _name(arm, where)
            if name not in found:
                if arms is not None:
                    raise InvalidArgument("arms", f"{name} in {where}", ", ".join(found))
                if len(found) == MOST_ARMS:
                    raise InvalidArgument("arms", f"arm {MOST_ARMS + 1} in {where}", f"at most {MOST_ARMS} arms")
                found[name] = []
            found[name].append(_reward(reward, bottom, top, where))
        if not found:
            raise InvalidArgument("log", f"{source} without a row", "rows of arms and rewards")
        rewards = tuple(tuple(values) for values in found.values())
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
        """From a CSV file with a header, or a Parquet file (`pip install 'banditto[data]'`); other columns are left."""
        file = Path(path)
        rows = rows_of(file, arm_column, reward_column)
        return cls.of(rows, low=low, high=high, arms=arms, source=file.name)

    @property
    def rows(self) -> int:
        """Of all arms together."""
        return sum(len(rewards) for rewards in self.rewards)

    @property
    def rescaled(self) -> bool:
        """Whether the declared range is another than [0, 1]."""
        return (self.low, self.high) != (0.0, 1.0)

    def scaled(self) -> tuple[tuple[float, ...], ...]:
        """The rewards in [0, 1]: (reward - low) / (high - low)."""
        span = self.high - self.low
        return tuple(tuple((reward - self.low) / span for reward in rewards) for rewards in self.rewards)

    @property
    def digest(self) -> str:
        """sha256 of names, range and rewards in their order: the same for a CSV and a Parquet file of the same rows."""
        hasher = hashlib.sha256(f"banditto/log/1|{self.low.hex()}|{self.high.hex()}|".encode())
        for name, rewards in zip(self.arms, self.rewards, strict=True):
            hasher.update(f"{len(name.encode())}|{name}|{len(rewards)}|".encode())
            hasher.update(np.array(rewards, dtype="<f8").tobytes())
        return hasher.hexdigest()

    def split(self) -> tuple[RewardLog, RewardLog]:
        """Two logs that share no row: the first, third, fifth ... row of each arm, and the others."""
        for name, rewards in zip(self.arms, self.rewards, strict=True):
            if len(rewards) < 2:
                raise InvalidArgument("log", f"one row of {name}", "two rows of each arm or more, to be split")
        odd, even = (tuple(rewards[start::2] for rewards in self.rewards) for start in (0, 1))
        return (
            RewardLog(arms=self.arms, rewards=odd, low=self.low, high=self.high),
            RewardLog(arms=self.arms, rewards=even, low=self.low, high=self.high),
        )

    def to_csv(self) -> str:
        """Columns arm and reward, arm by arm: what `read` makes the same log of."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("arm", "reward"))
        for name, rewards in zip(self.arms, self.rewards, strict=True):
            writer.writerows((name, repr(reward)) for reward in rewards)
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """What a reader needs to know which log it was."""
        return {
            "arms": list(self.arms),
            "rows": [len(rewards) for rewards in self.rewards],
            "range": [self.low, self.high],
            "digest": self.digest,
        }


def _name(arm: Any, where: str) -> str:
    text = "" if arm is None else str(arm)
    if not text.strip() or len(text) > LONGEST_NAME or not text.isprintable():
        allowed = f"a name for every arm, one line of at most {LONGEST_NAME} characters"
        raise InvalidArgument("arms", f"{shown(arm)} in {where}", allowed)
    return text


def _reward(reward: Any, low: float, high: float, where: str) -> float:
    """A reward as a number in the declared range."""
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
    if not low <= value <= high:  # nor is anything that is no number
        given = "nothing" if reward is None or reward == "" else shown(reward)
        allowed = f"numbers from {low:g} to {high:g}, the declared range"
        raise InvalidArgument("rewards", f"{given} in {where}", allowed)
    return value
