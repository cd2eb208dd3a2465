"""Where array operations are done: on this machine with NumPy, or on a GPU with CuPy.

Policies do not know: they work on whatever arrays their state holds. A machine says how a state, coins and noise come
to be there. Coins are the same on every machine, bit for bit; noise has the same distribution.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Literal, Protocol, get_args

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.errors import InvalidArgument
from banditto.policies.policy import Acting, AnyPolicy, BatchedPolicy
from banditto.problems.environment import Environment

Backend = Literal["numpy", "cupy"]


class Machine(Protocol):
    """The place where an execution runs: what makes its arrays, states, coins and noise."""

    @property
    def arrays(self) -> Any:
        """The module with the functions of the array standard."""

    def start(self, policy: BatchedPolicy[Any], replicates: int) -> Any:
        """Return the policy's state before the first batch, in arrays of this machine."""

    def coins(self, seed: int, start: int, count: int) -> Coins:
        """Return coins that are looked up on this machine."""

    def noise(self, seed: int, side: int, block: int) -> Noise:
        """Return noise that is drawn on this machine."""

    def host(self, array: Any) -> Any:
        """Return an array of this machine as a NumPy array."""


class Host:
    """This machine, with NumPy's arrays."""

    arrays: ModuleType = np

    def start(self, policy: BatchedPolicy[Any], replicates: int) -> Any:
        """Return the policy's state before the first batch."""
        return policy.init(replicates)

    def coins(self, seed: int, start: int, count: int) -> Coins:
        """Return coins in NumPy arrays."""
        return Coins(seed, start, count)

    def noise(self, seed: int, side: int, block: int) -> Noise:
        """Return noise in NumPy arrays."""
        return Noise(seed, side, block)

    def host(self, array: Any) -> Any:
        """Return the array as it is: it is NumPy's already."""
        return array


HOST = Host()


def machine_of(backend: Backend) -> Machine:
    """Return the machine of a backend; CuPy is loaded only where it is used."""
    if backend == "numpy":
        return HOST
    from banditto.engine.gpu import device

    return device()


def check_machine(backend: Backend, policy: AnyPolicy, environment: Environment) -> None:
    """Refuse what a backend cannot do, before anything is run."""
    if backend not in get_args(Backend):
        raise InvalidArgument("backend", backend, "'numpy' or 'cupy'")
    if backend != "numpy":
        _check_gpu(backend, policy, environment)


def _check_gpu(backend: Backend, policy: AnyPolicy, environment: Environment) -> None:
    """Refuse policies and environments that a GPU cannot run, and a machine without a GPU."""
    if not isinstance(policy, BatchedPolicy):
        raise InvalidArgument("policy", policy.name, "a policy that works in batches, which a GPU can run")
    if isinstance(policy, Acting):
        raise InvalidArgument("policy", policy.name, "one without features: designs are made on the host")
    if environment.name not in ("bernoulli", "gaussian", "discrete"):
        raise InvalidArgument("environment", environment.name, "bernoulli, gaussian or discrete on a GPU")
    machine_of(backend)
