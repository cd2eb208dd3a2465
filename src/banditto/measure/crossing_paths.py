"""Paths of arms along which a choice must cross over, and the pulls that this takes: Theorems 2 to 4 for one path each.

Symbols  rho and beta: what is asked of the rule; kappa, H and J: as in `crossings`; p: the rate of a coin.
         docs/lower-bounds.md has the proofs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from banditto.measure.crossings import COIN_KAPPA, COIN_WHOLE, KAPPA, WHOLE, profile

ROUNDING = 1e-9  # relative: what the floats of a formula may be off by, and more
_STEPS, _STRETCHES = 100, 64
_NEVER = 1e-6  # of the rate where a path begins: coins that end below are not told from those that always fail
_TAYLOR = 0.04033  # Lemma 4: the density of a normal variable at 1, over 6, rounded up
_NORMAL_THIRD = 1.59577  # the third absolute moment of a standard normal variable, rounded up

Moves = tuple[tuple[int, float], ...]  # so many arms, and by how much the rate of each of them moves


class Demand(NamedTuple):
    """What is asked of a rule: two executions differ with probability rho at most, and it finds the best arm."""

    rho: float
    power: float

    @property
    def beta(self) -> float:
        """The largest probability of a wrong choice where the best arm leads by the gap."""
        return 1.0 - self.power

    @property
    def evidence(self) -> float:
        """kl(beta, 1 - beta): the evidence that a rule with this power must gather."""
        return (1.0 - 2.0 * self.beta) * math.log(self.power / self.beta)

    def crossed(self, kappa: float) -> float:
        """Return F, the least share of the choice that changes sides along an adaptive policy's path."""
        return max(0.0, 1.0 - kappa * self.rho - (1.0 + kappa) * self.beta)


def up(pulls: float) -> int:
    """Return a bound rounded up to whole pulls; at least 1."""
    return max(1, math.ceil(pulls * (1.0 - ROUNDING)))


# -- one batch --------------------------------------------------------------------------------------------------------


def coins_in_one_batch(asked: Demand, arms: int, begin: float, rise: float, fall: float) -> int:
    """Return Theorem 2's pulls of each arm: all begin at one rate, then one rises while the others fall.

    Every bound on the pulls says how nearly normal their sum is, which gives the next bound.
    """
    if begin - fall <= _NEVER * begin:
        return 1
    moves = ((1, rise), (arms - 1, -fall))
    length, skew, pulls = squared_length(begin, moves), skewness(begin, moves), 1
    for _ in range(_STEPS):
        shape = profile(skew / math.sqrt(pulls))
        same = shape.whole * max(0.0, 1.0 - 1.0 / arms - shape.kappa * asked.beta) / asked.rho
        right = shape.climb(1.0 / arms, asked.power)
        found = up(max(same, right) ** 2 / length)
        if found <= pulls:
            break
        pulls = found
    return pulls


def squared_length(begin: float, moves: Moves) -> float:
    """Return a bound on what one pull of each arm tells along the path (Cauchy and Schwarz)."""
    return sum(count * move * (math.log1p(move / begin) - math.log1p(-move / (1.0 - begin))) for count, move in moves)


def skewness(begin: float, moves: Moves) -> float:
    """Return the epsilon of Lemma 3 for one pull of each arm, at its worst along each stretch of the path."""
    places = np.linspace(0.0, 1.0, _STRETCHES + 1)
    third = information = np.zeros(_STRETCHES)
    for count, move in moves:
        rates = begin + move * places
        inverse = 1.0 / (rates * (1.0 - rates))  # of the variance: convex in the rate, and 4 at 1/2
        ends = np.stack([inverse[1:], inverse[:-1]])
        passes = (rates[1:] - 0.5) * (rates[:-1] - 0.5) < 0.0
        most, least = np.max(ends, axis=0), np.where(passes, 4.0, np.min(ends, axis=0))
        third = third + count * abs(move) ** 3 * most * (most - 2.0)
        information = information + count * move**2 * least
    return float(np.max(third / information**1.5)) / 2.0


# -- from pull to pull ------------------------------------------------------------------------------------------------


def normal_arm_moves(asked: Demand, distance: float) -> float:
    """Return Theorem 3's expected pulls of a Gaussian arm that moves by so many standard deviations."""
    same = (WHOLE / asked.rho) ** 2 * asked.crossed(KAPPA) ** 3
    return max(same, 2.0 * asked.evidence) / distance**2


def coin_moves(asked: Demand, low: float, high: float) -> float:
    """Return Theorem 4's expected tosses of a coin whose rate moves from `low` up to `high`."""
    paid = 2.0 * asked.rho * _angle(low, high)
    variance = min(low * (1.0 - low), high * (1.0 - high))
    skew = (1.0 - 2.0 * variance) / (2.0 * math.sqrt(variance)) if variance > 0.0 else math.inf
    return max(_tossed(asked, paid, skew, 0.0), asked.evidence / divergence(low, high))


def coins_swap(asked: Demand, middle: float, gap: float) -> float:
    """Return Theorem 4's expected tosses of two coins together that change places; `middle` <= 1/2."""
    low, high = max(0.0, middle - gap / 2.0), middle + gap / 2.0
    if middle == 0.5:  # heads of one are tails of the other, so this is one coin
        return coin_moves(asked, low, high)
    paid = 4.0 * asked.rho * _angle(low, middle)
    variance = low * (1.0 - low)
    moment = (1.0 - 2.0 * variance) / math.sqrt(variance) if variance > 0.0 else math.inf
    apart = max(divergence(low, high), divergence(high, low))
    slope = _TAYLOR * (moment + _NORMAL_THIRD)
    return max(_tossed(asked, paid, 0.5 + slope, slope), asked.evidence / apart)


def _tossed(asked: Demand, paid: float, skew: float, slope: float) -> float:
    """Return the tosses until the choice has changed, if n of them are (skew + slope log n)/sqrt(n)-near to normal."""
    share = asked.crossed(COIN_KAPPA)
    if share <= 0.0:
        return 0.0
    fewest = (2.0 * COIN_WHOLE * share / (3.0 * paid)) ** 2  # below it, Cramer and Rao's J will do
    known = fewest >= math.e  # from there on the excess falls
    shape = profile((skew + slope * math.log(fewest)) / math.sqrt(fewest) if known else math.inf)
    whole = shape.whole if shape.kappa <= COIN_KAPPA else COIN_WHOLE
    return whole**2 * share**3 / paid**2


def _angle(low: float, high: float) -> float:
    """Return asin sqrt(high) - asin sqrt(low), computed without cancellation."""
    return math.asin(min(1.0, (high - low) / (math.sqrt(high * (1.0 - low)) + math.sqrt(low * (1.0 - high)))))


def divergence(begin: float, end: float) -> float:
    """Return the Kullback-Leibler divergence of two coins with these rates, rounded up."""
    move = end - begin
    if not 0.0 < end < 1.0:
        return math.inf
    if not 0.0 < begin < 1.0:
        return -math.log1p(-abs(move))
    exact = -begin * math.log1p(move / begin) - (1.0 - begin) * math.log1p(-move / (1.0 - begin))
    chord = move**2 * (1.0 / (begin * (1.0 - begin)) + 2.0 / (end * (1.0 - end))) / 6.0
    return min(exact + 1e-15 * abs(move), chord)
