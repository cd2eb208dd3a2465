"""Designs of arms in a matrix and of infinite action sets: one method, two ways to find the worst action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.digest import digest_of
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real
from banditto.geometry.actions.canonical import BITS, CanonicalActions, canonical
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.actions.norms import (
    POINT_BITS,
    LongestAction,
    ScaledSet,
    axis_points,
    certified_bound,
    climbed,
    mixed_points,
    squared_norm,
)
from banditto.geometry.actions.sets import ActionSet, ConvexSet
from banditto.geometry.design.core_sets import Progress, Span, improved, solved, spanning, spanning_points
from banditto.geometry.design.design_result import Design, aim, checked_accuracy, counts_of
from banditto.geometry.design.frank_wolfe import whitening
from banditto.geometry.regression import Whitening
from banditto.numbers.fixed_order import inner, largest

# A direction in which no action reaches beyond 2 d parts in 2^20 is taken for one in which there is none: rounding to
# such parts alone can lift actions that span less by about sqrt(d) of them.
_TOLERANCE = 2.0 * 2.0**-BITS
_ROUNDING = 2.0**-40  # a residual below this is that of the arithmetic, not of the actions
# What is found and what is certified differ by the gap of a relaxation, which is smaller for better designs: where the
# target is missed, a design of a third of the accuracy may meet it.
_TRIES = (1.0, 0.3)
MOST_ROUNDS = 100


def g_optimal_design(actions: Any, *, accuracy: Real = 0.01, progress: Progress | None = None) -> Design:
    """Return a design with `g <= (1 + accuracy) d`: what to pull, and how often, to learn all values equally well.

    Lemmas 5 and 7 of *Replicable Bandits*, after Kiefer and Wolfowitz; docs/design.md says how it is computed and how g
    is certified. The answer says whether the accuracy was reached; g is an upper bound whatever it says.

    Args:
        actions: A matrix with a row of features for each arm, `FiniteActions`, or an action set such as `Ball`.
        accuracy: How far above its optimum d, relatively, g may be; 1e-8 to 1000, default 0.01.
        progress: Is told g / d after every round. Default None.

    Examples:
        >>> design = g_optimal_design([[1, 0], [0, 1], [0.6, 0.6], [0.3, -0.4]])
        >>> design.arms, design.plan(100).pulls
        ((0, 1), (50, 50))
    """
    wanted = checked_accuracy(accuracy)
    if isinstance(actions, FiniteActions):
        return _finite(actions.canonical, actions.arms, wanted, progress)
    if isinstance(actions, ActionSet):
        vertices = actions.vertices() if isinstance(actions, ConvexSet) else None
        if vertices is None:
            return _infinite(actions, wanted, progress)
        design = _finite(canonical(vertices, bits=POINT_BITS), None, wanted, progress)
        return replace(design, actions_digest=_set_digest(actions))
    rounded = canonical(actions)
    return _finite(rounded, tuple(range(rounded.points.shape[1])), wanted, progress)


@dataclass(frozen=True)
class _OverPoints:
    """Certifies g of a design over finitely many points, by looking at every point."""

    points: FloatArray
    core: list[int]

    def __call__(self, counts: Sequence[int]) -> float:
        return Whitening.of(self.points[:, self.core], counts).largest(self.points)


def _finite(
    actions: CanonicalActions, arms: tuple[int, ...] | None, accuracy: float, progress: Progress | None
) -> Design:
    """Return the design for finitely many actions; features that the others determine are dropped."""
    points, size = actions.points, 2.0**actions.bits
    features = list(range(points.shape[0]))
    residual = 0.0
    while True:
        span = spanning_points(points, _TOLERANCE * size * len(features))
        residual = max(residual, span.residual / size)
        if not span.absent:
            break
        kept = _kept_features(span)
        features, points = [features[index] for index in kept], np.ascontiguousarray(points[kept])
    solution = solved(points, span.chosen, aim(accuracy), progress)
    certify = _OverPoints(points, solution.support)
    counts = counts_of(solution.weights.tolist(), accuracy)
    return Design(
        arms=None if arms is None else tuple(arms[index] for index in solution.support),
        actions=tuple(actions.action(index) for index in solution.support),
        counts=counts,
        g=certify(counts),
        accuracy=accuracy,
        features=tuple(features),
        residual=residual if residual > _ROUNDING else 0.0,
        iterations=solution.steps,
        actions_digest=actions.digest,
        certify=certify,
    )


def _kept_features(span: Span) -> list[int]:
    """Return as many features as the span has dimensions, which still tell its vectors apart.

    Vectors of the span are orthogonal to the absent directions, so the features that elimination pivots on in those
    are determined by the other ones.
    """
    if not span.chosen:
        raise InvalidArgument("actions", "nothing but zeros", "at least one action that is not zero")
    rows = np.array(span.absent)
    dropped = []
    for step in range(rows.shape[0]):
        place = largest(np.abs(rows[step:]).reshape(-1))
        row, column = step + place // rows.shape[1], place % rows.shape[1]
        rows[[step, row]] = rows[[row, step]]
        rows[step + 1 :] -= (rows[step + 1 :, column] / rows[step, column])[:, None] * rows[step][None, :]
        rows[step + 1 :, column] = 0.0
        dropped.append(column)
    return [feature for feature in range(rows.shape[1]) if feature not in dropped]


@dataclass(frozen=True)
class _OverSet:
    """Certifies g of a design over an infinite set, by a proved upper bound."""

    actions: ScaledSet
    core: FloatArray
    accuracy: float

    def __call__(self, counts: Sequence[int]) -> float:
        white = Whitening.of(self.core, counts)
        _, slabs = axis_points(self.actions, white.factor)
        return white.certified(certified_bound(self.actions, white.factor, slabs, self.accuracy))


def _infinite(actions: ActionSet, accuracy: float, progress: Progress | None) -> Design:
    """Return the design for an infinite set; features that the others determine are dropped."""
    seen = ScaledSet(actions)
    residual = 0.0
    while True:
        points: list[FloatArray] = []
        span = spanning(partial(_reach, seen, points), seen.dimension, _TOLERANCE * seen.dimension)
        residual = max(residual, span.residual)
        if not span.absent:
            break
        seen.keep(_kept_features(span))
    core = np.ascontiguousarray(np.array([points[index] for index in span.chosen]).T)
    weights = np.full(seen.dimension, 1.0 / seen.dimension)
    steps = 0
    designs = []
    for share in _TRIES:
        core, weights, more = _columns(seen, core, weights, share * aim(accuracy), progress)
        steps += more
        certify = _OverSet(seen, core, accuracy)
        counts = counts_of(weights.tolist(), accuracy)
        designs.append(
            Design(
                arms=None,
                actions=tuple(seen.action(point) for point in core.T),
                counts=counts,
                g=certify(counts),
                accuracy=accuracy,
                features=tuple(seen.features),
                residual=residual if residual > _ROUNDING else 0.0,
                iterations=steps,
                maximisations=seen.questions,
                actions_digest=_set_digest(actions),
                certify=certify,
            )
        )
        if designs[-1].target_met or seen.dimension == 1:
            break
    return min(designs, key=lambda design: design.g)


def _reach(seen: ScaledSet, points: list[FloatArray], direction: FloatArray) -> tuple[FloatArray, int]:
    """Return the point that reaches farthest along a direction, to either side of 0, and its place among the points."""
    ahead, behind = seen.maximise(direction), seen.maximise(-direction)
    points.append(behind if abs(inner(behind, direction)) > abs(inner(ahead, direction)) else ahead)
    return points[-1], len(points) - 1


def _columns(
    seen: ScaledSet, core: FloatArray, weights: FloatArray, accuracy: float, progress: Progress | None
) -> tuple[FloatArray, FloatArray, int]:
    """Improve weights and let in the worst points of the set, in turns; return points, weights and steps."""
    dimension, steps = seen.dimension, 0
    if dimension == 1:
        return core, weights, steps
    for _ in range(MOST_ROUNDS):
        weights, more = improved(core, weights, accuracy / 4)
        steps += more
        used = np.flatnonzero(weights)
        core, weights = np.ascontiguousarray(core[:, used]), weights[used]
        factor = whitening(core, weights)
        added = _beyond(seen, factor, core, accuracy)
        if not added:
            break
        if progress is not None:
            progress(max(squared_norm(factor, point) for point in added) / dimension)
        core = np.hstack([core, np.array(added).T])
        weights = np.concatenate([weights, np.zeros(len(added))])
    return core, weights, steps


def _beyond(seen: ScaledSet, factor: FloatArray, core: FloatArray, accuracy: float) -> list[FloatArray]:
    """Return up to 2 d points with |X p|^2 beyond the target, worst first; none if none are found."""
    target = (1.0 + accuracy * 0.75) * seen.dimension
    known = {point.tobytes() for point in np.ascontiguousarray(core.T)}
    along_axes, slabs = axis_points(seen, factor)
    worst = _worst(along_axes, target, known)
    if not worst and certified_bound(seen, factor, slabs, accuracy) <= target:
        return []
    if not worst:
        worst = _worst([climbed(seen, factor, start) for start in _distinct(along_axes)], target, known)
    if not worst:
        others = _distinct(mixed_points(seen, factor))
        worst = _worst([climbed(seen, factor, start) for start in others], target, known)
    return worst[: 2 * seen.dimension]


def _worst(found: list[LongestAction], target: float, known: set[bytes]) -> list[FloatArray]:
    beyond = [f for f in _distinct(found) if f.value > target and f.point.tobytes() not in known]
    return [f.point for f in sorted(beyond, key=lambda f: -f.value)]  # stable: the first found of ties is first


def _distinct(found: list[LongestAction]) -> list[LongestAction]:
    return list({f.point.tobytes(): f for f in found}.values())


def _set_digest(actions: ActionSet) -> str:
    """Return the sha256 of the set's `to_dict`, or of its class name if it has none."""
    says = actions.to_dict() if isinstance(actions, ConvexSet) else {"type": type(actions).__qualname__}
    return digest_of(says)
