"""The GPU: the same coins, the same rewards, the same decisions. Without one, errors that say what is missing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.engine.backend import HOST, Machine, machine_of
from banditto.engine.blocks import run_pairs
from banditto.engine.player import run_of
from banditto.policies.policy import own_level
from banditto.problems.environment import Environment
from banditto.testing.environment_contract import MACHINE_CHECKS
from banditto.testing.policy_contract import play
from tests.commands import banditto
from tests.lazily import Lazily

pytestmark = pytest.mark.slow

MEANS = [0.9, 0.85, 0.8, 0.75, 0.7]


def _missing() -> str:
    """Why no GPU can be used here, or nothing."""
    try:
        machine_of("cupy")
    except InvalidArgument as error:
        return str(error)
    return ""


needs_gpu = pytest.mark.skipif(bool(_missing()), reason=_missing() or "there is a GPU")
without_cupy = pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed here")


@pytest.fixture(scope="module")
def gpu() -> Machine:
    return machine_of("cupy")


POLICIES: Lazily[Any] = Lazily(
    {
        "random-threshold": lambda: bd.RandomThreshold(arms=5, horizon=10**8, rho=0.2),
        "random-threshold, paper": lambda: bd.RandomThreshold(arms=5, horizon=10**8, rho=0.5, constants="paper"),
        "mean-rounding": lambda: bd.MeanRounding(arms=5, horizon=10**9, rho=0.3),
        "certified-elimination": lambda: bd.CertifiedElimination(arms=5, horizon=10**6, rho=0.1),
        "explore-then-commit": lambda: bd.ExploreThenCommit(arms=5, horizon=10**6, rho=0.1, gap=0.05),
        "one-cut": lambda: bd.OneCut(arms=5, horizon=10**6, rho=0.2, gap=0.1),
        "one-cut, control": lambda: bd.OneCut(arms=5, horizon=10**6, rho=0.3, gap=0.1, control=2),
        "early-cut": lambda: bd.EarlyCut(arms=5, horizon=10**6, rho=0.2, gap=0.1),
        "early-cut, control": lambda: bd.EarlyCut(arms=5, horizon=10**6, rho=0.3, gap=0.1, control=2),
        "batched-elimination": lambda: bd.BatchedElimination(arms=5, horizon=10**6),
    }
)


def policy_of(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        return POLICIES[name]


# -- anywhere --------------------------------------------------------------------------------------------------------


@without_cupy
def test_without_cupy_the_error_says_how_to_install_it() -> None:
    with pytest.raises(InvalidArgument, match=r"^backend: got cupy, allowed: numpy, or CuPy installed: pip install"):
        bd.certify(policy_of("random-threshold"), bd.Bernoulli(MEANS), pairs=10, backend="cupy")


@without_cupy
def test_the_command_line_says_so_too() -> None:
    words = ["certify", "random-threshold", "--means", "0.9,0.5", "--horizon", "1e6", "--rho", "0.2", "--gpu"]
    done = banditto(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("banditto: error: --gpu: got cupy, allowed: numpy, or CuPy installed: pip install")
    assert done.stderr.count("\n") == 1


def test_backends_are_checked_before_anything_is_run() -> None:
    name: Any = "torch"
    with pytest.raises(InvalidArgument, match="^backend: got torch, allowed: 'numpy' or 'cupy'"):
        bd.certify(policy_of("random-threshold"), bd.Bernoulli(MEANS), pairs=10, backend=name)
    with pytest.raises(InvalidArgument, match="^policy: got ucb1, allowed: a policy that works in batches"):
        bd.certify(bd.UCB1(), bd.Bernoulli(MEANS), pairs=10, horizon=100, rho=0.1, backend="cupy")
    with pytest.raises(InvalidArgument, match="^environment: got beta, allowed: bernoulli, gaussian or discrete"):
        bd.certify(bd.BatchedElimination(arms=2, horizon=1000), bd.Beta([0.5, 0.6]), pairs=1, rho=0.1, backend="cupy")


# -- on a GPU --------------------------------------------------------------------------------------------------------


@needs_gpu
def test_coins_are_the_same_words(gpu: Machine) -> None:
    for start, count in ((0, 1), (0, 10**7), (3, 1000), (2**33 + 5, 4097)):
        here, there = Coins(7, start, count), gpu.coins(7, start, count)
        assert np.array_equal(gpu.host(there.uniform("threshold", 3, 2)), here.uniform("threshold", 3, 2))
    rows = np.array([5, 1, 900])
    chosen = gpu.coins(7, 3, 1000).only(gpu.arrays.asarray(rows))
    assert np.array_equal(gpu.host(chosen.uniform("grid", 1)), Coins(7, 3, 1000).only(rows).uniform("grid", 1))


@needs_gpu
@pytest.mark.parametrize("count", [3, 30, 311, 20_000, 10**6, 10**9, 2**31 - 1, 10**10, 10**13, 10**15])
def test_binomial_totals_are_the_same_draws(gpu: Machine, count: int) -> None:
    """Step by step as on the CPU; only a logarithm that rounds otherwise next to a limit can change a draw."""
    pulls = np.full((6, 20_000), count).T.copy()
    pulls[::5, 0] = 0
    pulls[1::7, 1] = count // 2
    means = [0.5, 0.1, 0.93, 1e-3, 0.0, 1.0]
    here = Noise(4, 1, 9).binomial_totals(pulls, means)
    there = gpu.host(gpu.noise(4, 1, 9).binomial_totals(gpu.arrays.asarray(pulls), means))
    assert np.mean(here != there) <= 1e-4
    assert np.abs(here - there).max() <= 12.0 * math.sqrt(count) + 1.0


@needs_gpu
@pytest.mark.parametrize("check", MACHINE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "world",
    [
        bd.Bernoulli([0.5, 0.001, 0.999]),
        bd.Gaussian([0.5, -3.0], sigma=2.0),
        bd.Discrete([([0, 0.5, 1], [0.2, 0.3, 0.5]), ([0.25], [1.0]), ([0.0, 1.0], [0.999, 0.001])]),
    ],
    ids=lambda world: world.name,
)
def test_environment_contract(gpu: Machine, world: Environment, check: Callable[[Environment, Machine], None]) -> None:
    check(world, gpu)


@needs_gpu
@pytest.mark.parametrize("name", POLICIES)
def test_decisions_are_the_same(gpu: Machine, name: str) -> None:
    policy = policy_of(name)
    here, _ = play(policy, Coins(1, count=2000))
    there, _ = play(policy, gpu.coins(1, 0, 2000), convert=gpu.arrays.asarray, back=gpu.host)
    assert len(here) == len(there)
    assert all(np.array_equal(one, two) for one, two in zip(here, there, strict=True))


@needs_gpu
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("world", [bd.Bernoulli(MEANS), bd.Discrete.from_means(MEANS)], ids=lambda world: world.name)
def test_agreement_and_regret_are_consistent(name: str, world: Environment) -> None:
    """Two-sample comparisons at 5.5 standard errors (4e-8 each): 200,000 pairs there, 40,000 here."""
    policy = policy_of(name)
    there = run_pairs(run_of(policy, world, seed=3, noise_seed=None, horizon=None, backend="cupy"), 200_000).counts
    here = run_pairs(run_of(policy, world, seed=3, noise_seed=None, horizon=None), 40_000).counts
    together = (here.mismatches + there.mismatches) / (here.pairs + there.pairs)
    error = math.sqrt(together * (1.0 - together) * (1.0 / here.pairs + 1.0 / there.pairs))
    assert abs(here.mismatches / here.pairs - there.mismatches / there.pairs) <= 5.5 * error
    error = math.hypot(here.regret.standard_error, there.regret.standard_error)
    assert abs(here.regret.mean - there.regret.mean) <= 5.5 * error
    most = 30 if own_level(policy) == "sequence" else 60  # batches; looks are many
    assert set(there.first_divergence) <= set(here.first_divergence) | set(range(1, most))
    assert sum(there.first_pull.values()) == there.mismatches


@needs_gpu
def test_certificates(gpu: Machine) -> None:
    policy = bd.CertifiedElimination(arms=5, horizon=10**6, rho=0.1)
    found = bd.certify(policy, bd.Bernoulli(MEANS), pairs=100_000, backend="cupy")
    assert found.pairs == 100_000
    assert found.verdict == "PASS"
    again = bd.certify(policy, bd.Bernoulli(MEANS), pairs=100_000, backend="cupy")
    assert again.mismatches == found.mismatches
    with pytest.raises(InvalidArgument, match="^jobs: got 2, allowed: 1"):
        bd.certify(policy, bd.Bernoulli(MEANS), pairs=10, backend="cupy", jobs=2)
    assert machine_of("numpy") is HOST
