"""The smallest batch whose cut is replicable and right at the named gap, and the early commits that pay."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import snapped
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.known_sides import KnownSides
from banditto.policies.certified_elimination.ladder_search import WindowShape
from banditto.policies.certified_elimination.named_gap import commit_probabilities, commit_probability
from banditto.policies.one_cut import cut_constants
from banditto.policies.one_cut.choice import PIECES
from banditto.policies.one_cut.cut_constants import CutProblem, CutSchedule, EarlyCommit
from banditto.policies.shared import confidence

_TAILS = 9e-4  # of rho, for the tails of early commits
_ROOM = 1.0 - 1e-3  # of rho for the last batch; a little is left for rounding
_SLOPES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of the window cut's density, as exponents
_GUARD = 0.6  # arms so many standard deviations behind are kept out, unless the gap itself is that large
_GAPS_BEHIND = 6.0  # and so many gaps behind
_FEWEST_GAPS = 2.5
_STRAY = 2.0 * math.sqrt(math.log(100.0))  # by how much of sigma/sqrt(m) a difference strays in 1% of batches
_EARLIER = (256, 16)  # how much smaller early batches are
_FARTHEST = 64  # half deviations above the last cut: no tail reaches so far, and if room is short it stays so
LEAST_POWER = 0.95
_HALVINGS, _NEARLY = 40, 1.0 + 1e-7  # of a bracket of widths: so many, or until it is so narrow
_RUNGS, _AHEAD = 4, 8  # how many widths are tried at once


class Found(NamedTuple):
    """The last batch: its pulls, the narrowest cut for which the proof holds, its window, and its bound."""

    pulls: int
    width: float
    knots: tuple[float, ...]
    bound: float

    @property
    def schedule(self) -> CutSchedule:
        """The schedule of this batch alone, without early commits."""
        return CutSchedule((), self.pulls, self.width, self.knots)


def stray(problem: CutProblem, pulls: int) -> float:
    """Return by how much a difference of two means misses its expectation, exceeded in at most 1 batch of 100."""
    return _STRAY * problem.rewards.sigma / math.sqrt(pulls)


def kept_out(problem: CutProblem) -> float:
    """Return how far behind an arm must be to be played after the last batch with probability at most 1%."""
    gap = problem.gap
    return max(min(_GUARD * problem.rewards.deviation, _GAPS_BEHIND * gap), _FEWEST_GAPS * gap)


def resolve(problem: CutProblem, power: float | None) -> tuple[CutSchedule, bool]:
    """Return the schedule, and whether the horizon is long enough for the power.

    Without a power, the batch has the least predicted regret at the named gap, and is right with probability at least
    0.95.
    """
    least = LEAST_POWER if power is None else power
    fitting = problem.horizon // problem.arms
    if not _enough(problem, fitting, least):
        alone = max(1, (problem.horizon - 1) // problem.arms)  # a pull is left, to show the choice
        return narrowest(problem, alone).schedule, False
    pulls = fewest_pulls(problem, least)
    found = narrowest(problem, _least_regret(problem, pulls) if power is None else pulls)
    return found.schedule._replace(early=_commits(problem, found)), True


def _enough(problem: CutProblem, pulls: int, power: float) -> bool:
    return right(problem, pulls, narrowest(problem, pulls).width) >= power


def _for_any_horizon(problem: CutProblem) -> CutProblem:
    """The same problem for what does not depend on the horizon, so that it is found once."""
    return problem._replace(horizon=LONGEST_HORIZON)


def right(problem: CutProblem, pulls: int, width: float) -> float:
    """Return a lower bound on P(the best arm is played), if all others are worse by the gap; for normal means.

    It is played if it leads by more than the cut, or if nobody does and it is the default, which is each of the K arms
    equally often, because all of them are in the window.
    """
    root, deviation = math.sqrt(pulls), problem.rewards.deviation
    shape = WindowShape(0.0, width * root)
    leads = commit_probability(problem.gap * root, problem.arms, shape, deviation)
    if problem.control:
        return leads
    others = (problem.arms - 1) * commit_probability(-problem.gap * root, 2, shape, deviation)  # or another one leads
    return leads + max(0.0, 1.0 - leads - others) / problem.arms


def fewest_pulls(problem: CutProblem, power: float) -> int:
    """m: the smallest batch that is right at the named gap with this probability; at most what any horizon has."""
    return _fewest_pulls(_for_any_horizon(problem), power)


@lru_cache(maxsize=512)
def _fewest_pulls(problem: CutProblem, power: float) -> int:
    most = LONGEST_HORIZON // problem.arms
    high = min(most, max(1, math.ceil((problem.rewards.deviation / problem.gap) ** 2)))

    def excess(pulls: float) -> float:
        return excess_of(right(problem, round(pulls), narrowest(problem, round(pulls)).width), power)

    guess, slope = likely_pulls(problem, power)
    enough = KnownSides(excess).aimed(guess, slope, max(3e-6, 1.0 / guess), 1.0, most)
    while high > 1 and enough(high):
        high //= 4
    high = max(1, high)
    while high < most and not enough(high):
        high = min(most, high * 4)
    low = max(1, high // 4)
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        elif high - low > 1 << 12 and (high - low) * 10**5 < high:  # a hundred-thousandth more is near enough
            break
        else:
            low = middle + 1
    return high


def excess_of(found: float, power: float) -> float:
    """By how much a probability exceeds a power, as normal quantiles; its sign is that of the difference, never 0."""
    quantile = NormalDist().inv_cdf
    apart = abs(quantile(min(max(found, 1e-300), 1.0 - 1e-16)) - quantile(power))
    return max(apart, 1e-300) * (1.0 if found >= power else -1.0)


def likely_pulls(problem: CutProblem, power: float) -> tuple[float, float]:
    """Estimate the pulls that a power takes, and how its normal quantile grows with their logarithm."""
    wanted = NormalDist().inv_cdf(power)
    rate = problem.rewards.deviation / problem.gap
    cut = math.sqrt(math.pi) / problem.rho * (1.0 if problem.control or problem.arms > 2 else 0.5)
    root = rate * (cut + math.sqrt(2.0) * wanted)
    return root * root, 0.5 * root / rate / math.sqrt(2.0)


def narrowest(problem: CutProblem, pulls: int) -> Found:
    """The narrowest cut of a batch for which the proof gives what rho leaves the last batch."""
    return _narrowest(_for_any_horizon(problem), pulls)


@lru_cache(maxsize=4096)
def _narrowest(problem: CutProblem, pulls: int) -> Found:
    room = problem.rho * _ROOM
    if problem.arms == 2:
        return _proved(problem, pulls, _narrowest_of_two(problem, pulls, room))
    low = cut_constants.last_batch(problem, pulls, 1.0, _knots(problem, pulls, 1.0)).min() / room / 8.0

    return _proved(problem, pulls, _bisected(problem, pulls, room, _first_rungs(problem, pulls, room, float(low))))


class _Bracket(NamedTuple):
    """A width that is too small, or the first one, and one that will do, with their bounds; infinity if not known."""

    low: float
    high: float
    at_low: float
    at_high: float


def _first_rungs(problem: CutProblem, pulls: int, room: float, low: float) -> _Bracket:
    """The first width that will do, in steps of a quarter, and the one before; several are tried at once."""
    high, at_low = low, math.inf
    surely_narrow = _surely_narrow(problem, pulls, room)
    while high < surely_narrow:
        low, high = high, high * 1.25
    while True:
        widths = list(accumulate([1.25] * (_RUNGS - 1), operator.mul, initial=high))
        for width, bound in zip(widths, _bounds(problem, pulls, widths), strict=True):
            if bound <= room:
                return _Bracket(low, width, at_low, bound)
            low, at_low = width, bound
        high = low * 1.25


def _bisected(problem: CutProblem, pulls: int, room: float, bracket: _Bracket) -> float:
    """Where bisection ends. What it will ask next is guessed, and asked at once; where the guess was wrong it goes on.

    A window that is wider may need a wider cut, so that nothing is known of a width that was not asked for.
    """
    low, high, at_low, at_high = bracket
    steps = 0
    while True:
        likely = high * (at_high / room)
        if at_low < math.inf:
            likely = low * (high / low) ** (math.log(at_low / room) / math.log(at_low / at_high))
        path: list[float] = []
        start, end = low, high
        while len(path) < min(_AHEAD, _HALVINGS - steps):
            path.append(math.sqrt(start * end))
            start, end = (start, path[-1]) if path[-1] >= likely else (path[-1], end)
            if end <= start * _NEARLY:
                break
        for middle, bound in zip(path, _bounds(problem, pulls, path), strict=True):
            steps += 1
            if bound > room:
                low, at_low = middle, bound
            else:
                high, at_high = middle, bound
            if high <= low * _NEARLY or steps == _HALVINGS:
                return high
            if (bound <= room) != (middle >= likely):
                break


def _narrowest_of_two(problem: CutProblem, pulls: int, room: float) -> float:
    """The same search for two arms, where the bound is a number over the width."""
    cost = float(cut_constants.last_batch(problem, pulls, 1.0, np.empty((1, 0)))[0])
    low = high = cost / room / 8.0
    while cost / high > room:
        low, high = high, high * 1.25
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if cost / middle > room:
            low = middle
        else:
            high = middle
        if high <= low * _NEARLY:
            break
    return high


def _proved(problem: CutProblem, pulls: int, high: float) -> Found:
    """The cut of this width, or a little wider, that is proved with all rounding."""
    while True:
        found = _with_width(problem, pulls, snapped(high))
        rounding = cut_constants.precision(problem, found.schedule)
        if rounding > 0.5 * problem.rho:
            allowed = "a larger one: rounding alone would cost half of it, with so many arms and pulls"
            raise InvalidArgument("rho", problem.rho, allowed)
        if found.bound + 2.0 * rounding <= problem.rho * (1.0 - _TAILS):  # twice: early cuts are rounded, too
            return found
        high *= 1.0 + 2.0**-12


def _surely_narrow(problem: CutProblem, pulls: int, room: float) -> float:
    """A width that is too small: the cut alone would cost more than there is room for, whatever the window is."""
    alone = 1.0 if problem.control else 1.0 - 1.0 / problem.arms
    return cut_constants.turn(problem.rewards, pulls) * alone / room * (1.0 - 1e-6)


def _with_width(problem: CutProblem, pulls: int, width: float) -> Found:
    knots = _knots(problem, pulls, width)
    bounds = cut_constants.last_batch(problem, pulls, width, knots)
    best = int(np.argmin(bounds))
    return Found(pulls, width, tuple(float(knot) for knot in knots[best]), float(bounds[best]))


def _bounds(problem: CutProblem, pulls: int, widths: Sequence[float]) -> list[float]:
    """The bound of each width, with its best window; for three arms and more."""
    each = np.asarray(widths)
    knots = _knots(problem, pulls, each[:, np.newaxis, np.newaxis])  # (width, candidate, edge)
    rows = np.repeat(each, knots.shape[1])
    found = cut_constants.last_batch(problem, pulls, rows, knots.reshape(-1, PIECES + 1))
    bounds: list[float] = found.reshape(knots.shape[:2]).min(axis=1).tolist()
    return bounds


def _knots(problem: CutProblem, pulls: int, width: float | FloatArray) -> FloatArray:
    """Candidates for the window's cut, (candidate, edge): from the largest cut to where arms must be kept out.

    Densities rise exponentially: near the beginning of the window an arm is mostly inside, which adds one to the arms
    that must agree on a default, so that crossing there may cost less.
    """
    if problem.arms == 2:
        return np.empty((1, 0))
    far = np.maximum(kept_out(problem) - stray(problem, pulls), 2.0 * width)
    edges = _all_snapped(width + (far - width) * _curved(_SLOPES[:1] if problem.control else _SLOPES))
    edges[..., :1] = width  # which has no more digits
    return edges


@lru_cache(maxsize=2)
def _curved(exponents: tuple[float, ...]) -> FloatArray:
    """Return where the knots lie between the largest cut (0) and the farthest (1), for densities of these slopes."""
    slopes, steps = np.asarray(exponents)[:, np.newaxis], np.arange(PIECES + 1) / PIECES
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slopes > 0.0, np.log1p(steps * np.expm1(slopes)) / slopes, steps)


def _least_regret(problem: CutProblem, fewest: int) -> int:
    """Return the pulls of the batch with the least predicted regret, if all other arms are worse by the named gap."""

    def regret(pulls: int) -> float:
        wrong = 1.0 - right(problem, pulls, narrowest(problem, pulls).width)
        return (problem.arms - 1) * pulls + wrong * (problem.horizon - problem.arms * pulls)

    sizes = [int(fewest * 1.04**step) for step in range(72)]
    return min((m for m in sizes if problem.arms * m <= problem.horizon), key=regret)


# -- early commits -----------------------------------------------------------------------------------------------------


def _commits(problem: CutProblem, last: Found) -> tuple[EarlyCommit, ...]:
    """Return early commits, in much smaller batches, that save more pulls at large gaps than they cost at small."""
    found: tuple[EarlyCommit, ...] = ()
    anyhow = _for_any_horizon(problem)
    for part in sorted(_EARLIER):
        pulls = last.pulls // part
        spent = last.pulls + pulls + sum(commit.pulls for commit in found)
        if pulls < 16 or problem.arms * spent > problem.horizon:
            continue
        commit = _commit(anyhow, pulls, found, last)
        if commit is not None and _until(anyhow, (commit, *found), last) < _until(anyhow, found, last):
            found = (commit, *found)
    return found


@lru_cache(maxsize=512)
def _commit(problem: CutProblem, pulls: int, later: tuple[EarlyCommit, ...], last: Found) -> EarlyCommit | None:
    """Return an early commit whose window begins as low as the proof allows; None if no gap would be wide enough."""
    room = problem.rho * (1.0 - 1e-6) - 2.0 * cut_constants.precision(problem, last.schedule)
    noise = confidence.spider_noise(problem.arms, problem.rewards, pulls)
    width = snapped(noise / (problem.rho * (1.0 - 0.01)))
    step = problem.rewards.sigma / math.sqrt(pulls)
    low = max(last.width, 4.0 * step)  # worse arms hardly ever lead by so much
    widest = problem.rewards.widest_gap if problem.rewards.kind == "bounded" else math.inf
    for _ in range(_FARTHEST):
        if low + width >= widest or low > confidence.LARGEST_RATIO * width:
            return None
        commit = EarlyCommit(pulls, snapped(low), width)
        batches = (commit, *later), last.pulls, last.width, last.bound
        surely = cut_constants.surely_exceeds(problem, *batches, room)
        if not surely and cut_constants.with_commits(problem, *batches) <= room:
            return commit
        low += 0.5 * step
    return None


@lru_cache(maxsize=512)
def _until(problem: CutProblem, early: tuple[EarlyCommit, ...], last: Found) -> float:
    """Return the average pulls of an arm until the decision, over leads from the gap to the widest on a log scale."""
    bounded = problem.rewards.kind == "bounded"
    widest = problem.rewards.widest_gap if bounded else max(64.0 * problem.gap, 4.0 * problem.rewards.sigma)
    leads = np.geomspace(problem.gap, max(widest, problem.gap), 24)
    stops = []
    for pulls, low, width in early:
        root, ones = math.sqrt(pulls), np.ones(len(leads))
        ends = commit_probabilities(
            leads * root, problem.arms, low * root * ones, width * root * ones, problem.rewards.deviation
        )
        stops.append((pulls, ends.tolist()))
    total = 0.0
    for number in range(len(leads)):
        going = 1.0
        for pulls, ends in stops:
            total += going * pulls
            going *= 1.0 - ends[number]
        total += going * last.pulls
    return total / len(leads)


def _all_snapped(values: FloatArray) -> FloatArray:
    """Return the array with each entry rounded up to 32 binary digits, as `snapped` does."""
    parts, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.ceil(np.ldexp(parts, 32)), exponents - 32))
