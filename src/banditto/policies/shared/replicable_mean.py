"""Replicable mean: a sample mean rounded to a shifted grid that two labs share.

Paper    Esfandiari et al. 2023, Proposition 2 (ReprMeanEstimation), after Impagliazzo et al. 2022.
Symbols  n: samples, tau: radius, delta: failure probability, rho: replicability, alpha: cell width, u: offset,
         kappa: E|v - v'| <= kappa / sqrt(n) for two independent means v, v'
Departs  - The grid covers the whole real line and every cell has its midpoint (the paper rounds in [0, 1]).
         - constants="certified" bounds P(different cells) by E|v - v'| / alpha instead of by a concentration
           inequality, so that log(1/delta) does not multiply 1/rho^2. The proof is in docs/replicable-mean.md.
         - The cell is found in exact rational arithmetic: no rounding of the mean can move it.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import NamedTuple

from banditto.chance.coins import Coins
from banditto.core.errors import InvalidArgument
from banditto.core.exact import ceiling, float_above, integer, open_unit, precise, real, written
from banditto.core.rewards import RewardKind, Rewards
from banditto.policies.policy import Guarantee
from banditto.policies.shared.confidence import mean_noise
from banditto.policies.shared.replicable import Constants

# The offset is a multiple of 2^-53, so an interval holds one with probability at most its length plus this.
_OFFSET_STEP = Decimal(2) ** -53


class RoundedMean(NamedTuple):
    """`value` is within `radius` of the true mean with probability 1 - delta, and shared by two labs with 1 - rho."""

    value: float
    radius: float
    guarantee: Guarantee


def replicable_mean(
    total: float,
    samples: int,
    *,
    rho: float,
    delta: float,
    coins: Coins,
    batch: int = 0,
    arm: int = 0,
    sigma: float = 0.5,
    rewards: RewardKind | None = None,
    constants: Constants = "certified",
) -> RoundedMean:
    """Round the mean `total / samples` so that a lab with the same coins most likely finds the same; return it.

    Proposition 2 of *Replicable Bandits*; the certified constants are proved in docs/replicable-mean.md.

    Args:
        total: The sum of the rewards.
        samples: How many rewards it is the sum of, 1 to 10^15, fixed beforehand and the same in both labs.
        rho: The largest allowed probability that two labs find different values, between 0 and 1.
        delta: The largest allowed probability that the value is further than its radius from the true mean.
        coins: The coins that both labs share, such as `Coins(seed)`.
        batch: With `arm`, the address of the grid's offset among the coins of one experiment. Default 0.
        arm: The other half of that address. Default 0.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        constants: "certified" (default) or "paper", as printed, which needs delta below rho/2.

    Returns:
        The rounded `value`, its `radius`, and the `guarantee` that both labs find it.

    Examples:
        >>> from banditto import Coins
        >>> labs = [replicable_mean(total, 9103, rho=0.1, delta=0.001, coins=Coins(7)) for total in (4601, 4575)]
        >>> labs[0].value == labs[1].value
        True
    """
    total = real(total, "total")
    samples = integer(samples, "samples", 1, 10**15)
    grid = _Grid.of(rho, delta, Rewards.of(rewards, sigma), constants)
    alpha, radius, terms = grid.at(samples)
    offset = Fraction(float(coins.uniform("grid", batch, arm)[0, 0]))
    cell = floor(Fraction(total) / samples / Fraction(alpha) + offset)
    value = float((cell + Fraction(1, 2) - offset) * Fraction(alpha))
    return RoundedMean(value, radius, Guarantee.of(terms, grid.rho))


def samples_needed(
    *,
    tau: float,
    delta: float,
    rho: float,
    sigma: float = 0.5,
    rewards: RewardKind | None = None,
    constants: Constants = "certified",
) -> int:
    """Return the number of samples for which the radius is at most `tau`: Proposition 2 of *Replicable Bandits*.

    Args:
        tau: The radius that is wanted, above 0, in units of the rewards.
        delta: The largest allowed probability that the value is further than tau from the true mean.
        rho: The largest allowed probability that two labs find different values, between 0 and 1.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        constants: "certified" (default) or "paper", as printed, which needs delta below rho/2.

    Examples:
        >>> samples_needed(tau=0.05, delta=0.001, rho=0.1)
        9103
        >>> samples_needed(tau=0.05, delta=0.001, rho=0.1, constants="paper")
        190831
    """
    width = real(tau, "tau")
    if width <= 0.0:
        raise InvalidArgument("tau", tau, "a number above 0")
    grid = _Grid.of(rho, delta, Rewards.of(rewards, sigma), constants)
    with precise():
        return max(1, ceiling((grid.radius_at_one / written(width)) ** 2))


class _Grid(NamedTuple):
    """The grid's constants for one sample: cell width and radius shrink with 1/sqrt(n) for n samples."""

    rho: float
    delta: float
    constants: str
    noise: Decimal  # kappa, or for the paper's constants twice tau'
    deviation: Decimal  # of one mean from the truth, at level delta
    cell: Decimal

    @classmethod
    def of(cls, rho: float, delta: float, rewards: Rewards, constants: str) -> _Grid:
        """Check the arguments, and return the grid for this rho, delta and kind of rewards."""
        share, failure = open_unit(rho, "rho"), open_unit(delta, "delta")
        if constants not in ("certified", "paper"):
            raise InvalidArgument("constants", constants, "'certified' or 'paper'")
        with precise():
            deviation = Decimal(rewards.sigma) * (2 * (2 / written(failure)).ln()).sqrt()
            if constants == "paper":
                if 2 * written(failure) >= written(share):
                    raise InvalidArgument("delta", delta, f"below rho/2 = {share / 2:g} with the paper's constants")
                noise, room = 2 * deviation, written(share) - 2 * written(failure)
            else:
                noise, room = mean_noise(rewards), written(share)
            if room <= _OFFSET_STEP:
                raise InvalidArgument("rho", rho, "above 2^-53, the finest offset of a grid")
            return cls(share, failure, constants, noise, deviation, noise / (room - _OFFSET_STEP))

    @property
    def radius_at_one(self) -> Decimal:
        """The radius for one sample: the deviation of its mean and half a cell."""
        return self.deviation + self.cell / 2

    def at(self, samples: int) -> tuple[float, float, list[tuple[str, Decimal, str]]]:
        """Return the cell width, the radius and the guarantee's terms for `samples` samples."""
        with precise():
            root = Decimal(samples).sqrt()
            alpha = float_above(self.cell / root)
            radius = float_above(self.deviation / root + Decimal(alpha) / 2)
            crossing = self.noise / root / Decimal(alpha)
            resolution = ("coin resolution", _OFFSET_STEP, "2^-53: finite offsets")
            if self.constants == "paper":
                off = ("accuracy", 2 * written(self.delta), "2 delta: either mean is off by more than tau'")
                return (
                    alpha,
                    radius,
                    [off, ("different cells", crossing, "2 tau'/alpha: a boundary between"), resolution],
                )
            return (
                alpha,
                radius,
                [("different cells", crossing, "kappa/(alpha sqrt n): a boundary between"), resolution],
            )
