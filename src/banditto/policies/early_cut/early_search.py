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

from banditto.core.arrays import FloatArray
from banditto.core.exact import first_true, snapped
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.known_sides import KnownSides
from banditto.numbers.special_functions import ndtr
from banditto.policies.certified_elimination.named_gap import commit_probabilities
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
    """Constants that do not depend on the cap: rates in units of one over its noise, weights, and shares of rho."""

    rates: tuple[float, ...]
    weights: tuple[float, ...]  # of two arms' tail; for more arms their proportions
    leaders: float  # shares of rho, for three arms and more
    defaults: float


def resolve(problem: CutProblem, power: float) -> tuple[EarlySchedule, bool]:
    """Return the schedule, and whether the horizon is long enough for the power."""
    shape = best_shape(problem, power)
    most = max(1, (problem.horizon - 1) // problem.arms)  # a pull is left, to show the choice
    cap = fewest_pulls(problem, power, shape)
    if cap <= most:
        return schedule_of(problem, cap, shape), True
    return schedule_of(problem, most, shape), False


def noise(problem: CutProblem, cap: int) -> float:
    """Return s, the standard deviation of a lead at the cap."""
    return problem.rewards.deviation * math.sqrt(2.0 / cap)


def looks_before(problem: CutProblem, cap: int) -> tuple[int, ...]:
    """Return the pulls of each arm at each look before the cap: nearly a geometric series, denser near the cap."""
    first = min(cap / _FIRST, 2.0 * (problem.rewards.deviation / (_FIRST_NOISE * problem.gap)) ** 2)
    steps = math.ceil(math.log(cap / _DENSE / first) / math.log(_RATIO)) if first * _DENSE < cap else 0
    steps = min(steps, _MOST_SPARSE)
    sparse = [(first / cap) ** (1.0 - step / steps) * _DENSE ** (-step / steps) for step in range(steps)]
    dense = [_DENSE ** (step / _DENSE_LOOKS - 1.0) for step in range(_DENSE_LOOKS)]
    sizes = {math.floor(cap * share) for share in (*sparse, *dense)}
    return tuple(sorted(size for size in sizes if 1 <= size < cap))


@lru_cache(maxsize=1024)
def schedule_of(problem: CutProblem, cap: int, shape: Shape) -> EarlySchedule:
    """Return the schedule of a cap with the narrowest cut, and margins at all looks, for which the proof gives rho."""
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
        mean = shape.leaders * problem.rho * width / (2.0 * early_constants.leader_factor(problem))
        share = early_constants.default_factor(problem, width, knots)
        tail = _scaled(rates, shape.weights, mean * _ROOM)
        default_tail = _scaled(rates, shape.weights, shape.defaults * problem.rho * width / (2.0 * share) * _ROOM)
    moments = early_constants.log_moments(problem.arms, problem.rewards, pulls, cap, rates, overrun)
    leading = early_constants.margins(tail, moments)
    both = leading, leading if default_tail is tail else early_constants.margins(default_tail, moments)
    widest = problem.rewards.widest_gap if problem.rewards.kind == "bounded" else math.inf
    looks = tuple(
        EarlyLook(size, snapped(float(margin)), snapped(float(other)))
        for size, margin, other in zip(pulls, *both, strict=True)
        if min(margin, other) < widest  # no lead is beyond the others
    )
    schedule = EarlySchedule(looks, cap, width, knots, tail, default_tail, overrun)
    return _within_rho(problem, schedule)


def _scaled(rates: tuple[float, ...], weights: tuple[float, ...], mean: float) -> Tail:
    """Return a tail with these proportions and this mean, but with at most half of all probability."""
    raw = math.fsum(weight / rate for rate, weight in zip(rates, weights, strict=True))
    factor = min(mean / raw, 0.5 / math.fsum(weights))
    return Tail(rates, tuple(float(np.float32(factor * weight * (1.0 - 2.0**-22))) for weight in weights))


def _within_rho(problem: CutProblem, schedule: EarlySchedule) -> EarlySchedule:
    """Return the schedule with its cut widened until all terms, rounding included, add up to at most rho."""
    while True:
        total = float(sum(value for _, value, _ in early_constants.terms(problem, schedule)))
        if total <= problem.rho:
            return schedule
        wider = total / problem.rho * (1.0 + 2.0**-20)
        width = snapped(schedule.width * wider)
        schedule = schedule._replace(width=width, knots=tuple(snapped(knot * wider) for knot in schedule.knots))


@lru_cache(maxsize=512)
def fewest_pulls(problem: CutProblem, power: float, shape: Shape) -> int:
    """Return n, the smallest cap at which the best arm is found with this power where it leads by the gap."""

    def excess(cap: float) -> float:
        return cut_search.excess_of(right(problem, schedule_of(problem, round(cap), shape)), power)

    most = LONGEST_HORIZON // problem.arms
    high = max(2, math.ceil((problem.rewards.deviation / problem.gap) ** 2))
    guess = cut_search.fewest_pulls(problem, power)  # without early looks: a little less
    slope = cut_search.likely_pulls(problem, power)[1]
    enough = KnownSides(excess).aimed(1.1 * guess, slope, max(2.0**-14, 1.0 / guess), 2.0, max(2.0, most))
    while high > 2 and enough(high):
        high = max(2, high // 4)
    while high < most and not enough(high):
        high = min(most, high * 2)
    low = max(1, high // 2)
    step = max(1, high >> 12)  # a four-thousandth more is near enough
    return min(most, low + step * first_true(lambda k: enough(low + step * k), 0, -(-(high - low) // step)))


# -- what it costs and how often it is right, for normal means ---------------------------------------------------------


def right(problem: CutProblem, schedule: EarlySchedule) -> float:
    """Return a close lower bound on P(the best arm is named), if all others are worse by the gap; for normal means.

    It is named if the cap would name it and no look before names another. Given the cap, a lead strays by more than its
    margin and x with the probability that the tail gives.
    """
    cap_right = cut_search.right(problem, schedule.pulls, schedule.width)
    return cap_right - _spoilt(problem, schedule) if schedule.looks else cap_right


def _spoilt(problem: CutProblem, schedule: EarlySchedule) -> float:
    """Return a bound on P(the best arm leads by more than the cut at the cap, but a look names another one)."""
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
    """Return a bound on the average pulls of each arm where the best leads all others by `gap`; for normal means.

    Looks are taken one by one: if a look by itself would not stop the experiment, earlier looks count as if they had
    not stopped it either.
    """
    sizes = [*(look.pulls for look in schedule.looks), schedule.pulls]
    total = float(sizes[0])
    if schedule.looks:
        stops = _stops(problem, schedule, gap).tolist()
        for look, end, stop in zip(schedule.looks, sizes[1:], stops, strict=True):
            total += (end - look.pulls) * (1.0 - stop)
    return total


def _stops(problem: CutProblem, schedule: EarlySchedule, gap: float) -> FloatArray:
    """Return the probability that a look, by itself, ends the experiment, for each look."""
    deviation, width = problem.rewards.deviation, schedule.width
    pulls, margins, default_margins = np.asarray(schedule.looks, dtype=np.float64).T
    if problem.arms > 2:
        roots = np.sqrt(pulls)
        return commit_probabilities(gap * roots, problem.arms, margins * roots, width * roots, deviation)
    units = deviation * np.sqrt(2.0 / pulls)
    low = 0.0 if problem.control else -width

    def below(edges: FloatArray) -> FloatArray:
        """Return P(the lead is less than `edge` above the cut), averaged over the cuts, for each look."""
        ends = (np.asarray([[width], [low]]) + edges - gap) / units
        values = ends * ndtr(ends) + np.exp(-np.minimum(ends * ends, 1400.0) / 2.0) / math.sqrt(2.0 * math.pi)
        return np.asarray(units * (values[0] - values[1]) / (width - low))

    return np.asarray(1.0 - below(margins) + below(-default_margins))


@lru_cache(maxsize=256)
def best_shape(problem: CutProblem, power: float) -> Shape:
    """Return the shape with the fewest average pulls: those at the gap, and half of those at twice the gap."""
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
    """Return the average pulls of a shape, predicted from a cap that is nearly right and scaled to the named gap."""
    schedule = schedule_of(problem, cap, shape)
    low, high = 0.0, 8.0 * problem.gap

    def excess(gap: float) -> float:
        return cut_search.excess_of(right(problem._replace(gap=gap), schedule), power)

    slope = 2.0 * cut_search.likely_pulls(problem, power)[1]
    enough = KnownSides(excess).aimed(problem.gap, slope, 2e-7, 0.0, high)
    for _ in range(24):
        gap = (low + high) / 2.0
        if enough(gap):
            high = gap
        else:
            low = gap
    means = [pulls_on_average(problem, schedule, times * high) for times in (1.0, 2.0)]
    return (means[0] + _TWICE * means[1]) * (high / problem.gap) ** 2
