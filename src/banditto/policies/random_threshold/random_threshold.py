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

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, namespace, within
from banditto.core.exact import precise, written
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON, useful_horizons
from banditto.core.protocol import Plain, Protocol
from banditto.core.schedule import Schedule
from banditto.core.text import significant
from banditto.policies.policy import Description, Guarantee
from banditto.policies.random_threshold.threshold_constants import ThresholdProblem
from banditto.policies.shared import confidence, elimination
from banditto.policies.shared.elimination import Race
from banditto.policies.shared.replicable import UNRESOLVED, Replicable


@dataclass(frozen=True, kw_only=True)
class RandomThreshold(Replicable):
    """Algorithm 2 of *Replicable Bandits*, Theorem 4: elimination against a shared random threshold.

    The bound of `constants="certified"` is proved in docs/random-threshold.md; the paper's own constants have no proof
    that gives rho.

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
        >>> policy = RandomThreshold(arms=2, horizon=10**6, rho=0.1)
        >>> policy.schedule.blowup, policy.guarantee().holds
        (29, True)
        >>> paper = RandomThreshold(arms=2, horizon=10**6, rho=0.1, constants="paper")
        >>> paper.schedule.blowup, paper.guarantee().holds
        (2304, False)
    """

    schedule: Schedule = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "random-threshold"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(schedule=self.schedule or self._resolved_at(self.horizon))
        if not self._can_drop_at(self.horizon):
            self._warn_of_short_horizon(lambda: self._useful_horizon_from(self.horizon))

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> Race:
        """Return the state before the first batch: all arms active, nothing spent."""
        return elimination.start(self.arms, self.horizon, replicates, self.schedule.batch(1).pulls)

    def plan(self, state: Race) -> IntArray | None:
        """Return the batch's pulls for every active arm, or all that remains for the first active arm."""
        return elimination.plan(state, self.schedule.batch(state.batch).pulls)

    def decide(self, state: Race, totals: FloatArray, coins: Coins) -> Race:
        """Drop the arms whose total is short of the leader's by more than the shared cut; return the new state."""
        xp = namespace(totals)
        batch, following = self.schedule.batch(state.batch), self.schedule.batch(state.batch + 1)
        totals = state.totals + totals  # (R, K), -inf where dropped
        cut = batch.low + xp.asarray(coins.uniform("threshold", state.batch)) * batch.span  # (R, 1), shared
        return elimination.after(state, totals, within(totals, cut), batch.pulls, following.pulls)

    def by_lead(self, state: Race, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates this batch drops an arm; shape (R, 1)."""
        return elimination.dropped(state, self.decide(state, totals, coins))

    # -- its constants and what they promise ---------------------------------------------------------------

    def _problem_at(self, horizon: int) -> ThresholdProblem:
        return ThresholdProblem(self.arms, horizon, self._rewards)

    def _resolved_at(self, horizon: int) -> Schedule:
        """Return the schedule for a horizon: lines 2 and 3, the blow-up and the batches that it leaves room for."""
        problem = self._problem_at(horizon)
        return problem.schedule(problem.paper_blowup(self.rho) if self._paper else problem.certified_blowup(self.rho))

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ), term by term; see docs/random-threshold.md."""
        problem, blowup = self._problem_at(self.horizon), self.schedule.blowup
        if self.schedule != problem.schedule(problem.paper_blowup(self.rho) if self._paper else blowup):
            reason = "the proof does not cover these batches and cuts, so nothing is proved"
            return Guarantee.of([("unproved constants", Decimal(1), reason)], self.rho)
        if self._paper:
            note = "The paper's constants do not support its claim; its union bound needs beta = 9216 K^2/rho^2."
            return Guarantee.of(problem.paper_terms(blowup), self.rho, note)
        if not self.schedule.batches:
            reason = "no test fits into the horizon, so all executions are the same"
            return Guarantee.of([("no decision", Decimal(0), reason)], self.rho)
        return Guarantee.of(problem.certified_terms(blowup), self.rho, self._caution)

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which some arm could be dropped: best rewards against worst, luckiest coin."""
        return self._useful_horizon_from(self.arms)

    def _useful_horizon_from(self, start: int) -> int | None:
        """Return the next horizon, from `start` on, at which some arm could be dropped; None if there is none."""
        # Do not search where it cannot be: K beta c <= T is needed, with c > L/2 (U/2 < 1) in [0, 1], else c >= 2.
        bounded = self._rewards.kind == "bounded"
        with precise():
            if self._paper:
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

    def describe(self) -> Description:
        """Return the batches with their pulls and thresholds (as differences of means)."""
        facts = self._facts() | {
            "blow-up": self.schedule.blowup,
            "rule": "drop an arm whose mean is below the leader's by more than a threshold",
            "end": "what remains goes to the first of the arms that are left",
        }
        rows = tuple(
            (i, b.pulls, b.samples, significant(b.low / b.samples), significant((b.low + b.span) / b.samples))
            for i, b in enumerate(self.schedule.batches, 1)
        )
        return Description(facts, ("batch", "pulls per arm", "so far", "low", "high"), rows)

    # -- what is written down -----------------------------------------------------------------------------

    def resolved(self) -> Mapping[str, Plain]:
        """Return the blow-up and every batch's pulls and cut."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> RandomThreshold:
        """Return the policy that decides by a protocol's resolved constants, whatever this machine would resolve."""
        return cls(**cls._arguments(protocol), schedule=Schedule.from_plain(protocol.resolved, protocol.horizon))
