"""Actions as users and protocols give them: checked, and written down as integers and exact fractions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.core.protocol import Plain, fraction, from_fraction
from banditto.geometry.actions.action_reading import set_of
from banditto.geometry.actions.canonical import BITS, MOST_FEATURES
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.actions.sets import ActionSet, ConvexSet
from banditto.numbers.fixed_order import inner

_ASCENTS = 8
_OWN = "custom"  # a user's own action set: nobody else can read it from a protocol


def checked_actions(actions: Any) -> FiniteActions | ActionSet:
    """Return actions as `FiniteActions` or an action set, after checking that no action is longer than 1."""
    if isinstance(actions, FiniteActions):
        return actions
    if isinstance(actions, ActionSet):
        _check_lengths(actions)
        return actions
    return FiniteActions(actions)


def _check_lengths(actions: ActionSet) -> None:
    """Refuse a set with an action longer than 1, if a short search uphill from each axis finds one."""
    longest = 1.0 + 2.0**-BITS * math.sqrt(actions.dimension)
    for axis in np.eye(actions.dimension):
        for start in (axis, -axis):
            action, length = start, 0.0
            for _ in range(_ASCENTS):
                found = np.array(actions.maximise(action))
                size = math.sqrt(inner(found, found))
                if size > longest:
                    raise InvalidArgument("actions", f"an action of length {size:.6g}", "actions of length at most 1")
                if size <= length * (1.0 + 1e-9) or size == 0.0:
                    break
                action, length = found, size


def finite_actions(actions: Any) -> FiniteActions:
    """Check actions as `checked_actions` does, refuse an infinite set, and return them: for policies that list arms."""
    checked = checked_actions(actions)
    if not isinstance(checked, FiniteActions):
        allowed = "finitely many actions: a matrix with a row for each, or FiniteActions"
        raise InvalidArgument("actions", type(checked).__name__, allowed)
    return checked


def actions_to_plain(actions: FiniteActions | ActionSet) -> Mapping[str, Plain]:
    """Return actions as a protocol holds them: integers and exact binary fractions."""
    if isinstance(actions, FiniteActions):
        rows = tuple(tuple(int(value) for value in row) for row in actions.canonical.points.T.tolist())
        return {"type": actions.name, "exponents": actions.canonical.exponents, "integers": rows}
    if isinstance(actions, ConvexSet):
        return {key: _plain(value) for key, value in actions.to_dict().items()}
    return {"type": _OWN, "dimension": actions.dimension}


def actions_from_plain(content: Any) -> FiniteActions | ActionSet:
    """Return the actions that `actions_to_plain` wrote, or refuse content that it could not have written."""
    kind = content.get("type") if isinstance(content, Mapping) else None
    if kind == _OWN:
        raise InvalidArgument("protocol", "an action set of the user's own", "a set that a protocol can hold")
    if kind != FiniteActions.name:
        return set_of(_from_plain(content))
    if set(content) != {"type", "exponents", "integers"}:
        raise InvalidArgument("actions", list(content), "type, exponents and integers")
    rows, exponents = content["integers"], content["exponents"]
    if not isinstance(exponents, tuple) or not isinstance(rows, tuple) or not 1 <= len(exponents) <= MOST_FEATURES:
        raise InvalidArgument("actions", "no lists", "lists of integers and exponents")
    units = [integer(value, "exponents", -400, 400) for value in exponents]
    most = 2 << BITS
    matrix = []
    for row in rows:
        if not isinstance(row, tuple) or len(row) != len(units):
            raise InvalidArgument("actions", row, f"rows of {len(units)} integers")
        matrix.append([integer(value, "actions", -most, most) for value in row])
    return FiniteActions.of_integers(matrix, units)


def _plain(value: Any) -> Plain:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return fraction(value) if isinstance(value, float) else value  # type and dimension stay what they are


def _from_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: item if key in ("type", "dimension") else _from_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_from_plain(item) for item in value]
    return from_fraction(value, "actions")
