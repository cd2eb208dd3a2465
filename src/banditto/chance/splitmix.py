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
_HALF_STREAM = 1 << 32  # X reads the stream's words from 0, Y from here: neither can reach the other's


# FROZEN(v1): certificates of policies that choose round by round are made again from these words
@njit(cache=True, forceinline=True)
def word(key: np.uint64, index: int) -> np.uint64:
    """Return the 64-bit word at `index` of the stream `key`."""
    bits = key + (np.uint64(index) + _ONE) * _STEP
    bits = (bits ^ (bits >> _S30)) * _FIRST
    bits = (bits ^ (bits >> _S27)) * _SECOND
    return bits ^ (bits >> _S31)


@njit(cache=True, forceinline=True)
def uniform(key: np.uint64, index: int) -> float:
    """Return a uniform number in (0, 1), from 52 bits and a half, so that neither 0 nor 1 can come out."""
    return (np.float64(word(key, index) >> _S12) + 0.5) * 2.0**-52


@njit(cache=True, forceinline=True)
def normal(key: np.uint64, index: int) -> float:
    """Return a standard normal number (Box-Muller) from words 2*index and 2*index + 1."""
    radius = math.sqrt(-2.0 * math.log(uniform(key, 2 * index)))
    return radius * math.cos(2.0 * math.pi * uniform(key, 2 * index + 1))


@njit(cache=True, forceinline=True, error_model="numpy")
def gamma(shape: float, key: np.uint64, first: int) -> float:
    """Return a Gamma(shape) draw, shape >= 1, from the words of `key` from `first` on (Marsaglia and Tsang 2000).

    d = shape - 1/3 and c = 1 / sqrt(9 d) are the paper's.
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    index = first
    while True:
        # polar method (Marsaglia): one normal from a point in the unit disc
        x = 2.0 * uniform(key, index) - 1.0
        y = 2.0 * uniform(key, index + 1) - 1.0
        index += 2
        s = x * x + y * y
        if s >= 1.0:
            continue
        z = x * math.sqrt(-2.0 * math.log(s) / s)
        v = 1.0 + c * z
        if v <= 0.0:
            continue
        v = v * v * v
        u = uniform(key, index)
        index += 1
        squared = z * z
        if u < 1.0 - 0.0331 * squared * squared:
            return d * v
        if math.log(u) < 0.5 * squared + d * (1.0 - v + math.log(v)):
            return d * v


@njit(cache=True, forceinline=True, error_model="numpy")
def log_gamma_draw(shape: float, key: np.uint64, first: int) -> float:
    """Return the log of a Gamma(shape) draw for any shape; below 1 it is Gamma(shape + 1) U^(1/shape)."""
    if shape >= 1.0:
        return math.log(gamma(shape, key, first))
    return math.log(gamma(shape + 1.0, key, first + 1)) + math.log(uniform(key, first)) / shape


@njit(cache=True, forceinline=True, error_model="numpy")
def any_beta(a: float, b: float, key: np.uint64) -> float:
    """Return a Beta(a, b) draw for any positive a and b; through logarithms, because small shapes underflow."""
    x = log_gamma_draw(a, key, 0)
    y = log_gamma_draw(b, key, _HALF_STREAM)
    return 1.0 / (1.0 + math.exp(min(y - x, 700.0)))
