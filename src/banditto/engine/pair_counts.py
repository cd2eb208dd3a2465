"""What is left of some pairs when they have been played: small, whatever the horizon and the number of pairs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from banditto.core.arrays import FloatArray, IntArray, namespace


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Count, mean, sum of squared deviations and maximum of a list; those of two lists can be merged."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    largest: float = -math.inf

    @classmethod
    def of(cls, values: FloatArray) -> Moments:
        """Return the moments of a non-empty array."""
        xp = namespace(values)
        mean = float(xp.mean(values))
        squares = float(xp.sum((values - mean) ** 2))
        return cls(count=values.shape[0], mean=mean, squares=squares, largest=float(xp.max(values)))

    def plus(self, other: Moments) -> Moments:
        """Return the moments of two lists together (Chan, Golub and LeVeque 1979); the caller fixes their order."""
        count = self.count + other.count
        shift = other.mean - self.mean
        return Moments(
            count=count,
            mean=self.mean + shift * other.count / count,
            squares=self.squares + other.squares + shift * shift * self.count * other.count / count,
            largest=max(self.largest, other.largest),
        )

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; infinite for a single value."""
        if self.count < 2:
            return math.inf
        return math.sqrt(self.squares / (self.count - 1) / self.count)


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """What was counted over some pairs: mismatches, where they diverged, and regret; small, however many pairs."""

    pairs: int = 0
    mismatches: int = 0
    first_divergence: Counter[int] = field(default_factory=Counter)  # by batch, or by round
    first_pull: Counter[int] = field(default_factory=Counter)  # by the number of the first pull that differs
    regret: Moments = field(default_factory=Moments)

    @classmethod
    def of(cls, diverged: IntArray, pulls: IntArray, regrets: tuple[FloatArray, FloatArray], keep: int) -> PairCounts:
        """Return counts, from each pair's batch and pull of first divergence (0: none) and both sides' regrets."""
        rows = namespace(diverged).nonzero(diverged[:keep])[0]
        return cls(
            pairs=keep,
            mismatches=rows.shape[0],
            first_divergence=_counted(diverged[rows]),
            first_pull=_counted(pulls[rows]),
            # the two executions of a pair share their coins, so their average is the independent unit
            regret=Moments.of((regrets[0][:keep] + regrets[1][:keep]) / 2.0),
        )

    def plus(self, other: PairCounts) -> PairCounts:
        """Return the counts of two parts together."""
        return PairCounts(
            pairs=self.pairs + other.pairs,
            mismatches=self.mismatches + other.mismatches,
            first_divergence=self.first_divergence + other.first_divergence,
            first_pull=self.first_pull + other.first_pull,
            regret=self.regret.plus(other.regret),
        )


def _counted(values: IntArray) -> Counter[int]:
    """Return how often each value occurs."""
    found, numbers = namespace(values).unique_counts(values)
    return Counter(dict(zip(found.tolist(), numbers.tolist(), strict=True)))


def gaps(means: tuple[float, ...]) -> list[float]:
    """Return what a pull of each arm loses; 0 for the best arm."""
    best = max(means)
    return [best - mean for mean in means]


def pseudo_regret(pulls: IntArray, means: tuple[float, ...]) -> FloatArray:
    """Return the expected loss of the pulls (R, K), added up arm by arm in a fixed order; shape (R,)."""
    regret: FloatArray = namespace(pulls).zeros(pulls.shape[0])
    for arm, gap in enumerate(gaps(means)):
        if gap > 0.0:
            regret += gap * pulls[:, arm]
    return regret
