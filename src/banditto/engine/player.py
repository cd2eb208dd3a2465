"""A run, checked before anything is played, and its player: one for each kind of policy, chosen once.

A run is one policy on one environment with one pair of seeds. Nobody but `player_of` asks which kind a policy is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from banditto.chance.coins import LARGEST_SEED, Coins
from banditto.chance.noise import Noise, derived_noise_seed
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.core.horizons import LONGEST_HORIZON, LONGEST_ROUND_HORIZON, checked_arms, checked_horizon
from banditto.engine.backend import Backend, check_machine
from banditto.engine.block_sizes import is_infinite
from banditto.engine.pair_counts import PairCounts
from banditto.policies.policy import Acting, AnyPolicy, PlacedPolicy, Policy, RoundPolicy
from banditto.problems.environment import Environment, LinearEnvironment

_EXAMPLES = {
    "policy": "a policy object, such as RandomThreshold(arms=3, horizon=10**8, rho=0.1)",
    "environment": "an environment object, such as Bernoulli([0.9, 0.8, 0.7])",
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy on one environment with one pair of seeds: what is sent to workers."""

    policy: AnyPolicy
    environment: Environment
    horizon: int
    seed: int
    noise_seed: int
    backend: Backend = "numpy"


def run_of(
    policy: AnyPolicy,
    environment: Environment,
    *,
    seed: int,
    noise_seed: int | None,
    horizon: int | None,
    backend: Backend = "numpy",
) -> Run:
    """Check a run and make it: a replicable policy brings its own horizon, a baseline needs one."""
    for value, argument, needed in ((policy, "policy", "check_rewards"), (environment, "environment", "means")):
        if isinstance(value, type) or not hasattr(value, needed):
            raise InvalidArgument(argument, value, f"{_EXAMPLES[argument]}")
    arms = len(environment.means)
    # averages of a log may exceed a promised rate by chance
    means = () if getattr(environment, "observed", False) else environment.means
    policy.check_rewards(environment.rewards, means)
    _check_actions(policy, environment)
    if isinstance(policy, RoundPolicy):
        horizon = _round_horizon(policy, horizon, arms)
    elif arms and policy.arms != arms:
        raise InvalidArgument("environment", f"{arms} arms", f"{policy.arms} arms, as the policy has")
    elif horizon is not None and integer(horizon, "horizon", 1, LONGEST_HORIZON) != policy.horizon:
        raise InvalidArgument("horizon", horizon, f"{policy.horizon}, the policy's own, or none")
    else:
        horizon = policy.horizon
    if isinstance(policy, Policy):
        _check_largest_batch(policy, environment)
    seed = integer(seed, "seed", 0, LARGEST_SEED)
    if noise_seed is None:
        noise_seed = derived_noise_seed(seed)
    noise_seed = integer(noise_seed, "noise_seed", 0, LARGEST_SEED)
    check_machine(backend, policy, environment)
    return Run(
        policy=policy, environment=environment, horizon=horizon, seed=seed, noise_seed=noise_seed, backend=backend
    )


def _round_horizon(policy: RoundPolicy, horizon: int | None, arms: int) -> int:
    if horizon is None:
        raise InvalidArgument("horizon", None, f"a horizon, which {policy.name} does not have itself")
    return checked_horizon(horizon, checked_arms(arms), LONGEST_ROUND_HORIZON)


def _check_actions(policy: AnyPolicy, environment: Environment) -> None:
    """A linear policy needs an environment with its actions, and infinitely many actions a policy that can cope."""
    if isinstance(policy, Acting):
        _check_acting(policy, environment)
    if is_infinite(environment) and not isinstance(policy, PlacedPolicy):
        raise InvalidArgument("policy", policy.name, "one for infinite action sets, such as certified-linear")


def _check_acting(policy: Acting, environment: Environment) -> None:
    if isinstance(environment, LinearEnvironment):
        policy.check_actions(environment.actions, environment.centre)
    elif isinstance(policy, Policy):
        raise InvalidArgument("environment", environment.name, f"a linear environment, which {policy.name} is for")


def _check_largest_batch(policy: Policy[Any], environment: Environment) -> None:
    """Refuse before the first batch what the environment would refuse at a later one."""
    if environment.largest_count >= policy.horizon:
        return
    batches = policy.describe().to_dict()["batches"]
    most = max((int(batch["pulls per arm"]) for batch in batches), default=0)
    if most > environment.largest_count:
        allowed = f"at most {environment.largest_count:g} pulls of an arm in one batch; bernoulli takes any number"
        raise InvalidArgument("environment", f"{environment.name} with batches of {most} pulls of an arm", allowed)


Unit = Literal["batch", "round"]


class Watched(NamedTuple):
    """One execution as somebody looks at it: the arms of chosen rounds, the sequence's digest, how many arms it has."""

    pulled: IntArray  # (N,)
    digest: str
    arms: int


Batch = tuple[IntArray, FloatArray]  # pulls (R, slot), and what one pull of each slot loses (R or 1, slot)


class Followed(Protocol):
    """Executions that somebody follows batch by batch, of arms or of an infinite set."""

    @property
    def regret(self) -> FloatArray:
        """What each replicate has lost so far; shape (R,)."""

    def batches(self) -> Iterator[Batch]:
        """Play to the end; yield each batch as it is played."""


class Player(Protocol):
    """What plays the pairs of one run, whatever kind of policy it has."""

    @property
    def unit(self) -> Unit:
        """What the policy decides once in: a batch or a round."""

    @property
    def block_size(self) -> int:
        """How many pairs make one unit of work."""

    def play_block(self, start: int, keep: int) -> PairCounts:
        """Play pairs `start` to `start + keep - 1`, all in one block, and count them."""

    def follow(self, coins: Coins, noise: Noise) -> Followed:
        """Make executions with these coins and this noise, to be followed batch by batch."""

    def watch(self, pair: int, rounds: IntArray) -> tuple[Watched, Watched]:
        """Play one pair, and look at both sides in these rounds (counted from 0, ascending)."""

    def regrets_at(self, pairs: int, pulls: IntArray) -> FloatArray:
        """Regret of the executions of so many pairs, or of fewer if that suffices, after each of `pulls` (ascending).

        The shape is (executions, N).
        """

    def count_differing(self, group: int, size: int) -> int:
        """Count how many of the `size` pairs of a group differ, as cheaply as it can be done.

        Groups may have any size, so that a search can look at hundreds of instances with few pairs each. No result
        that is reported comes from here.
        """


def player_of(run: Run) -> Player:
    """Choose the player for a run's policy and environment."""
    policy = run.policy
    if isinstance(policy, RoundPolicy):
        from banditto.engine.rounds import RoundPlayer  # compiled code is loaded only where it is used

        return RoundPlayer(run, policy)
    if is_infinite(run.environment) and isinstance(policy, PlacedPolicy):
        from banditto.engine.infinite import InfinitePlayer

        return InfinitePlayer(run, policy, run.environment)
    from banditto.engine.batched import BatchedPlayer

    return BatchedPlayer(run, policy)
