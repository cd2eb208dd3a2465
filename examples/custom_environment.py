"""An environment of your own: offers at different prices. A visitor buys or not; the reward is what was paid."""

from typing import Any

import numpy as np

import banditto as bd
from banditto.testing import ENVIRONMENT_CHECKS


class Offers:
    name, rewards, largest_count = "offers", bd.Bernoulli.rewards, bd.Bernoulli.largest_count  # from 0 to 1; any number

    def __init__(self, prices: list[float], chances: list[float]) -> None:
        self.prices, self.chances = np.array(prices), chances
        self.single = bd.Discrete([([0, price], [1 - p, p]) for price, p in zip(prices, chances, strict=True)])
        self.means, self.variances = self.single.means, self.single.variances

    def draw(self, pulls: Any, noise: Any) -> Any:  # what so many visitors pay: one draw, however many they are
        return noise.binomial_totals(pulls, self.chances) * self.prices

    def round_kernel(self) -> Any:  # what one visitor pays, in compiled code
        return self.single.round_kernel()

    def round_parameters(self) -> Any:
        return self.single.round_parameters()

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "means": list(self.means), "prices": self.prices.tolist()}


if __name__ == "__main__":
    offers = Offers(prices=[0.2, 0.5, 0.9], chances=[0.9, 0.6, 0.15])
    for check in ENVIRONMENT_CHECKS:
        check(offers)  # totals and single rewards have the means and variances that they should have
    print("A visitor pays on average", ", ".join(f"{mean:.3f}" for mean in offers.means))
    policy = bd.CertifiedElimination(arms=3, horizon=10**7, rho=0.1)
    print(bd.compare([policy, bd.UCB1()], offers, pairs=200, rounds=10**6, seed=1).table())
