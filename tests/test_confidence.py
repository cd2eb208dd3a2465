"""The lemmas of docs/random-threshold.md: exactly on small cases, by simulation on larger ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from banditto import confidence
from banditto.rewards import Rewards

BOUNDED = Rewards("bounded", 0.5)


def noise_of_two(n: int, p: float, q: float) -> float:
    """E|D|, D = X_o - X_j - X'_o + X'_j for Bernoulli arms, by full enumeration."""
    counts = np.arange(n + 1)
    first, second = binom.pmf(counts, n, p), binom.pmf(counts, n, q)
    difference = np.convolve(first, second[::-1])  # n (X_o - X_j) + n
    twice = np.convolve(difference, difference[::-1])  # n D + 2n
    return float(np.sum(twice * np.abs(np.arange(twice.size) - 2 * n))) / n


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 20, 60])
def test_two_bounded_arms_exactly(n: int) -> None:
    bound = float(confidence.gap_noise(2, BOUNDED)) * math.sqrt(2) * 0.5 / math.sqrt(n)
    grid = np.linspace(0.0, 1.0, 11)
    values = {(p, q): noise_of_two(n, p, q) for p, q in itertools.product(grid, grid)}
    worst = max(values, key=lambda pair: values[pair])
    assert worst == (0.5, 0.5)
    assert values[worst] <= bound
    assert values[worst] >= 0.85 * bound  # and the constant is nearly attained


@pytest.mark.parametrize("arms", [3, 5, 10, 50])
def test_many_arms_by_simulation(arms: int) -> None:
    """E Z_j for Gaussian means; 200,000 draws, so the mean is known to half a percent: six standard errors."""
    generator = np.random.default_rng(arms)
    difference = generator.standard_normal((200_000, arms)) * math.sqrt(2.0)  # n = 1, sigma = 1
    noise = np.abs(difference[:, 0]) + np.abs(difference).max(axis=1)
    bound = float(confidence.gap_noise(arms, Rewards("gaussian", 1.0))) * math.sqrt(2.0)
    assert noise.mean() + 6 * noise.std() / math.sqrt(noise.size) <= bound


@pytest.mark.parametrize("n", [4, 29, 400])
def test_good_event_exactly(n: int) -> None:
    """P(|X - mu| > U~/2) <= 1/(KTB) for Bernoulli means, by the exact binomial tails."""
    arms, horizon, batches = 2, 1000, 6
    log = confidence.log_factor(arms, horizon, batches)
    radius = float(confidence.width(0.5, log, n)) / 2
    for p in (0.01, 0.2, 0.5, 0.9):
        tail = binom.sf(math.floor(n * (p + radius)), n, p) + binom.cdf(math.ceil(n * (p - radius)) - 1, n, p)
        assert tail <= 1 / (arms * horizon * batches)


def test_widths_scale_as_they_should() -> None:
    log = confidence.log_factor(3, 10**6, 13)
    assert confidence.width(0.5, log, 100) / confidence.width(0.5, log, 400) == pytest.approx(2)
    assert float(confidence.width(0.5, log, 7)) == pytest.approx(math.sqrt(2 * math.log(2 * 3 * 10**6 * 13) / 7))


def test_a_random_threshold_separates_close_gaps_as_often_as_lemma_4_says() -> None:
    """Two arms, one batch inside its window: the measured rate of different decisions is at most kappa/sqrt(beta L).

    Exact in the rewards' distribution by enumeration, averaged over the coin analytically.
    """
    n, p, q = 58, 0.95, 0.05  # samples 2 * 29; a gap in the middle of the window [U/2, U] scaled to one batch
    width = 1.2
    low, span = width / 2, width / 2
    counts = np.arange(n + 1)
    gap = (counts[:, None] - counts[None, :]) / n
    weight = binom.pmf(counts, n, p)[:, None] * binom.pmf(counts, n, q)[None, :]
    values, where = np.unique(gap, return_inverse=True)
    mass = np.bincount(where.ravel(), weight.ravel())
    clipped = np.clip((values - low) / span, 0.0, 1.0)
    differ = float(mass @ np.abs(clipped[:, None] - clipped[None, :]) @ mass)
    allowed = float(confidence.gap_noise(2, BOUNDED)) * math.sqrt(2) * 0.5 / math.sqrt(n) / span
    assert 0.0 < differ <= allowed
