"""What is known of the rewards, and when one assumption covers another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, real, scale
from banditto.core.horizons import FEWEST_ARMS, MOST_ARMS

FURTHEST_MEAN = 1e4  # in standard deviations

RewardKind = Literal["bounded", "gaussian", "subgaussian"]


class Rewards(NamedTuple):
    """Rewards in [0, 1], Gaussian with standard deviation sigma, or sigma-subgaussian."""

    kind: RewardKind
    sigma: float

    @property
    def reach(self) -> float:
        """Means are at most this far from 0, so that totals in floating point stay exact enough."""
        return 1.0 if self.kind == "bounded" else FURTHEST_MEAN * self.sigma

    @classmethod
    def of(cls, kind: str | None, sigma: float) -> Rewards:
        """Check a pair of arguments; with no kind, sigma = 1/2 means [0, 1] and any other sigma subgaussian."""
        sigma = scale(sigma, "sigma")
        match kind:
            case None:
                return cls("bounded" if sigma == 0.5 else "subgaussian", sigma)
            case "bounded":
                if sigma != 0.5:
                    allowed = "0.5 for rewards in [0, 1]; other rewards are 'gaussian' or 'subgaussian'"
                    raise InvalidArgument("sigma", sigma, allowed)
                return cls("bounded", sigma)
            case "gaussian" | "subgaussian":
                return cls(kind, sigma)
            case _:
                raise InvalidArgument("rewards", kind, "'bounded', 'gaussian' or 'subgaussian'")

    def __str__(self) -> str:
        return "rewards in [0, 1]" if self.kind == "bounded" else f"{self.kind} rewards, sigma {self.sigma:g}"


def checked_means(means: Iterable[Real], low: float, high: float, allowed: str) -> tuple[float, ...]:
    """The means as floats in [low, high], two of them or more."""
    if isinstance(means, str) or not isinstance(means, Iterable):
        raise InvalidArgument("means", means, "a list of numbers")
    values = tuple(real(mean, "means", allowed) for mean in means)
    if not FEWEST_ARMS <= len(values) <= MOST_ARMS:
        raise InvalidArgument("means", f"{len(values)} of them", f"{FEWEST_ARMS} to {MOST_ARMS} arms")
    for value in values:
        if not low <= value <= high:
            raise InvalidArgument("means", value, allowed)
    return values
