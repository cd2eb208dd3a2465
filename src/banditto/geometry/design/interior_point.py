"""D-optimal weights to many digits: a primal-dual interior-point method on few points, in fixed-order arithmetic.

Frank-Wolfe needs tens of thousands of steps for the last digits when many points are nearly optimal (points spread
over a sphere); Newton's method needs about twenty. The problem is written without its constraint sum w = 1:

    minimise  -log det V(w) + d sum w   over w >= 0,

because at its optimum sum w = 1 comes by itself (sum w_p k_p = tr 1 = d, and k_p = d wherever w_p > 0).

Symbols  k: p' V^-1 p, Q: matrix of p' V^-1 q, z: multipliers of w >= 0, mu: w z aimed at
"""

from __future__ import annotations

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.numbers.fixed_order import cholesky, inverse_of_lower, product, second_moment, solved_lower, total

MOST_STEPS = 100


def polished(points: FloatArray, weights: FloatArray, accuracy: float) -> tuple[FloatArray, int]:
    """Weights on `points` (feature, point) with max k <= (1 + accuracy) d, as far as doubles allow, and the steps."""
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
    """The step that keeps all values positive, 1 at most."""
    falling = change < 0.0
    if not falling.any():
        return 1.0
    return min(1.0, 0.95 * float(np.min(-values[falling] / change[falling])))
