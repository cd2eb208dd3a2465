"""(w) Coverage of `analyse`: a search for the worst instance; planted faults; (x) widths. About 15 minutes.

(w) For every policy and kind of rewards, 24 instances (ties, leads in the cut, at and beyond the named gap, bad arms,
low rates, and random ones) are played 4,096 times each; the one whose intervals fail most often is played 100,000 times
more with fresh seeds. A run fails if any interval of its table misses the truth: an arm's mean, a difference, a ratio.
The stated confidence is 95%; a cell is broken if the exact upper limit of the coverage lies below that, at an error of
1e-6 over all cells. Beside it stand faults that were planted, and Thompson sampling with ordinary intervals.

(x) compares widths with a fixed design that has the same pulls and the same simultaneity: all means and all differences
at once, with half of the error for each, by the same limits.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, ndtri

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.core.rewards import Rewards
from banditto.engine.batched import Execution
from banditto.engine.observations import Observations, SeenBatch
from banditto.engine.player import run_of
from banditto.engine.rounds import RoundPlayer
from banditto.measure.analysis import critical_values, gap_bands, stages
from banditto.measure.analysis.analysing import analysis_of
from banditto.measure.analysis.analysis import Analysis
from banditto.measure.analysis.limits import Together, difference
from banditto.measure.analysis.planned import limits_for
from banditto.numbers.intervals import clopper_pearson, upper_limit
from banditto.policies.policy import own_level
from banditto.problems.environment import Environment
from benchmarks.measure import line, quick_asked

CONFIDENCE = 0.95
ERROR = 1e-6
SEARCH, RUNS, CHUNK = 4096, 100_000, 20_000

Count = Callable[[Any, Environment, int, int], int]  # failures of a policy on an environment, in runs from a seed

# -- playing -----------------------------------------------------------------------------------------------------------


class _Keeping(Execution):
    """Executions that keep the totals of their last batch."""

    totals: FloatArray

    def _decide(self, totals: FloatArray) -> None:
        self.totals = totals
        super()._decide(totals)


class Played(NamedTuple):
    """Many executions: pulls and totals of each batch, (R, K), who won, and what it was paid after that."""

    pulls: list[IntArray]
    totals: list[FloatArray]
    winners: IntArray  # (R,)
    after: IntArray  # (R,): pulls after the commit
    fresh: FloatArray  # (R,): their total


def play(policy: Any, environment: Environment, runs: int, seed: int) -> Played:
    """Play so many executions to the end; pulls after a commit are drawn, too."""
    execution = _Keeping(policy, environment, Coins(seed, 0, runs), Noise(seed + 1, 0, 0))
    pulls: list[IntArray] = []
    totals: list[FloatArray] = []
    winners, after = np.zeros(runs, dtype=np.int64), np.zeros((runs, policy.arms), dtype=np.int64)
    spent = np.zeros(runs, dtype=np.int64)
    while (plan := execution.advance()) is not None:
        spent += plan.sum(axis=1)
        ended = (spent >= policy.horizon) & (plan.sum(axis=1) > 0)
        winners[ended] = np.argmax(plan[ended], axis=1)
        after[ended] = plan[ended]
        if not ended.all():
            kept = np.where(ended[:, np.newaxis], 0, plan)
            pulls.append(np.array(kept))
            totals.append(np.where(kept > 0, execution.totals, 0.0))
    drawn = environment.draw(after, Noise(seed + 2, 0, 0))
    rows = np.arange(runs)
    return Played(pulls, totals, winners, after[rows, winners], drawn[rows, winners])


def observed(policy: Any, environment: Environment, played: Played, row: int) -> Observations:
    """What `analyse` would see of one of them."""
    arms = policy.arms
    batches = [
        SeenBatch(tuple(pulls[row].tolist()), tuple(totals[row].tolist()), None)
        for pulls, totals in zip(played.pulls, played.totals, strict=True)
        if pulls[row].any()
    ]
    winner = int(played.winners[row])
    if own_level(policy) == "sequence" and played.after[row]:
        counts, sums = [0] * arms, [0.0] * arms
        counts[winner], sums[winner] = int(played.after[row]), float(played.fresh[row])
        batches.append(SeenBatch(tuple(counts), tuple(sums), None))
    bounded = environment.rewards.kind == "bounded"
    return Observations(
        names=tuple(str(arm) for arm in range(arms)),
        policy=policy,
        horizon=policy.horizon,
        rewards=environment.rewards,
        batches=tuple(batches),
        pulls=tuple(sum(batch.counts[arm] for batch in batches) for arm in range(arms)),
        ends=(0.0, 1.0) if bounded else None,
        binary=environment.name == "bernoulli",
        winner=winner,
        decided_by=None,
        state="finished",
    )


def holds(found: Analysis, means: Sequence[float]) -> bool:
    """Whether every interval of a table covers the truth."""
    known = dict(zip(found.observations.names, means, strict=True))
    arms = all(arm.low <= known[arm.name] <= arm.high for arm in found.arms if arm.estimate is not None)
    for one in found.differences:
        arms = arms and one.low <= known[one.arm] - known[one.against] <= one.high
        if one.ratio is not None and known[one.against] > 0.0:
            arms = arms and one.ratio_low <= known[one.arm] / known[one.against] <= one.ratio_high
    return arms


# -- which executions may fail: the others lie inside the region that the intervals are projections of -----------------


def suspects(policy: Any, environment: Environment, played: Played) -> BoolArray:
    """Executions in which the truth is outside of the region; only their tables need to be made."""
    runs, arms = played.pulls[0].shape
    if environment.rewards.kind == "bounded" and environment.name != "bernoulli":
        return np.ones(runs, dtype=np.bool_)
    means = np.asarray(environment.means)
    level, error = own_level(policy), 1.0 - CONFIDENCE
    planned = stages.stages_of(policy, policy.horizon)
    bands = gap_bands.bands_of(policy, planned, environment.rewards)
    # by the largest share that a stage has at any gap: no table has narrower intervals, whatever it makes of the gap
    planned = tuple(stage._replace(share=max(band.shares[k] for band in bands)) for k, stage in enumerate(planned))
    counts, sums = np.cumsum(played.pulls, axis=0), np.cumsum(played.totals, axis=0)  # (batch, R, K)
    always = np.cumprod(np.asarray(played.pulls) > 0, axis=0).astype(
        np.bool_
    )  # whether it was played in all until then
    last, common = np.full((runs, arms), -1), np.full((runs, arms), -1)  # stages; common with the winner
    places = []
    winners = (np.arange(runs), played.winners)
    for number, stage in enumerate(planned):
        here = (counts == stage.pulls) & always
        came = here.any(axis=0)
        last = np.where(came, number, last)
        common = np.where(came & came[winners][:, np.newaxis], number, common)
        total = np.where(here, sums, 0.0).sum(axis=0)
        places.append(_places(environment, np.full((runs, arms), stage.pulls), total, means))
    found = np.zeros(runs, dtype=np.bool_)
    rows = np.arange(runs)
    fresh_up, fresh_down = (np.zeros(runs), np.zeros(runs))
    if level == "sequence":
        both = _places(environment, played.after, played.fresh, means[played.winners])
        fresh_up, fresh_down = both
        found |= (np.maximum(fresh_up, fresh_down) > stages.fresh_place(error, level)) & (played.after > 0)
    for number, stage in enumerate(planned):
        critical = stages.critical_at(stage, arms, error, level, True)
        up, down = places[number]
        at_last = last == number
        found |= np.any((np.maximum(up, down) > critical.mean) & at_last, axis=1)
        weight = stage.fresh_weight
        rest = math.sqrt(1.0 - weight * weight)
        own_up, own_down = up[rows, played.winners][:, np.newaxis], down[rows, played.winners][:, np.newaxis]
        with np.errstate(invalid="ignore"):  # of arms that never came to this stage
            pair = np.maximum(own_up + down, own_down + up) * math.sqrt(0.5) > critical.pair
        with np.errstate(invalid="ignore"):
            after = np.maximum(
                weight * fresh_up[:, np.newaxis] + rest * down, weight * fresh_down[:, np.newaxis] + rest * up
            )
        found |= np.any((pair | (after > critical.after_commit)) & (common == number), axis=1)
    return found


def _places(environment: Environment, counts: Any, sums: Any, means: Any) -> tuple[FloatArray, FloatArray]:
    """How far on the normal scale a lower limit must go to reach the truth, and an upper limit."""
    if environment.rewards.kind == "gaussian":
        deviation = np.sqrt(np.maximum(counts, 1)) / environment.rewards.sigma
        off = (sums / np.maximum(counts, 1) - means) * deviation
        return off, -off
    with np.errstate(divide="ignore"):
        many = np.where(sums > 0, bdtrc(np.maximum(sums - 1, 0), counts, means), 1.0)  # P(X >= sum)
        few = bdtr(sums, np.maximum(counts, 1), means)
        return np.asarray(-ndtri(many)), np.asarray(-ndtri(few))


def count_failures(policy: Any, environment: Environment, runs: int, seed: int) -> int:
    """How many of so many executions have a table with an interval that misses."""
    failed = 0
    for start in range(0, runs, CHUNK):
        played = play(policy, environment, min(CHUNK, runs - start), seed + 10 * start)
        for row in np.flatnonzero(suspects(policy, environment, played)):
            found = analysis_of(observed(policy, environment, played, int(row)), CONFIDENCE)
            failed += not holds(found, environment.means)
    return failed


# -- the cells ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A policy, its rewards, and the gap around which instances are placed."""

    name: str
    policy: Any
    gap: float
    base: float = 0.5
    world: Callable[[Sequence[float]], Environment] = bd.Bernoulli

    def instances(self, seed: int) -> Iterator[tuple[float, ...]]:
        """Means of 24 instances."""
        arms, gap, base = self.policy.arms, self.gap, self.base
        low = max(0.0, base - 0.3) if self.world is not bd.Bernoulli or base > 0.3 else base / 2.0
        for times in (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0):
            yield (min(1.0, base + times * gap), *[base] * (arms - 1))
            yield (min(1.0, base + times * gap), base, *[low] * (arms - 2))
        generator = np.random.default_rng(seed)
        for _ in range(8):
            yield tuple((base + gap * generator.uniform(-2.0, 2.0, arms)).clip(0.0, 1.0).tolist())


def gaussian(means: Sequence[float]) -> Environment:
    """Gaussian rewards as noisy as fair coins."""
    return bd.Gaussian(list(means), sigma=0.5)


def cells() -> list[Cell]:
    """All that `analyse` claims coverage for."""
    kinds: Any = {"rewards": "gaussian"}
    return [
        Cell("one-cut, 2 arms", bd.OneCut(arms=2, horizon=10**5, rho=0.3, gap=0.05), 0.05),
        Cell("one-cut, 4 arms", bd.OneCut(arms=4, horizon=10**5, rho=0.3, gap=0.05), 0.05),
        Cell("one-cut, 2 arms, short", bd.OneCut(arms=2, horizon=3200, rho=0.3, gap=0.05), 0.05),
        Cell("one-cut, 10 arms, rates of 1%", bd.OneCut(arms=10, horizon=10**5, rho=0.5, gap=0.05), 0.01, 0.01),
        Cell(
            "one-cut, 3 arms, gaussian",
            bd.OneCut(arms=3, horizon=10**5, rho=0.3, gap=0.05, **kinds),
            0.05,
            world=gaussian,
        ),
        Cell("early-cut, 2 arms", bd.EarlyCut(arms=2, horizon=10**6, rho=0.1, gap=0.1), 0.1),
        Cell("early-cut, 4 arms", bd.EarlyCut(arms=4, horizon=10**6, rho=0.3, gap=0.1), 0.1),
        Cell("early-cut, 10 arms", bd.EarlyCut(arms=10, horizon=10**6, rho=0.3, gap=0.2), 0.2),
        Cell(
            "early-cut, 2 arms, rates of 1%",
            bd.EarlyCut(arms=2, horizon=10**6, rho=0.3, gap=0.02, rate_at_most=0.05),
            0.01,
            0.01,
        ),
        Cell(
            "early-cut, 2 arms, gaussian",
            bd.EarlyCut(arms=2, horizon=10**6, rho=0.1, gap=0.1, **kinds),
            0.1,
            world=gaussian,
        ),
        Cell(
            "early-cut, 5 arms, gaussian",
            bd.EarlyCut(arms=5, horizon=10**6, rho=0.3, gap=0.1, **kinds),
            0.1,
            world=gaussian,
        ),
        Cell("certified-elimination, 2 arms", bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.3), 0.1),
        Cell("certified-elimination, 5 arms", bd.CertifiedElimination(arms=5, horizon=10**6, rho=0.3), 0.1),
        Cell("random-threshold, 3 arms", bd.RandomThreshold(arms=3, horizon=10**6, rho=0.3), 0.3),
        Cell("mean-rounding, 3 arms", bd.MeanRounding(arms=3, horizon=10**6, rho=0.3), 0.3),
        Cell("explore-then-commit, 3 arms", bd.ExploreThenCommit(arms=3, horizon=10**4, rho=0.3, gap=0.1), 0.1),
    ]


# -- rewards between 0 and 1, and policies that choose round by round --------------------------------------------------


def count_bounded_failures(
    policy: Any, law: Callable[[np.random.Generator, Any], FloatArray], mean: float, runs: int
) -> int:
    """The same for one batch of rewards between 0 and 1, drawn one by one, by empirical Bernstein limits."""
    generator = np.random.default_rng(77)
    arms, pulls = policy.arms, stages.stages_of(policy, policy.horizon)[-1].pulls
    critical = stages.critical_at(stages.stages_of(policy, policy.horizon)[-1], arms, 1 - CONFIDENCE, "sequence", False)
    failed = 0
    for _ in range(runs // 2000):
        rewards = law(generator, (2000, arms, pulls))
        sums, squares = rewards.sum(axis=2), (rewards**2).sum(axis=2)
        variance = np.maximum(squares - sums**2 / pulls, 0.0) / (pulls - 1)
        up, down = (_bernstein_place(sign * (sums / pulls - mean), variance, pulls) for sign in (1.0, -1.0))
        best = np.argmax(sums, axis=1)
        rows = np.arange(2000)
        outside = np.any(np.maximum(up, down) > critical.mean, axis=1)
        own_up, own_down = up[rows, best][:, np.newaxis], down[rows, best][:, np.newaxis]
        outside |= np.any(np.maximum(own_up + down, own_down + up) * math.sqrt(0.5) > critical.pair, axis=1)
        for row in np.flatnonzero(outside):
            batch = SeenBatch((pulls,) * arms, tuple(sums[row].tolist()), tuple(squares[row].tolist()))
            seen = Observations(
                names=tuple(str(arm) for arm in range(arms)), policy=policy, horizon=policy.horizon,
                rewards=Rewards.of("bounded", 0.5), batches=(batch,), pulls=batch.counts, ends=(0.0, 1.0), binary=False,
                winner=int(best[row]), decided_by=None, state="stopped",
            )  # fmt: skip
            failed += not holds(analysis_of(seen, CONFIDENCE), [mean] * arms)
    return failed


def _bernstein_place(off: FloatArray, variance: FloatArray, pulls: int) -> FloatArray:
    """The place at which the limit reaches a truth that is `off` by so much: sqrt(2 V L/n) + 7 L/(3(n-1)) = off."""
    a, b = 7.0 / (3.0 * (pulls - 1)), np.sqrt(2.0 * variance / pulls)
    root = (-b + np.sqrt(b * b + 4.0 * a * np.maximum(off, 0.0))) / (2.0 * a)
    return np.asarray(-ndtri(np.minimum(2.0 * np.exp(-(root**2)), 1.0 - 1e-12)))


def final_sums(policy: Any, environment: Environment, horizon: int, runs: int) -> tuple[IntArray, FloatArray]:
    """Pulls and totals of so many executions of a policy that chooses round by round; (R, K) each."""
    player = RoundPlayer(run_of(policy, environment, seed=5, noise_seed=6, horizon=horizon), policy)
    pulls, sums = (np.zeros((runs, len(environment.means))) for _ in range(2))
    buffer = np.empty(horizon, dtype=np.uint16)
    for row in range(runs):
        execution = player.execution(0, row)
        execution.advance(buffer)
        pulls[row], sums[row] = execution.pulls, execution.sums
    return pulls.astype(np.int64), sums


def count_any_time_failures(policy: Any, environment: Environment, pulls: IntArray, sums: FloatArray) -> int:
    """The same for a policy that chooses round by round: tables of those whose evidence against the truth is large."""
    from scipy.special import betaln, xlog1py, xlogy

    arms, error = len(environment.means), 1.0 - CONFIDENCE
    means = np.asarray(environment.means)
    zeros = pulls - sums
    evidence = betaln(sums + 0.5, zeros + 0.5) - betaln(0.5, 0.5) - xlogy(sums, means) - xlog1py(zeros, -means)
    two = np.sort(evidence, axis=1)[:, -2:].sum(axis=1)
    outside = (evidence.max(axis=1) > math.log(2 * arms / error)) | (two > math.log(arms * (arms - 1) / error))
    failed = 0
    for row in np.flatnonzero(outside):
        batch = SeenBatch(tuple(pulls[row].tolist()), tuple(sums[row].tolist()), None)
        seen = Observations(
            names=tuple(str(arm) for arm in range(arms)), policy=policy, horizon=int(pulls[row].sum()),
            rewards=environment.rewards, batches=(batch,), pulls=batch.counts, ends=(0.0, 1.0), binary=True,
            winner=None, decided_by=None, state="finished",
        )  # fmt: skip
        failed += not holds(analysis_of(seen, CONFIDENCE), environment.means)
    return failed


# -- faults that were planted ------------------------------------------------------------------------------------------


def count_ordinary_failures(only_last: bool) -> Count:
    """Count failures of the winner's ordinary 95% interval: of the deciding batch alone, or of all pulls before it won,
    as if their number had been fixed."""

    def count(policy: Any, environment: Environment, runs: int, seed: int) -> int:
        failed = 0
        for start in range(0, runs, CHUNK):
            played = play(policy, environment, min(CHUNK, runs - start), seed + 10 * start)
            counts, sums = np.asarray(played.pulls), np.asarray(played.totals)  # (batch, R, K)
            rows = np.arange(counts.shape[1])
            n, total = counts.sum(axis=0), sums.sum(axis=0)
            if only_last:
                last = (counts.sum(axis=2) > 0).cumsum(axis=0).argmax(axis=0)  # (R,)
                n, total = counts[last, rows], sums[last, rows]
            n, total = n[rows, played.winners], total[rows, played.winners]
            off = (total / n - np.asarray(environment.means)[played.winners]) * np.sqrt(n) / environment.rewards.sigma
            failed += int((np.abs(off) > 1.96).sum())
        return failed

    return count


def forgotten_looks(policy: Any, horizon: int) -> tuple[stages.PullStage, ...]:
    """Stages that all spend the whole error: pooled means, as if their number had been fixed."""
    return tuple(stage._replace(share=1.0) for stage in _STAGES(policy, horizon))


def forgotten_multiplicity(
    stage: stages.PullStage, arms: int, error: float, level: str, coupled: bool
) -> stages.Critical:
    """Critical values as if there were one arm and one difference."""
    place = critical_values.one_sided(error * stage.share / 2.0)
    return stages.Critical(place, place, place)


_STAGES, _CRITICAL = stages.stages_of, stages.critical_at


# -- what is printed ---------------------------------------------------------------------------------------------------


def worst_instance(cell: Cell, number: int, search: int, count: Count = count_failures) -> tuple[float, ...]:
    """The instance of a cell on which intervals fail most often, in a few runs each."""
    tried = list(cell.instances(1000 + number))
    failures = [count(cell.policy, cell.world(means), search, 7_000 + 31 * k) for k, means in enumerate(tried)]
    return tried[int(np.argmax(failures))]


def measured_coverage(quick: bool) -> None:
    search, runs = (64, 512) if quick else (SEARCH, RUNS)
    listed = cells()[:2] if quick else cells()
    family = len(cells()) + 5
    lowest = 1.0
    for number, cell in enumerate(listed):
        means = worst_instance(cell, number, search)
        failed = count_failures(cell.policy, cell.world(means), runs, 500_000 + 1_000_003 * number)
        lowest = min(lowest, 1.0 - failed / runs)
        shown = ", ".join(f"{mean:.3g}" for mean in means[:4]) + (", ..." if len(means) > 4 else "")
        _coverage_line(f"{cell.name} at {shown}", failed, runs, family)
    laws: dict[str, tuple[Callable[..., FloatArray], float]] = {
        "uniform": (lambda g, size: g.random(size), 0.5),
        "one in a hundred between 1/2 and 1": (
            lambda g, size: (g.random(size) < 0.01) * g.uniform(0.5, 1.0, size),
            0.0075,
        ),
        "0, 1/2 or 1": (lambda g, size: g.integers(0, 3, size) / 2.0, 0.5),
    }
    policy = bd.ExploreThenCommit(arms=3, horizon=10**5, rho=0.3, gap=0.1)
    for name, (law, mean) in laws.items():
        _coverage_line(
            f"one batch of 3 arms, {name}",
            count_bounded_failures(policy, law, mean, max(runs, 2000)),
            max(runs, 2000),
            family,
        )
    for round_policy, pays in ((bd.Thompson(), [0.5, 0.5]), (bd.UCB1(), [0.5, 0.45, 0.45])):
        world = bd.Bernoulli(pays)
        some = final_sums(round_policy, world, 1000, runs)
        _coverage_line(
            f"{round_policy.name} at {pays}, any time",
            count_any_time_failures(round_policy, world, *some),
            runs,
            family,
        )


def _coverage_line(name: str, failed: int, runs: int, family: int) -> None:
    top = upper_limit(runs - failed, runs, ERROR / family)
    line(f"(w) {name}", f"{1.0 - failed / runs:.4f} (at most {top:.4f})", f">= {CONFIDENCE}", top >= CONFIDENCE)


def measured_faults(quick: bool) -> None:
    early = Cell(
        "early-cut", bd.EarlyCut(arms=2, horizon=10**6, rho=0.1, gap=0.1, rewards="gaussian"), 0.1, 0.5, gaussian
    )
    many = bd.ExploreThenCommit(arms=5, horizon=10**4, rho=0.3, gap=0.1, rewards="gaussian")
    ladder = bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.3, rewards="gaussian")
    _fault("means of all pulls until it stopped", early, count_ordinary_failures(False), quick)
    _fault("the batch that decided", Cell("a ladder", ladder, 0.1, 0.5, gaussian), count_ordinary_failures(True), quick)
    stages.stages_of = forgotten_looks
    try:
        often = bd.EarlyCut(arms=2, horizon=10**6, rho=0.9, gap=0.05, rewards="gaussian")
        _fault("looks that were forgotten", Cell("early-cut", often, 0.05, 0.5, gaussian), count_failures, quick)
    finally:
        stages.stages_of = _STAGES
    stages.critical_at = forgotten_multiplicity
    try:
        _fault("multiplicity that was forgotten", Cell("5 arms", many, 0.1, 0.5, gaussian), count_failures, quick)
    finally:
        stages.critical_at = _CRITICAL
    some = 200 if quick else 4096
    for pays in ((0.5, 0.5), (0.5, 0.45)):
        pulls, sums = final_sums(bd.Thompson(), bd.Bernoulli(list(pays)), 10_000, some)
        share = sums / np.maximum(pulls, 1)
        off = np.abs(share - np.asarray(pays)) > 1.96 * np.sqrt(share * (1 - share) / np.maximum(pulls, 1))
        fewer = off[np.arange(some), np.argmin(pulls, axis=1)]
        low, high = clopper_pearson(int((~fewer).sum()), some, 0.999)
        figure = f"{1 - fewer.mean():.3f} ({low:.3f}-{high:.3f})"
        line(
            f"(w) thompson at {pays}, ordinary 95% interval of the arm pulled less",
            figure,
            "< 0.95: it fails",
            high < 0.95,
        )


def _fault(name: str, cell: Cell, count: Count, quick: bool) -> None:
    """Search as for the sound intervals, and print what was found."""
    search, runs = (64, 2000) if quick else (SEARCH, RUNS)
    means = worst_instance(cell, 99, search, count)
    failed = count(cell.policy, cell.world(means), runs, 800_000)
    top = upper_limit(runs - failed, runs, ERROR)
    shown = ", ".join(f"{mean:.3g}" for mean in means)
    figure = f"{1.0 - failed / runs:.4f} (at most {top:.4f})"
    line(f"(w) fault: {name}, {cell.name} at {shown}", figure, f"found: < {CONFIDENCE}", top < CONFIDENCE)


# -- widths ------------------------------------------------------------------------------------------------------------


def width_ratio(policy: Any, environment: Environment, runs: int) -> tuple[float, float]:
    """How much wider the winner's own interval and its widest difference are, on average, than in a fixed design."""
    played = play(policy, environment, runs, 12)
    own, apart = [], []
    for row in range(runs):
        seen = observed(policy, environment, played, row)
        found = analysis_of(seen, CONFIDENCE)
        fixed = [limits_for(seen.rewards, seen.binary, False).limits(_all(seen, arm)) for arm in range(policy.arms)]
        winner = int(played.winners[row])
        alone = critical_values.each(0.025, policy.arms)
        place = np.array([alone])
        own.append(
            (found.arms[winner].high - found.arms[winner].low)
            / float((fixed[winner].upper(place) - fixed[winner].lower(place))[0])
        )
        ratios = []
        for one in found.differences:
            other = fixed[int(one.against)]
            n, m = seen.pulls[winner], seen.pulls[int(one.against)]
            weight = math.sqrt(m / (n + m))  # of the winner's part of the difference's deviation
            line_at = critical_values.all_pairs(0.025, policy.arms)
            together = Together(p=weight, q=math.sqrt(1 - weight**2), line=line_at, first=alone, second=alone)
            low, high = difference(fixed[winner], other, together)
            ratios.append((one.high - one.low) / (high - low))
        apart.append(float(np.mean(ratios)))
    return float(np.mean(own)), float(np.mean(apart))


def _all(seen: Observations, arm: int) -> Any:
    from banditto.measure.analysis.planned import added

    return added(seen.batches, arm)


def measured_widths(quick: bool) -> None:
    runs = 20 if quick else 300
    one = bd.ExploreThenCommit(arms=4, horizon=10**5, rho=0.1, gap=0.1)
    one = replace(one, horizon=4 * one.pulls + 1)  # one batch, and next to nothing after it
    cut = bd.OneCut(arms=2, horizon=10**6, rho=0.1, gap=0.05)
    four = bd.OneCut(arms=4, horizon=10**6, rho=0.1, gap=0.05)
    ladder = bd.CertifiedElimination(arms=3, horizon=10**7, rho=0.1)
    two = bd.CertifiedElimination(arms=2, horizon=10**7, rho=0.1)
    early = bd.EarlyCut(arms=2, horizon=10**6, rho=0.1, gap=0.05)
    pages = bd.EarlyCut(arms=4, horizon=10**6, rho=0.3, gap=0.01, rate_at_most=0.06)
    rows: list[tuple[str, Any, list[float], float]] = [
        ("one batch, 4 arms", one, [0.6, 0.5, 0.5, 0.5], 1.15),
        ("one-cut, after a commit, 2 arms", cut, [0.55, 0.5], 1.15),
        ("one-cut, after a commit, 4 arms", four, [0.55, 0.5, 0.5, 0.5], 1.15),
        ("certified-elimination, after a commit, 3 arms", ladder, [0.6, 0.5, 0.5], 1.15),
        ("certified-elimination, after a commit, 3 arms, between two stages", ladder, [0.55, 0.5, 0.5], 1.15),
        ("certified-elimination, after a commit, 3 arms, a tie", ladder, [0.5, 0.5, 0.5], 1.15),
        ("certified-elimination, after a commit, 2 arms", two, [0.6, 0.5], 1.15),
        ("certified-elimination, after a commit, 2 arms, between two stages", two, [0.55, 0.5], 1.15),
        ("certified-elimination, after a commit, 2 arms, a tie", two, [0.5, 0.5], 1.15),
        ("early-cut, 2 arms, the gap", early, [0.55, 0.5], 1.6),
        ("early-cut, 2 arms, twice the gap", early, [0.6, 0.5], 1.6),
        ("early-cut, 2 arms, a tie", early, [0.5, 0.5], 1.6),
        ("early-cut, 4 arms, 5% and 6%", pages, [0.06, 0.05, 0.05, 0.05], 1.6),
    ]
    for name, policy, means, wanted in rows:
        own, apart = width_ratio(policy, bd.Bernoulli(means), runs)
        line(f"(x) {name}", f"mean {own:.3f}, differences {apart:.3f}", f"<= {wanted}", max(own, apart) <= wanted)


def main(quick: bool = False) -> None:
    """Print a line for each cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured_widths(quick)
        measured_faults(quick)
        measured_coverage(quick)


if __name__ == "__main__":
    main(quick_asked(__doc__))
