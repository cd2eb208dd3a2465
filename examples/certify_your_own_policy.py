"""Certify a policy of your own, in plain Python: try two arms in turn, then keep the one that leads by a shared cut."""

import numpy as np

import banditto as bd


class Commit:
    def __init__(self, pulls: int, width: float) -> None:
        self.trial, self.width = 2 * pulls, width
        self.cut = self.lead = 0.0
        self.told = 0

    def select(self, t: int, rng: np.random.Generator) -> int:
        if t == 0:
            self.cut = self.width * (rng.random() - 0.5)  # rng gives both labs the same number
        if t < self.trial:
            return t % 2
        return int(self.lead > self.cut)

    def update(self, arm: int, reward: float) -> None:
        if self.told < self.trial:
            self.told += 1
            self.lead += (reward if arm == 1 else -reward) / (self.trial / 2)


if __name__ == "__main__":
    for width in (0.0, 0.1, 0.4):
        policy = bd.PlainPolicy(Commit, pulls=800, width=width)
        found = bd.certify(policy, bd.Bernoulli([0.6, 0.61]), horizon=2000, rho=0.2, pairs=100, seed=1)
        print(
            f"cuts from a window of {width}: {found.agreement:4.0%} of pairs agree, asked for were 80%: {found.verdict}"
        )
