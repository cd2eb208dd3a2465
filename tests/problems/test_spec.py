"""From named values to what is played: text and values alike, and errors that name what the verb has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import banditto as bd
from banditto.cli import main
from banditto.cli.app import app
from banditto.cli.usage_errors import option_name
from banditto.core.errors import InvalidArgument
from banditto.problems.spec import ProblemSpec, chosen, chosen_blank, typed

LOG = "arm,reward\na,1\na,0\nb,0\nb,5\n"


def verb(name: str) -> Any:
    program: Any = get_command(app)
    return program.commands[name]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ({"means": "0.9, 0.8"}, {"means": (0.9, 0.8)}),
        ({"means": "-1,2", "environment": "gaussian:0.5"}, {"means": [-1, 2], "environment": "gaussian:0.5"}),
        (
            {"theta": "0.3,0.2", "action_set": "ball", "dimension": "2"},
            {"theta": [0.3, 0.2], "action_set": "ball", "dimension": 2},
        ),
        ({"log": "log.csv", "reward_range": "0,5"}, {"log": "log.csv", "reward_range": (0.0, 5.0)}),
    ],
    ids=str,
)
def test_text_and_values_name_the_same_environment(
    text: dict[str, Any], values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    assert ProblemSpec(**text).instance().to_dict() == ProblemSpec(**values).instance().to_dict()


def test_what_is_typed_becomes_a_value_and_values_stay() -> None:
    assert typed("horizon", "1e8") == typed("horizon", 10**8) == 10**8
    assert typed("means", "0.5,1") == (0.5, 1.0)
    assert typed("environment", "bernoulli") == "bernoulli"
    assert typed("seed", None) is None
    with pytest.raises(InvalidArgument, match=r"^reward_range: got 5,0, allowed: two numbers, the lower one first"):
        typed("reward_range", "5,0")


def test_a_policy_is_chosen_by_text_and_by_values() -> None:
    spec = ProblemSpec(means="0.9,0.8")
    by_text = chosen("random-threshold", spec.instance, horizon="1e6", rho="0.1", seed="3", gap=None)
    assert by_text == chosen("random-threshold", spec.instance, horizon=10**6, rho=0.1, seed=3, gap=None)
    assert by_text.policy == bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    kind = ProblemSpec(arms=3, dimension=2)
    blank = chosen_blank("linear-threshold", kind, horizon=10**6, rho=0.1, seed=None, gap=None)
    assert (len(blank.environment.means), blank.seed) == (3, 0)


def test_empty_means_beside_a_log_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    with pytest.raises(SystemExit):
        main(["certify", "ucb1", "--log", str(tmp_path / "log.csv"), "--means", "", "--horizon", "1e4", "--rho", "0.1"])
    assert "--means: got '', allowed: none, because the log has its own arms and rewards" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "argument", "words", "said"),
    [
        ("certify", "means", "", "--means"),
        ("certify", "noise_seed", "", "--noise-seed"),
        ("certify", "protocol", "", "POLICY"),
        ("certify", "backend", "--gpu", "--gpu"),
        ("certify", "address", "--cluster tcp://a:1", "--cluster"),
        ("certify", "arms", "--log=a.csv", "--log"),
        ("certify", "rewards", "--log a.csv", "--log"),
        ("certify", "means", "--log a.csv", "--log"),
        ("certify", "means", "--log a.csv --means 0.1", "--means"),
        ("certify", "means", "--theta 0.1 --actions a.csv", "--theta"),
        ("certify", "rate_at_most", "", "--rate-at-most"),
        ("replay", "means", "--log a.csv", "--log"),
        ("certify", "arms", "", "arms"),
        ("certify", "pulls", "", "pulls"),
        ("compare", "policy", "study.toml", "--policies"),
        ("compare", "study", "study.toml", "STUDY"),
        ("plan", "policy", "", "POLICY"),
        ("plan", "save", "", "--save"),
        ("design", "arms", "", "ARMS"),
        ("design", "actions", "", "ARMS"),
        ("init", "name", "", "--name"),
        ("init", "protocol", "", "PROTOCOL"),
        ("ask", "name", "", "NAME"),
        ("ask", "n", "", "-n"),
        ("ask", "horizon", "", "horizon"),
        ("tell", "reward", "", "REWARD"),
        ("tell", "from", "", "--from"),
        ("export", "format", "", "--format"),
        ("replicate", "store", "", "RUN"),
        ("replicate", "run", "", "RUN"),
    ],
)
def test_errors_name_arguments_as_the_verb_does(name: str, argument: str, words: str, said: str) -> None:
    assert option_name(argument, [name, *words.split()], verb(name)) == said


def test_without_a_verb_an_argument_keeps_its_name() -> None:
    assert option_name("means", [], None) == "means"


def test_what_is_inside_a_protocol_keeps_its_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`certify` has no option --pulls, so no message may name one."""
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    content = policy.protocol(seed=1).to_toml()
    path = tmp_path / "changed.toml"
    path.write_text(content.replace("pulls = 58", "pulls = -58"))
    with pytest.raises(SystemExit):
        main(["certify", str(path), "--means", "0.1,0.2"])
    assert capfd.readouterr().err.startswith("banditto: error: pulls: got -58")
