"""Phased elimination: optimal designs on the survivors, phase by phase.

Paper    Lattimore and Szepesvari 2020, "Bandit Algorithms", chapter 22, Algorithm 12.
Symbols  l: phase, pi: design, g: its largest a' V(pi)^-1 a, eps: accuracy, theta: what is estimated
Departs  - eps = 2^-l in units of `bound`, the largest length of theta: gaps are at most two of them. Other sigma than
           the book's 1 scale the pulls by sigma^2; delta = 1/T.
         - g is that of a design within a factor of 3/2 of the optimum, which costs little and takes little time.
         - A phase that does not fit into what remains is not begun: the best survivor of the last one gets the rest, as
           does the only one. Of ties it is the first, and arm 0 if there was no phase.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, on_host
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, real, scale
from banditto.core.horizons import checked_arms, checked_horizon
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.geometry.actions.checking import actions_from_plain, actions_to_plain, finite_actions
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.design import g_optimal_design
from banditto.numbers.fixed_order import cholesky, product, second_moment, solved_lower
from banditto.policies.shared_linear.contests import field_of
from banditto.policies.shared_linear.linear_policy import check_linear, largest_parameter, usual_centre

_ACCURACY = 0.5
_NUMBERS = ("sigma", "centre", "bound")


class PhasedState(NamedTuple):
    """The state of many executions, one row for each replicate; `phase` counts from 1."""

    phase: int
    active: BoolArray  # (R, K)
    pulls: IntArray  # (R, K): those to come
    remaining: IntArray  # (R, 1): pulls left before those


@dataclass(frozen=True, kw_only=True)
class PhasedElimination(WithProtocol):
    """A baseline that learns all survivors' values up to eps = bound 2^-l in phase l, and drops those 2 eps behind.

    Lattimore, Szepesvári 2020, chapter 22. A reward is `centre + <theta, a>` and sigma-subgaussian noise.

    Args:
        actions: The features: a matrix with a row for each arm, or `FiniteActions`. No row is longer than 1.
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        centre: What is subtracted from every reward. Default 1/2, for rewards in [0, 1].
        bound: The largest possible length of theta, 1e-6 to 1e6. Default 1/2, for rewards in [0, 1].

    Examples:
        >>> policy = PhasedElimination(actions=[[1, 0], [0.6, 0.6], [0, 1]], horizon=10**6)
        >>> policy.plan(policy.init(1)).tolist()
        [[125, 0, 125]]
    """

    actions: FiniteActions
    horizon: int
    sigma: float = 0.5
    centre: float = 0.5
    bound: float = 0.5

    name: ClassVar[str] = "phased-elimination"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", finite_actions(self.actions))
        object.__setattr__(self, "horizon", checked_horizon(self.horizon, checked_arms(len(self.actions))))
        for name in _NUMBERS:
            checked = real(self.centre, name) if name == "centre" else scale(getattr(self, name), name)
            object.__setattr__(self, name, checked)

    @property
    def arms(self) -> int:
        """The number of actions."""
        return len(self.actions)

    def init(self, replicates: int) -> PhasedState:
        """Return the state before the first phase: all arms active, its pulls to come."""
        replicates = integer(replicates, "replicates", 1, 10**9)
        active = np.ones((self.arms, replicates), dtype=np.bool_).T
        remaining = np.full((replicates, 1), self.horizon, dtype=np.int64)
        pulls = np.zeros((self.arms, replicates), dtype=np.int64).T
        pulls[:] = self._following(1, field_of(self.actions).whole, remaining[:1, 0], np.zeros(1, dtype=np.int64))
        return PhasedState(1, active, pulls, remaining)

    def plan(self, state: PhasedState) -> IntArray | None:
        """Return the pulls of the current phase, or None when every replicate is done."""
        pulls: IntArray = on_host(state.pulls)
        return pulls if pulls.any() else None

    def decide(self, state: PhasedState, totals: FloatArray, coins: Coins) -> PhasedState:
        """Drop the arms that are behind in this phase alone, without coins, and return the state of the next phase."""
        active, pulls, remaining, totals = (on_host(part) for part in (*state[1:], totals))
        left = remaining - pulls.sum(axis=1, keepdims=True)  # (R, 1)
        survivors = np.array(active, order="K")
        following = np.zeros((self.arms, active.shape[0]), dtype=np.int64).T
        gains = totals - self.centre * pulls
        going = np.flatnonzero(left[:, 0] > 0)
        best = np.zeros(active.shape[0], dtype=np.int64)
        for mask, rows in field_of(self.actions).groups(active, going):
            survivors[rows], best[rows] = self._test(state.phase, mask, gains[rows])
        for mask, rows in field_of(self.actions).groups(survivors, going):
            following[rows] = self._following(state.phase + 1, mask, left[rows, 0], best[rows])
        return PhasedState(state.phase + 1, survivors, following, left)

    def _test(self, phase: int, mask: bytes, gains: FloatArray) -> tuple[BoolArray, IntArray]:
        """Return which arms (rows, K) survive a phase that began with those of `mask`, and the best of them (rows,)."""
        made = _phase(self, phase, mask)
        assert made is not None, "only the last pulls of a horizon are no phase"
        estimates = product(gains[:, made.core], made.solver)  # (rows, feature)
        active = field_of(self.actions).mask(mask)
        places = np.flatnonzero(active)
        values = product(estimates, self.actions.canonical.points[np.ix_(made.features, places)])
        survivors = np.zeros((gains.shape[0], self.arms), dtype=np.bool_)
        survivors[:, places] = np.max(values, axis=1, keepdims=True) - values <= 2.0 * self._accuracy(phase)
        return survivors, places[np.argmax(values, axis=1)]

    def _following(self, phase: int, mask: bytes, left: IntArray, best: IntArray) -> IntArray:
        """Return the pulls (rows, K) of the next phase, or all that is left for the best arm where it does not fit."""
        pulls = np.zeros((left.size, self.arms), dtype=np.int64)
        made = _phase(self, phase, mask)
        fits = np.zeros(left.size, dtype=np.bool_) if made is None else made.pulls.sum() <= left
        if made is not None:
            pulls[np.ix_(fits, made.core)] = made.pulls
        pulls[np.flatnonzero(~fits), best[~fits]] = left[~fits]
        return pulls

    def _accuracy(self, phase: int) -> float:
        return math.ldexp(self.bound, -phase)

    @classmethod
    def made_for_linear(cls, actions: FiniteActions, rewards: Rewards, horizon: int) -> Self:
        """Return the policy made for these rewards, with their sigma.

        Means of rewards in [0, 1] are `1/2 + <theta, a>`, with theta of length 1/2 at most.
        """
        centre = usual_centre(rewards)
        bound = largest_parameter(rewards, centre)
        return cls(actions=actions, horizon=horizon, sigma=rewards.sigma, centre=centre, bound=bound)

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> Self:
        """Return the policy that a protocol describes, with its settings."""
        numbers = {name: from_fraction(protocol.settings.get(name), name) for name in _NUMBERS}
        actions = finite_actions(actions_from_plain(protocol.settings.get("actions")))
        return cls(actions=actions, horizon=protocol.horizon, **numbers)

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Accept any rewards."""

    def check_actions(self, actions: Any, centre: float) -> None:
        """Refuse an environment with other actions, or with rewards that are linear around another centre."""
        check_linear(self.actions, self.centre, actions, centre)

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose, including the actions."""
        numbers = {name: fraction(getattr(self, name)) for name in _NUMBERS}
        return {"actions": actions_to_plain(self.actions)} | numbers

    def resolved(self) -> Mapping[str, Plain]:
        """Return an empty mapping: the settings say all."""
        return {}


class Core(NamedTuple):
    """A design on some arms: the arms of its core set, their shares of the pulls, g, and the features that it uses."""

    core: IntArray
    shares: tuple[float, ...]
    g: float
    features: IntArray


class Phase(NamedTuple):
    """One phase: pulls of the core arms; their centred totals times `solver` (arm, feature) estimate theta."""

    core: IntArray
    pulls: IntArray
    solver: FloatArray
    features: IntArray


@lru_cache(maxsize=4096)
def _design(actions: FiniteActions, mask: bytes) -> Core | None:
    """Return the design on the arms of `mask`; None where nothing can be learnt from them."""
    kept = np.flatnonzero(field_of(actions).mask(mask)).tolist()
    try:
        design = g_optimal_design(actions.kept(kept), accuracy=_ACCURACY)
    except InvalidArgument:  # nothing but zeros, or too close to it for double precision (`IllConditioned`)
        return None
    assert design.arms is not None
    places = {arm: place for place, arm in enumerate(actions.arms)}
    core = np.array([places[arm] for arm in design.arms])
    return Core(core, design.weights, design.g, np.array(design.features))


@lru_cache(maxsize=4096)
def _phase(policy: PhasedElimination, phase: int, mask: bytes) -> Phase | None:
    """Return a phase for the arms of `mask`; None if one arm is left, it exceeds the horizon, or there is no design."""
    several = field_of(policy.actions).size(mask) > 1
    design = _design(policy.actions, mask) if several else None
    if design is None:
        return None
    confidence = math.log(policy.arms * phase * (phase + 1) * policy.horizon)
    pulls = 2.0 * (policy.sigma / policy._accuracy(phase)) ** 2 * design.g * confidence
    each = [math.ceil(pulls * share) for share in design.shares]
    if sum(each) > policy.horizon:
        return None
    # in canonical units, in which features are of one size
    points = policy.actions.canonical.points[np.ix_(design.features, design.core)]
    lower = cholesky(second_moment(points, np.array(each, dtype=np.float64)))
    if lower is None:
        return None
    solver = np.array([solved_lower(lower, point) for point in points.T])
    return Phase(design.core, np.array(each, dtype=np.int64), solver, design.features)
