"""Flags that name a log of rewards, for every verb that takes one."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from banditto.cli import parameters
from banditto.core.errors import InvalidArgument
from banditto.problems.logs import RewardLog
from banditto.problems.logs.choosing import read_log

Log = Annotated[
    str | None,
    typer.Option("--log", metavar="FILE", help="Instead of means: logged rewards (CSV, Parquet), resampled by row."),
]
RowLog = Annotated[
    str | None, typer.Option("--log", metavar="FILE", help="Logged rewards (CSV, Parquet), read row by row.")
]
ArmColumn = Annotated[
    str | None, typer.Option("--arm-column", metavar="NAME", help="The log's column of arms (default: arm).")
]
RewardColumn = Annotated[
    str | None, typer.Option("--reward-column", metavar="NAME", help="The log's column of rewards (default: reward).")
]
RewardRange = Annotated[
    str | None,
    typer.Option("--reward-range", metavar="LO,HI", help="Rescaled from this to [0, 1] (default: 0,1)."),
]


class LogFlags(NamedTuple):
    """As they were typed."""

    log: str | None
    arm_column: str | None
    reward_column: str | None
    reward_range: str | None

    @property
    def given(self) -> bool:
        """Whether any of them was."""
        return any(flag is not None for flag in self)

    def ends(self) -> tuple[float, float] | None:
        """The range of rewards."""
        if self.reward_range is None:
            return None
        ends = parameters.numbers(self.reward_range, "reward_range")
        if len(ends) != 2 or not ends[0] < ends[1]:
            raise InvalidArgument("reward_range", self.reward_range, "two numbers, the lower one first, such as 0,5")
        return ends[0], ends[1]

    def read(self) -> RewardLog:
        """The log that they name."""
        return read_log(self.log, self.arm_column, self.reward_column, self.ends())
