"""Binomial probabilities to full precision at any count, by the saddle-point formula of Loader 2000, compiled.

Differences of logarithms of factorials lose all digits at large counts; here every term is small where the probability
is not.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_HALF_LOG_TWO_PI = 0.9189385332046727418
# log k! - (k + 1/2) log k + k - log(2 pi)/2, which the series gives from 16 on; at 0 never used
_STIRLING = np.array(
    [
        0.0,
        *(math.lgamma(k + 1.0) - (k + 0.5) * math.log(k) + k - _HALF_LOG_TWO_PI for k in range(1, 16)),
    ]
)


@njit(cache=True, error_model="numpy")
def _stirling(x: float) -> float:
    """The error of Stirling's formula for log x!, x a positive integer."""
    if x < 16.0:
        return float(_STIRLING[int(x)])
    y = 1.0 / x
    z = y * y
    return y * (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0))))


@njit(cache=True, error_model="numpy")
def _deviance(x: float, mean: float) -> float:
    """x log(x / mean) + mean - x, to full precision when the two are close."""
    v = (x - mean) / (x + mean)
    z = v * v
    if z > 0.0025:
        return x * math.log(x / mean) + mean - x
    # the next term is below 1e-19 of the first
    series = 1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0)))))
    return v * ((x - mean) + 2.0 * x * z * series)


@njit(cache=True, error_model="numpy")
def log_probability(k: float, n: float, p: float) -> float:
    """log P(Binomial(n, p) = k)."""
    if k == 0.0:
        return n * math.log1p(-p)
    if k == n:
        return n * math.log(p)
    rest = n - k
    close = _stirling(n) - _stirling(k) - _stirling(rest) - _deviance(k, n * p) - _deviance(rest, n * (1.0 - p))
    return close + 0.5 * math.log(n / (k * rest)) - _HALF_LOG_TWO_PI
