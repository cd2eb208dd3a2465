"""CertifiedElimination on the values of a design: commit to a clear leader, else drop what is clearly behind.

Symbols  m: precision of a batch, g, g_xy: see `contests`; every difference of values has variance proxy 2 sigma^2/m
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray
from banditto.core.exact import ceiling, precise
from banditto.core.protocol import Plain
from banditto.policies.certified_elimination import ladder, ladder_search
from banditto.policies.certified_elimination.ladder import EXPLORATION_UNIT, Ladder
from banditto.policies.certified_elimination.ladder_search import LadderProblem, Linear
from banditto.policies.certified_linear.predicted_costs import worlds_of
from banditto.policies.shared.replicable import UNRESOLVED
from banditto.policies.shared_linear.contests import contest, stray
from banditto.policies.shared_linear.linear_policy import largest_parameter
from banditto.policies.shared_linear.linear_race import LinearRace, Step


@dataclass(frozen=True, kw_only=True)
class LinearCuts(LinearRace):
    """The method of `CertifiedLinear` that cuts values; `schedule` holds the resolved constants that decide."""

    schedule: Ladder = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "certified-linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(schedule=self.schedule or ladder.resolve(self.problem))

    @property
    def problem(self) -> LadderProblem:
        """The problem that its constants are chosen for."""
        found = contest(self.actions, self._field.whole)
        assert found is not None, "CertifiedLinear has checked this"
        worlds = worlds_of(self.actions, largest_parameter(self._rewards, self._centre))
        linear = Linear(found.design.dimension, found.units, self._widest, worlds, self._bias)
        return LadderProblem(self.arms, self.horizon, self.rho, self._rewards, None, linear)

    @property
    def _bias(self) -> float:
        """How far values may be biased, as long as no design drops more directions than that of all arms."""
        return stray(self.actions) * self._longest_parameter

    def _test(self, key: bytes, batch: int) -> Step | None:
        """Return the size and precision of a batch's test, of ceil(m_i max(g_xy, g)/2) pulls; None if there is none."""
        pulls, commit, eliminate = self.schedule.batch(batch)
        found = contest(self.actions, key)
        if pulls == 0 or found is None:
            return None
        with precise():
            needed = ceiling(Decimal(pulls) * Decimal(found.units))
        narrowest = min(cut.width for cut in (commit, eliminate) if cut is not None)
        slack = ladder.bias_allowed(self.arms, self.rho, self._bias, narrowest)
        return Step(needed, narrowest * ladder.LINEAR_PRECISION / 4.0, slack)

    def _uniforms(self, batch: int, coins: Coins) -> FloatArray:
        return np.concatenate([coins.uniform("commit", batch), coins.uniform("threshold", batch)], axis=1)

    def _survivors(self, batch: int, values: FloatArray, coins: FloatArray) -> BoolArray:
        """Return which arms stay: the leader alone if it leads by more than one cut, else all within the other."""
        _, commit, eliminate = self.schedule.batch(batch)
        leader = np.max(values, axis=1, keepdims=True)
        first = np.arange(self.arms) == np.argmax(values, axis=1)[:, np.newaxis]
        second = np.max(np.where(first, -np.inf, values), axis=1, keepdims=True)
        ahead = leader - second > commit.low + coins[:, :1] * commit.width
        stays = np.where(ahead, first, np.ones_like(first))
        if eliminate is not None:
            stays = stays & (leader - values <= eliminate.low + coins[:, 1:] * eliminate.width)
        return np.asarray(stays)

    def resolved(self) -> Mapping[str, Plain]:
        """Return every batch's pulls and cuts, and the final batch."""
        return self.schedule.to_plain()

    @property
    def _final(self) -> tuple[int, int, float]:
        return self.schedule.exploration, EXPLORATION_UNIT, self.schedule.choice_rho

    @property
    def free_constants(self) -> frozenset[str]:
        """The size of the final batch, which the proof leaves free: the noise of the final choice follows it."""
        return frozenset({"exploration"})

    def regret(self) -> float:
        """Return the predicted regret, the mean over the parameters that were tuned for."""
        problem = self.problem
        return ladder_search.expected_regret(ladder_search.best_shape(problem), problem)
