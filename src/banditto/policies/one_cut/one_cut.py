"""One batch, one shared cut: the smallest replicable experiment for a gap that the experimenter names.

Paper    Beyond Esfandiari et al. 2023; rule, constants and proof: docs/one-cut.md.
Symbols  K: arms, T: horizon, m: pulls of each arm, X: their means, S: the lead of the best mean over the second best,
         c: the cut, uniform on [0, w], G_a: how far arm a is behind the leader, c2: the window's cut, from knots
Departs  - It needs the smallest gap that matters, to be right there, and no promise: it is replicable on all instances.
         - If S > c the leader is played for good, else a default: the first arm of a shared random ranking among those
           with G_a <= c2, so that no bad arm is the default. A control, if there is one, comes first in the ranking.
         - Before that, where they pay, much smaller batches commit to a leader with a much larger lead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, counted, namespace, within
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, real, written
from banditto.core.horizons import LONGEST_HORIZON
from banditto.core.protocol import Plain, Protocol
from banditto.core.rewards import Rewards
from banditto.core.text import significant
from banditto.policies.one_cut import cut_constants, cut_search
from banditto.policies.one_cut.choice import CutChoice
from banditto.policies.one_cut.cut_constants import CutProblem, CutSchedule
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared import elimination
from banditto.policies.shared.elimination import Race
from banditto.policies.shared.replicable import UNRESOLVED, Replicable

_SMALLEST_RHO = 1e-9  # below it finite precision would be felt


@dataclass(frozen=True, kw_only=True)
class OneCut(Replicable):
    """The smallest replicable experiment for a gap that you name: one batch, one shared cut, then one arm for good.

    Beyond the paper; its theorem is proved in docs/one-cut.md. It is replicable whatever the arms are, and it finds the
    best arm with probability `power` where that arm leads by `gap`.

    Args:
        arms: The number of arms, 2 to 1,000.
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified", the default; there are no others, because this policy is not in the paper.
        sigma: The standard deviation of the rewards, 1e-6 to 1e6. Default 1/2, for rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), the default, or "gaussian", which any sigma but 1/2 needs.
        rate_at_most: A promise that no arm's mean exceeds this, for rewards in [0, 1]. Default None: no promise.
        gap: The smallest lead of the best arm that matters, above 0 and in units of the rewards.
        power: How likely the best arm is found where it leads by `gap`, between 0.5 and 1. Default 0.95. None takes the
            batch with the least regret there, which finds it with 0.95 or more.
        control: The arm that is kept unless another one leads, by its number. Default None: any of the best.
        schedule: The resolved constants that decide. The constructor finds them, unless a protocol brings them.

    Examples:
        >>> policy = OneCut(arms=2, horizon=10**6, rho=0.1, gap=0.05)
        >>> policy.pulls_per_arm
        6086
        >>> policy.guarantee().holds
        True
        >>> [term.name for term in policy.guarantee().terms]
        ['cut', 'early commits', 'finite precision']
    """

    gap: float
    power: float | None = 0.95
    control: int | None = None
    schedule: CutSchedule = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "one-cut"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        if self.schedule is not None:
            return
        schedule, enough = cut_search.resolve(self._problem, self.power)
        self._set(schedule=schedule)
        if not enough:
            power = self.power or cut_search.LEAST_POWER
            missing = (
                f"to find an arm that leads by {self.gap:g} with probability {power:g} at rho = {self.rho:g}: "
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
        widest, narrowest = self._rewards.widest_gap, 1e-9 * self._rewards.deviation
        allowed = f"a number from {narrowest:g} to {widest:g}"
        gap = real(self.gap, "gap", allowed)
        if not narrowest <= gap <= widest:
            raise InvalidArgument("gap", self.gap, allowed)
        power = None
        if self.power is not None:
            allowed = "a number between 0.5 and 1, both excluded, or None"
            power = real(self.power, "power", allowed)
            if not 0.5 < power < 1.0:
                raise InvalidArgument("power", self.power, allowed)
        control = None
        if self.control is not None:
            control = integer(self.control, "control", 0, self.arms - 1)
        self._set(gap=gap, power=power, control=control)

    @property
    def pulls_per_arm(self) -> int:
        """Pulls of each arm until the last decision; fewer where an early commit ends the experiment."""
        return self.schedule.pulls_per_arm

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> Race:
        """Return the state before the first batch: all arms active, nothing spent."""
        return elimination.start(self.arms, self.horizon, replicates, self._pulls_in(1))

    def plan(self, state: Race) -> IntArray | None:
        """Return the pulls of the next batch: every arm equally often; once one is chosen, all that remains for it."""
        return elimination.plan(state, self._pulls_in(state.batch))

    def decide(self, state: Race, totals: FloatArray, coins: Coins) -> Race:
        """Commit to a leader by the batch's own totals, choose after the last batch, and return the state after it."""
        early, batch = self.schedule.early, state.batch
        if batch <= len(early):
            pulls, low, width = early[batch - 1]
            xp = namespace(totals)
            cut = pulls * low + xp.asarray(coins.uniform("commit", batch)) * (pulls * width)
            near = within(totals, cut)
            stays = near | (counted(near) > 1)
        else:
            stays = self._choice.chosen(totals, self.schedule.pulls, coins, batch)
        return elimination.after(state, totals, stays, self._pulls_in(batch), self._pulls_in(batch + 1))

    def by_lead(self, state: Race, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates this batch chooses its leader by a lead beyond the cut, not a default; (R, 1)."""
        if state.batch <= len(self.schedule.early):
            return elimination.dropped(state, self.decide(state, totals, coins))
        return state.testing & self._choice.leads(totals, self.schedule.pulls, coins, state.batch)

    @property
    def _choice(self) -> CutChoice:
        return CutChoice(self.arms, self.schedule.width, self.schedule.knots, self.control)

    def _pulls_in(self, batch: int) -> int:
        early = self.schedule.early
        if batch <= len(early):
            return early[batch - 1].pulls
        return self.schedule.pulls if batch == len(early) + 1 else 0

    # -- its constants and what they promise ---------------------------------------------------------------

    @property
    def _problem(self) -> CutProblem:
        control = self.control is not None
        return CutProblem(self.arms, self.horizon, self.rho, self._rewards, self.gap, control)

    @property
    def reached_power(self) -> float:
        """How likely the best arm is found where it leads all others by the gap, for normal means."""
        return cut_search.right(self._problem, self.schedule.pulls, self.schedule.width)

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ), term by term; see docs/one-cut.md."""
        if not cut_constants.proved(self.schedule):
            reason = "the window begins below the largest cut, or an early cut is too thin, so nothing is proved"
            return Guarantee.of([("unproved constants", Decimal(1), reason)], self.rho)
        return Guarantee.of(cut_constants.terms(self._problem, self.schedule), self.rho, self._caution)

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which the batch for the wanted power fits; None if out of range."""
        needed = self.arms * cut_search.fewest_pulls(self._problem, self.power or cut_search.LEAST_POWER)
        return needed if needed <= LONGEST_HORIZON else None

    def describe(self) -> Description:
        """Return the batches with their pulls and cuts, as differences of means, and what the default is."""
        width, knots = self.schedule.width, self.schedule.knots
        default = "either arm, by a shared coin" if not knots else "the first of a shared ranking within the window"
        if self.control is not None:
            default = f"arm {self.control}, the control" + (", if it is within the window" if knots else "")
        price = self._price_of_control()
        facts = self._facts() | {
            "gap": self.gap,
            "power": f"{self.reached_power:.4g} where the best arm leads by the gap",
            "pulls per arm": self.pulls_per_arm,
            "rule": "play the leader if it leads by more than a cut, else the default",
            "default": default,
            **({"price of the control": price} if price else {}),
            **(
                {
                    "window": f"arms behind the leader by at most a cut from {significant(knots[0])} to "
                    f"{significant(knots[-1])}; an arm {self._kept_out:.3g} behind is played after the last batch "
                    "with probability 0.01 at the most"
                }
                if knots
                else {}
            ),
        }
        ends = tuple(significant(knot) for knot in (knots[0], knots[-1])) if knots else ("", "")
        rows: list[tuple[object, ...]] = [
            (i, pulls, significant(low), significant(low + cut), "", "", "commit or go on")
            for i, (pulls, low, cut) in enumerate(self.schedule.early, 1)
        ]
        rows.append((len(rows) + 1, self.schedule.pulls, 0.0, significant(width), *ends, "leader or default"))
        header = ("batch", "pulls per arm", "cut low", "cut high", "window low", "window high", "then")
        return Description(facts, header, tuple(rows))

    @property
    def _kept_out(self) -> float:
        return self.schedule.knots[-1] + cut_search.stray(self._problem, self.schedule.pulls)

    def _price_of_control(self) -> str:
        """Return words for what the control costs: pulls per arm with it and without it; empty without a control."""
        if self.control is None:
            return ""
        power = self.power or cut_search.LEAST_POWER
        own = cut_search.fewest_pulls(self._problem, power)
        free = cut_search.fewest_pulls(self._problem._replace(control=False), power)
        return f"{own} pulls per arm in the last batch instead of {free}, at power {power:g}"

    # -- what is written down -----------------------------------------------------------------------------

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Refuse other rewards: what the proof needs of them differs for [0, 1] and Gaussian ones."""
        super().check_rewards(rewards, means)
        if rewards.kind != self._rewards.kind:
            raise InvalidArgument("environment", rewards, f"{self._rewards}, which the policy was built for")

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose; the control only where there is one."""
        known: dict[str, Plain] = {"gap": str(written(self.gap))}
        if self.power is not None:
            known["power"] = str(written(self.power))
        if self.control is not None:
            known["control"] = self.control
        return {**super().settings(), **known}

    def resolved(self) -> Mapping[str, Plain]:
        """Return the early commits, the last batch, its cut and the window's knots."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> OneCut:
        """Return the policy that decides by a protocol's resolved constants, whatever this machine would find."""
        settings: Any = protocol.settings
        own = {name: settings.get(name) for name in ("power", "control")}
        schedule = CutSchedule.from_plain(protocol.resolved, protocol.arms, protocol.horizon)
        return cls(**cls._arguments(protocol, "gap"), **own, schedule=schedule)
