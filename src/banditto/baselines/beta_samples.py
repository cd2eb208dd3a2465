"""Exact samples of Beta laws for compiled loops, each from a stream of coins of its own.

Papers   Marsaglia and Tsang 2000, "The ziggurat method for generating random variables" and "A simple method for
         generating gamma variables".
Symbols  x: edges of the ziggurat's layers, f: exp(-x^2 / 2), d = shape - 1/3 and c = 1 / sqrt(9 d)
Departs  - A normal number takes one word: 8 bits choose the layer, one the sign, 48 the place in it. The other 7 begin the uniform
           number of the gamma law's test, which they nearly always decide.
         - What a sampler needs of a shape does not change while an arm is not pulled, so it is worked out once.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from banditto.arrays import FloatArray, IntArray
from banditto.compiling import compiled
from banditto.counter import uniform, word
from banditto.exact import precise

LAYERS = 256
_START = Decimal("3.654152885361008796351947251838")  # where the tail begins, such that the layers end at 0


def edges() -> list[float]:
    """The layers' widths from the bottom up: first that of a box with the tail's and the lowest layer's area, last 0."""
    with precise():
        height = (-_START * _START / 2).exp()
        tail = Decimal(0)
        for k in range(400, 0, -1):  # Laplace's continued fraction of the normal law's tail
            tail = k / (_START + tail)
        area = height * (_START + 1 / (_START + tail))
        found = [area / height, _START]
        for _ in range(LAYERS - 2):
            height += area / found[-1]
            found.append((-2 * height.ln()).sqrt())
        return [*map(float, found), 0.0]


_EDGES = np.array(edges())
# twice, because the bit above the layer's is the sign
WIDTHS: FloatArray = np.concatenate([_EDGES[:-1], -_EDGES[:-1]]) * 2.0**-48
INNER: IntArray = np.tile(_EDGES[1:] / _EDGES[:-1] * 2.0**48, 2).astype(np.int64)  # below: under the curve for sure
HEIGHTS: FloatArray = np.exp(-0.5 * _EDGES * _EDGES)

_LAYER, _SLOT, _LOW = np.uint64(LAYERS - 1), np.uint64(2 * LAYERS - 1), np.uint64(127)
_S9, _S16 = np.uint64(9), np.uint64(16)
_PER_ATTEMPT = 3  # words after a rejected attempt's first: for the ziggurat's edge, for u, and the next attempt's first

# Gamma(d + 1/3) is d v with v = (1 + w)^3, w = c z, for a normal z that is kept if log(u) < h, u uniform, where
# h = z^2 / 2 + d (1 - v + log(v)) = -c^2 z^4 (1/12 - w/15 + w^2/18 - ...). The bracket falls in w and is 0.1412 at
# w = -1/2, so that from there on u <= 1 - SQUEEZE c^2 z^4 is enough.
SQUEEZE = 0.1413


@compiled
def gamma(d: float, c: float, bits: np.uint64) -> float:
    """A Gamma(d + 1/3) draw, mostly from the word `bits` alone."""
    slot, place = bits & _SLOT, np.int64(bits >> _S16)
    z = place * WIDTHS[slot]
    v = 1.0 + c * z
    squared = c * z * z
    u_at_most = (np.int64((bits >> _S9) & _LOW) + 1) * 2.0**-7
    if place < INNER[slot] and v >= 0.5 and u_at_most <= 1.0 - SQUEEZE * squared * squared:
        return d * (v * v * v)
    return gamma_in_full(d, c, bits)


@compiled
def gamma_in_full(d: float, c: float, first: np.uint64) -> float:
    """The same without shortcuts; more words are those of the stream whose key is the first."""
    bits, index = first, 0
    while True:
        slot, place = bits & _SLOT, np.int64(bits >> _S16)
        z = place * WIDTHS[slot]
        kept = True
        if place >= INNER[slot]:
            size = near_edge(np.int64(bits & _LAYER), abs(z), word(first, index))
            kept = size >= 0.0
            z = math.copysign(size, z)
        v = 1.0 + c * z
        if kept and v > 0.0:
            v = v * v * v
            u = (np.int64((bits >> _S9) & _LOW) + uniform(first, index + 1)) * 2.0**-7
            if math.log(u) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return d * v
        bits = word(first, index + 2)
        index += _PER_ATTEMPT


@compiled
def near_edge(layer: int, z: float, key: np.uint64) -> float:
    """z if it is under the curve, a number from the tail for the lowest layer; negative if rejected."""
    if layer > 0:
        height = HEIGHTS[layer] + uniform(key, 0) * (HEIGHTS[layer + 1] - HEIGHTS[layer])
        return z if height < math.exp(-0.5 * z * z) else -1.0
    index = 0
    while True:
        further = -math.log(uniform(key, index)) / _EDGES[1]
        if -2.0 * math.log(uniform(key, index + 1)) > further * further:
            return _EDGES[1] + further
        index += 2


@compiled
def prepare(a: float, b: float, out: FloatArray, first: int) -> None:
    """What `beta` needs of Beta(a, b), a and b >= 1: d and c of both, from `out[first]` on."""
    out[first], out[first + 2] = a - 1.0 / 3.0, b - 1.0 / 3.0
    out[first + 1], out[first + 3] = 1.0 / math.sqrt(9.0 * out[first]), 1.0 / math.sqrt(9.0 * out[first + 2])


@compiled
def beta(prepared: FloatArray, first: int, key: np.uint64, index: int) -> float:
    """A Beta draw as X / (X + Y) with X ~ Gamma(a), Y ~ Gamma(b), from two words of the stream `key`."""
    x = gamma(prepared[first], prepared[first + 1], word(key, 2 * index))
    y = gamma(prepared[first + 2], prepared[first + 3], word(key, 2 * index + 1))
    return x / (x + y)
