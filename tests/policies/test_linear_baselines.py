"""Baselines of linear bandits against plain implementations written here.

Every comparison of mean regrets has a false-failure rate of 1e-6 by design, and the difference that it would see is
asserted. Choices are also compared one by one, where a wrong constant shows at once.
"""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.chance import splitmix
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.engine import rounds
from banditto.engine.batched import BatchedPlayer
from banditto.engine.pair_counts import pseudo_regret
from banditto.engine.player import run_of
from banditto.policies.policy import RoundPolicy
from banditto.testing import BATCHED_CHECKS, assert_same_mean
from banditto.testing.policy_contract import Check

RUNS = 1200
HORIZON = 1500


def spread_actions(seed: int, arms: int, dimension: int) -> bd.FiniteActions:
    """Directions at random, of different lengths, so that no two arms tie."""
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((arms, dimension))
    rows *= (generator.uniform(0.7, 1.0, arms) / np.linalg.norm(rows, axis=1))[:, None]
    return bd.FiniteActions(rows)


ACTIONS = spread_actions(1, 6, 3)
FEATURES = ACTIONS.to_array()
THETA = np.array([0.6, -0.5, 0.4])
MEANS = FEATURES @ THETA
BOUNDED_MEANS = 0.5 + MEANS / 2


# -- round by round ---------------------------------------------------------------------------------------------------


def plain_index(policy: Any, design: FloatArray, answer: FloatArray, noise: FloatArray) -> FloatArray:
    """The textbook's value of each arm, (run, arm), from V, b and, for Thompson sampling, normal numbers."""
    inverse = np.linalg.inv(design)
    estimate = np.einsum("rij,rj->ri", inverse, answer)
    if isinstance(policy, bd.LinThompson):
        lower = np.linalg.cholesky(inverse)
        sample = estimate + policy.inflation * policy.sigma * np.einsum("rij,rj->ri", lower, noise)
        return np.asarray(sample @ FEATURES.T)
    growth = np.linalg.slogdet(design / policy.regularisation)[1]
    radius = policy.sigma * np.sqrt(2 * np.log(HORIZON) + growth) + np.sqrt(policy.regularisation) * policy.bound
    widths = np.sqrt(np.einsum("ai,rij,aj->ra", FEATURES, inverse, FEATURES))
    return np.asarray(estimate @ FEATURES.T + radius[:, None] * widths)


def plain_regret(policy: Any, seed: int) -> FloatArray:
    """All runs at once, round by round, with numbers of its own; shape (RUNS,)."""
    generator = np.random.default_rng(seed)
    design = np.repeat(policy.regularisation * np.eye(3)[None], RUNS, axis=0)
    answer, regret = np.zeros((RUNS, 3)), np.zeros(RUNS)
    for _ in range(HORIZON):
        arm = np.argmax(plain_index(policy, design, answer, generator.standard_normal((RUNS, 3))), axis=1)
        played = FEATURES[arm]
        reward = generator.random(RUNS) < BOUNDED_MEANS[arm]
        answer += (reward - policy.centre)[:, None] * played
        design += played[:, :, None] * played[:, None, :]
        regret += BOUNDED_MEANS.max() - BOUNDED_MEANS[arm]
    return regret


def own_regret(policy: Any, world: Any, seed: int, horizon: int) -> FloatArray:
    run = run_of(policy, world, seed=seed, noise_seed=None, horizon=horizon)
    pulls = np.array([rounds.RoundPlayer(run, policy).play_pair(pair)[1][0].pulls for pair in range(RUNS)])
    return pseudo_regret(pulls, world.means)


def made_for(kind: Any, world: Any) -> Any:
    return kind.made_for_linear(ACTIONS, world.rewards, HORIZON)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "seen"), [(bd.LinUCB, 0.05), (bd.LinThompson, 0.12)])
def test_regret_agrees_with_a_plain_implementation(kind: Any, seen: float) -> None:
    # false-failure rate 1e-6; a difference of 5% of LinUCB's regret would be seen, of 12% of Thompson sampling's
    world = bd.Bernoulli(BOUNDED_MEANS)
    policy = made_for(kind, world)
    plain = plain_regret(policy, 4)
    assert assert_same_mean(own_regret(policy, world, 3, HORIZON), plain, 1e-6) < seen * float(np.mean(plain))


STEPWISE = {
    "LinUCB": bd.LinUCB(actions=ACTIONS),
    "LinUCB, other constants": bd.LinUCB(actions=ACTIONS, sigma=0.3, centre=0.2, regularisation=0.05, bound=0.4),
    "LinThompson": bd.LinThompson(actions=ACTIONS),
    "LinThompson, other constants": bd.LinThompson(
        actions=ACTIONS, sigma=0.3, centre=0.2, regularisation=0.05, inflation=3.0
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("policy", STEPWISE.values(), ids=STEPWISE.keys())
def test_choices_are_those_of_a_plain_implementation(policy: Any) -> None:
    """Round by round on the same rewards and the same coins, across two stretches in which V is only updated."""
    generator = np.random.default_rng(12)
    choose, coin_key = policy.kernel(), np.uint64(12345)
    parameters = policy.parameters(6, HORIZON)
    pulls = np.zeros(6, dtype=np.int64)
    sums, averages, shares, memory = np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(policy.memory(6))
    design, answer = policy.regularisation * np.eye(3)[None], np.zeros((1, 3))
    for time in range(2500):
        noise = np.array([[splitmix.normal(coin_key, 3 * time + index) for index in range(3)]])
        if isinstance(policy, bd.LinThompson):
            # R^-1 z for V = R'R, in terms of the lower triangular root of V^-1 that `plain_index` uses
            root = np.linalg.cholesky(design[0]).T
            noise = np.linalg.solve(np.linalg.cholesky(np.linalg.inv(design[0])), np.linalg.solve(root, noise[0]))[None]
        expected = int(np.argmax(plain_index(policy, design, answer, noise)[0]))
        arm = choose((pulls, sums, averages, shares, memory), time, parameters, coin_key)
        assert arm == expected, f"round {time}"
        reward = MEANS[arm] + 0.5 * generator.standard_normal()
        sums[arm] += reward
        pulls[arm] += 1
        shares[arm] = 1.0 / pulls[arm]
        averages[arm] = sums[arm] * shares[arm]
        design = design + np.outer(FEATURES[arm], FEATURES[arm])
        answer += (reward - policy.centre) * FEATURES[arm]
    assert int((pulls > 0).sum()) >= 3


def test_rounding_errors_do_not_build_up() -> None:
    """With hardly any regularisation widths fall from 1e6 to 1e-3, and what is subtracted each time is rounded."""
    policy = bd.LinUCB(actions=ACTIONS, regularisation=1e-6)
    generator = np.random.default_rng(1)
    choose, parameters = policy.kernel(), policy.parameters(6, HORIZON)
    pulls, sums, memory = np.zeros(6, dtype=np.int64), np.zeros(6), np.zeros(policy.memory(6))
    for time in range(2500):
        arm = choose((pulls, sums, np.zeros(6), np.zeros(6), memory), time, parameters, np.uint64(0))
        if time > 250:
            design = 1e-6 * np.eye(3) + (FEATURES.T * pulls) @ FEATURES
            squares = np.einsum("ai,ij,aj->a", FEATURES, np.linalg.inv(design), FEATURES)
            assert np.allclose(memory[-6:], squares, rtol=1e-12, atol=0.0), f"round {time}"
            assert math.isclose(memory[1], np.linalg.slogdet(design)[1], rel_tol=1e-12)
        sums[arm] += MEANS[arm] + 0.5 * generator.standard_normal()
        pulls[arm] += 1


@pytest.mark.slow
def test_memory_lasts_from_chunk_to_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (bd.LinUCB, bd.LinThompson):
        policy = made_for(kind, bd.Gaussian(MEANS))
        run = run_of(policy, bd.Gaussian(MEANS), seed=1, noise_seed=None, horizon=3000)
        whole = rounds.RoundPlayer(run, policy).play_pair(0)[1][0]
        with monkeypatch.context() as patch:
            patch.setattr(rounds, "ROUNDS_PER_CHUNK", 64)
            pieces = rounds.RoundPlayer(run, policy).play_pair(0)[1][0]
        assert whole.digest == pieces.digest
        assert whole.pulls.max() < 3000


def test_ties_go_to_the_first_arm() -> None:
    # arms 1 and 3 are the same and the best: whatever is learnt, arm 3 is never played
    policy = bd.LinUCB(actions=bd.FiniteActions([[0.5, 0.1], [0.1, 0.9], [-0.5, 0.3], [0.1, 0.9]]))
    world = bd.Gaussian([0.1, 0.9, 0.3, 0.9])
    run = run_of(policy, world, seed=1, noise_seed=None, horizon=5000)
    pulls = rounds.RoundPlayer(run, policy).play_pair(0)[1][0].pulls
    assert pulls[3] == 0
    assert pulls[1] > 4000


@pytest.mark.slow
def test_more_features_than_arms_and_long_runs() -> None:
    actions = spread_actions(3, 4, 9)
    means = actions.to_array() @ np.full(9, 1 / 3)
    for policy in (bd.LinUCB(actions=actions), bd.LinThompson(actions=actions)):
        run = run_of(policy, bd.Gaussian(means), seed=1, noise_seed=None, horizon=10**5)
        pulls = rounds.RoundPlayer(run, policy).play_pair(0)[1][0].pulls
        assert int(np.argmax(pulls)) == int(np.argmax(means))
        assert pulls.max() > 90_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", [bd.LinUCB, bd.LinThompson])
def test_they_are_measured_like_any_baseline(kind: Any) -> None:
    policy = made_for(kind, bd.Bernoulli(BOUNDED_MEANS))
    assert isinstance(made_for(kind, bd.Bernoulli(BOUNDED_MEANS)), RoundPolicy)
    assert (policy.centre, policy.sigma) == (0.5, 0.5)
    certificate = bd.certify(policy, bd.Bernoulli(BOUNDED_MEANS), horizon=10**4, rho=0.1, pairs=40, seed=1)
    assert certificate.bound is None
    assert certificate.mismatches == 40
    with pytest.raises(InvalidArgument, match="^environment: got 2 arms, allowed: 6 arms"):
        bd.certify(policy, bd.Bernoulli([0.1, 0.2]), horizon=10**4, rho=0.1, pairs=40)
    with pytest.raises(InvalidArgument, match="^environment: got 2 arms, allowed: 6 arms"):
        policy.parameters(2, 100)
    again: Any = bd.policy_of(policy.protocol(seed=1, horizon=10**4, rho=0.1))
    assert again == policy


# -- phased elimination -----------------------------------------------------------------------------------------------

LONG = 20_000
SPANNING_LESS = bd.FiniteActions(
    np.column_stack([spread_actions(5, 7, 2).to_array() * 0.7, spread_actions(5, 7, 2).to_array() @ [0.4, -0.3]])
)


def plain_phases(policy: Any, means: FloatArray, seed: int) -> tuple[FloatArray, float]:
    """Phase by phase, one run after the other: regrets, and how many arms were dropped on average.

    Only the design is the library's, because designs are not unique; it has tests of its own.
    """
    generator = np.random.default_rng(seed)
    features, count = policy.actions.to_array(), len(policy.actions)
    designs: dict[tuple[int, ...], Any] = {}
    regrets, dropped = [], 0
    for _ in range(RUNS):
        active, left, phase, regret, best = list(range(count)), policy.horizon, 0, 0.0, 0
        while len(active) > 1:
            phase += 1
            epsilon = policy.bound / 2**phase
            if tuple(active) not in designs:
                designs[tuple(active)] = bd.g_optimal_design(policy.actions.kept(active), accuracy=0.5)
            design = designs[tuple(active)]
            log = math.log(count * phase * (phase + 1) * policy.horizon)
            pulls = [math.ceil(2 * policy.sigma**2 * w * design.g / epsilon**2 * log) for w in design.weights]
            if sum(pulls) > left:
                break
            moment, answer = np.zeros((features.shape[1],) * 2), np.zeros(features.shape[1])
            for arm, n in zip(design.arms, pulls, strict=True):
                total = n * means[arm] + 0.5 * math.sqrt(n) * generator.standard_normal()
                moment += n * np.outer(features[arm], features[arm])
                answer += (total - policy.centre * n) * features[arm]
                regret += n * (means.max() - means[arm])
            left -= sum(pulls)
            values = features @ np.linalg.pinv(moment, rcond=1e-9) @ answer
            best = max(active, key=lambda arm: values[arm])
            active = [arm for arm in active if values[best] - values[arm] <= 2 * epsilon]
        regrets.append(regret + left * (means.max() - means[best if len(active) > 1 else active[0]]))
        dropped += count - len(active)
    return np.array(regrets), dropped / RUNS


SETS = {"six arms": ACTIONS, "ten arms": spread_actions(2, 10, 4), "spanning less": SPANNING_LESS}


@pytest.mark.parametrize("actions", SETS.values(), ids=SETS.keys())
def test_phased_elimination_agrees_with_a_plain_implementation(actions: bd.FiniteActions) -> None:
    # false-failure rate 1e-6; a difference of 5% of the regret would be seen
    theta = np.array([0.7, -0.4, 0.4, -0.4])[: actions.dimension]
    means = 0.3 + actions.to_array() @ theta
    policy = bd.PhasedElimination(actions=actions, horizon=LONG, centre=0.3, sigma=0.45, bound=0.9)
    run = run_of(policy, bd.Gaussian(means), seed=3, noise_seed=None, horizon=None)
    first, _ = BatchedPlayer(run, policy).executions(0)
    while first.advance() is not None:
        pass
    plain, dropped = plain_phases(policy, means, 4)
    own = pseudo_regret(first.pulls, run.environment.means)
    assert dropped > 2
    assert assert_same_mean(own, plain, 1e-6) < 0.05 * float(np.mean(plain))


CONTRACT = {
    "six arms": bd.PhasedElimination(actions=ACTIONS, horizon=10**6, centre=0.5, bound=0.5),
    "many arms": bd.PhasedElimination(actions=spread_actions(4, 100, 5), horizon=10**9, sigma=2.0),
    "spanning less": bd.PhasedElimination(actions=SPANNING_LESS, horizon=10**5, centre=0.5, bound=0.5),
    "tiny": bd.PhasedElimination(actions=spread_actions(4, 8, 2), horizon=10),
    "little noise": bd.PhasedElimination(actions=ACTIONS, horizon=10**4, sigma=1e-6, bound=1e6),
    "zeros": bd.PhasedElimination(actions=bd.FiniteActions([[0.0, 0.0], [0.0, 0.0]]), horizon=100),
    "zeros among others": bd.PhasedElimination(
        actions=bd.FiniteActions([[0.0, 0.0], [-0.9, 0.0], [0.0, 0.0], [0.0, -0.9]]), horizon=10**6
    ),
    "the same twice": bd.PhasedElimination(
        actions=bd.FiniteActions([[0.9, 0.1], [0.9, 0.1], [0.1, 0.8]]), horizon=10**6
    ),
    "a cut": bd.PhasedElimination(actions=spread_actions(4, 30, 3).cut([1.0, 0.5, 0.2], 0.0), horizon=10**7),
}


@pytest.mark.parametrize("policy", CONTRACT.values(), ids=CONTRACT.keys())
@pytest.mark.parametrize("check", BATCHED_CHECKS, ids=lambda check: check.__name__)
def test_phased_elimination_contract(policy: Any, check: Check) -> None:
    check(policy)


def test_phases_by_hand() -> None:
    """Two orthogonal arms: the design is half and half and g = 2, so each has 2 sigma^2 / eps^2 log(4 T) pulls."""
    policy = bd.PhasedElimination(
        actions=bd.FiniteActions([[1.0, 0.0], [0.0, 1.0]]), horizon=10**6, centre=0.0, bound=1.0
    )
    state, coins = policy.init(3), Coins(1, count=3)
    plan = policy.plan(state)
    assert plan is not None
    each = math.ceil(0.5 / 0.25 * math.log(4e6))
    assert plan.tolist() == [[each, each]] * 3
    totals = each * np.array([[0.8, -0.19], [0.8, -0.21], [-0.3, 0.71]])  # survivors are at most 2 eps = 1 behind
    state = policy.decide(state, totals, coins)
    assert state.active.tolist() == [[True, True], [True, False], [False, True]]
    plan = policy.plan(state)
    assert plan is not None
    second, left = math.ceil(0.5 / 0.0625 * math.log(12e6)), 10**6 - 2 * each
    assert plan.tolist() == [[second, second], [left, 0], [0, left]]
    state = policy.decide(state, second * np.array([[0.1, 0.2], [0.0, 0.0], [0.0, 0.0]]), coins)
    plan = policy.plan(state)
    assert plan is not None
    assert plan[1:].tolist() == [[0, 0], [0, 0]]
    assert plan[0, 0] == plan[0, 1] > 0


def test_the_best_of_the_last_phase_gets_what_remains() -> None:
    policy = bd.PhasedElimination(
        actions=bd.FiniteActions([[1.0, 0.0], [0.0, 1.0]]), horizon=100, centre=0.0, bound=1.0
    )
    state, coins = policy.init(3), Coins(1, count=3)
    plan = policy.plan(state)
    assert plan is not None
    each = math.ceil(2.0 * math.log(400))
    assert plan.tolist() == [[each, each]] * 3
    state = policy.decide(state, each * np.array([[0.1, 0.2], [0.3, 0.2], [0.2, 0.2]]), coins)
    plan = policy.plan(state)
    assert plan is not None
    left = 100 - 2 * each
    assert plan.tolist() == [[0, left], [left, 0], [left, 0]]
    # no phase at all: arm 0
    tiny = bd.PhasedElimination(actions=ACTIONS, horizon=20)
    assert np.array_equal(np.asarray(tiny.plan(tiny.init(1))), [[20, 0, 0, 0, 0, 0]])


def test_phased_elimination_is_measured_like_any_baseline() -> None:
    policy = bd.PhasedElimination.made_for_linear(ACTIONS, bd.Bernoulli(BOUNDED_MEANS).rewards, 10**6)
    assert (policy.arms, policy.centre, policy.bound, policy.sigma) == (6, 0.5, 0.5, 0.5)
    certificate = bd.certify(policy, bd.Bernoulli(BOUNDED_MEANS), rho=0.1, pairs=500)
    assert certificate.bound is None
    assert certificate.divergence_unit == "batch"
    assert certificate.verdict == "FAIL"
    assert 0 < certificate.regret.mean < 0.05 * 10**6 * float(np.ptp(BOUNDED_MEANS))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "not a set": ({"actions": "x"}, "^actions: got x"),
    "an infinite set": ({"actions": bd.Ball(dimension=2)}, "^actions: got Ball"),
    "one action": ({"actions": bd.FiniteActions([[1.0, 0.0]])}, "^arms: got 1"),
    "sigma": ({"sigma": -1}, "^sigma: got -1"),
    "centre": ({"centre": math.nan}, "^centre: got nan"),
    "regularisation": ({"regularisation": 0.0}, "^regularisation: got 0"),
    "bound": ({"bound": 0}, "^bound: got 0"),
    "inflation": ({"inflation": "x"}, "^inflation: got x"),
    "horizon": ({"horizon": 5}, "^horizon: got 5"),
}
ARGUMENTS: dict[Any, dict[str, Any]] = {
    bd.LinUCB: {"actions": ACTIONS},
    bd.LinThompson: {"actions": ACTIONS},
    bd.PhasedElimination: {"actions": ACTIONS, "horizon": 10**6},
}


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (kind, bad)
        for kind in ARGUMENTS
        for bad, (change, _) in BAD.items()
        if set(change) <= set(signature(kind).parameters)
    ],
)
def test_bad_arguments(kind: Any, bad: str) -> None:
    change, said = BAD[bad]
    with pytest.raises(InvalidArgument, match=said):
        kind(**(ARGUMENTS[kind] | change))
