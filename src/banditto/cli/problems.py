"""A policy and the problem that it is for, from a name and flags or a protocol file: what several verbs ask for."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from banditto.cli import parameters
from banditto.core.errors import InvalidArgument
from banditto.core.exact import open_unit, real
from banditto.core.protocol import Protocol as PolicyProtocol
from banditto.geometry.actions.choosing import read_actions, spread_actions
from banditto.policies.policy import Acting, AnyPolicy, RoundPolicy
from banditto.problems.environment import Environment, LinearEnvironment

LINEAR_FLAGS = ("actions", "action_set", "dimension")


class World(Protocol):
    """The flags that say where rewards come from."""

    def built(self, own: AnyPolicy | None = None) -> Environment:
        """The environment; `own` is the policy of a protocol, whose actions need not be named again."""


class Problem(NamedTuple):
    """What to run."""

    policy: AnyPolicy
    environment: Environment
    horizon: int
    rho: float
    seed: int


def problem_of(
    spec: str, world: World, horizon: str | None, rho: str | None, seed: str | None, gap: str | None
) -> Problem:
    """What to run, from a policy's name and flags, or from a protocol file (whose values flags may only repeat)."""
    from banditto.policies.catalogue import build_policy, policy_of, takes_option

    from_file = spec.endswith((".toml", ".json"))
    place = None if from_file else world.built()
    length = None if horizon is None else parameters.count(horizon, "horizon")
    share = None if rho is None else open_unit(rho, "rho")
    root = None if seed is None else parameters.count(seed, "seed")
    lead = None if gap is None else real(gap, "gap", "a number above 0")
    if place is None:
        protocol = PolicyProtocol.load(spec)
        own = {"horizon": protocol.horizon, "rho": float(protocol.rho), "seed": protocol.seed}
        if protocol.settings.get("gap"):  # a policy that can do without writes nothing
            own["gap"] = real(str(protocol.settings["gap"]), "gap")
        for name, given in (("seed", root), ("horizon", length), ("rho", share), ("gap", lead)):
            if given is not None and given != own.get(name):
                allowed = f"{own[name]}, the protocol's own, or none" if name in own else "none: the protocol has none"
                raise InvalidArgument(name, given, allowed)
        policy = policy_of(protocol)
        return Problem(policy, world.built(policy), protocol.horizon, float(protocol.rho), protocol.seed)
    if length is None:
        raise InvalidArgument("horizon", "nothing", "an integer, such as 1e8")
    if share is None:
        raise InvalidArgument("rho", "nothing", "a number between 0 and 1, both excluded")
    policy = build_policy(spec, arms=len(place.means), horizon=length, rho=share, environment=place, gap=lead)
    if lead is not None and not takes_option(spec, "gap"):
        raise InvalidArgument("gap", lead, f"none, because {spec} does not need one")
    return Problem(policy, place, length, share, root or 0)


class BlankWorld(NamedTuple):
    """The flags that say which kind of problem a policy is for, where no instance is chosen yet."""

    arms: str | None
    actions: str | None
    action_set: str | None
    dimension: str | None
    normalise: bool
    environment: str | None

    def built(self, own: AnyPolicy | None = None) -> Environment:
        """Rewards of this kind with nothing to tell apart."""
        from banditto.policies.catalogue import blank_environment, rewards_of

        number = None if self.arms is None else parameters.count(self.arms, "arms")
        if own is None:
            return blank_environment(self.environment or "bernoulli", number, self._named_actions(number))
        if isinstance(own, RoundPolicy):
            raise InvalidArgument("policy", own.name, "a policy that works in batches")
        actions = getattr(own, "actions", None)
        self._check_repeated(own.arms, number, actions)
        kind, sigma = rewards_of(own)
        spec = "bernoulli" if kind == "bounded" else f"gaussian:{sigma!r}"
        place = blank_environment(spec, own.arms, actions)
        if self.environment is None:
            return place
        given = blank_environment(self.environment, own.arms, actions)
        if given.rewards != place.rewards and hasattr(own, "rewards"):  # a baseline takes any
            raise InvalidArgument("environment", self.environment, f"{spec}, the protocol's own, or none")
        return given

    def _named_actions(self, arms: int | None) -> Any:
        """The actions of a linear problem, None where there are just arms."""
        features = None if self.dimension is None else parameters.count(self.dimension, "dimension")
        if self.actions is not None or self.action_set is not None:
            found: Any = read_actions(self.actions, self.normalise, self.action_set, features)
            if arms is not None and self.action_set is not None:
                raise InvalidArgument("arms", arms, f"none, because {self.action_set} has infinitely many actions")
            if arms is not None and arms != len(found):
                raise InvalidArgument("arms", arms, f"{len(found)}, as many as {self.actions} has, or none")
            return found
        if self.normalise:
            raise InvalidArgument("normalise", "it", "a file of actions, to divide by the longest")
        if features is None:
            return None
        if arms is None:
            return read_actions(None, False, "ball", features)
        return spread_actions(arms, features)

    def _check_repeated(self, own_arms: int, arms: int | None, actions: Any) -> None:
        """Refuse what a protocol says otherwise."""
        if arms is not None and arms != own_arms:
            allowed = (
                f"{own_arms}, the protocol's own, or none" if own_arms else "none: the protocol has a set of actions"
            )
            raise InvalidArgument("arms", arms, allowed)
        for name in LINEAR_FLAGS:
            if actions is None and getattr(self, name) is not None:
                raise InvalidArgument(name, getattr(self, name), "none: the protocol is for arms without features")
        if self.dimension is not None and not (self.actions or self.action_set):
            features = parameters.count(self.dimension, "dimension")
            if features != actions.dimension:
                raise InvalidArgument("dimension", features, f"{actions.dimension}, the protocol's own, or none")
        elif (self.actions or self.action_set or self.normalise) and self._named_actions(arms) != actions:
            name = "actions" if self.actions else "action_set"
            raise InvalidArgument(name, getattr(self, name), "the protocol's own actions, or none")


def blank_problem(
    spec: str, world: BlankWorld, horizon: str | None, rho: str | None, seed: str | None, gap: str | None
) -> Problem:
    """The same for verbs that look at many instances of a kind: features only for policies that use them."""
    problem = problem_of(spec, world, horizon, rho, seed, gap)
    if isinstance(problem.environment, LinearEnvironment) and not isinstance(problem.policy, Acting):
        name = next(name for name in LINEAR_FLAGS if getattr(world, name) is not None)
        allowed = f"none, because {problem.policy.name} is for arms without features"
        raise InvalidArgument(name, getattr(world, name), allowed)
    return problem
