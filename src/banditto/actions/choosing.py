"""Actions as they are named on the command line: a CSV file, a set by its name, or a JSON file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.errors import InvalidArgument

if TYPE_CHECKING:
    from banditto.actions.finite import FiniteActions
    from banditto.actions.sets import ConvexSet


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
        from banditto.actions.finite import FiniteActions

        return FiniteActions.load(file, normalise=normalise)
    assert action_set is not None
    if normalise:
        raise InvalidArgument("normalise", f"the action set {action_set}", "a file of arms, to divide by the longest")
    from banditto.actions.reading import NAMED, load_set, named_set

    if action_set.endswith(".json"):
        if dimension is not None:
            raise InvalidArgument("dimension", dimension, "none, because the file has its own")
        return load_set(action_set)
    if action_set not in NAMED:
        raise InvalidArgument("action_set", action_set, ", ".join(NAMED) + " or a file that ends in .json")
    if dimension is None:
        raise InvalidArgument("dimension", "nothing", f"the number of features, which {action_set} needs")
    return named_set(action_set, dimension)
