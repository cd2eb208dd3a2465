"""Action sets from names and from files; actions spread over all directions where nobody names any."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.core.input_files import MIB, Unreadable, parsed_json, read_text
from banditto.geometry.actions.ball import Ball
from banditto.geometry.actions.box import Box
from banditto.geometry.actions.canonical import MOST_FEATURES
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.actions.polytope import Polytope
from banditto.geometry.actions.sets import ConvexSet
from banditto.geometry.actions.simplex import Simplex

NAMED = ("ball", "box", "simplex")
_MOST_SPREAD = 1000
_KEYS = {
    "ball": ({"dimension"}, {"radius", "cuts"}),
    "box": ({"low", "high"}, set[str]()),
    "simplex": ({"dimension"}, set[str]()),
    "polytope": ({"rows", "bounds"}, set[str]()),
}


def named_set(name: str, dimension: int) -> ConvexSet:
    """Return the unit ball, the cube inside it, or the simplex, by its name."""
    if name == "ball":
        return Ball(dimension=dimension)
    if name == "box":
        return Box.unit(dimension)
    if name == "simplex":
        return Simplex(dimension=dimension)
    raise InvalidArgument("action_set", name, ", ".join(NAMED) + " or a JSON file")


def set_of(content: Any) -> ConvexSet:
    """Return the set that `to_dict` of a set described: a type, and what that type needs."""
    kind = content.get("type") if isinstance(content, Mapping) else None
    if not isinstance(kind, str) or kind not in _KEYS:
        raise InvalidArgument("action_set", f"type {kind!r}", "an object with a type: " + ", ".join(_KEYS))
    needed, optional = _KEYS[kind]
    keys = set(content) - {"type"}
    if not needed <= keys <= needed | optional:
        given = "keys " + ", ".join(sorted(map(str, keys))) if keys else "no keys"
        raise InvalidArgument("action_set", given, f"{kind} with " + ", ".join(sorted(needed | optional)))
    numbers = {key: content[key] for key in keys}
    for key in keys & {"low", "high", "bounds", "rows", "cuts"}:
        if not isinstance(numbers[key], list):
            raise InvalidArgument(key, numbers[key], "a list")
    if kind == "ball":
        return Ball(**numbers | {"cuts": tuple(_half_space(cut) for cut in numbers.get("cuts", ()))})
    if kind == "box":
        return Box(**numbers)
    return Simplex(**numbers) if kind == "simplex" else Polytope(**numbers)


def _half_space(cut: Any) -> tuple[Any, Any]:
    if not isinstance(cut, Mapping) or set(cut) != {"normal", "least"} or not isinstance(cut["normal"], list):
        raise InvalidArgument("cuts", cut, "objects with a normal and a least")
    return cut["normal"], cut["least"]


def load_set(path: str | Path) -> ConvexSet:
    """Return the set that a JSON file describes, in the form that `set_of` takes."""
    try:
        text = read_text(path, 64 * MIB)
    except Unreadable as error:
        raise InvalidArgument("action_set", str(path), f"a file that can be read ({error})") from None
    try:
        content = parsed_json(text)
    except ValueError as error:
        raise InvalidArgument("action_set", str(path), f"a JSON file ({error})") from None
    return set_of(content)


def spread_actions(arms: int, dimension: int) -> FiniteActions:
    """Return so many actions of length 1, spread evenly over all directions; the same ones every time."""
    features = range(integer(dimension, "dimension", 1, MOST_FEATURES))
    coins = Coins(0, 0, integer(arms, "arms", 2, _MOST_SPREAD))
    u, v = (np.concatenate([coins.uniform("action", part, feature) for feature in features], axis=1) for part in (0, 1))
    normal = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * math.pi * v)
    points = normal / np.sqrt(np.sum(normal * normal, axis=1, keepdims=True))
    return FiniteActions(np.trunc(points * 1e9) / 1e9)  # no longer than 1, and alike whatever the last bits are
