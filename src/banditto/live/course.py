"""What the policy does after each batch: the same `plan` and `decide` as in the simulator, for one execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.errors import ContractError
from banditto.live.ordering import BatchOrder
from banditto.live.registration import Registration


@dataclass(frozen=True)
class Stage:
    """A batch that is being played; without pulls, the end."""

    batch: int  # from 1
    pulls: tuple[int, ...]
    spent: int  # pulls before this batch
    state: Any  # the policy's
    seed: int

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to play."""
        return not self.pulls

    @cached_property
    def order(self) -> BatchOrder:
        """The arms of this batch's slots."""
        return BatchOrder(self.seed, self.batch, self.pulls)

    @cached_property
    def length(self) -> int:
        """The slots of this batch."""
        return sum(self.pulls)


class Course:
    """The stages of one registration, replicate 0 of its seed."""

    def __init__(self, registration: Registration) -> None:
        self._policy = registration.policy()
        self._seed = registration.protocol.seed
        self._coins = Coins(self._seed)
        self.horizon = registration.protocol.horizon

    def start(self) -> Stage:
        """The first batch."""
        return self._planned(1, 0, self._policy.init(1))

    def after(self, stage: Stage, totals: Sequence[float]) -> Stage:
        """The batch after one whose totals, in the policy's units, are these."""
        spent = stage.spent + stage.length
        if spent >= self.horizon:  # pulls that end the horizon decide nothing
            return Stage(stage.batch + 1, (), spent, stage.state, self._seed)
        state = self._policy.decide(stage.state, np.array([totals], dtype=np.float64), self._coins)
        return self._planned(stage.batch + 1, spent, state)

    def _planned(self, batch: int, spent: int, state: Any) -> Stage:
        plan = self._policy.plan(state)
        pulls = () if plan is None else tuple(int(count) for count in np.asarray(plan)[0])
        if not 0 < sum(pulls) <= self.horizon - spent:
            raise ContractError(f"{self._policy.name} planned {sum(pulls)} pulls of {self.horizon - spent}")
        return Stage(batch, pulls, spent, state, self._seed)
