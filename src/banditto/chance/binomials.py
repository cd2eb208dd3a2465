"""Exact binomial totals of any count up to 10^15, compiled: one draw costs half of what NumPy's takes.

Method   Hörmann 1993, "The generation of binomial random variates", algorithm BTRS, with the squeeze that
         Kachitvichyanukul and Schmeiser 1988 use before the exact test. For that probabilities come from a table near
         the mode, else from the saddle-point formula of Loader 2000: it loses no digits at large counts, where
         differences of logarithms of factorials would. Below ten expected successes (or failures) by inversion.
Symbols  n: count, p <= 1/2: probability, q = 1 - p, m: mode, s: standard deviation; a, b, c, alpha, v_r: Hörmann's
         constants; u, v: uniform numbers.
Words    are looked up by place, as in `splitmix`; the second key keeps streams apart that pass the same place.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from banditto.chance.compiling import compiled
from banditto.core.arrays import FloatArray, IntArray, WordArray

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
    """Return the error of Stirling's formula for log x!, where x is a positive integer."""
    if x < 16.0:
        return float(_STIRLING[int(x)])
    y = 1.0 / x
    z = y * y
    return y * (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0))))


@njit(cache=True, error_model="numpy")
def _deviance(x: float, mean: float) -> float:
    """Return x log(x / mean) + mean - x, to full precision even when x is close to the mean."""
    v = (x - mean) / (x + mean)
    z = v * v
    if z > 0.0025:
        return x * math.log(x / mean) + mean - x
    # the next term is below 1e-19 of the first
    series = 1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0)))))
    return v * ((x - mean) + 2.0 * x * z * series)


@njit(cache=True, error_model="numpy")
def log_probability(k: float, n: float, p: float) -> float:
    """Return the logarithm of the probability that Binomial(n, p) equals k."""
    if k == 0.0:
        return n * math.log1p(-p)
    if k == n:
        return n * math.log(p)
    rest = n - k
    close = _stirling(n) - _stirling(k) - _stirling(rest) - _deviance(k, n * p) - _deviance(rest, n * (1.0 - p))
    return close + 0.5 * math.log(n / (k * rest)) - _HALF_LOG_TWO_PI


_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)
_SMALL = 10.0  # expected successes below which inversion is used
_RATIOS, _NEAR = 9, 32  # P(k) / P(mode) for k this near to it are made beforehand
_CONSTANTS = _RATIOS + 2 * _NEAR + 1


@compiled
def _uniform(key: np.uint64, second: np.uint64, index: np.uint64) -> float:
    """Return the number at `index` of a stream, in [0, 1): SplitMix64's finaliser with a second key in its middle."""
    bits = key + index * _STEP
    bits = ((bits ^ (bits >> _S30)) * _FIRST) ^ second
    bits = (bits ^ (bits >> _S27)) * _SECOND
    return np.float64((bits ^ (bits >> _S31)) >> _S11) * 2.0**-53


@compiled
def _prepare(n: float, p: float, constants: FloatArray) -> None:
    """Write into `constants` the numbers that all draws of Binomial(n, p), p <= 1/2, have in common."""
    if n * p < _SMALL:
        constants[0] = math.exp(n * math.log1p(-p))  # P(0)
        constants[1] = p / (1.0 - p)
        return
    variance = n * p * (1.0 - p)
    s = math.sqrt(variance)
    b = 1.15 + 2.53 * s
    a = -0.0873 + 0.0248 * b + 0.01 * p
    mode = math.floor((n + 1.0) * p)
    constants[0] = 2.0 * a
    constants[1] = b
    constants[2] = n * p + 0.5
    constants[3] = 0.92 - 4.2 / b  # v_r
    constants[4] = (2.83 + 5.1 / b) * s  # alpha
    constants[5] = mode
    constants[6] = variance
    constants[7] = 0.5 * variance - 1.0  # how far from the mode the squeeze holds
    constants[8] = log_probability(mode, n, p)
    ratio, odds = 1.0, p / (1.0 - p)
    constants[_RATIOS + _NEAR] = 1.0
    for away in range(1, _NEAR + 1):  # upwards from the mode, each from the one before
        k = mode + away
        ratio = ratio * odds * (n - k + 1.0) / k if k <= n else 0.0
        constants[_RATIOS + _NEAR + away] = ratio
    ratio = 1.0
    for away in range(1, _NEAR + 1):
        k = mode - away
        ratio = ratio * (k + 1.0) / (odds * (n - k)) if k >= 0.0 else 0.0
        constants[_RATIOS + _NEAR - away] = ratio


@compiled
def _inverted(n: float, constants: FloatArray, key: np.uint64, second: np.uint64, index: np.uint64) -> float:
    """Return a binomial draw, by adding probabilities from 0 upwards until they exceed a uniform number."""
    u, k, probability = _uniform(key, second, index), 0.0, constants[0]
    # where fewer than ten are expected, 200 never come up: only rounding errors are left beyond
    while u > probability and k < n and k < 200.0:
        u -= probability
        k += 1.0
        probability *= constants[1] * (n - k + 1.0) / k
    return k


@compiled
def _accepted(k: float, v: float, n: float, p: float, constants: FloatArray) -> bool:
    """Return whether v is at most P(k) / P(mode), so that the proposed draw k is accepted."""
    distance, variance = abs(k - constants[5]), constants[6]
    if distance <= _NEAR:
        return bool(v <= constants[_RATIOS + _NEAR + int(k - constants[5])])
    log = math.log(v)
    if distance < constants[7]:
        share = distance / variance
        slack = share * ((distance * (distance / 3.0 + 0.625) + 1.0 / 6.0) / variance + 0.5)
        middle = -0.5 * distance * share
        if log < middle - slack:
            return True
        if log > middle + slack:
            return False
    return bool(log <= log_probability(k, n, p) - constants[8])


@compiled
def _draw(
    n: float, p: float, constants: FloatArray, key: np.uint64, second: np.uint64, index: np.uint64, step: np.uint64
) -> float:
    """Return a draw of Binomial(n, p), p <= 1/2; each attempt reads two words, at `index` and every `step` after it."""
    if n * p < _SMALL:
        return _inverted(n, constants, key, second, index)
    while True:
        u = _uniform(key, second, index) - 0.5
        v = _uniform(key, second, index + _ONE)
        us = 0.5 - abs(u)
        k: float = np.floor((constants[0] / us + constants[1]) * u + constants[2])
        if us >= 0.07 and v <= constants[3]:
            return k
        if 0.0 <= k <= n and _accepted(k, _height(us, v, constants), n, p, constants):
            return k
        index += step


@compiled
def _height(us: float, v: float, constants: FloatArray) -> float:
    """Return the height of v under the hat function, as a share of the probability of the mode."""
    height: float = v * constants[4] / (0.5 * constants[0] / (us * us) + constants[1])
    return height


@compiled
def _proposals(
    places: WordArray, constants: FloatArray, key: np.uint64, second: np.uint64, out: tuple[FloatArray, ...]
) -> None:
    """Write first attempts at many draws into `out`, without a branch, so that vector instructions are used."""
    ks, tails, heights = out
    a, b, c = constants[0], constants[1], constants[2]
    for place in range(places.size):
        u = _uniform(key, second, places[place]) - 0.5
        us = 0.5 - abs(u)
        ks[place] = np.floor((a / us + b) * u + c)
        tails[place] = us
        heights[place] = _uniform(key, second, places[place] + _ONE)


@compiled
def _zeros(counts: IntArray) -> int:
    """Return how many counts are zero."""
    found = 0
    for row in range(counts.size):
        found += counts[row] == 0
    return found


@njit(cache=True, error_model="numpy")
def totals(
    pulls: IntArray,
    means: FloatArray,
    keys: tuple[np.uint64, np.uint64],
    first: np.uint64,
    numbers: IntArray,
    whole: int,
    out: FloatArray,
) -> None:
    """Write a draw of Binomial(pulls, mean) for each (replicate, arm) into `out`, whose shape is (arm, replicate).

    The words of replicate r and arm j begin at `first` + 2 (j R + r), where r is its number among all R that there were
    at first (`numbers`, `whole`): a draw does not depend on who else is left. Nearly always all that pull an arm do so
    equally often: those draws are made together, the others one by one.
    """
    rows, arms = pulls.shape
    constants, others = np.empty(_CONSTANTS), np.empty(_CONSTANTS)
    chosen, doubtful = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    places = np.empty(rows, dtype=np.uint64)
    ks, tails, heights = np.empty(rows), np.empty(rows), np.empty(rows)
    step = np.uint64(2 * whole * arms)
    for arm in range(arms):
        least, most = pulls[:, arm].min(), pulls[:, arm].max()
        mean = means[arm]
        n, p = float(most), min(mean, 1.0 - mean)
        out[arm, :] = 0.0
        base = first + np.uint64(2 * arm * whole)
        if n * p > 0.0:
            size = rows
            if least == most:
                for row in range(rows):
                    places[row] = base + np.uint64(2 * numbers[row])
                    chosen[row] = row
            else:
                size = 0
                for row in range(rows):
                    places[size] = base + np.uint64(2 * numbers[row])
                    chosen[size] = row
                    size += pulls[row, arm] == most
            _prepare(n, p, constants)
            if n * p >= _SMALL:
                _proposals(places[:size], constants, keys[0], keys[1], (ks, tails, heights))
                again = 0  # no branch here either: nobody can predict which of them need a second look
                for index in range(size):
                    out[arm, chosen[index]] = ks[index]
                    doubtful[again] = index
                    again += tails[index] < 0.07 or heights[index] > constants[3]
                for number in range(again):
                    index = doubtful[number]
                    k = ks[index]
                    height = _height(tails[index], heights[index], constants)
                    if not (0.0 <= k <= n and _accepted(k, height, n, p, constants)):
                        place = places[index] + step
                        out[arm, chosen[index]] = _draw(n, p, constants, keys[0], keys[1], place, step)
            else:
                for index in range(size):
                    out[arm, chosen[index]] = _draw(n, p, constants, keys[0], keys[1], places[index], step)
            if 0 < least < most or (least == 0 and size + _zeros(pulls[:, arm]) < rows):
                for row in range(rows):
                    count = pulls[row, arm]
                    if count != most and count > 0:
                        _prepare(float(count), p, others)
                        place = base + np.uint64(2 * numbers[row])
                        out[arm, row] = _draw(float(count), p, others, keys[0], keys[1], place, step)
        if mean > 0.5 and most > 0:
            for row in range(rows):
                out[arm, row] = float(pulls[row, arm]) - out[arm, row]


@njit(cache=True, error_model="numpy")
def each(
    counts: IntArray, means: FloatArray, keys: tuple[np.uint64, np.uint64], first: np.uint64, out: IntArray
) -> None:
    """Write a draw of Binomial(count, mean) for each pair of a count and a mean into `out`."""
    constants = np.empty(_CONSTANTS)
    step = np.uint64(2 * counts.size)
    count, mean = -1, -1.0
    for index in range(counts.size):
        p = min(means[index], 1.0 - means[index])
        if counts[index] != count or means[index] != mean:
            count, mean = counts[index], means[index]
            if count > 0:
                _prepare(float(count), p, constants)
        k = 0.0
        if count > 0 and p > 0.0:
            k = _draw(float(count), p, constants, keys[0], keys[1], first + np.uint64(2 * index), step)
        out[index] = count - np.int64(k) if mean > 0.5 else np.int64(k)
