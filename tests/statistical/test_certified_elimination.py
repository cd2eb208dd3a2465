"""CertifiedElimination on two hundred random instances, many of them with gaps inside its own windows.

False-failure rate: at most 1e-6 over all of them (exact binomial bounds, Bonferroni, fixed seeds). Detectable: on one
instance with rho = 0.1 a true P(differ) of 0.15 is refused with probability 0.8, with rho = 0.3 one of 0.38 (asserted).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from benchmarks import certified

import banditto as bd
from banditto.problems.environment import Environment
from banditto.testing import assert_rate_at_most, detectable_rate

INSTANCES, PAIRS, LEVEL = 200, 2048, 1e-6


@cache
def policy(arms: int, digits: int, rho: float) -> bd.CertifiedElimination:
    return bd.CertifiedElimination(arms=arms, horizon=10**digits, rho=rho)


def instance(number: int) -> tuple[bd.CertifiedElimination, Environment]:
    generator = np.random.default_rng([77, number])
    arms = int(generator.choice([2, 2, 3, 5, 10, 30]))
    chosen = policy(arms, int(generator.choice([6, 8])), float(generator.choice([0.1, 0.3])))
    return chosen, world(chosen, generator)


def world(chosen: bd.CertifiedElimination, generator: np.random.Generator) -> Environment:
    """Gaps in a window, near-ties, ties and spread ones; means near 0, 1/2 and 1; the best arm anywhere."""
    arms = chosen.arms
    if chosen.schedule.batches and generator.random() < 0.75:
        batch = chosen.schedule.batches[int(generator.integers(0, min(4, len(chosen.schedule.batches))))]
        gap = batch.commit.low + generator.uniform(-0.1, 1.1) * batch.commit.width
    else:
        gap = float(np.exp(generator.uniform(np.log(0.003), np.log(0.8))))
    gap = min(max(gap, 1e-4), 0.9)
    kind = generator.choice(["equal", "linear", "geometric", "tie", "one rival"])
    steps = np.arange(arms - 1)
    gaps = {
        "equal": np.full(arms - 1, gap),
        "linear": gap * (1 + steps),
        "geometric": gap * 2.0 ** np.minimum(steps, 40),
        "tie": np.where(steps == 0, 0.0, gap),
        "one rival": np.where(steps == 0, gap, 0.9),
    }[str(kind)]
    best = float(generator.choice([0.999, 0.95, (1 + min(gap, 0.9)) / 2, max(gap, 0.02) + 0.01]))
    means = np.clip(best - np.array([0.0, *gaps]), 0.001, 0.999)
    generator.shuffle(means)
    return bd.Bernoulli(means.tolist())


@pytest.mark.long
def test_no_random_instance_breaks_the_promise() -> None:
    assert detectable_rate(PAIRS, 0.1, LEVEL / INSTANCES) <= 0.15
    assert detectable_rate(PAIRS, 0.3, LEVEL / INSTANCES) <= 0.38
    shares = []
    for number in range(INSTANCES):
        chosen, world = instance(number)
        assert chosen.guarantee().holds
        certificate = bd.certify(chosen, world, pairs=PAIRS, seed=number)
        assert_rate_at_most(certificate.mismatches, PAIRS, chosen.rho, LEVEL / INSTANCES)
        shares.append(certificate.mismatches / PAIRS / chosen.rho)
    # the guarantee is not slack by design: the worst instances come near it, and many show disagreement
    assert max(shares) >= 0.3
    assert sum(share > 0.1 for share in shares) >= 50


def test_the_worst_gap_uses_nearly_all_of_rho() -> None:
    """0.976 rho of 2^20 pairs when the page was written; fewer than 0.92 rho of 2^17 by chance in one of 10^8 tries."""
    chosen = policy(2, 7, 0.1)
    certificate = bd.certify(chosen, bd.Bernoulli([0.5 - 0.00278, 0.5 + 0.00278]), pairs=2**17, seed=5)
    assert 0.092 <= certificate.mismatches / 2**17 <= chosen.rho


@pytest.mark.long
def test_the_grid_against_the_papers_constants() -> None:
    """36 problems: the guarantee holds in each, regret is lower in each, and 65 times lower in the geometric mean.

    The rate at which pairs differ is above rho in none, at LEVEL for all of them together.

    Regrets are means over 1,024 pairs at a fixed seed; the mean ratio was 154 when this was written, the worst 2.1.
    """
    ratios = []
    for arms in certified.ARMS:
        for horizon in certified.HORIZONS:
            for rho in certified.RHOS:
                for gap in certified.GAPS:
                    gaps = certified.profile("equal", arms, gap)
                    ratio, _, certificate = certified.cell(arms, horizon, rho, gaps)
                    assert certificate.bound is not None
                    assert certificate.bound <= rho
                    assert_rate_at_most(certificate.mismatches, certificate.pairs, rho, LEVEL / 36)
                    ratios.append(ratio)
    assert len(ratios) == 36
    assert min(ratios) >= 1.0
    assert certified.mean(ratios) >= 65.0
