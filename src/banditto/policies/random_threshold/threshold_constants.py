"""Algorithm 2's constants on one problem: which tests fit, how wide their cuts are, what the proof gives for them."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from banditto.core.exact import precise, written
from banditto.core.rewards import Rewards
from banditto.core.schedule import Batch, Schedule
from banditto.core.text import short
from banditto.policies.shared import confidence

Terms = list[tuple[str, Decimal, str]]


class ThresholdProblem(NamedTuple):
    """Arms, horizon and rewards; K, T and sigma of docs/random-threshold.md."""

    arms: int
    horizon: int
    rewards: Rewards

    @property
    def ladder(self) -> confidence.BatchWidths:
        """L, c_i and U_i."""
        return confidence.ladder(self.arms, self.horizon, self.rewards.sigma)

    def tests_within(self, blowup: int) -> list[tuple[int, Decimal]]:
        """(c_i, U_i) as far as two arms could be tested, or nothing if all K cannot be tested once."""
        _, samples, widths = self.ladder
        if not samples or self.arms * blowup * samples[0] > self.horizon:
            return []
        return [(c, u) for c, u in zip(samples, widths, strict=True) if 2 * blowup * c <= self.horizon]

    def schedule(self, blowup: int) -> Schedule:
        """The batches of a blow-up, with their cuts on totals."""
        batches, before = [], 0
        with precise():
            for c, width in self.tests_within(blowup):
                span = blowup * c * width / 2  # n U/2
                low = span * (1 + 2 / Decimal(blowup).sqrt())  # n (U/2 + U~)
                batches.append(Batch(blowup * (c - before), blowup * c, float(low), float(span)))
                before = c
        return Schedule(blowup, tuple(batches))

    def undecided(self, blowup: int) -> int:
        """M, the most batches that can be undecided about one arm."""
        widths = [width for _, width in self.tests_within(blowup)]
        return confidence.undecided_batches(widths, blowup, self.rewards.reach)

    @property
    def rounding(self) -> Decimal:
        """What finite precision adds to one comparison, at the narrowest of all widths."""
        widths = self.ladder.widths
        return confidence.comparison_rounding(self.rewards.reach, widths[-1]) if widths else Decimal(0)

    def paper_blowup(self, rho: float) -> int:
        """The printed beta, rho taken as the decimal that it was written as."""
        with precise():
            return max(int(self.arms**2 / written(rho) ** 2), 2304)

    def certified_blowup(self, rho: float) -> int:
        """The smallest beta whose proof gives at most rho."""
        with precise():
            noise = confidence.gap_noise(self.arms, self.rewards)
            room = written(rho) - Decimal(2) / self.horizon
            found = confidence.threshold_blowup(
                noise, self.ladder.log, self.arms - 1, self.rounding, room, self.undecided
            )
        # no room when rho is below 2/T: then a blow-up so large that no test fits, and nothing can differ
        return found or self.horizon

    def certified_terms(self, blowup: int) -> Terms:
        """The theorem's right side."""
        most = self.undecided(blowup)
        noise = confidence.gap_noise(self.arms, self.rewards)
        flip = confidence.flip_probability(noise, blowup, self.ladder.log)
        values = f"M = {most}, kappa = {short(float(noise))}, beta = {blowup}"
        with precise():
            comparisons = (self.arms - 1) * most
            return [
                ("good event", Decimal(2) / self.horizon, "2/T: in some execution a mean is off by more than U~/2"),
                ("undecided batches", comparisons * flip, f"(K-1) M kappa/sqrt(beta L), {values}"),
                ("finite precision", comparisons * self.rounding, "(K-1) M (2^-47 + 2^-48 R/U): coins, cuts, totals"),
            ]

    def paper_terms(self, blowup: int) -> Terms:
        """What the paper's own union bound gives: 6 undecided batches per arm, each wrong with 16/sqrt(beta)."""
        with precise():
            flips = Decimal(96 * self.arms) / Decimal(blowup).sqrt()
            return [
                ("good event", Decimal(2) / self.horizon, "2/T: in some execution a mean is off by more than U~"),
                ("undecided batches", flips, "K * 6 * 16/sqrt(beta): the paper's own union bound"),
            ]

    def can_drop(self, schedule: Schedule) -> bool:
        """Whether some arm could be dropped: best rewards against worst, luckiest coin."""
        bounded = self.rewards.kind == "bounded"
        return any(
            self.arms * batch.samples < self.horizon and (not bounded or batch.low < batch.samples)
            for batch in schedule.batches
        )
