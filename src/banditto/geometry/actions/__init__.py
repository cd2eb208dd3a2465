"""Action sets. Anything else with a dimension, `maximise` and `cut` is one too: see `ActionSet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.core.registry import Entry

if TYPE_CHECKING:
    from banditto.geometry.actions.ball import Ball
    from banditto.geometry.actions.box import Box
    from banditto.geometry.actions.finite import FiniteActions
    from banditto.geometry.actions.polytope import Polytope
    from banditto.geometry.actions.simplex import Simplex

__all__ = ["Ball", "Box", "FiniteActions", "Polytope", "Simplex"]

REGISTRY = {
    "ball": Entry(module="banditto.geometry.actions.ball", class_name="Ball", summary="length at most 1"),
    "box": Entry(module="banditto.geometry.actions.box", class_name="Box", summary="every feature between two bounds"),
    "simplex": Entry(
        module="banditto.geometry.actions.simplex", class_name="Simplex", summary="mixtures of d pure actions"
    ),
    "polytope": Entry(
        module="banditto.geometry.actions.polytope", class_name="Polytope", summary="{a : rows a <= bounds}"
    ),
    "finite": Entry(
        module="banditto.geometry.actions.finite", class_name="FiniteActions", summary="one row per action"
    ),
}
