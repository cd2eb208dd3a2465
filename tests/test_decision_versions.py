"""Decisions can be improved: protocols of an earlier decision version still load the class that decides by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import banditto as bd
from banditto import policies
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.registry import Earlier
from banditto.policies.shared.elimination import Race
from banditto.problems.catalogue import build_policy, load_class
from banditto.testing import POLICY_CHECKS
from banditto.testing.policy_contract import Check, play

NAME = "random-threshold"


@dataclass(frozen=True, kw_only=True)
class Improved(bd.RandomThreshold):
    """A version 2 that keeps the arms with the smallest totals."""

    decision_version: ClassVar[int] = 2

    def decide(self, state: Race, totals: FloatArray, coins: Coins) -> Race:
        """As version 1 would on losses."""
        return super().decide(state, -totals, coins)


@pytest.fixture
def improved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry in which version 2 is the newest and version 1 is still there."""
    entry = policies.REGISTRY[NAME]
    newest = entry._replace(
        module=__name__, class_name="Improved", earlier=(Earlier(1, entry.module, entry.class_name),)
    )
    monkeypatch.setitem(policies.REGISTRY, NAME, newest)


def made(kind: type[bd.RandomThreshold] = bd.RandomThreshold) -> bd.RandomThreshold:
    return kind(arms=2, horizon=10**5, rho=0.3)


def plans(policy: object) -> list[list[list[int]]]:
    assert isinstance(policy, bd.RandomThreshold)
    return [np.asarray(plan).tolist() for plan in play(policy, Coins(3, count=64))[0]]


@pytest.mark.usefixtures("improved")
def test_a_protocol_gets_the_class_of_its_own_version() -> None:
    first, second = made().protocol(seed=3), made(Improved).protocol(seed=3)
    assert (first.decision_version, second.decision_version) == (1, 2)
    assert type(bd.policy_of(first)) is bd.RandomThreshold
    assert type(bd.policy_of(second)) is Improved
    assert plans(bd.policy_of(first)) == plans(made())
    assert plans(bd.policy_of(second)) == plans(made(Improved)) != plans(made())
    assert bd.policy_of(first) == made()


@pytest.mark.usefixtures("improved")
def test_by_name_one_gets_the_newest() -> None:
    world = bd.Bernoulli([0.4, 0.6])
    assert type(build_policy(NAME, arms=2, horizon=10**5, rho=0.3, environment=world)) is Improved
    assert load_class(policies.REGISTRY[NAME]) is Improved


@pytest.mark.usefixtures("improved")
@pytest.mark.parametrize("kind", [bd.RandomThreshold, Improved])
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract_of_both(kind: type[bd.RandomThreshold], check: Check) -> None:
    check(made(kind))


@pytest.mark.usefixtures("improved")
def test_unknown_versions_are_refused_in_one_line() -> None:
    with pytest.raises(InvalidArgument, match="^decision_version: got 3, allowed: 1 or 2, which this version"):
        bd.policy_of(replace(made().protocol(seed=3), decision_version=3))


def test_without_an_earlier_version_the_error_names_the_only_one() -> None:
    with pytest.raises(InvalidArgument, match="^decision_version: got 2, allowed: 1, which this version of banditto"):
        bd.policy_of(replace(made().protocol(seed=3), decision_version=2))


def test_an_experiment_goes_on_after_its_policy_was_improved(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """It was begun before; another version, under the same name, is another registration and does not go on."""
    url, protocol = f"sqlite:///{tmp_path}/a.db", bd.RandomThreshold(arms=2, horizon=500, rho=0.3).protocol(seed=3)
    with bd.Experiment.open(url, "trial", protocol) as trial:
        for ticket in trial.ask(50):
            trial.tell(ticket.id, reward=float(ticket.arm))
    request.getfixturevalue("improved")
    with bd.Experiment.open(url, "trial", protocol) as trial:
        while tickets := trial.ask(50):
            for ticket in tickets:
                trial.tell(ticket.id, reward=float(ticket.arm))
    assert bd.verify(url, "trial").holds
    with pytest.raises(bd.BandittoError), bd.Experiment.open(url, "trial", replace(protocol, decision_version=2)):
        pass
