"""Binomial draws: their distribution, against exact probabilities, and their addresses.

Each chi-square test has a false-failure rate of 1e-9; with 24 of them and fixed seeds that is 2.4e-8 in all. With N =
2^20 draws in at most 200 cells, draws whose distribution over the cells is 0.01 from the true one in total variation
have non-centrality 4 N 0.01^2 = 419 at least, and are refused with probability above 0.999.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from banditto.chance import binomials
from banditto.chance.binomials import log_probability
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray

DRAWS = 1 << 20
LEVEL = 1e-9
CASES = [
    *(
        (1, 0.3),
        (2, 0.5),
        (5, 0.5),
        (20, 0.5),
        (21, 0.48),
        (25, 0.4),
        (40, 0.2501),
        (100, 0.1),
        (100, 0.11),
        (101, 0.9),
    ),
    *((300, 0.5), (311, 0.45), (1000, 0.02), (4000, 0.5), (20_000, 0.9), (70_000, 0.0002), (10**6, 0.3), (10**6, 1e-4)),
    *((10**9, 0.5), (10**9, 1.5e-8), (10**12, 0.999), (10**13, 0.5), (10**15, 0.3), (10**15, 2e-14)),
]


def chi_square(draws: FloatArray, count: int, probability: float) -> float:
    """How likely draws at least as far from Binomial(count, probability) are."""
    law = stats.binom(count, probability)
    levels = np.arange(1, 200) / 200.0
    edges = np.unique(np.round(stats.norm.ppf(levels) * law.std() + law.mean()).clip(0, count - 1))
    shares = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    found = np.bincount(np.searchsorted(edges, draws), minlength=shares.size)
    enough = shares * draws.size >= 10.0
    expected = np.append(shares[enough], shares[~enough].sum()) * draws.size
    counted = np.append(found[enough], found[~enough].sum())
    if expected[-1] < 10.0:
        expected, counted = expected[:-1], counted[:-1]
    return float(stats.chi2.sf(float(((counted - expected) ** 2 / expected).sum()), max(expected.size - 1, 1)))


def together(count: int, probability: float, seed: int = 5) -> FloatArray:
    pulls = np.full((1, DRAWS), count).T
    return Noise(seed, 0, 0).binomial_totals(pulls, [probability])[:, 0]


@pytest.mark.parametrize(("count", "probability"), CASES)
def test_distribution(count: int, probability: float) -> None:
    assert chi_square(together(count, probability), count, probability) > LEVEL


@pytest.mark.parametrize(("count", "probability"), [(5, 0.5), (311, 0.45), (20_000, 0.9), (10**12, 0.4)])
def test_one_by_one_and_together_are_the_same(count: int, probability: float) -> None:
    pulls = np.full((2, 5000), count).T
    pulls[::3] = 0
    pulls[1::3, 1] = count // 2  # of other counts: one by one
    means = [probability, 1.0 - probability]
    found = Noise(9, 1, 4).binomial_totals(pulls, means)
    columns = np.ascontiguousarray(pulls.T)
    each = Noise(9, 1, 4).binomials(columns, np.repeat(np.array(means)[:, np.newaxis], 5000, axis=1))
    assert np.array_equal(found, each.T)
    assert (found[pulls == 0] == 0.0).all()


def test_the_tester_finds_a_wrong_distribution() -> None:
    generator = np.random.default_rng(3)
    normal = np.round(generator.normal(311 * 0.1, math.sqrt(311 * 0.09), DRAWS)).clip(0, 311)
    assert chi_square(normal, 311, 0.1) < LEVEL
    assert chi_square(together(20_000, 0.9), 20_000, 0.9001) < LEVEL
    # a hat that is forgotten to be tested: every first attempt is taken
    constants = np.empty(binomials._CONSTANTS)
    binomials._prepare(20_000.0, 0.1, constants)
    out = np.empty(DRAWS), np.empty(DRAWS), np.empty(DRAWS)
    places = np.arange(0, 2 * DRAWS, 2, dtype=np.uint64)
    binomials._proposals(places, constants, np.uint64(1), np.uint64(2), out)
    assert chi_square(out[0].clip(0, 20_000), 20_000, 0.1) < LEVEL


@pytest.mark.parametrize(("count", "probability"), [(311, 0.45), (20_000, 0.1), (10**6, 0.5), (10**13, 0.3)])
def test_probabilities(count: int, probability: float) -> None:
    law = stats.binom(count, probability)
    away = np.linspace(-6.0, 6.0, 25) * law.std()
    for k in np.round(law.mean() + away).clip(0, count).tolist():
        found = log_probability(float(k), float(count), probability)
        # lgamma loses digits at large counts: compare with what it can still tell
        exact = float(law.logpmf(k))
        assert abs(found - exact) <= 1e-9 + 4e-16 * count * math.log(count)


def test_draws_of_a_place_do_not_depend_on_the_others() -> None:
    alone = Noise(1, 0, 0).binomials(np.full(100, 5000), 0.3)
    mixed = np.full(100, 5000)
    mixed[50:] = 7
    assert np.array_equal(Noise(1, 0, 0).binomials(mixed, 0.3)[:50], alone[:50])
    noise = Noise(1, 0, 0)
    assert not np.array_equal(noise.binomials(np.full(100, 5000), 0.3), noise.binomials(np.full(100, 5000), 0.3))
