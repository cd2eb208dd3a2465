"""Random numbers for whoever makes rewards: a generator for each pull, by its address."""

from __future__ import annotations

import numpy as np

from banditto.chance.coins import address_key


# FROZEN(v1): a selection that goes on from its store draws what it would have drawn without the break
def pull_generator(noise_seed: int, arm: int, index: int) -> np.random.Generator:
    """Return the generator of one pull of an arm, the same whenever it is asked for; no coin shares its address."""
    return np.random.Generator(np.random.Philox(key=address_key("banditto/pull/1", noise_seed, arm, index)))
