"""Theorems 3 and 4: replicability and regret of Algorithms 1 and 2 with the paper's constants."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from banditto.paper.claims import AtMost, Claim, Effort, Measured, Near
from banditto.paper.growth import (
    Make,
    Problem,
    algorithm_1,
    algorithm_2,
    arms_law,
    gap_law,
    horizon_law,
    replicable,
    rho_law,
    saving,
)

THEOREM_3 = "Regret of Algorithm 1 is of order K^2 log^2(T)/rho^2 times the sum of log(K T log T)/gap over worse arms."
THEOREM_4 = "Regret of Algorithm 2 is of order K^2/rho^2 times the sum of log(K T log T)/gap over worse arms."
LONG = "T = e^34, the paper's constants, the best arm last"
FIRST, SECOND = Problem(rho=0.5), Problem(rho=0.04)  # beta = K^2/rho^2 from rho = K/48 down
# narrow enough that no test that could matter is skipped, wide enough to be resolved at the shortest horizon
GROWING = Problem(rho=0.5, gap=0.15)


def _law(
    name: str, quantity: str, experiment: str, rule: Near, measure: Callable[[Effort], Measured], quick: float
) -> Claim:
    number = name[len("theorem-")]
    return Claim(
        name=name,
        place=f"Theorem {number}",
        statement=THEOREM_3 if number == "3" else THEOREM_4,
        quantity=quantity,
        experiment=experiment,
        rule=rule,
        measure=measure,
        seconds=(quick, 8.0 * quick),
    )


def _replicable(theorem: int, algorithm: int, make: Make, horizon: int) -> Claim:
    return Claim(
        name=f"theorem-{theorem}-replicable",
        place=f"Theorem {theorem}",
        statement=f"Algorithm {algorithm} is rho-replicable, with the paper's constants.",
        quantity="share of pairs that differ",
        experiment=f"Two arms whose gap lies in the middle of a window of the policy; T = e^{horizon}.",
        rule=AtMost(predicted=0.1, detectable=0.02),
        measure=partial(replicable, make, Problem(rho=0.1, logarithm=horizon)),
        seconds=(0.2, 1.0),
    )


CLAIMS = (
    _replicable(3, 1, algorithm_1, 30),
    _law(
        "theorem-3-gap",
        "exponent of regret in 1/gap",
        f"Two arms, 24 gaps from 0.05 to 0.4 (four steps of the staircase), rho = 0.5; {LONG}.",
        Near(predicted=1.0, detectable=0.2),
        partial(gap_law, algorithm_1, FIRST),
        0.6,
    ),
    _law(
        "theorem-3-rho",
        "exponent of regret in 1/rho",
        f"Two arms, rho from 0.03 to 0.5, averages over gaps from 0.18 to 0.3; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(rho_law, algorithm_1, FIRST),
        0.6,
    ),
    _law(
        "theorem-3-arms",
        "exponent in K of regret / (K - 1)",
        f"4 to 24 arms with equal gaps, averages over gaps from 0.18 to 0.3, rho = 0.5; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(arms_law, algorithm_1, FIRST, (4, 6, 8, 12, 16, 24)),
        1.5,
    ),
    _law(
        "theorem-3-horizon",
        "exponent of regret in log T",
        "Two arms, T from e^22 to e^34, averages over gaps from 0.09 to 0.15, rho = 0.5, the paper's constants; "
        "against the geometric mean of the bound's three logarithms.",
        Near(predicted=3.0, detectable=0.3),
        partial(horizon_law, algorithm_1, GROWING, 22, 2),
        1.5,
    ),
    _replicable(4, 2, algorithm_2, 30),
    _law(
        "theorem-4-gap",
        "exponent of regret in 1/gap",
        f"Two arms, 24 gaps from 0.05 to 0.4 (four steps of the staircase), rho = 0.04; {LONG}.",
        Near(predicted=1.0, detectable=0.2),
        partial(gap_law, algorithm_2, SECOND),
        0.4,
    ),
    _law(
        "theorem-4-rho",
        "exponent of regret in 1/rho",
        f"Two arms, rho from 0.0025 to 0.04, where beta = K^2/rho^2, averages over gaps from 0.18 to 0.3; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(rho_law, algorithm_2, SECOND),
        0.4,
    ),
    _law(
        "theorem-4-arms",
        "exponent in K of regret / (K - 1)",
        f"5 to 40 arms with equal gaps, averages over gaps from 0.18 to 0.3, rho = 0.1; {LONG}.",
        Near(predicted=2.0, detectable=0.1),
        partial(arms_law, algorithm_2, Problem(rho=0.1), (5, 7, 10, 14, 20, 28, 40)),
        1.2,
    ),
    _law(
        "theorem-4-horizon",
        "exponent of regret in log T",
        "Two arms, T from e^22 to e^34, averages over gaps from 0.09 to 0.15, rho = 0.5, the paper's constants; "
        "against the bound's log(K T log T).",
        Near(predicted=1.0, detectable=0.2),
        partial(horizon_law, algorithm_2, GROWING, 22, 0),
        0.7,
    ),
    Claim(
        name="theorem-4-saving",
        place="Theorem 4",
        statement="Algorithm 2 saves the log^2 T that Algorithm 1 pays for its union bound over batches.",
        quantity="exponent in log T of regret of 1 / regret of 2",
        experiment="Both algorithms on the same two arms, T from e^22 to e^34, averages over gaps from 0.09 to 0.15.",
        rule=Near(predicted=2.0, detectable=0.2),
        measure=partial(saving, algorithm_1, algorithm_2, GROWING, 22),
        seconds=(2.5, 14.0),
    ),
)
