"""What all linear policies share that compare arms batch by batch and play one arm at the end.

A batch pulls the core set of the active arms in the proportions of its design. It ends in a test, in the final choice
(a fresh batch, then argmax of value + lambda Gumbel with shared noise), or in one arm for good. Rows whose active sets
are equal are worked on together. Linear algebra is done on the host, in a fixed order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, on_host
from banditto.core.exact import integer
from banditto.geometry.actions.finite import LONGEST
from banditto.geometry.active_sets import FiniteField
from banditto.policies.shared_linear.contests import Trial, contest, field_of, trial, values_of
from banditto.policies.shared_linear.linear_policy import LinearPolicy, largest_parameter, largest_reward


class Step(NamedTuple):
    """A test of at least `pulls` pulls; values must be exact to `precision`, or else the test is left out.

    Beyond that, directions that the design drops may bias values by `slack`, which the proof's windows allow for.
    """

    pulls: int
    precision: float
    slack: float


class RaceState(NamedTuple):
    """The state of many executions; each row tests, makes its final choice, or plays one arm for good.

    `batch` counts from 1.
    """

    batch: int
    active: BoolArray  # (R, K)
    remaining: IntArray  # (R, 1): pulls left
    testing: BoolArray  # (R, 1)
    choosing: BoolArray  # (R, 1)
    pulls: IntArray  # (R, K): the batch to come


@dataclass(frozen=True, kw_only=True)
class LinearRace(LinearPolicy, ABC):
    """The base of linear policies that drop arms batch by batch; they say how large a test is and who survives it."""

    @abstractmethod
    def _test(self, key: bytes, batch: int) -> Step | None:
        """Return the test of an active set in a batch; None when there is none."""

    @abstractmethod
    def _uniforms(self, batch: int, coins: Coins) -> FloatArray:
        """Return the coins of a batch's test, as uniform numbers (R, coins)."""

    @abstractmethod
    def _survivors(self, batch: int, values: FloatArray, coins: FloatArray) -> BoolArray:
        """Return which arms stay after a test, (R, K); values are -inf for dropped arms."""

    @property
    @abstractmethod
    def _final(self) -> tuple[int, int, float]:
        """The final batch: a and b, if a / b of what remains goes into it, and the share of rho for its choice.

        A share of 0 means the last line that the paper prints.
        """

    @property
    def _field(self) -> FiniteField:
        return field_of(self.actions)

    @property
    def _dimension(self) -> int:
        """The dimension of the span of all arms."""
        design = self._field.design(self._field.whole)
        return self.actions.dimension if design is None else design.dimension

    @property
    def _reach(self) -> float:
        return largest_reward(self._rewards, self._centre)

    @property
    def _longest_parameter(self) -> float:
        return largest_parameter(self._rewards, self._centre) * LONGEST

    def init(self, replicates: int) -> RaceState:
        """Return the state before the first batch: all arms active, nothing spent."""
        replicates = integer(replicates, "replicates", 1, 10**9)
        active = np.ones((replicates, self.arms), dtype=np.bool_)
        remaining = np.full((replicates, 1), self.horizon, dtype=np.int64)
        return self._opened(1, active, remaining, np.ones((replicates, 1), dtype=np.bool_))

    def plan(self, state: RaceState) -> IntArray | None:
        """Return the next pulls: the active arms' core set in the proportions of its design; in the end one arm."""
        pulls: IntArray = on_host(state.pulls)
        return pulls if pulls.any() else None

    def decide(self, state: RaceState, totals: FloatArray, coins: Coins) -> RaceState:
        """Compare the values of the batch's own totals, in the final batch choose, and return the state after it."""
        totals = on_host(totals)
        state = RaceState(state.batch, *(on_host(part) for part in state[1:]))
        active = state.active.copy()
        left = state.remaining - state.pulls.sum(axis=1, keepdims=True)
        final_line = self._final[2] == 0.0  # the printed last line: argmax of the last estimate
        for rows, stays, values in self._tested(state, totals, coins):
            active[rows] = self._last_line(state.batch, stays, values, left[rows]) if final_line else stays
        choosing = np.flatnonzero(state.choosing[:, 0] & (left[:, 0] > 0))
        if choosing.size:
            gumbel = self._gumbel(state.batch, coins)
            for group in self._field.groups(state.active, choosing):
                for size, rows in _by_size(state.remaining, group.rows):
                    made = self._final_plan(group.key, size)
                    assert made is not None
                    values = self._values(made, group.key, totals[rows])
                    noisy = values + self._choice_scale(group.key, made) * gumbel[rows]
                    active[rows] = np.arange(self.arms) == np.argmax(noisy, axis=1)[:, np.newaxis]
        return self._opened(state.batch + 1, active, left, state.testing)

    def by_lead(self, state: RaceState, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates the batch's test commits or drops an arm, before any final choice; (R, 1)."""
        lost = np.zeros_like(state.testing)
        for rows, stays, _ in self._tested(state, totals, coins):
            lost[rows, 0] = stays.sum(axis=1) < state.active[rows].sum(axis=1)
        return lost

    def _tested(
        self, state: RaceState, totals: FloatArray, coins: Coins
    ) -> Iterator[tuple[IntArray, BoolArray, FloatArray]]:
        """Yield groups of rows whose batch ends in the same test, which of their arms survive, and the arms' values."""
        spent = state.pulls.sum(axis=1, keepdims=True)
        testing = np.flatnonzero((state.testing & (state.remaining > spent))[:, 0])
        uniforms = self._uniforms(state.batch, coins) if testing.size else np.zeros((len(spent), 1))
        for group in self._field.groups(state.active, testing):
            made = self._trial(group.key, state.batch)
            assert made is not None
            values = self._values(made, group.key, totals[group.rows])
            yield group.rows, self._survivors(state.batch, values, uniforms[group.rows]) & (values > -np.inf), values

    def _values(self, made: Trial, key: bytes, totals: FloatArray) -> FloatArray:
        values = values_of(made, self._field, totals, self._centre)
        return np.where(self._field.mask(key), values, -np.inf)

    def _trial(self, key: bytes, batch: int) -> Trial | None:
        """Return the batch that tests an active set; None if there is none, or its values would not be precise."""
        step = self._test(key, batch)
        if step is None or step.pulls > self.horizon:
            return None
        made = trial(self.actions, key, step.pulls, self._reach)
        if made is None:
            return None
        biased = max(0.0, made.residual * self._longest_parameter - step.slack)
        return made if made.rounding + biased <= step.precision else None

    def _last_line(self, batch: int, stays: BoolArray, values: FloatArray, left: IntArray) -> BoolArray:
        """Return which arms stay: where no further test fits, only the best of the survivors."""
        best = np.argmax(np.where(stays, values, -np.inf), axis=1)[:, np.newaxis]
        packed = np.packbits(stays, axis=1)
        for row in range(len(stays)):
            following = self._trial(packed[row].tobytes(), batch + 1)
            if following is None or following.regression.total > left[row, 0]:
                stays[row] = np.arange(self.arms) == best[row]
        return stays

    def _opened(self, batch: int, active: BoolArray, remaining: IntArray, testing: BoolArray) -> RaceState:
        """Return the state with its next step settled: a test, the final batch, or one arm for good."""
        rows = len(active)
        pulls = np.zeros((rows, self.arms), dtype=np.int64)
        tests, chooses = np.zeros((rows, 1), dtype=np.bool_), np.zeros((rows, 1), dtype=np.bool_)
        several = active.sum(axis=1) > 1
        for group in self._field.groups(active, np.flatnonzero(several & (remaining[:, 0] > 0))):
            made = self._trial(group.key, batch)
            fits = np.zeros(group.rows.size, dtype=np.bool_)
            if made is not None:
                fits = testing[group.rows, 0] & (made.regression.total <= remaining[group.rows, 0])
                pulls[np.ix_(group.rows[fits], made.columns)] = made.regression.pulls
                tests[group.rows[fits]] = True
            for size, same in _by_size(remaining, group.rows[~fits]):
                final = self._final_plan(group.key, size)
                if final is not None:
                    pulls[np.ix_(same, final.columns)] = final.regression.pulls
                    chooses[same] = True
        alone = np.flatnonzero(~tests[:, 0] & ~chooses[:, 0] & (remaining[:, 0] > 0))
        pulls[alone, np.argmax(active[alone], axis=1)] = remaining[alone, 0]
        return RaceState(batch, active, remaining, tests, chooses, pulls)

    # -- the final choice -------------------------------------------------------------------------------------

    def _final_plan(self, key: bytes, remaining: int) -> Trial | None:
        """Return the final batch of a row with so many pulls left; None when there is none."""
        parts, of, share = self._final
        found = contest(self.actions, key)
        if share == 0.0 or found is None:
            return None
        wanted = parts * remaining // of - found.design.support  # shares are rounded up
        if wanted < found.design.support:
            return None
        made = trial(self.actions, key, wanted, self._reach)
        enough = made is not None and made.rounding <= 2.0**-26 * self.sigma * math.sqrt(made.spread)
        return made if enough else None

    def _choice_scale(self, key: bytes, made: Trial) -> float:
        """Return lambda, the scale of the noise in the final choice.

        It is sigma sqrt(spread) k / rho_F, with k = min(sqrt(log(s)/2), sqrt(d/8)), for s = 2 survivors also 1/sqrt(8).
        """
        survivors = self._field.size(key)
        k = min(math.sqrt(math.log(survivors) / 2.0), math.sqrt(made.regression.dimension / 8.0))
        if survivors == 2:
            k = min(k, math.sqrt(1.0 / 8.0))
        return self.sigma * math.sqrt(made.spread) * k / self._final[2]

    def _gumbel(self, batch: int, coins: Coins) -> FloatArray:
        u = np.concatenate([coins.uniform("choice", batch, arm) for arm in range(self.arms)], axis=1)
        u = np.clip(u, 2.0**-54, 1.0 - 2.0**-53)  # finite noise
        return np.asarray(-np.log(-np.log(u)))


def _by_size(amounts: IntArray, rows: IntArray) -> list[tuple[int, IntArray]]:
    """Return the rows grouped by their amount in `amounts` (R, 1), as pairs of an amount and its rows."""
    return [(int(size), rows[amounts[rows, 0] == size]) for size in np.unique(amounts[rows, 0])]
