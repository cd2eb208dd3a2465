"""Theorem 4's proof: an arm is undecided in at most six batches, counted from the windows and in executions.

The proof calls an arm undecided in a batch when its mean is below the best one by U/2 - 3 U~ to U + 5 U~: there the
random threshold decides, and two executions may differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import IntArray
from banditto.core.horizons import batch_count
from banditto.core.schedule import Batch
from banditto.paper.claims import AtMost, Chart, Claim, ClaimCurve, Effort, Measured
from banditto.policies.random_threshold.random_threshold import RandomThreshold
from banditto.problems.environments.bernoulli import Bernoulli

MOST = 6  # by the paper's proof
LOGARITHMS = tuple(range(17, 35))  # of horizons: whole powers of e


class Region(NamedTuple):
    """Differences of means in one batch that the proof calls undecided, and how far a mean may be off."""

    low: float
    high: float
    radius: float  # U~

    @classmethod
    def of(cls, batch: Batch) -> Region:
        """Return a batch's region, from its cut, which is uniform over n U/2 from n (U/2 + U~) up."""
        half, radius = batch.span / batch.samples, (batch.low - batch.span) / batch.samples
        return cls(half - 3.0 * radius, 2.0 * half + 5.0 * radius, radius)

    def reaches(self, gap: float) -> bool:
        """Whether arms with this gap can be undecided while both means are within U~ of the truth."""
        return self.low - 2.0 * self.radius <= gap <= self.high + 2.0 * self.radius


def made(logarithm: int, arms: int = 2, rho: float = 0.1) -> RandomThreshold:
    """Make Algorithm 2 with the paper's constants and the horizon e^logarithm, rounded up."""
    return RandomThreshold(arms=arms, horizon=math.ceil(math.exp(logarithm)), rho=rho, constants="paper")


def regions(policy: RandomThreshold) -> list[Region]:
    """Return the undecided region of each of the policy's batches."""
    return [Region.of(batch) for batch in policy.schedule.batches]


def hardest_gaps(policy: RandomThreshold) -> list[tuple[float, int]]:
    """Return gaps up to 0.9 at the lower ends of regions, each with the number of batches it can be undecided in."""
    found = regions(policy)
    gaps = sorted({region.low - 2.0 * region.radius for region in found})
    return [(gap, sum(region.reaches(gap) for region in found)) for gap in gaps if 0.0 < gap <= 0.9]


def counted_windows(policies: Sequence[RandomThreshold], effort: Effort) -> Measured:
    """Measure in how many batches a gap can be undecided, at most, over all gaps and policies."""
    counts = [max(count for _, count in hardest_gaps(policy)) for policy in policies]
    horizons = tuple(float(policy.horizon) for policy in policies)
    curves = (
        ClaimCurve(label="undecided at the worst gap", x=horizons, y=tuple(map(float, counts))),
        ClaimCurve(label="the paper's bound", x=(horizons[0], horizons[-1]), y=(MOST, MOST), theory=True),
        ClaimCurve(
            label="all batches, log T",
            x=horizons,
            y=tuple(float(batch_count(policy.horizon)) for policy in policies),
            theory=True,
        ),
    )
    chart = Chart(x_label="horizon, pulls", y_label="batches", curves=curves, y_log=False)
    return Measured.exactly(float(max(counts)), chart=chart)


def executed(policy: RandomThreshold, gap: float, executions: int, seed: int) -> IntArray:
    """Return in how many batches each arm was undecided while it was active, as an array (execution, arm)."""
    world = Bernoulli([0.9 - gap] * (policy.arms - 1) + [0.9])
    coins, noise = Coins(seed, count=executions), Noise(seed, 0, 0)
    state = policy.init(executions)
    counts = np.zeros((executions, policy.arms), dtype=np.int64)
    while (pulls := policy.plan(state)) is not None:
        totals = world.draw(pulls, noise)
        if bool(state.testing.any()):
            batch = policy.schedule.batch(state.batch)
            means = np.where(state.active, state.totals + totals, -np.inf) / batch.samples
            gaps = np.where(state.active, np.max(means, axis=1, keepdims=True) - means, np.inf)
            region = Region.of(batch)
            counts += state.active & state.testing & (gaps >= region.low) & (gaps <= region.high)
        state = policy.decide(state, totals, coins)
    return counts


def counted_executions(policy: RandomThreshold, effort: Effort) -> Measured:
    """Measure in how many batches an arm was undecided, at most, over all executions and the hardest gaps."""
    number = effort.choose(4096, 65_536)
    rows = []
    for k, (gap, _) in enumerate(hardest_gaps(policy)):
        inside = gap * 1.000001  # of the window that begins there, whatever was rounded
        worse = executed(policy, inside, number, seed=330 + k)[:, :-1]
        rows.append((gap, int(worse.max()), float(worse.mean())))
    gaps, most, mean = zip(*rows, strict=True)
    curves = (
        ClaimCurve(label="largest count", x=gaps, y=tuple(map(float, most))),
        ClaimCurve(label="mean count", x=gaps, y=mean),
        ClaimCurve(label="the paper's bound", x=(gaps[0], gaps[-1]), y=(MOST, MOST), theory=True),
    )
    chart = Chart(x_label="gap", y_label="undecided batches", curves=curves, y_log=False)
    detail = f"{number:,} executions at each of {len(rows)} gaps; {sum(mean) / len(mean):.2f} batches on average."
    return Measured.exactly(float(max(most)), detail=detail, chart=chart)


STATEMENT = "An arm is undecided in at most six batches, however many there are: this saves the log^2 T."


def _windows(effort: Effort) -> Measured:
    return counted_windows([made(logarithm) for logarithm in LOGARITHMS], effort)


def _executions(effort: Effort) -> Measured:
    return counted_executions(made(30, arms=3), effort)


CLAIMS = (
    Claim(
        name="theorem-4-undecided",
        place="Theorem 4",
        statement=STATEMENT,
        quantity="undecided batches of one arm at the worst gap",
        experiment="Counted from the batches' own windows, exactly, for two arms, rho = 0.1, T from e^17 to e^34.",
        rule=AtMost(predicted=MOST, detectable=1.0),
        measure=_windows,
        seconds=(0.1, 0.1),
    ),
    Claim(
        name="theorem-4-undecided-played",
        place="Theorem 4",
        statement=STATEMENT,
        quantity="undecided batches of one arm, the most of all executions",
        experiment="Three arms, rho = 0.1, T = e^30, executions at the gaps at which most windows overlap.",
        rule=AtMost(predicted=MOST, detectable=1.0),
        measure=_executions,
        seconds=(0.5, 5.0),
    ),
)
