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
from banditto.policies.plain_policy import PlainPolicy
from banditto.policies.policy import Acting, AnyPolicy, PlacedPolicy, Policy, RoundPolicy
from banditto.policies.recognising import check_policy
from banditto.problems.environment import Environment, LinearEnvironment


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy on one environment with one pair of seeds: everything that a worker needs."""

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
    """Check a run and return it: a replicable policy brings its own horizon, a baseline needs one."""
    check_policy(policy)
    if isinstance(environment, type) or not hasattr(environment, "means"):
        raise InvalidArgument("environment", environment, "an environment object, such as Bernoulli([0.9, 0.8, 0.7])")
    arms = len(environment.means)
    # averages of a log may exceed a promised rate by chance
    means = () if getattr(environment, "observed", False) else environment.means
    policy.check_rewards(environment.rewards, means)
    _check_actions(policy, environment)
    if isinstance(policy, RoundPolicy | PlainPolicy):
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
    run = Run(
        policy=policy, environment=environment, horizon=horizon, seed=seed, noise_seed=noise_seed, backend=backend
    )
    if isinstance(policy, PlainPolicy):
        own = policy.arguments.get("arms", arms)
        if isinstance(own, int) and own != arms:
            raise InvalidArgument("environment", f"{arms} arms", f"{own} arms, as {policy.name} was made for")
        from banditto.engine.fresh_starts import check_fresh_starts  # loads compiled code, for the rewards

        check_fresh_starts(run, policy)
    return run


def _round_horizon(policy: RoundPolicy | PlainPolicy, horizon: int | None, arms: int) -> int:
    if horizon is None:
        raise InvalidArgument("horizon", None, f"a horizon, which {policy.name} does not have itself")
    return checked_horizon(horizon, checked_arms(arms), LONGEST_ROUND_HORIZON)


def _check_actions(policy: AnyPolicy, environment: Environment) -> None:
    """Refuse a linear policy on other actions, and infinitely many actions for a policy that needs a list."""
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
    """Refuse at once a batch that is larger than the environment can draw, instead of when it comes up."""
    if environment.largest_count >= policy.horizon:
        return
    batches = policy.describe().to_dict()["batches"]
    most = max((int(batch["pulls per arm"]) for batch in batches), default=0)
    if most > environment.largest_count:
        allowed = f"at most {environment.largest_count:g} pulls of an arm in one batch; bernoulli takes any number"
        raise InvalidArgument("environment", f"{environment.name} with batches of {most} pulls of an arm", allowed)


Unit = Literal["batch", "round"]


class Watched(NamedTuple):
    """One execution as it is shown: the arms of chosen rounds, the sequence's digest, how many arms it has."""

    pulled: IntArray  # (N,)
    digest: str
    arms: int


Batch = tuple[IntArray, FloatArray]  # pulls (R, slot), and what one pull of each slot loses (R or 1, slot)


class Followed(Protocol):
    """Executions that are followed batch by batch, of arms or of an infinite set."""

    @property
    def regret(self) -> FloatArray:
        """The pseudo-regret of each replicate so far; shape (R,)."""

    def batches(self) -> Iterator[Batch]:
        """Play to the end; yield each batch as it is played: its pulls, and what a pull loses."""


class Player(Protocol):
    """What plays the pairs of one run, whatever kind of policy it has."""

    @property
    def unit(self) -> Unit:
        """What the policy decides in: batches or rounds."""

    @property
    def block_size(self) -> int:
        """The number of pairs in one unit of work."""

    def play_block(self, start: int, keep: int) -> PairCounts:
        """Play pairs `start` to `start + keep - 1`, all in one block, and return their counts."""

    def follow(self, coins: Coins, noise: Noise) -> Followed:
        """Return executions with these coins and this noise, to be followed batch by batch."""

    def watch(self, pair: int, rounds: IntArray) -> tuple[Watched, Watched]:
        """Play one pair, and return what both sides did in these rounds (counted from 0, ascending)."""

    def regrets_at(self, pairs: int, pulls: IntArray) -> FloatArray:
        """Return the regret after each of `pulls` (ascending), of both executions of so many pairs, or of fewer pairs.

        The shape is (executions, N).
        """

    def count_differing(self, group: int, size: int) -> int:
        """Return how many of the `size` pairs of a group differ, as cheaply as it can be done.

        Groups may have any size, so that a search can look at hundreds of instances with few pairs each. No result
        that is reported comes from here.
        """


def player_of(run: Run) -> Player:
    """Return the player for a run's policy and environment."""
    policy = run.policy
    if isinstance(policy, RoundPolicy):
        from banditto.engine.rounds import RoundPlayer  # compiled code is loaded only where it is used

        return RoundPlayer(run, policy)
    if isinstance(policy, PlainPolicy):
        from banditto.engine.plain_rounds import PlainPlayer

        return PlainPlayer(run, policy)
    if is_infinite(run.environment) and isinstance(policy, PlacedPolicy):
        from banditto.engine.infinite import InfinitePlayer

        return InfinitePlayer(run, policy, run.environment)
    from banditto.engine.batched import BatchedPlayer

    return BatchedPlayer(run, policy)
