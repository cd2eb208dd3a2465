"""What would happen if we ran it again: a certificate of the policy on arms that pay what was estimated, and a pair."""

from __future__ import annotations

from typing import Any, NamedTuple

from banditto.live.registration import Registration
from banditto.policies.policy import PlacedPolicy
from banditto.problems.catalogue import rewards_of

PAIRS = 2048  # one block of the engine
_SEED = 0


class Again(NamedTuple):
    """The result of simulated pairs of runs on the current estimates: how often a second run would agree."""

    pairs: int
    differ: int
    agree: float
    low: float
    high: float
    bound: float | None
    means: tuple[float, ...]
    pair: Any  # a `PairView`
    note: str


def can_run_again(registration: Registration) -> bool:
    """Say whether a policy can be simulated on arms with given means; one with features cannot."""
    return not isinstance(registration.policy(), PlacedPolicy)


def run_again(registration_text: str, means: tuple[float, ...]) -> Again:
    """Simulate pairs of runs on arms with these means, in the policy's units; return how often they agree."""
    import banditto as bd

    registration = Registration.from_json(registration_text)
    policy = registration.policy()
    rewards = rewards_of(policy)
    if rewards.kind == "gaussian":
        environment: Any = bd.Gaussian(means, sigma=rewards.sigma)
        note = f"Rewards are simulated as normal variables with a standard deviation of {rewards.sigma:g}."
    else:
        environment = bd.Bernoulli([min(1.0, max(0.0, mean)) for mean in means])
        note = "Rewards are simulated as 0 or 1, the noisiest case."
    found = bd.certify(policy, environment, pairs=PAIRS, seed=_SEED)
    pair = bd.watch_pair(policy, environment, seed=_SEED)
    return Again(
        pairs=found.pairs,
        differ=found.mismatches,
        agree=found.agreement,
        low=found.interval[0],
        high=found.interval[1],
        bound=found.bound,
        means=tuple(means),
        pair=pair,
        note=note,
    )
