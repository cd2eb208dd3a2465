"""The confidence sequence: its arithmetic, its ends, and that looking at every pair does not break it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv, betaln

from banditto.core.exact import first_true, precise
from banditto.numbers.confidence_sequence import ConfidenceSequence, log_beta
from banditto.numbers.intervals import clopper_pearson, pairs_to_settle
from banditto.testing.statistics import assert_rate_at_most, detectable_rate

TAIL = 0.025
LEVEL = 1e-6
RATES = (0.1, 0.01)


def log_mixture(weights: tuple[float, float], mismatches: float, pairs: int, rate: float) -> float:
    """The martingale's logarithm, by another road: floats and SciPy."""
    a, b = weights
    gained = betaln(a + mismatches, b + pairs - mismatches) - betaln(a, b)
    return float(gained - mismatches * np.log(rate) - (pairs - mismatches) * np.log1p(-rate))


def weights_of(sequence: ConfidenceSequence) -> tuple[tuple[float, float], tuple[float, float]]:
    """The weights as docs/certify.md says them: for the upper and for the lower end."""
    odds = sequence.rho / (1 - sequence.rho)
    return (2.0, 2.0 / (0.6 * odds)), (4.0, 4.0 / (1.5 * odds))


def test_log_beta_is_exact_where_the_value_is_known() -> None:
    with precise():
        assert abs(log_beta(Decimal(1), Decimal(1))) < Decimal("1e-45")
        assert abs(
            log_beta(Decimal("0.5"), Decimal("0.5")).exp() - Decimal("3.14159265358979323846264338327950288")
        ) < (Decimal("1e-34"))
        # B(a + 1, b) = B(a, b) a / (a + b), at sizes where floats would have lost it
        a, b = Decimal(3) * 10**11, Decimal(7) * 10**11
        step = log_beta(a + 1, b) - log_beta(a, b)
        assert abs(step - (a / (a + b)).ln()) < Decimal("1e-40")


@given(st.integers(1, 10**6), st.floats(0, 1), st.sampled_from([0.001, 0.1, 0.7]), st.sampled_from([0.5, 0.95, 0.999]))
@settings(max_examples=40)
def test_ends_are_where_the_mixture_reaches_what_is_needed(
    pairs: int, share: float, rho: float, confidence: float
) -> None:
    sequence = ConfidenceSequence(rho, confidence)
    mismatches = round(share * pairs)
    low, high = sequence.interval(mismatches, pairs)
    assert 0.0 <= low <= mismatches / pairs <= high <= 1.0
    below, above = weights_of(sequence)
    needed = np.log(2 / (1 - confidence))
    assert (low == 0.0) >= (mismatches == 0)
    assert (high == 1.0) >= (mismatches == pairs)
    for end, inwards, weights in ((high, 0.0, below), (low, 1.0, above)):
        if 0.0 < end < 1.0:  # next to 1 the floats are far apart
            assert log_mixture(weights, mismatches, pairs, end) >= needed - 1e-5
            assert log_mixture(weights, mismatches, pairs, float(np.nextafter(end, inwards))) <= needed + 1e-5
    assert sequence.settles(mismatches, pairs) == (high <= rho or low > rho)


def test_ends_are_rounded_outwards_by_less_than_one_float() -> None:
    """The end itself is left out, the next float inwards is not."""
    sequence = ConfidenceSequence(0.1, 0.95)
    for mismatches, pairs in ((0, 7), (3, 50), (10**5, 10**6), (10**11, 10**12), (1, 10**12), (10**12 - 1, 10**12)):
        low, high = sequence.interval(mismatches, pairs)
        for end, inwards in ((low, 1.0), (high, 0.0)):
            if end not in (0.0, 1.0):
                weights = sequence._below if end == high else sequence._above
                gained = sequence._gained(weights, mismatches, pairs)
                assert sequence._excludes(gained, mismatches, pairs, end)
                assert not sequence._excludes(gained, mismatches, pairs, float(np.nextafter(end, inwards)))


@pytest.mark.parametrize("rho", [5e-324, 1e-300, 1e-9, 1 - 1e-9, 1 - 1e-16])
def test_odd_values_of_rho_are_no_trouble(rho: float) -> None:
    sequence = ConfidenceSequence(rho, 0.95)
    for mismatches in (0, 1, 5000, 9999, 10_000):
        low, high = sequence.interval(mismatches, 10_000)
        assert 0.0 <= low <= mismatches / 10_000 <= high <= 1.0
        assert sequence.settles(mismatches, 10_000) == (high <= rho or low > rho)


def test_the_sequence_is_wider_than_the_exact_interval_and_shrinks() -> None:
    sequence = ConfidenceSequence(0.1, 0.95)
    for pairs in (100, 10**4, 10**6, 10**9):
        low, high = sequence.interval(pairs // 10, pairs)
        exact = clopper_pearson(pairs // 10, pairs, 0.95)
        assert low < exact[0] < exact[1] < high
        assert high - low < 3.5 * (exact[1] - exact[0])


@pytest.mark.parametrize(("mismatches", "pairs"), [(0, 10), (1, 30), (3, 60), (5, 20), (30, 200)])
def test_pairs_to_settle_by_the_sequence_is_the_smallest_number(mismatches: int, pairs: int) -> None:
    sequence = ConfidenceSequence(0.1, 0.95)
    answer = pairs_to_settle(mismatches, pairs, 0.1, 0.95, sequence.settles)
    rate = mismatches / pairs
    found = next(n for n in range(1, 10_000) if sequence.settles(round(rate * n), n))
    assert answer == found
    fixed = pairs_to_settle(mismatches, pairs, 0.1, 0.95)
    assert fixed is not None
    assert fixed < found


# -- coverage: at the true rate, each end may ever be wrong with probability 2.5% ------------------------------------

Limits = Callable[[int, int], tuple[bool, bool]]  # whether a count says that the rate is below, or above, the true one


def by_sequence(rate: float) -> Limits:
    """The code that stops runs, with rho at the true rate: both verdicts are then wrong."""
    sequence = ConfidenceSequence(rate, 1 - 2 * TAIL)

    def wrong(mismatches: int, pairs: int) -> tuple[bool, bool]:
        settled = sequence.settles(mismatches, pairs)
        return settled and mismatches < rate * pairs, settled and mismatches > rate * pairs

    return wrong


def by_exact_intervals(rate: float) -> Limits:
    """What is not allowed: an interval for one look, looked at again and again."""

    def wrong(mismatches: int, pairs: int) -> tuple[bool, bool]:
        low, high = clopper_pearson(mismatches, pairs, 1 - 2 * TAIL)
        return high < rate, low > rate

    return wrong


def silent_below(limits: Limits, pairs: int, mismatches: int) -> bool:
    return not limits(mismatches, pairs)[0]


def says_above(limits: Limits, pairs: int, mismatches: int) -> bool:
    return limits(mismatches, pairs)[1]


def boundaries(limits: Limits, rate: float, looks: list[int]) -> list[tuple[int, int]]:
    """For each look: up to which count the rate is called smaller, and from which count on larger."""
    answer = []
    for pairs in looks:
        middle = int(rate * pairs)
        reach = int(10 * (rate * pairs) ** 0.5) + 30  # far beyond either boundary
        low = first_true(partial(silent_below, limits, pairs), max(0, middle - reach), middle) - 1
        high = first_true(partial(says_above, limits, pairs), middle + 1, min(pairs + 1, middle + reach))
        answer.append((low, high))
    return answer


def chances(limits: Limits, rate: float, pairs: int) -> tuple[float, float]:
    """The exact probability of ever saying "below" or "above" when every pair up to `pairs` is looked at."""
    alive = np.array([1.0])  # by count, of those that have said nothing yet
    said = [0.0, 0.0]
    for low, high in boundaries(limits, rate, list(range(1, pairs + 1))):
        alive = np.append(alive * (1 - rate), 0.0) + np.append(0.0, alive * rate)
        said[0] += float(alive[: low + 1].sum())
        said[1] += float(alive[high:].sum())
        alive[: low + 1] = 0.0
        alive[high:] = 0.0
    return said[0], said[1]


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.3, 0.1, 0.03])
def test_looking_after_every_pair_is_allowed_exactly(rate: float) -> None:
    """No chance involved: all paths of 200 pairs, weighted with their probabilities."""
    said = chances(by_sequence(rate), rate, 200)
    assert TAIL / 10 < max(said) <= TAIL  # it does say something
    assert max(chances(by_exact_intervals(rate), rate, 200)) > 1.4 * TAIL


def looks_up_to(pairs: int) -> list[int]:
    """Every pair at first, then every 5%."""
    looks = list(range(1, 21))
    while looks[-1] < pairs:
        looks.append(min(pairs, looks[-1] + max(1, looks[-1] // 20)))
    return looks


def simulated(bounds: list[tuple[int, int]], looks: list[int], rate: float, paths: int, seed: int) -> tuple[int, int]:
    """How many of so many paths ever crossed the lower and the upper boundary."""
    generator = np.random.default_rng(seed)
    counts = np.zeros(paths, dtype=np.int64)
    below, above = np.zeros(paths, dtype=bool), np.zeros(paths, dtype=bool)
    for pairs, before, (low, high) in zip(looks, [0, *looks[:-1]], bounds, strict=True):
        counts += generator.binomial(pairs - before, rate, paths)
        below |= counts <= low
        above |= counts >= high
    return int(below.sum()), int(above.sum())


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
def test_wrong_verdicts_over_a_hundred_thousand_pairs_are_as_rare_as_promised(rate: float) -> None:
    """At the true rate rho, both verdicts are wrong; 20,000 runs of up to 10^5 pairs, looked at 206 times.

    False-failure rate 1e-6 for both rates and both sides together. Detectable with probability 0.8: an error rate
    of 3.2% in the place of 2.5%. The same test refuses exact intervals, which err in more than 10% of the runs.
    """
    paths, level = 20_000, LEVEL / (2 * len(RATES))
    assert detectable_rate(paths, TAIL, level) <= 0.0320
    looks = looks_up_to(10**5)
    for wrong in simulated(boundaries(by_sequence(rate), rate, looks), looks, rate, paths, seed=17):
        assert_rate_at_most(wrong, paths, TAIL, level)
        assert wrong > paths * TAIL / 10
    for wrong in simulated(boundaries(by_exact_intervals(rate), rate, looks), looks, rate, paths, seed=17):
        assert wrong > 0.08 * paths
        with pytest.raises(AssertionError, match="the probability is above"):
            assert_rate_at_most(wrong, paths, TAIL, level)


def by_ends(rho: float, rate: float) -> Limits:
    """Whether the interval, tuned for `rho`, leaves out a true rate that is another."""
    below, above = weights_of(ConfidenceSequence(rho, 1 - 2 * TAIL))

    def wrong(mismatches: int, pairs: int) -> tuple[bool, bool]:
        needed = np.log(1 / TAIL)
        return (
            mismatches < rate * pairs and log_mixture(below, mismatches, pairs, rate) >= needed,
            mismatches > rate * pairs and log_mixture(above, mismatches, pairs, rate) >= needed,
        )

    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "rate"), [(0.1, 0.02), (0.1, 0.4), (0.01, 0.013), (0.6, 0.5)])
def test_the_interval_covers_rates_other_than_rho_at_every_look(rho: float, rate: float) -> None:
    """Both ends, 20,000 runs of up to 10^5 pairs. False-failure rate 1e-6 for all cases together; detectable: 3.3%."""
    paths, level = 20_000, LEVEL / 8
    assert detectable_rate(paths, TAIL, level) <= 0.0330
    looks = looks_up_to(10**5)
    for wrong in simulated(boundaries(by_ends(rho, rate), rate, looks), looks, rate, paths, seed=23):
        assert_rate_at_most(wrong, paths, TAIL, level)


def test_a_rate_far_from_rho_is_settled_soon() -> None:
    """Half of all runs are settled after at most 2.7 times the pairs of an exact interval with even chances."""
    for rho in (0.1, 0.001):
        sequence = ConfidenceSequence(rho, 0.95)
        for factor in (0.5, 2.0):
            rate = factor * rho
            few = round(2.0 / rate)  # pairs, so few that they settle nothing
            fixed = pairs_to_settle(2, few, rho, 0.95)
            grown = pairs_to_settle(2, few, rho, 0.95, sequence.settles)
            assert fixed is not None
            assert grown is not None
            assert fixed < grown < 2.7 * fixed
    assert float(betaincinv(1, 36, 1 - TAIL)) <= 0.1  # an exact interval without mismatches: 36 pairs
    assert pairs_to_settle(0, 1, 0.1, 0.95, ConfidenceSequence(0.1, 0.95).settles) == 55


def average_until_settled(rho: float, rate: float, step: int, looks: int, paths: int = 2000) -> float:
    """Pairs until the verdict, looked at every `step` pairs."""
    below, above = weights_of(ConfidenceSequence(rho, 1 - 2 * TAIL))
    generator = np.random.default_rng(31)
    counts = np.zeros(paths, dtype=np.int64)
    settled = np.zeros(paths)
    for pairs in range(step, step * looks + 1, step):
        counts += generator.binomial(step, rate, paths)
        rest = pairs - counts
        likelihood = counts * np.log(rho) + rest * np.log1p(-rho)
        gained = [betaln(a + counts, b + rest) - betaln(a, b) for a, b in (below, above)]
        evidence = np.where(counts < rho * pairs, *gained) - likelihood
        settled[(settled == 0) & (evidence >= np.log(1 / TAIL))] = pairs
        if np.all(settled > 0):
            break
    assert np.all(settled > 0)
    return float(np.mean(settled))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "averages"), [(0.1, (55, 257, 2240, 2450, 107)), (0.01, (566, 2790, 24_600, 28_900, 1210))]
)
def test_the_table_of_pairs_until_settled_is_what_comes_out(rho: float, averages: tuple[int, ...]) -> None:
    """The figures of docs/certify.md. An average of 2,000 runs has a standard error of about 1.2% of it."""
    page = (Path(__file__).parents[2] / "docs" / "certify.md").read_text(encoding="utf-8")
    assert f"| {rho} | until settled | {' | '.join(f'{average:,}' for average in averages)} |" in page
    for factor, average in zip((0, 0.5, 0.8, 1.2, 2), averages, strict=True):
        found = average_until_settled(rho, factor * rho, max(1, average // 100), 3000)
        assert found == pytest.approx(average, rel=0.07)
