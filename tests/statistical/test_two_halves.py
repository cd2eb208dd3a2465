"""EarlyCut on two halves of a data set, drawn without replacement: winners differ as rarely as promised.

Each test fails by chance with probability 1e-6 at the most, if winners differ with probability rho; the tester finds
labs that do not share their coins. This is resampling of one population, as `benchmarks/two_halves.py` says.
"""

from __future__ import annotations

import pytest
from benchmarks import two_halves

import banditto as bd
from banditto.numbers.intervals import lower_limit


@pytest.mark.parametrize("name", two_halves.POPULATIONS)
def test_winners_of_two_halves_differ_as_rarely_as_promised(name: str) -> None:
    policy, found = two_halves.measured(name, 600)
    assert lower_limit(found.differ, found.splits, 1e-6) <= policy.rho
    assert found.rows < policy.arms * policy.cap


def test_labs_with_coins_of_their_own_are_found() -> None:
    """Four equal arms: without shared coins three of four pairs name two winners."""
    policy = bd.EarlyCut(arms=4, horizon=10**6, rho=0.2, gap=0.1)
    found = two_halves.agreement(policy, two_halves.tie(), 500, 3, shared=False)
    assert lower_limit(found.differ, found.splits, 1e-6) > policy.rho
