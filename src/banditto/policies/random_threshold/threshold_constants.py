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
    """A problem that constants are chosen for: K, T and sigma of docs/random-threshold.md."""

    arms: int
    horizon: int
    rewards: Rewards

    @property
    def ladder(self) -> confidence.BatchWidths:
        """L, and for each batch the samples c_i before the blow-up and the width U_i."""
        return confidence.ladder(self.arms, self.horizon, self.rewards.sigma)

    def tests_within(self, blowup: int) -> list[tuple[int, Decimal]]:
        """Return (c_i, U_i) of all batches in which two arms could be tested; none if all K do not fit once."""
        _, samples, widths = self.ladder
        if not samples or self.arms * blowup * samples[0] > self.horizon:
            return []
        return [(c, u) for c, u in zip(samples, widths, strict=True) if 2 * blowup * c <= self.horizon]

    def schedule(self, blowup: int) -> Schedule:
        """Return the batches of a blow-up, with their cuts on totals."""
        batches, before = [], 0
        with precise():
            for c, width in self.tests_within(blowup):
                span = blowup * c * width / 2  # n U/2
                low = span * (1 + 2 / Decimal(blowup).sqrt())  # n (U/2 + U~)
                batches.append(Batch(blowup * (c - before), blowup * c, float(low), float(span)))
                before = c
        return Schedule(blowup, tuple(batches))

    def undecided(self, blowup: int) -> int:
        """Return M, the most batches that can be undecided about one arm."""
        widths = [width for _, width in self.tests_within(blowup)]
        return confidence.undecided_batches(widths, blowup, self.rewards.reach)

    @property
    def rounding(self) -> Decimal:
        """What finite precision adds to the bound for one comparison, at the narrowest of all widths."""
        widths = self.ladder.widths
        return confidence.comparison_rounding(self.rewards.reach, widths[-1]) if widths else Decimal(0)

    def paper_blowup(self, rho: float) -> int:
        """Return the blow-up beta that the paper prints; rho is taken as the decimal that the user wrote."""
        with precise():
            return max(int(self.arms**2 / written(rho) ** 2), 2304)

    def certified_blowup(self, rho: float) -> int:
        """Return the smallest blow-up beta for which the proof gives at most rho."""
        with precise():
            noise = confidence.gap_noise(self.arms, self.rewards)
            room = written(rho) - Decimal(2) / self.horizon
            found = confidence.threshold_blowup(
                noise, self.ladder.log, self.arms - 1, self.rounding, room, self.undecided
            )
        # no room when rho is below 2/T: then a blow-up so large that no test fits, and nothing can differ
        return found or self.horizon

    def certified_terms(self, blowup: int) -> Terms:
        """Return the terms of the theorem's bound."""
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
        """Return the terms of the paper's union bound: 6 undecided batches per arm, each wrong with 16/sqrt(beta)."""
        with precise():
            flips = Decimal(96 * self.arms) / Decimal(blowup).sqrt()
            return [
                ("good event", Decimal(2) / self.horizon, "2/T: in some execution a mean is off by more than U~"),
                ("undecided batches", flips, "K * 6 * 16/sqrt(beta): the paper's own union bound"),
            ]

    def can_drop(self, schedule: Schedule) -> bool:
        """Return whether any rewards and any coin could get an arm dropped."""
        bounded = self.rewards.kind == "bounded"
        return any(
            self.arms * batch.samples < self.horizon and (not bounded or batch.low < batch.samples)
            for batch in schedule.batches
        )
