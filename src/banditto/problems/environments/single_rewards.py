"""Single rewards for compiled loops, one kernel per law; noise is looked up by round."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from banditto.chance import splitmix
from banditto.core.arrays import FloatArray


@njit(cache=True, forceinline=True, error_model="numpy")
def bernoulli(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Return 1 with probability law[arm, 0], else 0."""
    return 1.0 if splitmix.uniform(noise_key, time) < law[arm, 0] else 0.0


@njit(cache=True, forceinline=True, error_model="numpy")
def gaussian(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Return a normal reward with mean law[arm, 0] and standard deviation law[arm, 1]."""
    reward: float = law[arm, 0] + law[arm, 1] * splitmix.normal(noise_key, time)
    return reward


@njit(cache=True, forceinline=True, error_model="numpy")
def beta(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Return a Beta(law[arm, 0], law[arm, 1]) reward."""
    return splitmix.any_beta(law[arm, 0], law[arm, 1], splitmix.word(noise_key, time))


@njit(cache=True, forceinline=True, error_model="numpy")
def discrete(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Return the value whose cumulative probability is the first above a uniform number.

    `law` holds (cumulative probability, value) pairs.
    """
    u = splitmix.uniform(noise_key, time)
    size = law.shape[1] // 2
    index = 0
    while index < size - 1 and u >= law[arm, 2 * index]:
        index += 1
    value: float = law[arm, 2 * index + 1]
    return value


@njit(cache=True, forceinline=True, error_model="numpy")
def resampled(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Return the value of a row, all rows equally likely.

    `law` holds how many values there are, then the rows up to and including each, then the values.
    """
    size = int(law[arm, 0])
    half = (law.shape[1] - 1) // 2
    row = math.floor(splitmix.uniform(noise_key, time) * law[arm, size])  # from 0 to rows - 1
    low, high = 0, size - 1
    while low < high:  # the first value whose rows go beyond this one
        middle = (low + high) // 2
        if law[arm, 1 + middle] > row:
            high = middle
        else:
            low = middle + 1
    value: float = law[arm, 1 + half + low]
    return value


@njit(cache=True, forceinline=True, error_model="numpy")
def replayed(arm: int, law: FloatArray, noise_key: np.uint64, time: int) -> float:
    """Return the reward of the arm's next row, 0 beyond the last one.

    `law` holds how many rows were read so far (which is increased here), how many there are, and the rows. The caller
    must see from the arms that rows ran out, and discard what follows.
    """
    row = int(law[arm, 0])
    law[arm, 0] += 1.0
    value: float = law[arm, 2 + row] if row < law[arm, 1] else 0.0
    return value
