"""What is known of the rewards, and when one assumption covers another."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, float_above, open_unit, precise, real, scale, written
from banditto.core.horizons import FEWEST_ARMS, MOST_ARMS
from banditto.core.tabular import items_in

FURTHEST_MEAN = 1e4  # in standard deviations

RewardKind = Literal["bounded", "gaussian", "subgaussian"]


class Rewards(NamedTuple):
    """Rewards in [0, 1], Gaussian with standard deviation sigma, or sigma-subgaussian.

    Rewards in [0, 1] may have means of at most `rate_at_most`; their sigma is then that of the largest such rate.
    """

    kind: RewardKind
    sigma: float
    rate_at_most: float | None = None

    @property
    def reach(self) -> float:
        """The farthest that a mean may be from 0, so that totals in floating point stay exact enough."""
        return 1.0 if self.kind == "bounded" else FURTHEST_MEAN * self.sigma

    @property
    def deviation(self) -> float:
        """The largest standard deviation of a reward. With low rates it is below sigma, which also bounds the tails."""
        return self.sigma if self.rate_at_most is None else largest_deviation(self.rate_at_most)

    @property
    def widest_gap(self) -> float:
        """The largest possible difference of two means."""
        if self.kind == "bounded":
            return 1.0 if self.rate_at_most is None else self.rate_at_most
        return 2.0 * self.reach

    @classmethod
    def of(cls, kind: str | None, sigma: float, rate_at_most: float | None = None) -> Rewards:
        """Check and return the rewards; without a kind, sigma = 1/2 means [0, 1], and any other sigma subgaussian."""
        sigma = scale(sigma, "sigma")
        if rate_at_most is not None:
            return cls._rated(kind, sigma, rate_at_most)
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

    @classmethod
    def _rated(cls, kind: str | None, sigma: float, rate_at_most: float) -> Rewards:
        """Return rewards in [0, 1] whose means are promised to be at most `rate_at_most`, with that rate's sigma."""
        rate = open_unit(rate_at_most, "rate_at_most")
        if kind not in (None, "bounded") or sigma not in (0.5, rated_sigma(rate)):
            raise InvalidArgument(
                "rate_at_most", rate_at_most, "none unless rewards are in [0, 1] (rewards='bounded'), at sigma 0.5"
            )
        return cls("bounded", rated_sigma(rate), rate)

    def __str__(self) -> str:
        if self.rate_at_most is not None:
            return f"rewards in [0, 1], rates at most {self.rate_at_most:g}"
        return "rewards in [0, 1]" if self.kind == "bounded" else f"{self.kind} rewards, sigma {self.sigma:g}"


@lru_cache(maxsize=256)
def rated_sigma(rate: float) -> float:
    """Return the sigma for which rewards in [0, 1] of mean at most `rate` are sigma-subgaussian (Kearns and Saul).

    sigma^2 = (1 - 2p) / (2 log((1 - p)/p)) at the rate p, rounded upwards; it rises with p, up to 1/4 at p = 1/2.
    """
    with precise():
        p = written(rate)
        if p >= Decimal("0.4999"):  # where the quotient loses its digits, and nothing is gained
            return 0.5
        return min(0.5, float_above(((1 - 2 * p) / (2 * ((1 - p) / p).ln())).sqrt()))


@lru_cache(maxsize=256)
def largest_deviation(rate: float) -> float:
    """Return the largest standard deviation of rewards in [0, 1] with a mean of at most p: sqrt(p (1 - p)), or 1/2."""
    with precise():
        p = min(written(rate), Decimal("0.5"))
        return float_above((p * (1 - p)).sqrt())


def checked_means(means: Iterable[Real], low: float, high: float, allowed: str) -> tuple[float, ...]:
    """Return the means as floats, or refuse them: there must be two or more, all in [low, high]."""
    values = tuple(real(mean, "means", allowed) for mean in items_in(means, "means"))
    if not FEWEST_ARMS <= len(values) <= MOST_ARMS:
        raise InvalidArgument("means", f"{len(values)} of them", f"{FEWEST_ARMS} to {MOST_ARMS} arms")
    for value in values:
        if not low <= value <= high:
            raise InvalidArgument("means", value, allowed)
    return values
