"""Rewards that contradict a promised rate are reported, and hardly ever those that keep it, however often one looks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import banditto as bd
from banditto.live.export import read_log
from banditto.live.promises import FALSE_ALARMS, contradictions, evidence
from banditto.live.registration import Registration
from banditto.report.audit import audit_page
from tests.cli.test_cli import schema
from tests.commands import banditto
from tests.live.worlds import registration_of


def rated(**options: Any) -> Registration:
    """Two arms, no rate above a tenth: one batch, or two if an early one may commit."""
    policy = bd.OneCut(arms=2, horizon=20_000, rho=0.3, gap=0.05, rate_at_most=0.1)
    return registration_of(policy, arm_names=["A", "B"], **options)


def test_evidence_is_at_most_that_of_the_mean_itself() -> None:
    """Chernoff's bound, n kl(mean, rate), is for one look at a number of rewards that was fixed before."""
    for count, total, rate in ((9000, 1240.0, 0.1), (50, 12.5, 0.1), (10**9, 2.001e8, 0.2), (3, 3.0, 0.01)):
        mean = total / count
        rest = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - rate)) if mean < 1.0 else 0.0
        best = count * (mean * math.log(mean / rate) + rest)
        assert 0.9 * best - math.log(40) < evidence(count, total, rate) < best
    for count, total in ((0, 0.0), (100, 10.0), (100, 3.0)):
        assert evidence(count, total, 0.1) == -math.inf


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.9])
def test_the_expectation_is_at_most_one(rate: float) -> None:
    """What Ville's inequality needs, added up over all outcomes: for coins of the rate, and for halves of coins."""
    for count in (1, 2, 5, 30, 200):
        for part in (1, 2):  # a reward is the mean of so many coins
            coins = part * count
            logs = [math.log(rate) * k + math.log1p(-rate) * (coins - k) for k in range(coins + 1)]
            known = [math.log(math.comb(coins, k)) + log for k, log in enumerate(logs)]
            weighted = (math.exp(log + evidence(count, k / part, rate)) for k, log in enumerate(known))
            assert math.fsum(weighted) <= 1.0


def test_whoever_looks_after_every_reward_sees_few_false_alarms() -> None:
    """4,000 runs at the largest rate that was promised, 500 looks each: 17 alarms or more come once in 10^6 if the
    chance is 1/1000, and nearly always if it is 1/100."""
    noise = np.random.default_rng(7)
    rate, needed = 0.1, math.log(FALSE_ALARMS)
    totals = np.cumsum(noise.random((4000, 500)) < rate, axis=1)
    table = {
        (n, k): evidence(n, k, rate) > needed for n in range(1, 501) for k in range(int(totals[:, n - 1].max()) + 1)
    }
    alarms = sum(any(table[n, k] for n, k in enumerate(run, 1)) for run in totals.tolist())
    assert alarms <= 16


def test_without_a_promise_there_is_nothing_to_contradict() -> None:
    plain = registration_of(bd.OneCut(arms=2, horizon=20_000, rho=0.3, gap=0.05))
    assert contradictions(plain, [([900, 900], [900.0, 900.0])]) == []


def test_batches_add_up_and_arms_are_named() -> None:
    assert contradictions(rated(), [([900, 900], [90.0, 100.0])]) == []
    lines = contradictions(rated(), [([4000, 4000], [400.0, 500.0]), ([0, 5000], [0.0, 740.0])])
    said = "arm B: the mean of 9,000 rewards is 0.1378, which contradicts rate_at_most 0.1"
    assert lines == [f"{said}; the guarantee does not cover this"]
    scaled = contradictions(rated(rewards=(0.0, 5.0)), [([900, 900], [90.0, 300.0])])
    assert "is 0.3333 where 0 is 0 and 5 is 1, which contradicts" in scaled[0]


def test_a_status_warns_of_tickets_and_of_totals(store_url: str) -> None:
    """Of 0 to 5 as a policy sees them: a reward of 0.25 is 0.05, one of 2.5 is 0.5."""
    with bd.Experiment.create(store_url, "cta", rated(rewards=(0.0, 5.0))) as trial:
        assert trial.status().warnings == ()
        trial.tell_many([(ticket.id, 2.5 if ticket.arm_name == "B" else 0.25) for ticket in trial.ask(10)])
        assert trial.status().warnings == ()  # five rewards of a half say little
        trial.tell_many([(ticket.id, 2.5 if ticket.arm_name == "B" else 0.25) for ticket in trial.ask(200)])
        status = trial.status()
        assert [line.partition(":")[0] for line in status.warnings] == ["arm B"]
        assert "the mean of 105 rewards is 0.5 where 0 is 0 and 5 is 1" in status.warnings[0]
        assert status.to_dict()["warnings"] == list(status.warnings)
    with bd.Experiment.create(store_url, "all", rated()) as trial:
        while (status := trial.status()).state == "running":
            trial.tell_totals(status.batch, {arm: (count, count // 5) for arm, count in status.plan.items()})
        assert status.spent == 20_000
        assert [line.partition(":")[0] for line in status.warnings] == ["arm A", "arm B"]
    page = audit_page(read_log(store_url, "all"))
    assert "The promise is broken. Arm A: the mean of" in page
    assert "either arm, by a shared coin" in page  # what the rule falls back to
    assert "The promise is broken" not in audit_page(read_log(store_url, "cta"))  # no batch is decided


def test_the_command_line_warns_in_words_and_as_json(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(rated().protocol.to_toml())
    store = ("--store", "sqlite:///trial.db")
    banditto("init", "plan.toml", *store, "--name", "cta", "--arm-names", "A,B", cwd=tmp_path)
    fine = banditto("status", "cta", *store, "--json", cwd=tmp_path)
    assert (json.loads(fine.stdout)["warnings"], json.loads(fine.stdout)["schema_version"]) == ([], 3)
    counts = json.loads(fine.stdout)["plan"]
    lines = [f"1,{arm},{count},{count // 4}" for arm, count in counts.items()]
    (tmp_path / "totals.csv").write_text("\n".join(["batch,arm,count,total", *lines]) + "\n")
    assert banditto("tell", "cta", "--totals", "totals.csv", *store, cwd=tmp_path).returncode == 0
    said = banditto("status", "cta", *store, cwd=tmp_path)
    assert said.returncode == 0
    assert said.stderr.startswith("banditto: warning: arm A: the mean of")
    assert said.stderr.endswith("which contradicts rate_at_most 0.1; the guarantee does not cover this\n")
    printed = json.loads(banditto("status", "cta", *store, "--json", cwd=tmp_path).stdout)
    jsonschema.validate(printed, schema("status"))
    assert [f"banditto: warning: {line}" for line in printed["warnings"]] == said.stderr.splitlines()
