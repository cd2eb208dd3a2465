"""Elimination by least squares against a shared random threshold, for finitely many actions.

Paper    Esfandiari et al. 2023, Algorithm 3, Theorem 6.
Symbols  K: arms, d: dimension, A: active arms, pi: design, g: max a' V(pi)^-1 a, beta: blow-up, q = T^(1/B),
         L: log(2KTB), eps: width, eps~ = eps/sqrt(beta), v(a) = <a, theta_hat>, lambda: scale of the final noise
Departs  - The printed n_i is 10 q^i whatever beta, K, rho and d; the proof pulls the multi-set of Lemma 5 for eps~. So
           n_a = ceil(2 pi(a) g beta q^i / d), and their sum is charged. eps scales with sigma.
         - constants="paper" plays the printed last line, argmax v(a) over the survivors of the last batch. theta_hat is
           not shared: two tied survivors differ in half of all pairs (tests/statistical/test_linear.py). certified ends
           with a fresh final batch and argmax v(a) + lambda Gumbel, the noise being shared.
         - paper: beta as printed, for which the paper's own union bound gives 80 rho; certified: the smallest beta for
           which docs/linear-threshold.md proves rho.
         - Batches with eps above the widest gap, after which hardly anything is dropped, are left out; where double
           precision cannot tell the active arms apart, testing ends. Once one arm is left it gets all that remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON, useful_horizons
from banditto.core.protocol import Plain, Protocol
from banditto.core.text import significant
from banditto.policies.linear_threshold.linear_constants import (
    FINAL_OF,
    FINAL_PARTS,
    LinearProblem,
    LinearSchedule,
    spare_bias,
)
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared.replicable import UNRESOLVED
from banditto.policies.shared_linear.contests import contest
from banditto.policies.shared_linear.linear_race import LinearRace, Step


@dataclass(frozen=True, kw_only=True)
class LinearThreshold(LinearRace):
    """Algorithm 3 of *Replicable Bandits*, Theorem 6: finitely many actions against a shared random threshold.

    Pull by design, drop what is behind by more than the threshold, and again. The bound is proved in
    docs/linear-threshold.md.

    Args:
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified" (default), for which the bound is proved, or "paper", as printed.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        actions: The features: a matrix with a row for each arm, or `FiniteActions`. No row is longer than 1.
        centre: What is subtracted from every reward, -1 to 1. Default 1/2 for rewards in [0, 1], else 0.
        schedule: The resolved constants that decide. The constructor finds them, unless a protocol brings them.

    Examples:
        >>> policy = LinearThreshold(actions=[[1, 0], [0.6, 0.6], [0, 1]], horizon=10**7, rho=0.1)
        >>> policy.guarantee().holds
        True
    """

    schedule: LinearSchedule = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "linear-threshold"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule is not None:  # without the search, whose result nobody would use
            if self.schedule.choice_rho == 0.0 and not self._paper:
                raise InvalidArgument("choice_rho", 0, "above 0 with certified constants")
            return
        problem = self._problem
        blowup = problem.paper_blowup() if self._paper else problem.certified_blowup()
        self._set(schedule=problem.schedule(blowup, self._paper))
        if not self.schedule.batches:
            self._warn_of_short_horizon(self.minimum_horizon)

    @property
    def _problem(self) -> LinearProblem:
        return LinearProblem(self.arms, self._dimension, self.horizon, self.rho, self._rewards, self._widest)

    # -- the algorithm: `LinearRace` plays it, this says how large a batch is and who stays ----------------------

    def _test(self, key: bytes, batch: int) -> Step | None:
        """Return the size and precision of a batch's test, of ceil(2 beta q^i g / d) pulls; None if there is none."""
        size, found = self.schedule.batch(batch), contest(self.actions, key)
        if size is None or found is None:
            return None
        slack = size.width * spare_bias(self._problem, self.schedule.blowup)
        return Step(size.pulls(found.g), size.width * 2.0**-26, slack)

    def _survivors(self, batch: int, values: FloatArray, coins: FloatArray) -> BoolArray:
        """Return which arms stay: all within epsbar + eps~ of the leader, where epsbar is uniform on [eps/2, eps]."""
        size = self.schedule.batch(batch)
        assert size is not None
        cut = size.low + coins * size.width  # (R, 1)
        return np.asarray(np.max(values, axis=1, keepdims=True) - values <= cut)

    def _uniforms(self, batch: int, coins: Coins) -> FloatArray:
        return coins.uniform("threshold", batch)

    @property
    def _final(self) -> tuple[int, int, float]:
        return FINAL_PARTS, FINAL_OF, self.schedule.choice_rho

    # -- its constants and what they promise ---------------------------------------------------------------

    @property
    def free_constants(self) -> frozenset[str]:
        """The blow-up, if no test uses it; else nothing."""
        return frozenset() if self.schedule.batches else frozenset({"blowup"})

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ), term by term; see docs/linear-threshold.md."""
        if not self._problem.proved(self.schedule, self._paper):
            reason = "the proof does not cover these batches and cuts, so nothing is proved"
            return Guarantee.of([("unproved constants", Decimal(1), reason)], self.rho)
        if self._paper:
            terms = self._problem.paper_terms(self.schedule.blowup)
            return Guarantee.of(terms, self.rho, "The printed last line is not replicable.")
        return Guarantee.of(self._problem.certified_terms(self.schedule), self.rho, self._caution)

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which a first test fits; None when there is none in range."""

        def can_drop(horizon: int) -> bool:
            return self._problem._replace(horizon=horizon).can_test(self._paper)

        shortest = max(SHORTEST_HORIZON, self.arms)
        found = next((shortest << k for k in range(50) if can_drop(min(shortest << k, LONGEST_HORIZON))), None)
        if found is None:
            return None
        # not monotone, but no step of q or of a floor makes a sixteenth of a useful horizon useful
        return next(useful_horizons(can_drop, max(shortest, found // 16)), None)

    def describe(self) -> Description:
        """Return the batches, their pulls with all arms active, and their thresholds on gaps."""
        facts = self._facts() | {
            "blow-up": self.schedule.blowup,
            "rule": "drop an arm that is behind by more than a threshold",
            "end": "argmax of the last estimate among the survivors"
            if self._paper
            else f"a final batch of {FINAL_PARTS}/{FINAL_OF} of what remains; largest value + shared Gumbel noise",
        }
        found = contest(self.actions, self._field.whole)
        rows = []
        for number, batch in enumerate(self.schedule.batches, 1):
            allocation = None if found is None else found.design.plan(batch.pulls(found.g))
            if allocation is None or allocation.total >= self.horizon:
                break
            edges = significant(batch.low), significant(batch.low + batch.width)
            rows.append((number, allocation.total, max(allocation.pulls), *edges))
        return Description(facts, ("batch", "pulls if all are active", "pulls per arm", "low", "high"), tuple(rows))

    # -- what is written down -----------------------------------------------------------------------------

    def resolved(self) -> Mapping[str, Plain]:
        """Return the blow-up, every batch's size and thresholds, and the final choice."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> LinearThreshold:
        """Return the policy that decides by a protocol's resolved constants."""
        return cls(**cls._arguments(protocol), schedule=LinearSchedule.from_plain(protocol.resolved))
