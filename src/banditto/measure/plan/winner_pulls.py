"""How many pulls a plan takes until a winner is named: at the named gap, at twice the gap, and on a tie.

At the winner level an experiment ends when the winner is named, so what it costs is a number of pulls that differs from
run to run. It is measured by the engine that everything else runs on.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from banditto.chance.coins import Coins, address_key
from banditto.chance.noise import Noise
from banditto.core.json_types import Amount, Keywords, Positive
from banditto.engine.batched import Execution, pulls_to_winner
from banditto.policies.policy import BatchedPolicy
from banditto.problems.environment import Environment

_EXECUTIONS, _FEWEST, _CELLS = 4000, 500, 400_000  # fewer where there are many arms
_AT_ONCE = 1000


class PullsContent(TypedDict):
    """What `WinnerPulls` counts, as plain data without the gap."""

    cap: Annotated[Positive, Keywords(description="the most pulls of each arm")]
    mean: Amount
    median: Positive
    p95: Annotated[Positive, Keywords(description="95% of runs take no more")]


class PullsElsewhereContent(PullsContent):
    """A `WinnerPulls` as plain data: the best arm leads all others by this gap, or by none."""

    gap: Annotated[Amount, Keywords(description="by how much the best arm leads all others; 0 for a tie")]


class WinnerPulls(NamedTuple):
    """Pulls of each arm until the winner is named, where the best arm leads all others by `gap`.

    All arms are pulled equally often until then.
    """

    gap: float
    cap: int
    mean: float
    median: int
    p95: int

    def counts(self) -> PullsContent:
        """Return plain data without the gap, for where it is that of the plan."""
        return {"cap": self.cap, "mean": self.mean, "median": self.median, "p95": self.p95}

    def to_dict(self) -> PullsElsewhereContent:
        """Return plain data."""
        return {"gap": self.gap, **self.counts()}

    @property
    def where(self) -> str:
        """Which arms the numbers are for, in a few words."""
        return f"a lead of {self.gap:g}" if self.gap > 0.0 else "all arms equal"

    def in_words(self, arms: int, *, most: bool = False) -> str:
        """Say what all arms take together: on average, at `most`, in half of all runs, and in 95% of them."""
        cap = f", at most {arms * self.cap:,} ({self.cap:,} of each arm)" if most else ""
        half, nearly = arms * self.median, arms * self.p95
        return (
            f"on average {arms * self.mean:,.0f}{cap}; half of all runs take at most {half:,}, 95% at most {nearly:,}"
        )


def winner_pulls(policy: BatchedPolicy[Any], environment: Environment, gap: float, seed: int) -> WinnerPulls:
    """Play executions until each has named its winner; how many pulls that took comes back.

    Coins and noise are addressed as those of rehearsals are, so that the same plan has the same numbers.
    """
    wanted = min(_EXECUTIONS, max(_FEWEST, _CELLS // policy.arms))
    noise_seed = address_key("banditto/plan/winner-pulls/1", seed)
    parts = []
    for start in range(0, wanted, _AT_ONCE):
        coins = Coins(seed, start, min(_AT_ONCE, wanted - start))
        parts.append(pulls_to_winner(Execution(policy, environment, coins, Noise(noise_seed, 0, start)))[1])
    each = np.concatenate(parts) // policy.arms
    median, p95 = (int(value) for value in np.quantile(each, [0.5, 0.95], method="inverted_cdf"))
    cap: int = getattr(policy, "cap")  # noqa: B009 (what winner policies have beyond others)
    return WinnerPulls(gap, cap, float(each.mean()), median, p95)
