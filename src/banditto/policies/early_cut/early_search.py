"""EarlyCut's constants for a power at a named gap: those with the fewest pulls on average, at the gap and at twice it.

What is searched for has no scale: tails in units of the cap's noise, looks as shares of the cap. The cap itself is then
the smallest at which the proof gives rho and the power is reached.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from banditto.core.exact import first_true, snapped
from banditto.core.horizons import LONGEST_HORIZON
from banditto.policies.certified_elimination.ladder_search import WindowShape
from banditto.policies.certified_elimination.named_gap import commit_probability
from banditto.policies.early_cut import early_constants
from banditto.policies.early_cut.early_constants import EarlyLook, EarlySchedule, Tail
from banditto.policies.one_cut import cut_search
from banditto.policies.one_cut.cut_constants import CutProblem
from banditto.policies.shared import confidence

_FIRST = 1000  # looks begin after a thousandth of the cap,
_FIRST_NOISE = 2.0  # or sooner: where the noise of a lead is so many gaps
_RATIO, _MOST_SPARSE = 1.24, 80  # of neighbours there,
_DENSE, _DENSE_LOOKS = 32, 40  # and from the 32nd part of the cap on they are closer together
# proportions of a tail: rates, as multiples of the largest one, and weights. The more looks come before the cap, and a
# small rho has many, the slower rates are worth their weight.
_TAIL = ((1.0, 0.5, 0.25), (1.0, 0.4, 0.16))
_LONG_TAIL = ((1.0, 0.5, 0.25, 0.125, 0.0625), (1.0, 0.4, 0.16, 0.05, 0.015))
_LONG_BELOW = 0.05  # of rho
_LARGEST = (1.5, 2.0, 2.5, 3.0, 4.0)  # rates that are tried, in units of one over the cap's noise
_MASSES = (0.02, 0.03, 0.05, 0.08, 0.12, 0.16, 0.22, 0.3)  # first weights that are tried for two arms
_SHARES = (0.04, 0.08, 0.12, 0.18, 0.26)  # of rho for early leaders, tried for three arms and more
_DEFAULT_SHARE = 0.03  # of rho for early defaults
_OVERRUN = 0.02  # of rho for means that exceed a promised rate
_ROOM = 1.0 - 1e-6  # of rho; a little is left for rounding
_TWICE = 0.5  # how much pulls at twice the gap count, beside those at the gap


class Shape(NamedTuple):
    """What does not depend on the cap: rates in units of one over its noise, weights, and shares of rho."""

    rates: tuple[float, ...]
    weights: tuple[float, ...]  # of two arms' tail; for more arms their proportions
    leaders: float  # shares of rho, for three arms and more
    defaults: float


def resolve(problem: CutProblem, power: float) -> tuple[EarlySchedule, bool]:
    """The schedule, and whether the horizon is long enough for the power."""
    shape = best_shape(problem, power)
    most = max(1, (problem.horizon - 1) // problem.arms)  # a pull is left, to show the choice
    cap = fewest_pulls(problem, power, shape)
    if cap <= most:
        return schedule_of(problem, cap, shape), True
    return schedule_of(problem, most, shape), False


def noise(problem: CutProblem, cap: int) -> float:
    """s: the standard deviation of a lead at the cap."""
    return problem.rewards.deviation * math.sqrt(2.0 / cap)


def looks_before(problem: CutProblem, cap: int) -> tuple[int, ...]:
    """Pulls of each arm at the looks before the cap, at ratios that are nearly equal until they are closer together."""
    first = min(cap / _FIRST, 2.0 * (problem.rewards.deviation / (_FIRST_NOISE * problem.gap)) ** 2)
    steps = math.ceil(math.log(cap / _DENSE / first) / math.log(_RATIO)) if first * _DENSE < cap else 0
    steps = min(steps, _MOST_SPARSE)
    sparse = [(first / cap) ** (1.0 - step / steps) * _DENSE ** (-step / steps) for step in range(steps)]
    dense = [_DENSE ** (step / _DENSE_LOOKS - 1.0) for step in range(_DENSE_LOOKS)]
    sizes = {math.floor(cap * share) for share in (*sparse, *dense)}
    return tuple(sorted(size for size in sizes if 1 <= size < cap))


@lru_cache(maxsize=1024)
def schedule_of(problem: CutProblem, cap: int, shape: Shape) -> EarlySchedule:
    """The narrowest cut for a cap, and the margins of all looks before it, for which the proof gives rho."""
    unit = noise(problem, cap)
    rates = tuple(snapped(rate / unit) for rate in shape.rates)
    overrun = snapped(_OVERRUN * problem.rho) if early_constants.watches_rates(problem.rewards) else 0.0
    pulls = looks_before(problem, cap)
    if problem.arms == 2:
        tail = default_tail = Tail(rates, tuple(snapped(weight) for weight in shape.weights))
        factor = 1.0 if problem.control else 0.5
        noisy = confidence.line_noise(problem.rewards, cap)
        if pulls:
            noisy += early_constants.line_excess(problem.rewards, cap, tail)
        width = snapped(factor * noisy / (problem.rho * _ROOM - overrun))  # without rounding, which comes last
        knots: tuple[float, ...] = ()
    else:
        left = 1.0 - shape.leaders - shape.defaults - overrun / problem.rho
        found = cut_search.narrowest(problem._replace(rho=problem.rho * left), cap)
        width, knots = found.width, found.knots
        leading = shape.leaders * problem.rho * width / (2.0 * early_constants.leader_factor(problem))
        share = early_constants.default_factor(problem, width, knots)
        tail = _scaled(rates, shape.weights, leading * _ROOM)
        default_tail = _scaled(rates, shape.weights, shape.defaults * problem.rho * width / (2.0 * share) * _ROOM)
    moments = early_constants.log_moments(problem.arms, problem.rewards, pulls, cap, rates, overrun)
    both = [early_constants.margins(one, moments) for one in (tail, default_tail)]
    widest = problem.rewards.widest_gap if problem.rewards.kind == "bounded" else math.inf
    looks = tuple(
        EarlyLook(size, snapped(float(margin)), snapped(float(other)))
        for size, margin, other in zip(pulls, *both, strict=True)
        if min(margin, other) < widest  # no lead is beyond the others
    )
    schedule = EarlySchedule(looks, cap, width, knots, tail, default_tail, overrun)
    return _within_rho(problem, schedule)


def _scaled(rates: tuple[float, ...], weights: tuple[float, ...], mean: float) -> Tail:
    """A tail with these proportions and this mean, or with half of all probability if that is less."""
    raw = math.fsum(weight / rate for rate, weight in zip(rates, weights, strict=True))
    factor = min(mean / raw, 0.5 / math.fsum(weights))
    return Tail(rates, tuple(float(np.float32(factor * weight * (1.0 - 2.0**-22))) for weight in weights))


def _within_rho(problem: CutProblem, schedule: EarlySchedule) -> EarlySchedule:
    """The schedule with its cut widened until all terms together are at most rho: rounding is not in the search."""
    while True:
        total = float(sum(value for _, value, _ in early_constants.terms(problem, schedule)))
        if total <= problem.rho:
            return schedule
        wider = total / problem.rho * (1.0 + 2.0**-20)
        width = snapped(schedule.width * wider)
        schedule = schedule._replace(width=width, knots=tuple(snapped(knot * wider) for knot in schedule.knots))


@lru_cache(maxsize=512)
def fewest_pulls(problem: CutProblem, power: float, shape: Shape) -> int:
    """n: the smallest cap at which the best arm is found with this power where it leads by the gap."""

    def enough(cap: int) -> bool:
        return right(problem, schedule_of(problem, cap, shape)) >= power

    most = LONGEST_HORIZON // problem.arms
    high = max(2, math.ceil((problem.rewards.deviation / problem.gap) ** 2))
    while high > 2 and enough(high):
        high = max(2, high // 4)
    while high < most and not enough(high):
        high = min(most, high * 2)
    low = max(1, high // 2)
    step = max(1, high >> 12)  # a four-thousandth more is near enough
    return min(most, low + step * first_true(lambda k: enough(low + step * k), 0, -(-(high - low) // step)))


# -- what it costs and how often it is right, for normal means ---------------------------------------------------------


def right(problem: CutProblem, schedule: EarlySchedule) -> float:
    """P(the best arm is named), or a little less, if all others are worse by the named gap; for normal means.

    The cap would name it, and no look before names another: given the cap, a lead strays by more than its margin and x
    with the probability that the tail gives.
    """
    cap_right = cut_search.right(problem, schedule.pulls, schedule.width)
    return cap_right - _spoilt(problem, schedule) if schedule.looks else cap_right


def _spoilt(problem: CutProblem, schedule: EarlySchedule) -> float:
    """P(the best arm leads by more than the cut at the cap, and a look names another one), at the most."""
    unit, arms = noise(problem, schedule.pulls), problem.arms
    low = -schedule.width if arms == 2 and not problem.control else 0.0
    cuts = low + (schedule.width - low) * (np.arange(128) + 0.5) / 128.0
    beyond = problem.gap - cuts  # (cut,)
    found = 0.0
    tail, default = schedule.tail, schedule.default_tail
    for rate, weight, other in zip(tail.rates, tail.weights, default.weights, strict=True):
        stray = np.exp(np.minimum(-rate * beyond + (rate * unit) ** 2 / 2.0, 700.0)) * ndtr(beyond / unit - rate * unit)
        if arms == 2:
            found += weight * float(stray.mean())
        else:  # a default; or another leader, whose lead must stray by twice the cut more
            found += (arms - 1) * float(((other + weight * np.exp(-2.0 * rate * cuts)) * stray).mean())
    return found


def pulls_on_average(problem: CutProblem, schedule: EarlySchedule, gap: float) -> float:
    """Pulls of each arm at the most, on average, where the best arm leads all others by `gap`; for normal means.

    A look that does not end the experiment by itself counts as if none before it had.
    """
    sizes = [*(look.pulls for look in schedule.looks), schedule.pulls]
    total = float(sizes[0])
    for look, end in zip(schedule.looks, sizes[1:], strict=True):
        total += (end - look.pulls) * (1.0 - _stops(problem, schedule, look, gap))
    return total


def _stops(problem: CutProblem, schedule: EarlySchedule, look: EarlyLook, gap: float) -> float:
    """P(this look, by itself, ends the experiment)."""
    deviation, width = problem.rewards.deviation, schedule.width
    if problem.arms > 2:
        root = math.sqrt(look.pulls)
        shape = WindowShape(look.margin * root, width * root)
        return commit_probability(gap * root, problem.arms, shape, deviation)
    unit = deviation * math.sqrt(2.0 / look.pulls)
    low = 0.0 if problem.control else -width

    def below(edge: float) -> float:
        """The integral over cuts of P(the lead is below the cut and `edge` more), over the cuts' range."""
        ends = (np.asarray([width, low]) + edge - gap) / unit
        values = ends * ndtr(ends) + np.exp(-np.minimum(ends * ends, 1400.0) / 2.0) / math.sqrt(2.0 * math.pi)
        return float(unit * (values[0] - values[1]) / (width - low))

    return 1.0 - below(look.margin) + below(-look.default_margin)


@lru_cache(maxsize=256)
def best_shape(problem: CutProblem, power: float) -> Shape:
    """The shape with the fewest pulls at the gap, and at twice the gap for half."""
    shapes = [_shape(problem, rate, size) for rate, size in _candidates(problem)]
    cap = fewest_pulls(problem, power, shapes[len(shapes) // 2])
    return min(shapes, key=lambda shape: _cost(problem, power, shape, cap))


def _candidates(problem: CutProblem) -> list[tuple[float, float]]:
    return list(product(_LARGEST, _MASSES)) if problem.arms == 2 else list(product(_LARGEST[1:4], _SHARES))


def _shape(problem: CutProblem, rate: float, size: float) -> Shape:
    parts, weights = _LONG_TAIL if problem.rho < _LONG_BELOW else _TAIL
    rates = tuple(rate * part for part in parts)
    if problem.arms == 2:
        return Shape(rates, tuple(size * part for part in weights), 0.0, 0.0)
    return Shape(rates, weights, size, _DEFAULT_SHARE)


def _cost(problem: CutProblem, power: float, shape: Shape, cap: int) -> float:
    """Pulls on average, predicted by a cap that is nearly right: at the gap for which it is, they are in proportion."""
    schedule = schedule_of(problem, cap, shape)
    low, high = 0.0, 8.0 * problem.gap
    for _ in range(24):
        gap = (low + high) / 2.0
        if right(problem._replace(gap=gap), schedule) >= power:
            high = gap
        else:
            low = gap
    means = [pulls_on_average(problem, schedule, times * high) for times in (1.0, 2.0)]
    return (means[0] + _TWICE * means[1]) * (high / problem.gap) ** 2
