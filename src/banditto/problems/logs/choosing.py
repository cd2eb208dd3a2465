"""The log that a study or flags name."""

from __future__ import annotations

from typing import Any

from banditto.core.errors import InvalidArgument
from banditto.problems.logs.log import RewardLog

_FILE = "a CSV or Parquet file of arms and rewards"


def read_log(
    path: str | None,
    arm_column: str | None = None,
    reward_column: str | None = None,
    reward_range: tuple[float, float] | None = None,
) -> RewardLog:
    """Read it; None stands for what was not said."""
    if path is None:
        ends = None if reward_range is None else ",".join(f"{end:g}" for end in reward_range)
        named = {"arm_column": arm_column, "reward_column": reward_column, "reward_range": ends}
        for name, value in named.items():
            if value is not None:
                raise InvalidArgument(name, value, "none without a log")
        raise InvalidArgument("log", "nothing", _FILE)
    if not path.strip():
        raise InvalidArgument("log", repr(path), _FILE)
    low, high = (0.0, 1.0) if reward_range is None else reward_range
    if not low < high:
        raise InvalidArgument("reward_range", f"{low:g},{high:g}", "two numbers, the lower one first, such as 0,5")
    columns = {"arm_column": arm_column, "reward_column": reward_column}
    chosen: dict[str, Any] = {name: value for name, value in columns.items() if value is not None}
    return RewardLog.read(path, low=low, high=high, **chosen)
