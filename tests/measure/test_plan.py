"""Plans: what is solved for, what is refused, and what an answer holds."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.core.rewards import Rewards
from banditto.measure.plan.planner import Open, Planner
from banditto.measure.plan.plans import asked
from banditto.measure.plan.rehearsal import rehearse
from banditto.measure.plan.root_finding import first_on_ladder, near, rounded_up, smallest
from banditto.measure.plan.trial_plan import price_curves
from banditto.policies import REGISTRY
from banditto.policies.certified_elimination.ladder_search import LadderProblem, WindowShape
from banditto.policies.certified_elimination.named_gap import Aim, best_aim, commit_probability

pytestmark = pytest.mark.slow


def question(policy: str | None = None, arms: int = 3, **changes: Any) -> Any:
    known = {"actions": None, "environment": "bernoulli", "resolve": 0.95, "by": 0.5} | changes
    return asked(policy, arms, known["actions"], known["environment"], known["resolve"], known["by"])


def test_one_unknown_is_solved_for() -> None:
    found = bd.plan(arms=3, gap=0.1, rho=0.2)
    assert isinstance(found, bd.TrialPlan)
    assert found.policy.name == "one-cut"
    assert (found.gap, found.rho) == (0.1, 0.2)
    assert found.policy.horizon == found.horizon
    assert found.bound is not None
    assert found.bound <= 0.2
    assert found.resolved >= 0.95
    assert bd.policy_of(found.protocol) == found.policy
    content = found.to_dict()
    for name in (
        *("policy", "arms", "gap", "rho", "horizon", "expected_regret", "regret_interval", "exploration_pulls"),
        *("bound", "ratio_to_paper", "ratio_to_nonreplicable", "lower_bound", "ordinary_test", "alternatives"),
    ):
        assert content[name] is not None
    assert "certified-elimination" in found.table()
    assert "no replicable policy can do with less" in found.table()
    assert found._repr_html_().startswith("<table>")


def test_what_was_given_stays_as_it_is() -> None:
    found = bd.plan(arms=2, gap=0.2123456789, rho=0.3123456789)
    assert (found.gap, found.rho) == (0.2123456789, 0.3123456789)
    assert found.protocol.rho == "0.3123456789"
    assert found.policy.guarantee().total <= 0.3123456789


def test_the_same_request_has_the_same_answer() -> None:
    first, second = (bd.plan(arms=2, gap=0.2, rho=0.3) for _ in range(2))
    assert first.to_dict() == second.to_dict()


@pytest.mark.parametrize(
    ("arms", "gap", "rho"),
    [
        (5, 0.05, 0.1),
        pytest.param(2, 0.1, 0.3, marks=pytest.mark.long),
        pytest.param(3, 0.02, 0.02, marks=pytest.mark.long),
        pytest.param(10, 0.2, 0.05, marks=pytest.mark.long),
    ],
)
def test_there_and_back(arms: int, gap: float, rho: float) -> None:
    """The horizon, and from it rho and the gap again, within two percent."""
    planner = Planner(question(arms=arms), 0, lambda line: None)
    horizon = planner.horizon(gap, rho, 1.001)
    assert horizon is not None
    back, lead = planner.rho(gap, horizon, 1.001), planner.gap(rho, horizon, 1.001)
    assert back == pytest.approx(rho, rel=0.02)
    assert lead == pytest.approx(gap, rel=0.02)


@pytest.mark.parametrize("policy", ["random-threshold", "mean-rounding", "random-threshold:paper"])
def test_batches_that_jump_give_back_no_more_than_was_put_in(policy: str) -> None:
    """Their batches change with floor(log T): the shortest horizon may leave room for a smaller rho."""
    planner = Planner(question(policy), 0, lambda line: None)
    horizon = planner.horizon(0.2, 0.3, 1.001)
    assert horizon is not None
    back = planner.rho(0.2, horizon, 1.001)
    assert back is not None
    assert back <= 0.3 * 1.02


def test_a_promise_explores_too_little_with_a_large_rho() -> None:
    planner = Planner(question("explore-then-commit"), 0, lambda line: None)
    horizon = planner.horizon(0.05, 0.1, 1.001)
    assert horizon is not None
    assert not planner.feasible(0.05, 0.9, horizon)
    assert planner.rho(0.05, horizon, 1.001) == pytest.approx(0.1, rel=0.02)


@pytest.mark.long
def test_longer_horizons_for_smaller_gaps_and_rhos() -> None:
    planner = Planner(question(), 0, lambda line: None)
    lengths = [planner.horizon(gap, 0.2) or 0 for gap in (0.4, 0.2, 0.1, 0.05)]
    assert lengths == sorted(lengths)
    lengths = [planner.horizon(0.1, rho) or 0 for rho in (0.4, 0.2, 0.1, 0.05)]
    assert lengths == sorted(lengths)


@pytest.mark.long
def test_a_budget_of_regret_stands_in_for_a_second_unknown() -> None:
    found = bd.plan(arms=2, gap=0.2, regret=500)
    assert 480 <= found.regret.mean <= 500
    assert found.resolved >= 0.95


@pytest.mark.long
def test_a_budget_of_regret_with_rho_or_with_the_horizon() -> None:
    found = bd.plan(arms=2, gap=0.2, regret=500)
    other = bd.plan(arms=2, rho=found.rho, regret=500)
    assert other.gap == pytest.approx(0.2, rel=0.05)
    third = bd.plan(arms=2, horizon=found.horizon, regret=500)
    assert third.regret.mean <= 500
    assert third.gap == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize(
    ("request_", "argument", "offer"),
    [
        ({"gap": 0.05, "horizon": 5000}, "horizon", "at least .* a gap of at least"),
        ({"rho": 0.05, "horizon": 50}, "horizon", "at least"),
        pytest.param({"rho": 1e-5, "gap": 1e-4}, "gap", "a gap of at least .* rho of at least", marks=pytest.mark.long),
        ({"gap": 0.05, "regret": 1.0}, "regret", "at least"),
        ({"gap": 0.05}, "plan", "two of gap, rho and horizon"),
        ({"gap": 0.05, "rho": 0.1, "horizon": 10**6}, "plan", "two of gap"),
        ({"gap": 0.05, "rho": 0.1, "regret": 100}, "plan", "one of them and regret"),
        ({}, "plan", "two of gap"),
        ({"gap": 1.5, "rho": 0.1}, "gap", "0.98"),
        ({"gap": -0.1, "rho": 0.1}, "gap", "0.98"),
        ({"gap": 0.1, "rho": 1.5}, "rho", "between 0 and 1"),
        ({"gap": 0.1, "rho": 1e-9}, "rho", "1e-05"),
        ({"gap": 0.1, "horizon": 10**16}, "horizon", "integer"),
        ({"gap": 0.1, "regret": -1}, "regret", "above 0"),
        ({"gap": 0.1, "rho": 0.1, "policy": "ucb1"}, "policy", "certified-elimination"),
        ({"gap": 0.1, "rho": 0.1, "policy": "certified-linear"}, "policy", "linear problem"),
        ({"gap": 0.1, "rho": 0.1, "environment": "beta:2"}, "environment", "gaussian"),
        ({"gap": 0.1, "rho": 0.1, "resolve": 1.0}, "resolve", "at most 0.999"),
        ({"gap": 0.1, "rho": 0.1, "resolve": 0.9999}, "resolve", "0.999"),
        ({"gap": 0.1, "rho": 0.1, "by": 0}, "by", "above 0 and at most 1"),
        ({"gap": 0.1, "rho": 0.1, "by": 1.1}, "by", "above 0 and at most 1"),
        ({"gap": 0.1, "rho": 0.1, "power": 0.5}, "power", "above 0.5"),
        ({"gap": 0.1, "rho": 0.1, "power": 0.9, "resolve": 0.9}, "resolve", "power alone"),
        ({"gap": 0.1, "rho": 0.1, "rate_at_most": 1.0}, "rate_at_most", "between 0 and 1"),
        ({"gap": 0.2, "rho": 0.1, "rate_at_most": 0.1}, "gap", "to 0.1"),
        ({"gap": 0.1, "rho": 0.1, "rate_at_most": 0.2, "environment": "gaussian:1"}, "rate_at_most", "none but for"),
        ({"gap": 0.1, "rho": 0.1, "baseline": 0.3, "rate_at_most": 0.2}, "baseline", "from 0 to 0.2"),
        ({"gap": 0.1, "rho": 0.1, "seed": -1}, "seed", "integer"),
    ],
)
def test_what_cannot_be_says_what_could_be(request_: dict[str, Any], argument: str, offer: str) -> None:
    with pytest.raises(bd.InvalidArgument, match=f"^{argument}: .*{offer}"):
        bd.plan(**{"arms": 3} | request_)


def test_a_plan_needs_arms_or_actions() -> None:
    with pytest.raises(bd.InvalidArgument, match="^arms: "):
        bd.plan(gap=0.1, rho=0.1)


def test_a_plan_without_a_single_test_is_none() -> None:
    """One arm of two, blindly, is the right one half of the time; that keeps no promise."""
    planner = Planner(question(arms=2, resolve=0.4), 0, lambda line: None)
    assert not planner.feasible(0.05, 1e-4, 1000)
    ball = bd.plan(actions=bd.Ball(dimension=2), gap=0.3, rho=0.3)
    assert ball.policy.describe().rows
    assert ball.exploration_pulls > 100


def test_offers_are_enough() -> None:
    """What a refusal offers is feasible when it is asked for."""
    for policy, horizon in (("explore-then-commit", 6000), ("random-threshold", 10**6)):
        planner = Planner(question(policy, arms=5), 0, lambda line: None)
        with pytest.raises(bd.InvalidArgument) as refusal:
            planner.settled(Open(0.05, None, horizon))
        (shortest,) = re.findall(r"at least ([\d,]+) \(gap", refusal.value.allowed)
        (narrowest, share) = re.findall(r"a gap of at least ([\d.]+) \(rho ([\d.]+)\)", refusal.value.allowed)[0]
        assert planner.feasible(0.05, float(share), int(shortest.replace(",", "")))
        assert planner.feasible(float(narrowest), float(share), horizon)


@pytest.mark.long
@pytest.mark.parametrize(("policy", "most"), [("certified-elimination", 1.5), ("one-cut", 4.0)])
def test_very_sure_is_not_very_long(policy: str, most: float) -> None:
    """A ladder's cuts lie above all noise; the cut of one batch begins at 0, and being sure costs more."""
    sure = (0.9, 0.95, 0.99, 0.998)
    lengths = [bd.plan(arms=2, gap=0.2, rho=0.2, power=power, policy=policy).horizon for power in sure]
    assert lengths == sorted(lengths)
    assert lengths[-1] <= most * lengths[0]


def test_gaussian_rewards() -> None:
    """Gaps scale with sigma, so the horizon is the same."""
    first = bd.plan(arms=2, gap=0.4, rho=0.3, environment="gaussian:1")
    second = bd.plan(arms=2, gap=4.0, rho=0.3, environment="gaussian:10")
    assert first.horizon == pytest.approx(second.horizon, rel=0.01)
    assert first.instance.means == (-0.2, 0.2)


def test_linear_problems() -> None:
    angles = np.arange(6) * math.pi / 3
    points = np.column_stack([np.cos(angles), np.sin(angles)]) * 0.999
    found = bd.plan(actions=points, gap=0.1, rho=0.2, policy="least-squares-rounding")
    best, second = sorted(found.instance.means, reverse=True)[:2]
    assert best - second == pytest.approx(0.1, abs=1e-5)
    assert found.resolved >= 0.95
    assert found.ratio_to_paper is not None
    ball = bd.plan(actions=bd.Ball(dimension=2), gap=0.2, rho=0.2)
    assert ball.policy.name == "certified-linear"
    assert ball.ratio_to_nonreplicable is None
    assert ball.arms == 0


def test_a_rehearsal_knows_when_the_last_bad_arm_was_pulled() -> None:
    """Explore-then-commit stops pulling bad arms after K m pulls, unless it commits to one."""
    policy = bd.ExploreThenCommit(arms=3, horizon=10**4, rho=0.1, gap=0.2)
    world = bd.Bernoulli([0.4, 0.4, 0.6])
    played = rehearse(policy, world, 0.2, 500, seed=3)
    right = played.decided < 10**4
    assert set(played.decided[right].tolist()) == {3.0 * policy.pulls}
    assert np.allclose(played.regrets[right], 2 * policy.pulls * 0.2)
    assert played.resolved(0.5) == pytest.approx(float(right.mean()))
    assert played.resolved(3.0 * policy.pulls / 10**4 - 1e-6) == 0.0
    easy = rehearse(policy, bd.Bernoulli([0.5, 0.5, 0.6]), 0.2, 100, seed=3)  # nobody is that much worse
    assert set(easy.decided.tolist()) == {0.0}


def test_root_finding() -> None:
    assert smallest(lambda x: x >= 7.0, 1.0, 100.0, 1.001) == pytest.approx(7.0, rel=0.001)
    assert smallest(lambda x: True, 1.0, 100.0) == 1.0
    assert smallest(lambda x: False, 1.0, 100.0) is None
    holes = first_on_ladder(lambda x: 8.0 <= x <= 12.0 or x >= 50.0, 1.0, 100.0, 1.2, 1.001)
    assert holes == pytest.approx(8.0, rel=0.001)
    assert first_on_ladder(lambda x: False, 1.0, 100.0, 2.0) is None
    for guess in (1.0, 6.5, 7.5, 90.0):
        assert near(lambda x: x >= 7.0, guess, 1.0, 100.0, 1.1, 1.001) == pytest.approx(7.0, rel=0.001)
    assert near(lambda x: True, 5.0, 1.0, 100.0, 1.5, 1.001) == 1.0
    assert [rounded_up(value) for value in (7.2, 1234.0, 12345.0, 996_312.4)] == [8, 1234, 12350, 996_400]


def test_commit_probability_against_simulation() -> None:
    """P(lead > cut) by quadrature and by 400,000 draws, within five standard errors (false-failure rate 6e-7)."""
    generator, window = np.random.default_rng(5), WindowShape(4.0, 6.0)
    for arms in (2, 5):
        noise = 0.5 * generator.standard_normal((400_000, arms))
        lead = 7.0 + noise[:, 0] - noise[:, 1:].max(axis=1)
        rate = float(np.mean(lead > window.low + window.width * generator.random(400_000)))
        assert abs(commit_probability(7.0, arms, window, 0.5) - rate) <= 5.0 * math.sqrt(0.25 / 400_000)


def test_aims_are_certified_and_spend_what_they_say() -> None:
    problem = LadderProblem(4, 10**6, 0.2, Rewards("bounded", 0.5), 0.1)
    aim = Aim(0.1, 0.95, 0.5)
    policy = bd.CertifiedElimination.planned(aim, arms=4, horizon=10**6, rho=0.2)
    assert policy.guarantee().holds
    spent = [4 * sum(batch.pulls for batch in policy.schedule.batches[: k + 1]) for k in range(3)]
    assert min(abs(total / best_aim(problem, aim).spending - 1.0) for total in spent) <= 0.05


def test_curves_have_a_line_for_every_policy() -> None:
    points = price_curves(question(arms=2), 0.3, rhos=(0.2, 0.5))
    names = {point.policy for point in points}
    assert {"certified-elimination", "mean-rounding", "explore-then-commit"} < names
    assert names == {name for name, entry in REGISTRY.items() if not entry.linear} | {"random-threshold:paper"}
    for name in names - {"explore-then-commit"}:  # which with rho = 0.5 is wrong too often to keep any promise
        line = [point for point in points if point.policy == name]
        assert [point.rho for point in line] == [0.2, 0.5]
        assert line[0].regret >= line[1].regret * 0.99
