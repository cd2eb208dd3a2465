"""What the calibrated tests of attacks share: policies on problems where arms are dropped, and one with a fault."""

from __future__ import annotations

from typing import Any

import numpy as np

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.geometry.actions.action_reading import spread_actions
from banditto.policies.certified_elimination.certified_elimination import LadderState
from banditto.policies.policy import Policy
from banditto.policies.shared.replicable import without_warnings

ARMS = (2, 3, 5, 10)
RHOS = (0.05, 0.1, 0.3)

# horizons of at least ten times the smallest at which an arm can be dropped (asserted), with few batches
HORIZONS: dict[Any, dict[int, int]] = {
    bd.CertifiedElimination: {2: 10**6, 3: 10**6, 5: 10**6, 10: 10**6},
    bd.RandomThreshold: {2: 10**6, 3: 10**7, 5: 10**8, 10: 10**9},
    bd.MeanRounding: {2: 10**6, 3: 10**6, 5: 10**7, 10: 10**8},
}
LINEAR = (bd.CertifiedLinear, bd.LinearThreshold, bd.LeastSquaresRounding)
NAMES = {kind.name: kind for kind in HORIZONS}


def made(name: str, arms: int, rho: float, **more: Any) -> Policy[Any]:
    kind = NAMES[name]
    policy: Policy[Any] = kind(arms=arms, horizon=HORIZONS[kind][arms], rho=rho, **more)
    minimum = policy.minimum_horizon()
    assert minimum is not None
    assert policy.horizon >= 10 * minimum
    return policy


def made_linear(kind: Any, arms: int, rho: float) -> Policy[Any]:
    """On actions that are spread out, with a hundred times the smallest horizon at which anything is learnt."""
    known = {"actions": spread_actions(arms, min(arms, 3)), "rho": rho}
    with without_warnings():  # the first one is too short
        smallest = kind(**known, horizon=10**6).minimum_horizon()
    policy: Policy[Any] = kind(**known, horizon=max(10**6, 100 * smallest))
    return policy


class MostlyShared(bd.CertifiedElimination):
    """A planted fault: in one of a hundred decisions an execution takes a coin that the other one does not see.

    Which one, a hash of its own totals says. So two executions share 99% of their coins, and nobody would notice who
    looks at one execution, or at a pair that is easy to decide.
    """

    def decide(self, state: LadderState, totals: FloatArray, coins: Coins) -> LadderState:
        """The intact decision, and in some rows that of another seed."""
        intact = super().decide(state, totals, coins)
        other = super().decide(state, totals, Coins(coins.seed ^ 1, coins.start, coins.count))
        odd = (self._words(totals) < 10_000)[:, np.newaxis]
        return _mixed(odd, other, intact)

    def _words(self, totals: FloatArray) -> IntArray:
        """Below 1,000,003, as good as random, and other ones in the other execution."""
        weights = np.arange(1, self.arms + 1) * 2_654_435_761
        words = (np.asarray(totals).astype(np.int64) * weights).sum(axis=1) % 1_000_003
        return np.asarray(words * 48_271 % 1_000_003)


def _mixed(odd: BoolArray, other: LadderState, intact: LadderState) -> LadderState:
    mixed = [np.where(odd, new, old) for new, old in zip(other[1:], intact[1:], strict=True)]
    return LadderState(intact.batch, *mixed)


class BrokenInOneOrder(MostlyShared):
    """Another one: coins are not shared at all, but only where the third arm leads and the second one is next."""

    def decide(self, state: LadderState, totals: FloatArray, coins: Coins) -> LadderState:
        """The intact decision, and in that order half of the time that of another seed."""
        intact = bd.CertifiedElimination.decide(self, state, totals, coins)
        other = bd.CertifiedElimination.decide(self, state, totals, Coins(coins.seed ^ 1, coins.start, coins.count))
        best = np.argsort(-np.asarray(totals), axis=1)
        there = (best[:, 0] == 2) & (best[:, 1] == 1)
        return _mixed((there & (self._words(totals) < 500_000))[:, np.newaxis], other, intact)
