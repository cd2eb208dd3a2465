from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from banditto.numbers.intervals import MOST_PAIRS, clopper_pearson, pairs_to_settle


@given(st.integers(1, 3000), st.floats(0, 1), st.sampled_from([0.5, 0.95, 0.999]))
@settings(max_examples=80)
def test_limits_invert_the_binomial_tails(trials: int, share: float, confidence: float) -> None:
    successes = round(share * trials)
    low, high = clopper_pearson(successes, trials, confidence)
    tail = (1 - confidence) / 2
    if successes > 0:
        assert binom.sf(successes - 1, trials, low) == pytest.approx(tail, rel=1e-6)
    else:
        assert low == 0.0
    if successes < trials:
        assert binom.cdf(successes, trials, high) == pytest.approx(tail, rel=1e-6)
    else:
        assert high == 1.0


@pytest.mark.parametrize("probability", [0.003, 0.05, 0.5, 0.93])
def test_coverage_is_at_least_the_confidence(probability: float) -> None:
    trials = 80  # exact: every outcome, weighted with its probability
    covered = 0.0
    for successes in range(trials + 1):
        low, high = clopper_pearson(successes, trials, 0.95)
        if low <= probability <= high:
            covered += binom.pmf(successes, trials, probability)
    assert covered >= 0.95


def settles(trials: int, rate: float, rho: float) -> bool:
    low, high = clopper_pearson(round(rate * trials), trials, 0.95)
    return high <= rho or low > rho


@pytest.mark.parametrize(
    ("mismatches", "pairs", "rho"),
    [
        (0, 10, 0.1),
        (1, 20, 0.1),
        (3, 40, 0.1),
        (1, 3, 0.1),
        (9, 60, 0.1),
        (2, 4, 0.6),
        (20, 100, 0.3),
        (30, 100, 0.27),
        (8, 40, 0.35),
    ],
)
def test_pairs_to_settle_is_the_smallest_number_above_those_that_were_played(
    mismatches: int, pairs: int, rho: float
) -> None:
    answer = pairs_to_settle(mismatches, pairs, rho, 0.95)
    rate = mismatches / pairs
    assert answer == next(n for n in range(pairs + 1, 200_000) if settles(n, rate, rho))


def test_a_rate_that_is_rho_itself_is_never_settled() -> None:
    assert pairs_to_settle(100, 1000, 0.1, 0.95) is None
    nearly = pairs_to_settle(1001, 10_000, 0.1, 0.95)
    assert nearly is not None
    assert 10**7 < nearly <= MOST_PAIRS
