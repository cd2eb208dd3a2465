"""A registration: what is fixed before the first user, with the digest that stands in every export."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from banditto.core.digest import canonical_json, sha256_of
from banditto.core.errors import InvalidArgument
from banditto.core.protocol import Protocol, fraction, from_fraction
from banditto.live.amounts import RewardRange
from banditto.live.ordering import ORDER_RULE
from banditto.policies.catalogue import policy_of, rewards_of
from banditto.policies.policy import PlacedPolicy, Policy

SCHEMA_VERSION = 1
LONGEST_NAME = 200
_KEYS = {"schema_version", "order", "protocol", "arm_names", "rewards"}


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A protocol for real arms: their names in order, and what rewards may be.

    The name of an experiment and the place where it is stored are no part of it: two labs that run one registration
    have the same digest.
    """

    protocol: Protocol
    arm_names: tuple[str, ...]
    rewards: RewardRange

    def __post_init__(self) -> None:
        names = tuple(self.arm_names)
        object.__setattr__(self, "arm_names", names)
        if len(names) != self.protocol.arms:
            raise InvalidArgument("arm_names", f"{len(names)} names", f"{self.protocol.arms}, one for each arm")
        for name in names:
            if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
                raise InvalidArgument("arm_names", name, f"printable text of 1 to {LONGEST_NAME} characters")
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidArgument("arm_names", f"{twice} more than once", "different names")

    @classmethod
    def of(
        cls,
        protocol: Protocol,
        arm_names: Sequence[str] | None = None,
        rewards: tuple[float, float] | None = None,
    ) -> Registration:
        """A registration that can be run live; arms without names are called by their numbers, from 0.

        `rewards` are the ends of what a reward may be: 0 and 1 unless others are given, none for a policy that was made
        for rewards without ends. A policy made for bounded rewards sees (reward - low) / (high - low); for another one,
        whose sigma is in the rewards' own units, the ends are a check and nothing is scaled.
        """
        return registered(protocol, arm_names, rewards)

    @cached_property  # every step compares it with the store's
    def digest(self) -> str:
        """sha256 of the canonical JSON, in hexadecimal."""
        return sha256_of(self.to_json())

    def policy(self) -> Policy[Any]:
        """The policy that decides."""
        found = policy_of(self.protocol)
        if not isinstance(found, Policy):
            raise InvalidArgument("protocol", self.protocol.policy, "a replicable policy, which decides in batches")
        if isinstance(found, PlacedPolicy) and not found.arms:
            raise InvalidArgument("protocol", self.protocol.policy, "a policy with finitely many arms")
        bounded = rewards_of(found).kind == "bounded"
        if bounded and not self.rewards.bounded:
            raise InvalidArgument("rewards", "no range", "a range such as 0,1, for a policy made for bounded rewards")
        return found

    @cached_property
    def scales(self) -> bool:
        """Whether the policy sees (reward - low) / (high - low), not the rewards' own units."""
        return rewards_of(policy_of(self.protocol)).kind == "bounded"

    def total(self, exact: Fraction, count: int) -> float:
        """The total of `count` rewards in the policy's units, rounded once."""
        try:
            return self.rewards.scaled(exact, count) if self.scales else float(exact)
        except OverflowError:
            given = f"{count} rewards of one arm whose sum no float can hold"
            raise InvalidArgument("reward", given, "rewards whose sum is a finite number") from None

    def to_json(self) -> str:
        """The canonical JSON: what the digest is taken of."""
        content = {
            "schema_version": SCHEMA_VERSION,
            "order": ORDER_RULE,
            "protocol": self.protocol.to_dict(),
            "arm_names": list(self.arm_names),
            "rewards": [fraction(self.rewards.low), fraction(self.rewards.high)] if self.rewards.bounded else [],
        }
        return canonical_json(content)

    @classmethod
    def from_json(cls, text: str) -> Registration:
        """What `to_json` wrote."""
        content = json.loads(text)
        if not isinstance(content, dict) or set(content) != _KEYS:
            raise InvalidArgument("registration", text, f"an object with {', '.join(sorted(_KEYS))}")
        if content["schema_version"] != SCHEMA_VERSION or content["order"] != ORDER_RULE:
            given = f"version {content['schema_version']}, order {content['order']}"
            raise InvalidArgument("registration", given, f"version {SCHEMA_VERSION}, order {ORDER_RULE}")
        ends = [from_fraction(end, "rewards") for end in content["rewards"]] or [-float("inf"), float("inf")]
        return cls(
            protocol=Protocol.from_dict(content["protocol"]),
            arm_names=tuple(content["arm_names"]),
            rewards=RewardRange(low=ends[0], high=ends[1]),
        )


def registered(
    protocol: Protocol, arm_names: Sequence[str] | None = None, rewards: tuple[float, float] | None = None
) -> Registration:
    """A checked registration; arms without names are called by their numbers, from 0, as everywhere else."""
    names = [str(arm) for arm in range(protocol.arms)] if arm_names is None else arm_names
    if isinstance(names, str):
        raise InvalidArgument("arm_names", names, "a list of names")
    if rewards is None:
        kind = rewards_of(policy_of(protocol)).kind
        rewards = (0.0, 1.0) if kind == "bounded" else (-math.inf, math.inf)
    low, high = rewards
    made = Registration(protocol=protocol, arm_names=tuple(names), rewards=RewardRange(low=low, high=high))
    made.policy()  # refuses what cannot be run live
    return made
