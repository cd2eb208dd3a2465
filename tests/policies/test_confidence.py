"""The lemmas of docs/random-threshold.md: exactly on small cases, by simulation on larger ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import banditto as bd
from banditto.core.rewards import Rewards
from banditto.policies.shared import confidence

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


@pytest.mark.parametrize("n", [29, 100, 400])
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


@pytest.mark.long
def test_one_comparison_differs_as_often_as_lemma_4_says() -> None:
    """A real batch with a gap in the middle of its window: exact in the rewards, analytic in the coin, nearly tight."""
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    batch = policy.schedule.batches[5]
    n = batch.samples
    gap = (batch.low + batch.span / 2) / n
    counts = np.arange(n + 1)
    mass = np.convolve(binom.pmf(counts, n, 0.5 + gap / 2), binom.pmf(counts, n, 0.5 - gap / 2)[::-1])
    stays = np.clip((np.arange(-n, n + 1) - batch.low) / batch.span, 0.0, 1.0)
    below = np.cumsum(mass)[:-1]
    differ = float(2 * np.sum(below * (1 - below) * np.diff(stays)))  # E|clip(G) - clip(G')|
    noise, log = confidence.gap_noise(2, BOUNDED), confidence.log_factor(2, 10**6, 13)
    allowed = float(confidence.flip_probability(noise, policy.schedule.blowup, log))
    assert 0.95 * allowed < differ <= allowed


def test_rounding_of_totals_is_counted() -> None:
    """2^-48 R/U: at the largest mean that is allowed, the longest horizon still leaves it far below a flip."""
    narrowest = confidence.ladder(2, 10**15, 1.0).widths[-1]
    gaussian = confidence.comparison_rounding(Rewards("gaussian", 1.0).reach, narrowest)
    assert 1e-6 < gaussian < 1e-4
    assert confidence.comparison_rounding(BOUNDED.reach, narrowest) < 1e-8
