"""Where a policy is undecided: the gaps that its own tests may call either way, read from `describe()`.

An attack that knows nothing of a policy can still try gaps of all sizes; one that knows its windows looks there first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from banditto.policies.policy import Policy


class UndecidedWindow(NamedTuple):
    """Gaps from `low` to `high` are undecided in a batch."""

    batch: int
    low: float
    high: float

    def at(self, place: float) -> float:
        """The gap at `place`: 0 is the lower end, 1 the upper end."""
        return self.low + place * (self.high - self.low)


_EDGES = (("commit low", "commit high"), ("low", "high"))


def windows_of(policy: Any, widest: float) -> list[UndecidedWindow]:
    """The windows that some gap up to `widest` reaches, narrow ones too; none if the policy does not say."""
    if not isinstance(policy, Policy):
        return []
    found = []
    for number, row in enumerate(policy.describe().to_dict()["batches"], 1):
        for low, high in _EDGES:
            if _number(row.get(low)) and _number(row.get(high)):
                found.append(UndecidedWindow(number, float(row[low]), float(row[high])))
        if _number(row.get("eps")):  # an estimate within eps: 2 eps decide, give or take one
            found.append(UndecidedWindow(number, float(row["eps"]), 3.0 * float(row["eps"])))
    return [window for window in found if window.low < widest]


def _number(value: object) -> bool:
    return isinstance(value, int | float)
