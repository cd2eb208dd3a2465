"""ExploreThenCommit is replicable on instances that keep its promise, and not on those that break it.

False-failure rate: at most 1e-6 over all instances (exact binomial bounds, Bonferroni, fixed seeds). Detectable: a true
P(differ) of 0.1305 on one instance is refused with probability 0.8 (asserted below).
"""

from __future__ import annotations

from typing import Any

import banditto as bd
from banditto.problems.environment import Environment
from banditto.testing import assert_rate_at_most, detectable_rate

RHO, PAIRS, LEVEL = 0.1, 4096, 1e-6


def instances() -> list[tuple[bd.ExploreThenCommit, Environment]]:
    """Gaps exactly as promised, where it is hardest; equal rivals, spread rivals, other rewards."""

    def policy(arms: int, gap: float, **more: Any) -> bd.ExploreThenCommit:
        return bd.ExploreThenCommit(arms=arms, horizon=10**6, rho=RHO, gap=gap, **more)

    return [
        (policy(2, 0.1), bd.Bernoulli([0.45, 0.55])),
        (policy(2, 0.1), bd.Bernoulli([0.55, 0.45])),
        (policy(2, 0.1), bd.Gaussian([0.0, 0.1])),
        (policy(2, 0.5), bd.Bernoulli([0.25, 0.75])),
        (policy(2, 0.02), bd.Bernoulli([0.5, 0.52])),
        (policy(5, 0.1), bd.Bernoulli([0.4, 0.4, 0.4, 0.4, 0.5])),
        (policy(5, 0.1), bd.Gaussian([0.1, 0.0, 0.0, 0.0, 0.0])),
        (policy(5, 0.3), bd.Beta([0.4, 0.7, 0.4, 0.4, 0.4], 0.1)),
        (policy(10, 0.1), bd.Bernoulli([0.45] * 9 + [0.55])),
        (policy(10, 0.05), bd.Gaussian([0.5] * 5 + [0.55] + [0.5] * 4)),
        (policy(10, 0.1), bd.Bernoulli([0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])),
        (policy(3, 0.5, sigma=2.0, rewards="gaussian"), bd.Gaussian([0.0, 0.0, 0.5], sigma=2.0)),
        (policy(50, 0.1), bd.Bernoulli([0.45] * 49 + [0.55])),
    ]


def test_no_instance_that_keeps_the_promise_breaks_ours() -> None:
    rows = instances()
    assert len(rows) >= 12
    assert detectable_rate(PAIRS, RHO, LEVEL / len(rows)) <= 0.1306
    differing = 0
    for seed, (policy, world) in enumerate(rows, 500):
        minimum = policy.minimum_horizon()
        assert minimum is not None
        assert policy.horizon >= 10 * minimum
        certificate = bd.certify(policy, world, pairs=PAIRS, seed=seed)
        assert certificate.bound is not None
        assert certificate.bound <= RHO
        assert_rate_at_most(certificate.mismatches, PAIRS, RHO, LEVEL / len(rows))
        differing += certificate.mismatches / PAIRS > RHO / 20
    assert differing >= 8  # all commit to one arm; in most, some pairs to different ones


def test_ties_break_it() -> None:
    """Off the promise half of all pairs differ (level 1e-9: at least two fifths), and no bound is claimed."""
    policy = bd.ExploreThenCommit(arms=2, horizon=10**6, rho=RHO, gap=0.1)
    certificate = bd.certify(policy, bd.Bernoulli([0.5, 0.5]), pairs=PAIRS, seed=1)
    assert certificate.bound is None
    assert certificate.verdict == "FAIL"
    assert_rate_at_most(PAIRS - certificate.mismatches, PAIRS, 0.6, 1e-9)
    assert certificate.mismatches > 0.4 * PAIRS
