"""What a plan is held against: an ordinary test of the same question, and what other policies would need."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.special import ndtri
from typing_extensions import TypedDict

from banditto.core.json_types import Natural
from banditto.problems.environment import Environment

_LEVEL = 0.05


class YardstickContent(TypedDict):
    """A `Yardstick` as plain data."""

    per_arm: Natural
    total: Natural
    statement: str


class Yardstick(NamedTuple):
    """Pulls of each arm and in all, and what they are the pulls of, in words."""

    per_arm: int
    total: int
    statement: str

    def to_dict(self) -> YardstickContent:
        """Return plain data."""
        return {"per_arm": self.per_arm, "total": self.total, "statement": self.statement}


class AlternativeContent(TypedDict):
    """An `Alternative` as plain data."""

    policy: str
    horizon: int | None
    regret: float | None
    caveat: str


class Alternative(NamedTuple):
    """Another policy for the same promise: its shortest horizon, its regret there, and what to know of it.

    Horizon and regret are None where no horizon in range is long enough.
    """

    policy: str
    horizon: int | None
    regret: float | None
    caveat: str

    def to_dict(self) -> AlternativeContent:
        """Return plain data."""
        return {"policy": self.policy, "horizon": self.horizon, "regret": self.regret, "caveat": self.caveat}


class LimitLine(NamedTuple):
    """Pulls in all that something else than a plan needs, for every rho of a figure."""

    name: str
    rhos: tuple[float, ...]
    pulls: tuple[float, ...]


def ordinary_test(instance: Environment, gap: float, power: float) -> Yardstick | None:
    """Return what a two-sided test of two means at level 0.05 needs on a plan's instance; None without means.

    Each arm is tested against one other, by normal approximation and the instance's own variances. The statement says
    what it would need with Bonferroni's correction for all K - 1 comparisons.
    """
    if not instance.means:
        return None
    arms = len(instance.means)
    spread = sum(sorted(instance.variances)[-2:])

    def pulls(level: float) -> int:
        return math.ceil((float(ndtri(1.0 - level / 2.0)) + float(ndtri(power))) ** 2 * spread / gap**2)

    alone = pulls(_LEVEL)
    statement = f"two-sided at level {_LEVEL:g}, each arm against one, uncorrected"
    if arms > 2:
        corrected = pulls(_LEVEL / (arms - 1))
        statement += f" (Bonferroni's correction: {corrected:,} per arm, {arms * corrected:,} in all)"
    return Yardstick(alone, arms * alone, f"{statement}; a second lab may conclude otherwise")
