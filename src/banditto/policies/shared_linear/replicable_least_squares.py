"""Replicable least squares: an estimate of theta that two labs round alike.

Paper    Esfandiari et al. 2023, Lemma 9 (replicable LSE).
Symbols  as in `estimate_rounding`; delta: failure probability of the accuracy, epsilon: sup |<a, theta~ - theta>|
Departs  - rounding="lattice" (beyond the paper) rounds the whole estimate to one cell of A_d*, in coordinates in which
           noise is isotropic; the pulls do not depend on the size of the core set. docs/least-squares.md.
         - rounding="grid" is the lemma's, a grid for each arm of the core set, with one change: arms are pulled in the
           proportions of the design and the bound is Cauchy-Schwarz's, sqrt(g) instead of the printed 4 d + 1.
         - constants="paper" is the lemma with its logarithms as its own proof needs them: every arm of a 2-approximate
           core set equally often, rho/|C| and delta/|C| for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import IllConditioned, InvalidArgument
from banditto.core.exact import Real, float_above, integer, open_unit, precise, real, written
from banditto.core.rewards import RewardKind, Rewards
from banditto.geometry.actions.checking import checked_actions
from banditto.geometry.actions.finite import LONGEST, FiniteActions
from banditto.geometry.active_sets import core_of, dropped_features, field_for, longest
from banditto.geometry.design import Design, g_optimal_design
from banditto.geometry.design.design_result import Allocation
from banditto.geometry.regression import Regression
from banditto.numbers.fixed_order import quadratic_forms
from banditto.policies.policy import Guarantee
from banditto.policies.shared.replicable_mean import samples_needed
from banditto.policies.shared_linear.estimate_rounding import (
    GridRounding,
    LatticeRounding,
    Rounding,
    deviation,
    error,
    leverage_of,
    pulls_for,
)
from banditto.policies.shared_linear.linear_policy import largest_parameter, largest_reward, usual_centre

NEAR = 1e-9  # an estimate so near to another cell, in units of a cell, is reported as such
# An action that the data leave open by more than this, in parts of what a feature has at the most, is refused. What is
# less becomes a part of the error: rounding alone lifts actions off their span by some parts in 2^20.
_OPEN = 1e-4


class RoundedParameter(NamedTuple):
    """`theta`, shared by two labs with probability 1 - rho; no action's value is off by more than `error`, which holds
    with probability 1 - delta. `margin` is the distance to the nearest other cell, in units of a cell.
    """

    theta: tuple[float, ...]
    error: float
    guarantee: Guarantee
    margin: float
    near_boundary: bool
    digest: str


@dataclass(frozen=True, kw_only=True)
class ReplicableLeastSquares:
    """Lemma 9 of *Replicable Bandits* for these actions: a least-squares estimate that two labs round alike.

    Both ways to round are proved in docs/least-squares.md. A reward is `centre + <theta, a>` and noise.

    Args:
        actions: A matrix with a row of features for each arm, `FiniteActions`, or an action set such as `Ball`.
        rounding: "lattice" (default), ours, or "grid", the paper's.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        centre: What is subtracted from every reward, -1 to 1. Default 1/2 for rewards in [0, 1], else 0.
        accuracy: How far above its optimum, relatively, the design's g may be; 1e-8 to 1000, default 0.01.

    Examples:
        >>> from banditto import Coins
        >>> estimator = ReplicableLeastSquares(actions=[[1, 0], [0.6, 0.6], [0, 1]])
        >>> estimator.pulls_needed(epsilon=0.1, rho=0.1, delta=0.01)
        14270
        >>> pulls = estimator.plan(14270).pulls
        >>> rows = [(arm, n, 0.6 * n) for arm, n in zip(estimator.design.arms, pulls)]
        >>> found = estimator.fit(rows, rho=0.1, delta=0.01, coins=Coins(7))
        >>> found.error <= 0.1, found.guarantee.holds
        (True, True)
    """

    actions: Any
    rounding: Literal["lattice", "grid"] = "lattice"
    sigma: float = 0.5
    rewards: RewardKind | None = None
    centre: float | None = None
    accuracy: float = 0.01

    def __post_init__(self) -> None:
        kind, sigma, _ = Rewards.of(self.rewards, self.sigma)
        if self.rounding not in ("lattice", "grid"):
            raise InvalidArgument("rounding", self.rounding, "'lattice' or 'grid'")
        centre = usual_centre(Rewards(kind, sigma)) if self.centre is None else real(self.centre, "centre")
        if abs(centre) > 1.0:
            raise InvalidArgument("centre", self.centre, "a number from -1 to 1")
        values = {"actions": checked_actions(self.actions), "rewards": kind, "sigma": sigma, "centre": centre}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def _rewards(self) -> Rewards:
        return Rewards.of(self.rewards, self.sigma)

    @cached_property
    def design(self) -> Design:
        """The design: which arms to pull, and in which proportions."""
        return g_optimal_design(self.actions, accuracy=self.accuracy)

    def pulls_needed(self, epsilon: Real, rho: Real, delta: Real, constants: str = "certified") -> int:
        """Return how many pulls by the design keep every action's value within epsilon of the truth.

        Args:
            epsilon: The largest allowed error of any action's value, above 0, in units of the rewards.
            rho: The largest allowed probability that two labs find different estimates, between 0 and 1.
            delta: The largest allowed probability that some value is off by more than epsilon.
            constants: "certified" (default), or "paper", for which delta must be below rho/2.
        """
        width, share, failure = _positive(epsilon), open_unit(rho, "rho"), open_unit(delta, "delta")
        if constants == "paper":
            return self._paper_pulls(width, share, failure)
        if constants != "certified":
            raise InvalidArgument("constants", constants, "'certified' or 'paper'")
        design = self.design
        nu = self._deviation(design.dimension, failure)
        rounding = self._rounding(design.dimension, design.support, share)
        with precise():
            left = written(width) - Decimal(self._bias(self._residual))
        found = pulls_for(rounding, design.g, nu, left) if left > 0 else None
        if found is None:
            raise InvalidArgument("epsilon", epsilon, "an accuracy that 10^18 pulls can reach")
        return self.design.plan(found).total

    def _paper_pulls(self, epsilon: float, rho: float, delta: float) -> int:
        """Return the paper's pulls, by a 2-approximate design: |C| times the samples that a rounded mean needs.

        As the paper makes one (Appendix G): 2 d arms to start with, none of which is dropped, and g <= 2 d.
        """
        if 2.0 * delta >= rho:
            raise InvalidArgument("delta", delta, f"below rho/2 = {rho / 2:g} with the paper's constants")
        design = g_optimal_design(self.actions, accuracy=1.0)
        fewest = 2 * design.dimension
        if isinstance(self.actions, FiniteActions):
            fewest = min(fewest, len(self.actions))
        support = max(design.support, fewest)
        each = samples_needed(
            tau=epsilon / (2.0 * design.dimension) ** 0.5,
            delta=delta / support,
            rho=rho / support,
            sigma=self.sigma,
            rewards=self.rewards,
            constants="paper",
        )
        return support * each

    def plan(self, pulls: int) -> Allocation:
        """Return how often to pull each arm of `design`: at least `pulls` times in all."""
        return self.design.plan(pulls)

    def fit(
        self, data: Iterable[tuple[int, int, float]], *, rho: Real, delta: Real, coins: Coins, batch: int = 0
    ) -> RoundedParameter:
        """Return the rounded estimate of (arm, count, total) rows, with its error and its guarantee.

        Args:
            data: Rows (arm, count, total). Arms number the actions, or for an infinite set the core set of `design`.
                Counts must be fixed beforehand and the same in both labs; totals are what differs.
            rho: The largest allowed probability that two labs find different estimates, between 0 and 1.
            delta: The largest allowed probability that some action's value is off by more than the error.
            coins: The coins that both labs share, such as `Coins(seed)`.
            batch: The address of these coins in one experiment. Default 0.
        """
        share, failure = open_unit(rho, "rho"), open_unit(delta, "delta")
        if not isinstance(coins, Coins):
            raise InvalidArgument("coins", coins, "the coins that both labs share, such as Coins(seed)")
        batch = integer(batch, "batch", 0, 10**9)
        arms, counts, totals = self._checked(data)
        try:
            features, regression, g, residual = self._leverage(arms, counts)
        except IllConditioned:
            raise InvalidArgument("data", "counts that are too uneven for double precision", "other counts") from None
        leverage = leverage_of(g, regression.total)
        rounding = self._rounding(regression.dimension, len(arms), share)
        assert self.centre is not None
        largest = largest_parameter(self._rewards, self.centre)
        reach = largest_reward(self._rewards, self.centre)
        uniforms = np.concatenate([coins.uniform(rounding.purpose, batch, k) for k in range(rounding.coins)], axis=1)
        row = np.array([totals])
        found = rounding.rounded(regression, row, self.centre, leverage, uniforms[:1])
        theta = np.zeros(self.actions.dimension)
        theta[list(features)] = found.theta[0]
        with precise():
            nu = self._deviation(regression.dimension, failure)
            off = error(rounding, leverage, nu) + Decimal(regression.bias(g, largest)) + Decimal(self._bias(residual))
        margin = float(found.margins[0])
        return RoundedParameter(
            tuple(theta.tolist()),
            float_above(off),
            Guarantee.of(rounding.terms(regression, leverage, reach), share),
            margin,
            margin < NEAR,
            hashlib.sha256(",".join(value.hex() for value in theta.tolist()).encode()).hexdigest(),
        )

    @cached_property
    def _residual(self) -> float:
        """A bound on |M a - a'| over all actions, by the design's own counts; 0 if the design drops no feature."""
        design, field = self.design, field_for(self.actions)
        if not dropped_features(design):
            return 0.0
        return field.residual(design, Regression.of(core_of(design), design.counts), field.whole)

    def _bias(self, residual: float) -> float:
        """Return what features that the data do not tell apart add to the error of any value: |M a - a'| |theta|."""
        assert self.centre is not None
        return residual * largest_parameter(self._rewards, self.centre) * LONGEST

    def _rounding(self, dimension: int, support: int, rho: float) -> Rounding:
        if self.rounding == "grid":
            return GridRounding(support, self._rewards, rho)
        return LatticeRounding(dimension, self._rewards, rho)

    def _deviation(self, dimension: int, delta: float) -> Decimal:
        count = len(self.actions) if isinstance(self.actions, FiniteActions) else None
        with precise():
            return deviation(dimension, -written(delta).ln(), count)

    def _checked(self, data: Iterable[tuple[int, int, float]]) -> tuple[list[int], list[int], list[float]]:
        """Return arms, counts and totals of the data, sorted by arm; refuse rows that cannot be right."""
        allowed = "rows (arm, count, total)"
        if isinstance(data, str) or not isinstance(data, Iterable):
            raise InvalidArgument("data", data, allowed)
        most = len(self.actions) if isinstance(self.actions, FiniteActions) else self.design.support
        rows: dict[int, tuple[int, float]] = {}
        for row in data:
            if not isinstance(row, tuple | list | np.ndarray) or len(row) != 3:
                raise InvalidArgument("data", row, allowed)
            arm = integer(row[0], "arm", 0, most - 1)
            if arm in rows:
                raise InvalidArgument("data", f"arm {arm} more than once", "one row for each arm")
            count, total = integer(row[1], "count", 1, 10**15), real(row[2], "total")
            if self._rewards.kind == "bounded" and not 0.0 <= total <= count:
                raise InvalidArgument("total", row[2], f"from 0 to {count}, a sum of so many rewards in [0, 1]")
            rows[arm] = count, total
        if not rows:
            raise InvalidArgument("data", "no rows", allowed)
        arms = sorted(rows)  # the order of rows must not matter
        return arms, [rows[arm][0] for arm in arms], [rows[arm][1] for arm in arms]

    def _leverage(self, arms: list[int], counts: list[int]) -> tuple[tuple[int, ...], Regression, float, float]:
        """Return features, regression, g and max |M a - a'| of these counts; refuse data that leave an action open."""
        actions = self.actions
        if not isinstance(actions, FiniteActions):
            if len(arms) != self.design.support:
                raise InvalidArgument("data", f"{len(arms)} arms", f"all {self.design.support} of the core set")
            design, field = self.design, field_for(actions)
            regression = Regression.of(core_of(design), counts)
            residual = field.residual(design, regression, field.whole)
            return design.features, regression, design.certify(counts), residual
        points = np.ascontiguousarray(actions.to_array().T)  # (feature, action)
        span = g_optimal_design(actions.kept(arms), accuracy=1000.0)
        dropped, seen = dropped_features(span), np.ascontiguousarray(points[list(span.features)])
        regression = Regression.of(np.ascontiguousarray(seen[:, arms]), counts)
        residual = 0.0
        if dropped:
            strays = regression.strays(np.ascontiguousarray(points[dropped][:, arms]), seen, points[dropped])
            _check_told_apart(strays, points[dropped])
            residual = longest(strays)
        forms = quadratic_forms(seen, regression.factor)
        return span.features, regression, float(np.max(forms)) * (1.0 + 2.0**-20), residual


def _check_told_apart(strays: FloatArray, others: FloatArray) -> None:
    """Refuse data that do not determine some action's other features, up to a small part of the largest."""
    sizes = np.max(np.abs(others), axis=1, keepdims=True)
    unseen = [int(arm) for arm in np.flatnonzero(np.any(strays > _OPEN * sizes, axis=0))]
    if unseen:
        names = ", ".join(str(arm) for arm in unseen[:5]) + (", ..." if len(unseen) > 5 else "")
        given = f"data that says nothing about action {names}"
        raise InvalidArgument("data", given, "arms with data that span all actions")


def _positive(value: Real) -> float:
    number = real(value, "epsilon", "a number above 0")
    if not number > 0.0:
        raise InvalidArgument("epsilon", value, "a number above 0")
    return number
