"""Experiments whose policy names a winner: they end there, and two of them are compared by it."""

from __future__ import annotations

import json
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.errors import ConflictError
from banditto.live.experiment import Experiment
from banditto.live.export import read_log
from banditto.live.fold import Course
from banditto.live.registration import Registration
from banditto.live.replicate import replicate
from banditto.live.verify import verify
from banditto.live.winners import found_by
from banditto.report.audit import audit_page
from tests.commands import banditto
from tests.live.administrators import allow_tampering_with_file
from tests.live.worlds import exported, registration_of


@cache
def policy() -> bd.EarlyCut:
    return bd.EarlyCut(arms=2, horizon=2000, rho=0.3, gap=0.3)


def registered(**options: Any) -> Registration:
    return registration_of(policy(), **({"arm_names": ["old", "new"]} | options))


def told(url: str, name: str, means: tuple[float, float], seed: int = 7, most: int = 1000) -> None:
    """An experiment whose arms pay 1 so often, told as totals until it ends."""
    with Experiment.open(url, name, registered(seed=seed)) as trial:
        for _ in range(most):
            status = trial.status()
            if status.state != "running":
                return
            counts = list(status.plan.values())
            trial.tell_totals(
                status.batch,
                {arm: (n, float(round(n * mean))) for arm, (n, mean) in enumerate(zip(counts, means, strict=True))},
            )


def test_a_tell_may_end_it(store_url: str) -> None:
    with Experiment.create(store_url, "x", registered()) as trial:
        running = trial.status()
        assert (running.level, running.winner, running.decided_by) == ("winner", None, None)
        while tickets := trial.ask(1000).tickets:
            first, *rest = [(ticket.id, float(ticket.arm)) for ticket in tickets]
            trial.tell_many(rest)
            assert trial.status().state == "running"
            trial.tell(*first)  # the last reward of its batch
        status = trial.status()
        assert (status.state, status.winner, status.decided_by, status.plan) == ("finished", "new", "lead", {})
        assert status.spent < policy().horizon
        answer = trial.ask(5)
        assert (answer.state, answer.reason) == ("finished", "the experiment is finished: new is the winner")
        assert trial.tell(*first) == "repeated"
        with pytest.raises(ConflictError, match="has the reward 1.0 and was told 0.5|has the reward 0.0 and was"):
            trial.tell(first[0], 0.5)
        with pytest.raises(ConflictError, match="the experiment is finished"):
            trial.stop("enough")
        with pytest.raises(ConflictError, match="the experiment is finished"):
            trial.tell_totals(status.batch, {0: (1, 1.0)})
    with Experiment.open(store_url, "x") as again:  # as another process sees it
        assert again.status() == status
    found = verify(store_url, "x")
    assert (found.problem, found.winner, found.decisions[-1].winner, found.decisions[-1].next_pulls) == (
        None,
        "new",
        1,
        (),
    )
    log = json.loads(exported(store_url, "x", "json"))
    assert log["registration"]["protocol"]["settings"]["level"] == "winner"
    assert log["events"][-1]["content"]["winner"] == 1
    page = audit_page(read_log(store_url, "x"))
    assert "At the last look the best mean led by 1, and more than" in page
    assert "two runs name different winners with probability at most 0.3" in page


def test_a_coin_names_the_winner_of_a_tie(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    named = set()
    for seed in range(6):
        told(url, f"x{seed}", (0.5, 0.5), seed=seed)
        with Experiment.open(url, f"x{seed}") as trial:
            status = trial.status()
        assert (status.state, status.decided_by) == ("finished", "coin")
        named.add(status.winner)
    assert named == {"old", "new"}  # 2^-5 for one name alone; the seeds are fixed
    assert "so that the shared default was named" in audit_page(read_log(url, "x0"))


def test_what_decided_is_what_the_policy_compared() -> None:
    """By other means: where the cut and the margin are 0 nobody would win otherwise, and no cut can be beyond 1."""
    random = np.random.default_rng(3)
    seen = set()
    for seed in range(60):
        registration = registered(seed=seed)
        course = Course(registration)
        stage, batches = course.start(), []
        mean = random.uniform(0.2, 0.8, 2)
        while not stage.finished:
            totals = [float(random.binomial(n, p)) for n, p in zip(stage.pulls, mean, strict=True)]
            batches.append((stage.pulls, totals))
            stage = course.after(stage, totals)
        assert stage.winner is not None
        found = found_by(registration, batches)
        assert found is not None
        pulls = sum(counts[0] for counts, _ in batches)
        sums = np.sum([totals for _, totals in batches], axis=0)
        cut = float(Coins(seed).uniform("cut", 1)[0, 0]) * policy().schedule.width
        assert found.needed == pytest.approx(cut, abs=1e-12)
        assert found.lead == pytest.approx(abs(sums[0] - sums[1]) / pulls)
        assert found.decided_by == ("lead" if found.lead > found.needed else "coin")
        if found.decided_by == "lead":
            assert stage.winner == int(np.argmax(sums))
        else:  # of the two arms, the first of the shared ranking
            ranks = [float(Coins(seed).uniform("ranking", 1, arm)[0, 0]) for arm in range(2)]
            assert stage.winner == int(np.argmax(ranks))
        seen.add((found.decided_by, pulls == policy().cap))
    assert seen == {("lead", True), ("lead", False), ("coin", True), ("coin", False)}


def test_two_runs_are_compared_by_their_winners(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    for name, means in (("one", (0.1, 0.9)), ("two", (0.4, 0.7)), ("three", (0.9, 0.2)), ("tie", (0.5, 0.5))):
        told(url, name, means)
    told(url, "begun", (0.5, 0.5), most=1)
    same = replicate(f"{url}#one", f"{url}#two")
    assert same.decisions[0] < same.decisions[1]  # they stop at different looks
    assert (same.same, same.level, same.winners, same.compared) == (True, "winner", ("new", "new"), 1)
    other = replicate(f"{url}#one", f"{url}#three")
    assert (other.same, other.winners, other.compared) == (False, ("new", "old"), 1)
    assert other.divergence is not None
    assert other.divergence.sides[0].behind["old"] > 0 == other.divergence.sides[1].behind["old"]
    begun = replicate(f"{url}#one", f"{url}#begun")
    assert (begun.same, begun.compared, begun.winners) == (False, 0, ("new", None))

    def says(*runs: str) -> tuple[int, str, Any]:
        words = ["replicate", *(f"{url}#{run}" for run in runs)]
        plain, as_json = banditto(*words), banditto(*words, "--json")
        content = json.loads(as_json.stdout)
        schema = json.loads((Path(bd.__file__).parent / "schemas" / "replication.json").read_text())
        jsonschema.validate(content, schema)
        return plain.returncode, plain.stdout, content

    code, text, content = says("one", "two")
    assert code == 0
    assert text.startswith("the same winner: new, after ")
    assert (content["level"], content["winners"], content["same"]) == ("winner", ["new", "new"], True)
    code, text, content = says("one", "three")
    assert code == 3
    assert text.startswith("different winners (level: winner): new in run 1, old in run 2\n")
    assert says("one", "begun")[1].startswith("nothing to compare: not both have a winner")
    status = banditto("status", "tie", "--store", url)
    assert ", by the shared coin: nobody led by enough" in status.stdout
    assert "(level: winner), head" in banditto("verify", "one", "--store", url).stdout


def test_a_log_with_another_winner_does_not_verify(tmp_path: Path) -> None:
    """Nor one with a winner before the end: whoever can write hashes cannot make the policy decide otherwise."""
    url = f"sqlite:///{tmp_path}/x.db"
    told(url, "x", (0.1, 0.9))
    with sqlite3.connect(tmp_path / "x.db") as database:
        body = database.execute("SELECT body FROM banditto_event WHERE kind = 'decide' ORDER BY number DESC").fetchone()
    assert json.loads(body[0])["winner"] == 1
    for change, where in ((0, "DESC"), (1, "ASC")):
        edited = tmp_path / f"{where}.db"
        with sqlite3.connect(tmp_path / "x.db") as database, sqlite3.connect(edited) as copy:
            database.backup(copy)
            rewritten(copy, change, where)
        found = verify(f"sqlite:///{edited}", "x")
        assert found.problem == "a decision that the policy does not take (winner)"


def rewritten(database: sqlite3.Connection, winner: int, where: str) -> None:
    """Put a winner into the first or last decision, with hashes that fit from there on."""
    from banditto.live.event_log import FIRST_HASH, following

    query = "SELECT number FROM banditto_event WHERE kind = 'decide' ORDER BY number"
    (number,) = database.execute(f"{query} {where}").fetchone()
    previous = FIRST_HASH
    allow_tampering_with_file(database)
    for row in database.execute("SELECT number, kind, time, body FROM banditto_event ORDER BY number").fetchall():
        content = json.loads(row[3])
        if row[0] == number:
            content["winner"] = winner
        event = following(previous, row[0], row[1], row[2], content)
        database.execute("UPDATE banditto_event SET body=?, hash=? WHERE number=?", (event.body, event.hash, row[0]))
        previous = event.hash
    database.execute("UPDATE banditto_experiment SET head=?", (previous,))
