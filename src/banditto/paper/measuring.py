"""What most experiments measure: how often pairs differ, and regret."""

from __future__ import annotations

from typing import Any

from banditto.measure.attack.search import windows_of
from banditto.measure.certify import Certificate, certify
from banditto.paper.claims import Measured
from banditto.paper.fits import Point
from banditto.policies.policy import AnyPolicy, Policy, own_rho
from banditto.problems.environment import Environment


def differing(policy: AnyPolicy, world: Environment, pairs: int, seed: int, horizon: int | None = None) -> Measured:
    """The share of pairs that differ, with an exact interval."""
    # certify wants a rho; only its verdict, which nobody looks at here, depends on it
    rho = 0.5 if own_rho(policy) is None else None
    found = certify(policy, world, pairs=pairs, seed=seed, horizon=horizon, rho=rho)
    low, high = found.interval
    detail = f"{found.mismatches:,} of {found.pairs:,} pairs differ."
    return Measured(value=1.0 - found.agreement, interval=(1.0 - high, 1.0 - low), detail=detail)


def regret_at(x: float, policy: AnyPolicy, world: Environment, pairs: int, seed: int) -> Point:
    """Mean regret as a point of a curve."""
    return regret_point(x, certify(policy, world, pairs=pairs, seed=seed))


def regret_point(x: float, found: Certificate) -> Point:
    """The mean regret of a certificate as a point of a curve."""
    return Point(x, found.regret.mean, *found.regret.interval)


def undecided_gap(policy: Policy[Any], below: float = 0.5) -> float:
    """A gap in the middle of the widest of the policy's own windows that are below `below`: the worst place to be."""
    return next(window.at(0.5) for window in windows_of(policy, 1.0) if window.high < below)
