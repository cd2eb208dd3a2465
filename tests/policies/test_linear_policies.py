"""The linear policies: contract, constants, decisions, and what they refuse."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.rewards import Rewards
from banditto.engine.batched import BatchedPlayer
from banditto.engine.player import run_of
from banditto.geometry.active_sets import core_of, field_for
from banditto.geometry.regression import Regression
from banditto.policies.certified_elimination import ladder
from banditto.policies.least_squares_rounding.accuracies import RoundingProblem
from banditto.policies.linear_threshold.linear_constants import LinearProblem, spare_bias
from banditto.policies.policy import Policy
from banditto.policies.shared import confidence
from banditto.policies.shared_linear.contests import contest, field_of, trial, values_of
from banditto.policies.shared_linear.estimate_rounding import PaperGridRounding, deviation, error
from banditto.testing import POLICY_CHECKS
from banditto.testing.policy_contract import Check, play, random_totals
from tests.lazily import Lazily


def sphere(arms: int, dimension: int, seed: int = 0) -> FloatArray:
    points = np.random.default_rng([3, seed]).standard_normal((arms, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


ARMS = sphere(9, 3)
BAD: Any = "best"
SQUARE = bd.Polytope(rows=[[1, 0], [0, 1], [-1, 0], [0, -1], [1, 1]], bounds=[0.6, 0.6, 0.6, 0.6, 0.9])


def too_short() -> bd.LinearThreshold:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        return bd.LinearThreshold(actions=ARMS, horizon=10**4, rho=0.2)


POLICIES: Lazily[Policy[Any]] = Lazily(
    {
        "threshold": lambda: bd.LinearThreshold(actions=ARMS, horizon=10**8, rho=0.2),
        "threshold, paper": lambda: bd.LinearThreshold(actions=ARMS, horizon=10**8, rho=0.2, constants="paper"),
        "threshold, Gaussian": lambda: bd.LinearThreshold(
            actions=ARMS, horizon=10**9, rho=0.1, rewards="gaussian", sigma=2.0
        ),
        "threshold, flat": lambda: bd.LinearThreshold(
            actions=np.c_[sphere(5, 2) * 0.9, np.zeros(5)], horizon=10**8, rho=0.3
        ),
        "threshold, one dimension": lambda: bd.LinearThreshold(actions=[[1.0], [0.5], [-1.0]], horizon=10**8, rho=0.3),
        "rounding": lambda: bd.LeastSquaresRounding(actions=ARMS, horizon=10**8, rho=0.2),
        "rounding, grid": lambda: bd.LeastSquaresRounding(actions=ARMS, horizon=10**8, rho=0.2, rounding="grid"),
        "rounding, paper": lambda: bd.LeastSquaresRounding(actions=ARMS, horizon=10**13, rho=0.2, constants="paper"),
        "rounding, subgaussian": lambda: bd.LeastSquaresRounding(actions=ARMS, horizon=10**8, rho=0.2, sigma=1.0),
        "rounding, ball": lambda: bd.LeastSquaresRounding(actions=bd.Ball(dimension=2), horizon=10**9, rho=0.2),
        "rounding, polytope": lambda: bd.LeastSquaresRounding(actions=SQUARE, horizon=10**10, rho=0.2),
        "rounding, polytope, grid": lambda: bd.LeastSquaresRounding(
            actions=SQUARE, horizon=10**8, rho=0.2, rounding="grid"
        ),
        "rounding, simplex, paper": lambda: bd.LeastSquaresRounding(
            actions=bd.Simplex(dimension=2), horizon=10**14, rho=0.2, constants="paper"
        ),
        "net": lambda: bd.NetThreshold(actions=bd.Ball(dimension=1), horizon=10**9, rho=0.2),
        "net, paper": lambda: bd.NetThreshold(actions=SQUARE, horizon=10**9, rho=0.3, constants="paper"),
        "certified, thresholds": lambda: bd.CertifiedLinear(actions=ARMS, horizon=10**7, rho=0.2, method="thresholds"),
        "certified, lattice": lambda: bd.CertifiedLinear(actions=ARMS, horizon=10**7, rho=0.2, method="lattice"),
        "certified, Gaussian": lambda: bd.CertifiedLinear(
            actions=ARMS, horizon=10**7, rho=0.2, rewards="gaussian", sigma=1.0
        ),
        "certified, the same arm twice": lambda: bd.CertifiedLinear(
            actions=[[0.5, 0.0], [0.5, 0.0]], horizon=10**6, rho=0.2, method="thresholds"
        ),
        "threshold, too short": too_short,
        "certified, box": lambda: bd.CertifiedLinear(actions=bd.Box.unit(2), horizon=10**8, rho=0.2),
    }
)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract(name: str, check: Check) -> None:
    check(POLICIES[name])


@pytest.mark.parametrize("name", POLICIES)
def test_certified_constants_keep_their_promise(name: str) -> None:
    policy: Any = POLICIES[name]
    holds = policy.guarantee().holds
    assert holds == (not (name.startswith(("threshold, paper", "net, paper"))))
    minimum = policy.minimum_horizon()
    assert minimum is not None
    assert (minimum <= policy.horizon) == (not name.endswith("too short"))


def test_values_are_least_squares() -> None:
    """Against numpy, on the totals of a core set; differences have the variance that their batch promises."""
    actions = bd.FiniteActions(ARMS)
    key = np.packbits(np.ones(9, dtype=np.bool_)).tobytes()
    found = contest(actions, key)
    assert found is not None
    m = 5000
    made = trial(actions, key, math.ceil(m * found.units), 2.0)
    assert made is not None
    rng = np.random.default_rng(1)
    totals = np.zeros((4, 9))
    totals[:, made.columns] = rng.uniform(size=(4, len(made.columns))) * np.array(made.regression.pulls)
    values = values_of(made, field_of(actions), totals, 0.5)
    points, counts = actions.to_array()[made.columns], np.array(made.regression.pulls)
    for row, seen in zip(totals[:, made.columns], values, strict=True):
        theta = np.linalg.lstsq(points * np.sqrt(counts)[:, None], (row / counts - 0.5) * np.sqrt(counts), rcond=None)[
            0
        ]
        assert np.allclose(seen, actions.to_array() @ theta, atol=1e-10)
    inverse = np.linalg.inv((points * counts[:, None]).T @ points)
    every = actions.to_array()
    norms = [(a - b) @ inverse @ (a - b) for a in every for b in every]
    assert max(norms) <= 2.0 / m
    assert max(norms) <= made.spread * (1 + 1e-9)
    assert max(a @ inverse @ a for a in every) <= 2.0 / m
    assert made.rounding < 1e-11


def test_the_largest_of_many_sums() -> None:
    """E max of sums of independent terms in [0, t]: never above c mu, for scaled binomial sums (4 standard errors)."""
    rng = np.random.default_rng(5)
    for arms, terms, rate in ((50, 20, 0.25), (1000, 5, 0.1), (10, 400, 0.25)):
        sums = rng.binomial(terms, rate, size=(4000, arms)).max(axis=1)
        mean = terms * rate
        assert sums.mean() <= confidence.largest_sum(math.log(arms) / mean) * mean + 4 * sums.std() / 4000**0.5
    assert confidence.largest_sum(0.0) == 1.0
    assert confidence.largest_sum(1e-6) < 1.002


@pytest.mark.parametrize("kind", ["bounded", "gaussian", "subgaussian"])
@pytest.mark.parametrize("arms", [2, 6, 40])
def test_noise_of_the_gap(arms: int, kind: Any) -> None:
    """E|G - G'| of simulated values by design is at most `linear_noise`: 4,000 pairs, four standard errors."""
    sigma = 0.5 if kind == "bounded" else 1.0
    points = sphere(arms, 3, arms)
    actions = bd.FiniteActions(points)
    key = np.packbits(np.ones(arms, dtype=np.bool_)).tobytes()
    found = contest(actions, key)
    assert found is not None
    m = 400
    made = trial(actions, key, math.ceil(m * found.units), 2.0)
    assert made is not None
    rng = np.random.default_rng(arms)
    counts = made.regression.pulls
    gaps = []
    for _ in range(2):
        totals = np.zeros((4000, arms))
        for column, count in zip(made.columns, counts, strict=True):
            fair = rng.binomial(count, 0.5, size=4000)
            drawn = rng.standard_normal(4000) * math.sqrt(count) if kind == "gaussian" else 2.0 * fair - count
            totals[:, column] = fair - count / 2 if kind == "bounded" else drawn
        values = values_of(made, field_of(actions), totals, 0.0)
        others = np.delete(values, 0, axis=1).max(axis=1)
        gaps.append(others - values[:, 0])
    apart = np.abs(gaps[0] - gaps[1])
    bound = confidence.linear_noise(arms, Rewards(kind, sigma), m)
    assert apart.mean() <= bound + 4 * apart.std() / 4000**0.5


def test_blow_ups() -> None:
    """The certified beta is the smallest, beta falls with rho, and the printed one is as printed."""
    problem = LinearProblem(10, 3, 10**9, 0.1, Rewards("bounded", 0.5), 1.0)
    beta = problem.certified_blowup()
    room = Decimal("0.09") - Decimal(2) / 10**9
    assert problem.eliminations(beta) <= room < problem.eliminations(beta - 1)
    assert problem._replace(rho=0.2).certified_blowup() < beta
    assert problem.paper_blowup() == 10_000
    assert problem._replace(rho=0.9).paper_blowup() == 2304
    assert problem.undecided(beta) >= 1
    gaussian = problem._replace(rewards=Rewards("gaussian", 1.0))
    assert float(gaussian.noise(beta)) == pytest.approx(4 * math.sqrt(2 / math.pi))
    assert float(problem._replace(dimension=1).noise(beta)) <= 4.1


U = 2.0**-20
# Without the third arm, no arm reaches far enough along the second feature for a design to tell it from none.
NEARLY_ALIKE = bd.FiniteActions([[1.0, 0.0], [1.0 - 20 * U, 4 * U], [0.0, 1.0]])
FIRST_TWO = np.packbits(np.array([True, True, False])).tobytes()
TIED = np.array([0.098, 0.49])  # the first two arms have one value, and look 1.87e-6 apart to a design that drops 4 U


def bias(policy: Any, made: Any) -> float:
    """How far the gap of the first two arms is off in a batch without noise."""
    points = NEARLY_ALIKE.to_array()
    totals = np.zeros((1, 3))
    totals[0, made.columns] = (0.5 + points[made.columns] @ TIED) * np.array(made.regression.pulls)
    values = values_of(made, field_of(NEARLY_ALIKE), totals, 0.5)[0]
    return float(abs(values[0] - values[1] - (points[0] - points[1]) @ TIED))


def test_nearly_alike_survivors_stay_within_the_windows_of_thresholds() -> None:
    """The windows may be as much wider as the gap is off without one more of them having the gap in it.

    Batches 19 to 23 were tested as well, with gaps that were off by up to a quarter of a threshold's range.
    """
    policy = bd.LinearThreshold(actions=NEARLY_ALIKE, horizon=10**14, rho=0.1)
    problem, blowup = policy._problem, policy.schedule.blowup
    tested = 0
    for number, batch in enumerate(policy.schedule.batches, 1):
        made = policy._trial(FIRST_TWO, number)
        if made is None:
            continue
        tested += 1
        off = bias(policy, made)
        assert 1.8e-6 < off <= 2 * made.residual * 0.5
        assert made.residual * 0.5 <= batch.width * (spare_bias(problem, blowup) + 2.0**-26)
        moved = Decimal(off / batch.width)
        assert problem.undecided(blowup, moved) == problem.undecided(blowup)
    assert (tested, len(policy.schedule.batches)) == (18, 23)


@pytest.mark.parametrize("rho", [0.01, 0.1, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("arms", [2, 3, 20])
def test_windows_have_so_much_room(arms: int, rho: float) -> None:
    """Widened by what may be biased and rounded, as many windows overlap as before, and the best arm stays."""
    problem = LinearProblem(arms, 2, 10**9, rho, Rewards("bounded", 0.5), 1.0)
    for blowup in {4, 5, 40, 250, 253, 260, problem.certified_blowup()}:
        spare = spare_bias(problem, blowup)
        assert 0.0 < spare <= 2.0**-5
        slack = max(Decimal("1e-6"), Decimal(2 * spare))
        assert problem.undecided(blowup, slack) == problem.undecided(blowup)
        assert spare <= 1e-6 or Decimal(blowup) ** Decimal("-0.5") + Decimal(spare) <= Decimal("0.5")


def test_nearly_alike_survivors_stay_within_the_precision_of_cuts() -> None:
    """Ten batches were tested, with gaps that were off by up to 0.4 of the narrowest cut; 2^-24 is what is proved."""
    policy: Any = bd.CertifiedLinear(actions=NEARLY_ALIKE, horizon=10**14, rho=0.1, method="thresholds").inner
    for number, batch in enumerate(policy.schedule.batches, 1):
        made = policy._trial(FIRST_TWO, number)
        widths = [cut.width for cut in (batch.commit, batch.eliminate) if cut is not None]
        assert made is None or 2.0 * bias(policy, made) <= ladder.LINEAR_PRECISION * min(widths)
        assert policy._trial(policy._field.whole, 1) is not None


def test_nearly_alike_survivors_are_pulled_more_often_for_an_accuracy() -> None:
    """Noise, rounding and what the design drops are within epsilon together; where that cannot be, nobody is tested."""
    policy = bd.LeastSquaresRounding(actions=NEARLY_ALIKE, horizon=10**14, rho=0.1)
    for number, batch in enumerate(policy.schedule.batches, 1):
        made = policy._openings.at(FIRST_TWO, number)
        assert made is not None
        assert made.design.dimension == 1
        assert not isinstance(made.rounding, PaperGridRounding)
        nu = deviation(1, Decimal(policy.schedule.tail), 2)
        noise = error(made.rounding, made.leverage, nu)
        assert float(noise) + 4 * U * 0.49 <= batch.epsilon * (1 + 2.0**-20)
    fine = policy.schedule._replace(batches=(policy.schedule.batches[-1]._replace(epsilon=7e-6),))
    assert policy._openings._replace(schedule=fine).at(FIRST_TWO, 1) is None


def low_rank(seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 5))
    return np.asarray(points / np.max(np.linalg.norm(points, axis=1)) / 1.0001)


def test_features_that_depend_on_others_up_to_rounding_are_tested_with() -> None:
    """Rounding lifts 20 arms off their three dimensions by half a millionth; the proofs have room for that."""
    actions = bd.FiniteActions(low_rank(1))
    policy = bd.LinearThreshold(actions=actions, horizon=10**11, rho=0.2)
    made = [policy._trial(policy._field.whole, number) for number in range(1, 12)]
    assert all(found is not None and 1e-7 < found.residual < 2e-6 for found in made)
    cuts: Any = bd.CertifiedLinear(actions=actions, horizon=10**11, rho=0.2, method="thresholds")
    tested = [cuts.inner._trial(cuts.inner._field.whole, number) for number in (1, 2, 3)]
    for batch, found in zip(cuts.inner.schedule.batches, tested, strict=False):
        assert found is not None
        assert batch.eliminate is None
        charged = ladder.bias_allowed(20, 0.2, cuts.inner._bias, batch.commit.width)
        assert found.residual * 0.5 <= charged
    assert cuts.guarantee().holds


@pytest.mark.parametrize("kind", ["fewer arms than features", "groups", "zeros"])
def test_features_that_depend_on_others_exactly_cost_nothing(kind: str) -> None:
    points = {
        "fewer arms than features": sphere(3, 6),
        "groups": 0.5 * np.c_[np.kron(np.eye(3), np.ones((2, 1))), np.tile(np.eye(2), (3, 1)), np.ones(6)],
        "zeros": np.c_[ARMS, np.zeros(9)],
    }[kind]
    actions = bd.FiniteActions(points)
    made = trial(actions, field_of(actions).whole, 10**6, 2.0)
    assert made is not None
    assert made.design.dimension < actions.dimension
    assert made.residual < 1e-13


def test_what_a_flat_set_leaves_open() -> None:
    """A strip of width 2 U around a diagonal: its design has one feature, and the bound is how far off the other is."""
    strip = bd.Polytope(rows=[[1, 1], [-1, -1], [1, -1], [-1, 1]], bounds=[1.0, 1.0, U, U])
    field = field_for(strip)
    design = field.design(field.whole)
    assert design is not None
    assert design.dimension == 1
    found = field.residual(design, Regression.of(core_of(design), design.counts), field.whole)
    corners = strip.vertices()
    assert corners is not None
    kept = design.features[0]
    slope = design.actions[0][1 - kept] / design.actions[0][kept]
    true = float(np.max(np.abs(corners[:, 1 - kept] - slope * corners[:, kept])))
    assert true <= found <= true * (1 + 1e-4)


def test_the_schedule_of_accuracies() -> None:
    """Shares of rho add up to it, accuracies fall, and nothing else in the search has a lower bound on the regret."""
    problem = RoundingProblem(3, 3.1, 5, None, 10**9, 0.1, Rewards("bounded", 0.5), 1.0, False)
    schedule = problem.resolve()
    assert 0.0999 < sum(batch.rho for batch in schedule.batches) <= 0.1
    epsilons = [batch.epsilon for batch in schedule.batches]
    assert epsilons == sorted(epsilons, reverse=True)
    shares = {batch.rho / batch.epsilon ** (-1 / 3) for batch in schedule.batches}
    assert max(shares) / min(shares) == pytest.approx(1.0)
    assert sum(problem.pulls(*batch, schedule.tail) for batch in schedule.batches) < 10**9
    assert problem.regret(schedule) <= problem.regret(schedule._replace(batches=schedule.batches[:1]))
    assert problem.regret(schedule) < 0.1 * problem.regret(problem.resolve()._replace(batches=()))


def test_a_plan_is_one_that_fits() -> None:
    """Grids pay for the third power of the core set, which of 50 arms in ten dimensions has 37."""
    points = sphere(50, 10, 10)
    policy = bd.LeastSquaresRounding(actions=points, horizon=10**10, rho=0.05, rounding="grid")
    assert policy.describe().rows
    least = policy.minimum_horizon()
    assert least is not None
    shortest = bd.LeastSquaresRounding(actions=points, horizon=least, rho=0.05, rounding="grid")
    assert shortest.describe().to_dict()["batches"][0]["pulls if all are active"] < least
    with pytest.warns(ShortHorizonWarning, match=f"at least {least}"):
        bd.LeastSquaresRounding(actions=points, horizon=least // 2, rho=0.05, rounding="grid")


def test_zero_arms_are_played_by_the_lattice() -> None:
    with pytest.warns(ShortHorizonWarning):
        policy = bd.CertifiedLinear(actions=[[0.0, 0.0], [0.0, 0.0]], horizon=10**6, rho=0.1)
    assert policy.method == "lattice"
    plans, _ = play(policy, Coins(1, 0, 2))
    assert [int(plan.sum()) for plan in plans] == [2 * 10**6]


def test_pulls_of_both_methods_and_the_choice() -> None:
    """The cheaper plan is taken; it is the lattice for many arms in the plane."""
    many = bd.CertifiedLinear(actions=sphere(200, 2), horizon=10**8, rho=0.1)
    assert many.costs.thresholds is not None
    assert many.method == "lattice"
    assert many.costs.lattice < many.costs.thresholds
    few = bd.CertifiedLinear(actions=sphere(4, 4), horizon=10**8, rho=0.1)
    assert few.costs.thresholds is not None
    assert few.method == ("lattice" if few.costs.lattice < few.costs.thresholds else "thresholds")
    table = many.describe().table()
    assert "predicted regret, thresholds" in table
    assert "predicted regret, lattice" in table
    assert bd.CertifiedLinear(actions=bd.Ball(dimension=3), horizon=10**8, rho=0.1).costs.thresholds is None


def test_permuted_arms() -> None:
    """Arms in another order, totals with them: the same arms are dropped (no ties, no choice by index)."""
    order = np.random.default_rng(4).permutation(9)
    first = bd.LinearThreshold(actions=ARMS, horizon=10**8, rho=0.2)
    second = bd.LinearThreshold(actions=ARMS[order], horizon=10**8, rho=0.2)
    coins = Coins(5, 0, 6)
    one, two = first.init(6), second.init(6)
    theta = np.array([0.3, 0.2, -0.1])
    for _ in range(3):
        pulls, others = first.plan(one), second.plan(two)
        assert pulls is not None
        assert others is not None
        if not np.array_equal(pulls[:, order], others):
            return  # another optimal design: designs are not unique
        totals = pulls * (0.5 + ARMS @ theta)
        one, two = first.decide(one, totals, coins), second.decide(two, totals[:, order], coins)
        assert np.array_equal(one.active[:, order], two.active)


def test_the_best_arm_stays_and_the_worst_goes() -> None:
    """Exact totals, no noise: after the last test the best arm is there and arms far behind are not."""
    theta = np.array([0.35, 0.2, -0.1])
    values = ARMS @ theta
    for name in ("threshold", "rounding", "certified, thresholds", "certified, lattice"):
        policy: Any = POLICIES[name]
        plans, _ = play(policy, Coins(1, 0, 12), lambda pulls, batch: pulls * (0.5 + values))
        last = plans[-1]
        chosen = [int(np.argmax(row)) for row in last if row.any()]
        assert chosen
        assert all(values.max() - values[arm] < 0.2 for arm in chosen)


def test_infinite_sets_shrink() -> None:
    """Every batch of a polytope pulls actions that the cuts before it left."""
    policy = bd.LeastSquaresRounding(actions=SQUARE, horizon=10**11, rho=0.2)
    coins = Coins(2, 0, 3)
    state = policy.init(3)
    theta = np.array([0.2, 0.3])
    seen = 0
    while (pulls := policy.plan(state)) is not None:
        places = policy.places(state)
        for row in range(3):
            for cut in state.active[row]:
                for slot in np.flatnonzero(pulls[row]):
                    assert float(cut[:-1] @ places[row, slot]) >= cut[-1] - 1e-9
        seen += 1
        state = policy.decide(state, pulls * (0.5 + places @ theta), coins)
    assert seen >= 3
    best = SQUARE.maximise(theta)
    final = policy.places(state)
    assert state.active.shape[1] == seen - 1
    assert np.isfinite(final).all()
    assert len(best) == 2


@pytest.mark.long
def test_a_pair_on_an_infinite_set() -> None:
    world = bd.LinearBernoulli([0.5, 0.3], SQUARE)
    policy = bd.LeastSquaresRounding(actions=SQUARE, horizon=10**9, rho=0.2)
    certificate = bd.certify(policy, world, pairs=40, seed=1)
    assert certificate.pairs == 40
    again = bd.certify(policy, world, pairs=24, seed=1)
    assert again.mismatches <= certificate.mismatches  # a prefix
    view = bd.watch_pair(policy, world, pair=3, seed=1)
    assert view.arms >= 2
    assert view.rounds[-1] == 10**9 - 1
    assert view.same == bool(np.array_equal(view.first, view.second))
    comparison = bd.compare([policy], world, pairs=16, curves=True)
    curve = comparison.entrants[0].curve
    assert curve is not None
    # curves are of the first block's pairs, of which there are as many as were compared
    assert curve.mean[-1] == pytest.approx(comparison.entrants[0].certificate.regret.mean, rel=1e-6)
    shared = bd.certify(policy, world, pairs=40, seed=1, jobs=2)
    assert shared.mismatches == certificate.mismatches
    assert shared.regret == certificate.regret


def test_a_pair_on_finitely_many_actions() -> None:
    world = bd.LinearGaussian([0.5, 0.3, 0.1], ARMS)
    policy = bd.LinearThreshold(actions=ARMS, horizon=10**8, rho=0.2, rewards="gaussian", sigma=1.0)
    run = run_of(policy, world, seed=1, noise_seed=2, horizon=None)
    first, _ = BatchedPlayer(run, policy).trajectories(3)
    assert first.length == 10**8
    assert not first.actions


class Wedge:
    """A user's own action set: a triangle, by its corners."""

    dimension = 2
    corners = np.array([[0.0, 0.0], [0.9, 0.0], [0.0, 0.9]])

    def __init__(self, cuts: tuple[tuple[tuple[float, ...], float], ...] = ()) -> None:
        self.cuts = cuts
        rows = [[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0], *([-v for v in normal] for normal, _ in cuts)]
        self.inner = bd.Polytope(rows=rows, bounds=[0.9, 0.0, 0.0, *(-least for _, least in cuts)])

    def maximise(self, direction: Any) -> Any:
        return self.inner.maximise(direction)

    def cut(self, normal: Any, least: float) -> Wedge:
        return Wedge((*self.cuts, (tuple(float(v) for v in normal), least)))


def test_a_users_own_set() -> None:
    own = Wedge()
    policy = bd.LeastSquaresRounding(actions=own, horizon=10**9, rho=0.2)
    certificate = bd.certify(policy, bd.LinearBernoulli([0.5, 0.3], own), pairs=16)
    assert certificate.pairs == 16
    with pytest.raises(InvalidArgument, match="action set of the user's own"):
        bd.policy_of(certificate.protocol)


def test_protocols_hold_the_actions() -> None:
    policy = bd.LeastSquaresRounding(actions=SQUARE.cut([1.0, 0.3], 0.1), horizon=10**9, rho=0.2)
    protocol = policy.protocol(seed=1)
    copy: Any = bd.policy_of(bd.Protocol.from_toml(protocol.to_toml()))
    assert copy.actions == policy.actions
    assert copy == policy
    content = protocol.to_dict()
    content["settings"]["actions"]["type"] = "sphere"
    with pytest.raises(InvalidArgument, match="action_set"):
        bd.policy_of(bd.Protocol.from_dict(content))
    finite = POLICIES["threshold"].protocol(seed=1).to_dict()
    for change in (
        {"integers": [[1, 2]]},
        {"integers": 3},
        {"exponents": [1000, 0, 0]},
        {"integers": [[2**20] * 3] * 9},
    ):
        broken = {**finite, "settings": {**finite["settings"], "actions": finite["settings"]["actions"] | change}}
        with pytest.raises(InvalidArgument):
            bd.policy_of(bd.Protocol.from_dict(broken))
    with pytest.raises(InvalidArgument, match="arms"):
        bd.policy_of(bd.Protocol.from_dict({**finite, "arms": 8}))


@pytest.mark.parametrize("name", ["threshold", "rounding", "certified, thresholds", "certified, lattice"])
@pytest.mark.parametrize("change", [{"batches": 3}, {"more": 1}, {"batches": [{"low": "0x1p0"}]}])
def test_broken_constants_are_refused(name: str, change: dict[str, Any]) -> None:
    policy = POLICIES[name]
    content = policy.protocol(seed=1).to_dict()
    with pytest.raises(InvalidArgument):
        bd.policy_of(bd.Protocol.from_dict({**content, "resolved": content["resolved"] | change}))


@pytest.mark.parametrize("name", ["threshold", "net"])
def test_narrower_cuts_have_no_proof(name: str) -> None:
    """Most pairs differ with them, and no bound stands beside that."""
    policy: Any = POLICIES[name]
    content = policy.protocol(seed=1).to_dict()
    for batch in content["resolved"]["batches"]:
        batch["width"] = (float.fromhex(batch["width"]) / 1024.0).hex()
    narrow: Any = bd.policy_of(bd.Protocol.from_dict(content))
    guarantee = narrow.guarantee()
    assert (guarantee.total, guarantee.holds) == (1.0, False)
    assert [term.name for term in guarantee.terms] == ["unproved constants"]


def test_a_blowup_with_which_the_best_arm_could_be_dropped_has_no_proof() -> None:
    policy: Any = POLICIES["threshold, one dimension"]
    problem = policy._problem
    assert problem.proved(problem.schedule(4, paper=False), paper=False)
    assert not problem.proved(problem.schedule(3, paper=False), paper=False)


@pytest.mark.parametrize("make", [bd.LinearThreshold, bd.NetThreshold])
def test_where_no_test_fits_the_final_choice_has_all_of_rho(make: Any) -> None:
    actions: Any = ARMS if make is bd.LinearThreshold else bd.Box.unit(1)
    with pytest.warns(ShortHorizonWarning):
        policy = make(actions=actions, horizon=10**4, rho=0.1)
    guarantee = policy.guarantee()
    assert [term.name for term in guarantee.terms] == ["final choice"]
    assert guarantee.holds
    assert guarantee.total == pytest.approx(0.1, rel=1e-5)
    kept: Any = make(actions=actions, horizon=10**9, rho=0.1)
    assert kept.guarantee().terms[-1].value == pytest.approx(0.01, rel=1e-5)


def test_protocols_of_short_horizons_keep_the_share_that_they_hold() -> None:
    """As they were written when the final choice had a tenth of rho everywhere."""
    policy: Any = POLICIES["threshold, too short"]
    content = policy.protocol(seed=1).to_dict()
    content["resolved"]["choice_rho"] = (0.02).hex()
    old: Any = bd.policy_of(bd.Protocol.from_dict(content))
    assert old.schedule.choice_rho == 0.02
    assert old.guarantee().total == pytest.approx(0.02, rel=1e-5)
    assert old.protocol(seed=1).to_dict() == content


def test_a_larger_share_of_the_final_choice_is_a_larger_bound() -> None:
    with pytest.warns(ShortHorizonWarning):
        policy = bd.LinearThreshold(actions=ARMS, horizon=10**4, rho=0.1)
    content = policy.protocol(seed=1).to_dict()
    content["resolved"]["choice_rho"] = (0.25).hex()
    careless: Any = bd.policy_of(bd.Protocol.from_dict(content))
    assert careless.guarantee().total == pytest.approx(0.25, rel=1e-5)
    assert not careless.guarantee().holds


def test_short_horizons_are_said() -> None:
    with pytest.warns(ShortHorizonWarning, match="it must be at least"):
        bd.LeastSquaresRounding(actions=ARMS, horizon=100, rho=0.1)
    with pytest.warns(ShortHorizonWarning):
        bd.LeastSquaresRounding(actions=ARMS, horizon=10**6, rho=0.1, constants="paper")
    with pytest.warns(ShortHorizonWarning):
        bd.LinearThreshold(actions=ARMS, horizon=1000, rho=0.1, constants="paper")
    with pytest.warns(ShortHorizonWarning):
        bd.CertifiedLinear(actions=bd.Ball(dimension=5), horizon=100, rho=0.1)
    for make in (bd.LinearThreshold, bd.CertifiedLinear, bd.LeastSquaresRounding):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            policy: Any = make(actions=ARMS, horizon=12, rho=0.1)
        plans, _ = play(policy, Coins(1, 0, 3), random_totals)
        assert sum(int(plan.sum()) for plan in plans) == 36


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: bd.LinearThreshold(actions=bd.Ball(dimension=2), horizon=10**6, rho=0.1), "actions"),
        (lambda: bd.LinearThreshold(actions=[[1.0, 2.0]], horizon=10**6, rho=0.1), "actions"),
        (lambda: bd.LinearThreshold(actions=[[1.0, 0.0]], horizon=10**6, rho=0.1), "arms"),
        (lambda: bd.LinearThreshold(actions=ARMS, horizon=10**6, rho=1.1), "rho"),
        (lambda: bd.LinearThreshold(actions=ARMS, horizon=10**6, rho=1e-12), "rho"),
        (lambda: bd.LinearThreshold(actions=ARMS, horizon=3, rho=0.1), "horizon"),
        (lambda: bd.LinearThreshold(actions=ARMS, horizon=10**6, rho=0.1, centre=7), "centre"),
        (lambda: bd.LinearThreshold(actions=ARMS, horizon=10**6, rho=0.1, constants=BAD), "constants"),
        (lambda: bd.LeastSquaresRounding(actions=ARMS, horizon=10**6, rho=0.1, rounding=BAD), "rounding"),
        (
            lambda: bd.LeastSquaresRounding(
                actions=ARMS, horizon=10**6, rho=0.1, rounding="lattice", constants="paper"
            ),
            "rounding",
        ),
        (lambda: bd.CertifiedLinear(actions=ARMS, horizon=10**6, rho=0.1, constants="paper"), "constants"),
        (lambda: bd.CertifiedLinear(actions=ARMS, horizon=10**6, rho=0.1, method=BAD), "method"),
        (lambda: bd.CertifiedLinear(actions=SQUARE, horizon=10**6, rho=0.1, method="thresholds"), "method"),
        (lambda: bd.NetThreshold(actions=ARMS, horizon=10**6, rho=0.1), "actions"),
        (lambda: bd.NetThreshold(actions=bd.Ball(dimension=3), horizon=10**6, rho=0.1), "dimension"),
        (lambda: bd.NetThreshold(actions=bd.Ball(dimension=2), horizon=10**15, rho=0.1), "horizon"),
        (lambda: bd.certify(POLICIES["threshold"], bd.Bernoulli([0.1] * 9)), "environment"),
        (lambda: bd.certify(POLICIES["threshold"], bd.LinearBernoulli([0.1] * 3, sphere(9, 3, 5))), "environment"),
        (lambda: bd.certify(POLICIES["threshold"], bd.LinearGaussian([0.1] * 3, ARMS)), "environment"),
        (
            lambda: bd.certify(
                bd.LinearThreshold(actions=ARMS, horizon=10**6, rho=0.1, centre=0.0),
                bd.LinearBernoulli([0.1] * 3, ARMS),
            ),
            "environment",
        ),
        (
            lambda: bd.CertifiedLinear(actions=[[0.0, 0.0], [0.0, 0.0]], horizon=10**6, rho=0.1, method="thresholds"),
            "actions",
        ),
        (lambda: bd.certify(bd.UCB1(), bd.LinearBernoulli([0.1] * 2, SQUARE), horizon=100, rho=0.1), "policy"),
    ],
)
def test_refusals(make: Any, argument: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InvalidArgument) as caught:
            make()
    assert caught.value.argument == argument
