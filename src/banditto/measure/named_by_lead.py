"""An A/A test: all arms are the same, and still a lead may decide instead of the shared coin. How often?

One execution of each pair is looked at, because the other one has the same coins: what is counted is independent, and
the interval is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from typing_extensions import TypedDict

from banditto.core.json_types import Interval, Positive, Share
from banditto.engine.leads import count_led
from banditto.engine.player import Run
from banditto.numbers.intervals import clopper_pearson
from banditto.policies.policy import Leading

MOST_EXECUTIONS = 8192  # four blocks: a share is known to one point, and nobody waits for it


class NamedByLead(NamedTuple):
    """The share of executions in which a lead decided, its exact interval, and how many executions there were."""

    share: float
    interval: tuple[float, float]
    executions: int


class NamedByLeadContent(TypedDict):
    """A `NamedByLead` as plain data."""

    share: Share
    interval: Interval
    executions: Positive


def all_equal(means: Sequence[float]) -> bool:
    """Say whether all means are exactly the same; False for infinitely many actions."""
    return len(set(means)) == 1


def named_by_lead(run: Run, pairs: int, confidence: float) -> NamedByLead | None:
    """Measure how often a lead decides where all arms are the same, on a run's first pairs.

    None where means differ, and for a policy that cannot tell a lead from a coin.
    """
    if not all_equal(run.environment.means) or not isinstance(run.policy, Leading):
        return None
    executions = min(pairs, MOST_EXECUTIONS)
    led = count_led(run, run.policy, executions)
    return NamedByLead(led / executions, clopper_pearson(led, executions, confidence), executions)
