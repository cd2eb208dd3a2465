"""The lattice A_d*, scaled to cells of volume 1: rounding in d dimensions with cells that are nearly balls.

A_d* is what is left of the integer points of d + 1 dimensions when the direction (1, ..., 1) is projected away. Cells
(permutohedra) have a small surface and a small radius for their volume: noise seldom carries a point across a surface,
and a point is never far from the centre of its cell. For d = 1 they are intervals, for d = 2 regular hexagons.

Symbols  n: d + 1; k: an integer point of n dimensions, the same cell as k + (1, ..., 1); y: a point of the hyperplane
Sources  Conway and Sloane 1982; nearest point: McKilliam, Clarkson and Quinn 2008.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.exact import PI, precise
from banditto.numbers.fixed_order import product


class Cells(NamedTuple):
    """The cells that some points lie in: integer names (point, d), centres, and each point's distance to the edge."""

    names: IntArray
    centres: FloatArray
    margins: FloatArray


@lru_cache(maxsize=512)
def surface(dimension: int) -> Decimal:
    """Return the surface area of a cell of volume 1.

    A permutohedron of n dimensions has volume n^(n - 3/2), and for each k of its n coordinates a face that is the
    product of two smaller ones.
    """
    with precise():
        n = Decimal(dimension + 1)
        volume = n ** (n - Decimal("1.5"))
        faces = Decimal(0)
        for k in range(1, dimension + 1):
            own, other = (Decimal(size) ** (Decimal(size) - Decimal("1.5")) for size in (k, dimension + 1 - k))
            faces += math.comb(dimension + 1, k) * own * other
        return faces / volume * volume ** (Decimal(1) / dimension)


@lru_cache(maxsize=512)
def radius(dimension: int) -> Decimal:
    """Return the largest distance of a point from the centre of its cell."""
    with precise():
        d = Decimal(dimension)
        return (d * (d + 2) / (12 * (d + 1))).sqrt() * scale(dimension)


@lru_cache(maxsize=512)
def scale(dimension: int) -> Decimal:
    """Return the factor that scales the projected integer points so that cells have volume 1."""
    with precise():
        return Decimal(dimension + 1) ** (Decimal(1) / (2 * dimension))


def ball_surface(dimension: int) -> Decimal:
    """Return the surface area of a ball of volume 1, the least that a cell could have."""
    with precise():
        half = Decimal(dimension) / 2
        # volume of the unit ball: pi^(d/2) / gamma(d/2 + 1), by its recursion
        volume = Decimal(1) if dimension % 2 == 0 else Decimal(2)
        for k in range(2 + dimension % 2, dimension + 1, 2):
            volume *= 2 * PI / k
        return 2 * half * volume ** (1 / Decimal(dimension))


@lru_cache(maxsize=64)
def hyperplane(dimension: int) -> FloatArray:
    """Return Helmert's matrix (d + 1, d): orthonormal columns, all orthogonal to (1, ..., 1)."""
    out = np.zeros((dimension + 1, dimension))
    for k in range(1, dimension + 1):
        length = math.sqrt(k * (k + 1))
        out[:k, k - 1] = 1.0 / length
        out[k, k - 1] = -k / length
    out.setflags(write=False)
    return out


def nearest(points: FloatArray) -> Cells:
    """Return the lattice cells that hold the points (point, d)."""
    dimension = points.shape[1]
    n, size = dimension + 1, float(scale(dimension))
    basis = hyperplane(dimension)
    y = product(points, np.ascontiguousarray(basis.T)) / size  # (point, n)
    k = np.floor(y + 0.5)
    rest = y - k
    # the nearest point rounds every coordinate, and then up instead where the most is left: n candidates
    order = np.argsort(-rest, axis=1, kind="stable")
    falling = np.take_along_axis(rest, order, axis=1)
    gained = np.cumsum(falling, axis=1)  # cumulative sums are made one after the other
    up = np.arange(n)
    taken = np.concatenate([np.zeros((len(y), 1)), gained[:, :-1]], axis=1)
    left = gained[:, -1:] - up
    distance = up - 2.0 * taken - left * left / n  # less what all candidates have in common
    ranks = np.argsort(order, axis=1, kind="stable")
    k += ranks < np.argmin(distance, axis=1)[:, None]
    k -= k[:, -1:]  # k and k + (1, ..., 1) are one cell, and its centre must be one to the last bit
    names = k.astype(np.int64)[:, :-1]
    means = np.cumsum(k, axis=1)[:, -1:] / n
    centres = product(k - means, basis) * size
    return Cells(names, centres, _margins(y - (k - means)) * size)


def _margins(residues: FloatArray) -> FloatArray:
    """Return each point's distance to the surface of its cell, from its position relative to the cell's centre."""
    n = residues.shape[1]
    j = np.arange(1, n)
    square = j * (n - j) / n
    largest = np.cumsum(-np.sort(-residues, axis=1), axis=1)[:, :-1]
    gaps = (square / 2.0 - largest) / np.sqrt(square)
    margins: FloatArray = np.min(gaps, axis=1)
    return margins


def shift(uniforms: FloatArray) -> FloatArray:
    """Turn uniform numbers (point, d) into random shifts of the lattice, uniform up to the lattice, and return them."""
    dimension = uniforms.shape[1]
    return product(uniforms, np.ascontiguousarray(hyperplane(dimension)[:dimension])) * float(scale(dimension))
