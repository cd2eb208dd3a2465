"""Linear problems that the claims are measured on: made so that what an experiment varies is all that varies."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry.actions.box import Box
from banditto.geometry.actions.polytope import Polytope

BEST, OTHERS, SPREAD = 0.8, 0.45, 0.85
ADVANTAGE = (BEST - OTHERS) / 2.0  # gap of `one_gap` arms under a parameter of length 1, Bernoulli rewards
BASE, APEX, WIDTH = 0.6, 0.8, 0.75


@cache
def sphere(arms: int, dimension: int) -> FloatArray:
    """Make unit vectors in random directions, the same every time."""
    points = np.random.default_rng([5, arms, dimension]).standard_normal((arms, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


@cache
def one_gap(arms: int, dimension: int) -> FloatArray:
    """Return arms (arm, feature) that all lag the first by the same gap, for theta along the first axis.

    The best arm lies inside of the ellipsoid of the others from four dimensions on. A design does not pull it, so that
    every pull before the others are dropped loses the gap.
    """
    others = np.full((arms - 1, dimension), OTHERS)
    others[:, 1:] = SPREAD * sphere(arms - 1, dimension - 1)
    return np.vstack([BEST * np.eye(dimension)[:1], others])


@cache
def pyramid(dimension: int) -> Polytope:
    """Return a simplex with its tip on the first axis over `dimension` corners; the tip is best if theta points to it.

    A design pulls the corners of the base, equally often, and of what is left after a cut along the axis again those.
    """
    corners = _regular(dimension - 1)
    steepness = WIDTH / (dimension - 1) / (APEX - BASE)
    rows = np.zeros((dimension + 1, dimension))
    rows[0, 0] = -1.0
    rows[1:, 0] = steepness
    rows[1:, 1:] = -corners
    bounds = np.full(dimension + 1, steepness * APEX)
    bounds[0] = -BASE
    return Polytope(rows=np.round(rows, 6), bounds=tuple(np.round(bounds, 6).tolist()))


def _regular(dimension: int) -> FloatArray:
    """Return the n + 1 unit vectors of n dimensions with equal angles between them."""
    corners = np.zeros((dimension + 1, dimension))
    for k in range(dimension):
        corners[k, k] = math.sqrt(1.0 - float(np.sum(corners[k, :k] ** 2)))
        for j in range(k + 1, dimension + 1):
            corners[j, k] = (-1.0 / dimension - float(np.sum(corners[j, :k] * corners[k, :k]))) / corners[k, k]
    return corners


def cut_cube(dimension: int) -> Polytope:
    """Return a cube in the unit ball whose corners 2d random half-spaces cut off."""
    normals = np.random.default_rng([8, dimension]).standard_normal((2 * dimension, dimension))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    axes = np.eye(dimension)
    bounds = [0.5] * (2 * dimension) + [1.0 / math.sqrt(dimension)] * (2 * dimension)
    rows: FloatArray = np.vstack([normals, axes, -axes])
    return Polytope(rows=np.round(rows, 3), bounds=bounds)


def cube(dimension: int) -> Box:
    """Return the largest cube around 0 in the unit ball."""
    side = 1.0 / math.sqrt(dimension)
    return Box(low=(-side,) * dimension, high=(side,) * dimension)


def seed_at(x: float) -> int:
    """Return a seed of its own for each point of a curve, so that the scatter shows the noise."""
    return round(1000.0 * math.log(x))


def along(dimension: int, length: float) -> list[float]:
    """Return a parameter of this length along the first axis."""
    return [length, *[0.0] * (dimension - 1)]


def log_even(low: float, high: float, number: int) -> list[float]:
    """Return `number` numbers from low to high with equal ratios."""
    return [low * (high / low) ** (k / (number - 1)) for k in range(number)]
