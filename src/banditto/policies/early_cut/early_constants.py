"""EarlyCut's constants on one problem: what decides, how it is written down, and what the proof gives for it.

The proof is in docs/early-cut.md, where each symbol names its function here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, precise
from banditto.core.protocol import Plain, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.numbers.special_functions import erfcx
from banditto.policies.certified_elimination.overlap import SAFETY
from banditto.policies.one_cut import cut_constants
from banditto.policies.one_cut.choice import PIECES
from banditto.policies.one_cut.cut_constants import CutProblem, Terms
from banditto.policies.shared import confidence

MOST_LOOKS = 128
MOST_RATES = 8
# with higher rates the variance of rewards in [0, 1] is so near to 1/4 that it does not pay to look at rates
HIGHEST_RATE = 0.4


class Tail(NamedTuple):
    """P(a lead falls by its margin and x more after a look) is at most the sum of weights * exp(-rates x)."""

    rates: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def mass(self) -> float:
        """A bound on the probability that a margin is not enough."""
        return math.fsum(self.weights)

    @property
    def mean(self) -> float:
        """e, a bound on the average by which a margin is exceeded."""
        return math.fsum(weight / rate for rate, weight in zip(self.rates, self.weights, strict=True))


class EarlyLook(NamedTuple):
    """A look: pulls of each arm by then, the margin by which a lead must exceed the cut, and that for the default."""

    pulls: int
    margin: float
    default_margin: float


class EarlySchedule(NamedTuple):
    """The constants that decide, and those by which the margins were chosen, so that they can be checked.

    `width` and `knots` are those of `OneCut`, for `pulls` of each arm. `overrun` is the probability that an arm's mean
    at a look exceeds what its promised rate allows there; 0 where no rate is promised.
    """

    looks: tuple[EarlyLook, ...]
    pulls: int
    width: float
    knots: tuple[float, ...]
    tail: Tail
    default_tail: Tail
    overrun: float

    def to_plain(self) -> Mapping[str, Plain]:
        """Return the schedule as a protocol holds it: integers, and all else as exact binary fractions."""
        looks: list[Mapping[str, Plain]] = [
            {"pulls": look.pulls, "margin": fraction(look.margin), "default_margin": fraction(look.default_margin)}
            for look in self.looks
        ]
        return {
            "looks": tuple(looks),
            "pulls": self.pulls,
            "width": fraction(self.width),
            "knots": tuple(fraction(knot) for knot in self.knots),
            "rates": tuple(fraction(rate) for rate in self.tail.rates),
            "weights": tuple(fraction(weight) for weight in self.tail.weights),
            "default_weights": tuple(fraction(weight) for weight in self.default_tail.weights),
            "overrun": fraction(self.overrun),
        }

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], arms: int, horizon: int) -> EarlySchedule:
        """Return the schedule that `to_plain` wrote, or refuse content that it could not have written."""
        names = {"looks", "pulls", "width", "knots", "rates", "weights", "default_weights", "overrun"}
        if set(content) != names or not isinstance(content["looks"], tuple):
            raise InvalidArgument("resolved", list(content), ", ".join(sorted(names)))
        if len(content["looks"]) > MOST_LOOKS:
            raise InvalidArgument("looks", f"{len(content['looks'])} of them", f"at most {MOST_LOOKS}")
        pulls = integer(content["pulls"], "pulls", 1, horizon)
        if arms * pulls >= horizon:
            raise InvalidArgument("pulls", pulls, f"at most {(horizon - 1) // arms} for each arm")
        looks = tuple(_look_from_plain(row, pulls) for row in content["looks"])
        if any(one.pulls >= two.pulls for one, two in pairwise(looks)) or (looks and looks[-1].pulls >= pulls):
            raise InvalidArgument("looks", [look.pulls for look in looks], "pulls that increase, below the cap")
        numbers = {name: _numbers(content[name], name) for name in ("knots", "rates", "weights", "default_weights")}
        knots, rates = numbers["knots"], numbers["rates"]
        if len(knots) != (PIECES + 1 if arms > 2 else 0) or any(low >= high for low, high in pairwise(knots)):
            raise InvalidArgument("knots", knots, f"{PIECES + 1} numbers that increase, or none for two arms")
        if not 1 <= len(rates) <= MOST_RATES or not all(rate > 0.0 for rate in rates):
            raise InvalidArgument("rates", rates, f"1 to {MOST_RATES} numbers above 0")
        for name in ("weights", "default_weights"):
            if len(numbers[name]) != len(rates) or not all(0.0 < weight < 1.0 for weight in numbers[name]):
                raise InvalidArgument(name, numbers[name], "numbers between 0 and 1, one for each rate")
        width, overrun = from_fraction(content["width"], "width"), from_fraction(content["overrun"], "overrun")
        if not width > 0.0:
            raise InvalidArgument("width", width, "a number above 0")
        if not 0.0 <= overrun < 1.0:
            raise InvalidArgument("overrun", overrun, "a number from 0 to 1, 1 excluded")
        tails = Tail(rates, numbers["weights"]), Tail(rates, numbers["default_weights"])
        return cls(looks, pulls, width, knots, *tails, overrun)


def _numbers(content: object, name: str) -> tuple[float, ...]:
    if not isinstance(content, tuple):
        raise InvalidArgument(name, content, "a list of numbers")
    return tuple(from_fraction(number, name) for number in content)


def _look_from_plain(row: Any, cap: int) -> EarlyLook:
    """Return one look of a protocol's schedule, or refuse a row that `to_plain` could not have written."""
    if not isinstance(row, Mapping) or set(row) != {"pulls", "margin", "default_margin"}:
        raise InvalidArgument("looks", row, "tables with pulls, margin and default_margin")
    margins = tuple(from_fraction(row[name], name) for name in ("margin", "default_margin"))
    if not all(margin >= 0.0 for margin in margins):
        raise InvalidArgument("looks", margins, "margins of at least 0")
    return EarlyLook(integer(row["pulls"], "pulls", 1, cap), *margins)


# -- from a look to the cap --------------------------------------------------------------------------------------------


def watches_rates(rewards: Rewards) -> bool:
    """Return whether margins rely on the small variance of low rates, so that no mean may run far beyond its rate."""
    return rewards.rate_at_most is not None and rewards.rate_at_most <= HIGHEST_RATE


@lru_cache(maxsize=64)
def ceilings(arms: int, rewards: Rewards, pulls: tuple[int, ...], overrun: float) -> FloatArray:
    """Return beta, for each look what all means stay below from then on, except with probability `overrun` (Lemma 2).

    m kl(beta, b) = log(2 K J / overrun), solved upwards for beta in (b, 1/2]; 1/2 where no smaller one does.
    """
    assert rewards.rate_at_most is not None  # asked for rates only
    rate = rewards.rate_at_most
    sizes = np.asarray(pulls, dtype=np.float64)
    needed = math.log(2.0 * arms * len(pulls) / overrun) / sizes * (1.0 + 1e-6)  # more than rounding takes away
    low, high = np.zeros(len(pulls)), np.full(len(pulls), 0.5 - rate)
    for _ in range(60):  # for the distance from the rate: where looks are huge it is tiny
        more = (low + high) / 2.0
        divergence = (rate + more) * np.log1p(more / rate) + (1.0 - rate - more) * np.log1p(-more / (1.0 - rate))
        far = divergence >= needed
        low, high = np.where(far, low, more), np.where(far, more, high)
    found = np.asarray(rate + high)
    found.flags.writeable = False  # many readers share it
    return found


def log_moments(
    arms: int, rewards: Rewards, pulls: tuple[int, ...], cap: int, rates: tuple[float, ...], overrun: float
) -> FloatArray:
    """Return Lambda >= log E exp(rate (lead at a look - lead at the cap)), given the cap; axes (look, rate).

    Gaussian: rate^2 sigma^2 (1/m - 1/n). Rewards in [0, 1]: Hoeffding for each pull taken away, rate^2/4 (1/(m - 1/2) -
    1/(n - 1/2)). Low rates: Bernstein for each pull, with the variance at the ceiling of the means (Lemma 2).
    """
    sizes = np.asarray(pulls, dtype=np.float64)[:, np.newaxis]  # (look, 1)
    scale = np.asarray(rates)[np.newaxis]  # (1, rate)
    if rewards.kind == "gaussian":
        return np.asarray(scale**2 * rewards.sigma**2 * (1.0 / sizes - 1.0 / cap))
    hoeffding = scale**2 / 4.0 * (1.0 / (sizes - 0.5) - 1.0 / (cap - 0.5))
    if not watches_rates(rewards) or not pulls:
        return np.asarray(hoeffding)
    top = ceilings(arms, rewards, pulls, overrun)[:, np.newaxis]
    ends = np.append(sizes[1:, 0], float(cap))[:, np.newaxis]
    steps = 1.0 / (sizes - 0.5) - 1.0 / (ends - 0.5)  # (look, 1): the sum of 1/i^2 until the next look, at the most
    skew = 1.0 - scale / (3.0 * sizes)
    with np.errstate(divide="ignore", over="ignore"):
        bernstein = np.where(skew > 0.0, scale**2 * top * (1.0 - top) * steps / np.maximum(skew, 1e-300), np.inf)
    each = np.minimum(bernstein, scale**2 / 4.0 * steps)
    return np.asarray(np.cumsum(each[::-1], axis=0)[::-1])


def margins(tail: Tail, moments: FloatArray) -> FloatArray:
    """Return b, the smallest margin of each look with sum of weights * exp(rate b - Lambda) >= 1 (Lemma 1)."""
    logs, rates = np.log(np.asarray(tail.weights)), np.asarray(tail.rates)
    low = np.zeros(len(moments))
    high = np.min((moments - logs) / rates, axis=1)  # where one summand alone is 1
    for _ in range(60):
        middle = (low + high) / 2.0
        enough = np.logaddexp.reduce(logs + rates * middle[:, np.newaxis] - moments, axis=1) >= 0.0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(np.maximum(high, 0.0))


def proved(problem: CutProblem, schedule: EarlySchedule) -> bool:
    """Return whether the proof covers the schedule: looks in order, wide margins, a window that begins at the cut."""
    if schedule.knots and schedule.knots[0] < schedule.width:
        return False
    if max(schedule.tail.mass, schedule.default_tail.mass) >= 1.0:
        return False
    if not schedule.looks:
        return True
    if any(one >= two for one, two in pairwise([0, *(look.pulls for look in schedule.looks), schedule.pulls])):
        return False
    if watches_rates(problem.rewards) and not schedule.overrun > 0.0:
        return False
    if problem.arms == 2 and any(look.margin != look.default_margin for look in schedule.looks):
        return False  # one test of one sign, with the same margin on both sides
    pulls = tuple(look.pulls for look in schedule.looks)
    moments = log_moments(problem.arms, problem.rewards, pulls, schedule.pulls, schedule.tail.rates, schedule.overrun)
    for tail, given in (
        (schedule.tail, [look.margin for look in schedule.looks]),
        (schedule.default_tail, [look.default_margin for look in schedule.looks]),
    ):
        reached = np.log(np.asarray(tail.weights)) + np.asarray(tail.rates) * np.asarray(given)[:, np.newaxis] - moments
        if bool(np.any(np.logaddexp.reduce(reached, axis=1) < -1e-11)):  # SAFETY covers that
            return False
    return True


# -- the theorems' right sides -----------------------------------------------------------------------------------------


def laplace(rewards: Rewards, cap: int, rate: float) -> float:
    """Return L >= E exp(-rate |D - D'|) for the two executions' differences of two arms at the cap (Theorem 1)."""
    normal = float(erfcx(rate * rewards.deviation * math.sqrt(2.0 / cap)))
    return normal if rewards.kind == "gaussian" else min(1.0, normal + rate / cap)


def line_excess(rewards: Rewards, cap: int, tail: Tail) -> float:
    """Return what early looks add to E|D - D'| for two arms (Theorem 1): less for Gaussian rewards."""
    parts = list(zip(tail.rates, tail.weights, strict=True))
    if rewards.kind == "gaussian":
        noisy = 4.0 * math.fsum(weight / rate * laplace(rewards, cap, rate) for rate, weight in parts)
        return max(noisy, 4.0 * tail.mean - confidence.line_noise(rewards, cap))  # with all noise, and without any
    one = math.fsum(weight / rate * laplace(rewards, cap, rate) for rate, weight in parts)
    both = 0.0
    for rate, weight in parts:
        for other, more in parts:
            least = min(rate, other)
            both += weight * more * 2.0 / least * laplace(rewards, cap, least / 2.0)
    return 2.0 * tail.mean + 2.0 * (1.0 - tail.mass) * one + both


def leader_factor(problem: CutProblem) -> float:
    """Return how many leads could mislead a look that names a leader: K - 1, or K with a control (Theorem 2)."""
    return float(problem.arms if problem.control else problem.arms - 1)


def default_factor(problem: CutProblem, width: float, knots: tuple[float, ...]) -> float:
    """Return how many comparisons could mislead a look that names the default, in units of 1/w (Theorem 2)."""
    arms, more = problem.arms, 1.0 if problem.control else 0.0
    densest = 1.0 / (PIECES * min(high - low for low, high in pairwise(knots)))
    inside = (arms - 1) * (1.0 + more + cut_constants.harmonic(arms))
    outside = (arms - 2) / 3.0 + more
    return arms - 1 + width * densest * (inside + outside)


def precision(problem: CutProblem, schedule: EarlySchedule) -> float:
    """Return what finite coins, rounded cuts and totals add: OneCut's, twice for each look and once for the cap.

    Totals are added up look by look. Those of OneCut are off by at most 4 roundings of a batch, which leaves room for
    8; these are off by one rounding of the total at each look, which is more where looks are close together.
    """
    alone = cut_constants.CutSchedule((), schedule.pulls, schedule.width, schedule.knots)
    sums, roundings = 0, 1.0
    for look in schedule.looks:
        sums += look.pulls
        roundings = max(roundings, (1.0 + sums / look.pulls) / 8.0)
    roundings = max(roundings, (2.0 + sums / schedule.pulls) / 8.0)
    widest = max((look.margin + look.default_margin for look in schedule.looks), default=0.0)
    with precise():
        # a margin beyond the cut is rounded, too
        more = Decimal(2) ** -48 * Decimal(widest) / Decimal(schedule.width) * problem.arms * len(schedule.looks)
        times = Decimal(roundings) * (2 * len(schedule.looks) + 1)
        return float(Decimal(cut_constants.precision(problem, alone)) * times + more)


def terms(problem: CutProblem, schedule: EarlySchedule) -> Terms:
    """Return the terms of the theorems' bound, for a schedule that `proved` accepts."""
    width, cap = schedule.width, schedule.pulls
    found: Terms
    if problem.arms == 2:
        factor, said = (1.0, "E/w") if problem.control else (0.5, "E/(2w)")
        noise = factor * confidence.line_noise(problem.rewards, cap) / width * SAFETY
        excess = factor * line_excess(problem.rewards, cap, schedule.tail) / width * SAFETY if schedule.looks else 0.0
        found = [
            ("cut", Decimal(noise), f"{said}: the cut lies between the two executions' leads at the cap, n = {cap}"),
            ("early looks", Decimal(excess), "how far a look's lead strays from the cap's beyond its margin"),
        ]
    else:
        alone = cut_constants.CutSchedule((), cap, width, schedule.knots)
        found = [term for term in cut_constants.terms(problem, alone) if term[0] != "finite precision"]
        if schedule.looks:
            said = "2 K" if problem.control else "2 (K-1)"
            lead = 2.0 * leader_factor(problem) * schedule.tail.mean / width * SAFETY
            share = default_factor(problem, width, schedule.knots)
            default = 2.0 * share * schedule.default_tail.mean / width * SAFETY
            found += [
                ("early leaders", Decimal(lead), f"{said} e/w: a look names a leader that the cap would not"),
                ("early defaults", Decimal(default), "2 e' (K - 1 + window)/w: a look names another default"),
            ]
    if schedule.overrun > 0.0:
        found.append(("rates", Decimal(schedule.overrun), "a mean at a look exceeds what its promised rate allows"))
    return [*found, ("finite precision", Decimal(precision(problem, schedule)), "coins, cuts and totals as floats")]
