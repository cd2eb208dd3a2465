"""BaSE: successive elimination in a fixed, small number of batches.

Paper    Gao, Han, Ren and Zhou 2019, "Batched multi-armed bandits problem", Algorithm 1, with their two grids.
Symbols  T: horizon, K: arms, M: batches, t: ends of batches, tau: pulls of each survivor so far, gamma: exploration
Departs  - gamma = 12 is the smallest value that Theorem 1 covers; their rewards have sigma = 1, others scale the cut.
         - Ends of batches are exact integers; one that would leave less than a pull per arm is passed over.
         - A batch's pulls that do not divide by the number of survivors go to the next batch.
         - Once one arm is left it gets all that remains, in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, namespace
from banditto.core.errors import InvalidArgument
from banditto.core.exact import floor_power, integer, real, scale
from banditto.core.horizons import batch_count, checked_arms, checked_horizon
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import Rewards

MOST_BATCHES = {"geometric": 100, "minimax": 10}


class BatchedState(NamedTuple):
    """The state of many executions, one row for each replicate; `batch` counts from 1."""

    batch: int
    active: BoolArray  # (R, K)
    totals: FloatArray  # (R, K), cumulative; -inf for a dropped arm
    pulls: IntArray  # (R, 1): of each survivor so far
    spent: IntArray  # (R, 1)


@dataclass(frozen=True, kw_only=True)
class BatchedElimination(WithProtocol):
    """A baseline that plays survivors equally often in each batch, and drops those that are behind.

    An arm is behind if its mean is below the best by sigma sqrt(gamma log(TK) / tau), after tau pulls of each survivor.
    Gao, Han, Ren, Zhou 2019. `ends` are the pulls after which a batch ends in a test.

    Args:
        arms: The number of arms, 2 to 1,000.
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        batches: At least 2, and at most 100 on the geometric grid, 10 on the other. Default floor(log T), or 3.
        grid: "geometric" (default), best for a fixed problem, or "minimax".
        gamma: How much is explored before an arm is dropped, 0.01 to 100. Default 12, the least that was proved.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].

    Examples:
        >>> policy = BatchedElimination(arms=2, horizon=1000, batches=3)
        >>> policy.ends, policy.plan(policy.init(1)).tolist()
        ((10, 100), [[5, 5]])
    """

    arms: int
    horizon: int
    batches: int | None = None
    grid: Literal["geometric", "minimax"] = "geometric"
    gamma: float = 12.0
    sigma: float = 0.5
    ends: tuple[int, ...] = field(init=False, repr=False)

    name: ClassVar[str] = "batched-elimination"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        arms = checked_arms(self.arms)
        horizon = checked_horizon(self.horizon, arms)
        if self.grid not in MOST_BATCHES:
            raise InvalidArgument("grid", self.grid, "'geometric' or 'minimax'")
        default = batch_count(horizon) if self.grid == "geometric" else 3
        batches = integer(self.batches or default, "batches", 2, MOST_BATCHES[self.grid])
        gamma = real(self.gamma, "gamma", "a number from 0.01 to 100")
        if not 0.01 <= gamma <= 100.0:
            raise InvalidArgument("gamma", self.gamma, "a number from 0.01 to 100")
        checked = {"arms": arms, "horizon": horizon, "batches": batches, "gamma": gamma}
        for name, value in checked.items() | {("sigma", scale(self.sigma, "sigma"))}:
            object.__setattr__(self, name, value)
        object.__setattr__(self, "ends", _ends(horizon, batches, self.grid, arms))

    def init(self, replicates: int) -> BatchedState:
        """Return the state before the first batch: all arms active, nothing spent."""
        replicates = integer(replicates, "replicates", 1, 10**9)
        active = np.ones((self.arms, replicates), dtype=np.bool_).T
        totals = np.zeros((self.arms, replicates), dtype=np.float64).T
        nothing = np.zeros((replicates, 1), dtype=np.int64)
        return BatchedState(1, active, totals, nothing, nothing)

    def plan(self, state: BatchedState) -> IntArray | None:
        """Return equal pulls up to the batch's end; in the last batch all for the survivor with the best mean."""
        xp = namespace(state.active)
        if not bool(xp.any(state.spent < self.horizon)):
            return None
        several = xp.sum(xp.astype(state.active, xp.int64), axis=-1, keepdims=True)  # (R, 1)
        best = xp.argmax(state.totals, axis=-1, keepdims=True)  # survivors have equal pulls, so totals will do
        chosen = xp.arange(self.arms)[None, :] == best
        last: IntArray = xp.astype(chosen, xp.int64) * (self.horizon - state.spent)
        if state.batch > len(self.ends):
            return last
        each = (self.ends[state.batch - 1] - state.spent) // several
        plan: IntArray = xp.where(several > 1, xp.astype(state.active, xp.int64) * each, last)
        return plan

    def decide(self, state: BatchedState, totals: FloatArray, coins: Coins) -> BatchedState:
        """Drop the survivors whose mean is too far below the best, without coins, and return the state after that."""
        xp = namespace(totals)
        pulled = self.plan(state)
        assert pulled is not None
        pulls = state.pulls + xp.max(pulled, axis=-1, keepdims=True)
        totals = state.totals + totals
        cut = self.sigma * xp.sqrt(self.gamma * self._log * xp.astype(pulls, xp.float64))  # on totals
        active = state.active & (xp.max(totals, axis=-1, keepdims=True) - totals < cut)
        totals = xp.where(active, totals, xp.asarray(-xp.inf))
        spent = state.spent + xp.sum(pulled, axis=-1, keepdims=True)
        return BatchedState(state.batch + 1, active, totals, pulls, spent)

    @property
    def _log(self) -> float:
        return math.log(self.horizon * self.arms)

    @classmethod
    def made_for(cls, rewards: Rewards, arms: int, horizon: int) -> BatchedElimination:
        """Return the policy made for these rewards, with their sigma."""
        return cls(arms=arms, horizon=horizon, sigma=rewards.sigma)

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> BatchedElimination:
        """Return the policy that a protocol describes, with its settings."""
        grid = protocol.settings.get("grid")
        if grid not in ("geometric", "minimax"):
            raise InvalidArgument("grid", grid, "'geometric' or 'minimax'")
        return cls(
            arms=protocol.arms,
            horizon=protocol.horizon,
            batches=integer(str(protocol.settings.get("batches")), "batches", 2, MOST_BATCHES[grid]),
            grid="geometric" if grid == "geometric" else "minimax",
            gamma=from_fraction(protocol.settings.get("gamma"), "gamma"),
            sigma=from_fraction(protocol.settings.get("sigma"), "sigma"),
        )

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Accept any rewards."""

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose: batches, grid, gamma and sigma."""
        numbers = {"gamma": fraction(self.gamma), "sigma": fraction(self.sigma)}
        return {"batches": self.batches or 0, "grid": self.grid} | numbers

    def resolved(self) -> Mapping[str, Plain]:
        """Return the ends of the batches that end in a test."""
        return {"ends": self.ends}


def _ends(horizon: int, batches: int, grid: str, arms: int) -> tuple[int, ...]:
    """Return t_1 < ... < t_(M-1), the pulls after which each batch but the last ends.

    They are T^(m/M), or a^(2 - 2^(1-m)) with a = T^(1/(2 - 2^(1-M))).
    """
    ends: list[int] = []
    for m in range(1, batches):
        if grid == "geometric":
            end = floor_power(horizon, m, batches)
        else:
            end = floor_power(horizon, (2**m - 1) << (batches - m), 2**batches - 1)
        if end - (ends[-1] if ends else 0) >= arms and horizon - end >= arms:
            ends.append(end)
    return tuple(ends)
