"""Protocol files of baselines, as they were recorded; those of replicable policies are among the golden cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from banditto.core.protocol import Protocol
from banditto.policies import baselines
from banditto.problems.catalogue import policy_of

FOLDER = Path(__file__).parent / "protocols"


@pytest.mark.parametrize("name", baselines.REGISTRY)
def test_a_recorded_protocol_is_read_and_written_alike(name: str) -> None:
    stored = Protocol.load(FOLDER / f"{name}.json")
    policy: Any = policy_of(stored)
    assert policy.name == name
    known: dict[str, Any] = {"arms": 3, "horizon": 10**4, "rho": 0.2}
    missing = {key: value for key, value in known.items() if getattr(policy, key, None) is None}
    assert policy.protocol(seed=5, **missing).digest == stored.digest
