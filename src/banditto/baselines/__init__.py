"""Ordinary policies to compare with: one formula per file. None of them is replicable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.registry import Entry

if TYPE_CHECKING:
    from banditto.baselines.thompson import Thompson
    from banditto.baselines.ucb1 import UCB1

__all__ = ["UCB1", "Thompson"]

REGISTRY = {
    "ucb1": Entry(
        module="banditto.baselines.ucb1",
        class_name="UCB1",
        summary="the arm with the largest upper confidence bound",
        source="Auer, Cesa-Bianchi and Fischer 2002",
    ),
    "thompson": Entry(
        module="banditto.baselines.thompson",
        class_name="Thompson",
        summary="the arm with the largest sample from its Beta posterior",
        source="Thompson 1933; Agrawal and Goyal 2012",
    ),
}
