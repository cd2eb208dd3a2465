"""A/A tests: how often a lead decides where all arms are the same, against what is computed without the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.engine.batched import Execution
from banditto.engine.leads import count_led
from banditto.engine.player import Run, run_of
from banditto.measure.named_by_lead import MOST_EXECUTIONS
from banditto.numbers.intervals import clopper_pearson
from banditto.policies.certified_elimination import ladder
from banditto.policies.one_cut.cut_constants import CutSchedule, EarlyCommit
from banditto.policies.policy import Leading
from tests.commands import banditto
from tests.lazily import Lazily

SAME = bd.Bernoulli([0.5, 0.5])
THREE = bd.Bernoulli([0.5, 0.5, 0.5])
ACTIONS = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]


def one_cut(arms: int = 2, **more: Any) -> bd.OneCut:
    return bd.OneCut(arms=arms, horizon=10**6, rho=0.1, gap=0.05, **more)


def early_cut(arms: int = 2, **more: Any) -> bd.EarlyCut:
    return bd.EarlyCut(arms=arms, horizon=10**6, rho=0.1, gap=0.05, **more)


def run(policy: Any, environment: Any, seed: int = 0) -> Run:
    return run_of(policy, environment, seed=seed, noise_seed=None, horizon=None)


# -- the share --------------------------------------------------------------------------------------------------------


def leads(arms: int, pulls: int, low: float, width: float) -> float:
    """P(the best of so many standard normal means leads by more than low + coin * width), by quadrature."""
    x = np.linspace(-9.0, 9.0, 4001)  # the leader, in its standard deviations
    cuts = low + width * (np.arange(2000) + 0.5) / 2000
    density = np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi) * (x[1] - x[0])
    all_behind = [float(density @ ndtr(x - cut * np.sqrt(pulls)) ** (arms - 1)) for cut in cuts]
    return arms * float(np.mean(all_behind))


EARLY = CutSchedule(early=(EarlyCommit(100, 0.1, 0.4),), pulls=400, width=0.3, knots=())


NORMAL = Lazily(
    {
        "two arms": lambda: one_cut(rewards="gaussian", sigma=1.0),
        "four arms": lambda: one_cut(arms=4, rewards="gaussian", sigma=1.0),
        "early commits": lambda: one_cut(rewards="gaussian", sigma=1.0, schedule=EARLY),
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMAL)
def test_one_cut_names_by_lead_as_often_as_its_law_says(name: str) -> None:
    """False failures: 1e-6 each. Shares are 0.14, 0.05 and 0.27; 3.5 points off are found with 0.98 or more."""
    policy, going = NORMAL[name], 1.0
    for pulls, low, width in (*policy.schedule.early, (policy.schedule.pulls, 0.0, policy.schedule.width)):
        going *= 1.0 - leads(policy.arms, pulls, low, width)
    found = bd.certify(policy, bd.Gaussian([0.3] * policy.arms, sigma=1.0), pairs=10_000, seed=3).named_by_lead
    assert found is not None
    assert found.executions == MOST_EXECUTIONS
    number = round(found.share * found.executions)
    tail = 5e-7
    assert binom.ppf(tail, found.executions, 1.0 - going) <= number <= binom.isf(tail, found.executions, 1.0 - going)
    assert found.interval == clopper_pearson(number, found.executions, 0.95)


@dataclass
class Recorder:
    """An environment that keeps what was drawn, batch by batch."""

    inner: Any
    drawn: list[FloatArray]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        totals: FloatArray = self.inner.draw(pulls, noise)
        self.drawn.append(totals)
        return totals


def played(policy: Any, environment: Any, made: Run) -> tuple[list[IntArray], list[FloatArray]]:
    """The plans and totals of the first block's first side, which `certify` counts as well."""
    world: Any = Recorder(environment, [])
    execution = Execution(policy, world, Coins(made.seed, 0, 2048), Noise(made.noise_seed, 0, 0))
    plans = []
    while (plan := execution.advance()) is not None:
        plans.append(plan)
    return plans, world.drawn


@pytest.mark.parametrize("arms", [2, 4])
def test_early_cut_names_by_lead_where_its_own_answer_is_lead(arms: int) -> None:
    """400 executions, each asked by itself: no chance is left in it, and one that is counted wrongly is found."""
    policy, world = early_cut(arms), bd.Bernoulli([0.4] * arms)
    made = run(policy, world, seed=5)
    plans, totals = played(policy, world, made)
    answers = []
    for row in range(400):
        named = next(i for i, plan in enumerate(plans) if np.count_nonzero(plan[row]) == 1)  # the rest, for the winner
        sums = sum(np.array([drawn[row]]) for drawn in totals[:named])
        pulls = int(sum(plan[row, 0] for plan in plans[:named]))
        answers.append(policy.decided_by(np.asarray(sums), pulls, Coins(made.seed, row, 1)))
    assert 400 > answers.count("lead") > 5
    assert count_led(made, policy, 400) == answers.count("lead")


def test_a_random_threshold_drops_by_lead_where_a_total_is_behind_by_the_cut() -> None:
    made_for = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    near = tuple(batch._replace(low=batch.low / 64.0, span=batch.span / 64.0) for batch in made_for.schedule.batches)
    policy = replace(made_for, schedule=made_for.schedule._replace(batches=near))
    made = run(policy, SAME, seed=2)
    _, totals = played(policy, SAME, made)
    led = 0
    for row in range(300):
        coins, sums = Coins(made.seed, row, 1), np.zeros(2)
        for number, batch in enumerate(near, 1):
            sums += totals[number - 1][row]
            if abs(sums[0] - sums[1]) > batch.low + coins.uniform("threshold", number)[0, 0] * batch.span:
                led += 1
                break
    assert 0 < led < 300
    assert count_led(made, policy, 300) == led


def test_the_final_choice_of_certified_elimination_is_no_lead() -> None:
    """One batch with cuts that a tie of three arms exceeds now and then, and a final choice by shared noise."""
    cut = ladder.TestBatch(400, ladder.Cut(0.02, 0.08), ladder.Cut(0.03, 0.08))
    schedule = ladder.Ladder((cut,), ladder.EXPLORATION_UNIT // 4, 0.1)
    policy = bd.CertifiedElimination(arms=3, horizon=10**4, rho=0.3, schedule=schedule)
    made = run(policy, THREE, seed=4)
    _, totals = played(policy, THREE, made)
    led = 0
    for row in range(300):
        coins = Coins(made.seed, row, 1)
        third, second, first = np.sort(totals[0][row])
        commits = first - second > 400 * 0.02 + coins.uniform("commit", 1)[0, 0] * (400 * 0.08)
        led += commits or first - third > 400 * 0.03 + coins.uniform("threshold", 1)[0, 0] * (400 * 0.08)
    assert 0 < led < 300
    assert count_led(made, policy, 300) == led


# -- every policy that tells ------------------------------------------------------------------------------------------

ARMS: dict[str, Any] = {"arms": 3, "horizon": 10**8, "rho": 0.3}
LINEAR: dict[str, Any] = {"actions": ACTIONS, "horizon": 10**8, "rho": 0.3}
MAKERS: dict[str, Callable[[], Any]] = {
    "one-cut": lambda: bd.OneCut(**ARMS, gap=0.1),
    "early-cut": lambda: bd.EarlyCut(**ARMS, gap=0.1),
    "certified-elimination": lambda: bd.CertifiedElimination(**ARMS),
    "random-threshold": lambda: bd.RandomThreshold(**ARMS),
    "mean-rounding": lambda: bd.MeanRounding(**ARMS),
    "linear-threshold": lambda: bd.LinearThreshold(**LINEAR),
    "linear-threshold:paper": lambda: bd.LinearThreshold(**LINEAR | {"horizon": 10**12}, constants="paper"),
    "certified-linear, lattice": lambda: bd.CertifiedLinear(**LINEAR, method="lattice"),
    "certified-linear, thresholds": lambda: bd.CertifiedLinear(**LINEAR, method="thresholds"),
    "least-squares-rounding": lambda: bd.LeastSquaresRounding(**LINEAR),
}
TELLING = Lazily(MAKERS)


@pytest.mark.parametrize("name", TELLING)
def test_a_clear_lead_decides_and_no_lead_does_not(name: str) -> None:
    policy = TELLING[name]
    assert isinstance(policy, Leading)
    means = np.array([[1.0, 0.5, 0.0], [0.5, 0.5, 0.5]])  # as theta = (0.5, -0.5) and (0, 0) would have it
    state, coins = policy.init(2), Coins(1, 0, 2)
    led, spent = np.zeros((2, 1), dtype=np.bool_), np.zeros(2, dtype=np.int64)
    while (plan := policy.plan(state)) is not None:
        spent += plan.sum(axis=1)
        if spent.min() == policy.horizon:
            break
        totals = plan * means * (spent < policy.horizon)[:, np.newaxis]
        led |= policy.by_lead(state, totals, coins)
        state = policy.decide(state, totals, coins)
    assert led.tolist() == [[True], [False]]


def test_who_cannot_tell_says_nothing() -> None:
    assert bd.certify(bd.UCB1(), SAME, pairs=4, horizon=1000, rho=0.1).named_by_lead is None
    assert bd.certify(bd.BatchedElimination(arms=2, horizon=1000), SAME, pairs=4, rho=0.1).named_by_lead is None
    committed = bd.ExploreThenCommit(arms=2, horizon=1000, rho=0.3, gap=0.4)
    assert bd.certify(committed, SAME, pairs=4).named_by_lead is None


# -- what a certificate says of it ------------------------------------------------------------------------------------


def test_there_is_none_where_means_differ_however_little() -> None:
    certificate = bd.certify(one_cut(), bd.Bernoulli([0.5, 0.5 + 2.0**-50]), pairs=10)
    assert certificate.named_by_lead is None
    assert certificate.to_dict()["named_by_lead"] is None
    assert "A/A" not in certificate.table()
    assert "A/A" not in certificate._repr_html_()


@pytest.mark.slow
def test_it_is_the_same_for_any_jobs_and_nothing_else_moves() -> None:
    policy = early_cut()
    one, two = (bd.certify(policy, SAME, pairs=5000, seed=6, jobs=jobs) for jobs in (1, 2))
    assert one.to_dict() == two.to_dict()
    assert one.named_by_lead is not None
    assert one.named_by_lead.executions == 5000
    assert bd.certify(policy, SAME, pairs=5000, seed=7).named_by_lead != one.named_by_lead


def test_a_run_that_grew_has_that_of_one_run(tmp_path: Path) -> None:
    policy = one_cut()
    bd.certify(policy, SAME, pairs=1000, out=tmp_path)
    grown = bd.certify(policy, SAME, pairs=3000, out=tmp_path)
    assert grown.interval_kind == "sequence"
    assert grown.named_by_lead == bd.certify(policy, SAME, pairs=3000).named_by_lead


@pytest.mark.parametrize(
    ("policy", "gap", "line"),
    [
        ("one-cut", ("--gap", "0.1"), "a winner was named by its lead in 41.8% of 400 executions (95%: 36.9 to 46.8%)"),
        (
            "random-threshold",
            (),
            "an arm was dropped or chosen by a lead in 0% of 400 executions (95%: 0 to 0.92%)",
        ),
    ],
)
def test_the_command_line_says_it(policy: str, gap: tuple[str, ...], line: str) -> None:
    words = ("certify", policy, *gap, "--means", "0.5,0.5", "--horizon", "1e5", "--rho", "0.3", "--pairs", "400")
    content = json.loads(banditto(*words, "--json").stdout)
    schema = json.loads((resources.files("banditto") / "schemas" / "certificate.json").read_text(encoding="utf-8"))
    jsonschema.validate(content, schema)
    assert content["schema_version"] == 3
    found = content["named_by_lead"]
    assert found["executions"] == 400
    assert found["interval"][0] <= found["share"] <= found["interval"][1]
    rows = [row for row in banditto(*words).stdout.splitlines() if row.startswith("A/A")]
    assert [row.split(maxsplit=1)[1].strip() for row in rows] == [f"all means are equal; {line}"]
