"""Nets: finitely many actions of a set such that every action has one of them nearby.

In one dimension a grid. In two, a convex set is sliced into strips: from the lowest to the highest action of a strip
runs a segment that stays inside, and points along it are near everything in the strip. Nets grow exponentially with
the dimension and serve only as a reference, so that there is none beyond two.
"""

from __future__ import annotations

import math

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, real
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.actions.sets import ActionSet

MOST_STRIPS, MOST_POINTS = 2000, 1_000_000
_STRIP = 2.0 / math.sqrt(5.0)  # of the radius: the diagonal of a strip's width and half of it is the radius


def net(actions: ActionSet, radius: Real) -> FloatArray:
    """Return actions of the set, such that each of its actions is within `radius` of one of them.

    For Corollary 12 of *Replicable Bandits*, and at most two dimensions: no other algorithm here needs a net.

    Args:
        actions: An action set with one or two features; of `FiniteActions` all are returned.
        radius: The largest distance of an action from the net, above 0.

    Returns:
        An array (action, feature).

    Examples:
        >>> from banditto import Box
        >>> net(Box.unit(1), 0.5).shape
        (3, 1)
    """
    distance = real(radius, "radius")
    if not distance > 0.0:
        raise InvalidArgument("radius", radius, "a number above 0")
    if isinstance(actions, FiniteActions):
        return actions.to_array()
    if not isinstance(actions, ActionSet):
        raise InvalidArgument("actions", actions, "an action set, such as Box.unit(2), or FiniteActions")
    if actions.dimension > 2:
        raise InvalidArgument("dimension", actions.dimension, "1 or 2: larger nets are too large to be of use")
    # what rounding may take is a millionth of the radius
    step = distance * (1.0 - 2.0**-20) * (2.0 if actions.dimension == 1 else _STRIP)
    first = np.eye(actions.dimension)[0]
    low, high = actions.maximise(-first), actions.maximise(first)
    wanted = (high[0] - low[0]) / step if step > 0.0 else math.inf
    strips = max(1, math.ceil(min(wanted, MOST_STRIPS + 1.0)))
    if strips > MOST_STRIPS:
        raise InvalidArgument("radius", radius, f"at least {(high[0] - low[0]) / MOST_STRIPS:.3g}")
    if actions.dimension == 1:
        return np.array([[low[0] + (high[0] - low[0]) * (k + 0.5) / strips] for k in range(strips)])
    points: list[tuple[float, ...]] = []
    up = np.array([0.0, 1.0])
    for k in range(strips):
        left = low[0] + (high[0] - low[0]) * k / strips
        right = low[0] + (high[0] - low[0]) * (k + 1) / strips
        strip = actions.cut(first, left) if k else actions
        strip = strip.cut(-first, -right) if k + 1 < strips else strip
        bottom, top = strip.maximise(-up), strip.maximise(up)
        if len(points) + (top[1] - bottom[1]) / step > MOST_POINTS:
            raise InvalidArgument("radius", radius, f"a radius with a net of at most {MOST_POINTS:,} actions")
        points += _along(bottom, top, step)
    return np.array(points)


def _along(bottom: tuple[float, ...], top: tuple[float, ...], step: float) -> list[tuple[float, ...]]:
    """Return points of a segment such that every height on it is within half a step of one of them."""
    parts = max(1, math.ceil((top[1] - bottom[1]) / step))
    shares = ((k + 0.5) / parts for k in range(parts))
    return [tuple(b + (t - b) * share for b, t in zip(bottom, top, strict=True)) for share in shares]
