"""(w) EarlyCut in two labs that have one half each of a data set, drawn without replacement. Half a minute.

A population has rows for each arm. It is split in two at random, one half for each lab, and both play with the same
coins, row by row, until they name a winner; the cap is at most the rows of a half. That is repeated with other splits
and other coins. What is counted is how often the winners differ, which rho allows. This is resampling of *one*
population: it shows what a second lab with data of the same kind would find, not what one elsewhere would.

Populations: two classifiers of handwritten digits and two of breast cancer (scikit-learn's data sets; a row is an
example that they were not fitted to, and a reward says whether the label is right), visits to a doctor with and without
a deductible (statsmodels' data set of the RAND health insurance experiment), and rows that are simulated, with a tie.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.rewards import Rewards
from banditto.engine.batched import Execution, pulls_to_winner
from banditto.numbers.intervals import lower_limit
from benchmarks.measure import line, quick_asked

SPLITS = 20_000
TOGETHER = 500  # splits that are held at once
ERROR = 1e-6

Rows = tuple[np.ndarray, ...]  # 0/1 rewards of each arm


class Half:
    """One lab's halves of many splits as an environment: rows are read in order, and none is used twice."""

    name = "half"
    rewards = Rewards("bounded", 0.5)
    largest_count = 10**9

    def __init__(self, sums: list[np.ndarray]) -> None:
        self._sums = sums  # for each arm, sums of the first 0, 1, 2, ... rows of each split, (split, row)
        self._read = np.zeros((len(sums[0]), len(sums)), dtype=np.int64)
        self.means = tuple(float(arm[:, -1].mean() / (arm.shape[1] - 1)) for arm in sums)

    def draw(self, pulls: np.ndarray, noise: Noise) -> np.ndarray:
        """Add up the next rows of each arm."""
        totals = np.zeros(pulls.shape)
        splits = np.arange(len(pulls))
        for arm, sums in enumerate(self._sums):
            before = self._read[:, arm].copy()
            self._read[:, arm] += pulls[:, arm]
            totals[:, arm] = sums[splits, self._read[:, arm]] - sums[splits, before]
        return totals


class Agreement(NamedTuple):
    """Splits, those with two winners, and the rows of all arms that a lab reads on average."""

    splits: int
    differ: int
    rows: float


def halves(rows: Rows, splits: int, generator: np.random.Generator) -> tuple[Half, Half]:
    """Split the rows of each arm in two, at random, again and again."""
    first: list[np.ndarray] = []
    second: list[np.ndarray] = []
    for arm in rows:
        shuffled = generator.permuted(np.broadcast_to(arm, (splits, len(arm))), axis=1)
        size = len(arm) // 2
        for half, part in ((first, shuffled[:, :size]), (second, shuffled[:, size : 2 * size])):
            half.append(np.concatenate([np.zeros((splits, 1)), np.cumsum(part, axis=1)], axis=1))
    return Half(first), Half(second)


def agreement(policy: bd.EarlyCut, rows: Rows, splits: int, seed: int, *, shared: bool = True) -> Agreement:
    """Let two labs play the policy on two halves of the rows, with other coins for each split.

    `shared` says whether the two labs share them: without that the count must be larger than rho on a tie.
    """
    smallest = min(len(arm) for arm in rows) // 2
    assert policy.cap <= smallest, f"a cap of {policy.cap} needs more than {smallest} rows"
    generator = np.random.default_rng(seed)
    differ, read = 0, 0.0
    for start in range(0, splits, TOGETHER):
        size = min(TOGETHER, splits - start)
        coins = Coins(seed, start, size)
        both = coins, coins if shared else Coins(seed + 1, start, size)
        labs: Any = zip(halves(rows, size, generator), both, strict=True)
        sides: list[Any] = [Execution(policy, half, own, Noise(0, 0, 0)) for half, own in labs]
        (one, pulls), (two, others) = (pulls_to_winner(side) for side in sides)
        differ += int((one != two).sum())
        read += float((pulls + others).sum()) / 2.0
    return Agreement(splits, differ, read / splits)


def digits() -> Rows:
    """Whether two classifiers are right, on digits that they were not fitted to."""
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    return _right(load_digits(return_X_y=True), (GaussianNB(), DecisionTreeClassifier(random_state=0)), 300)


def cancer() -> Rows:
    """Whether two classifiers are right, on patients that they were not fitted to."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    models = (DecisionTreeClassifier(max_depth=1, random_state=0), GaussianNB())
    return _right(load_breast_cancer(return_X_y=True), models, 60)


def _right(data: tuple[np.ndarray, np.ndarray], models: tuple[Any, Any], fitted: int) -> Rows:
    order = np.random.default_rng(0).permutation(len(data[1]))
    features, labels = data[0][order], data[1][order]
    return tuple(
        (model.fit(features[:fitted], labels[:fitted]).predict(features[fitted:]) == labels[fitted:]).astype(float)
        for model in models
    )


def doctors() -> Rows:
    """Whether somebody saw a doctor within a year: without an individual deductible, and with one."""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data
    seen = (table["mdvis"] > 0).to_numpy(dtype=float)
    deductible = table["idp"].to_numpy() > 0
    return seen[~deductible], seen[deductible]


def tie() -> Rows:
    """Four arms that are equally good, 8,000 rows each."""
    generator = np.random.default_rng(1)
    return tuple(generator.permutation(np.repeat([0.0, 1.0], 4000)) for _ in range(4))


POPULATIONS: Mapping[str, tuple[Callable[[], Rows], dict[str, Any]]] = {
    "digits, two classifiers": (digits, {"gap": 0.1, "rho": 0.2}),
    "breast cancer, two classifiers": (cancer, {"gap": 0.15, "rho": 0.25}),
    "visits to a doctor, two insurances": (doctors, {"gap": 0.05, "rho": 0.2}),
    "simulated, four equal arms": (tie, {"gap": 0.1, "rho": 0.2}),
}


def measured(name: str, splits: int, seed: int = 7) -> tuple[bd.EarlyCut, Agreement]:
    """Play one population, and return the policy and what was counted."""
    make, options = POPULATIONS[name]
    rows = make()
    policy = bd.EarlyCut(arms=len(rows), horizon=10**6, **options)
    return policy, agreement(policy, rows, splits, seed)


def main(quick: bool = False) -> None:
    """Print a line for each population."""
    splits = 400 if quick else SPLITS
    for name in POPULATIONS:
        policy, found = measured(name, splits)
        low = lower_limit(found.differ, found.splits, ERROR / len(POPULATIONS))
        what = f"(w) {name}: rho {policy.rho:g}, {found.rows:,.0f} rows, cap {policy.arms} * {policy.cap:,}"
        line(what, f"{found.differ / found.splits:.4f} differ", f"lower limit {low:.4f} at most rho", low <= policy.rho)


if __name__ == "__main__":
    main(quick_asked(__doc__))
