"""A selection that is killed a hundred times says what it would have said in peace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import banditto as bd
from tests.live.test_select import killed

pytestmark = pytest.mark.long


def test_the_same_after_a_hundred_kills(tmp_path: Path) -> None:
    whole, _, _ = killed(tmp_path / "whole", 0, 1)
    left, part = 100, 0
    while left > 0:  # a selection that ends before it is killed often enough is begun again
        found, calls, kills = killed(tmp_path / str(part), left, part)
        assert found == whole
        assert calls >= json.loads(whole)["pulls"]
        assert bd.verify(f"sqlite:///{tmp_path}/{part}/select.db", "select").holds
        left, part = left - kills, part + 1
