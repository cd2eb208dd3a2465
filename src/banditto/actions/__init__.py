"""Action sets. Anything else with a dimension, `maximise` and `cut` is one too: see `ActionSet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.core.registry import Entry

if TYPE_CHECKING:
    from banditto.actions.ball import Ball
    from banditto.actions.box import Box
    from banditto.actions.finite import FiniteActions
    from banditto.actions.polytope import Polytope
    from banditto.actions.simplex import Simplex

__all__ = ["Ball", "Box", "FiniteActions", "Polytope", "Simplex"]

REGISTRY = {
    "ball": Entry(module="banditto.actions.ball", class_name="Ball", summary="length at most 1"),
    "box": Entry(module="banditto.actions.box", class_name="Box", summary="every feature between two bounds"),
    "simplex": Entry(module="banditto.actions.simplex", class_name="Simplex", summary="mixtures of d pure actions"),
    "polytope": Entry(module="banditto.actions.polytope", class_name="Polytope", summary="{a : rows a <= bounds}"),
    "finite": Entry(module="banditto.actions.finite", class_name="FiniteActions", summary="one row per action"),
}
