"""D-optimal weights on finitely many points: Frank-Wolfe with away steps, in fixed-order arithmetic.

By Kiefer and Wolfowitz the weights that maximise log det V(w), V(w) = sum w_p p p', are the weights that minimise
g(w) = max_p p' V(w)^-1 p, and then g = d. Each step moves mass towards the point with the largest p' V^-1 p or away
from the point of the support with the smallest one, whichever promises more, by the exact line search.

Symbols  d: dimension, k: p' V^-1 p of each point, H: V^-1, s: step (V becomes (1 - s) V + s p p')
Sources  Wynn 1970, Fedorov 1972, Atwood 1973 (away steps), Kumar and Yildirim 2005, Todd and Yildirim 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import IllConditioned
from banditto.numbers.fixed_order import (
    cholesky,
    inverse_of_lower,
    largest,
    linear_forms,
    product,
    quadratic_forms,
    second_moment,
)

REFRESH = 64  # steps between fresh factorisations, over which rank-one updates drift by far less than DRIFT
DRIFT = 2.0**-33
MOST_STEPS = 200_000


@dataclass
class DesignWeights:
    """Weights on points (feature, point), and the form p' V^-1 p of each point under them."""

    points: FloatArray
    values: FloatArray
    forms: FloatArray
    inverse: FloatArray
    steps: int = 0

    @classmethod
    def on(cls, points: FloatArray, values: FloatArray) -> DesignWeights:
        """Return the state of the method at the given weights."""
        self = cls(points, values, values, values)
        self.refresh()
        return self

    @property
    def support(self) -> list[int]:
        """The numbers of the points with positive weight, in ascending order."""
        return [int(index) for index in np.flatnonzero(self.values)]

    def refresh(self) -> None:
        """Factorise V again, and recompute the forms, so that rounding errors do not build up."""
        factor = whitening(self.points, self.values)
        self.inverse = product(np.ascontiguousarray(factor.T), factor)
        self.forms = quadratic_forms(self.points, factor)

    def improve(self, target: float, most_steps: int = MOST_STEPS) -> bool:
        """Take steps until every p' V^-1 p is at most `target`; return True, or False if that took too many steps."""
        dimension = self.points.shape[0]
        for count in range(most_steps):
            if count and count % REFRESH == 0:
                self.refresh()
            far = largest(self.forms)
            if self.forms[far] <= target * (1.0 - DRIFT):
                return True
            support = np.flatnonzero(self.values)
            near = int(support[int(np.argmin(self.forms[support]))])
            away = dimension - self.forms[near] > self.forms[far] - dimension
            self._move(near if away else far, away)
            self.steps += 1
        self.refresh()
        return bool(self.forms[largest(self.forms)] <= target)

    def _move(self, index: int, away: bool) -> None:
        """Move weight to one point, or `away` from it, as far as maximises log det V; no weight becomes negative."""
        dimension, form = self.points.shape[0], float(self.forms[index])
        if away:
            mass = float(self.values[index])
            all_of_it = -mass / (1.0 - mass)
            # below 1 the determinant rises for as long as mass is taken away
            step = all_of_it if form <= 1.0 else max(all_of_it, (form - dimension) / (dimension * (form - 1.0)))
        else:
            step = (form - dimension) / (dimension * (form - 1.0))
        gone = away and step == all_of_it
        direction = product(self.inverse, self.points[:, index])  # H p
        scale = step / (1.0 - step + step * form)
        self.inverse = (self.inverse - scale * (direction[:, None] * direction[None, :])) / (1.0 - step)
        change = linear_forms(self.points, direction)
        change *= change
        change *= scale
        self.forms -= change
        self.forms /= 1.0 - step
        self.values = self.values * (1.0 - step)
        self.values[index] = 0.0 if gone else self.values[index] + step


def whitening(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the lower triangular X with X V X' = 1 up to rounding, so that |X p|^2 is p' V^-1 p."""
    used = np.flatnonzero(weights)
    lower = cholesky(second_moment(points[:, used], weights[used]))
    if lower is None:
        raise IllConditioned
    return inverse_of_lower(lower)
