"""The smallest batch whose cut is replicable and right at the named gap, and the early commits that pay."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import snapped
from banditto.core.horizons import LONGEST_HORIZON
from banditto.policies.certified_elimination.ladder_search import WindowShape
from banditto.policies.certified_elimination.named_gap import commit_probability
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


class Found(NamedTuple):
    """The last batch: its pulls, the narrowest cut that is proved, and its window."""

    pulls: int
    width: float
    knots: tuple[float, ...]
    bound: float

    @property
    def schedule(self) -> CutSchedule:
        """The batch alone, without early commits."""
        return CutSchedule((), self.pulls, self.width, self.knots)


def stray(problem: CutProblem, pulls: int) -> float:
    """By how much a difference of two means misses its expectation in one batch of 100 at the most."""
    return _STRAY * problem.rewards.sigma / math.sqrt(pulls)


def kept_out(problem: CutProblem) -> float:
    """How far behind an arm should be, so that it is played after the last batch with probability 1% at most."""
    gap = problem.gap
    return max(min(_GUARD * problem.rewards.deviation, _GAPS_BEHIND * gap), _FEWEST_GAPS * gap)


def resolve(problem: CutProblem, power: float | None) -> tuple[CutSchedule, bool]:
    """The schedule, and whether the horizon is long enough for the power.

    Without a power it is the batch with the least predicted regret at the named gap, right with 0.95 at the least.
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


def right(problem: CutProblem, pulls: int, width: float) -> float:
    """P(the best arm is played) after a batch at the least, if all others are worse by the named gap; for normal means.

    It leads by more than the cut; or nobody does, and the default is one of K arms, which are all in the window.
    """
    root, deviation = math.sqrt(pulls), problem.rewards.deviation
    shape = WindowShape(0.0, width * root)
    leads = commit_probability(problem.gap * root, problem.arms, shape, deviation)
    if problem.control:
        return leads
    others = (problem.arms - 1) * commit_probability(-problem.gap * root, 2, shape, deviation)  # or another one leads
    return leads + max(0.0, 1.0 - leads - others) / problem.arms


@lru_cache(maxsize=512)
def fewest_pulls(problem: CutProblem, power: float) -> int:
    """m: the smallest batch that is right at the named gap with this probability; at most what any horizon has."""
    most = LONGEST_HORIZON // problem.arms
    high = min(most, max(1, math.ceil((problem.rewards.deviation / problem.gap) ** 2)))
    while high > 1 and _enough(problem, high, power):
        high //= 4
    high = max(1, high)
    while high < most and not _enough(problem, high, power):
        high = min(most, high * 4)
    low = max(1, high // 4)
    while low < high:
        middle = (low + high) // 2
        if _enough(problem, middle, power):
            high = middle
        elif high - low > 1 << 12 and (high - low) * 10**5 < high:  # a hundred-thousandth more is near enough
            break
        else:
            low = middle + 1
    return high


@lru_cache(maxsize=4096)
def narrowest(problem: CutProblem, pulls: int) -> Found:
    """The narrowest cut of a batch for which the proof gives what rho leaves the last batch."""
    room = problem.rho * _ROOM
    low = cut_constants.last_batch(problem, pulls, 1.0, _knots(problem, pulls, 1.0)).min() / room / 8.0
    high = low
    while _bound(problem, pulls, high) > room:
        low, high = high, high * 1.25
    for _ in range(40):
        middle = math.sqrt(low * high)
        if _bound(problem, pulls, middle) > room:
            low = middle
        else:
            high = middle
        if high <= low * (1.0 + 1e-7):
            break
    while True:
        found = _with_width(problem, pulls, snapped(high))
        rounding = cut_constants.precision(problem, found.schedule)
        if rounding > 0.5 * problem.rho:
            allowed = "larger: rounding alone would cost half of it, for so many arms and pulls"
            raise InvalidArgument("rho", problem.rho, allowed)
        if found.bound + 2.0 * rounding <= problem.rho * (1.0 - _TAILS):  # twice: early cuts are rounded, too
            return found
        high *= 1.0 + 2.0**-12


def _with_width(problem: CutProblem, pulls: int, width: float) -> Found:
    knots = _knots(problem, pulls, width)
    bounds = cut_constants.last_batch(problem, pulls, width, knots)
    best = int(np.argmin(bounds))
    return Found(pulls, width, tuple(float(knot) for knot in knots[best]), float(bounds[best]))


def _bound(problem: CutProblem, pulls: int, width: float) -> float:
    return float(cut_constants.last_batch(problem, pulls, width, _knots(problem, pulls, width)).min())


def _knots(problem: CutProblem, pulls: int, width: float) -> FloatArray:
    """Candidates for the window's cut, (candidate, edge): from the largest cut to where arms must be kept out.

    Densities rise exponentially: an arm near the window's beginning is mostly inside and makes the default longer to
    agree on, so that it may cost less to cross there.
    """
    if problem.arms == 2:
        return np.empty((1, 0))
    far = max(kept_out(problem) - stray(problem, pulls), 2.0 * width)
    edges = _all_snapped(width + (far - width) * _curved(_SLOPES[:1] if problem.control else _SLOPES))
    edges[:, 0] = width  # which has no more digits
    return edges


@lru_cache(maxsize=2)
def _curved(exponents: tuple[float, ...]) -> FloatArray:
    """Where the edges lie on the way from the largest cut to the farthest, for densities of these slopes."""
    slopes, steps = np.asarray(exponents)[:, np.newaxis], np.arange(PIECES + 1) / PIECES
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slopes > 0.0, np.log1p(steps * np.expm1(slopes)) / slopes, steps)


def _least_regret(problem: CutProblem, fewest: int) -> int:
    """The batch with the least predicted regret where all other arms are worse by the named gap."""

    def regret(pulls: int) -> float:
        wrong = 1.0 - right(problem, pulls, narrowest(problem, pulls).width)
        return (problem.arms - 1) * pulls + wrong * (problem.horizon - problem.arms * pulls)

    sizes = [int(fewest * 1.04**step) for step in range(72)]
    return min((m for m in sizes if problem.arms * m <= problem.horizon), key=regret)


# -- early commits -----------------------------------------------------------------------------------------------------


def _commits(problem: CutProblem, last: Found) -> tuple[EarlyCommit, ...]:
    """Commits in much smaller batches, where they save more pulls at large gaps than they cost at small ones."""
    found: tuple[EarlyCommit, ...] = ()
    for part in sorted(_EARLIER):
        pulls = last.pulls // part
        spent = last.pulls + pulls + sum(commit.pulls for commit in found)
        if pulls < 16 or problem.arms * spent > problem.horizon:
            continue
        commit = _commit(problem, pulls, found, last)
        if commit is not None and _until(problem, (commit, *found), last) < _until(problem, found, last):
            found = (commit, *found)
    return found


def _commit(problem: CutProblem, pulls: int, later: tuple[EarlyCommit, ...], last: Found) -> EarlyCommit | None:
    """An early commit whose window begins as low as the proof allows; None where no gap is so large."""
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
        if cut_constants.with_commits(problem, (commit, *later), last.pulls, last.width, last.bound) <= room:
            return commit
        low += 0.5 * step
    return None


def _until(problem: CutProblem, early: tuple[EarlyCommit, ...], last: Found) -> float:
    """Pulls of an arm until the decision, averaged over leads from the gap to the widest, evenly in logarithms."""
    bounded = problem.rewards.kind == "bounded"
    widest = problem.rewards.widest_gap if bounded else max(64.0 * problem.gap, 4.0 * problem.rewards.sigma)
    total, leads = 0.0, np.geomspace(problem.gap, max(widest, problem.gap), 24)
    for lead in leads:
        going = 1.0
        for pulls, low, width in early:
            root = math.sqrt(pulls)
            total += going * pulls
            shape = WindowShape(low * root, width * root)
            going *= 1.0 - commit_probability(float(lead) * root, problem.arms, shape, problem.rewards.deviation)
        total += going * last.pulls
    return total / len(leads)


def _all_snapped(values: FloatArray) -> FloatArray:
    """`snapped` of each entry."""
    parts, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.ceil(np.ldexp(parts, 32)), exponents - 32))
