"""Actions as they are named on the command line: a CSV file, a set by its name, or a JSON file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.geometry.actions.canonical import MOST_FEATURES

if TYPE_CHECKING:
    from banditto.geometry.actions.finite import FiniteActions
    from banditto.geometry.actions.sets import ConvexSet

_MOST_SPREAD = 1000


def read_actions(
    file: str | None, normalise: bool, action_set: str | None, dimension: int | None, argument: str = "actions"
) -> FiniteActions | ConvexSet:
    """The actions of exactly one of a CSV file and an action set; `argument` is what the file is called."""
    if (file is None) == (action_set is None):
        given = "nothing" if file is None else f"{file} and --action-set {action_set}"
        raise InvalidArgument(argument, given, "either a CSV file of arms or --action-set")
    if file is not None:
        if not file.strip():
            raise InvalidArgument(argument, repr(file), "the name of a file")
        if dimension is not None:
            raise InvalidArgument("dimension", dimension, "none, because the file of arms has its own")
        from banditto.geometry.actions.finite import FiniteActions

        return FiniteActions.load(file, normalise=normalise)
    assert action_set is not None
    if normalise:
        raise InvalidArgument("normalise", f"the action set {action_set}", "a file of arms, to divide by the longest")
    from banditto.geometry.actions.reading import NAMED, load_set, named_set

    if action_set.endswith(".json"):
        if dimension is not None:
            raise InvalidArgument("dimension", dimension, "none, because the file has its own")
        return load_set(action_set)
    if action_set not in NAMED:
        raise InvalidArgument("action_set", action_set, ", ".join(NAMED) + " or a file that ends in .json")
    if dimension is None:
        raise InvalidArgument("dimension", "nothing", f"the number of features, which {action_set} needs")
    return named_set(action_set, dimension)


def spread_actions(arms: int, dimension: int) -> FiniteActions:
    """So many actions of length 1, spread evenly over directions, the same for everybody: for when none are known."""
    import numpy as np

    from banditto.chance.coins import Coins
    from banditto.geometry.actions.finite import FiniteActions

    features = range(integer(dimension, "dimension", 1, MOST_FEATURES))
    coins = Coins(0, 0, integer(arms, "arms", 2, _MOST_SPREAD))
    u, v = (np.concatenate([coins.uniform("action", part, feature) for feature in features], axis=1) for part in (0, 1))
    normal = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * math.pi * v)
    points = normal / np.sqrt(np.sum(normal * normal, axis=1, keepdims=True))
    return FiniteActions(np.trunc(points * 1e9) / 1e9)  # no longer than 1, and alike whatever the last bits are
