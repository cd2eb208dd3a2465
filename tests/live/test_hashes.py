"""A live run hashes its events and the coins that it needs, and no digest a second time."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from banditto.live.experiment import Experiment
from banditto.live.registration import Registration
from tests.live.worlds import registration_of, small, small_policy


def test_fifty_asks_and_tells_hash_their_events_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    sha256 = hashlib.sha256

    def counted(content: bytes = b"", **options: Any) -> Any:
        starts = {b'{"arm_names"': "registration", b'{"arms"': "protocol", b"banditto": "coins"}
        others = (kind for start, kind in starts.items() if content.startswith(start))
        seen["event" if content.count(b"\n") == 4 else next(others, "unknown")] += 1
        return sha256(content, **options)

    made = registration_of(small_policy(10**4))
    with Experiment.create(f"sqlite:///{tmp_path}/x.db", "cta", Registration.from_json(made.to_json())) as experiment:
        before = experiment.status()
        monkeypatch.setattr(hashlib, "sha256", counted)
        for _ in range(50):
            (ticket,) = experiment.ask()
            experiment.tell(ticket.id, 0.5)
        monkeypatch.setattr(hashlib, "sha256", sha256)
        assert experiment.status().events == before.events + seen["event"]
    assert seen["event"] >= 100
    assert seen["registration"] == seen["protocol"] == seen["unknown"] == 0
    assert seen["coins"] <= 60  # a key for each block of slots that is permuted, and for each coin of a decision


def test_a_digest_belongs_to_its_object() -> None:
    """A copy with another content has another digest, and one that was sent to another process has the same."""
    one = small()
    other = replace(one, protocol=replace(one.protocol, seed=one.protocol.seed + 1))
    assert len({one.digest, other.digest, one.protocol.digest, other.protocol.digest}) == 4
    assert one.digest is one.digest
    assert one.protocol.digest is one.protocol.digest
    assert pickle.loads(pickle.dumps(one)).digest == one.digest
    assert one == Registration.from_json(one.to_json())  # of which one was hashed, the other was not
