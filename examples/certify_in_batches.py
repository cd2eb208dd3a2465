"""Certify a policy of your own in batches: explore, then commit to the best mean, rounded to a grid that labs share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import banditto as bd


@dataclass(frozen=True)
class Commit:
    cell: float
    name, decision_version, arms, horizon, pulls, rest = "commit", 1, 3, 1_000_000, 10_000, 970_000

    def init(self, replicates: int) -> Any:  # the state: which arm is played; -1 before that is known, 3 at the end
        return np.full((replicates, 1), -1)

    def plan(self, played: Any) -> Any:
        return np.where(played < 0, self.pulls, (played == range(3)) * self.rest) if played[0, 0] < 3 else None

    def decide(self, played: Any, totals: Any, coins: bd.Coins) -> Any:
        offsets = np.hstack([coins.uniform("grid", 1, arm) for arm in range(3)])  # the same in both labs
        rounded = np.floor(totals / self.pulls / self.cell + offsets) - offsets
        return np.where(played < 0, np.argmax(rounded, axis=1, keepdims=True), 3)

    def settings(self) -> dict[str, Any]:
        return {"cell": self.cell.hex()}

    resolved = settings

    def check_rewards(self, rewards: Any, means: Any = ()) -> None:
        """Any will do."""


if __name__ == "__main__":
    for cell in (1e-9, 0.03, 0.3):
        found = bd.certify(Commit(cell), bd.Bernoulli([0.505, 0.5, 0.4]), rho=0.1, pairs=2000, seed=1)
        print(f"cells of {cell:5g}: {found.agreement:6.1%} of pairs agree, asked for were 90%: {found.verdict}")
