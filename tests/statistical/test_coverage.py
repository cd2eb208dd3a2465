"""Intervals of `analyse` hold as often as they say; faults that were planted are found. Seeds are fixed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from benchmarks import coverage
from benchmarks.coverage import CONFIDENCE, Cell, count_failures, gaussian
from scipy.stats import binom

import banditto as bd
from banditto.measure.analysis import stages
from banditto.numbers.intervals import upper_limit

RUNS = 4000
# the cell, and by how many of its gaps the first arm leads: a tie, a lead in the cut, the gap itself
CELLS = [
    ("one-cut, 2 arms, short", 0.5),
    ("early-cut, 2 arms, rates of 1%", 0.0),
    pytest.param("certified-elimination, 5 arms", 1.0, marks=pytest.mark.long),
    ("explore-then-commit, 3 arms", 0.0),
]


@cache
def cells() -> dict[str, Cell]:
    return {cell.name: cell for cell in coverage.cells()}


def covered(failed: int, runs: int, error: float = 1e-7) -> bool:
    """Whether the exact upper limit of the coverage is not below what is stated."""
    return upper_limit(runs - failed, runs, error) >= CONFIDENCE


def test_what_such_a_test_could_detect() -> None:
    """Of 4,000 runs 276 failures are too many: so many come at 5% once in 10^7, and at 8.5% in 99.9% of all tests."""
    least = next(failed for failed in range(RUNS) if not covered(failed, RUNS))
    assert binom.sf(least - 1, RUNS, 1.0 - CONFIDENCE) <= 1e-7
    assert binom.sf(least - 1, RUNS, 0.085) >= 0.999


@pytest.mark.parametrize(("name", "lead"), CELLS)
def test_all_intervals_of_a_table_hold_at_once(name: str, lead: float) -> None:
    """False failures 1e-7 in each cell; a coverage of 91.5% would be seen nearly always."""
    cell = cells()[name]
    means = (cell.base + lead * cell.gap, *[cell.base] * (cell.policy.arms - 1))
    assert covered(count_failures(cell.policy, cell.world(means), RUNS, 31), RUNS)


def test_intervals_of_rewards_between_the_ends_hold_at_once() -> None:
    """4,000 batches of three arms with uniform rewards, and with rare ones: false failures and power as above."""
    policy = bd.ExploreThenCommit(arms=3, horizon=10**4, rho=0.3, gap=0.3)
    assert covered(coverage.count_bounded_failures(policy, lambda g, size: g.random(size), 0.5, RUNS), RUNS)
    rare = coverage.count_bounded_failures(
        policy, lambda g, size: (g.random(size) < 0.05) * g.uniform(0.5, 1.0, size), 0.0375, RUNS
    )
    assert covered(rare, RUNS)


@pytest.mark.parametrize("policy", [bd.UCB1(), bd.Thompson()])
def test_intervals_hold_at_any_time(policy: Any) -> None:
    """2,000 executions of 500 rounds: false failures 1e-7; a coverage of 90% would be seen in 99.9% of all tests."""
    world = bd.Bernoulli([0.5, 0.45])
    pulls, sums = coverage.final_sums(policy, world, 500, 2000)
    assert np.all(pulls.sum(axis=1) == 500)
    assert covered(coverage.count_any_time_failures(policy, world, pulls, sums), 2000)


# -- planted faults ----------------------------------------------------------------------------------------------------


def test_multiplicity_that_was_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 runs of five arms in one batch, four of them equal: about 21% fail, and 155 of 2,000 would be enough."""
    policy = bd.ExploreThenCommit(arms=5, horizon=10**4, rho=0.3, gap=0.1, rewards="gaussian")
    world = gaussian([0.7, 0.5, 0.5, 0.5, 0.5])
    assert covered(count_failures(policy, world, 2000, 2026), 2000)
    monkeypatch.setattr(stages, "critical_at", coverage.forgotten_multiplicity)
    assert not covered(count_failures(policy, world, 2000, 2026), 2000)


def looked_at() -> bd.EarlyCut:
    return bd.EarlyCut(arms=2, horizon=10**6, rho=0.9, gap=0.05, rewards="gaussian")


@pytest.mark.long
def test_looks_that_were_forgotten_fail_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 runs, of which about 10 fail where looks share the error, and 130 where each of them spends it all.

    Between them stands 60: at these rates it is on the wrong side of either less than once in 10^7.
    """
    world = gaussian([0.53, 0.5])
    assert count_failures(looked_at(), world, 2000, 2026) < 60
    monkeypatch.setattr(stages, "stages_of", coverage.forgotten_looks)
    assert count_failures(looked_at(), world, 2000, 2026) >= 60


@pytest.mark.long
def test_looks_that_were_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """80,000 runs: 4,297 failures are enough at an error of 1e-6. In 10,000 others 6.7% failed, which makes that
    certain but for one test in 10^9; the seed here had no part in choosing the instance."""
    monkeypatch.setattr(stages, "stages_of", coverage.forgotten_looks)
    failed = count_failures(looked_at(), gaussian([0.53, 0.5]), 80_000, 2026)
    assert not covered(failed, 80_000, 1e-6)
