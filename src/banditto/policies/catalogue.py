"""From names and protocols to policies, and from policies to protocols."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal

from banditto import policies
from banditto.core.errors import InvalidArgument
from banditto.core.protocol import Protocol, WithProtocol
from banditto.core.registry import Earlier, Entry
from banditto.core.rewards import RewardKind, Rewards
from banditto.policies import baselines
from banditto.policies.policy import AnyPolicy


def load_class(entry: Entry | Earlier) -> Any:
    """Import the class of a registry entry: that of the newest decision version, or of an earlier one."""
    return getattr(import_module(entry.module), entry.class_name)


def class_of(name: str, decision_version: int) -> Any:
    """Import the class that decides by one decision version of a policy or a baseline."""
    entry = lookup(name, policies.REGISTRY | baselines.REGISTRY, "protocol")
    newest = load_class(entry)
    if decision_version == newest.decision_version:
        return newest
    for earlier in entry.earlier:
        if decision_version == earlier.decision_version:
            return load_class(earlier)
    known = sorted({newest.decision_version, *(earlier.decision_version for earlier in entry.earlier)})
    allowed = f"{' or '.join(map(str, known))}, which this version of banditto implements for {name}"
    raise InvalidArgument("decision_version", decision_version, allowed)


def lookup(name: str, registry: Mapping[str, Entry], argument: str) -> Entry:
    """A registry's entry, or an error that suggests the closest name."""
    if name in registry:
        return registry[name]
    close = difflib.get_close_matches(name.lower(), registry, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidArgument(argument, name, hint + ", ".join(registry))


def takes_option(spec: str, option: str) -> bool:
    """Whether the policy of a spec has an argument of this name."""
    entry = (policies.REGISTRY | baselines.REGISTRY).get(spec.partition(":")[0])
    return entry is not None and option in (*entry.options, *entry.optional)


def rewards_of(policy: AnyPolicy, kind: RewardKind | None = None) -> Rewards:
    """The rewards that a policy was built for; a baseline that does not say gets those of its sigma and centre."""
    own = getattr(policy, "rewards", None)
    if own is None and getattr(policy, "centre", 0.5) != 0.5:
        own = "gaussian"
    return Rewards.of(kind or own, getattr(policy, "sigma", 0.5))


def protocol_on(policy: AnyPolicy, *, seed: int, arms: int, horizon: int, rho: float) -> Protocol:
    """Write the protocol of a policy on a problem; only what the policy lacks is taken from the problem."""
    known: dict[str, Any] = {"arms": arms, "horizon": horizon, "rho": rho}
    missing = {name: value for name, value in known.items() if getattr(policy, name, None) is None}
    kind: Any = type(policy) if hasattr(policy, "protocol") else WithProtocol  # a user's own class need not inherit
    written: Protocol = kind.protocol(policy, seed=seed, **missing)
    return replace(written, arms=arms)  # the arms of a net are not those of the set


def policy_of(protocol: Protocol) -> AnyPolicy:
    """The policy of a protocol, deciding by the constants and the decision version that the protocol holds.

    Examples:
        >>> from banditto import RandomThreshold
        >>> policy = RandomThreshold(arms=2, horizon=10**6, rho=0.1)
        >>> policy_of(policy.protocol(seed=1)) == policy
        True
    """
    policy: AnyPolicy = class_of(protocol.policy, protocol.decision_version).from_protocol(protocol)
    return policy


def listing() -> Iterable[tuple[str, Literal["replicable", "baseline"], Entry]]:
    """(name, kind, entry) of every policy."""
    for name, entry in policies.REGISTRY.items():
        yield name, "replicable", entry
    for name, entry in baselines.REGISTRY.items():
        yield name, "baseline", entry
