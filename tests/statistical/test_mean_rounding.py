"""MeanRounding is replicable where it is hard to be (see hard.py), and as printed Algorithm 1 is not."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import pytest

import banditto as bd
from banditto.core.horizons import batch_count, batch_growth
from banditto.numbers.intervals import lower_limit
from banditto.policies.mean_rounding.grid_constants import GridBatch, GridSchedule
from banditto.policies.policy import Policy
from banditto.testing import assert_rate_at_most
from tests.statistical import hard

HORIZONS = {
    "certified": {2: 10**7, 5: 10**8, 10: 10**9},
    "paper": {2: 10**10, 5: 10**12, 10: 10**13},
}


def measure(constants: Literal["certified", "paper"]) -> list[hard.Measured]:
    def make(arms: int, horizon: int) -> Policy[Any]:
        return bd.MeanRounding(arms=arms, horizon=horizon, rho=hard.RHO, constants=constants)

    return hard.measure(make, HORIZONS[constants], first_seed=3000)


def test_no_instance_breaks_the_promise() -> None:
    hard.assert_promise_kept(measure("certified"))


def test_paper_constants_are_far_on_the_safe_side() -> None:
    """Arms are dropped, and no lower bound exceeds rho/10; a rate of 0.0214 would be seen with probability 0.8."""
    rows = measure("paper")
    assert sum(row.dropped > 0.5 for row in rows) >= 8
    for _, certificate, _ in rows:
        assert_rate_at_most(certificate.mismatches, certificate.pairs, hard.RHO / 10, hard.LEVEL / len(rows))


def as_printed(arms: int, horizon: int, rho: float) -> bd.MeanRounding:
    """Algorithm 1 letter by letter: floor(q^i) pulls, whatever the replicable mean would need."""
    policy = bd.MeanRounding(arms=arms, horizon=horizon, rho=rho, constants="paper")
    batches = batch_count(horizon)
    delta, share = 1 / (2 * arms * horizon * batches), rho / (arms * batches)
    rows = []
    for pulls, samples in zip(growth := batch_growth(horizon), accumulate(growth), strict=True):
        tau = min(1.0, math.sqrt(math.log(2 * arms * horizon * batches) / samples))
        alpha = 2 * tau / (share + 1 - 2 * delta)  # Proposition 2's grid for this tau, delta and rho'
        rows.append(GridBatch(pulls, samples, samples * alpha, 2 * tau / alpha))
    return replace(policy, schedule=GridSchedule(tuple(rows)))


@pytest.mark.filterwarnings("ignore::banditto.core.errors.ShortHorizonWarning")
def test_the_page_says_how_often_the_printed_pull_counts_differ() -> None:
    """At the ends and at the top of the range of gaps (0.096); 16,384 pairs, so six standard errors are 0.02."""
    page = Path(__file__).parents[2] / "docs" / "mean-rounding.md"
    said = set(re.findall(r"(\d+)% to (\d+)% of all pairs", page.read_text(encoding="utf-8")))
    ((low, high),) = said  # the caption and the text say the same
    policy = as_printed(2, 10**5, 0.1)
    shares = [
        bd.certify(policy, bd.Bernoulli([0.5 - gap / 2, 0.5 + gap / 2]), pairs=16_384, seed=5).mismatches / 16_384
        for gap in (0.05, 0.096, 0.6)
    ]
    assert abs(min(shares) - int(low) / 100) < 0.02
    assert abs(max(shares) - int(high) / 100) < 0.02


@pytest.mark.parametrize("gap", [0.2, 0.4])
@pytest.mark.filterwarnings("ignore::banditto.core.errors.ShortHorizonWarning")
def test_the_printed_pull_counts_are_not_replicable(gap: float) -> None:
    """K = 2, T = 10^5, rho = 0.1: more than a fifth of all pairs differ, at level 1e-9 for each gap."""
    policy = as_printed(2, 10**5, 0.1)
    certificate = bd.certify(policy, bd.Bernoulli([0.5 - gap / 2, 0.5 + gap / 2]), pairs=4096, seed=5)
    assert lower_limit(certificate.mismatches, certificate.pairs, 1e-9) > 0.2
    assert certificate.verdict == "FAIL"
    assert certificate.bound is None  # and its own guarantee says so: the terms add up to more than rho
