"""Thompson sampling with Beta posteriors.

Paper    Thompson 1933; Agrawal and Goyal 2012, "Analysis of Thompson sampling for the multi-armed bandit problem",
         Algorithm 1 (rewards 0 or 1).
Symbols  Beta(a, b) = X / (X + Y) with X ~ Gamma(a), Y ~ Gamma(b), each by Marsaglia and Tsang 2000: d = a - 1/3,
         c = 1 / sqrt(9 d).
Departs  Posterior samples are coins, which a pair shares: those of (round, arm) are words of a stream of their own,
         so that a rejected attempt in one execution moves nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from banditto.arrays import FloatArray
from banditto.counter import uniform, word
from banditto.errors import InvalidArgument
from banditto.exact import real
from banditto.policy import Kernel, Record
from banditto.protocol import Plain, Protocol, fraction, from_fraction
from banditto.rewards import Rewards

_HALF_STREAM = 1 << 32  # X reads the stream's words from 0, Y from here: neither can reach the other's


@dataclass(frozen=True, kw_only=True)
class Thompson:
    """Plays the arm whose posterior sample is largest; the prior of each mean is Beta(`successes`, `failures`)."""

    successes: float = 1.0
    failures: float = 1.0

    name: ClassVar[str] = "thompson"
    decision_version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for field in ("successes", "failures"):
            allowed = "a finite number of at least 1"
            value = real(getattr(self, field), field, allowed)
            if value < 1.0:
                raise InvalidArgument(field, value, allowed)
            object.__setattr__(self, field, value)

    @classmethod
    def made_for(cls, rewards: Rewards) -> Thompson:
        """With a uniform prior, whatever the rewards."""
        return cls()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> Thompson:
        """With a protocol's settings."""
        prior = {name: from_fraction(protocol.settings.get(name), name) for name in ("successes", "failures")}
        return cls(**prior)

    def parameters(self) -> FloatArray:
        """The prior."""
        return np.array([self.successes, self.failures])

    def kernel(self) -> Kernel:
        """The sampler, compiled."""
        return choose

    def check_rewards(self, rewards: Rewards) -> None:
        """Beta posteriors need rewards 0 or 1."""
        if rewards.kind != "bounded":
            raise InvalidArgument("environment", rewards, "rewards 0 or 1, for Beta posteriors")

    def settings(self) -> Mapping[str, Plain]:
        """What the user chose."""
        return {"successes": fraction(self.successes), "failures": fraction(self.failures)}

    def resolved(self) -> Mapping[str, Plain]:
        """Nothing beyond the settings."""
        return {}


@njit(cache=True, forceinline=True, error_model="numpy")
def gamma(shape: float, key: np.uint64, first: int) -> float:
    """A Gamma(shape) draw, shape >= 1, from the words of `key` from `first` on (Marsaglia and Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    index = first
    while True:
        # polar method (Marsaglia): one normal from a point in the unit disc
        x = 2.0 * uniform(key, index) - 1.0
        y = 2.0 * uniform(key, index + 1) - 1.0
        index += 2
        s = x * x + y * y
        if s >= 1.0:
            continue
        z = x * math.sqrt(-2.0 * math.log(s) / s)
        v = 1.0 + c * z
        if v <= 0.0:
            continue
        v = v * v * v
        u = uniform(key, index)
        index += 1
        squared = z * z
        if u < 1.0 - 0.0331 * squared * squared:
            return d * v
        if math.log(u) < 0.5 * squared + d * (1.0 - v + math.log(v)):
            return d * v


@njit(cache=True, forceinline=True, error_model="numpy")
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """The arm with the largest posterior sample in round `played`."""
    pulls, sums = record[0], record[1]
    best, largest = 0, -1.0
    for arm in range(pulls.size):
        key = word(coin_key, played * pulls.size + arm)
        x = gamma(parameters[0] + sums[arm], key, 0)
        y = gamma(parameters[1] + pulls[arm] - sums[arm], key, _HALF_STREAM)
        sample = x / (x + y)
        if sample > largest:
            best, largest = arm, sample
    return best
