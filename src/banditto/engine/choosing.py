"""Whether an arm was chosen because it led, or by the rule that labs share where nobody leads by enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from banditto.chance.coins import Coins
from banditto.engine.observations import DecidedBy
from banditto.policies.policy import AnyPolicy, Leading

Totals = tuple[Sequence[int], Sequence[float]]  # counts and totals of a batch, in the policy's units


def chosen_by(policy: AnyPolicy, batches: Iterable[Totals], coins: Coins) -> DecidedBy | None:
    """Repeat the decisions on these batches, and return what made the last choice; None if the policy cannot tell.

    Batches with a single arm are skipped: nothing is left to decide there.
    """
    if not isinstance(policy, Leading):
        return None
    state, led, spent = policy.init(1), False, 0
    for counts, totals in batches:
        spent += sum(counts)
        if sum(1 for count in counts if count) < 2 or spent >= policy.horizon:
            break
        policy.plan(state)
        row = np.array([totals], dtype=np.float64)
        led = bool(policy.by_lead(state, row, coins)[0, 0])
        state = policy.decide(state, row, coins)
    return "lead" if led and _in_play(state) == 1 else "coin"


def _in_play(state: Any) -> int:
    """Return how many arms a state has left; if several are, a rule that labs share picks one of them."""
    return int(np.count_nonzero(np.asarray(state.active)[0]))
