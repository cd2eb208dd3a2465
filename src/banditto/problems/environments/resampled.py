"""Rewards drawn with replacement from the rows of a log, so that any number of pulls can be had of finitely many.

The environment is exactly that: arms whose reward is one of the arm's rows, all equally likely. Its means are the log's
averages; what is true of them need not be true of wherever the log came from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.rewards import Rewards
from banditto.core.text import short, text_table
from banditto.problems.environment import RewardKernel
from banditto.problems.reward_log import RewardLog

MOST_VALUES = 10_000  # of one arm: a total of many pulls takes a binomial draw for each


@dataclass(frozen=True)
class Resampled:
    """The arms of a log, whose rows are drawn with replacement, rescaled to [0, 1] by the range that the log declares.

    A total takes time for each of its pulls or, if those are more, for each of the arm's different rewards, of which
    there may be 10,000: some tenths of a microsecond.

    Args:
        log: The rows, such as `RewardLog.read("rewards.csv")`.

    Examples:
        >>> from banditto import RewardLog
        >>> log = RewardLog.of([("old", 1), ("new", 3), ("old", 2), ("new", 5)], low=1, high=5)
        >>> Resampled(log).means
        (0.125, 0.75)
    """

    log: RewardLog = field(repr=False)

    name: ClassVar[str] = "resampled"
    rewards: ClassVar[Rewards] = Rewards("bounded", 0.5)
    largest_count: ClassVar[int] = LONGEST_HORIZON

    def __post_init__(self) -> None:
        if not isinstance(self.log, RewardLog):
            raise InvalidArgument("log", self.log, "a RewardLog, such as RewardLog.read('rewards.csv')")
        for name, values in zip(self.log.arms, self._values, strict=True):
            if values.size > MOST_VALUES:
                given = f"{values.size} different rewards of {name}"
                raise InvalidArgument("log", given, f"at most {MOST_VALUES} of each arm; round them, or replay the log")

    @cached_property
    def _counted(self) -> tuple[tuple[FloatArray, IntArray], ...]:
        """For each arm its different rewards, ascending, and how many rows there are up to and including each."""
        found = (np.unique(np.array(rewards), return_counts=True) for rewards in self.log.scaled())
        return tuple((values, np.cumsum(counts)) for values, counts in found)

    @property
    def _values(self) -> tuple[FloatArray, ...]:
        return tuple(values for values, _ in self._counted)

    @property
    def _ends(self) -> tuple[IntArray, ...]:
        return tuple(ends for _, ends in self._counted)

    @cached_property
    def _shares(self) -> tuple[FloatArray, ...]:
        """For each arm and value, its share of the rows with this value or a larger one; the last share is 1."""
        counts = (np.diff(ends, prepend=0) for ends in self._ends)
        return tuple(number / (ends[-1] - ends + number) for number, ends in zip(counts, self._ends, strict=True))

    @cached_property
    def means(self) -> tuple[float, ...]:
        """The average of each arm's rows, in [0, 1]."""
        return tuple(math.fsum(rewards) / len(rewards) for rewards in self.log.scaled())

    @cached_property
    def variances(self) -> tuple[float, ...]:
        """The variance of each arm's rows; no other rewards can come up."""
        return tuple(
            math.fsum((reward - mean) ** 2 for reward in rewards) / len(rewards)
            for mean, rewards in zip(self.means, self.log.scaled(), strict=True)
        )

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return totals of the pulls (replicate, arm): sums of rows, or values times how often they come up."""
        return noise.resampled_totals(pulls, self._values, self._shares, self._ends)

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single row."""
        from banditto.problems.environments import single_rewards  # compiled code is loaded only where it is used

        return single_rewards.resampled

    def round_parameters(self) -> FloatArray:
        """Return the numbers that the kernel reads: how many values, then the rows up to each, then the values.

        All rows are as long as the arm with the most values needs.
        """
        return self._law

    @cached_property
    def _law(self) -> FloatArray:
        """The numbers that the kernel reads, a row for each arm, as `round_parameters` says."""
        longest = max(values.size for values in self._values)
        law = np.zeros((len(self.log.arms), 1 + 2 * longest))
        for row, (values, ends) in zip(law, self._counted, strict=True):
            row[0] = values.size
            row[1 : 1 + values.size] = ends
            row[1 + longest : 1 + longest + values.size] = values
        return law

    def table(self) -> str:
        """Return arms, rows and averages as plain text, and a line that says what is drawn."""
        rows = [
            (name, f"{len(rewards):,}", short(math.fsum(rewards) / len(rewards)))
            for name, rewards in zip(self.log.arms, self.log.rewards, strict=True)
        ]
        return f"{text_table(('arm', 'rows', 'average'), rows, align='lrr')}\n\n{self.explained()}"

    def explained(self) -> str:
        """Return one line: where rewards come from, and on which scale."""
        line = "Rewards are drawn with replacement from the rows of the log: beyond its rows this is a simulation."
        if self.log.rescaled:
            line += f" {self.log.low:g} to {self.log.high:g} is rescaled to [0, 1], in which regret is counted."
        return line

    def to_dict(self) -> dict[str, Any]:
        """Return name, means, and which log it was."""
        return {"name": self.name, "means": list(self.means), "log": self.log.to_dict()}
