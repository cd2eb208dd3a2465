"""The lattice: nearest points by brute force, the surface and the radius by measurement."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest

from banditto.core.arrays import FloatArray
from banditto.core.exact import float_above, precise
from banditto.numbers import lattice
from banditto.testing import assert_rate_at_most, detectable_rate

DIMENSIONS = [1, 2, 3, 5, 8, 10, 20]
LEVEL = 1e-6 / 14


def rounding_constant(dimension: int) -> float:
    """surface / sqrt 2; times s: how likely two points of covariance at most s^2 have different cells, at most."""
    with precise():
        return float_above(lattice.surface(dimension) / Decimal(2).sqrt())


def brute_force(points: FloatArray) -> FloatArray:
    """Distances to the nearest lattice point, among all that are near."""
    dimension = points.shape[1]
    basis, size = lattice.hyperplane(dimension), float(lattice.scale(dimension))
    y = points @ basis.T / size
    best = np.full(len(points), np.inf)
    for offset in itertools.product(range(-2, 3), repeat=dimension + 1):
        k = np.round(y) + np.array(offset)
        best = np.minimum(best, np.linalg.norm(k - k.mean(axis=1, keepdims=True) - y, axis=1))
    return best * size


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_the_nearest_point_is_nearest(dimension: int) -> None:
    points = np.random.default_rng(dimension).standard_normal((400, dimension)) * 3
    cells = lattice.nearest(points)
    assert np.allclose(np.linalg.norm(points - cells.centres, axis=1), brute_force(points), atol=1e-12)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_cells(dimension: int) -> None:
    """Margins are not negative, small steps stay in the cell, and no point is farther than the radius."""
    rng = np.random.default_rng(dimension)
    points = rng.standard_normal((2000, dimension)) * 4
    cells = lattice.nearest(points)
    assert np.min(cells.margins) >= -1e-12
    steps = rng.standard_normal((2000, dimension))
    steps *= (0.999 * np.maximum(cells.margins, 0.0) / np.linalg.norm(steps, axis=1))[:, None]
    assert np.array_equal(lattice.nearest(points + steps).names, cells.names)
    distances = np.linalg.norm(points - cells.centres, axis=1)
    assert np.max(distances) <= float(lattice.radius(dimension)) * (1 + 1e-12)
    assert np.array_equal(lattice.nearest(cells.centres).names, cells.names)
    # a step through the surface does leave it, for some direction: the margin is not too small
    names = {tuple(name) for name in cells.names}
    assert len(names) == len({tuple(np.round(centre, 6)) for centre in cells.centres})


def test_the_radius_is_reached() -> None:
    for dimension in (1, 2, 3):
        points = np.random.default_rng(0).uniform(-3, 3, size=(200_000, dimension))
        distances = np.linalg.norm(points - lattice.nearest(points).centres, axis=1)
        assert np.max(distances) >= 0.97 * float(lattice.radius(dimension))


def test_known_values() -> None:
    """An interval has two ends; a hexagon of area 1 has perimeter 2 sqrt(2 sqrt 3)."""
    assert math.isclose(float(lattice.surface(1)), 2.0)
    assert math.isclose(float(lattice.surface(2)), 2 * math.sqrt(2 * math.sqrt(3)))
    assert math.isclose(float(lattice.radius(1)), 0.5)
    assert math.isclose(float(lattice.radius(2)), math.sqrt(2 / (3 * math.sqrt(3))))
    assert math.isclose(float(lattice.ball_surface(2)), 2 * math.sqrt(math.pi))
    assert math.isclose(float(lattice.ball_surface(3)), (36 * math.pi) ** (1 / 3))
    for dimension in DIMENSIONS:
        assert lattice.ball_surface(dimension) <= lattice.surface(dimension) <= 2 * dimension + 1e-12


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_few_pairs_are_parted(dimension: int) -> None:
    """Noise of a size for which the bound is 0.1: Gaussian, and of two values. Level 1e-6 over the 14 comparisons.

    A rate of 0.1094 would be found with probability 0.8. The Gaussian rate is about 0.08, as sqrt(2 / pi) makes it.
    """
    pairs = 40_000
    rng = np.random.default_rng(dimension)
    size = 0.1 / rounding_constant(dimension)
    moved = lattice.shift(rng.uniform(size=(pairs, dimension))) + rng.standard_normal(dimension)
    assert detectable_rate(pairs, 0.1, LEVEL) <= 0.1094
    for noise in (rng.standard_normal((2, pairs, dimension)), rng.choice([-1.0, 1.0], size=(2, pairs, dimension))):
        first, second = (lattice.nearest(moved + size * one).names for one in noise)
        assert_rate_at_most(int(np.sum(np.any(first != second, axis=1))), pairs, 0.1, LEVEL)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_cell_has_one_centre(dimension: int) -> None:
    """To the last bit, whatever point of the cell was asked about: what is decided from it must be the same."""
    rng = np.random.default_rng(dimension)
    base = rng.standard_normal((200, dimension)) * 30.0
    cells = [lattice.nearest(base + 0.1 * rng.standard_normal(base.shape)) for _ in range(20)]
    seen: dict[bytes, bytes] = {}
    for found in cells:
        for name, centre in zip(found.names, found.centres, strict=True):
            assert seen.setdefault(name.tobytes(), centre.tobytes()) == centre.tobytes()
    assert len(seen) < 0.8 * 4000  # many points share a cell
