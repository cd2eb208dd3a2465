"""Looking at single executions: which arm each side of a pair pulled in chosen rounds, and how regret grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.exact import integer
from banditto.engine.block_sizes import is_infinite
from banditto.engine.player import Run, player_of, run_of
from banditto.engine.watched_executions import WatchedExecution
from banditto.policies.policy import AnyPolicy, Level, own_level
from banditto.problems.environment import Environment


@dataclass(frozen=True, kw_only=True)
class PairView:
    """The arms of both sides of a pair at some rounds, and the digests of the whole sequences.

    Attributes:
        policy: the policy's name.
        horizon: pulls in one execution.
        arms: how many arms there are, or how many actions were pulled from an infinite set.
        rounds: the rounds that were looked at, counted from 0.
        first: the first side's arm in each of them.
        second: the second side's arm in each of them.
        digests: sha256 of the whole sequence of each side.
        level: what the sides are compared by: "sequence", every pull, or "winner", the arm that each names.
        executions: both sides, which `analyse` takes one by one.
    """

    policy: str
    horizon: int
    arms: int
    rounds: IntArray  # (N,), counted from 0
    first: IntArray  # (N,)
    second: IntArray  # (N,)
    digests: tuple[str, str]
    level: Level = "sequence"
    executions: tuple[WatchedExecution, ...] = field(default=(), repr=False, compare=False)

    @property
    def same(self) -> bool:
        """Whether the two sequences are equal, all of them and not only at `rounds`; or, by its level, the winners."""
        if self.level == "winner":
            return bool(self.first[-1] == self.second[-1])  # all that is left is the winner's
        return self.digests[0] == self.digests[1]


def watch_pair(
    policy: AnyPolicy,
    environment: Environment,
    *,
    pair: int = 0,
    seed: int = 0,
    noise_seed: int | None = None,
    horizon: int | None = None,
    points: int = 1200,
) -> PairView:
    """Look at one pair of the run that `certify` would make; both sides' arms come back, at log-spaced rounds.

    Args:
        policy: what is played: a replicable policy, a baseline, or one of your own.
        environment: the arms and their rewards.
        pair: the number of the pair, from 0.
        seed: the seed of the coins, which both sides share.
        noise_seed: the seed of the rewards, which they do not share; it follows from `seed` by default.
        horizon: pulls in one execution, for a policy that has no horizon of its own.
        points: at how many rounds to look, at most; they are closer together at the beginning.

    Returns:
        A view with `rounds`, the arms of `first` and `second` side there, and `same` for the whole sequences.

    Examples:
        >>> from banditto import Bernoulli, CertifiedElimination
        >>> view = watch_pair(CertifiedElimination(arms=2, horizon=10**5, rho=0.1), Bernoulli([0.9, 0.5]))
        >>> view.same, view.horizon
        (True, 100000)
    """
    run = run_of(policy, environment, seed=seed, noise_seed=noise_seed, horizon=horizon)
    pair = integer(pair, "pair", 0, 10**9)
    points = integer(points, "points", 2, 10**6)
    rounds = np.unique(np.geomspace(1, run.horizon, points).astype(np.int64).clip(1, run.horizon) - 1)
    rounds[-1] = run.horizon - 1
    first, second = player_of(run).watch(pair, rounds)
    return PairView(
        policy=policy.name,
        horizon=run.horizon,
        arms=first.arms,
        rounds=rounds,
        first=first.pulled,
        second=second.pulled,
        digests=(first.digest, second.digest),
        level=own_level(policy),
        executions=() if is_infinite(environment) else tuple(WatchedExecution(run, pair, side) for side in (0, 1)),
    )


CURVE_POINTS = 160


class Curve(NamedTuple):
    """Mean regret after so many pulls, with the band between the 5% and 95% quantiles of all executions."""

    pulls: IntArray  # (N,)
    mean: FloatArray  # (N,)
    low: FloatArray  # (N,)
    high: FloatArray  # (N,)
    executions: int


def regret_curve(run: Run, pairs: int) -> Curve:
    """Measure how the pseudo-regret of the first `pairs` pairs grows, or of as many as a picture needs."""
    grid = np.unique(np.geomspace(1, run.horizon, CURVE_POINTS).astype(np.int64).clip(1, run.horizon))
    grid[-1] = run.horizon
    regrets = player_of(run).regrets_at(pairs, grid)
    low, high = np.quantile(regrets, [0.05, 0.95], axis=0)
    return Curve(grid, regrets.mean(axis=0), low, high, regrets.shape[0])
