"""A registration: what is fixed before the first user, with the digest that stands in every export.

It also says what a reward may be: a float in the declared range. Sums are exact fractions, rounded once when a batch is
complete: the order in which rewards arrive, corrections and the number of workers leave no trace in them.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from banditto.core.digest import canonical_json, sha256_of
from banditto.core.errors import InvalidArgument
from banditto.core.exact import EXACT_INTEGERS, integer, is_rounded
from banditto.core.protocol import Protocol, fraction, from_fraction
from banditto.core.tabular import items_in
from banditto.live.checked_words import checked_arm_names
from banditto.live.order import ORDER_RULE, ORDER_RULE_1
from banditto.policies.policy import PlacedPolicy, Policy
from banditto.problems.catalogue import policy_of, rewards_of

SCHEMA_VERSION = 2  # 1 had neither a fallback nor a deadline
LONGEST_NAME = 200
MOST_ARMS = 10**5
LONGEST_DEADLINE = 10**9  # seconds
_FIRST_KEYS = {"schema_version", "order", "protocol", "arm_names", "rewards"}
_KEYS = _FIRST_KEYS | {"fallback", "deadline"}
_LARGEST = sys.float_info.max
_LONGEST_BITS = 4096  # of a denominator; those of floats have at most 1075


def plain(value: object) -> object:
    """Turn one of NumPy's numbers into Python's; anything else comes back as it is."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, kw_only=True)
class RewardRange:
    """Says what a reward may be; policies for bounded rewards see (reward - low) / (high - low)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
                raise InvalidArgument("rewards", value, "two numbers, such as 0,1")
            object.__setattr__(self, name, float(value))
        if not self.low < self.high:
            raise InvalidArgument(
                "rewards", f"{self.low:g} to {self.high:g}", "a range whose low end is below its high end"
            )
        if math.isinf(self.low) != math.isinf(self.high):
            raise InvalidArgument("rewards", f"{self.low:g} to {self.high:g}", "both ends finite, or none")

    @property
    def bounded(self) -> bool:
        """Whether the range has ends, which both are finite then."""
        return math.isfinite(self.low)

    def checked(self, reward: object) -> float:
        """Check one reward, Python's number or NumPy's; the float that it is comes back, or an error is raised."""
        if type(reward) is float and self.low <= reward <= self.high and math.isfinite(reward):
            return reward + 0.0
        given = plain(reward)
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise InvalidArgument("reward", given, self.text())
        try:
            value = float(given)
        except OverflowError:
            value = math.inf
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise InvalidArgument("reward", given, self.text())
        if abs(value) >= EXACT_INTEGERS and is_rounded(given, value):
            raise InvalidArgument("reward", given, f"{self.text()}; of integers above 2^53 those that a float holds")
        return value + 0.0  # -0.0 is 0.0: databases do not agree on whether there are two

    def checked_sum(self, total: object, count: int) -> Fraction:
        """Check a sum of `count` rewards; it comes back exactly, or an error is raised if no rewards add up to it."""
        allowed = "a finite number"
        if isinstance(total, bool) or not isinstance(total, int | float | Fraction):
            raise InvalidArgument("total", total, allowed)
        if isinstance(total, float) and not math.isfinite(total):
            raise InvalidArgument("total", total, allowed)
        if isinstance(total, Fraction) and total.denominator.bit_length() > _LONGEST_BITS:
            raise InvalidArgument("total", "a fraction that is too long to be written out", allowed)
        value = Fraction(total)
        if self.bounded and not count * Fraction(self.low) <= value <= count * Fraction(self.high):
            raise InvalidArgument("total", total, f"the sum of {count} rewards, each {self.text()}")
        if not count and value:
            raise InvalidArgument("total", total, "0, the sum of no rewards")
        if abs(value) > Fraction(_LARGEST):
            raise InvalidArgument("total", total, allowed)
        return value

    def text(self) -> str:
        """Say in words what a reward may be."""
        return f"a number from {self.low:g} to {self.high:g}" if self.bounded else "a finite number"

    def scaled(self, total: Fraction, count: int) -> float:
        """Scale the total of `count` rewards to [0, 1] for each; what comes back was rounded once."""
        if not self.bounded:
            return float(total)
        low, high = Fraction(self.low), Fraction(self.high)
        return float((total - count * low) / (high - low))


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A protocol for real arms: their names in order, and what rewards may be.

    Make one with `of`, which has defaults. The name of an experiment and the place where it is stored are no part of
    it: two labs that run one registration have the same digest.

    Args:
        protocol: the policy with its constants, its problem and its seed.
        arm_names: a name for each arm, in order; all different.
        rewards: the `low` and the `high` end of what a reward may be.
        fallback: the number of the arm for units that come when there is no ticket; None names none.
        deadline: seconds after which a ticket without a reward is given up; None waits for ever.
        order: the rule by which a batch's slots get their arms.

    Raises:
        InvalidArgument: there are more or fewer names than arms, or two are the same; there is no such arm to fall back
            to; or the deadline is no number of seconds.

    Examples:
        >>> from banditto import ExploreThenCommit
        >>> protocol = ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
        >>> registration = Registration.of(protocol, ["old", "new"], rewards=(0, 5))
        >>> registration.arm_names, registration.rewards.high
        (('old', 'new'), 5.0)
        >>> Registration.from_json(registration.to_json()).digest == registration.digest
        True
    """

    protocol: Protocol
    arm_names: tuple[str, ...]
    rewards: RewardRange
    fallback: int | None = None
    deadline: int | None = None
    order: str = ORDER_RULE

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
        if self.fallback is not None:
            object.__setattr__(self, "fallback", integer(self.fallback, "fallback", 0, len(names) - 1))
        if self.deadline is not None:
            object.__setattr__(self, "deadline", integer(self.deadline, "deadline", 1, LONGEST_DEADLINE))
        if self.order not in (ORDER_RULE_1, ORDER_RULE):
            raise InvalidArgument("order", self.order, f"{ORDER_RULE_1} or {ORDER_RULE}")
        if self.first_version and not (self.fallback is None and self.deadline is None):
            raise InvalidArgument("order", self.order, f"{ORDER_RULE}, with a fallback or a deadline")

    @property
    def first_version(self) -> bool:
        """Whether this is a registration of version 1, whose tickets do not carry the experiment's name."""
        return self.order == ORDER_RULE_1

    @classmethod
    def of(
        cls,
        protocol: Protocol,
        arm_names: Sequence[str] | None = None,
        rewards: tuple[float, float] | None = None,
        *,
        fallback: str | int | None = None,
        deadline: float | timedelta | None = None,
    ) -> Registration:
        """Make a registration that can be run live.

        Args:
            protocol: the policy with its constants, its problem and its seed.
            arm_names: a name for each arm, in order; arms without names are called by their numbers, from 0.
            rewards: the ends of what a reward may be: 0 and 1 unless others are given, none for a policy that was made
                for rewards without ends. A policy made for bounded rewards sees (reward - low) / (high - low); for
                another one, whose sigma is in the rewards' own units, the ends are a check and nothing is scaled.
            fallback: the arm, by its name or its number from 0, for units that come while a batch waits for rewards or
                after the end (`Experiment.ask`). What they do is no part of the experiment.
            deadline: whole seconds, or a `timedelta`: a ticket that waits longer for its reward is given up as missing
                by the next `ask`, and its slot is handed out again.
        """
        return registered(protocol, arm_names, rewards, fallback, deadline)

    @cached_property  # every step compares it with the store's
    def digest(self) -> str:
        """The sha256 of the canonical JSON, in hexadecimal."""
        return sha256_of(self.to_json())

    def policy(self) -> Policy[Any]:
        """Build the policy that decides; a policy that cannot be run live is refused."""
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
        """Turn the exact total of `count` rewards into the policy's units; what comes back was rounded once.

        Args:
            exact: the sum of the rewards, as they were told.
            count: how many rewards it is the sum of.
        """
        try:
            return self.rewards.scaled(exact, count) if self.scales else float(exact)
        except OverflowError:
            given = f"{count} rewards of one arm whose sum no float can hold"
            raise InvalidArgument("reward", given, "rewards whose sum is a finite number") from None

    def to_json(self) -> str:
        """Write the canonical JSON: what the digest is taken of, and what the store keeps."""
        content = {
            "schema_version": 1 if self.first_version else SCHEMA_VERSION,
            "order": self.order,
            "protocol": self.protocol.to_dict(),
            "arm_names": list(self.arm_names),
            "rewards": [fraction(self.rewards.low), fraction(self.rewards.high)] if self.rewards.bounded else [],
        }
        more = {} if self.first_version else {"fallback": self.fallback, "deadline": self.deadline}
        return canonical_json({**content, **more})

    @classmethod
    def from_json(cls, text: str) -> Registration:
        """Read what `to_json` wrote; the same registration comes back.

        Args:
            text: canonical JSON.
        """
        content = json.loads(text)
        first = isinstance(content, dict) and content.get("schema_version") == 1
        keys = _FIRST_KEYS if first else _KEYS
        if not isinstance(content, dict) or set(content) != keys:
            raise InvalidArgument("registration", text, f"an object with {', '.join(sorted(keys))}")
        version, order = (1, ORDER_RULE_1) if first else (SCHEMA_VERSION, ORDER_RULE)
        if content["schema_version"] != version or content["order"] != order:
            given = f"version {content['schema_version']}, order {content['order']}"
            raise InvalidArgument("registration", given, f"version {version}, order {order}")
        ends = [from_fraction(end, "rewards") for end in content["rewards"]] or [-float("inf"), float("inf")]
        return cls(
            protocol=Protocol.from_dict(content["protocol"]),
            arm_names=tuple(content["arm_names"]),
            rewards=RewardRange(low=ends[0], high=ends[1]),
            fallback=content.get("fallback"),
            deadline=content.get("deadline"),
            order=order,
        )


def registered(
    protocol: Protocol,
    arm_names: Sequence[str] | None = None,
    rewards: tuple[float, float] | None = None,
    fallback: str | int | None = None,
    deadline: float | timedelta | None = None,
) -> Registration:
    """Make a checked registration; arms without names are called by their numbers, from 0, as everywhere else."""
    if not isinstance(protocol, Protocol):
        raise InvalidArgument("protocol", protocol, "a protocol, such as `policy.protocol(seed=1)`")
    arm_names = None if arm_names is None else items_in(arm_names, "arm_names", "a list of names")
    if protocol.arms > MOST_ARMS:  # before a name is made for each of them
        raise InvalidArgument("arms", protocol.arms, f"at most {MOST_ARMS:,} arms")
    numbers = [str(arm) for arm in range(protocol.arms)]
    names = numbers if arm_names is None else checked_arm_names(arm_names, LONGEST_NAME)
    if rewards is None:
        kind = rewards_of(policy_of(protocol)).kind
        rewards = (0.0, 1.0) if kind == "bounded" else (-math.inf, math.inf)
    ends: list[Any] = [plain(end) for end in items_in(rewards, "rewards", "two numbers, such as (0, 1)")]
    if len(ends) != 2:
        raise InvalidArgument("rewards", f"{len(ends)} items", "two numbers, such as (0, 1)")
    low, high = ends
    made = Registration(
        protocol=protocol,
        arm_names=tuple(names),
        rewards=RewardRange(low=low, high=high),
        fallback=None if fallback is None else arm_of(fallback, names, "fallback"),
        deadline=None if deadline is None else _seconds(deadline),
    )
    made.policy()  # refuses what cannot be run live
    return made


def arm_of(key: object, names: Sequence[str], argument: str = "arm") -> int:
    """Find the number of an arm that is given by its name or its number."""
    if isinstance(key, str) and key in names:
        return names.index(key)
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
        return key
    number = "" if isinstance(key, str) else ", or its number from 0"  # text is a name
    raise InvalidArgument(argument, key, f"one of {', '.join(names)}{number}")


def _seconds(age: float | timedelta) -> int:
    """Turn a deadline into whole seconds."""
    allowed = f"whole seconds from 1 to {LONGEST_DEADLINE:,}"
    seconds = age.total_seconds() if isinstance(age, timedelta) else plain(age)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 1 <= seconds <= LONGEST_DEADLINE:
        raise InvalidArgument("deadline", age, allowed)
    if int(seconds) != seconds:
        raise InvalidArgument("deadline", age, allowed)
    return int(seconds)
