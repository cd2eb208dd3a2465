"""What is said of a decision explains it: means, cuts and coins are those that the policy compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from banditto.core.errors import InvalidArgument, LogError
from banditto.live.experiment import Experiment
from banditto.live.export import export, read_log
from banditto.live.replicate import grounds_of, replicate
from banditto.live.verify import verify
from banditto.report.audit import audit_page
from tests.live.worlds import registration_of, small_policy


def test_arms_are_dropped_that_are_behind_by_more_than_the_cut(tmp_path: Path) -> None:
    """random-threshold compares all rewards so far, not those of the last batch alone."""
    url = f"sqlite:///{tmp_path}/x.db"
    policy = small_policy(3000)
    registration = registration_of(policy)
    tests = len(policy.describe().rows) - 1  # after the last one arms are left out for want of pulls, too
    random, dropped = np.random.default_rng(5), []
    for run in range(30):
        with Experiment.create(url, f"run{run}", registration) as experiment:
            while (status := experiment.status()).state == "running":
                leads = random.uniform(-0.25, 0.25, 2)
                totals = {
                    arm: (n, float(n * (0.5 + lead)))
                    for (arm, n), lead in zip(status.plan.items(), leads, strict=False)
                }
                experiment.tell_totals(status.batch, totals)
        decisions = verify(url, f"run{run}").decisions
        for place, decision in enumerate(decisions[:tests]):
            if all(decision.counts):
                found = grounds_of(registration, decisions[: place + 1])
                late = max(found.side.behind.values()) > found.cuts["threshold"]
                assert late == (not all(decision.next_pulls))
                dropped.append((place, late))
    assert {(2, True), (2, False), (3, True), (3, False)} <= set(dropped)


def test_two_runs_that_part_in_the_second_batch(tmp_path: Path) -> None:
    """The same last batch, which alone would drop nobody, after different first ones."""
    url = f"sqlite:///{tmp_path}/x.db"
    for name, first in (("one", 0.8), ("two", 0.0)):
        with Experiment.create(url, name, registration_of(small_policy(3000))) as experiment:
            experiment.tell_totals(1, {0: (6, 0.0), 1: (6, 6 * first)})
            experiment.tell_totals(2, {0: (21, 0.0), 1: (21, 21 * 0.3)})
    found = replicate(f"{url}#one", f"{url}#two").divergence
    assert found is not None
    assert found.batch == 2
    assert found.sides[0].behind["0"] > found.cuts["threshold"] > found.sides[1].behind["0"]
    assert "mean of all batches so far" in audit_page(read_log(url, "one"))


def test_exported_logs_are_compared_like_stores(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    files = {}
    for name, wins in (("one", 6.0), ("two", 0.0)):
        with Experiment.create(url, name, registration_of(small_policy(3000))) as experiment:
            experiment.tell_totals(1, {0: (6, 0.0), 1: (6, wins)})
        files[name] = tmp_path / f"{name}.json"
        with files[name].open("w+b") as file:
            export(url, name, "json", file)
    both = replicate(f"{url}#one", f"{url}#two")
    assert both.divergence is not None
    for first, second in ((str(files["one"]), str(files["two"])), (f"{url}#one", str(files["two"]))):
        assert replicate(first, second) == both
    (tmp_path / "bad.json").write_text(files["two"].read_text().replace('"time": "20', '"time": "21'))
    with pytest.raises(LogError, match="^run 2: "):
        replicate(str(files["one"]), str(tmp_path / "bad.json"))
    for wrong in ("nothing.json", str(tmp_path)):
        with pytest.raises(InvalidArgument, match="^run: got .* allowed: a log that `banditto export"):
            replicate(str(files["one"]), wrong)
