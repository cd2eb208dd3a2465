"""CertifiedElimination's constants on one problem: resolved from a shape, written down, and what the proof gives.

The proof is in docs/certified-elimination.md, where each symbol names its function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, precise, snapped, written
from banditto.core.protocol import Plain, fraction, from_fraction
from banditto.core.schedule import MOST_BATCHES
from banditto.policies.certified_elimination import ladder_search
from banditto.policies.certified_elimination.ladder_search import LadderProblem
from banditto.policies.certified_elimination.overlap import Window, surely_more, worst_sum
from banditto.policies.shared import confidence

Terms = list[tuple[str, Decimal, str]]

EXPLORATION_UNIT = 32  # of what remains, so many parts go into the final batch
_STEPS = 256  # widths are multiples of 1/256 of noise over share
LINEAR_PRECISION = 2.0**-24  # rounded linear values, for each comparison
CHOICE_PRECISION = 2.0**-40  # finite Gumbel noise, logarithms that differ in their last bits; for each arm


class Cut(NamedTuple):
    """A random cut on differences of means: low + coin * width."""

    low: float
    width: float


class TestBatch(NamedTuple):
    """Fresh pulls of each active arm, a cut for the commit, and a cut for eliminations if there are any."""

    pulls: int
    commit: Cut
    eliminate: Cut | None


class Ladder(NamedTuple):
    """The constants that decide: batches with tests, the size of the final batch, and the noise of its choice."""

    batches: tuple[TestBatch, ...]
    exploration: int
    choice_rho: float

    def batch(self, number: int) -> TestBatch:
        """Return batch `number`, counted from 1; past the last one, a batch that pulls nothing."""
        return self.batches[number - 1] if number <= len(self.batches) else TestBatch(0, Cut(0.0, 0.0), None)

    def to_plain(self) -> Mapping[str, Plain]:
        """Return the ladder as a protocol holds it: integers, and cuts as exact binary fractions."""
        rows: list[Mapping[str, Plain]] = []
        for pulls, commit, eliminate in self.batches:
            row: dict[str, Plain] = {"pulls": pulls}
            for name, cut in (("commit", commit), ("eliminate", eliminate)):
                if cut is not None:
                    row[name] = {"low": fraction(cut.low), "width": fraction(cut.width)}
            rows.append(row)
        final: dict[str, Plain] = {"exploration": self.exploration, "choice_rho": fraction(self.choice_rho)}
        return {"batches": tuple(rows), **final}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], horizon: int) -> Ladder:
        """Return the ladder that `to_plain` wrote, or refuse content that it could not have written."""
        rows = content.get("batches")
        if set(content) != {"batches", "exploration", "choice_rho"} or not isinstance(rows, tuple):
            raise InvalidArgument("resolved", list(content), "batches, exploration and choice_rho")
        if len(rows) > MOST_BATCHES:
            raise InvalidArgument("batches", f"{len(rows)} of them", f"at most {MOST_BATCHES}")
        rho = from_fraction(content["choice_rho"], "choice_rho")
        if not 0.0 < rho < 1.0:
            raise InvalidArgument("choice_rho", rho, "a number between 0 and 1, both excluded")
        exploration = integer(content["exploration"], "exploration", 1, EXPLORATION_UNIT - 1)
        return cls(tuple(_batch_from_plain(row, horizon) for row in rows), exploration, rho)


def _batch_from_plain(row: Any, horizon: int) -> TestBatch:
    """Return one batch of a protocol's ladder, or refuse a row that `to_plain` could not have written."""
    if not isinstance(row, Mapping) or not {"pulls", "commit"} <= set(row) <= {"pulls", "commit", "eliminate"}:
        raise InvalidArgument("batches", row, "tables with pulls, commit and perhaps eliminate")
    cuts: list[Cut | None] = []
    for name in ("commit", "eliminate"):
        cut = row.get(name)
        if cut is None:
            cuts.append(None)
            continue
        if not isinstance(cut, Mapping) or set(cut) != {"low", "width"}:
            raise InvalidArgument("batches", cut, "cuts with low and width")
        low, width = from_fraction(cut["low"], "low"), from_fraction(cut["width"], "width")
        if low < 0.0 or width <= 0.0:
            raise InvalidArgument("batches", (low, width), "cuts with low >= 0 and width > 0")
        cuts.append(Cut(low, width))
    commit, eliminate = cuts
    assert commit is not None
    return TestBatch(integer(row["pulls"], "pulls", 1, horizon), commit, eliminate)


def resolve(problem: LadderProblem) -> Ladder:
    """Search for the best shape, and return its ladder with the narrowest windows that the proof allows."""
    shape = ladder_search.best_shape(problem)
    guess = max(2, round(math.log(problem.horizon) / math.log(shape.growth)))
    first = ladder_search.first_pulls(shape, problem, ladder_search.commit_window(shape, problem, guess))
    return with_first(problem, shape, first)


def relaxed(problem: LadderProblem, ladder: Ladder, nominal: float) -> Ladder:
    """Return a ladder with the windows that a larger rho, `nominal`, would have: narrower by rho / nominal.

    Narrower windows would end at smaller gaps. Shorter batches instead make them end where they did, so that whatever
    was decided in a batch is still decided there, after fewer pulls.
    """
    ratio = problem.rho / nominal
    batches = []
    for pulls, commit, eliminate in ladder.batches:
        lead = confidence.wrong_lead(problem.arms, len(ladder.batches), problem.horizon, problem.rewards.sigma, pulls)
        narrow = _narrowed(commit, lead, ratio)
        fewer = math.ceil(pulls * ((narrow.low + narrow.width) / (commit.low + commit.width)) ** 2)
        wider = math.sqrt(pulls / fewer)  # windows widen with the root of the pulls
        drop = None if eliminate is None else _scaled(_narrowed(eliminate, lead, ratio), wider)
        batches.append(TestBatch(fewer, _scaled(narrow, wider), drop))
    return Ladder(tuple(batches), ladder.exploration, min(ladder.choice_rho / ratio, 1.0 - 1e-9))


def _narrowed(cut: Cut, lead: float, ratio: float) -> Cut:
    """Return a narrower cut that begins as many widths above R as before, so that the good event stays the same."""
    return Cut(lead + (cut.low - lead) * ratio, cut.width * ratio)


def _scaled(cut: Cut, factor: float) -> Cut:
    return cut if factor == 1.0 else Cut(snapped(cut.low * factor), snapped(cut.width * factor))


def with_first(problem: LadderProblem, shape: ladder_search.LadderShape, first: int) -> Ladder:
    """Return the ladder of a shape whose first batch pulls every arm `first` times."""
    pulls = _ladder(first, shape.growth, problem)
    room = float(written(problem.rho) - Decimal(2) / problem.horizon) - problem.arms * CHOICE_PRECISION
    while pulls and room > 0.0:
        batches = _tests(problem, shape, pulls, room * (1.0 - 1e-9))
        dead = sum(batch.commit.low >= _widest_gap(problem) for batch in batches)  # no gap is so wide
        if not dead:
            share = room * (1.0 - 1e-9) * shape.final_share / 1000.0
            return Ladder(batches, shape.exploration, share / _choice_rounding(problem))
        # the first test must fit with all arms
        pulls = [m for m in pulls[dead:] if problem.units * pulls[dead] <= problem.horizon]
    alone = (problem.rho - problem.arms * CHOICE_PRECISION) * (1.0 - 1e-9)
    return Ladder((), shape.exploration, alone / _choice_rounding(problem))


def _tests(
    problem: LadderProblem, shape: ladder_search.LadderShape, pulls: list[int], room: float
) -> tuple[TestBatch, ...]:
    """Return the batches with their cuts, where each kind of test gets its share of the room."""
    commits = _calibrated(
        problem, pulls, shape.commit_offset, room * shape.commit_share / 1000.0, 1, (1, problem.arms - 1)
    )
    drops: list[Cut | None] = [None] * len(pulls)
    if shape.elimination_share:
        share = room * shape.elimination_share / 1000.0
        factors = (problem.arms - 1, 1)
        drops = list(_calibrated(problem, pulls, shape.elimination_offset, share, problem.arms - 1, factors))
    return tuple(TestBatch(*row) for row in zip(pulls, commits, drops, strict=True))


def _widest_gap(problem: LadderProblem) -> float:
    return problem.rewards.widest_gap if problem.rewards.kind == "bounded" else math.inf


def _choice_rounding(problem: LadderProblem) -> float:
    """Return 1 + what rounded totals add to the final choice, as a part of its share of rho."""
    if problem.linear is not None:
        return 1.0 + LINEAR_PRECISION  # checked before the final batch
    least = min(1.0, 4.0 * confidence.choice_scale(2, problem.rewards))  # noise of the choice, where rates are low
    return 1.0 + 2.0**-48 * problem.rewards.reach / (problem.rewards.sigma * least) * math.sqrt(problem.horizon)


def _ladder(first: int, growth: int, problem: LadderProblem) -> list[int]:
    """Return the pulls m_1 q^(i-1) of all batches in which two arms could be tested; none if all K do not fit once."""
    pulls, total, size = [], 0, first
    fewest = problem.fewest_units
    while problem.units * first <= problem.horizon and fewest * (total + size) <= problem.horizon:
        pulls.append(size)
        total, size = total + size, size * growth
    return pulls


def _calibrated(
    problem: LadderProblem, pulls: list[int], offset: int, share: float, comparisons: int, factors: tuple[int, int]
) -> list[Cut]:
    """Return the cuts of all batches: windows of width M E (comparisons / share), from R + a times their width on.

    The offset a is the shape's or a little more, and M is the smallest multiple for which the sum is at most the share;
    of these windows, those that end lowest come back. Wider windows overlap more, so M is tried upwards and not
    bisected.
    """
    noises = [problem.noise(m) for m in pulls]
    leads = [
        confidence.wrong_lead(problem.arms, len(pulls), problem.horizon, problem.rewards.sigma, m) * (1.0 + 1e-12)
        for m in pulls
    ]

    def cuts(a: int, steps: int) -> list[Cut]:
        widths = [steps / _STEPS * noise * comparisons / share for noise in noises]
        return [Cut(snapped(lead + a / 32.0 * w), snapped(w)) for lead, w in zip(leads, widths, strict=True)]

    def enough(a: int, steps: int) -> bool:
        made = cuts(a, steps)
        windows = [Window(m, *cut, noise) for m, cut, noise in zip(pulls, made, noises, strict=True)]
        if surely_more(windows, problem.rewards.sigma, factors, _widest_gap(problem), share / comparisons):
            return False
        return comparisons * _sum(problem, pulls, made, factors) <= share

    found = []
    for a in range(offset, offset + 10, 2):
        coarse = next((steps for steps in range(_STEPS // 2, 2 * _STEPS, 8) if enough(a, steps)), None)
        if coarse is not None:
            found.append(cuts(a, next(steps for steps in range(coarse - 6, coarse + 2, 2) if enough(a, steps))))
    if not found:
        steps = 2 * _STEPS
        while not enough(offset, steps):
            steps += steps // 16
        found = [cuts(offset, steps)]
    return min(found, key=lambda made: made[0].low + made[0].width)


def _windows(problem: LadderProblem, pulls: list[int], cuts: list[Cut]) -> list[Window]:
    return [Window(m, cut.low, cut.width, problem.noise(m)) for m, cut in zip(pulls, cuts, strict=True)]


def _sum(problem: LadderProblem, pulls: list[int], cuts: list[Cut], factors: tuple[int, int]) -> float:
    """Return the largest sum of the batches' bounds over all gaps, rounding of comparisons included."""
    windows = _windows(problem, pulls, cuts)
    return worst_sum(windows, problem.rewards.sigma, factors, _widest_gap(problem)) + _precision(problem, cuts)


def _precision(problem: LadderProblem, cuts: list[Cut]) -> float:
    """Return what finite coins, rounded cuts and rounded totals add to the bound, over all cuts."""
    if problem.linear is not None:
        arms, rho, bias = problem.arms, problem.rho, problem.linear.bias
        biased = [4.0 * bias_allowed(arms, rho, bias, cut.width) / cut.width for cut in cuts]
        return LINEAR_PRECISION * len(cuts) + math.fsum(biased)  # both are checked before every batch
    with precise():
        each = [confidence.comparison_rounding(problem.rewards.reach, Decimal(cut.width)) for cut in cuts]
        return float(sum(each, Decimal(0)))


def bias_allowed(arms: int, rho: float, bias: float, width: float) -> float:
    """Return how far dropped directions may bias linear values that are compared with a cut of this width.

    The bound of a comparison grows by 4/width times the bias; where that would be more than rho/(32 K), no bias is
    allowed.
    """
    return bias if bias <= width * rho / (128.0 * arms) else 0.0


def proved(problem: LadderProblem, ladder: Ladder) -> bool:
    """Return whether the proof covers the ladder.

    Cuts must begin above R, those of the commit must fall from batch to batch, and none may begin so many widths above
    0 that rounding it would cost more than `_precision` adds (linear policies check rounding before every batch
    instead).
    """
    number = len(ladder.batches)
    lowest = math.inf
    largest = confidence.LARGEST_RATIO if problem.linear is None else math.inf
    for pulls, commit, eliminate in ladder.batches:
        lead = confidence.wrong_lead(problem.arms, number, problem.horizon, problem.rewards.sigma, pulls)
        if commit.low < lead or commit.low > lowest or (eliminate is not None and eliminate.low < lead):
            return False
        if any(cut is not None and cut.low > largest * cut.width for cut in (commit, eliminate)):
            return False
        lowest = commit.low
    return True


def terms(problem: LadderProblem, ladder: Ladder) -> Terms:
    """Return the terms of the theorem's bound, for a ladder that `proved` accepts."""
    arms = problem.arms
    pulls = [batch.pulls for batch in ladder.batches]
    commits = [batch.commit for batch in ladder.batches]
    drops = [(batch.pulls, batch.eliminate) for batch in ladder.batches if batch.eliminate is not None]
    elimination = (arms - 1) * _sum(problem, [m for m, _ in drops], [cut for _, cut in drops], (arms - 1, 1))
    commit = _sum(problem, pulls, commits, (1, arms - 1))
    good = Decimal(2) / problem.horizon if ladder.batches else Decimal(0)
    choice = ladder.choice_rho * _choice_rounding(problem) + arms * CHOICE_PRECISION
    return [
        ("good event", good, "2/T: in some execution a worse arm leads the best one by more than R"),
        ("elimination", Decimal(elimination), "(K-1) max over gaps of sum min(E, tail)/w"),
        ("commit", Decimal(commit), "max over gaps of sum min(E, tail)/w'"),
        ("final choice", Decimal(choice), "E[range(X - X')]/(4 lambda), and 2^-40 for each arm"),
    ]
