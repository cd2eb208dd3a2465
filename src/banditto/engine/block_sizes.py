"""How many pairs make a block: the unit of work, and for batched policies a part of the noise's address."""

from __future__ import annotations

from typing import TypeGuard

from banditto.core.horizons import LONGEST_HORIZON
from banditto.engine.backend import Backend
from banditto.problems.environment import Environment, LinearEnvironment

# FROZEN(v1): sizes of blocks are part of the noise's address, so that other sizes would give other rewards
PAIRS_PER_BLOCK = 2048  # of batched policies
PAIRS_PER_LINEAR_BLOCK = 128  # the same with features, where each active set may need a design of its own
PAIRS_PER_DEVICE_BLOCK = 1 << 22  # the same on a GPU, which needs that many to be busy
MOST_ON_DEVICE = 1 << 26  # arms times pairs there: half a gigabyte for each array of a block
PAIRS_PER_SLOW_BLOCK = 16  # the same where every single reward is drawn and a block must not take for ever
PAIRS_PER_ROUND_BLOCK = 4  # of policies that choose round by round; no result depends on it


def pairs_per_block(environment: Environment, backend: Backend = "numpy") -> int:
    """Return how many pairs of a batched policy make a block: part of the noise's address."""
    if backend != "numpy":
        most = MOST_ON_DEVICE // len(environment.means)
        return min(PAIRS_PER_DEVICE_BLOCK, 1 << (most.bit_length() - 1))
    if environment.largest_count < LONGEST_HORIZON or is_infinite(environment):
        return PAIRS_PER_SLOW_BLOCK
    return PAIRS_PER_LINEAR_BLOCK if _is_linear(environment) else PAIRS_PER_BLOCK


def is_infinite(environment: Environment) -> TypeGuard[LinearEnvironment]:
    """Return whether there are infinitely many actions, so that a policy says which of them it pulls."""
    return _is_linear(environment) and not environment.means


def _is_linear(environment: Environment) -> bool:
    """Return whether the environment is linear; `isinstance` would ask for every member, which is slow per block."""
    return hasattr(environment, "draw_at")
