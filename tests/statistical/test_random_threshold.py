"""RandomThreshold is replicable where it is hard to be: gaps inside its own undecided windows (see hard.py)."""

from __future__ import annotations

from typing import Any, Literal

import pytest

import banditto as bd
from banditto.policies.policy import Policy
from tests.statistical import hard

HORIZONS = {2: 10**7, 5: 10**9, 10: 10**10}


def measure(constants: Literal["certified", "paper"]) -> list[hard.Measured]:
    def make(arms: int, horizon: int) -> Policy[Any]:
        return bd.RandomThreshold(arms=arms, horizon=horizon, rho=hard.RHO, constants=constants)

    return hard.measure(make, HORIZONS)


@pytest.mark.parametrize("constants", ["certified", "paper"])
def test_no_instance_breaks_the_promise(constants: Literal["certified", "paper"]) -> None:
    hard.assert_promise_kept(measure(constants))
