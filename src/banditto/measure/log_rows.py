"""The rows of a log as an environment of one execution: each is read once and in order."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.rewards import Rewards
from banditto.problems.environment import RewardKernel
from banditto.problems.reward_log import RewardLog


class LogRows:
    """The rows of a log as an environment for one execution; `draw` reads each row once, in order."""

    name: ClassVar[str] = "replayed"
    rewards: ClassVar[Rewards] = Rewards("bounded", 0.5)
    largest_count: ClassVar[int] = LONGEST_HORIZON
    observed: ClassVar[bool] = True  # its means are averages

    def __init__(self, log: RewardLog) -> None:
        self.log = log
        self._rows = log.scaled()
        self.read = [0] * len(log.arms)
        self.means = tuple(math.fsum(rows) / len(rows) for rows in self._rows)

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of each arm's rows."""
        return tuple(
            math.fsum((reward - mean) ** 2 for reward in rows) / len(rows)
            for mean, rows in zip(self.means, self._rows, strict=True)
        )

    @property
    def left(self) -> list[int]:
        """The number of unread rows of each arm."""
        return [len(rows) - read for rows, read in zip(self._rows, self.read, strict=True)]

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return each arm's sum of its next rows; raise `RanDry`, with nothing read, if an arm has too few."""
        wanted: list[int] = pulls[0].tolist()
        if any(pulled > left for pulled, left in zip(wanted, self.left, strict=True)):
            raise RanDry(wanted)
        return np.array([self.take(wanted)])

    def take(self, wanted: list[int]) -> list[float]:
        """Return each arm's sum of its next rows, or of those that are left."""
        totals = []
        for arm, (rows, pulled) in enumerate(zip(self._rows, wanted, strict=True)):
            taken = rows[self.read[arm] : self.read[arm] + pulled]
            self.read[arm] += len(taken)
            totals.append(math.fsum(taken))
        return totals

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that reads the next row of an arm."""
        from banditto.problems.environments import single_rewards  # compiled code is loaded only where it is used

        return single_rewards.replayed

    def round_parameters(self) -> FloatArray:
        """Return a copy of the rows for one execution: rows read, how many there are, and the rows."""
        law = np.zeros((len(self._rows), 2 + max(len(rows) for rows in self._rows)))
        for line, rows in zip(law, self._rows, strict=True):
            line[1] = len(rows)
            line[2 : 2 + len(rows)] = rows
        return law

    def to_dict(self) -> dict[str, Any]:
        """Return name, averages, and which log it is, as plain data."""
        return {"name": self.name, "means": list(self.means), "log": self.log.to_dict()}


class RanDry(Exception):
    """Raised when a batch asks for more rows than are left; it holds the batch's pulls of each arm."""

    def __init__(self, wanted: list[int]) -> None:
        self.wanted = wanted
        super().__init__(f"a batch of {wanted} pulls")
