"""A sample of benchmarks/early_cut.py: the hardest instances, attacks and planted faults, 100,000 pairs each."""

from __future__ import annotations

import pytest
from benchmarks import early_cut
from benchmarks.early_cut import ATTACKED, HARD

from banditto.testing import detectable_rate

pytestmark = pytest.mark.long

SAMPLE = [
    *((number, 0.01) for number in (0, 2, 5, 8, 11)),
    *((number, 0.1) for number in (1, 4, 6, 10, 12, 16)),
    *((number, 0.3) for number in (0, 6, 9, 14)),
]


def test_what_a_cell_could_detect() -> None:
    """With probability 0.8, at the benchmark's error of 1e-6 over all of its cells."""
    for rho, rate in ((0.01, 0.0121), (0.1, 0.1062), (0.3, 0.3094)):
        assert detectable_rate(early_cut.PAIRS, rho, early_cut.ERROR / early_cut.CELLS) <= rate


@pytest.mark.parametrize(("number", "rho"), SAMPLE, ids=lambda value: str(value))
def test_no_cell_exceeds_rho(number: int, rho: float) -> None:
    hard = HARD[number]
    policy = hard.policy(rho)
    cell = early_cut.played(policy, hard.world(policy), early_cut.PAIRS)
    assert not cell.broken
    assert cell.share > (0.5 if policy.arms == 2 else 0.25) * rho  # it is hard


@pytest.mark.parametrize(("number", "rho"), [(0, 0.01), (1, 0.1), (4, 0.1), (5, 0.3)])
def test_attacks_find_nothing(number: int, rho: float) -> None:
    cell = early_cut.attacked(ATTACKED[number], rho, 100_000)
    assert not cell.broken
    assert cell.share > 0.4 * rho  # the search is awake


def test_every_planted_fault_is_found() -> None:
    for name, cell in early_cut.faults(early_cut.PAIRS):
        assert cell.broken, (name, cell.share)
