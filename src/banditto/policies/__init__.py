"""Replicable policies, one algorithm per file. This registry is the only other place that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.registry import Entry

if TYPE_CHECKING:
    from banditto.policies.random_threshold import RandomThreshold

__all__ = ["RandomThreshold"]

REGISTRY = {
    "random-threshold": Entry(
        module="banditto.policies.random_threshold",
        class_name="RandomThreshold",
        summary="elimination against a shared random threshold",
        source="Esfandiari et al. 2023, Algorithm 2",
        constants=("certified", "paper"),
    ),
}
