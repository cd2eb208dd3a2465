"""Elimination and commitment on fresh batches, against shared random cuts, with constants that are searched for.

Paper    Beyond Esfandiari et al. 2023. That the price of replicability need not multiply log T, and that a commitment
         on the gap of the two best arms has no K^2: Komiyama, Ito, Yoshida and Koshino 2024, "Replicability is
         asymptotically free in multi-armed bandits". Construction, constants and proof: docs/certified-elimination.md.
Symbols  K: arms, T: horizon, i: batch, N: batches, m: pulls of each active arm, X: means of this batch alone,
         G_j = max X - X_j, S: the gap of the two best, [l, l + w]: where a cut is drawn from, g: Gumbel noise
Departs  - Batch i decides on its own samples: given the past, the two executions' means are independent and alike.
         - Commit to the leader when S exceeds a shared cut; else drop the arms whose G_j exceeds another one.
         - When no test fits any more, a final fresh batch and argmax(X + lambda g) with shared Gumbel noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, counted, namespace, within
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, real, written
from banditto.core.protocol import Plain, Protocol
from banditto.core.rewards import Rewards
from banditto.core.text import significant
from banditto.policies.certified_elimination import ladder, named_gap
from banditto.policies.certified_elimination.ladder import EXPLORATION_UNIT, Cut, Ladder
from banditto.policies.certified_elimination.ladder_search import LadderProblem
from banditto.policies.certified_elimination.named_gap import Aim
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared import confidence
from banditto.policies.shared.replicable import CALIBRATED, UNRESOLVED, Replicable


class LadderState(NamedTuple):
    """The state of many executions; each row tests, makes its final choice, or plays one arm for good.

    `batch` counts from 1.
    """

    batch: int
    active: BoolArray  # (R, K)
    several: IntArray  # (R, 1): how many arms are active
    remaining: IntArray  # (R, 1): pulls left
    each: IntArray  # (R, 1): pulls of each active arm in the batch to come
    testing: BoolArray  # (R, 1)
    choosing: BoolArray  # (R, 1)


@dataclass(frozen=True, kw_only=True)
class CertifiedElimination(Replicable):
    """Replicable at a fraction of the paper's price: the one to use for arms.

    Beyond the paper; its theorem is proved in docs/certified-elimination.md. Batches decide on their own samples alone,
    commit to a leader or drop arms by shared random cuts, and end with a shared choice.

    Args:
        arms: The number of arms, 2 to 1,000.
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified", the default; there are no others, because this policy is not in the paper.
        sigma: The standard deviation of the rewards, 1e-6 to 1e6. Default 1/2, for rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), the default, or "gaussian", which any sigma but 1/2 needs.
        rate_at_most: A promise that no arm's mean exceeds this, for rewards in [0, 1]. Default None: no promise.
        gap: The smallest gap that the constants are tuned for, above 0. By default they are tuned for many gaps. The
            guarantee holds whatever the gaps are.
        schedule: The resolved constants that decide. The constructor finds them, unless a protocol brings them.

    Examples:
        >>> policy = CertifiedElimination(arms=3, horizon=10**6, rho=0.1)
        >>> policy.guarantee().holds
        True
        >>> [term.name for term in policy.guarantee().terms]
        ['good event', 'elimination', 'commit', 'final choice']
    """

    gap: float | None = None
    schedule: Ladder = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "certified-elimination"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        self._check()
        if self.schedule is not None:
            return  # without the search, whose result nobody would use
        self._set(schedule=ladder.resolve(self._problem))
        if self.horizon < (self.minimum_horizon() or 0):
            self._warn_of_short_horizon(self.minimum_horizon)

    def _check(self) -> None:
        """Check the settings, and refuse those that the policy cannot have."""
        super().__post_init__()
        if self.rho <= 2 * self.arms * ladder.CHOICE_PRECISION:
            raise InvalidArgument("rho", self.rho, f"above {2 * self.arms * ladder.CHOICE_PRECISION:.3g}")
        if self._paper:
            raise InvalidArgument("constants", self.constants, "'certified': this policy is not in the paper")
        if self._rewards.kind == "subgaussian":
            raise InvalidArgument("rewards", self._rewards, "rewards in [0, 1] or 'gaussian'")
        if self.gap is not None:
            widest = self._rewards.widest_gap
            gap = real(self.gap, "gap", f"a number above 0 and at most {widest:g}")
            if not 0.0 < gap <= widest:
                raise InvalidArgument("gap", self.gap, f"a number above 0 and at most {widest:g}")
            self._set(gap=gap)

    @classmethod
    def planned(cls, aim: Aim, **arguments: Any) -> CertifiedElimination:
        """Return the policy with constants aimed at one gap, instead of at little regret on many problems."""
        unaimed = cls(**arguments | {"gap": aim.gap, "schedule": Ladder((), 1, 0.5)})  # its arguments are checked
        return replace(unaimed, schedule=named_gap.aimed_ladder(unaimed._problem, aim))

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> LadderState:
        """Return the state before the first batch: all arms active, nothing spent."""
        replicates = integer(replicates, "replicates", 1, 10**9)
        active = np.ones((self.arms, replicates), dtype=np.bool_).T  # arm-major, as the engine draws
        several = np.full((replicates, 1), self.arms, dtype=np.int64)
        return self._opened(1, active, several, np.full((replicates, 1), self.horizon, dtype=np.int64))

    def plan(self, state: LadderState) -> IntArray | None:
        """Return the pulls of the next batch: every active arm equally often; where one is left, all that remains."""
        xp = namespace(state.active)
        if not bool(xp.any(state.remaining > 0)):
            return None
        pulls: IntArray = xp.astype(state.active, xp.int64) * state.each
        return pulls

    def decide(self, state: LadderState, totals: FloatArray, coins: Coins) -> LadderState:
        """Commit or drop by the batch's own totals, in the final batch choose, and return the state after it."""
        xp = namespace(totals)
        values = totals  # (R, K), -inf where dropped
        if not bool(xp.all(state.several == self.arms)):
            values = xp.where(state.active, totals, xp.asarray(-xp.inf))
        stays = self._survivors(state, values, coins)
        if bool(xp.any(state.choosing)):
            behind = values - xp.max(values, axis=-1, keepdims=True)  # exact for near totals, far ones do not matter
            chosen = self._one_hot(behind + self._choice_noise(state, coins, xp), xp)
            stays = xp.where(state.choosing, chosen, stays)
        decided = state.testing | state.choosing
        active = stays if bool(xp.all(decided)) else state.active & (stays | ~decided)
        several = counted(active)
        return self._opened(state.batch + 1, active, several, state.remaining - state.each * state.several)

    def by_lead(self, state: LadderState, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates this batch commits or drops an arm by a cut, before any final choice; (R, 1)."""
        xp = namespace(totals)
        stays = self._survivors(state, xp.where(state.active, totals, xp.asarray(-xp.inf)), coins)
        lost: BoolArray = state.testing & (counted(stays) < state.several)
        return lost

    def _survivors(self, state: LadderState, values: FloatArray, coins: Coins) -> Any:
        """Return which arms stay: the leader alone if it leads by more than one cut, else all within the other."""
        xp = namespace(values)
        pulls, commit, eliminate = self.schedule.batch(state.batch)
        cut = pulls * commit.low + xp.asarray(coins.uniform("commit", state.batch)) * (pulls * commit.width)
        near = within(values, cut)  # the leader, and whom it does not lead by more than the cut
        stays = near | (state.active & (counted(near) > 1))
        if eliminate is not None:
            cut = pulls * eliminate.low + xp.asarray(coins.uniform("threshold", state.batch)) * (
                pulls * eliminate.width
            )
            stays = stays & within(values, cut)
        return stays

    def _choice_noise(self, state: LadderState, coins: Coins, xp: Any) -> Any:
        """Return the shared Gumbel noise of the final choice for every arm (R, K), scaled to totals of m rewards."""
        tosses = [xp.asarray(coins.uniform("choice", state.batch, arm)) for arm in range(self.arms)]
        u = xp.clip(xp.concat(tosses, axis=1), 2.0**-54, 1.0 - 2.0**-53)  # (R, K), shared; finite noise
        gumbel = -xp.log(-xp.log(u))
        scale = self.sigma / self.schedule.choice_rho
        scales = [scale * confidence.choice_scale(max(s, 2), self._rewards) for s in range(self.arms + 1)]
        per_row = xp.take(xp.asarray(scales), xp.reshape(state.several, (-1,)))
        roots = xp.sqrt(xp.astype(state.each, xp.float64))  # (R, 1)
        return xp.reshape(per_row, (-1, 1)) * roots * gumbel

    def _one_hot(self, values: Any, xp: Any) -> Any:
        """Return a mask that is true at the largest entry of each row, the first of ties."""
        return xp.arange(self.arms)[None, :] == xp.argmax(values, axis=-1, keepdims=True)

    def _opened(self, batch: int, active: Any, several: Any, remaining: Any) -> LadderState:
        """Return the state with its next step settled: a test, the final batch, or one arm for good."""
        xp = namespace(active)
        pulls = self.schedule.batch(batch).pulls
        testing = (several > 1) & (pulls * several <= remaining)
        if pulls == 0:
            testing = xp.zeros_like(testing)
        elif bool(xp.all(testing)):
            each = xp.full_like(remaining, pulls)
            return LadderState(batch, active, several, remaining, each, testing, xp.zeros_like(testing))
        final = self.schedule.exploration * remaining // (EXPLORATION_UNIT * several)
        choosing = ~testing & (several > 1) & (final > 0)
        stuck = ~testing & ~choosing & (several > 1)  # not a pull for each: the first arm
        if bool(xp.any(stuck)):
            active = xp.where(stuck, self._one_hot(xp.astype(active, xp.int64), xp), active)
            several = xp.where(stuck, xp.ones_like(several), several)
        each = xp.where(testing, xp.asarray(pulls), xp.where(choosing, final, remaining))
        return LadderState(batch, active, several, remaining, each, testing, choosing)

    # -- its constants and what they promise ---------------------------------------------------------------

    @property
    def _problem(self) -> LadderProblem:
        return LadderProblem(self.arms, self.horizon, self.rho, self._rewards, self.gap)

    @property
    def free_constants(self) -> frozenset[str]:
        """The share of the final batch, which the proof leaves free: the noise of the choice follows its size."""
        return frozenset({"exploration"})

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ), term by term; see docs/certified-elimination.md."""
        if not ladder.proved(self._problem, self.schedule):
            reason = "the proof does not cover these cuts, so nothing is proved"
            return Guarantee.of([("unproved constants", Decimal(1), reason)], self.rho)
        return Guarantee.of(ladder.terms(self._problem, self.schedule), self.rho, self._caution)

    def minimum_horizon(self) -> int | None:
        """Return a horizon from which on the final batch pulls every arm, so that rewards decide something."""
        return -(-EXPLORATION_UNIT * self.arms // self.schedule.exploration)

    def describe(self) -> Description:
        """Return the batches with their pulls and cuts, as differences of means, and what the cuts are made of."""
        facts = self._facts() | {
            "rule": "commit to the leader if it leads by more than a cut, else drop each arm that is behind by more "
            "than another cut; means are those of the batch alone, and the table has the ranges of the cuts",
        }
        batches = self.schedule.batches
        rows = []
        for i, (pulls, commit, eliminate) in enumerate(batches, 1):
            lead = confidence.wrong_lead(self.arms, len(batches), self.horizon, self.sigma, pulls)
            noise = confidence.batch_noise(self.arms, self._rewards, pulls)
            if i == 1:
                for name, cut in (("commit cuts", commit), ("elimination cuts", eliminate)):
                    facts |= {name: "none" if cut is None else _made_of(cut, lead, noise)}
            edges = (*_edges(commit), *_edges(eliminate))
            rows.append((i, pulls, significant(lead), significant(noise), *edges))
        facts |= {
            "final batch": f"{self.schedule.exploration}/{EXPLORATION_UNIT} of what remains, over all survivors",
            "final choice": f"largest mean + {self.sigma / self.schedule.choice_rho:.6g} k/sqrt(m) Gumbel noise, "
            f"k = min(sqrt(log s), {confidence.pair_scale(self._rewards):.4g} s) for s survivors",
        }
        header = ("batch", "pulls per arm", "R", "E", "commit low", "commit high", "low", "high")
        return Description(facts, header, tuple(rows))

    def relaxed(self, nominal: float) -> CertifiedElimination:
        """Return the same policy with the narrower windows of `nominal`, a larger rho, and shorter batches."""
        constants: Any = CALIBRATED
        return replace(self, constants=constants, schedule=ladder.relaxed(self._problem, self.schedule, nominal))

    # -- what is written down -----------------------------------------------------------------------------

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Refuse other rewards: noise bounds and the widest gap are different for [0, 1] and for Gaussian ones."""
        super().check_rewards(rewards, means)
        if rewards.kind != self._rewards.kind:
            raise InvalidArgument("environment", rewards, f"{self._rewards}, which the policy was built for")

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose; the gap as it was written, or nothing."""
        return {**super().settings(), "gap": "" if self.gap is None else str(written(self.gap))}

    def resolved(self) -> Mapping[str, Plain]:
        """Return every batch's pulls and cuts, and the final batch."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> CertifiedElimination:
        """Return the policy that decides by a protocol's resolved constants, whatever this machine would find."""
        arguments = cls._arguments(protocol, "gap")
        arguments["gap"] = arguments["gap"] or None
        return cls(**arguments, schedule=Ladder.from_plain(protocol.resolved, protocol.horizon))


def _edges(cut: Cut | None) -> tuple[object, object]:
    return ("", "") if cut is None else (significant(cut.low), significant(cut.low + cut.width))


def _made_of(cut: Cut, lead: float, noise: float) -> str:
    return f"low = R + {(cut.low - lead) / cut.width:.4g} width, width = {cut.width / noise:.6g} E"
