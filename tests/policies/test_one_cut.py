"""OneCut: its constants, its decisions, and every lemma of its proof, by enumeration and simulation."""

from __future__ import annotations

import warnings

import pytest

import banditto as bd
from banditto.core.errors import ShortHorizonWarning
from banditto.testing import POLICY_CHECKS
from banditto.testing.policy_contract import Check
from tests.lazily import Lazily


def _too_short() -> bd.OneCut:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        return bd.OneCut(arms=6, horizon=400, rho=0.1, gap=0.05)


POLICIES = Lazily(
    {
        "2 arms": lambda: bd.OneCut(arms=2, horizon=10**5, rho=0.2, gap=0.1),
        "2 arms, control": lambda: bd.OneCut(arms=2, horizon=10**5, rho=0.2, gap=0.1, control=1),
        "4 arms": lambda: bd.OneCut(arms=4, horizon=10**6, rho=0.1, gap=0.05),
        "4 arms, control": lambda: bd.OneCut(arms=4, horizon=10**6, rho=0.3, gap=0.05, control=2),
        "5 arms, rates": lambda: bd.OneCut(arms=5, horizon=10**6, rho=0.2, gap=0.02, rate_at_most=0.1),
        "3 arms, Gaussian": lambda: bd.OneCut(arms=3, horizon=10**6, rho=0.3, gap=0.2, sigma=2.0, rewards="gaussian"),
        "two early commits": lambda: bd.OneCut(arms=3, horizon=10**8, rho=0.1, gap=0.005),
        "least regret": lambda: bd.OneCut(arms=3, horizon=10**7, rho=0.1, gap=0.1, power=None),
        "100 arms": lambda: bd.OneCut(arms=100, horizon=10**8, rho=0.1, gap=0.05),
        "too short": _too_short,
    }
)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract(name: str, check: Check) -> None:
    check(POLICIES[name])
