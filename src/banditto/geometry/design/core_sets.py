"""From points to weights: where to start, and which points to work on.

The start is Kumar and Yildirim's, centred: d directions, each orthogonal to the points chosen before, and the point
that reaches farthest along each, to either side. Then Frank-Wolfe with away steps on a working set; the points that
are worst under its weights join the set until no point is worse than the target (column generation).

Departs  - argmax |<p, v>| with one point a direction; the paper's (Appendix G) version takes argmax and argmin and the
           span of their differences, which never spans when the points lie in an affine hyperplane (the simplex).
         - the directions are unit vectors made orthogonal, not random: no coins are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray, IntArray
from banditto.geometry.design.frank_wolfe import DesignWeights, whitening
from banditto.numbers.fixed_order import (
    cholesky,
    inner,
    inverse_of_lower,
    largest,
    linear_forms,
    product,
    quadratic_forms,
    second_moment,
    solved_lower,
    total,
)

MOST_STEPS = 100


def polished(points: FloatArray, weights: FloatArray, accuracy: float) -> tuple[FloatArray, int]:
    """Return weights on `points` (feature, point) with max k <= (1 + accuracy) d, if doubles allow it, and the steps.

    This is a primal-dual interior-point method for few points, in fixed-order arithmetic. Frank-Wolfe needs tens of
    thousands of steps for the last digits when many points are nearly optimal (points spread over a sphere); Newton's
    method needs about twenty. The problem is written without its constraint sum w = 1: minimise -log det V(w) + d sum w
    over w >= 0, because at its optimum sum w = 1 comes by itself (sum w_p k_p = tr 1 = d, k_p = d wherever w_p > 0).

    Symbols  k: p' V^-1 p, Q: matrix of p' V^-1 q, z: multipliers of w >= 0, mu: w z aimed at
    """
    dimension, count = points.shape
    w = np.maximum(weights, 1e-3 / count)
    z = np.full(count, accuracy * dimension)
    diagonal = np.arange(count)
    for step in range(MOST_STEPS):
        lower = cholesky(second_moment(points, w))
        if lower is None:
            return weights, step
        white = product(inverse_of_lower(lower), points)  # (feature, point): the columns X p
        cross = product(np.ascontiguousarray(white.T), white)  # Q
        k = np.diagonal(cross)
        mass, gap = total(w), total(w * z)
        if gap <= accuracy * dimension / 8 and float(np.max(k)) * mass <= dimension * (1 + accuracy / 2):
            break
        aim = 0.2 * gap / count
        curvature = cross * cross
        curvature[diagonal, diagonal] += z / w
        half = cholesky(curvature)
        if half is None:
            break
        change = solved_lower(half, k - dimension + aim / w)
        change_z = aim / w - z - z / w * change
        length = min(_longest(w, change), _longest(z, change_z))
        w, z = w + length * change, z + length * change_z
    return w / total(w), step


def _longest(values: FloatArray, change: FloatArray) -> float:
    """Return the longest step, at most 1, that keeps all values positive."""
    falling = change < 0.0
    if not falling.any():
        return 1.0
    return min(1.0, 0.95 * float(np.min(-values[falling] / change[falling])))


FEW_POINTS = 10_000  # up to here the steps run over all points at once
STEPS_PER_DIMENSION = 40  # of Frank-Wolfe, before Newton's method takes over
MOST_ROUNDS = 200
THIN_FROM, THIN_ACCURACY = 0.9, 0.05  # few points are promised at accuracy 1, which asks a little less of the weights


Progress = Callable[[float], None]  # told g / d after every round


class Span(NamedTuple):
    """Points that span the actions' space, and the directions that no point reaches."""

    chosen: list[int]
    absent: list[FloatArray]  # orthonormal directions in which no point reaches beyond the tolerance
    residual: float  # the farthest that any point reaches in one of them


class Solution(NamedTuple):
    """Weights on some of the points, which `support` numbers, and the steps that it took to find them."""

    support: list[int]
    weights: FloatArray
    steps: int


def spanning(reach: Callable[[FloatArray], tuple[FloatArray, int]], dimension: int, tolerance: float) -> Span:
    """Return spanning points to start from (Kumar and Yildirim); `reach(v)` gives the point of largest |<p, v>|."""
    basis: list[FloatArray] = []  # orthonormal: the span of what was chosen
    chosen: list[int] = []
    absent: list[FloatArray] = []
    residual = 0.0
    for _ in range(dimension):
        direction = _orthogonal_unit(basis + absent, dimension)
        point, index = reach(direction)
        distance = abs(inner(point, direction))
        if distance <= tolerance:
            absent.append(direction)
            residual = max(residual, distance)
        else:
            chosen.append(index)
            basis.append(_orthogonal(point, basis + absent))
    return Span(chosen, absent, residual)


def _orthogonal_unit(basis: list[FloatArray], dimension: int) -> FloatArray:
    """Return the unit vector farthest from the span of `basis` (the first of ties), made orthogonal to it."""
    left = np.ones(dimension)
    for vector in basis:
        left -= vector * vector
    unit = np.zeros(dimension)
    unit[largest(left)] = 1.0
    return _orthogonal(unit, basis)


def _orthogonal(vector: FloatArray, basis: list[FloatArray]) -> FloatArray:
    for _ in range(2):  # twice is enough (Kahan)
        for other in basis:
            vector = vector - inner(vector, other) * other
    return vector / math.sqrt(inner(vector, vector))


def spanning_points(points: FloatArray, tolerance: float) -> Span:
    """Return spanning points to start from, for finitely many points (feature, point)."""

    def reach(direction: FloatArray) -> tuple[FloatArray, int]:
        index = largest(np.abs(linear_forms(points, direction)))
        return points[:, index], index

    return spanning(reach, points.shape[0], tolerance)


def solved(points: FloatArray, start: list[int], accuracy: float, progress: Progress | None = None) -> Solution:
    """Return weights with max p' V^-1 p <= (1 + accuracy) d over the points, as far as doubles allow."""
    dimension, count = points.shape
    if dimension == 1:
        return Solution([largest(np.abs(points[0]))], np.ones(1), 0)
    target = (1.0 + accuracy) * dimension
    if accuracy >= 0.3 or (count <= FEW_POINTS and accuracy >= 0.1):
        weights = np.zeros(count)
        weights[start] = 1.0 / dimension
        state = DesignWeights.on(points, weights)
        state.improve(target)
        return _thinned(points, Solution(state.support, state.values[state.support], state.steps), accuracy)
    return _thinned(points, _by_columns(points, start, accuracy, progress), accuracy)


def _by_columns(points: FloatArray, start: list[int], accuracy: float, progress: Progress | None) -> Solution:
    """Solve by column generation: weigh a few points, let the worst of the others in, repeat; return the weights."""
    dimension = points.shape[0]
    working = np.array(sorted(start), dtype=np.int64)
    weights = np.full(working.size, 1.0 / dimension)
    steps = 0
    for round_ in range(MOST_ROUNDS):
        forms = quadratic_forms(points, whitening(points[:, working], weights))
        worst = float(forms[largest(forms)])
        if progress is not None:
            progress(worst / dimension)
        if worst <= (1.0 + accuracy) * dimension:
            break
        # early on the weights are far from right, so that few of the points that look bad are
        inner_accuracy = max(accuracy / 2, 0.5**round_ / 4)
        added = _worst(forms, (1.0 + accuracy / 2) * dimension, 2 * dimension)
        working, weights = _joined(working, weights, added)
        weights, more = improved(points[:, working], weights, inner_accuracy)
        steps += more
        kept = np.flatnonzero(weights)
        working, weights = working[kept], weights[kept]
    return Solution([int(index) for index in working], weights, steps)


def _worst(forms: FloatArray, target: float, most: int) -> IntArray:
    """Return the numbers of the points whose form exceeds `target`, the worst `most` of them; low numbers win ties."""
    beyond = np.flatnonzero(forms > target)
    return beyond[np.argsort(-forms[beyond], kind="stable")[:most]]


def _joined(working: IntArray, weights: FloatArray, added: IntArray) -> tuple[IntArray, FloatArray]:
    new = np.setdiff1d(added, working)
    indices = np.concatenate([working, new])
    order = np.argsort(indices, kind="stable")
    return indices[order], np.concatenate([weights, np.zeros(new.size)])[order]


def improved(points: FloatArray, weights: FloatArray, accuracy: float) -> tuple[FloatArray, int]:
    """Return weights with max p' V^-1 p <= (1 + accuracy) d over few points, and the steps: Frank-Wolfe or Newton."""
    dimension, count = points.shape
    state = DesignWeights.on(points, weights)
    if state.improve((1.0 + accuracy) * dimension, STEPS_PER_DIMENSION * dimension):
        return state.values, state.steps
    values, steps = polished(points, state.values, accuracy)
    # a point whose mass would not be missed leaves the support
    values = np.where(values < accuracy / (64 * count), 0.0, values)
    return values, state.steps + steps


def _thinned(points: FloatArray, solution: Solution, accuracy: float) -> Solution:
    """Return a solution on at most 2 d points if the accuracy allows; light points leave, and the worst one enters."""
    dimension = points.shape[0]
    most, steps = 2 * dimension, solution.steps
    if accuracy < THIN_FROM or len(solution.support) <= most:
        return solution
    working, weights = np.array(solution.support, dtype=np.int64), solution.weights
    for _ in range(most):
        while True:
            weights, more = improved(points[:, working], weights, THIN_ACCURACY)
            steps += more
            kept = np.flatnonzero(weights)
            working, weights = working[kept], weights[kept]
            if working.size <= most:
                break
            carried = weights * quadratic_forms(points[:, working], whitening(points[:, working], weights))
            # half of what is too much at a time, so that little is lost before the weights are right again
            drop = np.argsort(carried, kind="stable")[: (working.size - most + 1) // 2]
            working, weights = np.delete(working, drop), np.delete(weights, drop)
            weights = weights / total(weights)
        forms = quadratic_forms(points, whitening(points[:, working], weights))
        if forms[largest(forms)] <= (1.0 + accuracy) * dimension:
            return Solution([int(index) for index in working], weights, steps)
        worst = np.array([largest(forms)], dtype=np.int64)
        working, weights = _joined(working, weights, worst)
    return solution
