"""Algorithm 3 on a net of an infinite action set of one or two dimensions: the naive way, to be compared with.

Paper    Esfandiari et al. 2023, Corollary 12 (Appendix D).
Symbols  d: dimension, T: horizon, K: actions of the net
Departs  - The net's radius is T^(-1/(4d+2)) as printed; the paper bounds its size by (3T)^(d/(4d+2)), the covering
           argument by 3^d T^(d/(4d+2)). Ours is a grid of strips, as large as it needs to be.
         - The rest is LinearThreshold with either constants. It loses to LeastSquaresRounding because its blow-up grows
           with K^2, and because the best action of the net is not the best of the set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.horizons import MOST_ARMS
from banditto.core.protocol import Plain, Protocol
from banditto.geometry.actions.checking import checked_actions
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.actions.nets import net
from banditto.policies.linear_threshold.linear_constants import LinearSchedule
from banditto.policies.linear_threshold.linear_threshold import LinearThreshold
from banditto.policies.policy import Description, Guarantee
from banditto.policies.shared.replicable import UNRESOLVED
from banditto.policies.shared_linear.linear_policy import LinearPolicy


@dataclass(frozen=True, kw_only=True)
class NetThreshold(LinearPolicy):
    """Corollary 12 of *Replicable Bandits*: `LinearThreshold` on a net of an action set of at most two dimensions.

    It is there to be compared with; docs/net-threshold.md says why it loses. `inner` is the policy on the net, `points`
    (action, feature) are the net.

    Args:
        horizon: The number of pulls in one execution, 10 to 10^15, and at least one for each arm.
        rho: The largest allowed probability that two executions differ, between 0 and 1.
        constants: "certified" (default), for which the bound is proved, or "paper", as printed.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" (in [0, 1]), "gaussian" or "subgaussian". Default: the first if sigma is 1/2, else the last.
        actions: An action set with one or two features, such as `Ball(dimension=2)`.
        centre: What is subtracted from every reward, -1 to 1. Default 1/2 for rewards in [0, 1], else 0.
        schedule: The resolved constants of `inner`. The constructor finds them, unless a protocol brings them.

    Examples:
        >>> from banditto import Box
        >>> policy = NetThreshold(actions=Box.unit(1), horizon=10**6, rho=0.2)
        >>> policy.points.shape, policy.guarantee().holds
        ((11, 1), True)
    """

    schedule: LinearSchedule = field(default=UNRESOLVED, repr=False)
    inner: LinearThreshold = field(init=False, repr=False)
    net: FiniteActions = field(init=False, repr=False)
    points: FloatArray = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "net-threshold"
    decision_version: ClassVar[int] = 1
    needs_finite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        actions = checked_actions(self.actions)
        if isinstance(actions, FiniteActions):
            raise InvalidArgument("actions", "finitely many actions", "an action set; use linear-threshold for those")
        super().__post_init__()
        exponent = 4 * actions.dimension + 2
        points = net(actions, self.horizon ** (-1.0 / exponent))
        if not 2 <= len(points) <= MOST_ARMS:
            allowed = f"a horizon for which the net has 2 to {MOST_ARMS} actions"
            raise InvalidArgument("horizon", f"{self.horizon}, with a net of {len(points)} actions", allowed)
        made = FiniteActions.fine(points)  # what is pulled is what is learnt from
        self._set(net=made, points=made.to_array(), arms=len(points))
        names = ("horizon", "rho", "constants", "sigma", "rewards", "centre", "schedule")
        inner = LinearThreshold(actions=made, **{name: getattr(self, name) for name in names})
        self._set(inner=inner, schedule=inner.schedule)

    def _checked_arms(self) -> int:
        return 0

    def init(self, replicates: int) -> Any:
        """Return the state before the first batch: all actions of the net active."""
        return self.inner.init(replicates)

    def plan(self, state: Any) -> IntArray | None:
        """Return the next pulls of the net's actions; None when all is spent."""
        return self.inner.plan(state)

    def places(self, state: Any) -> FloatArray:
        """Return the net, the same for every replicate."""
        return self.points[np.newaxis]

    def decide(self, state: Any, totals: FloatArray, coins: Coins) -> Any:
        """Decide as `LinearThreshold` does, and return the state after the batch."""
        return self.inner.decide(state, totals, coins)

    @property
    def free_constants(self) -> frozenset[str]:
        """The free constants of `LinearThreshold` on the net."""
        return self.inner.free_constants

    def guarantee(self) -> Guarantee:
        """Return the bound of `LinearThreshold` with as many arms as the net has actions."""
        return self.inner.guarantee()

    def minimum_horizon(self) -> int | None:
        """Return about the smallest useful horizon: that of `LinearThreshold` on the net that this horizon has."""
        return self.inner.minimum_horizon()

    def describe(self) -> Description:
        """Return the net's size and radius, and the batches."""
        made = self.inner.describe()
        radius = self.horizon ** (-1.0 / (4 * self.actions.dimension + 2))
        facts = {**made.facts, **self._facts(), "net": f"{self.arms} actions, radius {radius:.4g}"}
        return Description(facts, made.header, made.rows)

    def resolved(self) -> Mapping[str, Plain]:
        """Return the constants of `LinearThreshold` on the net."""
        return self.inner.resolved()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> NetThreshold:
        """Return the policy that decides by a protocol's resolved constants; the net is made again."""
        arguments = cls._arguments(replace(protocol, arms=0))
        return cls(**arguments, schedule=LinearSchedule.from_plain(protocol.resolved))
