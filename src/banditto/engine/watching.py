"""Looking at one pair: which arm each side pulled at chosen rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from banditto.core.arrays import IntArray
from banditto.core.exact import integer
from banditto.engine import batched, infinite
from banditto.engine.pairs import is_placed, study_of
from banditto.policies.policy import AnyPolicy, PlacedPolicy, RoundPolicy
from banditto.problems.environment import Environment


@dataclass(frozen=True, kw_only=True)
class PairView:
    """The arms of both sides of a pair at some rounds, and the digests of the whole sequences."""

    policy: str
    horizon: int
    arms: int
    rounds: IntArray  # (N,), counted from 0
    first: IntArray  # (N,)
    second: IntArray  # (N,)
    digests: tuple[str, str]

    @property
    def same(self) -> bool:
        """Whether the two sequences are equal, all of them and not only at `rounds`."""
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
    """Pair number `pair` of the study that `certify` would run with the same arguments, at log-spaced rounds.

    Examples:
        >>> from banditto import Bernoulli, CertifiedElimination
        >>> view = watch_pair(CertifiedElimination(arms=2, horizon=10**5, rho=0.1), Bernoulli([0.9, 0.5]))
        >>> view.same, view.horizon
        (True, 100000)
    """
    study = study_of(policy, environment, seed=seed, noise_seed=noise_seed, horizon=horizon)
    pair = integer(pair, "pair", 0, 10**9)
    points = integer(points, "points", 2, 10**6)
    last, arms = study.horizon - 1, len(environment.means)
    rounds = np.unique(np.geomspace(1, study.horizon, points).astype(np.int64).clip(1, study.horizon) - 1)
    rounds[-1] = last
    if isinstance(policy, RoundPolicy):
        from banditto.engine import rounds as per_round  # compiled code is loaded only where it is used

        _, sides = per_round.play_pair(study, policy, pair, rounds)
        views = [side.watched for side in sides]
        digests = (sides[0].digest, sides[1].digest)
    else:
        if is_placed(environment) and isinstance(policy, PlacedPolicy):
            trajectories = infinite.pair_trajectories(study, policy, pair)
        else:
            trajectories = batched.pair_trajectories(study, policy, pair)
        arms = len(trajectories[0].actions) or arms
        views = [trajectory.arms_at(rounds) for trajectory in trajectories]
        digests = (trajectories[0].digest, trajectories[1].digest)
    return PairView(
        policy=policy.name,
        horizon=study.horizon,
        arms=arms,
        rounds=rounds,
        first=views[0],
        second=views[1],
        digests=digests,
    )
