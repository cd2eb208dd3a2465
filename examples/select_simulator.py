"""Which rule keeps a shop's shelf best? A simulator is raced, and its runs are kept in a file.

A reward is the share of a month's customers who found what they came for, less what the stock cost.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import banditto as bd


def month(order_up_to: int, order_at: int) -> Callable[[np.random.Generator], float]:
    """A callable that simulates thirty days: what was ordered in the evening is there the day after the next."""

    def simulate(rng: np.random.Generator) -> float:
        stock, coming, served, kept = order_up_to, [0, 0], 0, 0
        for customers in (wanted := rng.poisson(8, 30)):
            stock += coming.pop(0)
            served, stock = served + min(stock, customers), max(stock - customers, 0)
            kept += stock
            coming.append(order_up_to - stock - coming[0] if stock <= order_at else 0)
        return float(max(0.0, served / wanted.sum() - kept / 6000))

    return simulate


def main() -> None:
    arms = {"small": month(15, 6), "medium": month(30, 20), "large": month(70, 40)}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "shelf.db"  # needs banditto[live]; the same call would go on from there
        print(bd.select(arms, gap=0.05, rho=0.2, store=store, workers=2).table())
        print(bd.verify(f"sqlite:///{store}", "select").winner)


if __name__ == "__main__":
    main()
