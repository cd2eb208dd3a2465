"""The design with BLAS and LAPACK in place of fixed-order arithmetic: what a plain implementation would do.

Used to show that its plans differ between machines, and to measure what fixed-order arithmetic costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry import regression
from banditto.geometry.design import core_sets, frank_wolfe, g_optimal


def linear_forms(points: FloatArray, direction: FloatArray) -> FloatArray:
    forms: FloatArray = direction @ points
    return forms


def quadratic_forms(points: FloatArray, factor: FloatArray) -> FloatArray:
    white = factor @ points
    forms: FloatArray = np.einsum("ij,ij->j", white, white)
    return forms


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    return left @ right


def inner(left: FloatArray, right: FloatArray) -> float:
    return float(left @ right)


def second_moment(points: FloatArray, weights: FloatArray) -> FloatArray:
    return (points * weights) @ points.T


def cholesky(matrix: FloatArray) -> FloatArray | None:
    try:
        return np.linalg.cholesky(matrix).astype(np.float64)
    except np.linalg.LinAlgError:
        return None


def inverse_of_lower(lower: FloatArray) -> FloatArray:
    return np.tril(np.linalg.inv(lower))


def solved_lower(lower: FloatArray, right: FloatArray) -> FloatArray:
    return np.linalg.solve(lower.T, np.linalg.solve(lower, right))


REPLACED = {
    function.__name__: function
    for function in (
        *(linear_forms, quadratic_forms, product, inner, second_moment),
        *(cholesky, inverse_of_lower, solved_lower),
    )
}


@contextmanager
def blas() -> Iterator[None]:
    """Inside, designs of finitely many arms use BLAS."""
    kept: list[tuple[Any, str, Any]] = []
    for module in (core_sets, frank_wolfe, g_optimal, regression):
        for name, function in REPLACED.items():
            if hasattr(module, name):
                kept.append((module, name, getattr(module, name)))
                setattr(module, name, function)
    try:
        yield
    finally:
        for module, name, function in kept:
            setattr(module, name, function)
