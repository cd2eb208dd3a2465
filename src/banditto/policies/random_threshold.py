"""Elimination against a shared random threshold.

Paper    Esfandiari et al. 2023, Algorithm 2, Theorem 4.
Symbols  K: arms, T: horizon, B: batches, i: batch, q: growth, c: samples before the blow-up, beta: blow-up,
         n = beta c: samples, L: log factor, U, U~: widths, Ubar: the shared threshold, uniform on [U/2, U]
Departs  - The budget is tested with the active set of the batch before (printed with a set not yet defined).
         - floor(q^i) and floor(K^2 / rho^2) are exact integers; B = floor(log T).
         - Line 18 is compared on totals, times n, so that it is exact when totals are integers.
         - An arm exactly on the cut stays (as printed; the proof's text has <=).
         - Once one arm is left it gets all that remains: the paper's further batches pull the same arm.
         - constants="certified" takes for beta the smallest blow-up for which the bound proved in
           docs/random-threshold.md is at most rho. With constants="paper" only the repairs above are made.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from banditto import confidence
from banditto.arrays import BoolArray, FloatArray, IntArray, namespace
from banditto.coins import Coins
from banditto.errors import InvalidArgument, ShortHorizonWarning
from banditto.exact import integer, open_unit, precise, written
from banditto.horizons import LONGEST_HORIZON, SHORTEST_HORIZON, checked_arms, checked_horizon, useful_horizons
from banditto.policy import Description, Guarantee
from banditto.protocol import Plain, Protocol, fraction, from_fraction
from banditto.rewards import RewardKind, Rewards
from banditto.schedule import Schedule
from banditto.thresholds import Problem


class State(NamedTuple):
    """Arrays over replicates; `batch` counts from 1."""

    batch: int
    active: BoolArray  # (R, K)
    totals: FloatArray  # (R, K), cumulative; -inf for a dropped arm
    # the rest follows from these and is kept because making it again costs a pass over (R, K) in every batch
    several: IntArray  # (R, 1): how many arms are active
    remaining: IntArray  # (R, 1): pulls left
    testing: BoolArray  # (R, 1): the batch to come ends in a test
    all_testing: bool


@dataclass(frozen=True, kw_only=True)
class RandomThreshold:
    """Algorithm 2 of *Replicable Bandits*.

    `sigma` is 1/2 for rewards in [0, 1]; with another sigma the rewards are taken as sigma-subgaussian unless
    `rewards="gaussian"`. `schedule` holds the resolved constants that decide.
    """

    arms: int
    horizon: int
    rho: float
    constants: Literal["certified", "paper"] = "certified"
    sigma: float = 0.5
    rewards: RewardKind | None = None
    schedule: Schedule = field(init=False, repr=False)

    name: ClassVar[str] = "random-threshold"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        arms = checked_arms(self.arms)
        horizon = checked_horizon(self.horizon, arms)
        rho = open_unit(self.rho, "rho")
        rewards = Rewards.of(self.rewards, self.sigma)
        if self.constants not in ("certified", "paper"):
            raise InvalidArgument("constants", self.constants, "'certified' or 'paper'")
        checked = {
            "arms": arms,
            "horizon": horizon,
            "rho": rho,
            "rewards": rewards.kind,
            "sigma": rewards.sigma,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "schedule", self._resolved_at(horizon))
        if not self._can_drop_at(horizon):
            self._warn_of_short_horizon()

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> State:
        """All arms active, nothing spent."""
        replicates = integer(replicates, "replicates", 1, 10**9)
        # arm-major in memory: the engine draws and compares one arm of all replicates at a time
        active = np.ones((self.arms, replicates), dtype=np.bool_).T
        totals = np.zeros((self.arms, replicates), dtype=np.float64).T
        several = np.full((replicates, 1), self.arms, dtype=np.int64)
        return self._opened(1, active, totals, several, np.full((replicates, 1), self.horizon, dtype=np.int64))

    def plan(self, state: State) -> IntArray | None:
        """The batch's pulls for every active arm, or all that remains for the first active arm."""
        xp = namespace(state.active)
        step = self.schedule.batch(state.batch).pulls
        if state.all_testing:
            pulls: IntArray = xp.astype(state.active, xp.int64) * step
            return pulls
        if not bool(xp.any(state.remaining > 0)):
            return None
        chosen = xp.zeros_like(state.active)  # arm-major like its model, arm by arm below: three times as fast
        seeking = ~state.testing  # (R, 1): those that commit and have not met their first active arm
        for arm in range(self.arms):
            here = state.active[:, arm : arm + 1]
            chosen[:, arm : arm + 1] = here & (state.testing | seeking)
            seeking &= ~here
        each = xp.where(state.testing, xp.asarray(step), state.remaining)  # (R, 1)
        commit: IntArray = xp.astype(chosen, xp.int64) * each
        return commit

    def decide(self, state: State, totals: FloatArray, coins: Coins) -> State:
        """Drop the arms whose total is short of the leader's by more than the shared cut."""
        xp = namespace(totals)
        batch = self.schedule.batch(state.batch)
        totals = state.totals + totals  # (R, K), -inf where dropped
        leader = xp.max(totals, axis=-1, keepdims=True)  # (R, 1)
        cut = batch.low + xp.asarray(coins.uniform("threshold", state.batch)) * batch.span  # (R, 1), shared
        stays = leader - totals <= cut
        remaining = state.remaining - batch.pulls * state.several
        if not state.all_testing:
            stays |= ~state.testing
            remaining *= xp.astype(state.testing, xp.int64)
        active, several = state.active, state.several
        if not bool(xp.all(stays)):
            active = active & stays
            several = xp.sum(xp.astype(active, xp.int64), axis=-1, keepdims=True)
            totals = xp.where(active, totals, xp.asarray(-xp.inf))
        return self._opened(state.batch + 1, active, totals, several, remaining)

    def _opened(self, batch: int, active: Any, totals: Any, several: Any, remaining: Any) -> State:
        """The state with its next step settled: a test, if several arms are left and the budget allows it."""
        xp = namespace(active)
        testing = (self.schedule.batch(batch).pulls * several <= remaining) & (several > 1)
        if batch > len(self.schedule.batches):
            testing = xp.zeros_like(testing)
        return State(batch, active, totals, several, remaining, testing, bool(xp.all(testing)))

    # -- its constants and what they promise ---------------------------------------------------------------

    def _problem_at(self, horizon: int) -> Problem:
        return Problem(self.arms, horizon, self._rewards)

    def _resolved_at(self, horizon: int) -> Schedule:
        """Lines 2 and 3: the blow-up, and the batches that it leaves room for."""
        problem = self._problem_at(horizon)
        paper = self.constants == "paper"
        return problem.schedule(problem.paper_blowup(self.rho) if paper else problem.certified_blowup(self.rho))

    def guarantee(self) -> Guarantee:
        """The bound on P(two executions differ), term by term; see docs/random-threshold.md."""
        problem, blowup = self._problem_at(self.horizon), self.schedule.blowup
        paper = self.constants == "paper"
        if self.schedule != problem.schedule(problem.paper_blowup(self.rho) if paper else blowup):
            reason = "batches and cuts are not those that the proof is about, so nothing is proved"
            return Guarantee.of([("unproved constants", Decimal(1), reason)], self.rho)
        if paper:
            note = "The paper's constants do not support its claim; its union bound needs beta = 9216 K^2/rho^2."
            return Guarantee.of(problem.paper_terms(blowup), self.rho, note)
        if not self.schedule.batches:
            reason = "no test fits into the horizon, so all executions are the same"
            return Guarantee.of([("no decision", Decimal(0), reason)], self.rho)
        return Guarantee.of(problem.certified_terms(blowup), self.rho)

    def minimum_horizon(self) -> int | None:
        """The smallest horizon at which some arm could be dropped: best rewards against worst, luckiest coin."""
        return self._useful_horizon_from(self.arms)

    def _useful_horizon_from(self, start: int) -> int | None:
        """The next horizon at which some arm could be dropped."""
        # Do not search where it cannot be: K beta c <= T is needed, with c > L/2 (U/2 < 1) in [0, 1], else c >= 2.
        bounded = self._rewards.kind == "bounded"
        with precise():
            if self.constants == "paper":
                least = self.schedule.blowup * (self._problem_at(SHORTEST_HORIZON).ladder.log / 2 if bounded else 2)
            else:
                noise = confidence.gap_noise(self.arms, self._rewards)
                halves = 2 if bounded else self._problem_at(LONGEST_HORIZON).ladder.log / 2
                least = (noise * (self.arms - 1) / written(self.rho)) ** 2 / halves
            start = max(start, SHORTEST_HORIZON, int(self.arms * least))
        return next(useful_horizons(self._can_drop_at, start), None)

    def _can_drop_at(self, horizon: int) -> bool:
        schedule = self.schedule if horizon == self.horizon else self._resolved_at(horizon)
        return self._problem_at(horizon).can_drop(schedule)

    def _warn_of_short_horizon(self) -> None:
        longer = self._useful_horizon_from(self.horizon)
        advice = "no horizon in range is long enough" if longer is None else f"it must be at least {longer}"
        message = (
            f"horizon {self.horizon} is too short to drop any of {self.arms} arms at rho = {self.rho:g} with "
            f"{self.constants} constants, so one arm is played for good without evidence; {advice}"
        )
        warnings.warn(message, ShortHorizonWarning, stacklevel=4)

    def describe(self) -> Description:
        """Batches, pulls and thresholds (as differences of means)."""
        facts = {
            "policy": f"{self.name}, {self.constants} constants",
            "arms": self.arms,
            "horizon": self.horizon,
            "rho": self.rho,
            "rewards": str(self._rewards),
            "blow-up": self.schedule.blowup,
            "rule": "drop an arm whose mean is below the leader's by more than a threshold from low to high",
        }
        rows = tuple(
            (i, b.pulls, b.samples, round(b.low / b.samples, 6), round((b.low + b.span) / b.samples, 6))
            for i, b in enumerate(self.schedule.batches, 1)
        )
        return Description(facts, ("batch", "pulls per arm", "so far", "low", "high"), rows)

    # -- what is written down -----------------------------------------------------------------------------

    @property
    def _rewards(self) -> Rewards:
        return Rewards.of(self.rewards, self.sigma)

    def check_rewards(self, rewards: Rewards) -> None:
        """Refuse rewards that the guarantee does not cover."""
        mine = self._rewards
        # the constants are the same for [0, 1] and for Gaussian rewards, so either covers the other at its sigma
        covered = mine.kind == "subgaussian" or rewards.kind != "subgaussian"
        if not covered or rewards.sigma > mine.sigma:
            raise InvalidArgument("environment", rewards, f"{mine}, which the policy was built for")

    def settings(self) -> Mapping[str, Plain]:
        """What the user chose."""
        return {"constants": self.constants, "rewards": self._rewards.kind, "sigma": fraction(self.sigma)}

    def resolved(self) -> Mapping[str, Plain]:
        """The blow-up and every batch's pulls and cut."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> RandomThreshold:
        """The policy that decides by a protocol's resolved constants, whatever this machine would resolve."""
        settings: Any = protocol.settings
        for key in ("constants", "rewards", "sigma"):
            if key not in settings:
                raise InvalidArgument("protocol", f"settings without {key!r}", f"what {cls.name} writes")
        policy = cls(
            arms=protocol.arms,
            horizon=protocol.horizon,
            rho=open_unit(protocol.rho, "rho"),
            constants=settings["constants"],
            rewards=settings["rewards"],
            sigma=from_fraction(settings["sigma"], "sigma"),
        )
        object.__setattr__(policy, "schedule", Schedule.from_plain(protocol.resolved, protocol.horizon))
        return policy
