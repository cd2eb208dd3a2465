"""How kernels are compiled that are called in every round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., object])

# Without `_nrt` a function can make no arrays, and Numba counts no references to those it is given. Its optimiser drops
# the counting from simple kernels only; with a few branches six counters would go up and down in every round, which
# takes 60 ns. The option is Numba's own and not in its documentation, so it is used here and nowhere else.
_OPTIONS: dict[str, Any] = {"cache": True, "forceinline": True, "error_model": "numpy", "_nrt": False}


def compiled(function: F) -> F:
    """Return the function compiled by Numba; it makes no arrays, and calls of it are inlined."""
    dispatcher: F = njit(**_OPTIONS)(function)
    return dispatcher
