"""Where simulated rewards come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.registry import Entry

if TYPE_CHECKING:
    from banditto.environments.bernoulli import Bernoulli
    from banditto.environments.gaussian import Gaussian

__all__ = ["Bernoulli", "Gaussian"]

REGISTRY = {
    "bernoulli": Entry(
        module="banditto.environments.bernoulli",
        class_name="Bernoulli",
        summary="rewards 0 or 1",
    ),
    "gaussian": Entry(
        module="banditto.environments.gaussian",
        class_name="Gaussian",
        summary="normal rewards with a known standard deviation",
    ),
}
