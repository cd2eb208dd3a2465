"""Array types, and the array module that a policy should use.

Axes are always (replicate, arm, feature). Decisions are written once against the Python array API standard and
run on NumPy, on CuPy and under array-api-strict, which the contract suite uses to keep them honest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]


# Modules by the type of their arrays: NumPy's for speed; CuPy's once it is in use, because its arrays do not name it.
_modules: dict[type, Any] = {np.ndarray: np}


def namespace(array: Any) -> Any:
    """Return the module whose functions work on `array`: NumPy, CuPy, or what the array itself names."""
    module = _modules.get(type(array))
    return array.__array_namespace__() if module is None else module


def register_namespace(kind: type, module: Any) -> None:
    """Let `namespace` return `module` for arrays of the type `kind`."""
    _modules[kind] = module


def within(values: FloatArray, cut: Any) -> BoolArray:
    """Return a mask (R, K) of the entries at most `cut` below the largest of their row; -inf is never among them."""
    xp = namespace(values)
    if xp is not np and hasattr(xp, "within"):
        found: BoolArray = xp.within(values, cut)  # on a GPU in one pass
        return found
    stays: BoolArray = xp.max(values, axis=-1, keepdims=True) - values <= cut
    return stays


def times(mask: BoolArray, number: int) -> IntArray:
    """Return an array of integers: `number` where the mask is true, else 0."""
    xp = namespace(mask)
    product: IntArray = (
        xp.times(mask, number) if xp is not np and hasattr(xp, "times") else xp.astype(mask, xp.int64) * number
    )
    return product


def counted(mask: BoolArray) -> IntArray:
    """Return how many entries of each row of a mask (R, K) are true; shape (R, 1)."""
    xp = namespace(mask)
    if xp is not np and hasattr(xp, "counted"):
        found: IntArray = xp.counted(mask)
        return found
    numbers: IntArray = xp.sum(xp.astype(mask, xp.int64), axis=-1, keepdims=True)
    return numbers


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to an array, or to every array of a state (NamedTuples, possibly nested); return the result."""
    if isinstance(value, tuple):
        return type(value)(*(changed(part, change) for part in value))
    return change(value) if hasattr(value, "shape") else value


def taken(value: Any, rows: IntArray) -> Any:
    """Return an array, or a state, with the replicates `rows` alone; replicates are the first axis of arrays."""

    def some(array: Any) -> Any:
        return array.T[..., rows].T if array.size else array  # arm-major again

    return changed(value, some)


def on_host(array: Any) -> Any:
    """Return the array as a NumPy array: decisions that need exact linear algebra are made on the host."""
    return np.asarray(array)
