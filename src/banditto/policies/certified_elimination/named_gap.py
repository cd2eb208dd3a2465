"""CertifiedElimination's constants where something is promised of a gap.

`ladder_search` looks for little regret on many problems. A plan asks another question: with arms that are all one gap
worse than the best, which constants commit to the best one with a given probability before, say, half of the horizon
is spent, and of those, which cost least? Batches are aimed: one of them is exactly as long as the promise needs.

Symbols  m: pulls of each arm in the deciding batch, q: growth, [l, l + w]: the commit's window times sqrt(m)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.exact import first_true
from banditto.core.known_sides import KnownSides
from banditto.numbers.special_functions import ndtr
from banditto.policies.certified_elimination import ladder, ladder_search
from banditto.policies.certified_elimination.ladder import Ladder
from banditto.policies.certified_elimination.ladder_search import LadderProblem, LadderShape, WindowShape

_MARGIN = 0.4  # of what is left to 1: predictions are a little off, and promises must hold
_GROWTHS = (6, 9, 12, 14)  # with one gap in mind, batches that come too early are a waste
_NODES = 80
_STEPS = 1 << 14  # of sqrt(m), over the range in which it must be


class Aim(NamedTuple):
    """A promise: a lead of `gap` is found with this probability before this share of the horizon is spent."""

    gap: float
    probability: float
    share: float


class Aimed(NamedTuple):
    """A ladder's shape, the pulls of its first batch and of the one that decides, and all pulls spent by then."""

    shape: LadderShape
    first: int
    deciding: float
    spending: float


def aimed_ladder(problem: LadderProblem, aim: Aim) -> Ladder:
    """Return the cheapest ladder that keeps the promise, or the one that comes nearest to it."""
    shape, first, deciding, _ = best_aim(problem, aim)
    resolved = ladder.with_first(problem, shape, first)
    if not resolved.batches:
        return resolved
    # what was aimed with a rough window is aimed again with the real one
    window = _real_window(resolved, deciding)
    return ladder.with_first(problem, shape, _first(problem, shape, window, _deciding_pulls(problem, aim, window)))


@lru_cache(maxsize=256)
def best_aim(problem: LadderProblem, aim: Aim) -> Aimed:
    """Return the best shape for a promise: least predicted regret, or least spending if none keeps the promise.

    Growth and offset are searched together, then the final batch.
    """
    profiles = ladder_search.profiles_of(problem.arms, (aim.gap,), problem.widest)

    def price(found: Aimed) -> tuple[bool, float]:
        if found.spending > aim.share * problem.horizon:
            return True, found.spending
        return False, float(ladder_search.predicted_regret(found.shape, problem, profiles, found.first)[0])

    shapes = [{"growth": q, "commit_offset": a} for q in _GROWTHS for a in ladder_search.OFFSETS]
    ends = [{"final_share": f, "exploration": e} for f in ladder_search.FINAL for e in ladder_search.EXPLORATION]
    best = _aimed(problem, aim, ladder_search.START)
    least = price(best)
    for changes in [*shapes, *ends]:
        candidate = _aimed(problem, aim, best.shape._replace(**changes))
        if (priced := price(candidate)) < least:
            best, least = candidate, priced
    return best


def _aimed(problem: LadderProblem, aim: Aim, shape: LadderShape) -> Aimed:
    """Return what a shape needs to resolve the gap: its first and its deciding batch, and the pulls spent by then."""
    guess = max(2, round(math.log(problem.horizon) / math.log(shape.growth)))
    window = ladder_search.commit_window(shape, problem, guess)
    deciding = _deciding_pulls(problem, aim, window)
    first = _first(problem, shape, window, deciding)
    spent, size = 0, first
    while size <= deciding * math.sqrt(shape.growth):  # the deciding batch, rounded up, and all before it
        spent, size = spent + size, size * shape.growth
    return Aimed(shape, first, deciding, float(problem.arms * spent))


def _first(problem: LadderProblem, shape: LadderShape, window: WindowShape, deciding: float) -> int:
    """Return m_1, the pulls of each arm in the first batch: the deciding batch's, divided by a power of the growth."""
    first = deciding
    fewest = (window.low / problem.widest) ** 2
    while first / shape.growth >= max(fewest, 1.0):
        first /= shape.growth
    return math.ceil(first)


def _real_window(resolved: Ladder, deciding: float) -> WindowShape:
    """Return the window, in units of 1/sqrt(m), of the commit in the resolved batch nearest to the one that decides."""
    pulls, commit, _ = min(resolved.batches, key=lambda batch: abs(math.log(batch.pulls / deciding)))
    root = math.sqrt(pulls)
    return WindowShape(commit.low * root, commit.width * root)


@lru_cache(maxsize=256)
def _deciding_pulls(problem: LadderProblem, aim: Aim, window: WindowShape) -> float:
    """Return m, the pulls of each arm with which one batch finds the gap, a little more surely than is aimed for."""
    wanted = aim.probability + _MARGIN * (1.0 - aim.probability)
    sigma = problem.rewards.sigma
    furthest = window.low + window.width + 16.0 * sigma  # no noise reaches so far

    def excess(step: float) -> float:
        return commit_probability(furthest * round(step) / _STEPS, problem.arms, window, sigma) - wanted

    likely = window.low + window.width * wanted + sigma
    guess, slope = _STEPS * likely / furthest, likely / window.width
    enough = KnownSides(excess).aimed(guess, slope, 0.5 / guess, 1.0, _STEPS)
    return (furthest * first_true(enough, 1, _STEPS) / _STEPS / aim.gap) ** 2


@lru_cache(maxsize=32)
def _nearest_rival(arms: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights that integrate over the largest of K - 1 standard normal variables."""
    nodes = np.linspace(-8.0, 8.0, _NODES + 1)
    middle = (nodes[1:] + nodes[:-1]) / 2.0
    return middle, np.diff(ndtr(nodes) ** (arms - 1))


def commit_probability(scaled_gap: float, arms: int, window: WindowShape, sigma: float) -> float:
    """Return P(the best arm leads all others by more than the cut), gaps being `scaled_gap` / sqrt(m), noise normal."""
    low, width = np.asarray([window.low]), np.asarray([window.width])
    return float(commit_probabilities(np.asarray([scaled_gap]), arms, low, width, sigma)[0])


def commit_probabilities(
    scaled_gaps: FloatArray, arms: int, lows: FloatArray, widths: FloatArray, sigma: float
) -> FloatArray:
    """Return `commit_probability` of several gaps and windows at once, arrays of N numbers each."""
    rivals, weights = _nearest_rival(arms)
    lead = scaled_gaps[:, np.newaxis] - sigma * rivals  # given the nearest rival's noise; the best's is integrated out
    low, width = lows[:, np.newaxis], widths[:, np.newaxis]
    passed = sigma * (_positive_part((lead - low) / sigma) - _positive_part((lead - low - width) / sigma)) / width
    return np.asarray(np.sum(weights * passed, axis=1))


def _positive_part(z: np.ndarray) -> np.ndarray:
    """Return the mean of the positive part of z + Z, for a standard normal Z."""
    density = np.exp(-np.minimum(z * z, 1400.0) / 2.0) / math.sqrt(2.0 * math.pi)
    return np.asarray(z * ndtr(z) + density)
