"""Single rewards for compiled loops, one kernel per law; noise is looked up by round."""

from __future__ import annotations

import numpy as np
from numba import njit

from banditto import counter
from banditto.arrays import FloatArray


@njit(cache=True, forceinline=True, error_model="numpy")
def bernoulli(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """1 with probability law[arm, 0]."""
    return 1.0 if counter.uniform(noise_key, time) < law[arm, 0] else 0.0


@njit(cache=True, forceinline=True, error_model="numpy")
def gaussian(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Normal with mean law[arm, 0] and standard deviation law[arm, 1]."""
    reward: float = law[arm, 0] + law[arm, 1] * counter.normal(noise_key, time)
    return reward


@njit(cache=True, forceinline=True, error_model="numpy")
def beta(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Beta(law[arm, 0], law[arm, 1])."""
    return counter.any_beta(law[arm, 0], law[arm, 1], counter.word(noise_key, time))


@njit(cache=True, forceinline=True, error_model="numpy")
def discrete(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """The value whose cumulative probability is the first above a uniform number; law: (cumulative, value) pairs."""
    u = counter.uniform(noise_key, time)
    size = law.shape[1] // 2
    index = 0
    while index < size - 1 and u >= law[arm, 2 * index]:
        index += 1
    value: float = law[arm, 2 * index + 1]
    return value
