"""Addressed random words inside compiled loops.

Per-round policies need millions of words per execution. A word is the SplitMix64 finaliser of key + index * step
(Steele, Lea and Flood 2014): a pure function of its address, a few nanoseconds, no state. Keys come from `coins`
for what the pair shares and from `noise` for what is fresh.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S12 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(12)
_ONE = np.uint64(1)


@njit(cache=True, forceinline=True)
def word(key: np.uint64, index: int) -> np.uint64:
    """The word at `index` of the stream `key`."""
    bits = key + (np.uint64(index) + _ONE) * _STEP
    bits = (bits ^ (bits >> _S30)) * _FIRST
    bits = (bits ^ (bits >> _S27)) * _SECOND
    return bits ^ (bits >> _S31)


@njit(cache=True, forceinline=True)
def uniform(key: np.uint64, index: int) -> float:
    """A uniform number in (0, 1): 52 bits and a half, so that neither 0 nor 1 can come out."""
    return (np.float64(word(key, index) >> _S12) + 0.5) * 2.0**-52


@njit(cache=True, forceinline=True)
def normal(key: np.uint64, index: int) -> float:
    """A standard normal number (Box-Muller) from words 2*index and 2*index + 1."""
    radius = math.sqrt(-2.0 * math.log(uniform(key, 2 * index)))
    return radius * math.cos(2.0 * math.pi * uniform(key, 2 * index + 1))
