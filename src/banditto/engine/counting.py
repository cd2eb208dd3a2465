"""How many of some pairs differ, and nothing else: what a search needs of an instance, as cheaply as it can be had.

Groups may have any size, so that hundreds of instances can be looked at with few pairs each. Their coins and noise have
seeds of their own; no result that is reported comes from here.
"""

from __future__ import annotations

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.errors import InvalidArgument
from banditto.engine import batched, infinite
from banditto.engine.pairs import Study, is_placed
from banditto.policies.policy import PlacedPolicy, RoundPolicy
from banditto.problems.environment import LinearEnvironment


def count_differing(study: Study, group: int, size: int) -> int:
    """How many of the `size` pairs of group number `group` differ."""
    policy, environment = study.policy, study.environment
    if isinstance(policy, RoundPolicy):
        raise InvalidArgument("policy", policy.name, "a policy that works in batches")
    coins = Coins(study.seed, group * size, size)
    noises = [Noise(study.noise_seed, side, group) for side in (0, 1)]
    apart = np.zeros(size, dtype=np.bool_)
    if is_placed(environment) and isinstance(policy, PlacedPolicy):
        assert isinstance(environment, LinearEnvironment)
        left, right = (infinite.Execution(policy, environment, coins, noise) for noise in noises)
        while (here := left.advance()) is not None and (there := right.advance()) is not None:
            for row in np.flatnonzero(~apart).tolist():
                apart[row] = infinite.row_of(here, row) != infinite.row_of(there, row)
        return int(apart.sum())
    one, two = (batched.Execution(policy, environment, coins, noise) for noise in noises)
    # a side that is done before the other has pulled more in some batch, where that was seen
    while (plan := one.advance()) is not None and (other := two.advance()) is not None and not apart.all():
        apart |= np.any(plan != other, axis=1)
    return int(apart.sum())
