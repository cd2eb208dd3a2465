"""Calibrated constants: labelled wherever they are named, and not proved."""

from __future__ import annotations

from typing import Any

import pytest

import banditto as bd
from banditto.policies.shared.replicable import CALIBRATED

pytestmark = pytest.mark.slow

ANGLES = [[0.9, 0.1], [0.2, 0.8], [-0.6, 0.6]]
POLICIES: dict[str, Any] = {
    "certified-elimination": lambda: bd.CertifiedElimination(arms=3, horizon=10**5, rho=0.2),
    "random-threshold": lambda: bd.RandomThreshold(arms=3, horizon=10**7, rho=0.2),
    "mean-rounding": lambda: bd.MeanRounding(arms=3, horizon=10**7, rho=0.2),
    "explore-then-commit": lambda: bd.ExploreThenCommit(arms=3, horizon=10**5, rho=0.2, gap=0.2),
    "certified-linear": lambda: bd.CertifiedLinear(actions=ANGLES, horizon=10**6, rho=0.2),
    "certified-linear, thresholds": lambda: bd.CertifiedLinear(
        actions=ANGLES, horizon=10**6, rho=0.2, method="thresholds"
    ),
    "linear-threshold": lambda: bd.LinearThreshold(actions=ANGLES, horizon=10**8, rho=0.2),
    "least-squares-rounding": lambda: bd.LeastSquaresRounding(actions=ANGLES, horizon=10**6, rho=0.2),
    "net-threshold": lambda: bd.NetThreshold(actions=bd.Ball(dimension=1), horizon=10**8, rho=0.2),
}


@pytest.mark.parametrize("name", POLICIES)
def test_relaxed_constants_say_what_they_are(name: str) -> None:
    policy: Any = POLICIES[name]()
    relaxed = policy.relaxed(0.4)
    assert relaxed.rho == 0.2
    guarantee = relaxed.guarantee()
    assert not guarantee.holds
    assert 0.2 < guarantee.total <= 0.42
    assert guarantee.rho == 0.2
    assert CALIBRATED in guarantee.note
    assert CALIBRATED in guarantee.table()
    assert CALIBRATED in relaxed.describe().table()
    protocol = relaxed.protocol(seed=1)
    assert protocol.settings["constants"] == CALIBRATED
    assert CALIBRATED in protocol.to_toml()
    again: Any = bd.policy_of(bd.Protocol.from_toml(protocol.to_toml()))
    assert again.resolved() == relaxed.resolved()
    assert again.settings() == relaxed.settings()
    assert again.guarantee().total == guarantee.total
    assert protocol.digest != policy.protocol(seed=1).digest


def test_the_original_is_left_alone() -> None:
    policy = bd.CertifiedElimination(arms=3, horizon=10**5, rho=0.2)
    before = policy.schedule
    relaxed = policy.relaxed(0.3)
    assert policy.schedule == before
    assert policy.guarantee().holds
    assert relaxed.schedule.batches[0].pulls < before.batches[0].pulls
    assert policy.relaxed(0.2).schedule == before


def test_users_cannot_ask_for_the_label() -> None:
    constants: Any = "calibrated"
    with pytest.raises(bd.InvalidArgument, match="'certified' or 'paper'"):
        bd.RandomThreshold(arms=3, horizon=10**7, rho=0.2, constants=constants)


def test_calibration() -> None:
    policy = bd.RandomThreshold(arms=3, horizon=10**7, rho=0.3)
    found = bd.calibrate(policy, pairs_budget=20_000, seed=4)
    assert isinstance(found, bd.Calibration)
    assert found.label == CALIBRATED
    assert 0.3 < found.nominal_rho < 1.0
    assert found.worst.interval[1] <= 0.3
    assert found.regret_factor > 1.0
    assert found.pairs_tried <= 20_000 * found.attacks
    content = found.to_dict()
    assert content["constants"] == CALIBRATED
    assert content["bound"] is None
    assert CALIBRATED in found.table()
    assert CALIBRATED in found._repr_html_()
    assert found.policy.settings()["constants"] == CALIBRATED
    certificate = bd.certify(found.policy, bd.Bernoulli([0.4, 0.5, 0.6]), pairs=64)
    assert certificate.constants == CALIBRATED
    assert certificate.bound is None
    assert CALIBRATED in certificate.table()
    table = bd.compare([found.policy], bd.Bernoulli([0.4, 0.5, 0.6]), pairs=64)
    assert CALIBRATED in table.table()
    assert bd.calibrate(policy, pairs_budget=20_000, seed=4).to_dict() == content


def test_what_cannot_be_calibrated() -> None:
    for policy in (
        bd.UCB1(),
        bd.BatchedElimination(arms=2, horizon=1000),
        bd.MeanRounding(arms=3, horizon=10**12, rho=0.3, constants="paper"),
    ):
        with pytest.raises(bd.InvalidArgument, match="^policy: .*certified constants"):
            bd.calibrate(policy)
    with pytest.raises(bd.InvalidArgument, match="^pairs_budget: "):
        bd.calibrate(bd.CertifiedElimination(arms=2, horizon=10**4, rho=0.3), pairs_budget=10)
