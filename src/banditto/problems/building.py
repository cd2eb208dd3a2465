"""From names to what they stand for: `gaussian:0.5` to an environment, `random-threshold:paper` to a policy for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from banditto import policies
from banditto.core.errors import InvalidArgument
from banditto.core.horizons import checked_arms
from banditto.policies import baselines
from banditto.policies.catalogue import load_class, lookup
from banditto.policies.policy import AnyPolicy
from banditto.problems import environments
from banditto.problems.environment import Environment, LinearEnvironment


def build_environment(spec: str, means: Sequence[float] | None) -> Environment:
    """Make an environment of `bernoulli`, `gaussian:SIGMA`, `beta:CONCENTRATION` or `discrete:FILE`."""
    name, colon, parameter = spec.partition(":")
    entry = lookup(name, environments.REGISTRY, "environment")
    if entry.linear:
        raise InvalidArgument("environment", spec, "a linear environment only with theta and actions")
    if entry.reads_log:
        raise InvalidArgument("environment", spec, f"another, or none with a log, whose rewards are {name}")
    kind = load_class(entry)
    if entry.reads_file:
        if means is not None:
            raise InvalidArgument("means", list(means), f"none, because the file of {name} has its own")
        if not parameter:
            raise InvalidArgument("environment", spec, f"{name}:FILE")
        loaded: Environment = kind.load(parameter)
        return loaded
    if colon and not entry.options:
        raise InvalidArgument("environment", spec, f"{name} alone")
    if means is None:
        allowed = "the expected reward of each arm, such as 0.9,0.8,0.7; or theta with actions"
        raise InvalidArgument("means", "nothing", allowed)
    made: Environment = kind.from_means(means, **({entry.options[0]: parameter} if colon else {}))
    return made


def build_linear_environment(spec: str, theta: Sequence[float] | None, actions: Any) -> Environment:
    """Make a linear environment of `bernoulli` or `gaussian:SIGMA`, with or without `linear-` before it."""
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
    """Make `bernoulli` or `gaussian:SIGMA` rewards with nothing to tell apart: a kind of problem, no instance."""
    name = spec.partition(":")[0]
    if name not in ("bernoulli", "gaussian"):
        raise InvalidArgument("environment", spec, "bernoulli or gaussian:SIGMA")
    if actions is not None:
        return build_linear_environment(spec, [0.0] * actions.dimension, actions)
    if arms is None:
        allowed = "the number of arms, such as 5; or actions, an action set or a dimension"
        raise InvalidArgument("arms", "nothing", allowed)
    return build_environment(spec, [0.5 if name == "bernoulli" else 0.0] * checked_arms(arms))


def build_policy(
    spec: str, *, arms: int, horizon: int, rho: float, environment: Environment, **options: float | None
) -> AnyPolicy:
    """A policy from `name` or `name:constants`, made for the environment's kind of rewards.

    `options` are arguments that only some policies take, such as `gap`; None means that it was not given.
    """
    name, colon, constants = spec.partition(":")
    entry = lookup(name, policies.REGISTRY | baselines.REGISTRY, "policy")
    if colon and constants not in entry.constants:
        allowed = f"{name} with " + " or ".join(entry.constants) if entry.constants else f"{name} alone"
        raise InvalidArgument("policy", spec, allowed)
    if isinstance(environment, LinearEnvironment) and not environment.means and not entry.any_set:
        able = ", ".join(key for key, other in policies.REGISTRY.items() if other.any_set)
        raise InvalidArgument("policy", name, f"one for infinite action sets: {able}")
    known: dict[str, Any] = {"arms": arms}
    if entry.linear:
        if not isinstance(environment, LinearEnvironment):
            raise InvalidArgument("policy", name, "another, or a linear problem, with actions or an action set")
        known = {"actions": environment.actions}
    if name in baselines.REGISTRY:
        kind = load_class(entry)
        made: AnyPolicy = (
            kind.made_for_linear(environment.actions, environment.rewards, horizon)
            if isinstance(environment, LinearEnvironment) and entry.linear
            else kind.made_for(environment.rewards, arms, horizon)
        )
        return made
    chosen: dict[str, Any] = {"constants": constants} if constants else {}
    for option in (*entry.options, *entry.optional):
        if options.get(option) is not None:
            chosen[option] = options[option]
        elif option in entry.options:
            raise InvalidArgument(option, "nothing", f"a number, which {name} needs")
    rewards, sigma = environment.rewards
    policy: AnyPolicy = load_class(entry)(**known, horizon=horizon, rho=rho, rewards=rewards, sigma=sigma, **chosen)
    return policy
