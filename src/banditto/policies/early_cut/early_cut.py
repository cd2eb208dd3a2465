"""The same winner as early as the data allow: OneCut's choice at a cap, and looks that name it before.

Paper    Beyond Esfandiari et al. 2023; rule, constants and proof: docs/early-cut.md.
Symbols  K: arms, n: the cap, pulls of each arm, m: pulls at a look, S: the lead of the best mean over the second best,
         c: the cut, uniform on [0, w], c2: the window's cut, from knots, b: a look's margin
Departs  - It promises less than Definition 1: two executions name the same winner, after pulls that may differ.
         - At the cap it chooses as OneCut does. A look ends the experiment where the cap would hardly choose otherwise:
           the leader is ahead by more than c + b, or nobody can be and the default is certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, namespace
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, real, written
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.protocol import Plain, Protocol
from banditto.core.rewards import Rewards
from banditto.core.text import significant
from banditto.policies.early_cut import early_constants, early_search
from banditto.policies.early_cut.early_constants import EarlyLook, EarlySchedule
from banditto.policies.one_cut import cut_search
from banditto.policies.one_cut.choice import CutChoice
from banditto.policies.one_cut.cut_constants import CutProblem
from banditto.policies.policy import Description, Guarantee, Level
from banditto.policies.shared import elimination
from banditto.policies.shared.elimination import Race
from banditto.policies.shared.replicable import UNRESOLVED, Replicable

_SMALLEST_RHO = 1e-6  # below it the search for margins loses its digits
_COINS = 1  # all looks and the cap decide by the same coins, those of this address


@dataclass(frozen=True, kw_only=True)
class EarlyCut(Replicable):
    """The same winner in a second lab, as early as the data allow: one cap, one shared cut, and looks on the way.

    Beyond the paper; its theorem is proved in docs/early-cut.md. Two executions with shared coins name the same winner
    with probability 1 - rho at the least, whatever the arms are. They may pull different numbers of times, so this is
    less than Definition 1, and costs less. The best arm wins with probability `power` where it leads by `gap`.

    Args:
        arms: The number of arms, 2 to 1,000.
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm. All that is left
            once there is a winner is for the winner; a live experiment ends there.
        rho: The largest allowed probability that two executions name different winners, from 1e-6 to 1.
        constants: "certified", the default; there are no others, because this policy is not in the paper.
        sigma: The standard deviation of the rewards, 1e-6 to 1e6. Default 1/2, for rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), the default, or "gaussian", which any sigma but 1/2 needs.
        rate_at_most: A promise that no arm's mean exceeds this, for rewards in [0, 1]. Default None: no promise.
        gap: The smallest lead of the best arm that matters, above 0 and in units of the rewards.
        power: How likely the best arm wins where it leads by `gap`, between 0.5 and 1. Default 0.95.
        control: The arm that is kept unless another one leads, by its number. Default None: any of the best.
        schedule: The resolved constants that decide. The constructor finds them, unless a protocol brings them.

    Examples:
        >>> policy = EarlyCut(arms=2, horizon=10**6, rho=0.1, gap=0.05)
        >>> policy.cap, round(policy.mean_pulls(0.05), -1), round(policy.mean_pulls(0.1), -1)
        (7090, 2220.0, 630.0)
        >>> policy.level, policy.guarantee().holds
        ('winner', True)
    """

    gap: float
    power: float = 0.95
    control: int | None = None
    schedule: EarlySchedule = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "early-cut"
    decision_version: ClassVar[int] = 1
    level: ClassVar[Level] = "winner"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        if self.schedule is not None:
            return
        schedule, enough = early_search.resolve(self._problem, self.power)
        self._set(schedule=schedule)
        if not enough:
            missing = (
                f"to find an arm that leads by {self.gap:g} with probability {self.power:g} at rho = {self.rho:g}: "
                f"it finds it with {self.reached_power:.2g}"
            )
            self._warn_of_short_horizon(self.minimum_horizon, missing)

    def _check(self) -> None:
        """Check the settings, and refuse those that the policy cannot have."""
        if self.rho < _SMALLEST_RHO:
            raise InvalidArgument("rho", self.rho, f"at least {_SMALLEST_RHO:g}")
        if self._paper:
            raise InvalidArgument("constants", self.constants, "'certified': this policy is not in the paper")
        if self._rewards.kind == "subgaussian":
            raise InvalidArgument("rewards", self._rewards, "rewards in [0, 1] or 'gaussian'")
        if self.horizon <= self.arms:
            raise InvalidArgument("horizon", self.horizon, f"at least {self.arms + 1}: one for each arm, one to choose")
        widest, narrowest = self._rewards.widest_gap, 1e-6 * self._rewards.deviation
        allowed = f"a number from {narrowest:g} to {widest:g}"
        gap = real(self.gap, "gap", allowed)
        if not narrowest <= gap <= widest:
            raise InvalidArgument("gap", self.gap, allowed)
        allowed = "a number between 0.5 and 1, both excluded"
        power = real(self.power, "power", allowed)
        if not 0.5 < power < 1.0:
            raise InvalidArgument("power", self.power, allowed)
        control = None if self.control is None else integer(self.control, "control", 0, self.arms - 1)
        self._set(gap=gap, power=power, control=control)

    @property
    def cap(self) -> int:
        """The most pulls of each arm before a winner is named."""
        return self.schedule.pulls

    def mean_pulls(self, gap: float) -> float:
        """Return a bound on the average pulls of each arm where the best arm leads all others by `gap`.

        It assumes normal means; `certify` and `plan` measure the pulls on other problems.
        """
        return early_search.pulls_on_average(self._problem, self.schedule, real(gap, "gap"))

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> Race:
        """Return the state before the first look: all arms active, nothing spent."""
        return elimination.start(self.arms, self.horizon, replicates, self._pulls_in(1))

    def plan(self, state: Race) -> IntArray | None:
        """Return the pulls until the next look: every arm equally often; once there is a winner, the rest for it."""
        return elimination.plan(state, self._pulls_in(state.batch))

    def decide(self, state: Race, totals: FloatArray, coins: Coins) -> Race:
        """Name a winner by all pulls so far, if the look or the cap has one, and return the state after it."""
        sums, batch = state.totals + totals, state.batch
        if batch <= len(self.schedule.looks):
            stays = self._seen(sums, self.schedule.looks[batch - 1], coins)
        else:
            stays = self._choice.chosen(sums, self.schedule.pulls, coins, _COINS)
        return elimination.after(state, sums, stays, self._pulls_in(batch), self._pulls_in(batch + 1))

    def _seen(self, sums: FloatArray, look: EarlyLook, coins: Coins) -> BoolArray:
        """Return a mask (R, K): the winner alone where this look names one, else all arms."""
        xp, choice, pulls = namespace(sums), self._choice, look.pulls
        arms = xp.arange(self.arms)[None, :]
        best = xp.max(sums, axis=-1, keepdims=True)
        leader = arms == xp.argmax(sums, axis=-1, keepdims=True)  # one-hot
        second = xp.max(xp.where(leader, xp.asarray(-xp.inf), sums), axis=-1, keepdims=True)
        lead = best - second  # (R, 1)
        cut = choice.cut(coins, _COINS, pulls, xp)
        ahead = lead > cut + pulls * look.margin
        shy = pulls * look.default_margin
        ranks = choice.ranking(coins, _COINS, xp)
        if choice.knots:
            window = choice.window(coins, _COINS, pulls, xp)
            behind = best - sums  # (R, K)
            default = choice.first(ranks, behind - shy <= window)  # the first that is not certainly outside
            inside = xp.where(leader, shy - lead, behind + shy) <= window
        else:
            default, inside = choice.first(ranks, xp.ones_like(leader)), xp.ones_like(leader)
        leads = xp.any(default & leader, axis=-1, keepdims=True)
        nobody = xp.where(leads, shy - lead, lead + shy) <= cut  # nobody but the default will be ahead
        settled = nobody & xp.any(default & inside, axis=-1, keepdims=True)
        going: BoolArray = xp.where(ahead, leader, xp.where(settled, default, xp.ones_like(leader)))
        return going

    def needed_lead(self, coins: Coins) -> float:
        """Return the shared cut of these coins: by how much a mean must lead for its arm to win by its lead."""
        return float(self._choice.cut(coins, _COINS, 1, np)[0, 0])

    def decided_by(self, totals: FloatArray, pulls: int, coins: Coins) -> Literal["lead", "coin"]:
        """Return how the winner was found, from the totals (1, K) of all pulls after `pulls` of each arm.

        "lead": it led by more than the cut, so that it wins whatever the ranking is if the lead stays what it is.
        "coin": nobody did, and the shared default was named.
        """
        second, first = np.sort(np.asarray(totals[0], dtype=np.float64))[-2:]
        return "lead" if first - second > self._choice.cut(coins, _COINS, pulls, np)[0, 0] else "coin"

    def by_lead(self, state: Race, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates this look, or the cap, names a winner that `decided_by` calls "lead"; (R, 1)."""
        looks, batch = self.schedule.looks, state.batch
        pulls = looks[batch - 1].pulls if batch <= len(looks) else self.schedule.pulls
        named = elimination.dropped(state, self.decide(state, totals, coins))
        return named & self._choice.leads(state.totals + totals, pulls, coins, _COINS)

    @property
    def _choice(self) -> CutChoice:
        return CutChoice(self.arms, self.schedule.width, self.schedule.knots, self.control)

    def _pulls_in(self, batch: int) -> int:
        looks = self.schedule.looks
        if batch > len(looks) + 1:
            return 0
        before = looks[batch - 2].pulls if batch > 1 else 0
        return (looks[batch - 1].pulls if batch <= len(looks) else self.schedule.pulls) - before

    # -- its constants and what they promise ---------------------------------------------------------------

    @property
    def _problem(self) -> CutProblem:
        control = self.control is not None
        return CutProblem(self.arms, self.horizon, self.rho, self._rewards, self.gap, control)

    @property
    def reached_power(self) -> float:
        """How likely the best arm wins where it leads all others by the gap, for normal means."""
        return early_search.right(self._problem, self.schedule)

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions name different winners), term by term; see docs/early-cut.md."""
        if not early_constants.proved(self._problem, self.schedule):
            reason = "a margin is too narrow, or the window begins below the largest cut, so nothing is proved"
            return Guarantee.of([("unproved constants", Decimal(1), reason)], self.rho, level=self.level)
        found = early_constants.terms(self._problem, self.schedule)
        return Guarantee.of(found, self.rho, self._caution, level=self.level)

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which the cap for the wanted power fits; None if out of range."""
        shape = early_search.best_shape(self._problem, self.power)
        needed = self.arms * early_search.fewest_pulls(self._problem, self.power, shape) + 1
        return needed if needed <= LONGEST_HORIZON else None

    def describe(self) -> Description:
        """Return the looks with their pulls and margins, the cut, and what the default is."""
        width, knots = self.schedule.width, self.schedule.knots
        default = "either arm, by a shared coin" if not knots else "the first of a shared ranking within the window"
        if self.control is not None:
            default = f"arm {self.control}, the control" + (", if it is within the window" if knots else "")
        facts = self._facts() | {
            "level": "winner: two executions name the same winner, after pulls that may differ",
            "gap": self.gap,
            "power": f"{self.reached_power:.4g} where the best arm leads by the gap",
            "cap": f"{self.cap} pulls of each arm",
            "pulls on average": f"{self.mean_pulls(self.gap):.0f} of each arm at the most, where the best leads by the "
            f"gap; {self.mean_pulls(2.0 * self.gap):.0f} at twice the gap",
            "cut": f"from 0 to {significant(width)}, by a shared coin",
            "rule": "a look names the leader if it leads by more than the cut and the margin, and the default if the "
            "cut exceeds the lead and the default margin; at the cap without margins",
            "default": default,
        }
        if knots:
            out = knots[-1] + cut_search.stray(self._problem, self.schedule.pulls)
            facts["window"] = (
                f"arms behind the leader by at most a cut from {significant(knots[0])} to {significant(knots[-1])}; at "
                f"the cap an arm {out:.3g} behind is named with probability 0.01 at the most"
            )
        ends = tuple(significant(knot) for knot in (knots[0], knots[-1])) if knots else ("", "")
        looks = (*self.schedule.looks, EarlyLook(self.cap, 0.0, 0.0))
        rows: list[tuple[object, ...]] = [
            (i, self._pulls_in(i), pulls, significant(margin), significant(shy), 0.0, significant(width), *ends)
            for i, (pulls, margin, shy) in enumerate(looks, 1)
        ]
        margins = ("margin", "default margin")
        header = ("batch", "pulls per arm", "so far", *margins, "cut low", "cut high", "window low", "window high")
        return Description(facts, header, tuple(rows))

    # -- what is written down -----------------------------------------------------------------------------

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Refuse other rewards: what the proof needs of them differs for [0, 1] and Gaussian ones."""
        super().check_rewards(rewards, means)
        if rewards.kind != self._rewards.kind:
            raise InvalidArgument("environment", rewards, f"{self._rewards}, which the policy was built for")

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose; the control only where there is one."""
        known: dict[str, Plain] = {
            "level": self.level,
            "gap": str(written(self.gap)),
            "power": str(written(self.power)),
        }
        if self.control is not None:
            known["control"] = self.control
        return {**super().settings(), **known}

    def resolved(self) -> Mapping[str, Plain]:
        """Return the looks with their margins, the cap, its cut, the window's knots, and the margins' tails."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> EarlyCut:
        """Return the policy that decides by a protocol's resolved constants, whatever this machine would find."""
        settings: Any = protocol.settings
        if settings.get("level") != cls.level:
            raise InvalidArgument("level", settings.get("level"), f"'{cls.level}', which {cls.name} is about")
        schedule = EarlySchedule.from_plain(protocol.resolved, protocol.arms, protocol.horizon)
        arguments = cls._arguments(protocol, "gap", "power")
        return cls(**arguments, control=settings.get("control"), schedule=schedule)
