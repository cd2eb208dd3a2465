"""Elimination on a replicable least-squares estimate, for finitely or infinitely many actions.

Paper    Esfandiari et al. 2023, Algorithm 4, Theorem 10, Lemmas 7 to 9.
Symbols  A: active actions, C: core set, pi: design, g: max a' V(pi)^-1 a, N_i: pulls, eps_i: accuracy, theta~: the
         rounded estimate, rho_i: the batch's share of rho, nu: see `shared_linear.estimate_rounding`
Departs  - The printed logarithms of logarithms are negative or undefined up to d = 15, M_i is a count per arm, and rho'
           is rho/(dB), rho/B or rho/|C| in three places. N_i is worked out from what the proof needs, with the g and
           the core set that the batch's design has; docs/least-squares-rounding.md.
         - No net: linear and norm maxima are at extreme points, and a convex active set is the set cut by half-spaces.
         - theta~ is computed with the weights that were pulled, so that |<a, theta~ - theta>| <= tau sqrt(g).
         - certified: accuracies and shares that minimise the bound on regret; one lattice for theta~, or with
           rounding="grid" a grid for each arm. paper: eps_i as printed, grids, equal shares.
         - Batches after which nothing could be dropped are left out; where double precision cannot tell the active
           actions apart, testing ends. In the end argmax <a, theta~> gets all that remains: theta~ is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, on_host
from banditto.core.errors import InvalidArgument
from banditto.core.exact import first_true, integer, precise
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON
from banditto.core.protocol import Plain, Protocol
from banditto.core.text import significant
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.active_sets import ConvexField, FiniteField, field_for
from banditto.policies.least_squares_rounding.accuracies import RoundingProblem, RoundingSchedule
from banditto.policies.least_squares_rounding.openings import Opening, Openings
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared.replicable import UNRESOLVED
from banditto.policies.shared_linear.estimate_rounding import PRECISION_SHARE
from banditto.policies.shared_linear.linear_policy import LinearPolicy


class RoundingState(NamedTuple):
    """The state of many executions; each row tests, or plays one action for good. `batch` counts from 1."""

    batch: int
    active: Any  # masks (R, K), or cuts (R, cuts, d + 1)
    theta: FloatArray  # (R, d): the last rounded estimate
    remaining: IntArray  # (R, 1): pulls left
    testing: BoolArray  # (R, 1)
    pulls: IntArray  # (R, K), or (R, S): the batch to come
    places: FloatArray  # (R, S, d): the actions of an infinite set that it pulls; (0,) for finitely many


@dataclass(frozen=True, kw_only=True)
class LeastSquaresRounding(LinearPolicy):
    """Algorithm 4 of *Replicable Bandits*, Theorem 10: any action set, by estimates that are rounded alike.

    Estimate, round, keep what is within 2 eps of the best, and again. The bound is proved in
    docs/least-squares-rounding.md.

    Args:
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified" (default), for which the bound is proved, or "paper", as printed.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        actions: A matrix with a row of features for each arm, `FiniteActions`, or an action set such as `Ball`.
        centre: What is subtracted from every reward, -1 to 1. Default 1/2 for rewards in [0, 1], else 0.
        rounding: "lattice" (default), one lattice for the estimate, or "grid", one for each arm, as in the paper.
        schedule: The resolved constants that decide. The constructor finds them, unless a protocol brings them.

    Examples:
        >>> from banditto import Ball
        >>> policy = LeastSquaresRounding(actions=Ball(dimension=2), horizon=10**7, rho=0.1)
        >>> policy.guarantee().holds, len(policy.schedule.batches)
        (True, 2)
    """

    rounding: Literal["lattice", "grid"] | None = None
    schedule: RoundingSchedule = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "least-squares-rounding"
    decision_version: ClassVar[int] = 1
    needs_finite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check()
        if self.schedule is not None:
            return  # without the search, whose result nobody would use
        self._set(schedule=self.problem.paper() if self._paper else self.problem.resolve())
        if self._first() is None:
            self._warn_of_short_horizon(self.minimum_horizon)

    def _check(self) -> None:
        """Check the settings, and refuse those that the policy cannot have."""
        super().__post_init__()
        rounding = self.rounding or ("grid" if self._paper else "lattice")
        if rounding not in ("lattice", "grid"):
            raise InvalidArgument("rounding", self.rounding, "'lattice' or 'grid'")
        if self._paper and rounding != "grid":
            raise InvalidArgument("rounding", rounding, "'grid' with the paper's constants")
        self._set(rounding=rounding)

    @property
    def problem(self) -> RoundingProblem:
        """The problem that its constants are chosen for: the size of the core set, horizon, rho and rewards."""
        actions = self.actions
        count = len(actions) if isinstance(actions, FiniteActions) else None
        field = field_for(actions)
        design = field.design(field.whole)
        size = (actions.dimension, 1.1 * actions.dimension, 1)  # of a set that double precision cannot cope with
        if design is not None:
            size = (design.dimension, design.g, design.support)
        grid = self.rounding == "grid"
        return RoundingProblem(*size, count, self.horizon, self.rho, self._rewards, self._widest, grid)

    @property
    def _openings(self) -> Openings:
        kind: Literal["lattice", "grid", "paper"] = "paper" if self._paper else self.rounding or "lattice"
        return Openings(self.actions, self.schedule, self._rewards, self._centre, kind)

    @property
    def _field(self) -> FiniteField | ConvexField:
        return self._openings.field

    # -- the algorithm ------------------------------------------------------------------------------------

    def init(self, replicates: int) -> RoundingState:
        """Return the state before the first batch: all actions active, nothing spent."""
        replicates = integer(replicates, "replicates", 1, 10**9)
        theta = np.zeros((replicates, self.actions.dimension))
        remaining = np.full((replicates, 1), self.horizon, dtype=np.int64)
        testing = np.ones((replicates, 1), dtype=np.bool_)
        return self._opened(1, self._field.start(replicates), theta, remaining, testing)

    def plan(self, state: RoundingState) -> IntArray | None:
        """Return the next pulls: the active actions' core set, as its design has it; in the end one action."""
        pulls: IntArray = on_host(state.pulls)
        return pulls if pulls.any() else None

    def places(self, state: RoundingState) -> FloatArray:
        """Return the actions of the columns of `plan`, for an infinite set; shape (R, S, d)."""
        places: FloatArray = on_host(state.places)
        return places

    def decide(self, state: RoundingState, totals: FloatArray, coins: Coins) -> RoundingState:
        """Round every estimate, keep what is within 2 eps of its best, and return the state after that."""
        totals = on_host(totals)
        state = RoundingState(state.batch, *(on_host(part) for part in state[1:]))
        spent = state.pulls.sum(axis=1, keepdims=True)
        rows = np.flatnonzero(state.testing[:, 0] & (state.remaining > spent)[:, 0])
        theta, active = state.theta.copy(), state.active
        for group in self._field.groups(state.active, rows):
            opening = self._openings.at(group.key, state.batch)
            assert opening is not None
            uniforms = np.concatenate(
                [coins.uniform(opening.rounding.purpose, state.batch, k) for k in range(opening.rounding.coins)], axis=1
            )
            found = opening.rounding.rounded(
                opening.regression,
                np.ascontiguousarray(totals[group.rows][:, opening.columns]),
                self._centre,
                opening.leverage,
                uniforms[group.rows],
            )
            theta[group.rows] = 0.0  # in features that the design does without
            theta[np.ix_(group.rows, np.array(opening.design.features))] = found.theta
        if rows.size:
            theta, active = self._kept(state, theta, rows)
        return self._opened(state.batch + 1, active, theta, state.remaining - spent, state.testing)

    def by_lead(self, state: RoundingState, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates this batch drops an arm, of finitely many; shape (R, 1)."""
        kept = self.decide(state, totals, coins).active.sum(axis=1, keepdims=True)
        lost: BoolArray = state.testing & (kept < state.active.sum(axis=1, keepdims=True))
        return lost

    def _kept(self, state: RoundingState, theta: FloatArray, rows: IntArray) -> tuple[FloatArray, Any]:
        """Return the estimates as used, and the active sets: in `rows`, what is over 2 eps behind is dropped."""
        batch = self.schedule.batch(state.batch)
        assert batch is not None
        slack, space = 2.0 * batch.epsilon, self._field
        if isinstance(space, FiniteField):
            values = np.where(state.active, space.whole_values(theta), -np.inf)
            stays = values >= np.max(values, axis=1, keepdims=True) - slack
            tested = np.zeros((len(theta), 1), dtype=np.bool_)
            tested[rows] = True
            return theta, state.active & (stays | ~tested)
        theta = space.snapped(theta)
        cuts = np.zeros((len(theta), 1, theta.shape[1] + 1))
        for group in space.groups(state.active, rows):
            for row in group.rows.tolist():
                cuts[row, 0] = space.cut(group.key, theta[row], slack)
        return theta, np.concatenate([state.active, cuts], axis=1)

    def _opened(
        self, batch: int, active: Any, theta: FloatArray, remaining: IntArray, testing: BoolArray
    ) -> RoundingState:
        """Return the state with its next step settled: a test where one fits, else one action for good."""
        space, count = self._field, len(theta)
        testing = testing & (remaining > 0)
        chosen: dict[int, Opening] = {}
        for group in space.groups(active, np.flatnonzero(testing[:, 0])):
            opening = self._openings.at(group.key, batch)
            for row in group.rows.tolist():
                if opening is not None and opening.regression.total < remaining[row, 0]:
                    chosen[row] = opening
        testing = np.isin(np.arange(count), list(chosen))[:, np.newaxis]
        alone = np.flatnonzero(~testing[:, 0] & (remaining[:, 0] > 0))
        width = self.arms or max([1, *(len(opening.regression.pulls) for opening in chosen.values())])
        pulls = np.zeros((count, width), dtype=np.int64)
        places = np.zeros((count, width, theta.shape[1]) if self.arms == 0 else (0,))
        for row, opening in chosen.items():
            pulls[row, opening.columns] = opening.regression.pulls
            if self.arms == 0:
                places[row, : opening.design.support] = opening.design.actions
        if isinstance(space, FiniteField):
            values = np.where(active[alone], space.whole_values(theta[alone]), -np.inf)
            pulls[alone, np.argmax(values, axis=1)] = remaining[alone, 0]
        else:
            pulls[alone, 0] = remaining[alone, 0]
            for group in space.groups(active, alone):
                for row in group.rows.tolist():
                    places[row, 0] = space.best(group.key, theta[row])
        return RoundingState(batch, active, theta, remaining, testing, pulls, places)

    # -- its constants and what they promise ---------------------------------------------------------------

    def _first(self) -> Opening | None:
        """Return the first batch; None if it does not fit into the horizon."""
        opening = self._openings.first()
        return opening if opening is not None and opening.regression.total < self.horizon else None

    @property
    def free_constants(self) -> frozenset[str]:
        """The accuracies, which the proof leaves free: estimates are shared, and so is whatever is dropped by them."""
        return frozenset({"epsilon", "tail"})

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ), term by term; see docs/least-squares-rounding.md."""
        number = len(self.schedule.batches)
        with precise():
            shares = sum((Decimal(batch.rho) for batch in self.schedule.batches), Decimal(0))
            if self._paper:
                statement = f"{number} batches, rho/B each: one of |C| means off by tau', or a boundary between two"
                return Guarantee.of([("rounded means", shares, statement)], self.rho)
            kind = "cell of the lattice" if self.rounding == "lattice" else "cell of a grid"
            terms = [
                ("different cells", shares * (1 - PRECISION_SHARE), f"sum of {number} rho_i: another {kind}"),
                ("finite precision", shares * PRECISION_SHARE, "checked before every batch, which else is left out"),
            ]
            return Guarantee.of(terms, self.rho, self._caution)

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which an estimate fits, so that rewards decide; None if none does."""

        def fits(horizon: int) -> bool:
            problem = self.problem._replace(horizon=horizon)
            schedule = problem.paper() if self._paper else problem.coarsest()
            opening = self._openings._replace(schedule=schedule).first()
            return opening is not None and opening.regression.total < horizon

        if not fits(LONGEST_HORIZON):
            return None
        return first_true(fits, max(SHORTEST_HORIZON, self.arms), LONGEST_HORIZON)

    def describe(self) -> Description:
        """Return the batches with their accuracies, shares of rho and pulls; later pulls depend on what is left."""
        first = self._first()
        facts = self._facts() | {
            "rounding": str(self.rounding),
            "rule": "drop an action whose rounded value is more than 2 eps below the best",
            "end": "the best action by the last rounded estimate gets all that remains",
            "core set": "none: no batch fits" if first is None else f"{first.design.support} actions at first",
        }
        rows = []
        for number, batch in enumerate(self.schedule.batches, 1):
            opening = self._openings.at(self._field.whole, number)
            if opening is None or opening.regression.total >= self.horizon:
                break
            pulls = opening.regression.pulls
            rows.append((number, sum(pulls), max(pulls), significant(batch.epsilon), significant(batch.rho)))
        header = ("batch", "pulls if all are active", "pulls per arm", "eps", "rho")
        return Description(facts, header, tuple(rows))

    # -- what is written down -----------------------------------------------------------------------------

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose, and the rounding."""
        return {**super().settings(), "rounding": str(self.rounding)}

    def resolved(self) -> Mapping[str, Plain]:
        """Return every batch's accuracy and share of rho."""
        return self.schedule.to_plain()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> LeastSquaresRounding:
        """Return the policy that decides by a protocol's resolved constants."""
        return cls(**cls._arguments(protocol, "rounding"), schedule=RoundingSchedule.from_plain(protocol.resolved))

    @classmethod
    def planned(
        cls, arguments: Mapping[str, Any], choose: Callable[[RoundingProblem], RoundingSchedule]
    ) -> LeastSquaresRounding:
        """Return the policy with another schedule than that of the least bound on regret.

        It does not warn of a short horizon.
        """
        unplanned = cls(**arguments, schedule=RoundingSchedule((), 0.0))  # its arguments are checked
        return replace(unplanned, schedule=choose(unplanned.problem))
