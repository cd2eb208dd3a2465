"""Algorithm 1's constants on one problem: how many samples each rounded mean needs, and what the proof gives.

The grid of a batch has cells of width alpha; a rounded mean is within tau of the true one with probability
1 - delta. The proof is in docs/mean-rounding.md, where each symbol names its function here.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import ceiling, float_above, integer, precise, written
from banditto.core.horizons import batch_count
from banditto.core.protocol import Plain, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.core.schedule import MOST_BATCHES
from banditto.policies.shared import confidence

Terms = list[tuple[str, Decimal, str]]


class GridBatch(NamedTuple):
    """`samples` of each active arm, of which `pulls` are new; `cell` is a cell's width on totals; `cut` is in cells."""

    pulls: int
    samples: int
    cell: float
    cut: float


class GridSchedule(NamedTuple):
    """The constants that decide, batch by batch."""

    batches: tuple[GridBatch, ...]

    def batch(self, number: int) -> GridBatch:
        """Return batch `number`, counted from 1; past the last one, a batch that pulls nothing."""
        return self.batches[number - 1] if number <= len(self.batches) else GridBatch(0, 0, 1.0, 0.0)

    def to_plain(self) -> Mapping[str, Plain]:
        """Return the schedule as a protocol holds it: integers, and widths as exact binary fractions."""
        rows: list[Mapping[str, Plain]] = [
            {"pulls": batch.pulls, "cell": fraction(batch.cell), "cut": fraction(batch.cut)} for batch in self.batches
        ]
        return {"batches": tuple(rows)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], horizon: int) -> GridSchedule:
        """Return the schedule that `to_plain` wrote, or refuse content that it could not have written."""
        rows = content.get("batches")
        if set(content) != {"batches"} or not isinstance(rows, tuple) or len(rows) > MOST_BATCHES:
            raise InvalidArgument("resolved", list(content), f"at most {MOST_BATCHES} batches")
        for row in rows:
            if not isinstance(row, Mapping) or set(row) != {"pulls", "cell", "cut"}:
                raise InvalidArgument("batches", row, "tables with pulls, cell and cut")
        pulls = [integer(row["pulls"], "pulls", 1, horizon) for row in rows]
        widths = [(from_fraction(row["cell"], "cell"), from_fraction(row["cut"], "cut")) for row in rows]
        for cell, cut in widths:
            if cell <= 0.0 or cut < 0.0:
                raise InvalidArgument("batches", (cell, cut), "widths with cell > 0 and cut >= 0")
        return cls(
            tuple(GridBatch(n, so_far, *w) for n, so_far, w in zip(pulls, accumulate(pulls), widths, strict=True))
        )


class GridProblem(NamedTuple):
    """A problem that constants are chosen for: K, T, rho and sigma of docs/mean-rounding.md."""

    arms: int
    horizon: int
    rho: float
    rewards: Rewards
    paper: bool

    @property
    def deviation(self) -> Decimal:
        """sigma sqrt(2 log(2/delta)), delta = 1/(2KTB): a mean of n samples is off by at most this over sqrt(n)."""
        return _deviation(self.arms, self.horizon, self.rewards.sigma)

    @property
    def failure(self) -> Decimal:
        """delta = 1/(2KTB), the probability that a mean is off by more than `deviation` allows."""
        with precise():
            return 1 / Decimal(2 * self.arms * self.horizon * batch_count(self.horizon))

    def radii(self) -> list[Decimal]:
        """Return the radii tau_i = 2 sigma sqrt(L/c_i) of all batches; for rewards in [0, 1] only where 2 tau < 1."""
        radii = _radii(self.arms, self.horizon, self.rewards.sigma)
        return [tau for tau in radii if self.rewards.kind != "bounded" or 2 * tau < 1]

    def schedule(self) -> GridSchedule:
        """Return the batches that fit, where each rounded mean gets an equal share of rho."""
        if self.paper:
            return self._batches(batch_count(self.horizon))
        # fewer batches leave more of rho to each, so they need fewer samples, so that more of them fit
        for number in range(1, MOST_BATCHES):
            found = self._batches(number)
            if len(found.batches) <= number:
                return found
        return GridSchedule(())

    def _batches(self, number: int) -> GridSchedule:
        """Return the batches that fit when each rounded mean may differ with probability rho/(K number)."""
        batches: list[GridBatch] = []
        with precise():
            share = written(self.rho) / (self.arms * number)
            if self.paper:
                noise, room, slack = 2 * self.deviation, share - 2 * self.failure, Decimal(0)
            else:
                # P(differ) <= kappa/(alpha sqrt n) + 2^-47 + 2^-48 R/alpha, which is to be the share
                slack = Decimal(2) ** -48 * Decimal(self.rewards.reach)
                noise, room = confidence.mean_noise(self.rewards), share - Decimal(2) ** -47
            before = 0
            for tau in self.radii():
                if room <= 0 or (left := tau - slack / (2 * room)) <= 0:
                    break
                samples = ceiling(((self.deviation + noise / (2 * room)) / left) ** 2)
                if (2 if batches else self.arms) * samples >= self.horizon:  # a pull must be left to decide on
                    break
                cell = (noise / Decimal(samples).sqrt() + slack) / room
                batches.append(GridBatch(samples - before, samples, float_above(samples * cell), float(2 * tau / cell)))
                before = samples
        return GridSchedule(tuple(batches))

    def terms(self, schedule: GridSchedule) -> Terms:
        """Return the terms of the theorem's bound, for any schedule of grids."""
        with precise():
            noise = 2 * self.deviation if self.paper else confidence.mean_noise(self.rewards)
            crossing = precision = Decimal(0)
            for _, samples, cell, _ in schedule.batches:
                width = Decimal(cell) / samples
                crossing += noise / Decimal(samples).sqrt() / width
                precision += confidence.comparison_rounding(self.rewards.reach, width)
            number = len(schedule.batches)
            precise_enough = ("finite precision", self.arms * precision, "K sum (2^-47 + 2^-48 R/alpha): coins, totals")
            if self.paper:
                off = ("accuracy", 2 * self.arms * number * self.failure, f"2 K N delta, N = {number}: a mean is off")
                return [off, ("different cells", self.arms * crossing, "K sum 2 tau'/alpha"), precise_enough]
            statement = f"K sum kappa/(alpha sqrt n) over N = {number} batches: a boundary lies between two means"
            return [("different cells", self.arms * crossing, statement), precise_enough]


@lru_cache(maxsize=64)
def _deviation(arms: int, horizon: int, sigma: float) -> Decimal:
    """`GridProblem.deviation`, which every batch of every schedule asks for."""
    with precise():
        return Decimal(sigma) * (2 * Decimal(4 * arms * horizon * batch_count(horizon)).ln()).sqrt()


@lru_cache(maxsize=64)
def _radii(arms: int, horizon: int, sigma: float) -> tuple[Decimal, ...]:
    """tau_i of all batches."""
    log, samples, _ = confidence.ladder(arms, horizon, sigma)
    with precise():
        return tuple(2 * Decimal(sigma) * (log / c).sqrt() for c in samples)
