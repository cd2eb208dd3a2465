"""From named values to what is played: flags, study files and Python arguments all come through here.

A value may be text, as somebody typed it, or of its own type. What is wrong with a name or a value is said here, in one
place, whoever gave it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import open_unit, parsed_integer, real
from banditto.core.protocol import Protocol
from banditto.policies.plain_policy import PlainPolicy
from banditto.policies.policy import Acting, AnyPolicy, RoundPolicy
from banditto.problems.catalogue import (
    OPTIONS,
    blank_environment,
    build_environment,
    build_linear_environment,
    build_policy,
    policy_of,
    rewards_of,
)
from banditto.problems.environment import Environment, LinearEnvironment
from banditto.problems.reward_log import RewardLog

if TYPE_CHECKING:
    from banditto.geometry.actions.finite import FiniteActions
    from banditto.geometry.actions.sets import ConvexSet

LINEAR = ("theta", "actions", "action_set", "dimension", "normalise")
LOGGED = ("log", "arm_column", "reward_column", "reward_range", "log_digest")
_LOG_FILE = "a CSV or Parquet file of arms and rewards"
_NAMED = ("actions", "action_set", "dimension")  # what else says that arms have features

Numbers = str | Sequence[float]


# -- values as they are typed ------------------------------------------------------------------------------------------


def numbers(text: str, argument: str) -> tuple[float, ...]:
    """Return the numbers of text such as `0.9,0.8,0.7`."""
    allowed = "numbers separated by commas, such as 0.9,0.8,0.7"
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InvalidArgument(argument, repr(text), allowed)
    return tuple(real(part, argument, allowed) for part in parts)


def _ends(text: str, argument: str) -> tuple[float, float]:
    ends = numbers(text, argument)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InvalidArgument(argument, text, "two numbers, the lower one first, such as 0,5")
    return ends[0], ends[1]


_READERS: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(("arms", "dimension", "horizon", "pairs", "pairs_budget", "rounds", "seed"), parsed_integer),
    **dict.fromkeys(("noise_seed", "jobs", "pulls", "n"), parsed_integer),
    **dict.fromkeys(("rho", "confidence", "resolve", "by"), open_unit),
    **dict.fromkeys(("means", "theta"), numbers),
    **OPTIONS,
    "reward_range": _ends,
}


def typed(name: str, value: Any) -> Any:
    """Return what somebody typed for `name` as a value, of any size; what is not text comes back as it is."""
    return _READERS[name](value, name) if isinstance(value, str) and name in _READERS else value


# -- where rewards come from -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ProblemSpec:
    """Where rewards come from, as the user named it; None where nothing was said. Files are read when needed.

    Examples:
        >>> ProblemSpec(means="0.9,0.8").instance() == ProblemSpec(means=[0.9, 0.8]).instance()
        True
    """

    means: Numbers | None = None
    environment: str | None = None
    theta: Numbers | None = None
    actions: str | None = None
    action_set: str | None = None
    dimension: str | int | None = None
    normalise: bool | None = None
    arms: str | int | None = None  # where no instance is chosen yet
    log: str | None = None
    arm_column: str | None = None
    reward_column: str | None = None
    reward_range: str | tuple[float, float] | None = None
    log_digest: str | None = None

    def instance(self, own: AnyPolicy | None = None) -> Environment:
        """Return the environment. The actions of a protocol's `own` policy need not be named again."""
        if self._given(LOGGED):
            return self._resampled()
        kind = self.environment or "bernoulli"
        fixed: Any = getattr(own, "actions", None)
        if fixed is not None and self.theta is None:
            raise InvalidArgument("theta", "nothing", "the parameter, because no protocol holds it")
        if not self._given(LINEAR):
            return build_environment(kind, typed("means", self.means))
        if self.means is not None and self.theta is None:
            self._refuse(LINEAR, "none: that is for linear problems, which have theta and no means")
        self._refuse(("means",), "none, because a linear problem has theta and actions")
        if fixed is not None and not (self.actions or self.action_set):
            self._refuse(("normalise", "dimension"), "none, because the protocol has its own actions")
        if fixed is None or self._given(("actions", "action_set")):
            fixed = self.read_actions()
        return build_linear_environment(kind, typed("theta", self.theta), fixed)

    def blank(self, own: AnyPolicy | None = None) -> Environment:
        """Return rewards of this kind with all arms alike; what a protocol's `own` policy says may be repeated."""
        arms = typed("arms", self.arms)
        if own is None:
            return blank_environment(self.environment or "bernoulli", arms, self._blank_actions(arms))
        if isinstance(own, RoundPolicy | PlainPolicy):
            raise InvalidArgument("policy", own.name, "a policy that works in batches")
        actions = getattr(own, "actions", None)
        self._check_repeated(own.arms, arms, actions)
        kind, sigma, _ = rewards_of(own)
        spec = "bernoulli" if kind == "bounded" else f"gaussian:{sigma!r}"
        place = blank_environment(spec, own.arms, actions)
        if self.environment is None:
            return place
        given = blank_environment(self.environment, own.arms, actions)
        if given.rewards != place.rewards and hasattr(own, "rewards"):  # a baseline takes any
            raise InvalidArgument("environment", self.environment, f"{spec}, the protocol's own, or none")
        return given

    def read_actions(self) -> FiniteActions | ConvexSet:
        """Return the actions, from exactly one of a CSV file, a set's name and a JSON file."""
        file, named, dimension = self.actions, self.action_set, typed("dimension", self.dimension)
        if (file is None) == (named is None):
            given = "nothing" if file is None else f"{file} and --action-set {named}"
            raise InvalidArgument("actions", given, "either a CSV file of arms or --action-set")
        if file is not None:
            if not file.strip():
                raise InvalidArgument("actions", repr(file), "the name of a file")
            if dimension is not None:
                raise InvalidArgument("dimension", dimension, "none, because the file of arms has its own")
            from banditto.geometry.actions.finite import FiniteActions

            return FiniteActions.load(file, normalise=bool(self.normalise))
        assert named is not None
        if self.normalise:
            raise InvalidArgument("normalise", f"the action set {named}", "a file of arms, to divide by the longest")
        from banditto.geometry.actions.action_reading import NAMED, load_set, named_set

        if named.endswith(".json"):
            if dimension is not None:
                raise InvalidArgument("dimension", dimension, "none, because the file has its own")
            return load_set(named)
        if named not in NAMED:
            raise InvalidArgument("action_set", named, ", ".join(NAMED) + " or a file that ends in .json")
        if dimension is None:
            raise InvalidArgument("dimension", "nothing", f"the number of features, which {named} needs")
        return named_set(named, dimension)

    def read_log(self) -> RewardLog:
        """Return the log of rewards, from a CSV or a Parquet file."""
        low, high = typed("reward_range", self.reward_range) or (0.0, 1.0)
        if self.log is None:
            self._refuse(("arm_column", "reward_column", "reward_range"), "none without a log")
            raise InvalidArgument("log", "nothing", _LOG_FILE)
        if not self.log.strip():
            raise InvalidArgument("log", repr(self.log), _LOG_FILE)
        if not low < high:
            raise InvalidArgument("reward_range", f"{low:g},{high:g}", "two numbers, the lower one first, such as 0,5")
        columns: dict[str, Any] = {name: getattr(self, name) for name in self._given(("arm_column", "reward_column"))}
        log = RewardLog.read(self.log, low=low, high=high, **columns)
        if self.log_digest not in (None, log.digest):
            raise InvalidArgument("log_digest", self.log_digest, f"{log.digest}, the log's own")
        return log

    def _given(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that have a value."""
        return [name for name in names if getattr(self, name) is not None]

    def _told(self, name: str) -> Any:
        """Return what was given for a name, as a message shows it."""
        value = getattr(self, name)
        if value is True:
            return "it"
        return ",".join(f"{part:g}" for part in value) if isinstance(value, tuple | list) else value

    def _refuse(self, names: Sequence[str], allowed: str) -> None:
        """Refuse the first of the names that has a value."""
        for name in self._given(names)[:1]:
            raise InvalidArgument(name, self._told(name), allowed)

    def _resampled(self) -> Environment:
        """Return the environment that draws from a log; it brings what other environments must be told."""
        from banditto.problems.environments.resampled import Resampled

        if self.log is not None:
            self._refuse(("means", "environment", *LINEAR), "none, because the log has its own arms and rewards")
        return Resampled(self.read_log())

    def _blank_actions(self, arms: int | None) -> Any:
        """Return the actions of a linear problem, read or spread evenly; None where there are just arms."""
        if self._given(("actions", "action_set")):
            found: Any = self.read_actions()
            if arms is not None and self.action_set is not None:
                raise InvalidArgument("arms", arms, f"none, because {self.action_set} has infinitely many actions")
            if arms is not None and arms != len(found):
                raise InvalidArgument("arms", arms, f"{len(found)}, as many as {self.actions} has, or none")
            return found
        features = typed("dimension", self.dimension)
        if self.normalise:
            self._refuse(("normalise",), "a file of actions, to divide by the longest")
        if features is None:
            return None
        from banditto.geometry.actions.action_reading import named_set, spread_actions

        return named_set("ball", features) if arms is None else spread_actions(arms, features)

    def _check_repeated(self, own_arms: int, arms: int | None, actions: Any) -> None:
        """Refuse arms, dimension or actions that contradict the protocol."""
        if arms is not None and arms != own_arms:
            none = "none: the protocol has a set of actions"
            raise InvalidArgument("arms", arms, f"{own_arms}, the protocol's own, or none" if own_arms else none)
        if actions is None:
            self._refuse(_NAMED, "none: the protocol is for arms without features")
        if self.dimension is not None and not (self.actions or self.action_set):
            features = typed("dimension", self.dimension)
            if features != actions.dimension:
                raise InvalidArgument("dimension", features, f"{actions.dimension}, the protocol's own, or none")
        elif (self.actions or self.action_set or self.normalise) and self._blank_actions(arms) != actions:
            name = "actions" if self.actions else "action_set"
            raise InvalidArgument(name, getattr(self, name), "the protocol's own actions, or none")


# -- a policy on it ----------------------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """What to play: a policy, the environment that it was made for, and the seed of its coins."""

    policy: AnyPolicy
    environment: Environment
    horizon: int
    rho: float
    seed: int


def is_protocol(policy: str) -> bool:
    """Return whether a policy is named by a protocol file."""
    return policy.endswith((".toml", ".json"))


def chosen(
    policy: str,
    place: Callable[[AnyPolicy | None], Environment],
    *,
    horizon: str | int | None,
    rho: str | float | None,
    seed: str | int | None,
    **options: str | float | None,
) -> Chosen:
    """Return what to play, by a policy's name and values, or by a protocol file, whose values may only be repeated.

    `place` makes the environment; it is handed the policy of a protocol. `options` are those of `OPTIONS`.
    """
    found = None if is_protocol(policy) else place(None)
    values = {"horizon": horizon, "rho": rho, "seed": seed, **options}
    given = {name: typed(name, value) for name, value in values.items()}
    if found is None:
        return _by_protocol(Protocol.load(policy), place, given)
    if given["horizon"] is None:
        raise InvalidArgument("horizon", "nothing", "an integer, such as 1e8")
    if given["rho"] is None:
        raise InvalidArgument("rho", "nothing", "a number between 0 and 1, both excluded")
    length, share, own = given["horizon"], given["rho"], {name: given[name] for name in options}
    made = build_policy(policy, arms=len(found.means), horizon=length, rho=share, environment=found, **own)
    return Chosen(made, found, length, share, given["seed"] or 0)


def chosen_blank(policy: str, spec: ProblemSpec, **values: Any) -> Chosen:
    """Return a policy and a kind of problem without an instance; features are only for policies that use them."""
    found = chosen(policy, spec.blank, **values)
    if isinstance(found.environment, LinearEnvironment) and not isinstance(found.policy, Acting):
        name = next(name for name in _NAMED if getattr(spec, name) is not None)
        allowed = f"none, because {found.policy.name} is for arms without features"
        raise InvalidArgument(name, getattr(spec, name), allowed)
    return found


def _by_protocol(protocol: Protocol, place: Callable[[AnyPolicy | None], Environment], given: dict[str, Any]) -> Chosen:
    """Return what to play by a protocol; refuse values that contradict it."""
    own: dict[str, Any] = {"seed": protocol.seed, "horizon": protocol.horizon, "rho": float(protocol.rho)}
    for name, read in OPTIONS.items():
        if protocol.settings.get(name) not in (None, ""):  # a policy that can do without writes nothing
            own[name] = read(protocol.settings[name], name)
    for name in given:
        if given[name] is not None and given[name] != own.get(name):
            allowed = f"{own[name]}, the protocol's own, or none" if name in own else "none: the protocol has none"
            raise InvalidArgument(name, given[name], allowed)
    policy = policy_of(protocol)
    return Chosen(policy, place(policy), protocol.horizon, float(protocol.rho), protocol.seed)
