"""What most experiments measure: how often pairs differ, regret, and exponents on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from banditto.measure.attack.search import windows_of
from banditto.measure.certificate import Certificate
from banditto.measure.certify import certify
from banditto.paper.claims import Chart, ClaimCurve, Measured
from banditto.policies.policy import AnyPolicy, Policy, own_rho
from banditto.problems.environment import Environment

CONFIDENCE = 0.95


class Line(NamedTuple):
    """y = exp(intercept) x^slope, with an interval for the slope."""

    slope: float
    low: float
    high: float
    intercept: float

    def at(self, x: float) -> float:
        """Return the line's height at x."""
        return math.exp(self.intercept + self.slope * math.log(x))


def power_law(x: Sequence[float], y: Sequence[float], confidence: float = CONFIDENCE) -> Line:
    """Fit a power law by least squares on the logarithms, and return it with an interval for its exponent.

    The interval is Student's, from the scatter around the line: it covers noise in the points and a lack of fit that
    looks like noise, such as the steps of batch sizes that are powers of a base.
    """
    if len(x) < 3 or not min(*x, *y) > 0.0:
        raise ValueError("a slope with an interval needs three positive points")
    logs = np.log(np.asarray([x, y], dtype=np.float64))
    u, v = logs - logs.mean(axis=1, keepdims=True)
    spread = float(np.sum(u * u))
    slope = float(np.sum(u * v)) / spread
    residual = v - slope * u
    freedom = logs.shape[1] - 2
    error = math.sqrt(float(np.sum(residual * residual)) / freedom / spread)
    width = float(stdtrit(freedom, 0.5 + confidence / 2.0)) * error
    intercept = float(logs[1].mean() - slope * logs[0].mean())
    return Line(slope, slope - width, slope + width, intercept)


class Point(NamedTuple):
    """A measured mean at a setting, with its interval."""

    x: float
    y: float
    low: float
    high: float


def exponent(
    points: Sequence[Point], x_label: str, y_label: str, predicted: float, label: str = "measured", detail: str = ""
) -> Measured:
    """Fit a power law to measured points; return its exponent with a chart that also shows the predicted one."""
    line = power_law([point.x for point in points], [point.y for point in points])
    ends = min(point.x for point in points), max(point.x for point in points)
    centre = math.sqrt(ends[0] * ends[1])
    theory = tuple(line.at(centre) * (x / centre) ** predicted for x in ends)
    curves = (
        curve(label, points),
        ClaimCurve(label=f"exponent {predicted:g}", x=ends, y=theory, theory=True),
    )
    chart = Chart(x_label=x_label, y_label=y_label, curves=curves)
    return Measured(value=line.slope, interval=(line.low, line.high), detail=detail, chart=chart)


def curve(label: str, points: Sequence[Point]) -> ClaimCurve:
    """Return points as a curve of a chart, with bars for their intervals."""
    x, y, low, high = zip(*points, strict=True)
    return ClaimCurve(label=label, x=x, y=y, low=low, high=high)


def differing(policy: AnyPolicy, world: Environment, pairs: int, seed: int, horizon: int | None = None) -> Measured:
    """Measure the share of pairs that differ, with an exact interval."""
    # certify wants a rho; only its verdict, which nobody looks at here, depends on it
    rho = 0.5 if own_rho(policy) is None else None
    found = certify(policy, world, pairs=pairs, seed=seed, horizon=horizon, rho=rho)
    low, high = found.interval
    detail = f"{found.mismatches:,} of {found.pairs:,} pairs differ."
    return Measured(value=1.0 - found.agreement, interval=(1.0 - high, 1.0 - low), detail=detail)


def regret_at(x: float, policy: AnyPolicy, world: Environment, pairs: int, seed: int) -> Point:
    """Measure a policy's mean regret, and return it as a point at x."""
    return regret_point(x, certify(policy, world, pairs=pairs, seed=seed))


def regret_point(x: float, found: Certificate) -> Point:
    """Return the mean regret of a certificate as a point at x."""
    return Point(x, found.regret.mean, *found.regret.interval)


def undecided_gap(policy: Policy[Any], below: float = 0.5) -> float:
    """Return the middle of the policy's widest undecided window below `below`: the hardest gap."""
    return next(window.at(0.5) for window in windows_of(policy, 1.0) if window.high < below)
