"""Ordinary policies against the line of Lai and Robbins at T = 10^6.

Their theorem: no consistent policy's regret grows slower than c log T in the long run, c = sum of gap/kl over the arms
that are not best. KL-UCB and Thompson attain it; UCB1's constant for two arms is 2/gap. At T = 10^6 growth is measured
between 10^4 and 10^6, where lower-order terms still show. False-failure rate 1e-6 for each interval below (Student's t
over 40 pairs); a slope outside its interval by 0.65 c (UCB1: 1.6 c) is seen half of the time, by twice that nearly
always.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.engine import rounds
from banditto.engine.player import player_of, run_of

MEANS = (0.5, 0.7)
PAIRS = 40


def constant() -> float:
    """c: gap over the divergence of the worse arm from the better one."""
    p, q = MEANS
    return (q - p) / (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "level", "slope"),
    [
        (bd.KLUCB(), (0.8, 1.2), (1.0, 1.4)),
        (bd.Thompson(), (0.5, 0.9), (0.7, 1.1)),
        (bd.UCB1(), (3.5, 5.0), (4.4, 8.0)),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_regret_at_a_million_rounds(
    policy: Any, level: tuple[float, float], slope: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "MOST_PAIRS_OF_A_CURVE", PAIRS)
    run = run_of(policy, bd.Bernoulli(MEANS), seed=1, noise_seed=None, horizon=10**6)
    regrets = player_of(run).regrets_at(PAIRS, np.array([10**4, 10**6])) / constant()
    assert regrets.shape == (2 * PAIRS, 2)
    for values, (low, high), widest in (
        (regrets[:, 1] / math.log(10**6), level, 0.75),
        ((regrets[:, 1] - regrets[:, 0]) / math.log(100), slope, 1.6 if policy.name == "ucb1" else 0.65),
    ):
        # the two executions of a pair share coins; their average is the independent unit
        pairs = values.reshape(PAIRS, 2).mean(axis=1)
        reach = 5.8 * float(np.std(pairs, ddof=1)) / math.sqrt(PAIRS)  # Student's t, 39 degrees of freedom
        assert reach < widest
        assert float(np.mean(pairs)) + reach >= low
        assert float(np.mean(pairs)) - reach <= high
