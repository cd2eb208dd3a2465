"""RandomThreshold is replicable where it is hard to be: gaps inside its own undecided windows.

False-failure rate of each test: at most 1e-6 (exact binomial bounds, Bonferroni over its instances, fixed seeds).
Detectable: a true P(differ) of 0.1305 on one instance is refused with probability 0.8 (asserted below).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import pytest

import banditto as bd
from banditto.engine.batched import executions
from banditto.engine.pairs import Study, study_of
from banditto.policy import Policy
from banditto.testing.instances import Instance, hard_instances
from banditto.testing.statistics import assert_rate_at_most, detectable_rate

RHO = 0.1
PAIRS = 4096
HORIZONS = {2: 10**7, 5: 10**9, 10: 10**10}
LEVEL = 1e-6


class Measured(NamedTuple):
    instance: Instance
    certificate: bd.Certificate
    dropped: float


def measure(constants: Literal["certified", "paper"]) -> list[Measured]:
    def make(arms: int, horizon: int) -> Policy[Any]:
        return bd.RandomThreshold(arms=arms, horizon=horizon, rho=RHO, constants=constants)

    rows = []
    for number, instance in enumerate(hard_instances(make, HORIZONS)):
        certificate = bd.certify(instance.policy, instance.environment, pairs=PAIRS, seed=1000 + number)
        rows.append(Measured(instance, certificate, share_with_a_drop(instance, 1000 + number)))
    return rows


def share_with_a_drop(instance: Instance, seed: int) -> float:
    """The share of executions that dropped an arm before the end, over one block."""
    study: Study = study_of(instance.policy, instance.environment, seed=seed, noise_seed=None, horizon=None)
    first, _ = executions(study, instance.policy, 0)
    while first.advance() is not None:
        pass
    return float((~first.state.active).any(axis=1).mean())


@pytest.mark.parametrize("constants", ["certified", "paper"])
def test_no_instance_breaks_the_promise(constants: Literal["certified", "paper"]) -> None:
    rows = measure(constants)
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
