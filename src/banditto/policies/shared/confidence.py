"""Widths, noise constants and counts that the proofs use, each with the lemma it evaluates.

Everything is computed by `decimal` at 60 digits, so that the constants resolved from it are the same on every
machine. The proofs are in docs/random-threshold.md, where each symbol names its function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from banditto.core.exact import PI, ceiling, first_true, precise
from banditto.core.horizons import batch_count, batch_growth
from banditto.core.rewards import Rewards


@lru_cache(maxsize=1024)
def log_factor(arms: int, horizon: int, batches: int) -> Decimal:
    """Return L = log(2 K T B): with it, all K (B - 1) means of one execution are good with P >= 1 - 1/T (Lemma 1)."""
    with precise():
        return Decimal(2 * arms * horizon * batches).ln()


def width(sigma: float, log: Decimal, samples: int) -> Decimal:
    """Return U = 2 sigma sqrt(2 L / n), twice the radius that n samples have at level 2 exp(-L) (Lemma 1)."""
    with precise():
        return 2 * Decimal(sigma) * (2 * log / samples).sqrt()


class BatchWidths(NamedTuple):
    """The log factor L, and for each batch i the samples c_i before the blow-up and the width U_i."""

    log: Decimal
    samples: tuple[int, ...]
    widths: tuple[Decimal, ...]


@lru_cache(maxsize=512)
def ladder(arms: int, horizon: int, sigma: float) -> BatchWidths:
    """Return the batches of Algorithm 2 before the blow-up: c_i = floor(q) + ... + floor(q^i), i = 1 to B - 1."""
    log = log_factor(arms, horizon, batch_count(horizon))
    samples = tuple(accumulate(batch_growth(horizon)))
    return BatchWidths(log, samples, tuple(width(sigma, log, c) for c in samples))


def gap_noise(arms: int, rewards: Rewards) -> Decimal:
    """Return kappa with E|G_j - G'_j| <= kappa sqrt(2) sigma / sqrt(n), for the gap to the leader (Lemma 3)."""
    with precise():
        if arms > 2:
            return 1 + (2 * Decimal(2 * arms).ln()).sqrt()
        if rewards.kind == "subgaussian":
            return Decimal(2).sqrt()
        if rewards.rate_at_most is not None:  # by the variance, for any number of samples, or without the promise
            return min(Decimal(2).sqrt() * Decimal(rewards.deviation), 1 / PI.sqrt()) / Decimal(rewards.sigma)
        return 2 / PI.sqrt()


def mean_noise(rewards: Rewards) -> Decimal:
    """Return kappa with E|v - v'| <= kappa / sqrt(n), for independent means of n rewards (docs/replicable-mean.md)."""
    with precise():
        if rewards.rate_at_most is not None:
            return min(Decimal(rewards.deviation) * Decimal(2).sqrt(), 1 / PI.sqrt())
        sigma = Decimal(rewards.sigma)
        return sigma * Decimal(2).sqrt() if rewards.kind == "subgaussian" else 2 * sigma / PI.sqrt()


def undecided_batches(widths: Sequence[Decimal], blowup: int, reach: float) -> int:
    """Return M, the most batches in whose window [U/2, U + 2 U/sqrt(beta)] one gap can lie (Lemma 2).

    Windows are widened by a relative 1e-12 for rounded cuts, and by 2^-50 of the means' reach for rounded totals.
    """
    with precise():
        high = 1 + 2 / Decimal(blowup).sqrt()
        slack = [Decimal("1e-12") * u + Decimal(2) ** -50 * Decimal(reach) for u in widths]
        windows = [(u / 2 - more, u * high + 2 * more) for u, more in zip(widths, slack, strict=True)]
        # the count rises only at a lower end, so its maximum is attained at one
        return max((sum(low <= gap <= high for low, high in windows) for gap, _ in windows), default=0)


LARGEST_RATIO = 11.0  # of a window's low to its width, up to which `comparison_rounding` covers rounded cuts


def comparison_rounding(reach: float, width: Decimal) -> Decimal:
    """Return 2^-47 + 2^-48 R/U, what finite coins, rounded cuts and totals add to one comparison (Lemma 4)."""
    with precise():
        return Decimal(2) ** -47 + Decimal(2) ** -48 * Decimal(reach) / width


def flip_probability(noise: Decimal, blowup: int, log: Decimal) -> Decimal:
    """Return kappa / sqrt(beta L), how likely one undecided comparison differs between executions (Lemma 4)."""
    with precise():
        return noise / (blowup * log).sqrt()


def threshold_blowup(
    noise: Decimal, log: Decimal, comparisons: int, rounding: Decimal, room: Decimal, undecided: Callable[[int], int]
) -> int | None:
    """Return beta, the smallest blow-up with comparisons * M(beta) * (flip probability + rounding) <= room.

    M(beta) falls as beta grows, so the left side falls too. M counts as at least 1: a blow-up at which no batch can
    be undecided is one at which no arm can be dropped. None when no blow-up leaves room.
    """

    def needed(most: int) -> int | None:
        """Return the smallest blow-up that would do if M were `most`; None if none does."""
        left = room - comparisons * most * rounding
        return ceiling((noise * comparisons * most / left) ** 2 / log) if left > 0 else None

    with precise():
        low, most = 1, 1
        while (high := needed(most)) is not None and undecided(high) > most:
            low, most = high + 1, most + 1
        if high is None or most == 1 or undecided(high) == most:
            return high

        def enough(blowup: int) -> bool:
            least = needed(max(undecided(blowup), 1))
            return least is not None and least <= blowup

        return first_true(enough, low, high)  # M(high) is below `most`, so a smaller blow-up may do


def batch_noise(arms: int, rewards: Rewards, samples: int) -> float:
    """Return E >= E|G - G'|, for the gap G between an arm and the best of the others, in fresh means of m samples.

    docs/certified-elimination.md, Lemma 2: signs for two arms, isoperimetry for Gaussian rewards; for rewards in [0, 1]
    an Efron-Stein bound on the others' maximum, and the arm itself within 1/(2m) of a normal variable.
    """
    gaussian = 2.0 * rewards.sigma * math.sqrt(2.0 / (math.pi * samples))
    if rewards.rate_at_most is not None:
        return min(_rated_noise(arms, rewards, samples), batch_noise(arms, Rewards("bounded", 0.5), samples))
    if arms == 2 or rewards.kind == "gaussian":
        return gaussian
    excess = 1.0 + 4.0 * math.sqrt(math.log(arms) / (2.0 * samples))  # 2 Var(max) <= excess / (2m)
    ratio = math.sqrt(excess)
    folded = math.sqrt(2.0 / math.pi) * math.exp(-excess / 2.0) + ratio * math.erf(ratio / math.sqrt(2.0))
    return min(folded / math.sqrt(2.0 * samples) + 1.0 / (2.0 * samples), math.sqrt((1.0 + excess) / (2.0 * samples)))


def _rated_noise(arms: int, rewards: Rewards, samples: int) -> float:
    """Return `batch_noise` for means of at most a stated rate, whose variance is at most p (1 - p).

    Two arms: `line_noise`. More: Efron and Stein's bound with that variance, and the arm itself within 1/m of a normal
    variable, by Goldstein's theorem, because no term of its sum exceeds 1.
    """
    if arms == 2:
        return line_noise(rewards, samples)
    variance = rewards.deviation**2
    others = math.sqrt(2.0 * (variance + math.sqrt(math.log(arms) / (2.0 * samples))) / samples)  # of M - M'
    own = math.sqrt(2.0 * variance / samples)
    ratio = others / own
    folded = own * (math.sqrt(2.0 / math.pi) * math.exp(-(ratio**2) / 2.0) + ratio * math.erf(ratio / math.sqrt(2.0)))
    return min(folded + 1.0 / samples, math.sqrt(own**2 + others**2))


def line_noise(rewards: Rewards, samples: int) -> float:
    """Return E >= E|D - D'|, for the difference D of two arms' means (docs/one-cut.md, Lemma 1).

    It is exact for Gaussian rewards. For rewards in [0, 1] with rates of at most p it counts random signs, each present
    with probability 2p (1 - p), and raises their variance by 1/(4m).
    """
    if rewards.rate_at_most is None:
        return 2.0 * rewards.sigma * math.sqrt(2.0 / (math.pi * samples))
    variance = rewards.deviation**2
    signs = 2.0 * math.sqrt(2.0 * min(variance + 1.0 / (4.0 * samples), 0.25) / (math.pi * samples))
    return min(signs, 2.0 * math.sqrt(variance / samples))


def normal_distance(rewards: Rewards, samples: int) -> float:
    """Return W >= E|X - Q|, for a mean X of m rewards and the normal variable Q of its moments, coupled by quantiles.

    0 for Gaussian rewards; 1/m for rewards in [0, 1] (Goldstein 2010: E|x - mu|^3 / (m Var x), and |x - mu| <= 1).
    """
    return 0.0 if rewards.kind == "gaussian" else 1.0 / samples


def spider_noise(arms: int, rewards: Rewards, samples: int) -> float:
    """Return E >= E d(Y, Y'), for two executions' points on the spider of K legs (docs/one-cut.md, Lemma 2)."""
    if arms == 2:
        return line_noise(rewards, samples)
    normal = 2.0 * rewards.deviation * math.sqrt(2.0 / (math.pi * samples))
    return normal + 2.0 * arms * normal_distance(rewards, samples)


def linear_noise(arms: int, rewards: Rewards, samples: int) -> float:
    """Return E >= E|G - G'|, for gaps of linear values whose differences have variance proxy 2 sigma^2 / m.

    docs/certified-linear.md, Lemma 2: isoperimetry for Gaussian rewards; for rewards in [0, 1] Efron and Stein's bound,
    with a maximum over all arms of the sums of squared influences, of which none exceeds 4 / m^2; else a union.
    """
    sigma, root = rewards.sigma, math.sqrt(samples)
    normal = 2.0 * sigma * math.sqrt(2.0 / math.pi) / root
    if rewards.kind == "gaussian":
        return normal
    if arms == 2:
        spread = 2.0 * sigma / root
        return min(normal + 2.0 / samples, spread) if rewards.kind == "bounded" else spread
    union = 2.0 * sigma * math.sqrt(2.0 * math.log(2 * (arms - 1))) / root
    if rewards.kind == "subgaussian":
        return union
    return min(union, math.sqrt(largest_sum(8.0 * math.log(arms) / samples)) / root)


def largest_sum(log: float) -> float:
    """Return c with E max_b S_b <= c mu, for K sums S_b of mean at most mu and terms in [0, t].

    `log` is t log(K) / mu. Through exp(h S_b / t), E max <= mu (log + e^h - 1) / h for every h > 0; the h that is used
    is nearly the best.
    """
    h = min(math.sqrt(2.0 * log), math.log1p(log) + 0.5)
    return (log + math.expm1(h)) / h if h > 0.0 else 1.0


def wrong_lead(arms: int, batches: int, horizon: int, sigma: float, samples: int) -> float:
    """Return R = 2 sigma sqrt(log((K-1) N T) / m), by which a worse arm hardly ever leads.

    It leads by more with probability 1/(N T) at most (Lemma 1).
    """
    return 2.0 * sigma * math.sqrt(math.log((arms - 1) * batches * horizon) / samples)


def overshoot(distance: float, sigma: float, samples: int) -> float:
    """Return t(s), a bound on twice the mean excess of a noisy gap over an edge that is s away (Lemma 3).

    t(s) = 2 sigma sqrt(pi/m) erfc(s sqrt(m)/(2 sigma)).
    """
    root = math.sqrt(samples)
    return 2.0 * sigma * math.sqrt(math.pi) / root * math.erfc(distance * root / (2.0 * sigma))


def choice_scale(survivors: int, rewards: Rewards | None = None) -> float:
    """Return k with E[range(X - X')] <= 4 sigma k / sqrt(m), for independent means of so many arms (Lemma 6)."""
    return min(math.sqrt(math.log(survivors)), survivors * pair_scale(rewards))


def pair_scale(rewards: Rewards | None) -> float:
    """Return k for one pair of arms: sqrt(2/pi)/4, or with rates at most p, if less, sqrt(p (1-p))/(4 sigma)."""
    if rewards is None or rewards.rate_at_most is None:
        return math.sqrt(2.0 / math.pi) / 4.0
    return min(rewards.deviation, 0.5 * math.sqrt(2.0 / math.pi)) / rewards.sigma / 4.0
