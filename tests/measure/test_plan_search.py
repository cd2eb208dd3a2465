"""What makes a plan's search short changes no answer: rehearsals that end early, and ladders that begin late."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import banditto as bd
from banditto.core.arrays import IntArray
from banditto.engine.batched import Execution
from banditto.measure.plan import rehearsal
from banditto.measure.plan.planner import PlanEffort, Planner
from banditto.measure.plan.plans import asked
from banditto.measure.plan.rehearsal import Allowance, rehearse, rehearse_within
from banditto.measure.plan.root_finding import first_on_ladder, near
from banditto.problems.environment import Environment

EXECUTIONS = 4500  # more than are played at once


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian:0.5"])
def test_a_rehearsal_ends_where_too_many_have_missed_the_promise_and_only_there(kind: str) -> None:
    question = asked("random-threshold", 3, None, kind, 0.9)
    policy = question.made(gap=0.3, rho=0.3, horizon=200_000)
    world: Environment = question.instance(0.3)
    whole = rehearse(policy, world, 0.3, EXECUTIONS, 0)
    for share in (0.1, 0.2, 0.5):
        misses = round(EXECUTIONS * (1.0 - whole.resolved(share)))
        for allowed in sorted({0, misses // 2, max(misses - 1, 0), misses, EXECUTIONS}):
            found = rehearse_within(policy, world, 0.3, EXECUTIONS, 0, Allowance(allowed, share))
            assert (found is None) == (misses > allowed)
            if found is not None:
                assert np.array_equal(found.regrets, whole.regrets)
                assert np.array_equal(found.decided, whole.decided)


@pytest.mark.parametrize("world", [bd.Bernoulli([0.3, 0.3, 0.6]), bd.Gaussian([0.0, 0.0, 0.3], sigma=0.5)], ids=repr)
def test_executions_that_are_done_are_left_out_and_counted_all_the_same(
    world: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Literal["bounded", "gaussian"] = "bounded" if isinstance(world, bd.Bernoulli) else "gaussian"
    policy = bd.EarlyCut(arms=3, horizon=20_000, rho=0.3, gap=0.15, rewards=kind)  # it ends in one after the other
    left_out: list[int] = []
    keep = Execution.keep

    def noted(execution: Execution, rows: IntArray) -> None:
        left_out.append(len(execution.pulls) - len(rows))
        keep(execution, rows)

    monkeypatch.setattr(Execution, "keep", noted)
    found = rehearse(policy, world, 0.3, 300, 0)
    assert sum(left_out) > 100
    monkeypatch.setattr(rehearsal, "_WORTH_MOVING", 0.0)
    left_out.clear()
    whole = rehearse(policy, world, 0.3, 300, 0)
    assert left_out == []
    assert np.array_equal(found.regrets, whole.regrets)
    assert np.array_equal(found.decided, whole.decided)


def test_a_ladder_that_begins_late_ends_at_the_same_rung() -> None:
    for turn in (7.0, 90.0, 1234.5):
        tried: list[float] = []

        def feasible(value: float, turn: float = turn, tried: list[float] = tried) -> bool:
            tried.append(value)
            return value >= turn

        plain = first_on_ladder(feasible, 1.0, 1e6, 1.3, 1.001)
        tried.clear()
        assert first_on_ladder(feasible, 1.0, 1e6, 1.3, 1.001, turn / 2.0) == plain
        assert min(tried) >= turn / 2.0
        assert first_on_ladder(feasible, 1.0, 1e6, 1.3, 1.001, 10.0 * turn) == plain  # too late: from the first rung
    assert first_on_ladder(lambda value: False, 1.0, 100.0, 1.3, 1.001, 50.0) is None


@pytest.mark.parametrize("policy", ["random-threshold:paper", "mean-rounding", "explore-then-commit", "one-cut"])
def test_horizons_of_several_rhos_are_those_of_each(policy: str) -> None:
    question, rhos = asked(policy, 2, None, "bernoulli", 0.9), (0.2, 0.3, 0.5)
    effort = PlanEffort(1024, 1.15, 1.01)
    together = dict(Planner(question, 0, lambda line: None, effort).horizons(0.4, rhos))
    alone = {rho: Planner(question, 0, lambda line: None, effort).horizon(0.4, rho, 1.01) for rho in rhos}
    assert together == alone
    assert None not in alone.values()


@pytest.mark.parametrize("turn", [1.0, 1.01, 37.0, 99.5, 100.0, 5000.0, 9999.0])
def test_a_guess_that_is_far_off_is_left_by_longer_and_longer_strides(turn: float) -> None:
    """The bracket is the one that single steps from the guess would have found."""
    tried: list[float] = []

    def feasible(value: float) -> bool:
        tried.append(value)
        return value >= turn

    guess, step, yes = 100.0, 1.08, 100.0
    found = near(feasible, guess, 1.0, 1e4, step, step)  # as fine as one step: the rung itself
    while yes < turn:
        yes *= step
    while yes / step >= turn:
        yes /= step
    assert found == pytest.approx(max(min(yes, 1e4), 1.0), rel=1e-9) or found == 1.0 == turn
    assert len(tried) <= 20
    assert near(lambda value: False, guess, 1.0, 1e4, step, 1.01) is None
    assert near(lambda value: True, guess, 1.0, 1e4, step, 1.01) == 1.0
