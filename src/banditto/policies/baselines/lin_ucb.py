"""LinUCB: the arm with the largest upper confidence bound of ridge regression.

Paper    Abbasi-Yadkori, Pal and Szepesvari 2011, "Improved algorithms for linear stochastic bandits", Figure 1 (OFUL),
         with the ellipsoid of Theorem 2.
Symbols  theta: what is estimated, V: lambda + sum of a a' over the rounds, beta: radius of the ellipsoid
Departs  - delta = 1/T, as regret calls for. A `centre` is subtracted from every reward. Ties go to the lowest index.
         - V = R'R is updated after every round and made anew from the counts of pulls now and then, so that rounding
           errors do not build up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numba import njit

from banditto.core.arrays import FloatArray
from banditto.core.rewards import Rewards
from banditto.geometry.actions.finite import FiniteActions
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
from banditto.policies.shared_linear.linear_policy import largest_parameter, usual_centre


@dataclass(frozen=True, kw_only=True)
class LinUCB(RidgeRegression):
    """A baseline that plays the largest `<a, estimate> + beta |a|`, in the norm of V^-1, by ridge regression.

    `beta = sigma sqrt(2 log(T) + log(det(V) / det(lambda))) + sqrt(lambda) bound` (Abbasi-Yadkori, Pál, Szepesvári
    2011).

    Args:
        actions: The features: a matrix with a row for each arm, or `FiniteActions`. No row is longer than 1.
        sigma: The scale of sigma-subgaussian rewards, 1e-6 to 1e6. Default 1/2, that of rewards in [0, 1].
        centre: What is subtracted from every reward. Default 1/2, for rewards in [0, 1].
        regularisation: lambda, the weight of the prior that theta is 0; 1e-6 to 1e6, default 1.
        bound: The largest possible length of theta, 1e-6 to 1e6. Default 1/2, for rewards in [0, 1].

    Examples:
        >>> policy = LinUCB(actions=[[1, 0], [0.6, 0.6], [0, 1]])
        >>> policy.arms, policy.bound
        (3, 0.5)
    """

    bound: float = 0.5

    name: ClassVar[str] = "lin-ucb"
    decision_version: ClassVar[int] = 1

    @classmethod
    def made_for_linear(cls, actions: FiniteActions, rewards: Rewards, horizon: int) -> Self:
        """Return the policy made for these rewards, with their sigma.

        Means of rewards in [0, 1] are `1/2 + <theta, a>`, with theta of length 1/2 at most.
        """
        centre = usual_centre(rewards)
        bound = largest_parameter(rewards, centre)
        return cls(actions=actions, sigma=rewards.sigma, centre=centre, bound=bound)

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers that the kernel reads; its own are p, q and r in beta = p sqrt(log(det(V)) + q) + r."""
        constant = 2.0 * math.log(horizon) - self.actions.dimension * math.log(self.regularisation)
        return self.problem(arms, (self.sigma, constant, math.sqrt(self.regularisation) * self.bound))

    def kernel(self) -> Kernel:
        """Return `choose`, compiled: the choice of an arm by upper bounds."""
        return choose


@njit(cache=True, forceinline=True, error_model="numpy")
def choose(record: Record, played: int, parameters: FloatArray, coin_key: np.uint64) -> int:
    """Return the arm for the next round after `played` rounds; LinUCB tosses no coins."""
    pulls, memory = record[0], record[4]
    features, dimension = features_of(parameters, pulls.size), int(parameters[0])
    vector, root = memory[2 : 2 + dimension], root_of(memory, dimension)
    squares = memory[2 + dimension + dimension * dimension :]
    if is_due(played):
        factorise(pulls, features, parameters[1], root)
        memory[1] = 0.0
        for k in range(dimension):
            memory[1] += 2.0 * math.log(root[k, k])
        for arm in range(pulls.size):
            vector[:] = features[arm]
            forward(root, vector)
            squares[arm] = inner(vector, vector)
    else:
        last = features[int(memory[0])]
        vector[:] = last
        forward(root, vector)
        backward(root, vector)
        growth = 1.0 + inner(last, vector)
        memory[1] += math.log(growth)
        for arm in range(pulls.size):
            shadow = inner(features[arm], vector)
            squares[arm] = max(squares[arm] - shadow * shadow / growth, 0.0)
        vector[:] = last
        update(root, vector)
    weigh(record, features, parameters[2], vector)
    forward(root, vector)
    backward(root, vector)
    radius = parameters[3] * math.sqrt(memory[1] + parameters[4]) + parameters[5]
    best, bound = 0, -np.inf
    for arm in range(pulls.size):
        upper = inner(features[arm], vector) + radius * math.sqrt(squares[arm])
        if upper > bound:
            best, bound = arm, upper
    memory[0] = best
    return best
