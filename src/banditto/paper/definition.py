"""Definition 1: replicability, measured for every policy; ordinary policies do not have it.

The instances are hard ones: a gap lies in the middle of a window in which the policy is undecided, so that a row does
not agree because nothing ever happens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry.actions.ball import Ball
from banditto.paper.claims import AtLeast, AtMost, Claim, Effort, Measured
from banditto.paper.measuring import differing, undecided_gap
from banditto.policies import REGISTRY as REPLICABLE
from banditto.policies.baselines import REGISTRY as ORDINARY
from banditto.policies.certified_elimination.certified_elimination import CertifiedElimination
from banditto.policies.certified_linear.certified_linear import CertifiedLinear
from banditto.policies.explore_then_commit import ExploreThenCommit
from banditto.policies.least_squares_rounding.least_squares_rounding import LeastSquaresRounding
from banditto.policies.linear_threshold.linear_threshold import LinearThreshold
from banditto.policies.linear_threshold.net_threshold import NetThreshold
from banditto.policies.mean_rounding.mean_rounding import MeanRounding
from banditto.policies.one_cut.one_cut import OneCut
from banditto.policies.policy import AnyPolicy, Policy, own_horizon
from banditto.policies.random_threshold.random_threshold import RandomThreshold
from banditto.problems.catalogue import build_policy
from banditto.problems.environment import Environment
from banditto.problems.environments.bernoulli import Bernoulli
from banditto.problems.environments.linear_rewards import LinearBernoulli

RHO = 0.1
PLACE = "Definition 1"
STATEMENT = (
    "Two executions with shared coins and independent rewards pull the same arms with probability at least 1 - rho."
)
ARMS = 3
DIRECTIONS = 8  # unit vectors in the plane, for linear policies that take finitely many actions
ROUNDS = 10_000

Game = tuple[AnyPolicy, Environment]


def plane(number: int) -> FloatArray:
    """Return unit vectors spread evenly around the circle, (arm, feature)."""
    angles = 2.0 * math.pi * np.arange(number) / number
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _arms(make: Callable[..., Policy[Any]], horizon: int) -> Game:
    policy = make(arms=ARMS, horizon=horizon, rho=RHO)
    return policy, Bernoulli([0.6 - undecided_gap(policy)] * (ARMS - 1) + [0.6])


def _committing() -> Game:
    return ExploreThenCommit(arms=ARMS, horizon=10**6, rho=RHO, gap=0.1), Bernoulli([0.5, 0.5, 0.6])


def _cutting() -> Game:
    policy = OneCut(arms=ARMS, horizon=10**6, rho=RHO, gap=0.05)
    lead, edge = 0.5 * policy.schedule.width, policy.schedule.knots[0]  # amid the cut, at the window's beginning
    return policy, Bernoulli([0.6 - edge] * (ARMS - 2) + [0.6 - lead, 0.6])


def _finite(make: Callable[..., Policy[Any]], horizon: int) -> Game:
    policy = make(actions=plane(DIRECTIONS), horizon=horizon, rho=RHO)
    # between two directions: the best two are nearly as good, so that a test is undecided about them
    angle = math.pi / DIRECTIONS - 0.04
    return policy, LinearBernoulli([0.9 * math.cos(angle), 0.9 * math.sin(angle)], plane(DIRECTIONS))


def _interval(make: Callable[..., Policy[Any]], horizon: int) -> Game:
    interval = Ball(dimension=1)
    return make(actions=interval, horizon=horizon, rho=RHO), LinearBernoulli([0.9], interval)


def _plain(policy: str) -> Game:
    """Return a policy and an ordinary environment, for policies without a harder game of their own."""
    world = Bernoulli([0.5] * (ARMS - 1) + [0.6])
    return build_policy(policy, arms=ARMS, horizon=10**7, rho=RHO, environment=world), world


_GAMES: dict[str, tuple[Callable[[], Game], int, int, tuple[float, float]]] = {
    # policy: what is played, pairs in the quick and in the full version, seconds of both
    "certified-elimination": (partial(_arms, CertifiedElimination, 10**7), 8192, 65_536, (1.0, 2.0)),
    "random-threshold": (partial(_arms, RandomThreshold, 10**9), 8192, 65_536, (1.0, 2.0)),
    "mean-rounding": (partial(_arms, MeanRounding, 10**11), 8192, 65_536, (1.0, 2.0)),
    "explore-then-commit": (_committing, 8192, 65_536, (1.0, 2.0)),
    "one-cut": (_cutting, 8192, 65_536, (1.0, 2.0)),
    "certified-linear": (partial(_finite, CertifiedLinear, 10**7), 4096, 16_384, (3.0, 8.0)),
    "linear-threshold": (partial(_finite, LinearThreshold, 10**10), 4096, 16_384, (3.0, 8.0)),
    "least-squares-rounding": (partial(_finite, LeastSquaresRounding, 10**7), 4096, 16_384, (5.0, 15.0)),
    "net-threshold": (partial(_interval, NetThreshold, 10**12), 4096, 16_384, (5.0, 15.0)),
}
for _name, _entry in REPLICABLE.items():
    if not (_entry.linear or _entry.options):
        _GAMES.setdefault(_name, (partial(_plain, _name), 4096, 16_384, (5.0, 15.0)))


def _measure(policy: str, effort: Effort) -> Measured:
    play, quick, full, _ = _GAMES[policy]
    return differing(*play(), pairs=effort.choose(quick, full), seed=101)


def _measure_ordinary(policy: str, effort: Effort) -> Measured:
    linear = ORDINARY[policy].linear
    world = _finite(CertifiedLinear, 10**6)[1] if linear else Bernoulli([0.5, 0.4, 0.7])
    game = build_policy(policy, arms=len(world.means), horizon=ROUNDS, rho=RHO, environment=world)
    horizon = ROUNDS if own_horizon(game) is None else None
    return differing(game, world, pairs=effort.choose(256, 2048), seed=102, horizon=horizon)


def _promised(policy: str) -> Claim:
    """Make the claim that a replicable policy's pairs differ with probability at most rho."""
    return Claim(
        name=f"definition-1-{policy}",
        place=PLACE,
        statement=f"{STATEMENT} Here: {policy} at rho = {RHO:g}.",
        quantity="share of pairs that differ",
        experiment="Pairs of executions on arms whose gaps lie where the policy is undecided; exact binomial interval.",
        rule=AtMost(predicted=RHO, detectable=0.02),
        measure=partial(_measure, policy),
        seconds=_GAMES[policy][3],
    )


def _ordinary(policy: str) -> Claim:
    """Make the claim that an ordinary policy's pairs differ far more often than rho."""
    return Claim(
        name=f"definition-1-{policy}",
        place=PLACE,
        statement=f"Ordinary policies are not replicable. Here: {policy}.",
        quantity="share of pairs that differ",
        experiment=f"Pairs of executions of {ROUNDS:,} rounds; exact binomial interval.",
        rule=AtLeast(predicted=2.0 * RHO, detectable=RHO),
        measure=partial(_measure_ordinary, policy),
        seconds=(1.0, 5.0),
    )


CLAIMS = (*map(_promised, _GAMES), *map(_ordinary, ORDINARY))
