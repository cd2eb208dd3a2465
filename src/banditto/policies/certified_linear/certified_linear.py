"""The cheaper of two methods for a linear problem: cuts on differences of arms, or one lattice for the whole estimate.

Paper    Beyond Esfandiari et al. 2023: CertifiedElimination with designs, and Algorithm 4 with a lattice.
Symbols  K: arms, d: dimension, m: precision of a batch, g, g_xy: see `shared_linear.contests`, X_a: <a, theta_hat>
Departs  - thresholds: batch i pulls ceil(m_i max(g_xy, g)/2) times by design, so that every difference X_a - X_b has
           variance proxy 2 sigma^2/m_i; from there on it is CertifiedElimination, word for word, and ends with its
           final batch and shared Gumbel noise. Proof: docs/certified-linear.md.
         - lattice: LeastSquaresRounding, with the accuracies of least predicted regret. Its cost does not depend on K;
           that of thresholds grows with K once arms have to be dropped one by one.
         - The choice is made before the first pull, by predicted regret over parameters of all directions, and printed.
           Infinite action sets have only the lattice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar, Literal, NamedTuple, cast

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.protocol import Plain, Protocol
from banditto.core.text import significant
from banditto.geometry.actions.finite import FiniteActions
from banditto.policies.certified_elimination import ladder
from banditto.policies.certified_elimination.ladder import EXPLORATION_UNIT, Ladder
from banditto.policies.certified_linear.predicted_costs import best_schedule, gaps_of, lattice_regret
from banditto.policies.certified_linear.value_cuts import LinearCuts
from banditto.policies.least_squares_rounding.accuracies import RoundingSchedule
from banditto.policies.least_squares_rounding.least_squares_rounding import LeastSquaresRounding
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared import confidence
from banditto.policies.shared.replicable import CALIBRATED, UNRESOLVED
from banditto.policies.shared_linear.contests import contest, field_of
from banditto.policies.shared_linear.linear_policy import LinearPolicy, largest_parameter

Method = Literal["thresholds", "lattice"]


class Costs(NamedTuple):
    """Predicted regret of both methods; None for a method that is not possible here."""

    thresholds: float | None
    lattice: float


@dataclass(frozen=True, kw_only=True)
class CertifiedLinear(LinearPolicy):
    """Replicable linear bandits at the lower of two prices: the one to use for actions with features.

    Beyond the paper; docs/certified-linear.md has the theorem for its thresholds, and Theorem 10's counterpart in
    docs/least-squares-rounding.md covers its lattice.

    Args:
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified", the default; there are no others, because this policy is not in the paper.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        actions: A matrix with a row of features for each arm, `FiniteActions`, or an action set such as `Ball`.
        centre: What is subtracted from every reward, -1 to 1. Default 1/2 for rewards in [0, 1], else 0.
        method: "thresholds" or "lattice": the method to play. By default the one with the smaller predicted regret.
        costs: The predicted regret of both methods. The constructor fills it in, unless a protocol brings it.
        inner: The method with the constants that decide. The constructor makes it, unless a protocol brings it.

    Examples:
        >>> policy = CertifiedLinear(actions=[[1, 0], [0.6, 0.6], [0, 1]], horizon=10**7, rho=0.1)
        >>> policy.method, policy.guarantee().holds
        ('lattice', True)
    """

    method: Method | None = None
    costs: Costs = field(default=UNRESOLVED, repr=False, compare=False)
    inner: LinearCuts | LeastSquaresRounding = field(default=UNRESOLVED, repr=False)

    name: ClassVar[str] = "certified-linear"
    decision_version: ClassVar[int] = 1
    needs_finite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check()
        if self.inner is not None:
            return  # without the searches, whose results nobody would use
        actions = self.actions
        told_apart = isinstance(actions, FiniteActions) and contest(actions, field_of(actions).whole) is not None
        if self.method == "thresholds" and not told_apart:
            raise InvalidArgument("actions", "actions that cannot be told apart", "actions with different features")
        cuts = LinearCuts(**self._common()) if told_apart else None
        gaps = gaps_of(actions, largest_parameter(self._rewards, self._centre))
        lattice = LeastSquaresRounding.planned(self._common(), lambda problem: best_schedule(problem, gaps))
        price = lattice_regret(lattice.schedule, lattice.problem, gaps)
        costs = Costs(None if cuts is None else cuts.regret(), price)
        idle = not lattice.describe().rows  # no estimate fits, so that nothing would be learnt
        cut = costs.thresholds is not None and (idle or costs.thresholds <= costs.lattice)
        cheaper: Method = "thresholds" if cut else "lattice"
        method = self.method or cheaper
        self._set(method=method, costs=costs, inner=cuts if method == "thresholds" else lattice)
        if self.horizon < (self.minimum_horizon() or self.horizon + 1):
            self._warn_of_short_horizon(self.minimum_horizon)

    def _check(self) -> None:
        """Check the settings, and refuse those that this policy does not have."""
        super().__post_init__()
        if self._paper:
            raise InvalidArgument("constants", self.constants, "'certified': this policy is not in the paper")
        if self.method not in (None, "thresholds", "lattice"):
            raise InvalidArgument("method", self.method, "'thresholds' or 'lattice'")
        if self.method == "thresholds" and not isinstance(self.actions, FiniteActions):
            raise InvalidArgument("method", self.method, "'lattice' for infinite action sets")

    def _common(self) -> dict[str, Any]:
        """Return the arguments that both methods take."""
        return {
            "actions": self.actions,
            "horizon": self.horizon,
            "rho": self.rho,
            "sigma": self.sigma,
            "rewards": self.rewards,
            "centre": self.centre,
        }

    # -- all of the algorithm is that of the method -------------------------------------------------------------

    def init(self, replicates: int) -> Any:
        """Return the state of the chosen method before its first batch."""
        return self.inner.init(replicates)

    def plan(self, state: Any) -> IntArray | None:
        """Return the pulls of the chosen method's next batch; None when all is spent."""
        return self.inner.plan(state)

    def places(self, state: Any) -> FloatArray:
        """Return the actions of the columns of `plan`, for an infinite set, on which the lattice is always chosen."""
        assert isinstance(self.inner, LeastSquaresRounding)
        return self.inner.places(state)

    def decide(self, state: Any, totals: FloatArray, coins: Coins) -> Any:
        """Decide as the chosen method does, and return the state after the batch."""
        return self.inner.decide(state, totals, coins)

    def by_lead(self, state: Any, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates the chosen method drops an arm in a test; shape (R, 1)."""
        return self.inner.by_lead(state, totals, coins)

    @property
    def free_constants(self) -> frozenset[str]:
        """The constants of the chosen method that the proof leaves free."""
        return self.inner.free_constants

    def guarantee(self) -> Guarantee:
        """Return the bound on P(two executions differ), term by term; see docs/certified-linear.md."""
        if isinstance(self.inner, LeastSquaresRounding):
            return self.inner.guarantee()
        problem, schedule = self.inner.problem, self.inner.schedule
        if not ladder.proved(problem, schedule):
            reason = "the proof does not cover these cuts, so nothing is proved"
            return Guarantee.of([("unproved constants", Decimal(1), reason)], self.rho)
        return Guarantee.of(ladder.terms(problem, schedule), self.rho, self._caution)

    def minimum_horizon(self) -> int | None:
        """Return a horizon from which on a first estimate, or a final batch, pulls every arm that it needs."""
        if isinstance(self.inner, LeastSquaresRounding):
            return self.inner.minimum_horizon()
        found = contest(self.actions, field_of(self.actions).whole)
        assert found is not None
        return max(self.arms, -(-EXPLORATION_UNIT * 2 * found.design.support // self.inner.schedule.exploration))

    def describe(self) -> Description:
        """Return which method was chosen at which cost, and its batches."""
        prices = {
            "thresholds": "none" if self.costs.thresholds is None else f"{self.costs.thresholds:.4g}",
            "lattice": f"{self.costs.lattice:.4g}",
        }
        chosen = {f"predicted regret, {name}": price for name, price in prices.items()} | {"plan": self.method}
        if isinstance(self.inner, LeastSquaresRounding):
            made = self.inner.describe()
            facts = {key: value for key, value in made.facts.items() if key != "policy"}
            return Description({"policy": self._facts()["policy"], **chosen, **facts}, made.header, made.rows)
        found = contest(self.actions, field_of(self.actions).whole)
        assert found is not None
        rows = []
        for number, (m, commit, eliminate) in enumerate(self.inner.schedule.batches, 1):
            allocation = found.design.plan(math.ceil(m * found.units))
            if allocation.total >= self.horizon:
                break
            edges: list[object] = [significant(value) for value in (commit.low, commit.low + commit.width)]
            edges += (
                ["", ""]
                if eliminate is None
                else [significant(value) for value in (eliminate.low, eliminate.low + eliminate.width)]
            )
            lead = confidence.wrong_lead(self.arms, len(self.inner.schedule.batches), self.horizon, self.sigma, m)
            rows.append((number, allocation.total, max(allocation.pulls), significant(lead), *edges))
        facts = (
            self._facts()
            | chosen
            | {
                "rule": "commit to the leader if it leads by more than a cut, else drop each arm that is behind by "
                "more than another cut; the table has the ranges of the cuts",
                "final batch": f"{self.inner.schedule.exploration}/{EXPLORATION_UNIT} of what remains, by design",
            }
        )
        header = ("batch", "pulls if all are active", "pulls per arm", "R", "commit low", "commit high", "low", "high")
        return Description(facts, header, tuple(rows))

    def relaxed(self, nominal: float) -> CertifiedLinear:
        """Return the same policy with the constants that its method has at `nominal`, a larger rho."""
        other, constants = super().relaxed(nominal), cast(Any, CALIBRATED)
        return replace(other, inner=replace(other.inner, rho=self.rho, constants=constants))

    # -- what is written down -----------------------------------------------------------------------------

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose, and the method even where it was chosen for the user."""
        return {**super().settings(), "method": str(self.method)}

    def resolved(self) -> Mapping[str, Plain]:
        """Return the method's constants, and what both methods were predicted to cost."""
        prices = ["" if cost is None else f"{cost:.4g}" for cost in self.costs]
        return {**self.inner.resolved(), "costs": tuple(prices)}

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> CertifiedLinear:
        """Return the policy that decides by a protocol's resolved constants."""
        arguments = cls._arguments(protocol, "method")
        constants = {key: value for key, value in protocol.resolved.items() if key != "costs"}
        prices = protocol.resolved.get("costs")
        if not isinstance(prices, tuple) or len(prices) != 2:
            raise InvalidArgument("costs", prices, "two prices")
        costs = Costs(*(_price(price) for price in prices))
        known = {key: value for key, value in arguments.items() if key != "method"}
        inner: LinearCuts | LeastSquaresRounding
        if arguments["method"] == "thresholds":
            # a batch of precision m may take as few as m/2 pulls
            inner = LinearCuts(**known, schedule=Ladder.from_plain(constants, 2 * protocol.horizon))
        else:
            inner = LeastSquaresRounding(**known, schedule=RoundingSchedule.from_plain(constants))
        return cls(**arguments, inner=inner, costs=costs)


def _price(text: Plain) -> Any:
    try:
        return float(str(text)) if text != "" else None
    except ValueError:
        raise InvalidArgument("costs", text, "a number, or nothing") from None
