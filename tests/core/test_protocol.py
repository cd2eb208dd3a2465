from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditto as bd
from banditto.core.errors import InvalidArgument
from banditto.core.protocol import Protocol, fraction, from_fraction

BASE: dict[str, Any] = {
    "policy": "random-threshold",
    "decision_version": 1,
    "arms": 2,
    "horizon": 10**15,
    "rho": "0.1",
    "seed": 2**100,
    "settings": {"constants": "paper", "flag": True},
    "resolved": {"batches": [{"pulls": 3, "low": "0x1.8p+1"}]},
}


def test_json_and_toml_bring_the_same_protocol_back(tmp_path: Path) -> None:
    protocol = Protocol(**BASE)
    assert Protocol.from_json(protocol.to_json()) == protocol
    small = Protocol(**BASE | {"seed": 7})
    assert Protocol.from_toml(small.to_toml()) == small
    for name, text in (("p.toml", small.to_toml()), ("p.json", small.to_json())):
        (tmp_path / name).write_text(text)
        assert Protocol.load(tmp_path / name).digest == small.digest


def test_digest_is_that_of_canonical_json_and_of_nothing_else() -> None:
    protocol = Protocol(**BASE)
    reordered = json.dumps(dict(reversed(list(protocol.to_dict().items()))), indent=3)
    assert Protocol.from_json(reordered).digest == protocol.digest
    assert protocol.digest == "f02957cbb3ba3c51257bdfbb744bcb15100ef348b7c77e3e8db1e8c79fabfabe"
    changes: list[dict[str, Any]] = [
        {"seed": 1},
        {"rho": "0.2"},
        {"horizon": 11},
        {"decision_version": 2},
        {"settings": {}},
    ]
    for change in changes:
        assert Protocol(**BASE | change).digest != protocol.digest


def test_a_protocol_cannot_be_changed() -> None:
    settings: Any = Protocol(**BASE).settings
    with pytest.raises(TypeError):
        settings["constants"] = "certified"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": 2, "new_key": 1}, "a newer banditto wrote this"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"rho": 0.1}, "^rho: got 0.1, allowed: text"),
        ({"arms": True}, "^arms: got True"),
        ({"seed": -1}, "^seed: got -1"),
        ({"resolved": {"low": 0.5}}, "^resolved: got 0.5"),
        ({"settings": {"nothing": None}}, "^settings: got None"),
        ({"settings": 5}, "^settings: got 5, allowed: a table"),
        ({"resolved": ["blowup"]}, "^resolved: got"),
        ({"rho": "2"}, "^rho: got 2"),
        ({"rho": "a tenth"}, "^rho: got a tenth"),
    ],
)
def test_what_is_not_a_protocol_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        Protocol.from_dict({"schema_version": 1} | BASE | change)


@pytest.mark.parametrize("text", ["{", "[1]", "null", "", "[" * 100_000, '{"seed": ' + "9" * 5000 + "}"])
def test_broken_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="^protocol: got"):
        Protocol.from_json(text)


def test_the_same_rho_gives_the_same_digest() -> None:
    assert Protocol(**BASE | {"rho": "0.10"}).digest == Protocol(**BASE).digest


def test_protocols_can_be_copied_sent_and_hashed() -> None:
    protocol = Protocol(**BASE)
    for copied in (pickle.loads(pickle.dumps(protocol)), copy.deepcopy(protocol)):
        assert copied == protocol
        assert hash(copied) == hash(protocol)
    assert dataclasses.asdict(protocol)["arms"] == 2


def test_missing_keys_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no key 'arms'"):
        Protocol.from_dict({"schema_version": 1, **{key: value for key, value in BASE.items() if key != "arms"}})
    with pytest.raises(InvalidArgument, match="readable text file"):
        Protocol.load(tmp_path / "nowhere.toml")
    with pytest.raises(InvalidArgument, match="no TOML"):
        Protocol.from_toml("= 1")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_fractions_are_exact(value: float) -> None:
    assert from_fraction(fraction(value), "low") == value


@pytest.mark.parametrize("text", ["", "zero", "inf", "nan", "0x1p99999", None])
def test_bad_fractions_are_refused(text: Any) -> None:
    with pytest.raises(InvalidArgument, match="hexadecimal fraction"):
        from_fraction(text, "low")


# -- what policies write ----------------------------------------------------------------------------------------------


def test_a_replicable_policy_cannot_be_written_down_as_another_one() -> None:
    policy: Any = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.5)
    assert policy.protocol(seed=1).rho == "0.5"
    for name, value in (("rho", 0.01), ("horizon", 12_345), ("arms", 3), ("rho", 0.5)):
        with pytest.raises(InvalidArgument, match=f"^{name}: got {value}, allowed: nothing, because random-threshold"):
            policy.protocol(seed=1, **{name: value})


def test_a_baseline_is_told_what_it_does_not_know_and_nothing_else() -> None:
    index: Any = bd.UCB1()
    written = index.protocol(seed=1, arms=3, horizon=100, rho=0.2)
    assert (written.arms, written.horizon, written.rho) == (3, 100, "0.2")
    with pytest.raises(InvalidArgument, match="^horizon: got nothing, allowed: a number, because ucb1 has none"):
        index.protocol(seed=1, arms=3, rho=0.2)
    batched: Any = bd.BatchedElimination(arms=3, horizon=100)
    assert batched.protocol(seed=1, rho=0.2).arms == 3
    with pytest.raises(InvalidArgument, match="^arms: got 4, allowed: nothing"):
        batched.protocol(seed=1, arms=4, rho=0.2)
    linear: Any = bd.LinUCB(actions=bd.FiniteActions([[1, 0], [0, 1]]))
    assert linear.protocol(seed=1, horizon=100, rho=0.2).arms == 2


def test_protocols_of_a_net_speak_of_the_set_that_it_is_played_on() -> None:
    policy = bd.NetThreshold(actions=bd.Box.unit(1), horizon=10**8, rho=0.3)
    assert policy.protocol(seed=1).arms == policy.arms > 1
    assert bd.certify(policy, bd.LinearBernoulli([0.5], policy.actions), pairs=2).protocol.arms == 0


def test_policies_are_made_by_their_constructors_alone() -> None:
    """No object is put together from outside: what is resolved is handed to the constructor."""
    for file in (Path(bd.__file__).parent).rglob("*.py"):
        for line in file.read_text(encoding="utf-8").splitlines():
            assert "object.__new__" not in line, file
            assert not re.search(r"(?<!\bself)\._set\(", line), file
            assert not re.search(r"object\.__setattr__\((?!self\b)", line), file


def test_a_resolved_schedule_is_taken_as_it_is() -> None:
    policies: list[Any] = [
        bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.3, gap=0.2),
        bd.RandomThreshold(arms=2, horizon=10**5, rho=0.3),
        bd.MeanRounding(arms=2, horizon=10**5, rho=0.3),
        bd.LinearThreshold(actions=[[1.0], [0.5]], horizon=10**7, rho=0.3),
        bd.LeastSquaresRounding(actions=[[1.0], [0.5]], horizon=10**7, rho=0.3),
        bd.NetThreshold(actions=bd.Box.unit(1), horizon=10**8, rho=0.3),
    ]
    for policy in policies:
        again = dataclasses.replace(policy, schedule=policy.schedule)
        assert again == policy
        assert again.protocol(seed=1) == policy.protocol(seed=1)
        assert "schedule" not in repr(policy)
