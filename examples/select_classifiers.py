"""Which of two classifiers is better on fresh samples? A reward is the share of a new sample that is read rightly.

It needs scikit-learn. Both are trained once; what is raced, and what a second lab would find again, are these two.
"""

from collections.abc import Callable

import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import banditto as bd


def accuracy(model: LogisticRegression | KNeighborsClassifier) -> Callable[[np.random.Generator], float]:
    """A callable that draws a fresh sample and returns the share of it that the model classifies rightly."""

    def score(rng: np.random.Generator) -> float:
        return float(model.score(*make_moons(20, noise=0.3, random_state=int(rng.integers(2**31)))))

    return score


def main() -> None:
    training = make_moons(400, noise=0.3, random_state=1)
    models = {"logistic": LogisticRegression(), "neighbours": KNeighborsClassifier(15)}
    arms = {name: accuracy(model.fit(*training)) for name, model in models.items()}
    for lab, noise_seed in (("here", 1), ("there", 2)):  # the coins are shared, the samples are not
        found = bd.select(arms, gap=0.05, noise_seed=noise_seed, workers=2)
        print(f"{lab}: {found.winner}, after {found.pulls:,} samples\n\n{found.table()}\n")


if __name__ == "__main__":
    main()
