"""Lower bounds: what no replicable policy can do with less, whoever invents it. docs/lower-bounds.md has the proofs.

Symbols  K: arms, Delta: the gap, beta: 1 - power, kappa, H and J: as in `crossings`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Literal, NamedTuple

from scipy.special import ndtri
from typing_extensions import TypedDict

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit, real
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON, checked_arms
from banditto.core.json_types import Natural
from banditto.core.results import Result, TablePart
from banditto.core.rewards import Rewards
from banditto.measure.crossing_paths import (
    ROUNDING,
    Demand,
    coin_moves,
    coins_in_one_batch,
    coins_swap,
    divergence,
    normal_arm_moves,
    up,
)
from banditto.measure.crossings import KAPPA, WHOLE

LEAST_RHO = 1e-9
NARROWEST, WIDEST_COIN = 1e-9, 0.999  # gaps; the first is in standard deviations for Gaussian rewards
_SUREST = (
    0.9999  # the rate that no path in one batch exceeds, also where rates may: at 1 nothing would be left to learn
)
_DIRECTIONS = 9


class LowerBoundContent(TypedDict):
    """A `LowerBound` as plain data."""

    per_arm: Natural
    total: Natural
    statement: str


@dataclass(frozen=True, kw_only=True, repr=False)
class LowerBound(Result):
    """Pulls that no policy of a kind can do without. Beyond the paper: proved in docs/lower-bounds.md.

    Made by `lower_bound` and `lai_robbins`.

    Attributes:
        per_arm: pulls of each arm; in expectation, and of each worse arm, unless all pulls are made in one batch.
        total: pulls of all arms together; in expectation unless all pulls are made in one batch.
        statement: what is proved, and for which rewards, as one sentence.
        asked: the arguments of the call that made it, by their names.

    Examples:
        >>> from banditto import lower_bound
        >>> found = lower_bound(arms=2, gap=0.05, rho=0.1)
        >>> found.per_arm, found.total
        (5123, 10246)
    """

    per_arm: int
    total: int
    statement: str
    asked: Mapping[str, Any] = field(default_factory=dict, compare=False)

    _picture = "price_pictures:lower_bound_figure"
    _named = ("per_arm", "total")

    def to_dict(self) -> LowerBoundContent:
        """Return plain data: all attributes but `asked`, which the `statement` has in words."""
        return {"per_arm": self.per_arm, "total": self.total, "statement": self.statement}

    def rows(self) -> list[tuple[str, str]]:
        """Return what a reader wants to know, as pairs of a label and its text."""
        first, *others = wrap(self.statement, 100)
        numbers = [("per arm", f"{self.per_arm:,}"), ("total", f"{self.total:,}"), ("proved", first)]
        return numbers + [("", line) for line in others]

    def _parts(self) -> list[TablePart]:
        return [TablePart(("lower bound", ""), self.rows())]

    def records(self) -> list[dict[str, Any]]:
        """Return one record: what was asked, and the two numbers."""
        return [{**self.asked, "per_arm": self.per_arm, "total": self.total}]


def lower_bound(
    *,
    arms: int,
    gap: float,
    rho: float,
    power: float = 0.95,
    sigma: float = 0.5,
    rewards: Literal["bounded", "gaussian"] = "gaussian",
    rate_at_most: float | None = None,
    kind: Literal["one-batch", "adaptive"] = "one-batch",
) -> LowerBound:
    """Bound from below the pulls of any rule that is replicable on all arms and finds a best arm that leads by `gap`.

    Beyond the paper: docs/lower-bounds.md has the theorems. `one-batch` is about rules that pull every arm equally
    often, as often as was fixed in advance, and then choose an arm; two executions must choose alike. `adaptive` is
    about policies that decide from pull to pull and stop when they like; two executions must make the same pulls and
    the same choice. Where nothing is chosen at the end, an arm that gets more than half of the pulls counts as chosen.
    Adaptive numbers are expectations, rounded down. A policy that repeats its choice, but not its pulls, is bound by
    neither: it can stop earlier.

    Args:
        arms: how many arms there are.
        gap: by how much the best arm leads every other, in units of the rewards.
        rho: the largest probability that two executions differ, on all arms whatever their means are.
        power: the least probability of choosing the best arm when it leads by `gap`, above 0.5.
        sigma: the standard deviation of Gaussian rewards; 0.5 for `rewards="bounded"`.
        rewards: `"gaussian"`, or `"bounded"`: proved for 0/1 rewards, so no rule for all rewards in [0, 1] needs less.
        rate_at_most: for `"bounded"`: the rule need be replicable and right only where no arm's mean exceeds this.
            Default None: whatever the means are.
        kind: `"one-batch"` or `"adaptive"`.

    Raises:
        InvalidArgument: an argument is not allowed.

    Examples:
        >>> lower_bound(arms=4, gap=0.05, rho=0.1, rewards="bounded").per_arm
        7935
        >>> found = lower_bound(arms=4, gap=0.05, rho=0.1, kind="adaptive")
        >>> found.per_arm, found.total
        (1602, 11958)
    """
    limits = _checked(arms, gap, rho, power, sigma, rewards, rate_at_most)
    asked = {
        **{"arms": arms, "gap": gap, "rho": rho, "power": power, "sigma": sigma, "rewards": rewards},
        **{"rate_at_most": rate_at_most, "kind": kind},
    }
    match kind:
        case "one-batch":
            pulls = _in_one_batch(limits)
            said = _one_batch_statement(limits, pulls)
            return LowerBound(per_arm=pulls, total=limits.arms * pulls, statement=said, asked=asked)
        case "adaptive":
            worse, total = (_down(number) for number in _adaptive(limits))
            said = _adaptive_statement(limits, worse, total)
            return LowerBound(per_arm=worse, total=total, statement=said, asked=asked)
        case _:
            raise InvalidArgument("kind", kind, "'one-batch' or 'adaptive'")


def lai_robbins(
    *,
    arms: int,
    gap: float,
    horizon: int,
    sigma: float = 0.5,
    rewards: Literal["bounded", "gaussian"] = "gaussian",
) -> LowerBound:
    """Return the line of Lai and Robbins (1985), for policies that need not be replicable: log T over a divergence.

    It is a limit for long horizons, and about policies that are consistent on all arms: it bounds nothing at a given
    horizon. docs/lower-bounds.md has it beside the bounds that do.

    Args:
        arms: how many arms there are.
        gap: by how much the best arm leads every other, in units of the rewards.
        horizon: T, how many pulls there are.
        sigma: the standard deviation of Gaussian rewards; 0.5 for `rewards="bounded"`.
        rewards: `"gaussian"`, or `"bounded"`: for 0/1 rewards with means (1 - gap)/2 and (1 + gap)/2.

    Raises:
        InvalidArgument: an argument is not allowed.

    Examples:
        >>> lai_robbins(arms=2, gap=0.1, horizon=10**6).per_arm
        690
    """
    limits = _checked(arms, gap, 0.5, 0.75, sigma, rewards, None)
    length = integer(horizon, "horizon", SHORTEST_HORIZON, LONGEST_HORIZON)
    gap = limits.gap
    apart = (gap / limits.sigma) ** 2 / 2.0 if limits.gaussian else divergence((1.0 - gap) / 2.0, (1.0 + gap) / 2.0)
    pulls = math.log(length) / apart
    statement = (
        f"In the limit of long horizons, every policy whose regret grows more slowly than any power of T on all "
        f"{limits.family} pulls each arm that is {limits.gap:g} worse at least log T over a divergence times in "
        f"expectation, {_down(pulls):,} for T = {length:,}; at a given horizon this proves nothing."
    )
    asked = {"arms": arms, "gap": gap, "horizon": length, "sigma": sigma, "rewards": rewards}
    total = _down((limits.arms - 1) * pulls)
    return LowerBound(per_arm=_down(pulls), total=total, statement=statement, asked=asked)


class _Limits(NamedTuple):
    """The checked arguments of `lower_bound`."""

    arms: int
    gap: float
    asked: Demand
    sigma: float
    gaussian: bool
    rate: float | None

    @property
    def top(self) -> float:
        """The largest rate of a 0/1 arm."""
        return 1.0 if self.rate is None else self.rate

    @property
    def family(self) -> str:
        if self.gaussian:
            return f"Gaussian arms with sigma {self.sigma:g}"
        return "arms with 0/1 rewards" + ("" if self.rate is None else f" and rates of at most {self.rate:g}")

    @property
    def premise(self) -> str:
        """What is asked of the rule, on all arms of the family, as part of a sentence."""
        return (
            f"with probability at most {self.asked.rho:g} on any {self.family}, and which chooses the best of "
            f"{self.arms} such arms with probability at least {self.asked.power:g} when it leads all others by "
            f"{self.gap:g} or more,"
        )


def _checked(
    arms: int, gap: float, rho: float, power: float, sigma: float, rewards: str, rate_at_most: float | None
) -> _Limits:
    """Check the arguments of `lower_bound`, and return them; raise `InvalidArgument` for the first that is wrong."""
    arms = checked_arms(arms)
    if rewards not in ("bounded", "gaussian"):
        raise InvalidArgument("rewards", rewards, "'bounded' or 'gaussian'")
    known = Rewards.of(rewards, sigma, rate_at_most)
    gaussian = known.kind == "gaussian"
    unit = known.sigma if gaussian else 1.0
    low, high = NARROWEST * unit, known.widest_gap if gaussian else min(WIDEST_COIN, known.widest_gap)
    allowed = f"a number from {low:g} to {high:g}" + ("" if known.rate_at_most is None else ", the largest rate")
    if not low <= real(gap, "gap", allowed) <= high:
        raise InvalidArgument("gap", gap, allowed)
    if (rho := open_unit(rho, "rho")) < LEAST_RHO:
        raise InvalidArgument("rho", rho, f"a number from {LEAST_RHO:g} to 1, which is excluded")
    allowed = "a number between 0.5 and 1, both excluded"
    if not 0.5 < real(power, "power", allowed) < 1.0:
        raise InvalidArgument("power", power, allowed)
    return _Limits(arms, float(gap), Demand(rho, float(power)), known.sigma, gaussian, known.rate_at_most)


def _down(pulls: float) -> int:
    """Return a bound on an expectation, rounded down to a whole number."""
    return math.floor(pulls * (1.0 - ROUNDING))


def _in_one_batch(limits: _Limits) -> int:
    """Return the pulls of each arm by Theorem 1 or 2."""
    arms, asked = limits.arms, limits.asked
    if not limits.gaussian:
        return max(_lifted(limits, lift) for lift in _lifts(arms))
    same = WHOLE * max(0.0, 1.0 - 1.0 / arms - KAPPA * asked.beta) / asked.rho
    right = float(ndtri(asked.power) - ndtri(1.0 / arms))
    return up(arms / (arms - 1) * (max(same, right) * limits.sigma / limits.gap) ** 2)


def _lifts(arms: int) -> Iterator[float]:
    """Yield shares of the gap by which the best arm rises while the others fall by the rest; each gives a bound."""
    last = 1.0 - 1.0 / arms
    for step in range(_DIRECTIONS if arms > 2 else 1):
        yield last + (0.5 - last) * step / (_DIRECTIONS - 1)


def _lifted(limits: _Limits, lift: float) -> int:
    """Return Theorem 2's pulls of each arm for one such path; rates begin at 1/2, or as near as is allowed."""
    rise = lift * limits.gap
    begin = min(0.5, min(limits.top, _SUREST) - rise)
    return coins_in_one_batch(limits.asked, limits.arms, begin, rise, limits.gap - rise)


def _adaptive(limits: _Limits) -> tuple[float, float]:
    """Return the expected pulls of each worse arm, and of all arms together, by Theorem 3 or 4."""
    asked, gap, others = limits.asked, limits.gap, limits.arms - 1
    if limits.gaussian:
        worse = normal_arm_moves(asked, 2.0 * gap / limits.sigma)
        return worse, (1.0 + math.sqrt(others)) ** 2 * worse
    # one arm rises past the best one, which stays; or the two change places
    best = min(0.5, limits.top - gap)
    worse = coin_moves(asked, best - gap, best + gap) if best > gap else 0.0
    both = coins_swap(asked, min(0.5, limits.top - gap / 2.0), gap)
    return worse, max(both, others * worse)


def _one_batch_statement(limits: _Limits, pulls: int) -> str:
    return (
        f"Every rule that pulls all arms equally often in one batch, whose two executions choose differently "
        f"{limits.premise} needs at least {pulls:,} pulls of each arm."
    )


def _adaptive_statement(limits: _Limits, worse: int, total: int) -> str:
    place = f"where the best arm leads all others by exactly {limits.gap:g}"
    if not limits.gaussian:
        place = f"on some arms of which the best leads all others by exactly {limits.gap:g}"
    return (
        f"Every policy whose two executions differ in their pulls or in their choice {limits.premise} pulls each worse "
        f"arm at least {worse:,} times in expectation, and all arms together at least {total:,} times, {place}."
    )
