"""Theorem 6: Algorithm 3 on finitely many arms.

Symbols  K: arms, d: dimension, T: horizon, beta = K^2/rho^2, eps_i = sigma sqrt(d L / q^i), L = log(K T^2)

What the algorithm's own formulas give, on arms that are all behind by one gap D: they are dropped in the first batch
with eps_i < D, after about 2 beta q^i = 2 beta d L sigma^2 / D^2 pulls, which lose 2 beta d L sigma^2 / D. The worst
gap is the one that the last batch just resolves, where these are all T pulls: a regret of about
sqrt(beta d L T) = (K / rho) sqrt(d T L), with one power of K / rho less than the theorem allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from banditto.paper.claims import Claim, Effort, Measured, Near
from banditto.paper.linear_instances import ADVANTAGE, along, log_even, one_gap, seed_at
from banditto.paper.measuring import Point, exponent, regret_at
from banditto.policies.linear_threshold.linear_threshold import LinearThreshold
from banditto.problems.environments.linear_rewards import LinearBernoulli

Setting = tuple[int, int, int, float]  # K, d, T, rho
Make = Callable[..., LinearThreshold]


def _policy(setting: Setting, make: Make) -> LinearThreshold:
    arms, dimension, horizon, rho = setting
    return make(actions=one_gap(arms, dimension), horizon=horizon, rho=rho, constants="paper")


def _at(x: float, policy: LinearThreshold, gap: float, pairs: int) -> Point:
    points = one_gap(policy.arms, policy.actions.dimension)
    world = LinearBernoulli(along(policy.actions.dimension, gap / ADVANTAGE), points)
    return regret_at(x, policy, world, pairs, seed_at(x))


def worst(x: float, setting: Setting, pairs: int, make: Make = LinearThreshold) -> Point:
    """Measure the largest mean regret over gaps spread across the thresholds of the last batches."""
    policy = _policy(setting, make)
    fitting = [batch.low for batch in policy.schedule.batches if batch.pulls(float(setting[1])) < policy.horizon]
    # the last one fits alone, but seldom after those before it: gaps that only it would resolve are never the worst
    gaps = [low * math.exp(step / 6.0) for low in fitting[-3:-1] for step in range(3)]
    found = [_at(x, policy, gap, pairs) for gap in gaps if gap <= ADVANTAGE]
    return max(found, key=lambda point: point.y)


def fixed(x: float, setting: Setting, pairs: int, make: Make = LinearThreshold) -> Point:
    """Measure mean regret at a gap of 0.1."""
    return _at(x, _policy(setting, make), 0.1, pairs)


def horizons(number: int) -> list[tuple[float, Setting]]:
    """Return horizons from 10^9.5 to 10^13, each with its setting."""
    return [(x, (12, 4, round(x), 0.2)) for x in log_even(10**9.5, 10**13, number)]


def dimensions(number: int) -> list[tuple[float, Setting]]:
    """Return dimensions from 4 to 20, each with its setting."""
    return [(d, (32, d, 3 * 10**11, 0.2)) for d in (4, 5, 6, 8, 10, 12, 16, 20)]


def counts(horizon: int, number: int) -> list[tuple[float, Setting]]:
    """Return numbers of arms from 10 to 74, each with its setting; K^2/rho^2 is above the printed 2304."""
    found = sorted({round(x) for x in log_even(10, 74, number)})
    return [(k, (k, 4, horizon, 0.2)) for k in found]


def shares(horizon: int, number: int) -> list[tuple[float, Setting]]:
    """Return 1/rho from 4.2 to 50, each with its setting; beta is above 2304 throughout."""
    return [(x, (12, 4, horizon, 1.0 / x)) for x in log_even(1.0 / 0.24, 50.0, number)]


def measured(
    settings: Callable[[int], Sequence[tuple[float, Setting]]],
    how: Callable[..., Point],
    label: str,
    predicted: float,
    effort: Effort,
    make: Make = LinearThreshold,
) -> Measured:
    """Measure the exponent of regret over a list of settings, by `how`."""
    chosen = settings(effort.choose(12, 36))
    points = [how(x, setting, effort.choose(128, 512), make) for x, setting in chosen]
    return exponent(points, label, "regret (reward units)", predicted)


SYMBOLS = {"horizon": "T", "dimension": "d", "arms": "K", "rho": "1/rho"}
_ARMS, _RHO = "arms K", "1/rho"
_WORST = "over gaps evenly around the smallest that the horizon resolves, the worst; 128 pairs each"
_NOTE = "The theorem's K^2/rho^2 is an upper bound"

SLOPES: dict[str, Callable[..., Measured]] = {
    "horizon": partial(measured, horizons, worst, "horizon T (pulls)", 0.5),
    "dimension": partial(measured, dimensions, worst, "dimension d", 0.5),
    "arms": partial(measured, partial(counts, 10**12), worst, _ARMS, 1.0),
    "rho": partial(measured, partial(shares, 10**12), worst, _RHO, 1.0),
    "arms-fixed-gap": partial(measured, partial(counts, 10**13), fixed, _ARMS, 2.0),
    "rho-fixed-gap": partial(measured, partial(shares, 10**13), fixed, _RHO, 2.0),
}


def _theorem(name: str, statement: str, experiment: str, rule: Near, seconds: tuple[float, float]) -> Claim:
    """Make a claim of Theorem 6 about an exponent of regret."""
    return Claim(
        name=f"theorem-6-{name}",
        place="Theorem 6",
        statement=statement,
        quantity=f"exponent of regret in {SYMBOLS[name.split('-')[0]]}",
        experiment=f"Algorithm 3 with the paper's constants on arms that are all behind by one gap: {experiment}.",
        rule=rule,
        measure=SLOPES[name],
        seconds=seconds,
    )


CLAIMS = (
    _theorem(
        "horizon",
        "The worst regret over all parameters grows like sqrt(T log T).",
        f"K = 12, d = 4, rho = 0.2, T = 10^9.5 to 10^13; {_WORST}",
        Near(predicted=0.5, detectable=0.2),
        (4.0, 50.0),
    ),
    _theorem(
        "dimension",
        "The worst regret over all parameters grows like sqrt(d).",
        f"K = 32, T = 3 x 10^11, rho = 0.2, d = 4 to 20; {_WORST}",
        Near(predicted=0.5, detectable=0.2),
        (4.0, 10.0),
    ),
    _theorem(
        "arms",
        f"{_NOTE}. The algorithm's batches give K/rho for the worst regret: exponent 1, not 2.",
        f"d = 4, T = 10^12, rho = 0.2, K = 10 to 74; {_WORST}",
        Near(predicted=1.0, detectable=0.5),
        (5.0, 60.0),
    ),
    _theorem(
        "rho",
        f"{_NOTE}. The algorithm's batches give K/rho for the worst regret: exponent 1, not 2.",
        f"K = 12, d = 4, T = 10^12, rho = 0.02 to 0.24; {_WORST}",
        Near(predicted=1.0, detectable=0.4),
        (5.0, 60.0),
    ),
    _theorem(
        "arms-fixed-gap",
        "At a fixed gap the pulls before arms are dropped, and so the regret, grow like K^2/rho^2.",
        "d = 4, T = 10^13, rho = 0.2, a gap of 0.1, K = 10 to 74",
        Near(predicted=2.0, detectable=0.2),
        (0.3, 3.0),
    ),
    _theorem(
        "rho-fixed-gap",
        "At a fixed gap the pulls before arms are dropped, and so the regret, grow like K^2/rho^2.",
        "K = 12, d = 4, T = 10^13, a gap of 0.1, rho = 0.02 to 0.24",
        Near(predicted=2.0, detectable=0.2),
        (0.3, 3.0),
    ),
)
