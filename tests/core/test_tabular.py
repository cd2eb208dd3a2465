"""Frames, dictionaries and generators are taken where lists are; every wrong shape is an error of one line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import banditto as bd
from banditto.core.errors import BandittoError, InvalidArgument

ARROW = pytest.importorskip("pyarrow")
MATRIX = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]
POLICY = bd.ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5)
WORLD = bd.Bernoulli([0.9, 0.5])


class Series:
    """A polars series, as far as its documentation says: iterable, with `to_list` and `to_numpy`."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def to_list(self) -> list[Any]:
        return list(self.values)

    def to_numpy(self) -> Any:
        return np.array(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


class PolarsFrame:
    """A polars frame, as far as its documentation says: `columns` is a list, a column comes by name, no `__array__`."""

    def __init__(self, content: dict[str, list[Any]]) -> None:
        self.content = content

    @property
    def columns(self) -> list[str]:
        return list(self.content)

    def __getitem__(self, name: str) -> Series:
        return Series(self.content[name])

    def __iter__(self) -> Iterator[Series]:  # columns, and not rows
        return (Series(values) for values in self.content.values())

    def __len__(self) -> int:  # rows
        return len(next(iter(self.content.values())))

    def to_numpy(self) -> Any:
        return np.array(list(self.content.values())).T


COLUMNS: dict[str, list[Any]] = {"x": [1.0, 0.0, 0.6], "y": [0.0, 1.0, 0.6]}
LOGGED: dict[str, list[Any]] = {"arm": ["a", "b", "a"], "reward": [1, 0, 0]}
FRAMES: list[Callable[[dict[str, list[Any]]], Any]] = [pd.DataFrame, PolarsFrame, ARROW.table]


@pytest.mark.parametrize(
    "actions",
    [
        *(frame(COLUMNS) for frame in FRAMES),
        pd.DataFrame(COLUMNS, index=["red", "green", "blue"]),
        np.array(MATRIX),
        {"red": [1, 0], "green": [0, 1], "blue": [0.6, 0.6]},
        {"red": {"x": 1, "y": 0}, "green": {"y": 1, "x": 0}, "blue": {"x": 0.6, "y": 0.6}},
        [{"x": 1, "y": 0}, {"x": 0, "y": 1}, {"x": 0.6, "y": 0.6}],
        [np.array(row) for row in MATRIX],
        [pd.Series(row) for row in MATRIX],
        [Series(row) for row in MATRIX],
        tuple(map(tuple, MATRIX)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_actions_come_in_many_shapes(actions: Any) -> None:
    wanted = bd.FiniteActions(MATRIX)
    assert bd.FiniteActions(actions) == wanted
    assert bd.LinearBernoulli([0.5, 0.25], actions).actions == wanted
    assert bd.LinUCB(actions=actions).actions == wanted
    assert bd.g_optimal_design(actions) == bd.g_optimal_design(MATRIX)
    assert bd.LinearThreshold(actions=actions, horizon=10**5, rho=0.5).actions == wanted


def test_actions_and_means_may_be_generated() -> None:
    assert bd.FiniteActions(row for row in MATRIX) == bd.FiniteActions(MATRIX)
    assert bd.FiniteActions((value for value in row) for row in MATRIX) == bd.FiniteActions(MATRIX)
    assert bd.Bernoulli(mean / 10 for mean in (1, 2)).means == (0.1, 0.2)
    assert bd.LinearGaussian((value for value in (0.5, 0.25)), MATRIX).theta == (0.5, 0.25)
    assert bd.RewardLog.of(pair for pair in [("a", 1), ("b", 0)]).arms == ("a", "b")


@pytest.mark.parametrize(
    "means",
    [
        {"old": 0.1, "new": 0.2},
        pd.Series([0.1, 0.2], index=["old", "new"]),
        Series([0.1, 0.2]),
        np.array([0.1, 0.2]),
        pd.DataFrame({"mean": [0.1, 0.2]}),
        PolarsFrame({"mean": [0.1, 0.2]}),
        ("0.1", "0.2"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_means_come_in_many_shapes(means: Any) -> None:
    assert bd.Bernoulli(means).means == bd.Beta(means).means == bd.Gaussian(means).means == (0.1, 0.2)


@pytest.mark.parametrize(
    "rows",
    [
        *(frame(LOGGED) for frame in FRAMES),
        pd.DataFrame({**LOGGED, "when": ["now", "now", "now"]}),
        [{"arm": "a", "reward": 1}, {"arm": "b", "reward": 0}, {"arm": "a", "reward": 0}],
        {"a": [1, 0], "b": [0]},
        {"a": pd.Series([1, 0]), "b": (value for value in [0])},
        zip(LOGGED["arm"], LOGGED["reward"], strict=True),
        np.array([["a", "1"], ["b", "0"], ["a", "0"]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_log_comes_in_many_shapes(rows: Any) -> None:
    log = bd.RewardLog.of(rows)
    assert (log.arms, log.rewards) == (("a", "b"), ((1.0, 0.0), (0.0,)))
    assert bd.RewardLog.of(log.to_frame()) == log


def test_columns_of_a_log_have_the_names_that_one_gives() -> None:
    frame = pd.DataFrame({"button": ["a", "b"], "paid": [3, 4]})
    log = bd.RewardLog.of(frame, arm_column="button", reward_column="paid", high=5)
    assert log.rewards == ((3.0,), (4.0,))
    with pytest.raises(InvalidArgument, match=r"^log: got columns button, paid, allowed: a frame with one column arm$"):
        bd.RewardLog.of(frame)


def test_policies_may_be_generated_or_have_labels() -> None:
    named: dict[str, Any] = {"mine": POLICY, "theirs": bd.UCB1()}
    labelled = bd.compare(named, WORLD, pairs=2, rounds=10**4)
    assert [row.label for row in labelled.entrants] == ["mine", "theirs"]
    made = bd.compare((policy for policy in (POLICY,)), WORLD, pairs=2)
    assert [row.label for row in made.entrants] == ["explore-then-commit"]
    with pytest.raises(InvalidArgument, match="none, because the dictionary of policies has them"):
        bd.compare({"mine": POLICY}, WORLD, labels=["other"])


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trial.db"


@pytest.mark.parametrize("shape", ["dictionary", "frame", "polars", "generator", "arms"])
def test_rewards_are_told_in_many_shapes(shape: str, url: str) -> None:
    with bd.Experiment.open(url, "cta", POLICY.protocol(seed=1)) as trial:
        tickets = list(trial.ask(4))
        pairs = [(ticket.id, 1.0) for ticket in tickets]
        columns: dict[str, list[Any]] = {"ticket": [ticket.id for ticket in tickets], "reward": [1.0] * 4}
        told: dict[str, Any] = {
            "dictionary": dict(pairs),
            "frame": pd.DataFrame(columns),
            "polars": PolarsFrame(columns),
            "generator": iter(pairs),
            "arms": pd.DataFrame({**columns, "arm": [ticket.arm for ticket in tickets]}),
        }
        assert trial.tell_many(told[shape]) == ["recorded"] * 4
        assert trial.tell_many(dict(pairs)) == ["repeated"] * 4


def test_a_frame_with_the_wrong_arm_is_a_conflict(url: str) -> None:
    with bd.Experiment.open(url, "cta", POLICY.protocol(seed=1)) as trial:
        (ticket,) = trial.ask(1)
        frame = pd.DataFrame({"ticket": [ticket.id], "reward": [1.0], "arm": [1 - ticket.arm]})
        with pytest.raises(bd.ConflictError):
            trial.tell_many(frame)
        assert trial.status().tickets["told"] == 0


def test_an_asynchronous_experiment_takes_dictionaries_too(url: str) -> None:
    async def run() -> list[str]:
        with bd.Experiment.open(url, "cta", POLICY.protocol(seed=1)):
            pass
        async with await bd.AsyncExperiment.open(url, "cta") as trial:
            tickets = list(await trial.ask(2))
            first = await trial.tell_many({tickets[0].id: 1.0})
            second = await trial.tell_many(pd.DataFrame({"ticket": [tickets[1].id], "reward": [0.0]}))
            return [*first, *second]

    assert asyncio.run(run()) == ["recorded", "recorded"]


# -- wrong shapes -----------------------------------------------------------------------------------------------------

WRONG: list[Any] = [
    *("text", "", None, 0, -1, 3.5, True, float("nan"), 10**400, b"bytes", ..., type, object()),
    *([], {}, [[]], [None, None], [1, 2, 3], [[1, 2], [3]], [[1, 2, 3]], [["a", "b"], ["c", "d"]], [float("nan")] * 2),
    *([1 + 2j, 2], [("a", 1, 2)], [("a",)], {1, 2}, {"a": 1}, {"a": "x"}, {"a": [1, 2], "b": [3]}),
    *([{"a": 1}, {"b": 2}], np.array(1.0), np.zeros((0, 2)), np.zeros((2, 2, 2)), [np.array(1.0)]),
    *(pd.DataFrame(), pd.DataFrame({"x": [1.0, 2.0], "city": ["a", "b"]}), pd.DataFrame({"arm": ["a"], "wrong": [1]})),
    *(pd.Series(["a", "b"]), pd.Series([1.0, 2.0]), PolarsFrame({"x": [None, 1.0]})),
    pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
]
LOG = bd.RewardLog.of([("a", 1), ("b", 0)] * 20)
PROTOCOL = POLICY.protocol(seed=1)
BOX = [[1, 0], [0, 1], [-1, 0], [0, -1]]


def plan_with(policy: Any) -> Any:
    return bd.plan(arms=2, gap=0.5, rho=0.3, policy=policy)


CALLS: dict[str, Callable[[Any], Any]] = {
    "Bernoulli": bd.Bernoulli,
    "Gaussian": bd.Gaussian,
    "Beta": bd.Beta,
    "Discrete": bd.Discrete,
    "Discrete, one arm": lambda x: bd.Discrete([x, x]),
    "Discrete, its values": lambda x: bd.Discrete([(x, [1]), (x, [1])]),
    "Resampled": bd.Resampled,
    "LinearBernoulli, theta": lambda x: bd.LinearBernoulli(x, [[1, 0], [0, 1]]),
    "LinearBernoulli, actions": lambda x: bd.LinearBernoulli([0.1, 0.2], x),
    "CertifiedLinear": lambda x: bd.CertifiedLinear(actions=x, horizon=10**4, rho=0.5),
    "LinUCB": lambda x: bd.LinUCB(actions=x),
    "PhasedElimination": lambda x: bd.PhasedElimination(actions=x, horizon=1000),
    "FiniteActions": bd.FiniteActions,
    "g_optimal_design": bd.g_optimal_design,
    "Polytope, rows": lambda x: bd.Polytope(rows=x, bounds=[1, 1]),
    "Polytope, bounds": lambda x: bd.Polytope(rows=BOX, bounds=x),
    "Box": lambda x: bd.Box(low=x, high=(1, 1)),
    "Ball, cuts": lambda x: bd.Ball(dimension=2, cuts=x),
    "net": lambda x: bd.net(x, 0.5),
    "RewardLog": lambda x: bd.RewardLog(arms=("a", "b"), rewards=x),
    "RewardLog, arms": lambda x: bd.RewardLog(arms=x, rewards=((1,), (0,))),
    "RewardLog.of": bd.RewardLog.of,
    "RewardLog.of, arms": lambda x: bd.RewardLog.of([("a", 1), ("b", 0)], arms=x),
    "RewardLog.read": bd.RewardLog.read,
    "compare": lambda x: bd.compare(x, WORLD, pairs=2),
    "compare, labels": lambda x: bd.compare([POLICY], WORLD, pairs=2, labels=x),
    "compare, environment": lambda x: bd.compare([POLICY], x, pairs=2),
    "certify": lambda x: bd.certify(x, WORLD, pairs=2),
    "certify, environment": lambda x: bd.certify(POLICY, x, pairs=2),
    "certify, pairs": lambda x: bd.certify(POLICY, WORLD, pairs=x),
    "attack": lambda x: bd.attack(x, pairs_budget=1000),
    "calibrate": bd.calibrate,
    "replay": lambda x: bd.replay(x, LOG),
    "replay, log": lambda x: bd.replay(POLICY, x),
    "analyse": bd.analyse,
    "select": lambda x: bd.select(x, gap=0.3),
    "watch_pair": lambda x: bd.watch_pair(x, WORLD),
    "watch_pair, environment": lambda x: bd.watch_pair(POLICY, x),
    "replicate": lambda x: bd.replicate(x, "sqlite:///none.db#t"),
    "lower_bound": lambda x: bd.lower_bound(arms=x, gap=0.1, rho=0.1),
    "lai_robbins": lambda x: bd.lai_robbins(arms=2, gap=0.1, horizon=x),
    "plan, policy": lambda x: plan_with([x]),
    "policy_of": bd.policy_of,
    "Registration.of": lambda x: bd.Registration.of(PROTOCOL, x),
    "Registration.of, rewards": lambda x: bd.Registration.of(PROTOCOL, None, x),
    "Registration.of, protocol": bd.Registration.of,
    "Protocol.from_dict": bd.Protocol.from_dict,
    "Protocol.load": bd.Protocol.load,
    "reproduce": lambda x: x is None or bd.reproduce(quick=True, only=x),
    "Guarantee.on": lambda x: POLICY.guarantee().on(x),
}


def check(call: Callable[[Any], Any], wrong: Any) -> None:
    """Call with a wrong shape: it is taken, or there is an error of one line that says what was given."""
    said = ""
    try:
        call(wrong)
    except BandittoError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 600
    assert "lengths -1" not in said


@pytest.mark.parametrize("name", CALLS)
def test_wrong_shapes_are_errors_of_one_line(name: str) -> None:
    for wrong in WRONG:
        check(CALLS[name], wrong)


def test_wrong_shapes_that_are_told_are_errors_of_one_line(url: str) -> None:
    with bd.Experiment.open(url, "cta", PROTOCOL) as trial:
        (ticket,) = trial.ask(1)
        for call in (
            trial.tell_many,
            lambda x: trial.tell_many([x]),
            lambda x: trial.tell_many({ticket.id: x} if x not in (0, True) else {}),
            lambda x: trial.tell(x, 1.0),
            lambda x: trial.tell_totals(1, x),
            lambda x: trial.missing_many(x, "gone"),
        ):
            for wrong in WRONG:
                if not isinstance(wrong, np.ndarray | pd.DataFrame | pd.Series):
                    check(call, wrong)
        for told in (np.array(1.0), np.zeros((2, 2, 2)), pd.DataFrame(), pd.Series([1.0]), np.zeros((0, 2))):
            check(trial.tell_many, told)
        assert trial.status().tickets == {"open": 1, "told": 0, "missing": 0, "late": 0}


@pytest.mark.parametrize(
    ("call", "wrong", "line"),
    [
        (
            "FiniteActions",
            [1, 2, 3],
            "actions: got 1 as row 0, allowed: a matrix with a row of numbers for",
        ),
        ("FiniteActions", [[1, 0], [1]], "actions: got rows of lengths 1, 2, allowed: one row of finite numbers per"),
        (
            "FiniteActions",
            pd.DataFrame({"x": [1.0], "city": ["Rome"]}),
            "actions: got Rome in the column city",
        ),
        ("FiniteActions", pd.DataFrame(), "actions: got a frame with 0 columns and no rows, allowed: a matrix"),
        (
            "FiniteActions",
            [{"x": 1}, {"y": 1}],
            "actions: got row 1 with the keys y, allowed: the keys of row 0",
        ),
        ("FiniteActions", {1, 2}, "actions: got {1, 2}, allowed: a matrix with a row of numbers for each action"),
        (
            "RewardLog.of",
            [("a", 1), ("b", 1, 2)],
            "log: got 3 items in row 2, allowed: pairs (arm, reward)",
        ),
        ("RewardLog.of", [{"arm": "a"}], "log: got the keys arm in row 1, allowed: the keys arm and reward"),
        ("RewardLog.of", ["ab"], "log: got ab in row 1, allowed: pairs (arm, reward), or a frame with these columns"),
        ("RewardLog.of", {"a": 1}, "log: got 1, allowed: a list of rewards for a"),
        (
            "Bernoulli",
            pd.DataFrame({"a": [1], "b": [1]}),
            "means: got a frame with 2 columns, allowed: a list",
        ),
        (
            "LinearBernoulli, theta",
            {"x": 1, "y": 0},
            "theta: got a dictionary, allowed: a list of numbers",
        ),
        ("Registration.of, rewards", (0, 1, 2), "rewards: got 3 items, allowed: two numbers, such as (0, 1)"),
        ("compare", [], "policies: got 0 of them, allowed: a list of 1 to 24 policies"),
    ],
)
def test_an_error_says_what_was_given_and_what_is_allowed(call: str, wrong: Any, line: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        CALLS[call](wrong)
    assert str(caught.value).startswith(line)
