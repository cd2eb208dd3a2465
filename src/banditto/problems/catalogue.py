"""From names and protocols to policies, and from policies to protocols."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from banditto import policies
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit, real
from banditto.core.horizons import MOST_ARMS, checked_arms
from banditto.core.protocol import Protocol, WithProtocol
from banditto.core.registry import Earlier, Entry
from banditto.core.rewards import RewardKind, Rewards
from banditto.policies import baselines
from banditto.policies.plain_policy import PAGE, STATEMENT
from banditto.policies.policy import AnyPolicy
from banditto.problems import environments
from banditto.problems.environment import Environment, LinearEnvironment


def _power(value: Any, name: str) -> float:
    allowed = "a number between 0.5 and 1, both excluded"
    power = real(value, name, allowed)
    if not 0.5 < power < 1.0:
        raise InvalidArgument(name, value, allowed)
    return power


# What only some policies take, and how its value is read from text or a number; the registry says which policy takes
# it. What is allowed beyond that depends on the problem, and the policy says it.
OPTIONS: dict[str, Callable[[Any, str], Any]] = {
    "gap": lambda value, name: real(value, name, "a number above 0, such as 0.01"),
    "power": _power,
    "control": lambda value, name: integer(value, name, 0, MOST_ARMS - 1),
    "rate_at_most": open_unit,
}


def load_class(entry: Entry | Earlier) -> Any:
    """Import and return the class of a registry entry, for its newest decision version or an earlier one."""
    return getattr(import_module(entry.module), entry.class_name)


def class_of(name: str, decision_version: int) -> Any:
    """Import and return the class that decides as this decision version of a policy or a baseline does."""
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
    """Return a registry's entry, or refuse the name with a hint at the closest one."""
    if name in registry:
        return registry[name]
    close = difflib.get_close_matches(name.lower(), registry, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    own = "" if close or argument != "policy" else f"; a class of your own takes PlainPolicy, in Python: see {PAGE}"
    raise InvalidArgument(argument, name, hint + ", ".join(registry) + own)


def takes_option(spec: str, option: str) -> bool:
    """Return whether the policy of a spec has an argument of this name."""
    entry = (policies.REGISTRY | baselines.REGISTRY).get(spec.partition(":")[0])
    return entry is not None and option in (*entry.options, *entry.optional)


def rewards_of(policy: AnyPolicy, kind: RewardKind | None = None) -> Rewards:
    """Return the rewards that a policy was built for; for a baseline that does not say, by its sigma and centre."""
    own = getattr(policy, "rewards", None)
    if own is None and getattr(policy, "centre", 0.5) != 0.5:
        own = "gaussian"
    return Rewards.of(kind or own, getattr(policy, "sigma", 0.5), getattr(policy, "rate_at_most", None))


def protocol_on(policy: AnyPolicy, *, seed: int, arms: int, horizon: int, rho: float) -> Protocol:
    """Return the protocol of a policy on a problem; only what the policy lacks is taken from the problem."""
    known: dict[str, Any] = {"arms": arms, "horizon": horizon, "rho": rho}
    missing = {name: value for name, value in known.items() if getattr(policy, name, None) is None}
    kind: Any = type(policy) if hasattr(policy, "protocol") else WithProtocol  # a user's own class need not inherit
    written: Protocol = kind.protocol(policy, seed=seed, **missing)
    return replace(written, arms=arms)  # the arms of a net are not those of the set


def policy_of(protocol: Protocol) -> AnyPolicy:
    """Return the policy of a protocol, which decides by the constants and the decision version that the protocol holds.

    Args:
        protocol: What a policy's `protocol` wrote, here or in another lab.

    Examples:
        >>> from banditto import RandomThreshold
        >>> policy = RandomThreshold(arms=2, horizon=10**6, rho=0.1)
        >>> policy_of(policy.protocol(seed=1)) == policy
        True
    """
    if not isinstance(protocol, Protocol):
        raise InvalidArgument("protocol", protocol, "a protocol, such as `Protocol.load` reads")
    if protocol.settings.get("plain") == STATEMENT:
        allowed = "a policy of banditto: the code of this one is not in its protocol, so make it with PlainPolicy"
        raise InvalidArgument("protocol", protocol.policy, allowed)
    policy: AnyPolicy = class_of(protocol.policy, protocol.decision_version).from_protocol(protocol)
    return policy


def build_environment(spec: str, means: Sequence[float] | None) -> Environment:
    """Return the environment of a spec: `bernoulli`, `gaussian:SIGMA`, `beta:CONCENTRATION` or `discrete:FILE`."""
    name, colon, parameter = spec.partition(":")
    entry = lookup(name, environments.REGISTRY, "environment")
    if entry.linear:
        raise InvalidArgument("environment", spec, "a linear environment only with theta and actions")
    if entry.reads_log:
        raise InvalidArgument("environment", spec, f"another; {name} needs no name, only a log")
    kind = load_class(entry)
    if entry.reads_file:
        return _from_file(kind, spec, means)
    if colon and not entry.options:
        raise InvalidArgument("environment", spec, f"{name} alone")
    if means is None:
        allowed = "the expected reward of each arm, such as 0.9,0.8,0.7; or theta with actions"
        raise InvalidArgument("means", "nothing", allowed)
    made: Environment = kind.from_means(means, **({entry.options[0]: parameter} if colon else {}))
    return made


def _from_file(kind: Any, spec: str, means: Sequence[float] | None) -> Environment:
    """Return the environment that the file of a spec describes; `means` must not be given as well."""
    name, _, file = spec.partition(":")
    if means is not None:
        raise InvalidArgument("means", list(means), f"none, because the file of {name} has its own")
    if not file:
        raise InvalidArgument("environment", spec, f"{name}:FILE")
    loaded: Environment = kind.load(file)
    return loaded


def build_linear_environment(spec: str, theta: Sequence[float] | None, actions: Any) -> Environment:
    """Return the linear environment of `bernoulli` or `gaussian:SIGMA`, with or without `linear-` before it."""
    name, colon, parameter = spec.partition(":")
    full = name if name.startswith("linear-") else f"linear-{name}"
    linear = {key: entry for key, entry in environments.REGISTRY.items() if entry.linear}
    if full not in linear:
        raise InvalidArgument("environment", spec, "bernoulli or gaussian:SIGMA, for a linear problem")
    entry = linear[full]
    if colon and not entry.options:
        raise InvalidArgument("environment", spec, f"{name} alone")
    if theta is None:
        raise InvalidArgument("theta", "nothing", "the parameter, such as 0.3,0.2 for two features")
    made: Environment = load_class(entry)(theta, actions, **({entry.options[0]: parameter} if colon else {}))
    return made


def blank_environment(spec: str, arms: int | None, actions: Any = None) -> Environment:
    """Return an environment of this kind whose arms are all alike: it stands for a kind of problem."""
    name = spec.partition(":")[0]
    if name not in ("bernoulli", "gaussian"):
        raise InvalidArgument("environment", spec, "bernoulli or gaussian:SIGMA")
    if actions is not None:
        return build_linear_environment(spec, [0.0] * actions.dimension, actions)
    if arms is None:
        allowed = "the number of arms, such as 5; or actions, an action set or a dimension"
        raise InvalidArgument("arms", "nothing", allowed)
    return build_environment(spec, [0.5 if name == "bernoulli" else 0.0] * checked_arms(arms))


def _check_constants(spec: str, entry: Entry) -> None:
    name, _, constants = spec.partition(":")
    if constants not in entry.constants:
        allowed = f"{name} with " + " or ".join(entry.constants) if entry.constants else f"{name} alone"
        raise InvalidArgument("policy", spec, allowed)


def _features(name: str, entry: Entry, environment: Environment) -> dict[str, Any]:
    """Return the actions as an argument, for a policy that uses them; nothing for one that goes by arms alone."""
    if not isinstance(environment, LinearEnvironment):
        raise InvalidArgument("policy", name, "another policy, or a linear problem with actions or an action set")
    if not environment.means and not entry.any_set:
        able = ", ".join(key for key, other in policies.REGISTRY.items() if other.any_set)
        raise InvalidArgument("policy", name, f"one for infinite action sets: {able}")
    return {"actions": environment.actions} if entry.linear else {}


def _baseline(entry: Entry, environment: Environment, arms: int, horizon: int) -> AnyPolicy:
    """Return a baseline made for the rewards, and for the actions if it uses them."""
    kind = load_class(entry)
    made: AnyPolicy = (
        kind.made_for_linear(environment.actions, environment.rewards, horizon)
        if isinstance(environment, LinearEnvironment) and entry.linear
        else kind.made_for(environment.rewards, arms, horizon)
    )
    return made


def build_policy(
    spec: str, *, arms: int, horizon: int, rho: float, environment: Environment, **options: float | None
) -> AnyPolicy:
    """Return the policy of a spec, `name` or `name:constants`, made for the environment's kind of rewards.

    `options` are those of `OPTIONS`, None where nothing was given; one that the policy does not take is refused.
    """
    name, colon, constants = spec.partition(":")
    entry = lookup(name, policies.REGISTRY | baselines.REGISTRY, "policy")
    if colon:
        _check_constants(spec, entry)
    for option, value in options.items():
        if value is not None and not takes_option(spec, option):
            raise InvalidArgument(option, value, f"none, because {spec} does not need one")
    known: dict[str, Any] = {"arms": arms}
    if entry.linear or isinstance(environment, LinearEnvironment):
        known = _features(name, entry, environment) or known
    if name in baselines.REGISTRY:
        return _baseline(entry, environment, arms, horizon)
    chosen: dict[str, Any] = {"constants": constants} if constants else {}
    for option in (*entry.options, *entry.optional):
        if options.get(option) is not None:
            chosen[option] = options[option]
        elif option in entry.options:
            raise InvalidArgument(option, "nothing", f"a number, which {name} needs")
    rewards, sigma, _ = environment.rewards
    policy: AnyPolicy = load_class(entry)(**known, horizon=horizon, rho=rho, rewards=rewards, sigma=sigma, **chosen)
    return policy
