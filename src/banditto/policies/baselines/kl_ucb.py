"""KL-UCB: the largest mean that an arm's rewards do not contradict.

Paper    Garivier and Cappe 2011, "The KL-UCB algorithm for bounded stochastic bandits and beyond", Algorithm 1 with
         c = 0, as the paper recommends for use.
Symbols  p: average, n: pulls, t: round, q: the bound, d = log(t) / n, kl: divergence of Bernoulli laws
Departs  - For rewards in [0, 1] the divergence is Bernoulli's, for others that of normal laws, whose bound is
           p + sigma sqrt(2 d).
         - Only the most pulled arm's bound is solved for at first; another arm's is larger than a number b exactly if
           n kl(p, b) < log(t), which takes no solving. Ties go to the lowest index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import RewardKind, Rewards
from banditto.policies.policy import Kernel, Record


@dataclass(frozen=True, kw_only=True)
class KLUCB(WithProtocol):
    """A baseline that plays each arm once, then the largest q with `n kl(mean, q) <= log(t)` (Garivier, Cappé 2011).

    Args:
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        rewards: "bounded" for Bernoulli's divergence, "gaussian" or "subgaussian" for that of normal laws. Default:
            "bounded" if sigma is 1/2, else "subgaussian".

    Examples:
        >>> KLUCB().rewards, KLUCB(sigma=2.0).rewards
        ('bounded', 'subgaussian')
    """

    sigma: float = 0.5
    rewards: RewardKind | None = None

    name: ClassVar[str] = "kl-ucb"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        kind, sigma, _ = Rewards.of(self.rewards, self.sigma)
        object.__setattr__(self, "rewards", kind)
        object.__setattr__(self, "sigma", sigma)

    @classmethod
    def made_for(cls, rewards: Rewards, arms: int, horizon: int) -> KLUCB:
        """Return the policy with the divergence that the rewards call for."""
        return cls(rewards=rewards.kind, sigma=rewards.sigma)

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> KLUCB:
        """Return the policy that a protocol describes, with its settings."""
        kind = protocol.settings.get("rewards")
        known = Rewards.of(str(kind), from_fraction(protocol.settings.get("sigma"), "sigma"))
        return cls(rewards=known.kind, sigma=known.sigma)

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers that the kernel reads: 1 for Bernoulli's divergence, else 0, and 2 sigma^2."""
        return np.array([float(self.rewards == "bounded"), 2.0 * self.sigma**2])

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of an arm by upper bounds."""
        return choose

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Refuse rewards outside [0, 1] if the divergence is Bernoulli's."""
        if self.rewards == "bounded" and rewards.kind != "bounded":
            raise InvalidArgument("environment", rewards, "rewards in [0, 1], for the Bernoulli divergence")

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose: rewards and sigma."""
        return {"rewards": str(self.rewards), "sigma": fraction(self.sigma)}

    def resolved(self) -> Mapping[str, Plain]:
        """Return an empty mapping: the settings say all."""
        return {}


@njit(cache=True, forceinline=True, error_model="numpy")
def divergence(p: float, q: float) -> float:
    """Return kl(p, q), the divergence of two Bernoulli laws, for 0 < q < 1."""
    left = p * math.log(p / q) if p > 0.0 else 0.0
    right = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return left + right


@njit(cache=True, error_model="numpy")
def bernoulli_bound(p: float, d: float) -> float:
    """Return the largest q in [p, 1] with kl(p, q) <= d, by Newton's method between p and an upper bound."""
    if p >= 1.0:
        return 1.0
    if p <= 0.0:
        return -math.expm1(-d)
    entropy = p * math.log(p) + (1.0 - p) * math.log(1.0 - p)
    # Pinsker's bound, and that of kl(p, q) >= -H(p) - (1 - p) log(1 - q)
    most = min(p + math.sqrt(d / 2.0), -math.expm1((entropy - d) / (1.0 - p)))
    if most >= 1.0:
        return 1.0
    q = min(p + math.sqrt(2.0 * d * p * (1.0 - p)), most)  # kl is (q - p)^2 / (2 p (1 - p)) for small d
    for _ in range(50):
        if q <= p:
            return p
        excess = entropy - p * math.log(q) - (1.0 - p) * math.log(1.0 - q) - d
        step = excess * q * (1.0 - q) / (q - p)
        q = min(max(q - step, p), most)
        if abs(step) <= 1e-14:
            break
    return q


@njit(cache=True, forceinline=True, error_model="numpy")
def bound_of(average: float, share: float, log_time: float, parameters: FloatArray) -> float:
    """Return an arm's upper confidence bound, from its average, 1/n for its n pulls, and log(t)."""
    if parameters[0] > 0.0:
        return bernoulli_bound(average, log_time * share)
    return average + math.sqrt(parameters[1] * log_time * share)


@njit(cache=True, forceinline=True, error_model="numpy")
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the arm for the next round after `played` rounds; KL-UCB tosses no coins."""
    pulls, averages, shares = record[0], record[2], record[3]
    if played < averages.size:
        return played
    log_time = math.log(played + 1.0)
    best = 0
    for arm in range(1, pulls.size):
        if pulls[arm] > pulls[best]:
            best = arm
    bound = bound_of(averages[best], shares[best], log_time, parameters)
    for arm in range(pulls.size):
        if arm == best:
            continue
        if pulls[arm] == pulls[best] and averages[arm] == averages[best]:
            best = min(arm, best)
            continue
        behind = parameters[0] > 0.0 and averages[arm] < bound < 1.0
        if behind and pulls[arm] * divergence(averages[arm], bound) >= log_time:
            continue
        upper = bound_of(averages[arm], shares[arm], log_time, parameters)
        if upper > bound or (upper == bound and arm < best):
            best, bound = arm, upper
    return best
