"""Special functions of SciPy, which is loaded when the first of them is called.

Whoever asks and tells needs policies and none of these, and SciPy takes longer to load than a step of an experiment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from banditto.core.arrays import FloatArray


def erfc(x: FloatArray) -> FloatArray:
    """Return the complementary error function of each number."""
    from scipy import special

    return np.asarray(special.erfc(x))


def erfcx(x: float) -> float:
    """Return the scaled complementary error function, exp(x^2) erfc(x)."""
    from scipy import special

    return float(special.erfcx(x))


def ndtr(x: npt.NDArray[np.floating[Any]]) -> FloatArray:
    """Return the probability that a standard normal variable is below each number."""
    from scipy import special

    return np.asarray(special.ndtr(x))


def ndtri(probability: float) -> float:
    """Return the number that a standard normal variable is below with this probability."""
    from scipy import special

    return float(special.ndtri(probability))
