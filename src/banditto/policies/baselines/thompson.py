"""Thompson sampling with Beta posteriors.

Paper    Thompson 1933; Agrawal and Goyal 2012, "Analysis of Thompson sampling for the multi-armed bandit problem",
         Algorithm 1 (rewards 0 or 1).
Departs  - Posterior samples are coins, which a pair shares: (round, arm) has two words of its own, one for each gamma
           draw, and what a rejected attempt takes comes from a stream that such a word begins (`gamma_samples`), so
           that nothing else moves. Version 1 drew other samples of the same laws.
         - A reward strictly between 0 and 1 counts as that fraction of a success (the paper's Algorithm 2 would
           toss a coin for it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from banditto.chance.compiling import compiled
from banditto.chance.gamma_samples import NUMBERS, draw, prepare
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.policies.policy import Kernel, Record


@dataclass(frozen=True, kw_only=True)
class Thompson(WithProtocol):
    """A baseline that plays the arm with the largest sample from its Beta posterior.

    Thompson 1933; Agrawal, Goyal 2012. Rewards must be in [0, 1].

    Args:
        successes: The prior of each mean is Beta(`successes`, `failures`). At least 1, default 1.
        failures: The other shape of the prior. At least 1, default 1: a uniform prior.

    Examples:
        >>> Thompson(successes=3, failures=2).parameters(arms=2, horizon=1000).tolist()
        [3.0, 2.0]
    """

    successes: float = 1.0
    failures: float = 1.0

    name: ClassVar[str] = "thompson"
    decision_version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        for field in ("successes", "failures"):
            allowed = "a finite number of at least 1"
            value = real(getattr(self, field), field, allowed)
            if value < 1.0:
                raise InvalidArgument(field, value, allowed)
            object.__setattr__(self, field, value)

    @classmethod
    def made_for(cls, rewards: Rewards, arms: int, horizon: int) -> Thompson:
        """Return the policy with a uniform prior, whatever the rewards."""
        return cls()

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> Thompson:
        """Return the policy that a protocol describes, with its settings."""
        prior = {name: from_fraction(protocol.settings.get(name), name) for name in ("successes", "failures")}
        return cls(**prior)

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers that the kernel reads: the two parameters of the Beta prior."""
        return np.array([self.successes, self.failures])

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of an arm by posterior samples."""
        return choose

    def memory(self, arms: int) -> int:
        """Return how many numbers the kernel keeps: the arm pulled last, and those of two gamma draws for each arm."""
        return 1 + NUMBERS * 2 * arms

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Refuse rewards outside [0, 1], for which there are no Beta posteriors."""
        if rewards.kind != "bounded":
            raise InvalidArgument("environment", rewards, "rewards in [0, 1], for Beta posteriors")

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose: the prior."""
        return {"successes": fraction(self.successes), "failures": fraction(self.failures)}

    def resolved(self) -> Mapping[str, Plain]:
        """Return an empty mapping: the settings say all."""
        return {}


@compiled
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the arm with the largest posterior sample X / (X + Y), X and Y gamma draws, after `played` rounds."""
    pulls, sums, memory = record[0], record[1], record[4]
    arms = pulls.size
    numbers = memory[1:].reshape(NUMBERS, 2 * arms)  # first the X of all arms, then their Y
    last = int(memory[0]) - 1  # the arm pulled last, -1 before the first round
    for arm in range(max(last, 0), last + 1 if last >= 0 else arms):  # all posteriors, then the one that changed
        prepare(parameters[0] + sums[arm], numbers, arm)
        prepare(parameters[1] + pulls[arm] - sums[arm], numbers, arms + arm)
    draw(numbers, coin_key, 2 * arms * played)
    samples = numbers[2]
    for arm in range(arms):
        samples[arm] = samples[arm] / (samples[arm] + samples[arms + arm])
    # asked first whether the arm stays, as it mostly does: the processor foresees that and goes on with the next round
    if last >= 0 and count_from(samples[:arms], samples[last]) == 1:
        return last
    best = 0
    for arm in range(1, arms):
        if samples[arm] > samples[best]:
            best = arm
    memory[0] = best + 1
    return best


@compiled
def count_from(samples: FloatArray, least: float) -> int:
    """Return how many samples are at least `least`."""
    count = 0
    for sample in samples:
        count += sample >= least
    return count
