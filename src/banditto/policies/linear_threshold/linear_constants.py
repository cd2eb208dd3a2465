"""Algorithm 3's constants on one problem: which tests fit, how wide their cuts are, what the proof gives for them.

Symbols  K: arms, d: dimension, T: horizon, B = floor(log T), q = T^(1/B), L = log(2KTB), beta: blow-up, sigma: scale,
         eps_i = sigma sqrt(d L / q^i), eps~_i = eps_i / sqrt(beta), kappa: see `noise`, M: see `undecided`
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import PI, ceiling, first_true, integer, precise, written
from banditto.core.horizons import batch_count, batch_growth
from banditto.core.protocol import Plain, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.core.schedule import LARGEST_BLOWUP, MOST_BATCHES
from banditto.policies.shared import confidence

Terms = list[tuple[str, Decimal, str]]

COMPARISON_PRECISION = Decimal(2) ** -22  # rounded values, for each comparison; checked before every batch
CHOICE_PRECISION = Decimal(2) ** -40  # finite noise, logarithms that differ in their last bits; for each arm
WINDOW_SLACK = Decimal("1e-6")  # the least that windows are widened by
FINAL_PARTS, FINAL_OF = 4, 32  # of what remains, so much goes into the final batch
_FINAL_SHARE = Decimal("0.1")  # of rho, where there are tests besides
_SMALLEST_BLOWUP = 4


class LinearBatch(NamedTuple):
    """A batch of `units` g pulls, rounded up; a gap is compared with low + coin * width."""

    units: tuple[int, int]  # numerator and denominator
    low: float
    width: float

    def pulls(self, g: float) -> int:
        """Return the number of pulls, units * g rounded up, for a design with this g."""
        with precise():
            return ceiling(Decimal(self.units[0]) * Decimal(g) / self.units[1])


class LinearSchedule(NamedTuple):
    """The constants that decide; `choice_rho` is 0 where the algorithm ends as it is printed in the paper."""

    blowup: int
    batches: tuple[LinearBatch, ...]
    choice_rho: float

    def batch(self, number: int) -> LinearBatch | None:
        """Return batch `number`, counted from 1; None past the last one."""
        return self.batches[number - 1] if number <= len(self.batches) else None

    def to_plain(self) -> Mapping[str, Plain]:
        """Return the schedule as a protocol holds it: integers and exact binary fractions."""
        rows: list[Mapping[str, Plain]] = [
            {"units": batch.units, "low": fraction(batch.low), "width": fraction(batch.width)} for batch in self.batches
        ]
        return {"blowup": self.blowup, "batches": tuple(rows), "choice_rho": fraction(self.choice_rho)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> LinearSchedule:
        """Return the schedule that `to_plain` wrote, or refuse content that it could not have written."""
        rows = content.get("batches")
        if set(content) != {"blowup", "batches", "choice_rho"} or not isinstance(rows, tuple):
            raise InvalidArgument("resolved", list(content), "blowup, batches and choice_rho")
        if len(rows) > MOST_BATCHES:
            raise InvalidArgument("batches", f"{len(rows)} of them", f"at most {MOST_BATCHES}")
        batches = []
        for row in rows:
            if not isinstance(row, Mapping) or set(row) != {"units", "low", "width"}:
                raise InvalidArgument("batches", row, "tables with units, low and width")
            units = row["units"]
            if not isinstance(units, tuple) or len(units) != 2:
                raise InvalidArgument("units", units, "a numerator and a denominator")
            parts = tuple(integer(part, "units", 1, LARGEST_BLOWUP) for part in units)
            low, width = from_fraction(row["low"], "low"), from_fraction(row["width"], "width")
            if low < 0.0 or width <= 0.0:
                raise InvalidArgument("batches", (low, width), "cuts with low >= 0 and width > 0")
            batches.append(LinearBatch((parts[0], parts[1]), low, width))
        rho = from_fraction(content["choice_rho"], "choice_rho")
        if not 0.0 <= rho < 1.0:
            raise InvalidArgument("choice_rho", rho, "a number from 0 to 1")
        return cls(integer(content["blowup"], "blowup", 1, LARGEST_BLOWUP), tuple(batches), rho)


class LinearProblem(NamedTuple):
    """A problem that constants are chosen for; `widest` is the widest possible gap."""

    arms: int
    dimension: int
    horizon: int
    rho: float
    rewards: Rewards
    widest: float

    def log(self, paper: bool) -> Decimal:
        """Return L, the logarithmic factor of all widths: log(2KTB), or log(KT^2) as printed in the paper."""
        with precise():
            if paper:
                return Decimal(self.arms * self.horizon**2).ln()
            return confidence.log_factor(self.arms, self.horizon, batch_count(self.horizon))

    def tests(self, blowup: int, paper: bool) -> list[tuple[int, Decimal]]:
        """Return (floor(q^i), eps_i) of the batches that fit; none if the first does not."""
        ladder = self.ladder(paper)
        # the span of the survivors may have a single dimension left
        found = [step for step in ladder if 2 * blowup * step[0] <= self.horizon * self.dimension]
        return found if found and 2 * blowup * found[0][0] < self.horizon else []

    def ladder(self, paper: bool) -> tuple[tuple[int, Decimal], ...]:
        """Return (floor(q^i), eps_i) of all batches whose eps is less than the widest gap, whatever the blow-up."""
        return _ladder(self._replace(rho=0.0), paper)  # a search for a blow-up asks again and again

    def schedule(self, blowup: int, paper: bool) -> LinearSchedule:
        """Return the batches of a blow-up, and the final choice with its share of rho: all of it where no test fits."""
        batches = self._batches(blowup, paper)
        part = _FINAL_SHARE if batches else Decimal(1)
        with precise():
            share = written(self.rho) * part - self.arms * CHOICE_PRECISION
            if not paper and share <= 0:
                least = self.arms * CHOICE_PRECISION / part
                raise InvalidArgument("rho", self.rho, f"above {float(least):.3g}")
        return LinearSchedule(blowup, batches, 0.0 if paper else float(share) * (1.0 - 2.0**-18))

    def _batches(self, blowup: int, paper: bool) -> tuple[LinearBatch, ...]:
        """Return the batches of a blow-up with their cuts, which lie from eps/2 + eps~ to eps + eps~."""
        batches = []
        with precise():
            root = Decimal(blowup).sqrt()
            for growth, epsilon in self.tests(blowup, paper):
                units = (2 * blowup * growth, self.dimension)
                batches.append(LinearBatch(units, float(epsilon / 2 + epsilon / root), float(epsilon / 2)))
        return tuple(batches)

    def paper_blowup(self) -> int:
        """Return the blow-up beta that the paper prints."""
        with precise():
            return max(int(self.arms**2 / written(self.rho) ** 2), 2304)

    def undecided(self, blowup: int, slack: Decimal = WINDOW_SLACK) -> int:
        """Return M, the most batches in whose window [eps/2 - eps~, eps + 3 eps~] one and the same gap can lie.

        Windows are wider by `slack`, relatively, at both ends: for values and cuts that are rounded or biased.
        """
        with precise():
            root = Decimal(blowup).sqrt()
            windows = [
                (eps * (1 - slack) / 2 - eps / root, eps * (1 + slack) * (1 + 3 / root))
                for _, eps in self.ladder(paper=False)
            ]
            # the count rises only at a lower end, so its maximum is attained at one (or at gap 0)
            ends = [max(low, Decimal(0)) for low, _ in windows]
            return max((sum(low <= gap <= high for low, high in windows) for gap in ends), default=0)

    def noise(self, blowup: int) -> Decimal:
        """Return kappa, the noise constant with E|G - G'| <= kappa eps~ / (2 sqrt L) for gaps G and G'."""
        with precise():
            union = 2 + 2 * (2 * Decimal(2 * self.arms).ln()).sqrt()
            best = min(union, 4 * Decimal(self.dimension).sqrt())
            if self.rewards.kind == "gaussian":
                return min(best, 4 * (2 / PI).sqrt())
            ladder = self.ladder(paper=False)
            if self.rewards.kind == "bounded" and ladder:
                log = 2.0 * self.dimension * math.log(self.arms) / (blowup * ladder[0][0])
                excess = Decimal(confidence.largest_sum(log)) * (1 + Decimal(2) ** -40)
                best = min(best, 4 * excess.sqrt())
            return best

    def eliminations(self, blowup: int) -> Decimal:
        """Return what all tests contribute to the bound: (K-1) M (kappa/sqrt(beta L) + precision)."""
        with precise():
            flip = self.noise(blowup) / (blowup * self.log(paper=False)).sqrt()
            return (self.arms - 1) * max(1, self.undecided(blowup)) * (flip + COMPARISON_PRECISION)

    def certified_blowup(self) -> int:
        """Return the smallest blow-up beta for which the proof gives at most rho, the final choice included."""
        with precise():
            room = written(self.rho) * (1 - _FINAL_SHARE) - Decimal(2) / self.horizon

        def enough(blowup: int) -> bool:
            return self.eliminations(blowup) <= room

        most = self.horizon * self.dimension  # then no test fits, and nothing can differ
        return first_true(enough, _SMALLEST_BLOWUP, most) if enough(most) else most

    def can_test(self, paper: bool) -> bool:
        """Return whether the first test fits, with the printed blow-up or with any that the proof accepts."""
        if paper:
            return bool(self.tests(self.paper_blowup(), paper=True))
        with precise():
            room = written(self.rho) * (1 - _FINAL_SHARE) - Decimal(2) / self.horizon
        ladder = self.ladder(paper=False)
        # a larger blow-up would not fit, and a smaller one proves less
        most = (self.horizon - 1) // (2 * ladder[0][0]) if ladder else 0
        return most >= _SMALLEST_BLOWUP and self.eliminations(most) <= room

    def proved(self, schedule: LinearSchedule, paper: bool) -> bool:
        """Return whether the batches are those of a blow-up that the proof covers."""
        if schedule.batches and schedule.blowup < _SMALLEST_BLOWUP:
            return False  # the best arm could be dropped on the good event
        return schedule.batches == self._batches(schedule.blowup, paper)

    def certified_terms(self, schedule: LinearSchedule) -> Terms:
        """Return the terms of the theorem's bound."""
        blowup = schedule.blowup
        choice = Decimal(schedule.choice_rho) * (1 + Decimal(2) ** -20) + self.arms * CHOICE_PRECISION
        final = ("final choice", choice, "E[range(v - v')]/(4 lambda): shared Gumbel noise on values v")
        if not schedule.batches:
            return [final]
        most, kappa = self.undecided(blowup), float(self.noise(blowup))
        statement = f"(K-1) M (kappa/sqrt(beta L) + 2^-22), M = {most}, kappa = {kappa:.4g}, beta = {blowup}"
        return [
            ("good event", Decimal(2) / self.horizon, "2/T: in some execution a value is off by more than eps~"),
            ("undecided batches", self.eliminations(blowup), statement),
            final,
        ]

    def paper_terms(self, blowup: int) -> Terms:
        """Return the terms of the paper's own union bound, and one for its last line, whose estimate is not shared."""
        with precise():
            flips = Decimal(80 * self.arms) / Decimal(blowup).sqrt()
            return [
                ("good event", Decimal(2) / self.horizon, "2/T: in some execution a value is off by more than eps~"),
                ("undecided batches", flips, "K * 5 * 16/sqrt(beta): the paper's own union bound"),
                ("last line", Decimal(1), "argmax of an estimate that is not shared: tied survivors differ"),
            ]


@lru_cache(maxsize=256)
def spare_bias(problem: LinearProblem, blowup: int) -> float:
    """Return how far values may be biased, in both executions alike, in parts of the width eps/2 of a batch's cuts.

    A slack of s lets a gap move by s eps/2, so that values may be off by s/2 of the width, of which 2^-25 is kept for
    rounding. s is the largest power of two for which M stays what it is and eps~ + s eps/2 <= eps/2, so that the best
    arm stays; or the least slack where there is none.
    """
    most = problem.undecided(blowup)
    with precise():
        room = 1 - 2 / Decimal(blowup).sqrt()
        wider = (Decimal(2) ** -k for k in range(4, 20))
        found = next((s for s in wider if s <= room and problem.undecided(blowup, s) == most), WINDOW_SLACK)
    return float(found) / 2.0 - 2.0**-25


@lru_cache(maxsize=256)
def _ladder(problem: LinearProblem, paper: bool) -> tuple[tuple[int, Decimal], ...]:
    log = problem.log(paper)
    with precise():
        sigma = Decimal(problem.rewards.sigma)
        steps = [(n, sigma * (problem.dimension * log / n).sqrt()) for n in batch_growth(problem.horizon)]
        return tuple(step for step in steps if step[1] < Decimal(problem.widest))
