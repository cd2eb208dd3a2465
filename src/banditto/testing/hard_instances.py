"""Instances that are hard for a policy that tests gaps against a random threshold.

A gap far from every threshold is decided alike by any two executions and shows nothing. So gaps are put into the
policy's own undecided windows, read off its description; ties, near-ties and means at the edges come on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from banditto.policies.policy import Policy
from banditto.problems.environment import Environment
from banditto.problems.environments.bernoulli import Bernoulli
from banditto.problems.environments.gaussian import Gaussian

MakePolicy = Callable[[int, int], Policy[Any]]  # from arms and horizon


class Instance(NamedTuple):
    """A policy on an environment, and a name that says what is hard about it."""

    name: str
    policy: Policy[Any]
    environment: Environment


def window_gap(policy: Policy[Any], batch: int, place: float = 0.5) -> float:
    """Return the gap that lies at `place` (0 to 1) between the lowest and the highest threshold of a batch."""
    row = policy.describe().to_dict()["batches"][batch - 1]
    return float(row["low"] + place * (row["high"] - row["low"]))


def first_batch_below(policy: Policy[Any], gap: float) -> int:
    """Return the number of the first batch whose highest threshold is below `gap`."""
    rows = policy.describe().to_dict()["batches"]
    return next(int(row["batch"]) for row in rows if row["high"] < gap)


def hard_instances(make: MakePolicy, horizons: dict[int, int]) -> Iterator[Instance]:
    """Yield nineteen instances with 2, 5 and 10 arms; `horizons` gives the horizon for each number of arms."""
    two, five, ten = (make(arms, horizons[arms]) for arms in (2, 5, 10))
    for policy, label in ((two, "2 arms"), (five, "5 arms"), (ten, "10 arms")):
        others = policy.arms - 1
        start = first_batch_below(policy, 0.5)
        gap = window_gap(policy, start)
        yield Instance(f"{label}, equal gaps in a window, best last", policy, Bernoulli([0.6 - gap] * others + [0.6]))
        yield Instance(f"{label}, equal gaps in a window, best first", policy, Bernoulli([0.7] + [0.7 - gap] * others))
        spread = [window_gap(policy, start + k % 2, 0.3 + 0.4 * k / others) for k in range(others)]
        yield Instance(f"{label}, gaps in two windows, Gaussian", policy, Gaussian([*(-g for g in spread), 0.0]))
        small = window_gap(policy, start + 1)
        yield Instance(f"{label}, near 1, best last", policy, Bernoulli([0.999 - small] * others + [0.999]))
        yield Instance(f"{label}, near 0, best first", policy, Bernoulli([0.001 + small] + [0.001] * others))
    yield Instance("2 arms, near-tie", two, Bernoulli([0.5, 0.5001]))
    gap = window_gap(five, first_batch_below(five, 0.5))
    yield Instance("5 arms, exact tie of the best", five, Bernoulli([0.6 - gap, 0.6, 0.6 - gap, 0.6, 0.6 - gap]))
    gap = window_gap(ten, first_batch_below(ten, 0.5))
    ladder = [0.6 - gap * k / 9 for k in range(10)]
    yield Instance("10 arms, ladder up to a window", ten, Bernoulli(ladder))
    yield Instance(
        "10 arms, near-ties and a window, Gaussian", ten, Gaussian([0.3 - gap] * 5 + [0.3, 0.3001] * 2 + [0.3])
    )
