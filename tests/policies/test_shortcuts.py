"""Shortcuts decide nothing: the same arms, bit for bit, as working everything out in every round."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import banditto as bd
from banditto.chance import gamma_samples
from banditto.core.arrays import FloatArray
from banditto.engine import rounds
from banditto.engine.player import run_of
from banditto.policies.baselines import ucb1
from banditto.policies.policy import Kernel, Record


@njit(error_model="numpy")
def plain(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    averages, shares = record[2], record[3]
    if played < averages.size:
        return played
    spread = parameters[0] * math.log(played)
    best, bound = 0, -np.inf
    for arm in range(averages.size):
        upper = averages[arm] + math.sqrt(spread * shares[arm])
        if upper > bound:
            best, bound = arm, upper
    return best


class PlainUCB1(bd.UCB1):
    def kernel(self) -> Kernel:
        return plain


def both_sequences(policy: bd.UCB1, world: Any, seed: int, horizon: int) -> tuple[list[str], list[str]]:
    """The digests of a pair's sequences of arms: the policy's, and those of the plain loop."""
    found = []
    for kind in (policy, PlainUCB1(sigma=policy.sigma)):
        run = run_of(kind, world, seed=seed, noise_seed=None, horizon=horizon)
        found.append([execution.digest for execution in rounds.RoundPlayer(run, kind).play_pair(0)[1]])
    return found[0], found[1]


WORLDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "random": lambda g, arms: bd.Bernoulli(g.random(arms)),
    "close": lambda g, arms: bd.Bernoulli(0.5 + 1e-3 * g.random(arms)),
    "equal": lambda g, arms: bd.Bernoulli([0.5] * arms),
    "all 1": lambda g, arms: bd.Bernoulli([1.0] * arms),
    "0 and 1": lambda g, arms: bd.Bernoulli((g.random(arms) < 0.5).astype(float)),
    "thirds": lambda g, arms: bd.Discrete.from_means(g.integers(0, 4, arms) / 3.0, levels=4),
    "normal": lambda g, arms: bd.Gaussian(g.normal(-0.5, 1.0, arms), 0.7),
    "normal, equal": lambda g, arms: bd.Gaussian([-3.0] * arms, 0.01),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_the_plain_loop_chooses_the_same_arms(name: str) -> None:
    generator = np.random.default_rng(20)
    for arms in (2, 3, 5, 10, 17, 33, 64):
        for sigma in (1e-6, 0.02, 0.5, 3.0, 1e3):
            world = WORLDS[name](generator, arms)
            own, expected = both_sequences(bd.UCB1(sigma=sigma), world, arms, 10**4)
            assert own == expected, (name, arms, sigma)
        own, expected = both_sequences(bd.UCB1(), WORLDS[name](generator, arms), arms, 10**5)
        assert own == expected, (name, arms)


@njit(error_model="numpy")
def careless(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    arm = ucb1.choose(record, played, parameters, coin_key)
    if played >= record[0].size:
        record[4][2] -= 1e-4 * abs(record[4][2])  # the largest ceiling, a little too low
    return arm


class CarelessUCB1(bd.UCB1):
    def kernel(self) -> Kernel:
        return careless


def test_a_ceiling_that_is_too_low_would_be_seen() -> None:
    own, expected = both_sequences(CarelessUCB1(), bd.Bernoulli([0.5] * 10), 1, 10**4)
    assert own != expected


def test_ceilings_hold_however_the_logarithm_is_rounded() -> None:
    """At most four units in the last place are assumed of it, here either way."""
    for played in (2, 3, 10, 1000, 10**6, 10**9, 10**15):
        low, high = math.log(played), math.log(played + 1)
        assert high * (1.0 - 4 * 2.0**-52) * (1.0 + ucb1.ROOM) > low * (1.0 + 4 * 2.0**-52)
        assert low * (1.0 + 4 * 2.0**-52) * (1.0 - ucb1.ROOM) < low * (1.0 - 4 * 2.0**-52)


@njit(error_model="numpy")
def plain_thompson(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    pulls, sums = record[0], record[1]
    numbers = np.zeros((gamma_samples.NUMBERS, 2 * pulls.size))
    for arm in range(pulls.size):
        gamma_samples.prepare(parameters[0] + sums[arm], numbers, arm)
        gamma_samples.prepare(parameters[1] + pulls[arm] - sums[arm], numbers, pulls.size + arm)
    gamma_samples.draw(numbers, coin_key, 2 * pulls.size * played)
    best, largest = 0, -1.0
    for arm in range(pulls.size):
        sample = numbers[2, arm] / (numbers[2, arm] + numbers[2, pulls.size + arm])
        if sample > largest:
            best, largest = arm, sample
    return best


class PlainThompson(bd.Thompson):
    def kernel(self) -> Kernel:
        return plain_thompson


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "close", "all 1", "thirds"])
def test_thompson_samples_from_all_posteriors_in_every_round(name: str) -> None:
    generator = np.random.default_rng(21)
    for arms in (2, 3, 10, 64):
        for prior in (1.0, 2.5):
            world, found = WORLDS[name](generator, arms), []
            for kind in (bd.Thompson(failures=prior), PlainThompson(failures=prior)):
                run = run_of(kind, world, seed=arms, noise_seed=None, horizon=20_000)
                found.append([execution.digest for execution in rounds.RoundPlayer(run, kind).play_pair(0)[1]])
            assert found[0] == found[1], (arms, prior)
