"""Explore-then-commit with a known gap: every arm equally often, then the best one for good.

Paper    Esfandiari et al. 2023, section 2.1, "Warm-up I: Naive Replicability and Challenges".
Symbols  K: arms, Delta: the gap, m: pulls of each arm before the commitment
Departs  - It is replicable only under a promise: one arm is better than all others by at least Delta. The guarantee
           says so, and `guarantee().on(means)` says whether given means keep it.
         - constants="paper" is the printed m = 4/Delta^2 log(1/rho), rounded up (at sigma = 1/2; else 16 sigma^2).
         - constants="certified" takes the smallest m for which 2 (K-1) exp(-m Delta^2/(4 sigma^2)) is at most rho
           (docs/explore-then-commit.md).
         - Ties of means go to the lowest index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray, namespace
from banditto.core.errors import InvalidArgument
from banditto.core.exact import ceiling, integer, precise, real, written
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.protocol import Plain, Protocol
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared import elimination
from banditto.policies.shared.elimination import Race
from banditto.policies.shared.replicable import UNRESOLVED, Replicable


@dataclass(frozen=True, kw_only=True)
class ExploreThenCommit(Replicable):
    """Warm-up I of *Replicable Bandits*: all arms equally often, then the best one for good.

    The promise is that one arm leads by `gap`. Where it holds, the bound does, as docs/explore-then-commit.md proves.

    Args:
        arms: The number of arms, 2 to 1,000.
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified" (default), for which the bound is proved, or "paper", as printed.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        rate_at_most: A promise that no arm's mean exceeds this, for rewards in [0, 1]. Default None: no promise.
        gap: The promised lead of the best arm over all others, above 0 and in units of the rewards.
        pulls: The resolved number of pulls of each arm. The constructor finds it, unless a protocol brings it.

    Examples:
        >>> policy = ExploreThenCommit(arms=2, horizon=10**6, rho=0.1, gap=0.1)
        >>> policy.pulls
        300
        >>> policy.guarantee().on([0.9, 0.8]).holds, policy.guarantee().on([0.9, 0.85]).holds
        (True, False)
    """

    gap: float
    pulls: int = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "explore-then-commit"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        widest = self._rewards.widest_gap
        narrowest = 1e-9 * self.sigma  # below it rounded totals would matter
        allowed = f"a number from {narrowest:g} to {widest:g}"
        gap = real(self.gap, "gap", allowed)
        if not narrowest <= gap <= widest:
            raise InvalidArgument("gap", self.gap, allowed)
        self._set(gap=gap)
        self._set(pulls=self._needed() if self.pulls is None else integer(self.pulls, "pulls", 1, 10**60))
        if not self._fits:
            self._warn_of_short_horizon(self.minimum_horizon)

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> Race:
        """Return the state before the first batch: all arms active, nothing spent."""
        return elimination.start(self.arms, self.horizon, replicates, self._pulls_in(1))

    def plan(self, state: Race) -> IntArray | None:
        """Return m pulls of every arm, then all that remains for the arm that is left."""
        return elimination.plan(state, self._pulls_in(state.batch))

    def decide(self, state: Race, totals: FloatArray, coins: Coins) -> Race:
        """Keep the arm with the largest total, without coins, and return the state after that."""
        xp = namespace(totals)
        totals = state.totals + totals
        best = xp.argmax(totals, axis=-1, keepdims=True)  # (R, 1), the first of equals
        stays = xp.arange(self.arms)[None, :] == best
        return elimination.after(state, totals, stays, self._pulls_in(state.batch), 0)

    @property
    def _fits(self) -> bool:
        return self.arms * self.pulls < self.horizon  # a pull must be left for the best arm

    def _pulls_in(self, batch: int) -> int:
        return self.pulls if batch == 1 and self._fits else 0

    # -- its constants and what they promise ---------------------------------------------------------------

    def _rate(self) -> Decimal:
        """Return r, for which P(a worse arm's mean reaches the best one's after m pulls each) <= exp(-r m)."""
        with precise():
            # totals are rounded: a lead of Delta can lose this much
            lead = written(self.gap) - Decimal(2) ** -48 * Decimal(self._rewards.reach)
            return max(lead, Decimal(0)) ** 2 / (4 * Decimal(self.sigma) ** 2)

    def _needed(self) -> int:
        """Return m, the pulls of each arm after which the best mean is most likely the best arm's."""
        with precise():
            if self._paper:
                return ceiling(16 * Decimal(self.sigma) ** 2 / written(self.gap) ** 2 * (1 / written(self.rho)).ln())
            return ceiling((2 * (self.arms - 1) / written(self.rho)).ln() / self._rate())

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ) under the promise; see docs/explore-then-commit.md."""
        if not self._fits:
            reason = "exploration does not fit into the horizon, so all executions are the same"
            return Guarantee.of([("no decision", Decimal(0), reason)], self.rho)
        with precise():
            wrong = 2 * (self.arms - 1) * (-self._rate() * self.pulls).exp()
        statement = f"2 (K-1) exp(-m Delta^2/(4 sigma^2)), m = {self.pulls}: in some execution another arm leads"
        note = f"Holds only if one arm is better than all others by at least {self.gap:g}. {self._caution}".rstrip()
        return Guarantee.of([("wrong commitment", wrong, statement)], self.rho, note, promised_gap=self.gap)

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which all arms are explored and one pull is left; None if out of range."""
        needed = self.arms * self.pulls + 1
        return needed if needed <= LONGEST_HORIZON else None

    def describe(self) -> Description:
        """Return the one batch of exploration, if it fits into the horizon."""
        facts = self._facts() | {"gap": self.gap, "rule": "after the batch play the arm with the best mean for good"}
        rows = ((1, self.pulls, self.pulls),) if self._fits else ()
        return Description(facts, ("batch", "pulls per arm", "so far"), rows)

    # -- what is written down -----------------------------------------------------------------------------

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose; the gap as it was written."""
        return {**super().settings(), "gap": str(written(self.gap))}

    def resolved(self) -> Mapping[str, Plain]:
        """Return the pulls of each arm."""
        return {"pulls": self.pulls}

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> ExploreThenCommit:
        """Return the policy that explores as long as a protocol says."""
        pulls = protocol.resolved.get("pulls")
        known = integer(pulls if isinstance(pulls, int) else str(pulls), "pulls", 1, 10**60)
        return cls(**cls._arguments(protocol, "gap"), pulls=known)
