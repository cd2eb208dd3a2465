"""The search for CertifiedElimination's constants: least regret, predicted, among those whose guarantee holds.

Objective: the logarithm of predicted regret, averaged over problems whose smallest gap is one of six round numbers (or
the one that the user names) and whose other gaps are equal to it, grow linearly, or double from arm to arm. Regret is
predicted with normal noise: an arm survives a batch with the probability that the cut is above its gap. The search is
a fixed sequence of grids, so it is deterministic; what it finds goes into the protocol, so nobody has to repeat it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.rewards import Rewards
from banditto.numbers.special_functions import erfc, ndtr
from banditto.policies.shared import confidence

GAPS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03)  # round numbers, times the range of rewards: 1 in [0, 1], else 2 sigma
GROWTHS = (4, 5, 6, 7, 8, 9, 10, 12, 14)
OFFSETS = (0, 2, 4, 6, 8, 12, 16)  # in 32nds of a window's width
_PHASES = 10
FINAL = (20, 50, 100, 200)  # thousandths of rho
_ELIMINATION = (0, 50, 100, 200, 350)
_MULTIPLES = (0.8, 0.9, 1.0, 1.02, 1.04, 1.06, 1.08, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 20.0)
EXPLORATION = (1, 2, 4, 8)  # 32nds of what remains go into the final batch


class Linear(NamedTuple):
    """What else describes a linear problem: a batch of size m costs `units` m pulls, not K m.

    `worlds` are gaps of all arms under some parameters, to tune for. `bias` is how far values may be off in both
    executions alike, because all arms nearly lie in fewer dimensions.
    """

    dimension: int
    units: float
    widest: float
    worlds: tuple[tuple[float, ...], ...]
    bias: float = 0.0


class LadderProblem(NamedTuple):
    """A problem that constants are chosen for; `gap` is None unless the user named one."""

    arms: int
    horizon: int
    rho: float
    rewards: Rewards
    gap: float | None
    linear: Linear | None = None

    @property
    def widest(self) -> float:
        """The widest gap to prepare for, which is the scale on which gaps are tried."""
        if self.linear is not None:
            return self.linear.widest
        return self.rewards.widest_gap if self.rewards.kind == "bounded" else 2.0 * self.rewards.sigma

    @property
    def units(self) -> float:
        """Pulls of a batch with all arms, as a multiple of its size m."""
        return self.arms if self.linear is None else self.linear.units

    @property
    def fewest_units(self) -> float:
        """Pulls of a batch with as few arms as can be tested, as a multiple of its size m."""
        return 2.0 if self.linear is None else 0.5

    def noise(self, samples: int) -> float:
        """Return E, the bound on how far a gap differs on average between two executions, in a batch of this size."""
        if self.linear is not None:
            return confidence.linear_noise(self.arms, self.rewards, samples)
        return confidence.batch_noise(self.arms, self.rewards, samples)


class LadderShape(NamedTuple):
    """What the search varies, in integers: growth q, offsets in 32nds, shares of rho in thousandths."""

    growth: int
    phase: int
    commit_offset: int
    elimination_offset: int
    elimination_share: int
    final_share: int
    exploration: int

    @property
    def commit_share(self) -> int:
        """The share of rho that is left for the commit, in thousandths."""
        return 1000 - self.elimination_share - self.final_share


START = LadderShape(9, 0, 4, 4, 0, 50, 2)


@lru_cache(maxsize=256)
def best_shape(problem: LadderProblem) -> LadderShape:
    """Search for the shape of least predicted regret, one group of coordinates after the other, and return it."""
    best, least = START, _objective(START, problem)
    tried: set[LadderShape] = set()  # what was not better then is not better now
    for _ in range(2):
        for candidates in _neighbourhoods(problem):
            for changes in candidates:
                candidate = best._replace(**changes)
                if candidate in tried:
                    continue
                tried.add(candidate)
                value = _objective(candidate, problem)
                if value < least - 1e-4:
                    best, least = candidate, value
    return best


def _neighbourhoods(problem: LadderProblem) -> list[list[dict[str, int]]]:
    """Return the changes to try, in groups of coordinates that are varied together."""
    shapes = [{"growth": q, "commit_offset": a, "phase": k} for q in GROWTHS for a in OFFSETS for k in range(_PHASES)]
    ends = [{"final_share": f, "exploration": e} for f in FINAL for e in EXPLORATION]
    if problem.arms == 2:  # with two arms a commit is an elimination
        return [shapes, ends]
    drops = [{"elimination_share": s, "elimination_offset": a} for s in _ELIMINATION for a in OFFSETS]
    return [shapes, ends, drops]


class WindowShape(NamedTuple):
    """A window in units of 1/sqrt(m), which is the same for batches of all sizes m."""

    low: float
    width: float


def commit_window(shape: LadderShape, problem: LadderProblem, batches: int) -> WindowShape:
    """Return the window of the commit's cut, in units of 1/sqrt(m)."""
    share = shape.commit_share / 1000.0
    return _window(problem, batches, shape.growth, shape.commit_offset, share, 1, (1, problem.arms - 1))


def elimination_window(shape: LadderShape, problem: LadderProblem, batches: int) -> WindowShape | None:
    """Return the window of the eliminations' cut in units of 1/sqrt(m); None if the shape has no eliminations."""
    if shape.elimination_share == 0:
        return None
    share, comparisons = shape.elimination_share / 1000.0, problem.arms - 1
    factors = (problem.arms - 1, 1)
    return _window(problem, batches, shape.growth, shape.elimination_offset, share, comparisons, factors)


@lru_cache(maxsize=4096)
def _window(
    problem: LadderProblem,
    batches: int,
    growth: int,
    offset: int,
    share: float,
    comparisons: int,
    factors: tuple[int, int],
) -> WindowShape:
    """Return the narrowest window whose sum over an endless ladder of batches is at most its share of rho."""
    sigma = problem.rewards.sigma
    noise = 100.0 * problem.noise(10_000)
    lead = confidence.wrong_lead(problem.arms, batches, problem.horizon, sigma, 1)
    allowed = problem.rho * share / comparisons
    # Not monotone: wider windows overlap more. So try one multiple of noise / allowed after the other.
    for multiple in _MULTIPLES:
        width = multiple * noise / allowed
        window = WindowShape(lead + offset / 32.0 * width, width)
        # a few phases show that most multiples are too small, and by more than rounding
        if _endless_sum(window, growth, noise, sigma, factors, _FEW) > allowed * (1.0 + 1e-9):
            continue
        if _endless_sum(window, growth, noise, sigma, factors) <= allowed:
            break
    return window


_ALL, _FEW = 1, 12  # every phase of a gap between two batches, and every twelfth


@lru_cache(maxsize=64)
def _places(growth: int, every: int) -> tuple[FloatArray, FloatArray]:
    """Return where a gap may lie between two batches, (phases, 1), and the batches around it; both as factors."""
    phases = np.exp(np.linspace(0.0, math.log(growth) / 2.0, 96, endpoint=False))[::every, np.newaxis]
    return phases, growth ** (np.arange(-6, 7) / 2.0)


def _endless_sum(
    window: WindowShape, growth: int, noise: float, sigma: float, factors: tuple[int, int], every: int = _ALL
) -> float:
    """Return the largest sum of bounds that one gap causes over all batches; `every` skips phases, to be quick."""
    phases, batches = _places(growth, every)
    gaps = window.low * phases * batches  # times sqrt(m)
    high = window.low + window.width
    distance = np.where(gaps < window.low, window.low - gaps, gaps - high)
    tails = np.where(gaps < window.low, factors[0], factors[1]) * 2.0 * sigma * math.sqrt(math.pi)
    tails = tails * erfc(np.maximum(distance, 0.0) / (2.0 * sigma))
    inside = (gaps >= window.low) & (gaps <= high)
    return float(np.where(inside, noise, np.minimum(noise, tails)).sum(axis=1).max() / window.width)


def first_pulls(shape: LadderShape, problem: LadderProblem, window: WindowShape) -> int:
    """Return m_1, the pulls of each arm in the first batch.

    There the widest gap could lead to a commit; the phase adds a fraction of the growth.
    """
    widest = problem.widest
    return math.ceil((window.low / widest) ** 2 * math.exp(math.log(shape.growth) * shape.phase / _PHASES))


class Profiles(NamedTuple):
    """Gaps of all arms but the best, in groups, and how many arms each group has; both (problems, groups)."""

    gaps: FloatArray
    counts: FloatArray


_GROUPS = 24


@lru_cache(maxsize=64)
def profiles_of(arms: int, scales: tuple[float, ...], widest: float) -> Profiles:
    """Return problems with equal, linear and doubling gaps; neighbouring arms share a group if there are many."""
    steps = np.arange(arms - 1, dtype=np.float64)
    groups = np.array_split(np.arange(arms - 1), min(_GROUPS, arms - 1))
    counts = np.array([group.size for group in groups], dtype=np.float64)
    gaps = []
    for scale in scales:
        for form in (np.ones(arms - 1), 1.0 + steps, 2.0 ** np.minimum(steps, 60)):
            every = np.minimum(scale * form, 0.9 * widest)
            gaps.append([float(every[group].mean()) for group in groups])
            gaps[-1][0] = float(every[0])  # the smallest gap is what a commit hangs on
    return Profiles(np.array(gaps), np.tile(counts, (len(gaps), 1)))


@lru_cache(maxsize=64)
def _grouped(worlds: tuple[tuple[float, ...], ...]) -> Profiles:
    """Return the worlds' gaps of all arms but one best, sorted, in groups of neighbours."""
    every = np.sort(np.array(worlds), axis=1)[:, 1:]
    groups = np.array_split(np.arange(every.shape[1]), min(_GROUPS, every.shape[1]))
    counts = np.array([group.size for group in groups], dtype=np.float64)
    gaps = np.array([[float(row[group].mean()) for group in groups] for row in every])
    gaps[:, 0] = every[:, 0]
    return Profiles(gaps, np.tile(counts, (len(gaps), 1)))


def expected_regret(shape: LadderShape, problem: LadderProblem) -> float:
    """Return the predicted regret on a linear problem, the mean over the worlds that it is tuned for."""
    assert problem.linear is not None
    return float(predicted_regret(shape, problem, _grouped(problem.linear.worlds)).mean())


def _objective(shape: LadderShape, problem: LadderProblem) -> float:
    """Return what the search minimises: the mean logarithm of the predicted regret over the problems to tune for."""
    if problem.linear is not None:
        profiles = _grouped(problem.linear.worlds)
        return float(np.log(np.maximum(predicted_regret(shape, problem, profiles), 1e-9)).mean())
    widest = problem.widest
    scales = tuple(widest * gap for gap in GAPS) if problem.gap is None else (problem.gap,)
    profiles = profiles_of(problem.arms, scales, widest)
    return float(np.log(np.maximum(predicted_regret(shape, problem, profiles), 1e-9)).mean())


def predicted_regret(
    shape: LadderShape, problem: LadderProblem, profiles: Profiles, first: int | None = None
) -> FloatArray:
    """Return the approximate regret on these problems; shape (P,). `first` is m_1, if not that of the shape."""
    gaps, counts = profiles  # (P, G) each
    many = counts[..., np.newaxis]
    batches = max(2, round(math.log(problem.horizon) / math.log(shape.growth)))
    commit = commit_window(shape, problem, batches)
    drop = elimination_window(shape, problem, batches)
    first = first_pulls(shape, problem, commit) if first is None else first
    sizes = first * float(shape.growth) ** np.arange(batches)
    sizes = np.floor(sizes[sizes < problem.horizon])
    if sizes.size == 0:
        sizes = np.array([float(problem.horizon)])
    roots = np.sqrt(sizes)
    ends = _passing(_lead(profiles, roots, problem.rewards.sigma), commit, problem.rewards.sigma)  # (P, N)
    before = _before(1.0 - ends)  # not committed before batch i
    left = np.ones((*gaps.shape, sizes.size))  # (P, G, N): an arm of the group is there before batch i
    if drop is not None:
        left = _before(1.0 - _passing(gaps[..., np.newaxis] * roots, drop, problem.rewards.sigma))
    active = 1.0 + (many * left).sum(axis=1)  # (P, N)
    cost = active if problem.linear is None else np.minimum(active, problem.units)  # pulls for each of m
    spent = np.cumsum(cost * sizes, axis=1)
    fits = np.cumprod(spent <= problem.horizon, axis=1).astype(bool)  # (P, N)
    losses = (gaps[..., np.newaxis] * many * left).sum(axis=1) * (cost / active)  # per m
    regret = (before * losses * sizes * fits).sum(axis=1)
    # what is left when no batch fits any more
    count = fits.sum(axis=1)
    rows = np.arange(gaps.shape[0])
    used = np.where(count > 0, spent[rows, np.maximum(count - 1, 0)], 0.0)
    last = np.minimum(count, sizes.size - 1)
    survivors, remaining = cost[rows, last], problem.horizon - used
    uncommitted = np.where(
        count > 0, before[rows, np.maximum(count - 1, 0)] * (1.0 - ends[rows, np.maximum(count - 1, 0)]), 1.0
    )
    explored = shape.exploration / 32.0 * remaining / survivors
    scale = confidence.choice_scale(max(2, problem.arms), problem.rewards) * problem.rewards.sigma
    scale = scale / (problem.rho * shape.final_share / 1000.0 * np.sqrt(np.maximum(explored, 1.0)))
    # without a pull for each there is no evidence
    sharpness = np.where(explored >= 1.0, 1.0 / scale, 0.0)
    weights = counts * left[rows, :, last] * np.exp(-gaps * sharpness[:, np.newaxis])
    loss = (weights * gaps).sum(axis=1) / (1.0 + weights.sum(axis=1))
    end = explored * losses[rows, last] + (remaining - explored * survivors) * loss
    return np.asarray(regret + uncommitted * end)


def _lead(profiles: Profiles, roots: FloatArray, sigma: float) -> FloatArray:
    """Return about what the best arm leads by, times sqrt(m): the best of many close rivals exceeds its mean."""
    gaps, counts = profiles
    nearest = gaps.min(axis=1)[:, np.newaxis] * roots  # (P, N)
    apart = gaps[..., np.newaxis] * roots - nearest[:, np.newaxis, :]  # (P, G, N)
    rivals = (counts[..., np.newaxis] * np.exp(-apart / sigma)).sum(axis=1)
    return np.asarray(nearest - 0.7 * sigma * np.sqrt(2.0 * np.log(np.maximum(rivals, 1.0))))


def _passing(gaps: FloatArray, window: WindowShape, sigma: float) -> FloatArray:
    """Return the probability that a gap with normal noise, of variance 2 sigma^2, exceeds a cut from the window."""
    spread = math.sqrt(2.0) * sigma

    def beyond(distance: FloatArray) -> FloatArray:
        """Return the mean of the positive part of distance + noise."""
        z = distance / spread
        density = np.exp(-np.minimum(z * z, 1400.0) / 2.0) / math.sqrt(2.0 * math.pi)
        return np.asarray(distance * ndtr(z) + spread * density)

    passed = (beyond(gaps - window.low) - beyond(gaps - window.low - window.width)) / window.width
    return np.asarray(np.clip(passed, 0.0, 1.0))


def _before(survival: FloatArray) -> FloatArray:
    """Return the products of all earlier entries along the last axis."""
    product = np.cumprod(survival, axis=-1)
    return np.concatenate([np.ones((*product.shape[:-1], 1)), product[..., :-1]], axis=-1)
