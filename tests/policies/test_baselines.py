"""Baselines against plain implementations written here, and the samplers inside compiled loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import stats

import banditto as bd
from banditto.chance import gamma_samples, splitmix
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.engine import rounds
from banditto.engine.batched import BatchedPlayer
from banditto.engine.pair_counts import pseudo_regret
from banditto.engine.player import run_of
from banditto.policies.baselines import kl_ucb, successive_elimination, ucb1
from banditto.policies.policy import Remembering
from banditto.testing import BATCHED_CHECKS, assert_same_mean
from banditto.testing.policy_contract import Check

MEANS = (0.6, 0.75, 0.45, 0.7)
HORIZON = 3000
WIDE, WIDE_HORIZON = (0.2, 0.9, 0.5, 0.3), 20_000  # where elimination comes to its decisions
RUNS = 600


def bernoulli_kl(p: FloatArray, q: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log(p / q), 0.0)
        right = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return np.asarray(left + right)


def kl_bound(p: FloatArray, d: FloatArray) -> FloatArray:
    """By bisection, which knows nothing of Newton or Pinsker."""
    low, high = p.copy(), np.ones_like(p)
    for _ in range(36):
        middle = (low + high) / 2
        inside = bernoulli_kl(p, middle) <= d
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def plain_index(policy: str, t: int, pulls: FloatArray, sums: FloatArray, generator: np.random.Generator) -> FloatArray:
    """The textbook formula for all replicates; shape (RUNS, 4)."""
    means = sums / np.maximum(pulls, 1)
    if policy == "thompson":
        return generator.beta(1 + sums, 1 + pulls - sums)
    if policy == "gaussian-thompson":
        return means + 0.5 / np.sqrt(pulls) * generator.standard_normal(pulls.shape)
    if policy == "ucb1":
        return np.asarray(means + np.sqrt(2 * np.log(t) / pulls))
    if policy == "kl-ucb":
        return kl_bound(means, np.log(t + 1) / pulls)
    assert policy == "moss"
    return np.asarray(means + np.sqrt(np.maximum(np.log(HORIZON / (4 * pulls)), 0) / pulls))


def plain_regret(policy: str, seed: int) -> FloatArray:
    """All replicates at once, round by round, from the textbook; shape (RUNS,)."""
    generator = np.random.default_rng(seed)
    means = np.array(MEANS)
    pulls, sums = np.zeros((RUNS, 4)), np.zeros((RUNS, 4))
    rows = np.arange(RUNS)
    for t in range(HORIZON):
        if t < 4 and policy != "thompson":
            arm = np.full(RUNS, t)
        else:
            arm = np.argmax(plain_index(policy, t, pulls, sums, generator), axis=1)
        sums[rows, arm] += generator.random(RUNS) < means[arm]
        pulls[rows, arm] += 1
    regret: FloatArray = pulls @ (means.max() - means)
    return regret


def plain_elimination(seed: int) -> FloatArray:
    """Successive elimination phase by phase, one run after the other."""
    generator = np.random.default_rng(seed)
    regrets = []
    for _ in range(RUNS):
        active, sums, t, left, regret = [0, 1, 2, 3], np.zeros(4), 0, WIDE_HORIZON, 0.0
        while left > 0:
            t += 1
            for arm in active:
                if left > 0:
                    sums[arm] += generator.random() < WIDE[arm]
                    regret += max(WIDE) - WIDE[arm]
                    left -= 1
            radius = math.sqrt(math.log(5 * 4 * t * t * WIDE_HORIZON) / t)
            best = max(sums[arm] / t for arm in active)
            active = [arm for arm in active if best - sums[arm] / t < 2 * radius]
            if len(active) == 1:
                regret += left * (max(WIDE) - WIDE[active[0]])
                left = 0
        regrets.append(regret)
    return np.array(regrets)


def plain_base(seed: int) -> FloatArray:
    """BaSE with the geometric grid, one run after the other."""
    generator = np.random.default_rng(seed)
    total = bd.BatchedElimination(arms=4, horizon=WIDE_HORIZON).horizon
    number = int(math.log(total))
    regrets = []
    for _ in range(RUNS):
        active, sums, tau, spent, regret = [0, 1, 2, 3], np.zeros(4), 0, 0, 0.0
        for m in range(1, number):
            end = math.floor(total ** (m / number) * (1 + 1e-12))
            each = (end - spent) // len(active)
            if end < 4 or len(active) == 1:
                continue
            for arm in active:
                sums[arm] += generator.binomial(each, WIDE[arm])
                regret += each * (max(WIDE) - WIDE[arm])
            tau, spent = tau + each, spent + each * len(active)
            best = max(sums[arm] / tau for arm in active)
            cut = math.sqrt(0.25 * 12 * math.log(total * 4) / tau)
            active = [arm for arm in active if best - sums[arm] / tau < cut]
        chosen = max(active, key=lambda arm: sums[arm])
        regrets.append(regret + (total - spent) * (max(WIDE) - WIDE[chosen]))
    return np.array(regrets)


def own_regret(policy: Any, world: Any, seed: int, horizon: int = HORIZON) -> FloatArray:
    run = run_of(policy, world, seed=seed, noise_seed=None, horizon=horizon)
    pulls = np.array([rounds.RoundPlayer(run, policy).play_pair(pair)[1][0].pulls for pair in range(RUNS)])
    return pseudo_regret(pulls, world.means)


INDEX_POLICIES: list[Any] = [bd.UCB1(), bd.KLUCB(), bd.MOSS(), bd.Thompson(), bd.GaussianThompson()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, marks=[pytest.mark.long] if policy.name == "kl-ucb" else [], id=policy.name)
        for policy in INDEX_POLICIES
    ],
)
def test_regret_agrees_with_a_plain_implementation(policy: Any) -> None:
    # false-failure rate 1e-6; what would be seen is asserted: a difference of 4% of UCB1's regret, 25% of others'
    own, plain = own_regret(policy, bd.Bernoulli(MEANS), 3), plain_regret(policy.name, 4)
    detectable = assert_same_mean(own, plain, 1e-6)
    assert detectable < {"ucb1": 0.04}.get(policy.name, 0.25) * float(np.mean(plain))


@pytest.mark.long
@pytest.mark.slow
def test_successive_elimination_agrees_with_a_plain_implementation() -> None:
    # false-failure rate 1e-6; a difference of 6% of the regret would be seen
    own, plain = own_regret(bd.SuccessiveElimination(), bd.Bernoulli(WIDE), 3, WIDE_HORIZON), plain_elimination(4)
    assert assert_same_mean(own, plain, 1e-6) < 0.06 * float(np.mean(plain))


def test_batched_elimination_agrees_with_a_plain_implementation() -> None:
    # false-failure rate 1e-6; a difference of 8% of the regret would be seen
    policy = bd.BatchedElimination(arms=4, horizon=WIDE_HORIZON)
    run = run_of(policy, bd.Bernoulli(WIDE), seed=3, noise_seed=None, horizon=None)
    first, _ = BatchedPlayer(run, policy).executions(0)
    while first.advance() is not None:
        pass
    plain = plain_base(4)
    assert assert_same_mean(pseudo_regret(first.pulls, WIDE), plain, 1e-6) < 0.08 * float(np.mean(plain))


ORDINARY = [(bd.UCB1(), 300), *((policy, 100) for policy in [*INDEX_POLICIES[1:], bd.SuccessiveElimination()])]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "pairs"), ORDINARY, ids=lambda part: getattr(part, "name", ""))
def test_ordinary_policies_agree_in_no_pair(policy: Any, pairs: int) -> None:
    certificate = bd.certify(policy, bd.Bernoulli(MEANS), horizon=10**4, rho=0.1, pairs=pairs, seed=1)
    if policy.name == "successive-elimination":  # arms leave at the same round in some pairs
        assert certificate.agreement < 0.5
    else:
        assert certificate.mismatches == pairs
    assert certificate.verdict == "FAIL"
    assert certificate.bound is None


def ucb1_choice(pulls: list[int], sums: list[float], played: int) -> int:
    n, total = np.array(pulls), np.array(sums)
    shares = 1.0 / np.maximum(n, 1)
    memory = np.zeros(bd.UCB1().memory(3))
    return ucb1.choose((n, total, total * shares, shares, memory), played, bd.UCB1().parameters(3, 10**6), np.uint64(0))


def test_ucb1_plays_each_arm_first_and_prefers_the_lowest_index() -> None:
    assert [ucb1_choice([0, 0, 0], [0.0, 0.0, 0.0], t) for t in range(3)] == [0, 1, 2]
    assert ucb1_choice([5, 5, 5], [1.0, 2.0, 2.0], 15) == 1
    assert ucb1_choice([5, 5, 50], [5.0, 5.0, 50.0], 60) == 0


def test_ucb1_works_on_gaussian_rewards() -> None:
    regret = own_regret(bd.UCB1(sigma=0.3), bd.Gaussian(MEANS, sigma=0.3), 1)
    assert 0 < float(np.mean(regret)) < 0.15 * HORIZON * 0.3


def test_thompson_needs_rewards_0_or_1() -> None:
    with pytest.raises(InvalidArgument, match="^environment: got gaussian rewards"):
        bd.certify(bd.Thompson(), bd.Gaussian([0.0, 1.0]), horizon=100, rho=0.1)
    with pytest.raises(InvalidArgument, match="^successes: got 0.5"):
        bd.Thompson(successes=0.5)
    with pytest.raises(InvalidArgument, match="^sigma: got -1"):
        bd.UCB1(sigma=-1)


@pytest.mark.parametrize("policy", INDEX_POLICIES, ids=lambda policy: policy.name)
def test_kernels_are_the_formulas(policy: Any) -> None:
    """Choice by choice on random records, with the same coins: a wrong constant shows at once."""
    generator = np.random.default_rng(11)
    coin_key, horizon = np.uint64(12345), 5000
    parameters = policy.parameters(4, horizon)
    chosen = set()
    for _ in range(400):
        n = generator.integers(1, 200, 4)
        total = generator.binomial(n, generator.uniform(0.3, 0.7, 4)).astype(float)
        t = int(n.sum())
        means = total / n
        noise = np.array([splitmix.normal(coin_key, t * 4 + arm) for arm in range(4)])
        numbers = np.zeros((gamma_samples.NUMBERS, 8))
        for place, shape in enumerate([*(1 + total), *(1 + n - total)]):
            gamma_samples.prepare(shape, numbers, place)
        gamma_samples.draw(numbers, coin_key, t * 8)
        index = {
            "ucb1": means + np.sqrt(2 * math.log(t) / n),
            "kl-ucb": kl_bound(means, math.log(t + 1) / n),
            "moss": means + np.sqrt(np.maximum(np.log(horizon / (4 * n)), 0) / n),
            "gaussian-thompson": means + 0.5 / np.sqrt(n) * noise,
            "thompson": numbers[2, :4] / (numbers[2, :4] + numbers[2, 4:]),
        }[policy.name]
        top = np.sort(index)
        if top[-1] - top[-2] < 1e-9:
            continue
        memory = np.zeros(policy.memory(4) if isinstance(policy, Remembering) else 4)
        own = policy.kernel()((n, total, means, 1.0 / n, memory), t, parameters, coin_key)
        assert own == int(np.argmax(index))
        chosen.add(own)
    assert chosen == {0, 1, 2, 3}


def test_the_kl_bound_against_bisection() -> None:
    p, d = np.meshgrid([0.0, 1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0], [1e-9, 1e-4, 0.01, 0.3, 1.0, 5.0, 40.0])
    own = np.vectorize(kl_ucb.bernoulli_bound)(p, d)
    assert np.allclose(own, kl_bound(p, d), atol=1e-9)
    assert ((own >= p) & (own <= 1)).all()


def test_kl_ucb_of_gaussian_rewards_is_the_closed_form() -> None:
    policy = bd.KLUCB.made_for(bd.Gaussian([0, 1], 2.0).rewards, 2, 100)
    n, total = np.array([10, 40]), np.array([3.0, 30.0])
    record = (n, total, total / n, 1.0 / n, 0.0 * n)
    bounds = total / n + 2.0 * np.sqrt(2 * math.log(51) / n)
    assert kl_ucb.choose(record, 50, policy.parameters(2, 100), np.uint64(0)) == int(np.argmax(bounds))
    with pytest.raises(InvalidArgument, match="Bernoulli divergence"):
        bd.certify(bd.KLUCB(), bd.Gaussian([0.0, 1.0]), horizon=100, rho=0.1)


def test_successive_elimination_remembers_whom_it_dropped() -> None:
    policy = bd.SuccessiveElimination()
    n, averages, memory = np.array([900, 900, 900]), np.array([0.9, 0.1, 0.88]), np.zeros(3)
    record = (n, averages * n, averages, 1.0 / n, memory)
    parameters = policy.parameters(3, 10**4)
    assert successive_elimination.choose(record, 2700, parameters, np.uint64(0)) == 0
    assert memory.tolist() == [0.0, 1.0, 0.0]
    n[0] += 1
    averages[1] = 5.0  # whatever became of it: it is out
    assert successive_elimination.choose(record, 2701, parameters, np.uint64(0)) == 2


BATCHED = {
    "geometric": bd.BatchedElimination(arms=3, horizon=10**6),
    "minimax": bd.BatchedElimination(arms=5, horizon=10**5, grid="minimax", batches=4, gamma=1.0),
    "many arms": bd.BatchedElimination(arms=1000, horizon=10**9, sigma=2.0),
    "tiny": bd.BatchedElimination(arms=8, horizon=10),
}


@pytest.mark.parametrize("policy", BATCHED.values(), ids=BATCHED.keys())
@pytest.mark.parametrize("check", BATCHED_CHECKS, ids=lambda check: check.__name__)
def test_batched_elimination_contract(policy: Any, check: Check) -> None:
    check(policy)


def test_batched_elimination_ends_by_hand() -> None:
    assert bd.BatchedElimination(arms=2, horizon=10**6, batches=3).ends == (100, 10_000)
    # T^(4/7), T^(6/7) for M = 3, as in the paper's minimax grid
    assert bd.BatchedElimination(arms=2, horizon=10**7, batches=3, grid="minimax").ends == (10_000, 10**6)
    assert bd.BatchedElimination(arms=50, horizon=10**6).ends[0] >= 50


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grid": "square"}, "^grid: got square"),
        ({"batches": 1}, "^batches: got 1"),
        ({"grid": "minimax", "batches": 11}, "^batches: got 11"),
        ({"gamma": 0.0}, "^gamma: got 0.0"),
        ({"sigma": "x"}, "^sigma: got x"),
        ({"arms": 1}, "^arms: got 1"),
    ],
)
def test_batched_elimination_bad_arguments(change: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"arms": 3, "horizon": 10**6, **change}
    with pytest.raises(InvalidArgument, match=said):
        bd.BatchedElimination(**arguments)


def test_batched_elimination_is_measured_like_any_baseline() -> None:
    policy = bd.BatchedElimination(arms=2, horizon=10**6)
    certificate = bd.certify(policy, bd.Bernoulli([0.5, 0.55]), rho=0.1, pairs=500)
    assert certificate.bound is None
    assert certificate.guarantee is None
    assert certificate.divergence_unit == "batch"
    assert certificate.verdict == "FAIL"
    with pytest.raises(InvalidArgument, match="which batched-elimination does not have itself"):
        bd.certify(policy, bd.Bernoulli([0.5, 0.55]))


# -- samplers: Kolmogorov-Smirnov at 1e-9 each; with 50,000 draws a distance of 1.5% is seen --------------------------


@njit(cache=False)
def many(kind: int, key: np.uint64, first: float, second: float, out: FloatArray) -> None:
    for index in range(out.size):
        if kind == 0:
            out[index] = splitmix.uniform(key, index)
        elif kind == 1:
            out[index] = splitmix.normal(key, index)
        else:
            out[index] = splitmix.any_beta(first, second, splitmix.word(key, index))


def draws(kind: int, key: int, first: float = 0.0, second: float = 0.0) -> FloatArray:
    out = np.empty(50_000)
    many(kind, np.uint64(key), first, second, out)
    return out


@pytest.mark.parametrize("key", [0, 1, 2**63 + 12345])
def test_uniforms_and_normals_of_compiled_loops(key: int) -> None:
    assert stats.kstest(draws(0, key), "uniform").pvalue > 1e-9
    assert stats.kstest(draws(1, key), "norm").pvalue > 1e-9
    values = draws(0, key)
    assert abs(float(np.corrcoef(values[:-1], values[1:])[0, 1])) < 6 / np.sqrt(50_000)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 30.0), (3.0, 2.0), (4000.0, 1000.0), (1e6, 10.0)])
def test_beta_samples_follow_the_beta(a: float, b: float) -> None:
    assert stats.kstest(draws(2, 98, a, b), stats.beta(a, b).cdf).pvalue > 1e-9


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.05, 3.0), (2.0, 0.2), (0.1, 0.1)])
def test_beta_samples_with_small_shapes(a: float, b: float) -> None:
    assert stats.kstest(draws(2, 97, a, b), stats.beta(a, b).cdf).pvalue > 1e-9


def test_streams_of_neighbouring_keys_are_unrelated() -> None:
    first, second = draws(0, 7), draws(0, 8)
    assert abs(float(np.corrcoef(first, second)[0, 1])) < 6 / np.sqrt(50_000)
