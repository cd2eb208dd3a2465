"""What the calibrated tests of all gap-testing policies share: measuring them where it is hard to be replicable.

False-failure rate of `assert_promise_kept`: at most LEVEL over all its rows (exact binomial bounds, Bonferroni, fixed
seeds). Detectable: a true P(differ) of 0.1305 on one of nineteen instances is refused with probability 0.8.
"""

from __future__ import annotations

from typing import NamedTuple

import banditto as bd
from banditto.engine.batched import BatchedPlayer
from banditto.engine.player import run_of
from banditto.testing.hard_instances import Instance, MakePolicy, hard_instances
from banditto.testing.statistics import assert_rate_at_most, detectable_rate

RHO = 0.1
PAIRS = 4096
LEVEL = 1e-6


class Measured(NamedTuple):
    instance: Instance
    certificate: bd.Certificate
    dropped: float


def measure(make: MakePolicy, horizons: dict[int, int], first_seed: int = 1000) -> list[Measured]:
    rows = []
    for seed, instance in enumerate(hard_instances(make, horizons), first_seed):
        certificate = bd.certify(instance.policy, instance.environment, pairs=PAIRS, seed=seed)
        rows.append(Measured(instance, certificate, share_with_a_drop(instance, seed)))
    return rows


def share_with_a_drop(instance: Instance, seed: int) -> float:
    """The share of executions that dropped an arm before the end, over one block."""
    run = run_of(instance.policy, instance.environment, seed=seed, noise_seed=None, horizon=None)
    first, _ = BatchedPlayer(run, instance.policy).executions(0)
    while first.advance() is not None:
        pass
    return float((~first.state.active).any(axis=1).mean())


def assert_promise_kept(rows: list[Measured]) -> None:
    assert len(rows) >= 12
    assert detectable_rate(PAIRS, RHO, LEVEL / len(rows)) <= 0.1306
    for instance, certificate, _ in rows:
        minimum = instance.policy.minimum_horizon()
        assert minimum is not None
        assert instance.policy.horizon >= 10 * minimum
        assert_rate_at_most(certificate.mismatches, certificate.pairs, RHO, LEVEL / len(rows))
    # a test that passes because nothing happens proves nothing
    assert sum(row.dropped > 0.5 for row in rows) >= 8
    assert sum(row.certificate.mismatches / PAIRS > RHO / 20 for row in rows) >= 4
