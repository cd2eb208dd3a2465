"""What the linear policies have in common: actions with features, and rewards that are linear in them.

A reward is centre + <theta, a> + noise. Rewards in [0, 1] have centre 1/2 and |theta| <= 1/2 (mean 1/2 + <theta', a>/2
with |theta'| <= 1); other rewards have centre 0 and |theta| <= 1. Gaps are in units of the rewards: at most twice the
largest |theta|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from banditto.core.errors import InvalidArgument
from banditto.core.exact import real
from banditto.core.horizons import checked_arms
from banditto.core.protocol import Plain, Protocol, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.geometry.actions.checking import actions_from_plain, actions_to_plain, checked_actions, finite_actions
from banditto.geometry.actions.finite import FiniteActions
from banditto.geometry.actions.sets import ActionSet
from banditto.policies.shared.replicable import Replicable


def largest_parameter(rewards: Rewards, centre: float) -> float:
    """Return the largest possible |theta|: 1/2 for rewards in [0, 1] around 1/2, else 1."""
    return 0.5 if rewards.kind == "bounded" and centre == 0.5 else 1.0


def largest_reward(rewards: Rewards, centre: float) -> float:
    """Return the largest size of a reward; noise beyond it is too rare to matter."""
    return abs(centre) + largest_parameter(rewards, centre) + 40.0 * rewards.sigma


def check_linear(actions: Any, centre: float, given: Any, around: float) -> None:
    """Refuse an environment whose actions or centre are not those that a policy was built for."""
    if around != centre:
        raise InvalidArgument("environment", f"rewards around {around:g}", f"around {centre:g}, the policy's centre")
    if given != actions:
        raise InvalidArgument("environment", "other actions", "the actions that the policy was built for")


def usual_centre(rewards: Rewards) -> float:
    """Return the centre that rewards of this kind usually have: 1/2 for rewards in [0, 1], else 0."""
    return 0.5 if rewards.kind == "bounded" else 0.0


@dataclass(frozen=True, kw_only=True)
class LinearPolicy(Replicable):
    """The base of the linear policies: actions, horizon, rho, constants, and what is known of the rewards.

    `actions` is a matrix with a row for each arm, `FiniteActions` or an action set; `centre` is what is subtracted from
    every reward before it is linear: 1/2 for rewards in [0, 1] unless you say otherwise, else 0.
    """

    actions: Any
    centre: float | None = None
    arms: int = field(init=False, default=0, repr=False)  # 0 for infinite sets
    rate_at_most: float | None = field(init=False, default=None, repr=False)  # a promise for arms without features

    needs_finite: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set(actions=finite_actions(self.actions) if self.needs_finite else checked_actions(self.actions))
        super().__post_init__()
        centre = usual_centre(self._rewards) if self.centre is None else real(self.centre, "centre")
        if abs(centre) > 1.0:
            raise InvalidArgument("centre", self.centre, "a number from -1 to 1")
        self._set(centre=centre)

    def _checked_arms(self) -> int:
        """Return the number of actions, or refuse it; 0 for infinite sets."""
        return checked_arms(len(self.actions)) if isinstance(self.actions, FiniteActions) else 0

    @property
    def _centre(self) -> float:
        assert self.centre is not None
        return self.centre

    @property
    def _widest(self) -> float:
        """The widest possible gap between two actions."""
        return 2.0 * largest_parameter(self._rewards, self._centre)

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Refuse rewards that the guarantee does not cover: noise bounds differ for [0, 1] and Gaussian ones."""
        super().check_rewards(rewards, means)
        if rewards.kind != self._rewards.kind and self._rewards.kind != "subgaussian":
            raise InvalidArgument("environment", rewards, f"{self._rewards}, which the policy was built for")

    def check_actions(self, actions: FiniteActions | ActionSet, centre: float) -> None:
        """Refuse an environment with other actions, or with rewards that are linear around another centre."""
        check_linear(self.actions, self._centre, actions, centre)

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose, including the actions."""
        more: dict[str, Plain] = {"centre": fraction(self._centre), "actions": actions_to_plain(self.actions)}
        return {**super().settings(), **more}

    @classmethod
    def _arguments(cls, protocol: Protocol, *more: str) -> dict[str, Any]:
        """Return the constructor's arguments that a protocol holds, with its actions and its centre."""
        arguments = super()._arguments(protocol, "centre", "actions", *more)
        if arguments.pop("rate_at_most") is not None:
            raise InvalidArgument("protocol", "settings with 'rate_at_most'", f"what {cls.name} writes")
        actions = actions_from_plain(arguments["actions"])
        arms = len(actions) if isinstance(actions, FiniteActions) else 0
        if arguments.pop("arms") != arms:
            raise InvalidArgument("arms", protocol.arms, f"{arms}, as many as the protocol's actions")
        return arguments | {"actions": actions, "centre": from_fraction(arguments["centre"], "centre")}

    def _facts(self) -> dict[str, object]:
        facts = super()._facts()
        actions = self.actions
        what = f"{self.arms} actions" if isinstance(actions, FiniteActions) else getattr(actions, "name", "own set")
        del facts["arms"]
        return facts | {"actions": f"{what} with {actions.dimension} features", "centre": self._centre}
