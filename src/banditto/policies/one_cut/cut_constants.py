"""OneCut's constants on one problem: what decides, how it is written down, and what the proof gives for it.

The proof is in docs/one-cut.md, where each symbol names its function here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, precise
from banditto.core.protocol import Plain, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.policies.certified_elimination.overlap import SAFETY, Window, surely_more, worst_sum
from banditto.policies.one_cut.choice import PIECES
from banditto.policies.shared import confidence

Terms = list[tuple[str, Decimal, str]]

MOST_COMMITS = 4
_AT_ONCE = 1 << 14  # numbers that stay in the cache


class CutProblem(NamedTuple):
    """A problem that constants are chosen for; `control` says whether there is one."""

    arms: int
    horizon: int
    rho: float
    rewards: Rewards
    gap: float
    control: bool


class EarlyCommit(NamedTuple):
    """A batch of `pulls` of each arm, and a commit to the leader if it leads by more than low + coin * width."""

    pulls: int
    low: float
    width: float


class CutSchedule(NamedTuple):
    """The constants that decide: early commits, then the last batch with its cut and its window.

    `width` is the largest cut of the last batch; `knots` are the quantiles of the window's cut, in steps of 1/16, and
    there are none for two arms, both of whom are always in the window.
    """

    early: tuple[EarlyCommit, ...]
    pulls: int
    width: float
    knots: tuple[float, ...]

    @property
    def pulls_per_arm(self) -> int:
        """The pulls of each arm until the last decision."""
        return self.pulls + sum(commit.pulls for commit in self.early)

    def to_plain(self) -> Mapping[str, Plain]:
        """Return the schedule as a protocol holds it: integers, and cuts as exact binary fractions."""
        rows: list[Mapping[str, Plain]] = [
            {"pulls": commit.pulls, "low": fraction(commit.low), "width": fraction(commit.width)}
            for commit in self.early
        ]
        last: dict[str, Plain] = {"pulls": self.pulls, "width": fraction(self.width)}
        return {"early": tuple(rows), **last, "knots": tuple(fraction(knot) for knot in self.knots)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], arms: int, horizon: int) -> CutSchedule:
        """Return the schedule that `to_plain` wrote, or refuse content that it could not have written."""
        rows, knots = content.get("early"), content.get("knots")
        if set(content) != {"early", "pulls", "width", "knots"} or not isinstance(rows, tuple):
            raise InvalidArgument("resolved", list(content), "early, pulls, width and knots")
        if len(rows) > MOST_COMMITS:
            raise InvalidArgument("early", f"{len(rows)} of them", f"at most {MOST_COMMITS}")
        if not isinstance(knots, tuple) or len(knots) != (PIECES + 1 if arms > 2 else 0):
            raise InvalidArgument("knots", knots, f"{PIECES + 1} numbers, or none for two arms")
        edges = tuple(from_fraction(knot, "knots") for knot in knots)
        if any(low >= high for low, high in pairwise(edges)):
            raise InvalidArgument("knots", edges, "numbers that increase")
        width = from_fraction(content["width"], "width")
        if not width > 0.0:
            raise InvalidArgument("width", width, "a number above 0")
        read = cls(
            tuple(_commit_from_plain(row, horizon) for row in rows),
            integer(content["pulls"], "pulls", 1, horizon),
            width,
            edges,
        )
        if arms * read.pulls_per_arm > horizon:
            raise InvalidArgument("pulls", read.pulls_per_arm, f"at most {horizon // arms} for each arm")
        return read


def _commit_from_plain(row: Any, horizon: int) -> EarlyCommit:
    """Return one early commit of a protocol, or refuse a row that `to_plain` could not have written."""
    if not isinstance(row, Mapping) or set(row) != {"pulls", "low", "width"}:
        raise InvalidArgument("early", row, "tables with pulls, low and width")
    low, width = from_fraction(row["low"], "low"), from_fraction(row["width"], "width")
    if low < 0.0 or width <= 0.0:
        raise InvalidArgument("early", (low, width), "cuts with low >= 0 and width > 0")
    return EarlyCommit(integer(row["pulls"], "pulls", 1, horizon), low, width)


# -- the theorem's quantities ------------------------------------------------------------------------------------------


def turn(rewards: Rewards, pulls: int) -> float:
    """Return V = sqrt(pi) s, how far the difference of two arms moves on average on a quarter turn (Lemma 3)."""
    return math.sqrt(math.pi * rewards.deviation**2 / pulls)


@lru_cache(maxsize=64)
def harmonic(arms: int) -> float:
    """Return h = 1/3 + ... + 1/K, the weight of all arms beyond the top two, by their ranks."""
    return math.fsum(1.0 / rank for rank in range(3, arms + 1))


def changes(arms: int, width: float | FloatArray, knots: FloatArray, control: bool) -> FloatArray:
    """Return C, how often the choice changes, in units of V/w, for the worst placed arms (Theorem 1).

    `knots` has axes (candidate, edge), and `width` may have one for each candidate. Without a control every arm of rank
    r weighs (Q + (r-1) w p)/(r (r-1)), where the window's cut lies beyond it with probability Q and has the density p;
    with one, every crossing counts.
    """
    densities = 1.0 / (PIECES * np.diff(knots, axis=-1))  # (candidate, piece)
    if control:
        return np.asarray(1.0 + width * densities.max(axis=-1) * (1.0 + harmonic(arms)))
    beyond = 1.0 - np.arange(PIECES) / PIECES  # Q at the lower end of each piece, where it is largest
    ranks = np.arange(3, arms + 1)
    each = np.asarray(width)[..., np.newaxis]  # (candidate, rank)
    if densities.size * len(ranks) <= _AT_ONCE:  # (candidate, piece, rank)
        crossed = each[..., np.newaxis] * (densities[:, :, np.newaxis] * (ranks - 1.0))
        worst = (beyond[:, np.newaxis] + crossed).max(axis=1)
    else:
        worst = np.zeros((len(densities), len(ranks)))  # (candidate, rank)
        for piece in range(PIECES):  # one at a time, because all of them times a thousand ranks leave the cache
            np.maximum(worst, beyond[piece] + each * (densities[:, piece, np.newaxis] * (ranks - 1.0)), out=worst)
    return np.asarray(0.5 + (worst / (ranks * (ranks - 1.0))).sum(axis=-1))


def approximation(problem: CutProblem, pulls: int, width: float | FloatArray, knots: FloatArray) -> FloatArray:
    """Return what rewards that are not normal add to the bound, 2 K W (f + w p h)/w (Lemma 4)."""
    distance = confidence.normal_distance(problem.rewards, pulls)
    densest = 1.0 / (PIECES * np.diff(knots, axis=-1).min(axis=-1))
    first, ranks = (1.0, 1.0) if problem.control else (1.0 - 1.0 / problem.arms, 0.0)
    weight = first / width + densest * (harmonic(problem.arms) + ranks)
    return np.asarray(2.0 * problem.arms * distance * weight)


def last_batch(problem: CutProblem, pulls: int, width: float | FloatArray, knots: FloatArray) -> FloatArray:
    """Return the bound on P(two executions choose differently after the last batch), for rows of knots.

    With three arms and more, every row may have a width of its own.
    """
    if problem.arms == 2:
        factor = 1.0 if problem.control else 0.5
        return np.asarray([factor * confidence.line_noise(problem.rewards, pulls) / width])
    travel = turn(problem.rewards, pulls) / width
    moved = travel * changes(problem.arms, width, knots, problem.control)
    return np.asarray(moved + approximation(problem, pulls, width, knots))


def with_commits(problem: CutProblem, early: tuple[EarlyCommit, ...], pulls: int, width: float, last: float) -> float:
    """Return the bound of early commits and last batch together, the largest over all leads.

    Early commits are bounded on the spider of docs/one-cut.md; far leads never reach the last batch.
    """
    if not early:
        return last
    return worst_sum(*_windows(problem, early, pulls, width, last))


def surely_exceeds(
    problem: CutProblem, early: tuple[EarlyCommit, ...], pulls: int, width: float, last: float, room: float
) -> bool:
    """Say whether `with_commits` is more than there is room for, where a few leads show it."""
    return surely_more(*_windows(problem, early, pulls, width, last), room)


def _windows(
    problem: CutProblem, early: tuple[EarlyCommit, ...], pulls: int, width: float, last: float
) -> tuple[list[Window], float, tuple[int, int], float]:
    """The windows of all batches, sigma, the factors of their tails, and the widest gap."""
    windows = [Window(m, low, w, confidence.spider_noise(problem.arms, problem.rewards, m)) for m, low, w in early]
    windows.append(Window(pulls, 0.0, width, last * width))
    factors = (problem.arms, problem.arms - 1)
    widest = problem.rewards.widest_gap if problem.rewards.kind == "bounded" else math.inf
    return windows, problem.rewards.sigma, factors, widest


def precision(problem: CutProblem, schedule: CutSchedule) -> float:
    """Return what finite coins, rounded cuts and totals add: one comparison per cut, and per arm in the window."""
    reach = problem.rewards.reach
    with precise():
        total = confidence.comparison_rounding(reach, Decimal(schedule.width))
        for commit in schedule.early:
            total += confidence.comparison_rounding(reach, Decimal(commit.width))
        if schedule.knots:
            thinnest = min(high - low for low, high in pairwise(schedule.knots))
            furthest = Decimal(schedule.knots[-1]) / Decimal(PIECES * thinnest)  # a rounded cut of the window
            each = confidence.comparison_rounding(reach, Decimal(PIECES * thinnest)) + furthest * Decimal(2) ** -50
            total += problem.arms * each
        total += Decimal(problem.arms**2) * Decimal(2) ** -54  # two arms of the same rank
        return float(total)


def proved(schedule: CutSchedule) -> bool:
    """Return whether the proof covers the schedule: the window begins where the cut ends, early cuts can be rounded."""
    if schedule.knots and schedule.knots[0] < schedule.width:
        return False
    return all(commit.low <= confidence.LARGEST_RATIO * commit.width for commit in schedule.early)


def terms(problem: CutProblem, schedule: CutSchedule) -> Terms:
    """Return the terms of the theorem's bound, for a schedule that `proved` accepts."""
    arms, pulls, width = problem.arms, schedule.pulls, schedule.width
    knots = np.asarray([schedule.knots])
    rounding = ("finite precision", Decimal(precision(problem, schedule)), "coins, cuts and totals as floats")
    if arms == 2:
        last = float(last_batch(problem, pulls, width, knots)[0]) * SAFETY
        half = "E/w" if problem.control else "E/(2w)"
        found = [("cut", Decimal(last), f"{half}: the cut lies between the two executions' leads, m = {pulls}")]
    else:
        travel = turn(problem.rewards, pulls) / width * SAFETY
        alone = 1.0 if problem.control else 1.0 - 1.0 / arms
        guard = float(changes(arms, width, knots, problem.control)[0]) - alone
        normal = float(approximation(problem, pulls, width, knots)[0]) * SAFETY
        last = travel * (alone + guard) + normal
        share = "V/w" if problem.control else "(1 - 1/K) V/w"
        found = [
            ("cut", Decimal(travel * alone), f"{share}: the lead crosses the cut, m = {pulls}"),
            ("window", Decimal(travel * guard), "(V/w) (C - the cut's share): arms cross the window's cut"),
            ("normal approximation", Decimal(normal), "2 K W (f/w + p h): means are not quite normal"),
        ]
    if schedule.early:
        more = max(0.0, with_commits(problem, schedule.early, pulls, width, last) - last)
        statement = "max over leads of all batches' sum, less the last one's: tails of cuts for larger gaps"
        found.append(("early commits", Decimal(more), statement))
    return [*found, rounding]
