"""What a block of pairs is, and what is left of it when it has been run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from banditto.chance.coins import LARGEST_SEED
from banditto.chance.noise import derived_noise_seed
from banditto.core.arrays import FloatArray, IntArray, namespace
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.core.horizons import LONGEST_HORIZON, LONGEST_ROUND_HORIZON, checked_arms, checked_horizon
from banditto.engine.backend import Backend, check_machine
from banditto.policies.policy import Acting, AnyPolicy, PlacedPolicy, Policy, RoundPolicy
from banditto.problems.environment import Environment, LinearEnvironment

PAIRS_PER_BLOCK = 2048  # of batched policies; part of the noise's address: another size gives other rewards
PAIRS_PER_LINEAR_BLOCK = 128  # the same with features, where each active set may need a design of its own
PAIRS_PER_DEVICE_BLOCK = 1 << 22  # the same on a GPU, which needs that many to be busy
MOST_ON_DEVICE = 1 << 26  # arms times pairs there: half a gigabyte for each array of a block
PAIRS_PER_SLOW_BLOCK = 16  # the same where every single reward is drawn and a block must not take for ever
PAIRS_PER_ROUND_BLOCK = 4  # of per-round policies; a unit of work, on which no result depends


_EXAMPLES = {
    "policy": "a policy object, such as RandomThreshold(arms=3, horizon=10**8, rho=0.1)",
    "environment": "an environment object, such as Bernoulli([0.9, 0.8, 0.7])",
}


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is run: one policy on one environment with one pair of seeds. Sent to workers."""

    policy: AnyPolicy
    environment: Environment
    horizon: int
    seed: int
    noise_seed: int
    backend: Backend = "numpy"


def study_of(
    policy: AnyPolicy,
    environment: Environment,
    *,
    seed: int,
    noise_seed: int | None,
    horizon: int | None,
    backend: Backend = "numpy",
) -> Study:
    """A checked study: a replicable policy brings its own horizon, a baseline needs one."""
    for value, argument, needed in ((policy, "policy", "check_rewards"), (environment, "environment", "means")):
        if isinstance(value, type) or not hasattr(value, needed):
            raise InvalidArgument(argument, value, f"{_EXAMPLES[argument]}")
    arms = len(environment.means)
    policy.check_rewards(environment.rewards, environment.means)
    _check_actions(policy, environment)
    if isinstance(policy, RoundPolicy):
        if horizon is None:
            raise InvalidArgument("horizon", None, f"a horizon, which {policy.name} does not have itself")
        horizon = checked_horizon(horizon, checked_arms(arms), LONGEST_ROUND_HORIZON)
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
    return Study(
        policy=policy, environment=environment, horizon=horizon, seed=seed, noise_seed=noise_seed, backend=backend
    )


def is_placed(environment: Environment) -> bool:
    """Whether the environment's actions are infinitely many, so that plans say which of them they pull."""
    return _is_linear(environment) and not environment.means


def _is_linear(environment: Environment) -> bool:
    """As `isinstance` with the protocol says, but asked for every block: that would look at every member."""
    return hasattr(environment, "draw_at")


def _check_actions(policy: AnyPolicy, environment: Environment) -> None:
    """A linear policy needs an environment with its actions, and infinitely many actions a policy that can cope."""
    if isinstance(policy, Acting):
        if isinstance(environment, LinearEnvironment):
            policy.check_actions(environment.actions, environment.centre)
        elif isinstance(policy, Policy):
            allowed = f"a linear environment, which {policy.name} is for"
            raise InvalidArgument("environment", environment.name, allowed)
    if is_placed(environment) and not isinstance(policy, PlacedPolicy):
        raise InvalidArgument("policy", policy.name, "one for infinite action sets, such as certified-linear")


def pairs_per_block(environment: Environment, backend: Backend = "numpy") -> int:
    """How many pairs of a batched policy make a block: part of the noise's address."""
    if backend != "numpy":
        most = MOST_ON_DEVICE // len(environment.means)
        return min(PAIRS_PER_DEVICE_BLOCK, 1 << (most.bit_length() - 1))
    if environment.largest_count < LONGEST_HORIZON or is_placed(environment):
        return PAIRS_PER_SLOW_BLOCK
    return PAIRS_PER_LINEAR_BLOCK if _is_linear(environment) else PAIRS_PER_BLOCK


def _check_largest_batch(policy: Policy[Any], environment: Environment) -> None:
    """Refuse before the first batch what the environment would refuse at a later one."""
    if environment.largest_count >= policy.horizon:
        return
    batches = policy.describe().to_dict()["batches"]
    most = max((int(batch["pulls per arm"]) for batch in batches), default=0)
    if most > environment.largest_count:
        allowed = f"at most {environment.largest_count:g} pulls of an arm in one batch; bernoulli takes any number"
        raise InvalidArgument("environment", f"{environment.name} with batches of {most} pulls of an arm", allowed)


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Count, mean, sum of squared deviations and maximum; two of them merge exactly as one long list would."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    largest: float = -math.inf

    @classmethod
    def of(cls, values: FloatArray) -> Moments:
        """The moments of a non-empty array."""
        xp = namespace(values)
        mean = float(xp.mean(values))
        squares = float(xp.sum((values - mean) ** 2))
        return cls(count=values.shape[0], mean=mean, squares=squares, largest=float(xp.max(values)))

    def plus(self, other: Moments) -> Moments:
        """Both lists' moments (Chan, Golub and LeVeque 1979); the order of blocks is fixed by the caller."""
        count = self.count + other.count
        shift = other.mean - self.mean
        return Moments(
            count=count,
            mean=self.mean + shift * other.count / count,
            squares=self.squares + other.squares + shift * shift * self.count * other.count / count,
            largest=max(self.largest, other.largest),
        )

    @property
    def standard_error(self) -> float:
        """Of the mean; infinite for a single value."""
        if self.count < 2:
            return math.inf
        return math.sqrt(self.squares / (self.count - 1) / self.count)


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """The result of some pairs: small, whatever the horizon and the number of pairs."""

    pairs: int = 0
    mismatches: int = 0
    first_divergence: Counter[int] = field(default_factory=Counter)  # by batch, or by round
    first_pull: Counter[int] = field(default_factory=Counter)  # by the number of the first pull that differs
    regret: Moments = field(default_factory=Moments)

    @classmethod
    def of(cls, diverged: IntArray, pulls: IntArray, regrets: tuple[FloatArray, FloatArray], keep: int) -> PairCounts:
        """From the batch and the pull of first divergence of each pair (0: none) and both sides' regrets."""
        rows = namespace(diverged).nonzero(diverged[:keep])[0]
        return cls(
            pairs=keep,
            mismatches=rows.shape[0],
            first_divergence=_counted(diverged[rows]),
            first_pull=_counted(pulls[rows]),
            # the two executions of a pair share their coins, so their average is the independent unit
            regret=Moments.of((regrets[0][:keep] + regrets[1][:keep]) / 2.0),
        )

    def plus(self, other: PairCounts) -> PairCounts:
        """Both parts together."""
        return PairCounts(
            pairs=self.pairs + other.pairs,
            mismatches=self.mismatches + other.mismatches,
            first_divergence=self.first_divergence + other.first_divergence,
            first_pull=self.first_pull + other.first_pull,
            regret=self.regret.plus(other.regret),
        )


def _counted(values: IntArray) -> Counter[int]:
    """How often each value occurs."""
    found, numbers = namespace(values).unique_counts(values)
    return Counter(dict(zip(found.tolist(), numbers.tolist(), strict=True)))


def gaps(means: tuple[float, ...]) -> list[float]:
    """What each arm loses per pull."""
    best = max(means)
    return [best - mean for mean in means]


def pseudo_regret(pulls: IntArray, means: tuple[float, ...]) -> FloatArray:
    """Expected loss of the pulls (R, K), added up arm by arm in a fixed order; shape (R,)."""
    regret: FloatArray = namespace(pulls).zeros(pulls.shape[0])
    for arm, gap in enumerate(gaps(means)):
        if gap > 0.0:
            regret += gap * pulls[:, arm]
    return regret
