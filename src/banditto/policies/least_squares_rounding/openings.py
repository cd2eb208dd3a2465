"""What a batch of Algorithm 4 does with one active set: its design, how often it is pulled, and how it is rounded."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from banditto.core.arrays import IntArray
from banditto.core.errors import IllConditioned
from banditto.core.exact import precise
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.rewards import Rewards
from banditto.geometry.actions.finite import LONGEST
from banditto.geometry.active_sets import ConvexField, FiniteField, core_of, field_for
from banditto.geometry.design import Design
from banditto.geometry.regression import Regression
from banditto.policies.least_squares_rounding.accuracies import RoundingBatch, RoundingSchedule
from banditto.policies.shared_linear.estimate_rounding import (
    GridRounding,
    LatticeRounding,
    PaperGridRounding,
    deviation,
    leverage_of,
    pulls_for,
)
from banditto.policies.shared_linear.linear_policy import largest_parameter, largest_reward

# A bias of so many parts of the accuracy is left to finite precision; more is taken off what noise and rounding may do.
_NEGLIGIBLE = Decimal(2) ** -20


class Opening(NamedTuple):
    """A batch that takes place: its design, its regression, how estimates are rounded, and sqrt(g / N)."""

    design: Design
    regression: Regression
    rounding: LatticeRounding | GridRounding | PaperGridRounding
    leverage: Decimal

    @property
    def columns(self) -> IntArray:
        """The columns of pulls and totals that belong to the core set."""
        arms = self.design.arms
        return np.array(range(self.design.support) if arms is None else arms, dtype=np.int64)


class Openings(NamedTuple):
    """Everything besides the active set that a batch depends on; hashable, so that batches are worked out once."""

    actions: Any
    schedule: RoundingSchedule
    rewards: Rewards
    centre: float
    kind: Literal["lattice", "grid", "paper"]

    @property
    def field(self) -> FiniteField | ConvexField:
        """How active sets are kept: masks of finitely many actions, or cuts through an infinite set."""
        return field_for(self.actions)

    @property
    def reach(self) -> float:
        """The largest size of a reward; noise beyond it is too rare to matter."""
        return largest_reward(self.rewards, self.centre)

    @property
    def longest_parameter(self) -> float:
        """The largest possible length of theta."""
        return largest_parameter(self.rewards, self.centre) * LONGEST

    def at(self, key: bytes, number: int) -> Opening | None:
        """Return batch `number` for the active set of a key; None when it does not take place."""
        return _opening(self, key, number)

    def first(self) -> Opening | None:
        """Return the first batch, with all actions active; None when it does not take place."""
        return self.at(self.field.whole, 1)


@lru_cache(maxsize=20_000)
def _opening(openings: Openings, key: bytes, number: int) -> Opening | None:
    """Return batch `number` for the active set of a key; None when it does not take place. Results are cached."""
    batch, field = openings.schedule.batch(number), openings.field
    if batch is None or (isinstance(field, FiniteField) and field.size(key) < 2):
        return None
    design = field.design(key)
    if design is None:
        return None
    try:
        made = _paper(openings, design, batch) if openings.kind == "paper" else _certified(openings, design, batch, key)
    except IllConditioned:
        return None
    return made if made and made.rounding.precise_enough(made.regression, made.leverage, openings.reach) else None


def _certified(openings: Openings, design: Design, batch: RoundingBatch, key: bytes) -> Opening | None:
    """Return the batch with as many pulls as the accuracy needs, in the design's proportions; None if impossible.

    Directions that the design drops bias values, so twice the bias is taken off the accuracy. That changes the pulls,
    and with them the bias a little.
    """
    rounding = (
        GridRounding(design.support, openings.rewards, batch.rho)
        if openings.kind == "grid"
        else LatticeRounding(design.dimension, openings.rewards, batch.rho)
    )
    field, epsilon = openings.field, Decimal(batch.epsilon)
    left, room = epsilon, Decimal(0)
    count = field.size(key) if isinstance(field, FiniteField) else None
    nu = deviation(design.dimension, Decimal(openings.schedule.tail), count)
    for _ in range(2):
        needed = pulls_for(rounding, design.g, nu, left)
        if needed is None:
            return None
        regression = Regression.of(core_of(design), design.plan(needed).pulls)
        bias = Decimal(field.residual(design, regression, key) * openings.longest_parameter)
        if bias <= max(room, _NEGLIGIBLE * epsilon):
            return Opening(design, regression, rounding, leverage_of(design.g, needed))
        left, room = epsilon - 2 * bias, 2 * bias
        if room >= epsilon / 2:
            return None
    return None


def _paper(openings: Openings, design: Design, batch: RoundingBatch) -> Opening | None:
    """Return the paper's batch: every core arm equally often, so that each rounded mean is within eps / sqrt(g)."""
    rounding = PaperGridRounding(design.support, openings.rewards, batch.rho, Decimal(openings.schedule.tail))
    with precise():
        each = rounding.samples(Decimal(batch.epsilon) / Decimal(design.g).sqrt())
    if each is None or each > LONGEST_HORIZON:
        return None
    regression = Regression.of(core_of(design), design.counts, (each,) * design.support)
    return Opening(design, regression, rounding, leverage_of(design.g, regression.total))
