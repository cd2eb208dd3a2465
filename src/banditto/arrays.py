"""Array types, and the array module that a policy should use.

Axes are always (replicate, arm, feature). Decisions are written once against the Python array API standard and
run on NumPy, on CuPy and under array-api-strict, which the contract suite uses to keep them honest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]


def namespace(array: Any) -> Any:
    """The module whose functions work on `array`."""
    return array.__array_namespace__()


def on_host(array: Any) -> Any:
    """The array as NumPy's: decisions that need exact linear algebra are made on the host, whatever holds the data."""
    return np.asarray(array)
