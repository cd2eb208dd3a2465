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
from dataclasses import dataclass, replace
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
from banditto.schedule import Batch, Schedule
from banditto.text import short


class State(NamedTuple):
    """Arrays over replicates; `batch` counts from 1."""

    batch: int
    active: BoolArray  # (R, K)
    totals: FloatArray  # (R, K), cumulative
    remaining: IntArray  # (R, 1)
    testing: BoolArray  # (R, 1): the batch to come ends in a test


@dataclass(frozen=True, kw_only=True)
class RandomThreshold:
    """Algorithm 2 of *Replicable Bandits*.

    `sigma` is 1/2 for rewards in [0, 1]; with another sigma the rewards are taken as sigma-subgaussian unless
    `rewards="gaussian"`. `schedule` is for constants that were resolved before (see `from_protocol`).
    """

    arms: int
    horizon: int
    rho: float
    constants: Literal["certified", "paper"] = "certified"
    sigma: float = 0.5
    rewards: RewardKind | None = None
    schedule: Schedule | None = None

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
        for field, value in checked.items():
            object.__setattr__(self, field, value)
        if self.schedule is None:
            object.__setattr__(self, "schedule", self._resolve())
            if not self._can_drop():
                self._warn_of_short_horizon()

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> State:
        """All arms active, nothing spent."""
        replicates = integer(replicates, "replicates", 1, 10**9)
        # arm-major in memory: the engine draws and compares one arm of all replicates at a time
        active = np.ones((self.arms, replicates), dtype=np.bool_).T
        totals = np.zeros((self.arms, replicates), dtype=np.float64).T
        return self._opened(1, active, totals, np.full((replicates, 1), self.horizon, dtype=np.int64))

    def plan(self, state: State) -> IntArray | None:
        """The batch's pulls for every active arm, or all that remains for the first active arm."""
        xp = namespace(state.active)
        pulls: IntArray = xp.astype(state.testing & state.active, xp.int64) * self._schedule.batch(state.batch).pulls
        if bool(xp.all(state.testing)):
            return pulls
        if not bool(xp.any(state.remaining > 0)):
            return None
        first = xp.argmax(xp.astype(state.active, xp.int64), axis=-1, keepdims=True)  # (R, 1)
        commit = ~state.testing & (xp.reshape(xp.arange(self.arms), (1, -1)) == first)
        pulls += xp.astype(commit, xp.int64) * state.remaining
        return pulls

    def decide(self, state: State, totals: FloatArray, coins: Coins) -> State:
        """Drop the arms whose total is short of the leader's by more than the shared cut."""
        xp = namespace(totals)
        batch = self._schedule.batch(state.batch)
        totals = state.totals + xp.astype(totals, xp.float64)
        leader = xp.max(xp.where(state.active, totals, xp.asarray(-xp.inf)), axis=-1, keepdims=True)  # (R, 1)
        cut = batch.low + xp.asarray(coins.uniform("threshold", state.batch)) * batch.span  # (R, 1), shared
        spent = batch.pulls * xp.sum(xp.astype(state.active, xp.int64), axis=-1, keepdims=True)
        return self._opened(
            state.batch + 1,
            active=state.active & ((leader - totals <= cut) | ~state.testing),
            totals=totals,
            remaining=xp.astype(state.testing, xp.int64) * (state.remaining - spent),
        )

    def _opened(self, batch: int, active: Any, totals: Any, remaining: Any) -> State:
        """The state with its next step settled: a test, if several arms are left and the budget allows it."""
        xp = namespace(active)
        several = xp.sum(xp.astype(active, xp.int64), axis=-1, keepdims=True)
        affordable = self._schedule.batch(batch).pulls * several <= remaining
        within = xp.asarray(batch <= len(self._schedule.batches))
        return State(batch, active, totals, remaining, within & affordable & (several > 1))

    # -- its constants ------------------------------------------------------------------------------------

    def _resolve(self) -> Schedule:
        """The blow-up, and the batches that it leaves room for."""
        rho = written(self.rho)
        log, _, _ = self._ladder()
        with precise():
            if self.constants == "paper":
                blowup = max(int(self.arms**2 / rho**2), 2304)
            else:
                noise = confidence.gap_noise(self.arms, self._rewards)
                room = rho - Decimal(2) / self.horizon
                found = confidence.threshold_blowup(noise, log, self.arms - 1, room, self._undecided_batches)
                # no room when rho is below 2/T: then a blow-up so large that no test fits, and nothing can differ
                blowup = found or self.horizon
            batches, before = [], 0
            for c, width in self._tests_within(blowup):
                span = blowup * c * width / 2  # n U/2
                low = span * (1 + 2 / Decimal(blowup).sqrt())  # n (U/2 + U~)
                batches.append(Batch(blowup * (c - before), blowup * c, float(low), float(span)))
                before = c
        return Schedule(blowup, tuple(batches))

    def _ladder(self) -> confidence.Ladder:
        return confidence.ladder(self.arms, self.horizon, self.sigma)

    def _tests_within(self, blowup: int) -> list[tuple[int, Decimal]]:
        """(c_i, U_i) as far as two arms could be tested, or nothing if all K cannot be tested once."""
        _, samples, widths = self._ladder()
        if not samples or self.arms * blowup * samples[0] > self.horizon:
            return []
        return [(c, u) for c, u in zip(samples, widths, strict=True) if 2 * blowup * c <= self.horizon]

    def _undecided_batches(self, blowup: int) -> int:
        widths = [width for _, width in self._tests_within(blowup)]
        return confidence.undecided_batches(widths, blowup, self._rewards)

    # -- what is promised ---------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """The bound on P(two executions differ), term by term; see docs/random-threshold.md."""
        blowup, batches = self._schedule
        with precise():
            good = Decimal(2) / self.horizon
            if self.constants == "paper":
                flips = Decimal(96 * self.arms) / Decimal(blowup).sqrt()
                return Guarantee.of(
                    [
                        ("good event", good, "2/T: in either execution some mean is off by more than U~"),
                        ("undecided batches", flips, "K * 6 * 16/sqrt(beta): the paper's own union bound"),
                    ],
                    self.rho,
                    "The paper's constants do not support its claim; its union bound needs beta = 9216 K^2/rho^2.",
                )
            if not batches:
                reason = "no test fits into the horizon, so all executions are the same"
                return Guarantee.of([("no decision", Decimal(0), reason)], self.rho)
            most = self._undecided_batches(blowup)
            noise = confidence.gap_noise(self.arms, self._rewards)
            flip = confidence.flip_probability(noise, blowup, self._ladder().log)
            comparisons = (self.arms - 1) * most
            values = f"M = {most}, kappa = {short(float(noise))}, beta = {blowup}"
            return Guarantee.of(
                [
                    ("good event", good, "2/T: in either execution some mean is off by more than U~/2"),
                    ("undecided batches", comparisons * flip, f"(K-1) M kappa/sqrt(beta L), {values}"),
                    ("coin resolution", comparisons * confidence.COIN_RESOLUTION, "(K-1) M 2^-48"),
                ],
                self.rho,
            )

    def minimum_horizon(self) -> int | None:
        """The smallest horizon at which some arm could be dropped: best rewards against worst, luckiest coin."""
        return self._useful_horizon_from(self.arms)

    def _useful_horizon_from(self, start: int) -> int | None:
        """The next horizon at which some arm could be dropped."""
        # Do not search where it cannot be: K beta c <= T is needed, with c > L/2 (U/2 < 1) in [0, 1], else c >= 2.
        noise = confidence.gap_noise(self.arms, self._rewards)
        bounded = self._rewards.kind == "bounded"
        with precise():
            shortest, longest = (confidence.ladder(self.arms, T, self.sigma).log for T in (10, LONGEST_HORIZON))
            if self.constants == "paper":
                least = self._schedule.blowup * (shortest / 2 if bounded else 2)
            else:
                least = (noise * (self.arms - 1) / written(self.rho)) ** 2 / (2 if bounded else longest / 2)
            start = max(start, SHORTEST_HORIZON, int(self.arms * least))
        return next(useful_horizons(self._can_drop_at, start), None)

    def _can_drop(self) -> bool:
        bounded = self._rewards.kind == "bounded"
        return any(
            self.arms * batch.samples <= self.horizon and (not bounded or batch.low < batch.samples)
            for batch in self._schedule.batches
        )

    def _can_drop_at(self, horizon: int) -> bool:
        # the empty schedule keeps the constructor from warning about every horizon that is tried
        other = replace(self, horizon=horizon, schedule=Schedule(0, ()))
        return replace(other, schedule=other._resolve())._can_drop()

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
            "blow-up": self._schedule.blowup,
            "rule": "drop an arm whose mean is below the leader's by more than a threshold from low to high",
        }
        rows = tuple(
            (i, b.pulls, b.samples, round(b.low / b.samples, 6), round((b.low + b.span) / b.samples, 6))
            for i, b in enumerate(self._schedule.batches, 1)
        )
        return Description(facts, ("batch", "pulls per arm", "so far", "low", "high"), rows)

    # -- what is written down -----------------------------------------------------------------------------

    @property
    def _schedule(self) -> Schedule:
        assert self.schedule is not None  # __post_init__ sees to it
        return self.schedule

    @property
    def _rewards(self) -> Rewards:
        return Rewards.of(self.rewards, self.sigma)

    def check_rewards(self, rewards: Rewards) -> None:
        """Refuse rewards that the guarantee does not cover."""
        mine = self._rewards
        # kappa is the same for [0, 1] and for Gaussian rewards, so either covers the other at its sigma
        covered = mine.kind == "subgaussian" or rewards.kind != "subgaussian"
        if not covered or rewards.sigma > mine.sigma:
            raise InvalidArgument("environment", rewards, f"{mine}, which the policy was built for")

    def settings(self) -> Mapping[str, Plain]:
        """What the user chose."""
        return {"constants": self.constants, "rewards": self._rewards.kind, "sigma": fraction(self.sigma)}

    def resolved(self) -> Mapping[str, Plain]:
        """The blow-up and every batch's pulls and cut."""
        return self._schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> RandomThreshold:
        """The policy that decides by a protocol's resolved constants, which are not computed again."""
        settings: Any = protocol.settings
        for key in ("constants", "rewards", "sigma"):
            if key not in settings:
                raise InvalidArgument("protocol", f"settings without {key!r}", f"what {cls.name} writes")
        return cls(
            arms=protocol.arms,
            horizon=protocol.horizon,
            rho=open_unit(protocol.rho, "rho"),
            constants=settings["constants"],
            rewards=settings["rewards"],
            sigma=from_fraction(settings["sigma"], "sigma"),
            schedule=Schedule.from_plain(protocol.resolved, protocol.horizon),
        )
