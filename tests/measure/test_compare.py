"""Comparisons: rows, budgets, labels, curves, frames; and studies as files."""

from __future__ import annotations

import builtins
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.core.errors import InvalidArgument, MissingExtra
from banditto.core.text import fitted
from banditto.engine.player import player_of, run_of
from banditto.engine.watching import regret_curve
from banditto.measure.comparison import HEADER
from banditto.measure.study_file import PolicyLine, StudyFile

WORLD = bd.Bernoulli([0.3, 0.9, 0.6])
THRESHOLD = bd.RandomThreshold(arms=3, horizon=10**7, rho=0.2)


def test_rows_are_the_certificates_of_each_policy_alone() -> None:
    compared = bd.compare([THRESHOLD, bd.UCB1()], WORLD, pairs=60, rounds=40_000, seed=5)
    first, second = compared.entrants
    assert first.certificate == bd.certify(THRESHOLD, WORLD, pairs=60, seed=5)
    assert second.certificate == bd.certify(bd.UCB1(), WORLD, horizon=200, rho=0.2, pairs=60, seed=5)
    assert not compared.interrupted
    assert [row.executions for row in compared.entrants] == [120, 120]


@pytest.mark.parametrize(
    ("horizon", "pairs", "rounds", "length", "share"),
    [
        (10**7, 1000, 2 * 10**7, 10**5, 100),  # a hundred pairs of a horizon cut to fit
        (10**7, 10, 2 * 10**7, 10**5, 10),
        (1000, 1000, 2 * 10**7, 1000, 1000),  # all fits
        (1000, 10**5, 2 * 10**6, 1000, 1000),
        (10**7, 1000, 10**4, 50, 100),
    ],
)
def test_a_budget_of_rounds_is_kept(horizon: int, pairs: int, rounds: int, length: int, share: int) -> None:
    from banditto.measure.compare import allotment

    assert allotment(bd.UCB1(), WORLD, horizon, pairs, rounds) == (length, share)
    assert 2 * length * share <= rounds
    assert allotment(THRESHOLD, WORLD, horizon, pairs, rounds) == (None, pairs)


def test_labels_tell_rows_apart() -> None:
    paper = bd.RandomThreshold(arms=3, horizon=10**7, rho=0.2, constants="paper")
    compared = bd.compare([THRESHOLD, paper], WORLD, pairs=4)
    assert [row.label for row in compared.entrants] == ["random-threshold", "random-threshold:paper"]
    with pytest.raises(InvalidArgument, match="random-threshold more than once"):
        bd.compare([THRESHOLD, THRESHOLD], WORLD)
    named = bd.compare([THRESHOLD, THRESHOLD], WORLD, pairs=4, labels=["a", "b"])
    assert [row.label for row in named.entrants] == ["a", "b"]


@pytest.mark.parametrize(
    ("policies", "options", "said"),
    [
        ([], {}, "^policies: got 0 of them"),
        ([bd.UCB1()] * 25, {}, "^policies: got 25 of them"),
        ([THRESHOLD], {"labels": 5}, "^labels: got 5"),
        ([THRESHOLD], {"labels": ["two\nlines"]}, "^labels: got"),
        ([5], {"labels": ["a"]}, "^policies: got 5"),
        ("ucb1", {}, "^policies: got ucb1"),
        ([bd.UCB1], {}, "^policies: got the class UCB1, allowed: a policy object"),
        ([bd.UCB1()], {"rho": 0.1}, "^horizon: got None"),
        ([bd.UCB1()], {"horizon": 100}, "^rho: got None"),
        ([THRESHOLD, bd.UCB1()], {"rounds": 5}, "^rounds: got 5"),
        ([THRESHOLD], {"labels": ["a", "b"]}, "^labels: got 2 of them"),
        ([THRESHOLD], {"pairs": 0}, "^pairs: got 0"),
        ([THRESHOLD], {"jobs": 0}, "^jobs: got 0"),
        ([THRESHOLD], {"confidence": 2}, "^confidence: got 2"),
        ([bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)], {}, "^environment: got 3 arms"),
    ],
)
def test_bad_arguments(policies: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        bd.compare(policies, WORLD, **options)


def test_different_rhos_leave_the_baselines_without_one() -> None:
    other = bd.RandomThreshold(arms=3, horizon=10**7, rho=0.3)
    with pytest.raises(InvalidArgument, match="^rho: got None"):
        bd.compare([THRESHOLD, other, bd.UCB1()], WORLD, labels=["a", "b", "c"], pairs=4)
    rows = bd.compare([THRESHOLD, other, bd.UCB1()], WORLD, labels=["a", "b", "c"], pairs=4, rho=0.25, rounds=10**4)
    assert [row.certificate.rho for row in rows.entrants] == [0.2, 0.3, 0.25]


def test_frames_and_tables() -> None:
    compared = bd.compare([THRESHOLD, bd.UCB1()], WORLD, pairs=20, rounds=10**4)
    frame = compared.to_frame()
    assert list(frame["label"]) == ["random-threshold", "ucb1"]
    assert frame.loc[0, "agreement"] == compared.entrants[0].certificate.agreement
    assert len(frame.columns) == 25
    assert frame.loc[0, "share_of_random_play"] == compared.entrants[0].certificate.share_of_random_play
    found, about, table, explained = compared.table().split("\n\n")
    lines = table.splitlines()
    assert tuple(re.split("  +", lines[0])) == tuple(name for name in HEADER if name != "same")  # which is told above
    assert "10,000,000" in lines[2]
    assert ">ucb1</td>" in compared._repr_html_()
    assert found.replace("\n", " ").startswith("Two runs with the same seed ")
    assert "3 arms, 0/1 rewards with means" in about
    assert "seed 0" in about
    assert explained.startswith("agree: the share of pairs")


def test_what_was_found_is_told_first() -> None:
    early = bd.EarlyCut(arms=3, horizon=10**6, rho=0.2, gap=0.1)
    once = bd.OneCut(arms=3, horizon=10**6, rho=0.2, gap=0.1)
    found = bd.compare([early, once, bd.UCB1()], WORLD, pairs=100, rounds=10**4).finding
    assert found.startswith("Two runs with the same seed agree in 80% of pairs or more with early-cut (")
    assert "They do not with ucb1 (0.0%)." in found
    assert "if the same winner is enough; if every pull must be the same, one-cut, with " in found
    short = bd.compare([bd.RandomThreshold(arms=3, horizon=10**4, rho=0.2)], WORLD, pairs=100).finding
    assert "But here random-threshold might as well toss a coin" in short
    few = bd.compare([THRESHOLD, bd.BatchedElimination(arms=3, horizon=10**7)], WORLD, pairs=2).finding
    assert "too few pairs to show it by measurement alone: random-threshold" in few
    assert "Too few pairs to tell: batched-elimination" in few


def test_no_regret_is_more_or_less_nothing() -> None:
    """A policy whose regret hardly varies: the table says no ±0."""
    commit = bd.ExploreThenCommit(arms=3, horizon=10**5, rho=0.2, gap=0.3)
    table = bd.compare([commit], bd.Bernoulli([0.2, 0.9, 0.5]), pairs=100).table()
    assert "±0" not in table.replace("±0.", "")
    assert "± " not in table


def test_a_bound_that_needs_a_promise_is_not_said_to_hold_for_all_arms() -> None:
    commit = bd.ExploreThenCommit(arms=3, horizon=10**5, rho=0.2, gap=0.3)
    world = bd.Bernoulli([0.2, 0.9, 0.5])
    told = " ".join(bd.compare([commit], world, pairs=20).table().split())
    assert "whatever the arms (explore-then-commit: because these arms keep the promised gap)." in told
    assert "whatever the arms." in " ".join(bd.compare([THRESHOLD], WORLD, pairs=20).table().split())


def test_agreement_and_proof_are_on_one_scale() -> None:
    row = bd.compare([THRESHOLD], WORLD, pairs=100).table().split("\n\n")[2].splitlines()[2]
    agree, proved = re.findall(r"(?:≥)?(\d+\.\d)%", row)[:2]
    assert float(agree) >= float(proved) == 80.0
    assert "≥80.0%" in row


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_comparison_fits_the_terminal(width: int) -> None:
    compared = bd.compare([THRESHOLD, bd.UCB1()], WORLD, pairs=20, rounds=10**4)
    with fitted(width):
        lines = compared.table().splitlines()
    assert max(map(len, lines)) <= width
    assert any("10,000,000" in line for line in lines)


def test_frames_need_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_pandas(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real_import(name, *arguments, **options)

    compared = bd.compare([THRESHOLD], WORLD, pairs=4)
    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingExtra, match=r"pip install 'banditto\[data\]'"):
        compared.to_frame()


# -- curves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", [THRESHOLD, bd.BatchedElimination(arms=3, horizon=10**7), bd.UCB1()], ids=lambda policy: policy.name
)
def test_curves_end_at_the_regret_of_the_certificate(policy: Any) -> None:
    horizon = 2000 if isinstance(policy, bd.UCB1) else None
    run = run_of(policy, WORLD, seed=2, noise_seed=None, horizon=horizon)
    curve = regret_curve(run, 20)
    certificate = bd.certify(policy, WORLD, pairs=20, seed=2, horizon=horizon, rho=0.2)
    assert curve.mean[-1] == pytest.approx(certificate.regret.mean, rel=1e-12)
    assert curve.executions == 40
    assert (np.diff(curve.mean) >= 0).all()
    assert ((curve.low <= curve.mean + 1e-9) & (curve.mean <= curve.high + 1e-9)).all()
    assert curve.pulls[-1] == run.horizon


def test_regret_within_a_batch_follows_the_order_of_pulls() -> None:
    """Arms 1, 2, 3 in turn, n of each: losses 0.6, 0 and 0.3 a pull."""
    run = run_of(THRESHOLD, WORLD, seed=2, noise_seed=None, horizon=None)
    n = THRESHOLD.schedule.batch(1).pulls
    regrets = player_of(run).regrets_at(3, np.array([1, n // 2, n, 2 * n, 2 * n + 1, 3 * n]))
    expected = [0.6, 0.6 * (n // 2), 0.6 * n, 0.6 * n, 0.6 * n + 0.3, 0.9 * n]
    assert np.allclose(regrets, expected)


def test_first_pulls_that_differ_are_those_of_the_trajectories() -> None:
    """Against the two arm sequences themselves, run by run."""
    policy = bd.BatchedElimination(arms=3, horizon=10**5, gamma=1.0)
    run = run_of(policy, WORLD, seed=8, noise_seed=None, horizon=None)
    from banditto.engine.batched import BatchedPlayer

    counted: dict[int, int] = {}
    for pair in range(40):
        first, second = BatchedPlayer(run, policy).trajectories(pair)
        arms = [np.repeat([r.arm for r in t.streaks], [r.pulls for r in t.streaks]) for t in (first, second)]
        different = np.flatnonzero(arms[0] != arms[1])
        if different.size:
            pull = int(different[0]) + 1
            counted[pull] = counted.get(pull, 0) + 1
    certificate = bd.certify(policy, WORLD, pairs=40, seed=8, rho=0.2)
    assert certificate.divergence_pulls == dict(sorted(counted.items()))
    assert sum(counted.values()) == certificate.mismatches > 0


# -- studies as files -------------------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {"means": [0.5, 0.9], "horizon": 1e6, "rho": 0.2, "policies": ["random-threshold", "ucb1"]}


def test_a_study_survives_toml(tmp_path: Path) -> None:
    study = StudyFile.of(
        {
            **GOOD,
            "title": "Ünïcode & <b>",
            "environment": "gaussian:0.5",
            "pairs": 10,
            "rounds": "1e6",
            "seed": 1,
            "noise_seed": 2,
            "confidence": 0.9,
            "policies": ["ucb1", {"policy": "explore-then-commit", "gap": 0.1, "label": "ETC"}],
        }
    )
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml(), encoding="utf-8")
    assert StudyFile.load(str(path)) == study
    built = study.built()
    assert built.labels == ["ucb1", "ETC"]
    assert built.environment == bd.Gaussian([0.5, 0.9], 0.5)
    assert isinstance(built.policies[1], bd.ExploreThenCommit)
    assert built.policies[1].gap == 0.1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mean": [0.1]}, "did you mean 'means'"),
        ({"zebra": 1}, "^study: got the key 'zebra'"),
        ({"means": 5}, "^means: got 5"),
        ({"means": ["x", 1]}, "^means: got x"),
        ({"horizon": "long"}, "^horizon: got long"),
        ({"horizon": 10.5}, "^horizon: got 10.5"),
        ({"rho": 2}, "^rho: got 2"),
        ({"policies": []}, "^policies: got"),
        ({"policies": "ucb1"}, "^policies: got ucb1"),
        ({"policies": [5]}, "^policies: got 5"),
        ({"policies": [{"label": "x"}]}, "tables with policy"),
        ({"policies": [{"policy": "ucb1", "colour": "red"}]}, "the key 'colour'"),
        ({"policies": [{"policy": "ucb1", "label": ""}]}, "^label: got"),
        ({"title": 7}, "^title: got 7"),
        ({"title": "two\nlines"}, "^title: got"),
        ({"environment": 3}, "^environment: got 3"),
        ({"pairs": -1}, "^pairs: got -1"),
        ({"rounds": True}, "^rounds: got True"),
        ({"seed": "x"}, "^seed: got x"),
        ({"noise_seed": 0.5}, "^noise_seed: got 0.5"),
        ({"confidence": 1}, "^confidence: got 1"),
        ({"gap": "x"}, "^gap: got x"),
    ],
)
def test_bad_studies(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        StudyFile.of({**GOOD, **change})


def test_a_gap_that_nobody_needs_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no policy here needs one"):
        StudyFile.of({**GOOD, "gap": 0.1}).built()
    with pytest.raises(InvalidArgument, match="ucb1 does not need one"):
        StudyFile.of({**GOOD, "policies": [{"policy": "ucb1", "gap": 0.1}]}).built()


@pytest.mark.parametrize(("option", "value"), [("power", 0.9), ("control", 0), ("rate_at_most", 0.95)])
def test_options_of_a_study_are_common_or_a_policys_own(option: str, value: float, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=f"^{option}: got .*no policy here needs one"):
        StudyFile.of({**GOOD, "policies": ["ucb1"], option: value}).built()
    with pytest.raises(InvalidArgument, match=f"^{option}: got .*ucb1 does not need one"):
        StudyFile.of({**GOOD, "policies": [{"policy": "ucb1", option: value}]}).built()
    with pytest.raises(InvalidArgument, match=f"^{option}: got 2"):
        StudyFile.of({**GOOD, "policies": [{"policy": "one-cut", "gap": 0.1, option: 2}]}).built()
    other = {"power": 0.8, "control": 1, "rate_at_most": 0.92}[option]
    lines = ["ucb1", "one-cut", {"policy": "one-cut", "label": "own", option: other}]
    study = StudyFile.of({**GOOD, "gap": 0.1, "policies": lines, option: value})
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml(), encoding="utf-8")
    assert StudyFile.load(str(path)) == study
    common, own = study.built().policies[1:]
    assert (getattr(common, option), getattr(own, option)) == (value, other)
    assert study.with_flags(policies=(PolicyLine(policy="ucb1"),)) == replace(
        study, policies=(PolicyLine(policy="ucb1"),), gap=None, **{option: None}
    )


def test_files_of_arms_are_looked_for_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "arms.json").write_text(
        '{"arms": [{"values": [0, 1], "probabilities": [0.5, 0.5]}, {"values": [0, 1], "probabilities": [0.25, 0.75]}]}'
    )
    (tmp_path / "study.toml").write_text(
        'environment = "discrete:arms.json"\nhorizon = 1e6\nrho = 0.2\npolicies = ["ucb1"]\n'
    )
    assert StudyFile.load(str(tmp_path / "study.toml")).built().environment.means == (0.5, 0.75)


def test_the_documented_study_is_a_study(tmp_path: Path) -> None:
    from banditto.measure import study_file

    text = "\n".join(line[4:] for line in str(study_file.__doc__).splitlines() if line.startswith("    "))
    import tomllib

    study = StudyFile.of(tomllib.loads(text))
    assert set(study.__dataclass_fields__) == set(tomllib.loads(text))
    linear: dict[str, Any] = dict.fromkeys(("theta", "actions", "action_set", "dimension", "normalise"))
    logged: dict[str, Any] = dict.fromkeys(("arm_column", "reward_column", "reward_range", "log_digest"))
    assert len(replace(study, log=None, **logged, **linear).built().policies) == 5
    assert math.isclose(study.rho or 0, 0.1)
    lines = (PolicyLine(policy="certified-linear"),)
    none: dict[str, Any] = dict.fromkeys(("gap", "power", "control", "rate_at_most"))
    disc = replace(study, means=None, actions=None, normalise=None, policies=lines, **none)
    assert len(replace(disc, log=None, **logged).built().policies) == 1
    (tmp_path / "rewards.csv").write_text("arm,reward\na,1\nb,0\n")
    resampled = replace(study, means=None, environment=None, log=str(tmp_path / "rewards.csv"), **linear)
    assert replace(resampled, log_digest=None).built().environment.means == (1.0, 0.0)
    with pytest.raises(InvalidArgument, match="^log_digest: got 8bdec3cc..., allowed: .*, the log's own"):
        resampled.built()
