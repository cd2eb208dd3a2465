"""Elimination on replicable means: sample means rounded to shifted grids that the executions share.

Paper    Esfandiari et al. 2023, Algorithm 1, Theorem 3.
Symbols  K: arms, T: horizon, B: batches, i: batch, c: printed pull count, n: samples that the rounding needs,
         tau: radius, delta = 1/(2KTB), alpha: cell width, u: the grid's shared offset
Departs  - The pseudo-code pulls floor(q^i) times; its replicable mean needs n_i samples, about c_i (K B/rho)^2. Arms
           are pulled up to n_i in all, and |A| (n_i - n_(i-1)) is charged. As printed, pairs differ far more often
           than rho (tests/statistical/test_mean_rounding.py).
         - Rewards in [0, 1]: batches with 2 tau >= 1 are skipped by rule; no gap is so wide that it would surely be
           dropped.
         - The budget is tested with the active set of the batch before; floor(q^i) are exact, B = floor(log T).
         - Once one arm is left it gets all that remains.
         - constants="certified" gives each rounded mean rho/(K N), N being the batches that can take place, bounds the
           difference by E|v - v'|/alpha (docs/mean-rounding.md), and ends with the largest rounded mean instead of
           the smallest index: rounded means are shared, so the choice is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, NamedTuple

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, namespace, within
from banditto.core.exact import precise, written
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON, batch_count, useful_horizons
from banditto.core.protocol import Plain, Protocol
from banditto.core.text import significant
from banditto.policies.mean_rounding.grid_constants import GridProblem, GridSchedule
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared import confidence, elimination
from banditto.policies.shared.elimination import Race
from banditto.policies.shared.replicable import UNRESOLVED, Replicable


class GridState(NamedTuple):
    """The race, and each arm's last rounded mean (R, K), in cells and less half a cell; -inf for a dropped arm."""

    race: Race
    rounded: FloatArray  # (R, K)

    @property
    def active(self) -> BoolArray:
        """A mask (R, K) of the arms that are left."""
        return self.race.active


@dataclass(frozen=True, kw_only=True)
class MeanRounding(Replicable):
    """Algorithm 1 of *Replicable Bandits*, Theorem 3: elimination on means that are rounded to shared grids.

    Its bound is proved in docs/mean-rounding.md.

    Args:
        arms: The number of arms, 2 to 1,000.
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified" (default), for which the bound is proved, or "paper", as printed.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        rate_at_most: A promise that no arm's mean exceeds this, for rewards in [0, 1]. Default None: no promise.
        schedule: The resolved constants that decide. The constructor finds them, unless a protocol brings them.

    Examples:
        >>> policy = MeanRounding(arms=2, horizon=10**6, rho=0.1)
        >>> policy.guarantee().holds, policy.minimum_horizon()
        (True, 784)
    """

    schedule: GridSchedule = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "mean-rounding"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(schedule=self.schedule or self._problem_at(self.horizon).schedule())
        if not self.schedule.batches:
            self._warn_of_short_horizon(lambda: self._useful_horizon_from(self.horizon))

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> GridState:
        """Return the state before the first batch: all arms active, nothing spent."""
        race = elimination.start(self.arms, self.horizon, replicates, self.schedule.batch(1).pulls)
        return GridState(race, namespace(race.totals).zeros_like(race.totals))

    def plan(self, state: GridState) -> IntArray | None:
        """Return the batch's pulls for every active arm, or all that remains for the arm that was chosen."""
        race, rounded = state
        favourites = None
        if not self._paper and not race.all_testing:
            xp = namespace(rounded)
            favourites = race.active & (rounded == xp.max(rounded, axis=-1, keepdims=True))
        return elimination.plan(race, self.schedule.batch(race.batch).pulls, favourites)

    def decide(self, state: GridState, totals: FloatArray, coins: Coins) -> GridState:
        """Round all means to their grids, drop those more than 2 tau below the best, and return the new state."""
        xp = namespace(totals)
        race = state.race
        batch, following = self.schedule.batch(race.batch), self.schedule.batch(race.batch + 1)
        totals = race.totals + totals  # (R, K), -inf where dropped
        offsets = [xp.asarray(coins.uniform("grid", race.batch, arm)) for arm in range(self.arms)]
        u = xp.concat(offsets, axis=1)  # (R, K), shared
        rounded = xp.floor(totals / batch.cell + u) - u  # rounded mean / alpha - 1/2
        moved = elimination.after(race, totals, within(rounded, batch.cut), batch.pulls, following.pulls)
        if not race.all_testing:
            rounded = xp.where(race.testing, rounded, state.rounded)
        return GridState(moved, xp.where(moved.active, rounded, xp.asarray(-xp.inf)))

    def by_lead(self, state: GridState, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates this batch drops an arm; shape (R, 1)."""
        return elimination.dropped(state.race, self.decide(state, totals, coins).race)

    # -- its constants and what they promise ---------------------------------------------------------------

    def _problem_at(self, horizon: int) -> GridProblem:
        return GridProblem(self.arms, horizon, self.rho, self._rewards, self._paper)

    @property
    def free_constants(self) -> frozenset[str]:
        """The cuts, which the proof leaves free: rounded means are shared, and so is whatever is dropped by them."""
        return frozenset({"cut"})

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ), term by term; see docs/mean-rounding.md."""
        if not self.schedule.batches:
            reason = "no test fits into the horizon, so all executions are the same"
            return Guarantee.of([("no decision", Decimal(0), reason)], self.rho)
        return Guarantee.of(self._problem_at(self.horizon).terms(self.schedule), self.rho, self._caution)

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which some arm could be dropped; None when there is none in range."""
        return self._useful_horizon_from(self.arms)

    def _useful_horizon_from(self, start: int) -> int | None:
        """Return the next horizon, from `start` on, at which some arm could be dropped; None if there is none."""
        # Do not search where it cannot be: K n <= T, n >= (noise/(2 room))^2/tau^2, room <= rho/K (paper: rho/(K B)),
        # tau < 1/2 in [0, 1], else tau^2 <= 4 sigma^2 L/2.
        shortest, longest = self._problem_at(SHORTEST_HORIZON), self._problem_at(LONGEST_HORIZON)
        with precise():
            noise = 2 * shortest.deviation if self._paper else confidence.mean_noise(self._rewards)
            share = written(self.rho) / (self.arms * (batch_count(SHORTEST_HORIZON) if self._paper else 1))
            # deviation^2 = 2 sigma^2 (L + log 2), so that this is at least the largest tau^2 of all horizons
            radius = Decimal("0.25") if self._rewards.kind == "bounded" else longest.deviation**2
            start = max(start, SHORTEST_HORIZON, int(self.arms * (noise / (2 * share)) ** 2 / radius))
        return next(useful_horizons(lambda horizon: bool(self._problem_at(horizon).schedule().batches), start), None)

    def describe(self) -> Description:
        """Return the batches with their pulls, cells and cuts (as differences of means).

        Whether a gap between low and high is dropped depends on the offsets of the grids.
        """
        facts = self._facts() | {
            "rule": "drop an arm whose rounded mean is below the best one by more than the cut",
            "end": "what remains goes to the first of the arms that are left"
            if self.constants == "paper"
            else "what remains goes to the arm with the largest rounded mean",
        }
        rows = []
        for i, batch in enumerate(self.schedule.batches, 1):
            cell = batch.cell / batch.samples
            cut = batch.cut * cell
            widths = (significant(width) for width in (cell, cut, max(cut - cell, 0.0), cut + cell))
            rows.append((i, batch.pulls, batch.samples, *widths))
        return Description(facts, ("batch", "pulls per arm", "so far", "cell", "cut", "low", "high"), tuple(rows))

    # -- what is written down -----------------------------------------------------------------------------

    def resolved(self) -> Mapping[str, Plain]:
        """Return every batch's pulls, cell and cut."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> MeanRounding:
        """Return the policy that decides by a protocol's resolved constants, whatever this machine would resolve."""
        return cls(**cls._arguments(protocol), schedule=GridSchedule.from_plain(protocol.resolved, protocol.horizon))
