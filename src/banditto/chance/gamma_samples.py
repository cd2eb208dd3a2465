"""Exact samples of gamma laws for compiled loops, many at a time, each from a word of coins of its own.

Papers   Marsaglia and Tsang 2000, "The ziggurat method for generating random variables" and "A simple method for
         generating gamma variables".
Symbols  d = shape - 1/3, c = 1 / sqrt(9 d), z: normal, w = c z, u: uniform; Gamma(shape) is d (1 + w)^3 for a z
         that is kept if log(u) < h = z^2 / 2 + d (1 - (1 + w)^3 + 3 log(1 + w))
Departs  - One word is enough for most draws: 9 bits choose the ziggurat's layer, one the sign, 46 the place in the
           layer, and 8 are the first digits of u. What needs more takes it from the stream whose key is that word.
         - h = -c^2 z^4 B(w), where B(w) is a third of the integral of t^3 / (1 + w t) over t from 0 to 1, falls in w
           and is 0.14123 at w = -1/2. From there on u <= 1 - 0.1413 c^2 z^4 suffices, which for large shapes is
           nearly always so; the paper's bound fails once in ten draws.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from banditto.chance.compiling import compiled
from banditto.chance.splitmix import uniform, word
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.exact import precise

LAYERS = 512
NUMBERS = 3  # kept for each draw: d, c, and the draw
SQUEEZE = 0.1413
_TAIL = Decimal("3.852046150368391248117897697222")  # where the tail begins, such that the layers end at 0


def _edges() -> FloatArray:
    """Return the widths of the ziggurat's layers, from the lowest (a box as large as it and the tail) to 0."""
    with precise():
        height = (-_TAIL * _TAIL / 2).exp()
        fraction = Decimal(0)
        for k in range(400, 0, -1):  # Laplace's continued fraction for the area of the tail
            fraction = k / (_TAIL + fraction)
        area = height * (_TAIL + 1 / (_TAIL + fraction))
        found = [area / height, _TAIL]
        for _ in range(LAYERS - 2):
            height += area / found[-1]
            found.append((-2 * height.ln()).sqrt())
        return np.array([*map(float, found), 0.0])


EDGES = _edges()
_START = float(_TAIL)
_HEIGHTS: FloatArray = np.exp(-0.5 * EDGES * EDGES)
# both twice, because the bit above the layer's is the sign; a place below _INNER is under the curve for sure
_WIDTHS: FloatArray = np.concatenate([EDGES[:-1], -EDGES[:-1]]) * 2.0**-46
_INNER: IntArray = np.tile(EDGES[1:] / EDGES[:-1] * 2.0**46, 2).astype(np.int64)

_LAYER, _SIGNED_LAYER, _DIGITS = np.uint64(LAYERS - 1), np.uint64(2 * LAYERS - 1), np.uint64(255)
_S10, _S18 = np.uint64(10), np.uint64(18)


@compiled
def prepare(shape: float, numbers: FloatArray, place: int) -> None:
    """Write the constants of a gamma shape of at least 1 into column `place`; they hold until the shape changes."""
    numbers[0, place] = shape - 1.0 / 3.0
    numbers[1, place] = 1.0 / math.sqrt(9.0 * numbers[0, place])


@compiled
def draw(numbers: FloatArray, key: np.uint64, first: int) -> None:
    """Write a gamma draw for each prepared shape into the last row of `numbers`; each reads one word of `key`."""
    lacking = 0
    for place in range(numbers.shape[1]):  # without branches, so that several are drawn at once
        numbers[2, place] = at_once(numbers[0, place], numbers[1, place], word(key, first + place))
        lacking += numbers[2, place] < 0.0
    for place in range(numbers.shape[1] if lacking else 0):
        if numbers[2, place] < 0.0:
            numbers[2, place] = in_full(numbers[0, place], numbers[1, place], word(key, first + place))


@compiled
def at_once(d: float, c: float, bits: np.uint64) -> float:
    """Return the gamma draw if one random word suffices for it, else -1."""
    slot, place = bits & _SIGNED_LAYER, np.int64(bits >> _S18)
    z = place * _WIDTHS[slot]
    v = 1.0 + c * z
    part = c * z * z
    u_at_most = (np.int64((bits >> _S10) & _DIGITS) + 1) * 2.0**-8
    kept = (place < _INNER[slot]) & (v >= 0.5) & (u_at_most <= 1.0 - SQUEEZE * part * part)
    return d * (v * v * v) if kept else -1.0


@compiled
def in_full(d: float, c: float, first: np.uint64) -> float:
    """Return the gamma draw, with more random words if it needs them; it agrees with `at_once` where that succeeds."""
    bits, index = first, 0
    while True:
        slot, place = bits & _SIGNED_LAYER, np.int64(bits >> _S18)
        z = place * _WIDTHS[slot]
        kept = True
        if place >= _INNER[slot]:
            size = near_edge(int(bits & _LAYER), abs(z), word(first, index))
            kept = size >= 0.0
            z = math.copysign(size, z)
        root: float = 1.0 + c * z
        if kept and root > 0.0:
            v = root * root * root
            u = (np.int64((bits >> _S10) & _DIGITS) + uniform(first, index + 1)) * 2.0**-8
            part = c * z * z
            if root >= 0.5 and u <= 1.0 - SQUEEZE * part * part:
                return d * v
            if math.log(u) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return d * v
        bits = word(first, index + 2)
        index += 3


@compiled
def near_edge(layer: int, z: float, key: np.uint64) -> float:
    """Return z if it lies under the normal curve, or a draw from the tail in the lowest layer; -1 if z is rejected."""
    if layer > 0:
        height = _HEIGHTS[layer] + uniform(key, 0) * (_HEIGHTS[layer + 1] - _HEIGHTS[layer])
        return z if height < math.exp(-0.5 * z * z) else -1.0
    index = 0
    while True:
        further = -math.log(uniform(key, index)) / _START
        if -2.0 * math.log(uniform(key, index + 1)) > further * further:
            return _START + further
        index += 2
