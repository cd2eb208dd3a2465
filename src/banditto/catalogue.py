"""From names and files to policies and environments, and from policies to protocols."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from banditto import baselines, environments, policies
from banditto.environment import Environment
from banditto.errors import InvalidArgument
from banditto.exact import written
from banditto.policy import Policy, RoundPolicy
from banditto.protocol import Protocol
from banditto.registry import Entry


def load_class(entry: Entry) -> Any:
    """Import the class of a registry entry."""
    return getattr(import_module(entry.module), entry.class_name)


def lookup(name: str, registry: Mapping[str, Entry], argument: str) -> Entry:
    """A registry's entry, or an error that suggests the closest name."""
    if name in registry:
        return registry[name]
    close = difflib.get_close_matches(name.lower(), registry, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidArgument(argument, name, hint + ", ".join(registry))


def build_policy(
    spec: str, *, arms: int, horizon: int, rho: float, environment: Environment
) -> Policy[Any] | RoundPolicy:
    """A policy from `name` or `name:constants`, made for the environment's kind of rewards."""
    name, _, constants = spec.partition(":")
    entry = lookup(name, policies.REGISTRY | baselines.REGISTRY, "policy")
    if constants and constants not in entry.constants:
        allowed = f"{name} with " + " or ".join(entry.constants) if entry.constants else f"{name} alone"
        raise InvalidArgument("policy", spec, allowed)
    if name in baselines.REGISTRY:
        made: RoundPolicy = load_class(entry).made_for(environment.rewards)
        return made
    chosen = {"constants": constants} if constants else {}
    kind, sigma = environment.rewards
    policy: Policy[Any] = load_class(entry)(arms=arms, horizon=horizon, rho=rho, rewards=kind, sigma=sigma, **chosen)
    return policy


def build_environment(spec: str, means: Sequence[float]) -> Environment:
    """An environment from `bernoulli`, `gaussian` or `gaussian:SIGMA`."""
    name, colon, parameter = spec.partition(":")
    entry = lookup(name, environments.REGISTRY, "environment")
    if colon and name != "gaussian":
        raise InvalidArgument("environment", spec, f"{name} alone")
    arguments = {"sigma": parameter} if colon else {}
    environment: Environment = load_class(entry)(means, **arguments)
    return environment


def protocol_of(policy: Policy[Any] | RoundPolicy, *, seed: int, arms: int, horizon: int, rho: float) -> Protocol:
    """The protocol of a policy on a problem."""
    return Protocol(
        policy=policy.name,
        decision_version=policy.decision_version,
        arms=arms,
        horizon=horizon,
        rho=str(written(rho)),
        seed=seed,
        settings=policy.settings(),
        resolved=policy.resolved(),
    )


def policy_of(protocol: Protocol) -> Policy[Any] | RoundPolicy:
    """The policy of a protocol, deciding by the constants that the protocol holds."""
    entry = lookup(protocol.policy, policies.REGISTRY | baselines.REGISTRY, "protocol")
    kind = load_class(entry)
    if protocol.decision_version != kind.decision_version:
        allowed = f"{kind.decision_version}, which this version of banditto implements for {protocol.policy}"
        raise InvalidArgument("decision_version", protocol.decision_version, allowed)
    policy: Policy[Any] | RoundPolicy = kind.from_protocol(protocol)
    return policy


def listing() -> Iterable[tuple[str, str, Entry]]:
    """(name, kind, entry) of every policy."""
    for name, entry in policies.REGISTRY.items():
        yield name, "replicable", entry
    for name, entry in baselines.REGISTRY.items():
        yield name, "baseline", entry
