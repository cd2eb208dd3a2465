"""Linear Thompson sampling: the best arm for a sample of theta.

Paper    Agrawal and Goyal 2013, "Thompson sampling for contextual bandits with linear payoffs", Algorithm 1.
Symbols  theta: what is estimated, V = R'R: lambda + sum of a a' over the rounds, b: sum of a (reward - centre)
Departs  - The paper's spread is sqrt(9 d log(t / delta)) times sigma, which its proof needs and which explores far too
           much: with `inflation` = 1 samples are from the posterior for normal rewards and a normal prior.
         - Samples are coins, looked up by (round, feature), which a pair shares. Ties go to the lowest index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from banditto.chance.splitmix import normal
from banditto.core.arrays import FloatArray
from banditto.policies.baselines.ridge import (
    RidgeRegression,
    backward,
    factorise,
    features_of,
    forward,
    inner,
    is_due,
    root_of,
    update,
    weigh,
)
from banditto.policies.policy import Kernel, Record


@dataclass(frozen=True, kw_only=True)
class LinThompson(RidgeRegression):
    """A baseline that plays the largest `<a, theta>` for a sample theta ~ `Normal(V^-1 b, (inflation sigma)^2 V^-1)`.

    Agrawal, Goyal 2013.

    Args:
        actions: The features: a matrix with a row for each arm, or `FiniteActions`. No row is longer than 1.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        centre: What is subtracted from every reward. Default 1/2, for rewards in [0, 1].
        regularisation: lambda, the weight of the prior that theta is 0; 1e-6 to 1e6, default 1.
        inflation: The factor by which samples spread more than the posterior, 1e-6 to 1e6. Default 1.

    Examples:
        >>> policy = LinThompson(actions=[[1, 0], [0.6, 0.6], [0, 1]], inflation=2)
        >>> policy.arms, policy.inflation
        (3, 2.0)
    """

    inflation: float = 1.0

    name: ClassVar[str] = "lin-thompson"
    decision_version: ClassVar[int] = 1

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers that the kernel reads; the policy's own one is the spread of a sample."""
        return self.problem(arms, (self.inflation * self.sigma, 0.0, 0.0))

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of an arm by a sample of theta."""
        return choose


@njit(cache=True, forceinline=True, error_model="numpy")
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the best arm under a sample of theta, for the round after `played` rounds."""
    pulls, memory = record[0], record[4]
    features, dimension = features_of(parameters, pulls.size), int(parameters[0])
    vector, root = memory[2 : 2 + dimension], root_of(memory, dimension)
    if is_due(played):
        factorise(pulls, features, parameters[1], root)
    else:
        vector[:] = features[int(memory[0])]
        update(root, vector)
    # R^-1 (R'^-1 b + spread z) has the mean V^-1 b and the covariance spread^2 R^-1 R'^-1 = spread^2 V^-1
    weigh(record, features, parameters[2], vector)
    forward(root, vector)
    for index in range(dimension):
        vector[index] += parameters[3] * normal(coin_key, played * dimension + index)
    backward(root, vector)
    best, largest = 0, -np.inf
    for arm in range(pulls.size):
        value = inner(features[arm], vector)
        if value > largest:
            best, largest = arm, value
    memory[0] = best
    return best
