"""Which policies there are, by name. Reading the registries loads no policy and no numerical library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from banditto import policies
from banditto.core.registry import Entry
from banditto.policies import baselines


def listing() -> Iterable[tuple[str, Literal["replicable", "baseline"], Entry]]:
    """Go through all policies: the name, the kind and the entry of each."""
    for name, entry in policies.REGISTRY.items():
        yield name, "replicable", entry
    for name, entry in baselines.REGISTRY.items():
        yield name, "baseline", entry


def policy_names() -> list[str]:
    """List what may be typed for a policy: names, and names with other constants such as `random-threshold:paper`."""
    return [
        text
        for name, _, entry in listing()
        for text in (name, *(f"{name}:{constants}" for constants in entry.constants[1:]))
    ]
