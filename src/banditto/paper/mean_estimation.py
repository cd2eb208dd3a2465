"""Proposition 2: what a replicable mean needs, how accurate it is, and how often two labs find the same one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray
from banditto.numbers.intervals import clopper_pearson
from banditto.paper.claims import AtMost, Claim, ClaimCurve, Effort, Measured, Near
from banditto.paper.measuring import CONFIDENCE, Point, exponent
from banditto.policies.shared.replicable import Constants
from banditto.policies.shared.replicable_mean import RoundedMean, replicable_mean, samples_needed
from banditto.problems.environments.bernoulli import Bernoulli

PLACE = "Proposition 2"
TAU, DELTA, RHO = 0.05, 0.01, 0.1
FAIR = 0.5  # the mean at which two samples of the same size differ most
# deltas as exponents of 10: far below rho, so that log(1/delta) is nearly log(2/delta)
POWERS = tuple(range(10, 101, 10))

Needs = Callable[..., int]
Estimates = Callable[..., RoundedMean]


# -- how many samples -------------------------------------------------------------------------------------------------


def _law(settings: Sequence[tuple[float, int]], label: str, predicted: float) -> Measured:
    points = [Point(x, float(samples), float(samples), float(samples)) for x, samples in settings]
    return exponent(points, label, "samples", predicted, label="samples needed")


def radius_law(needs: Needs, effort: Effort) -> Measured:
    """Measure the exponent of the samples in tau."""
    taus = np.geomspace(0.001, 0.1, effort.choose(9, 33)).tolist()
    found = [(tau, needs(tau=tau, delta=DELTA, rho=RHO, constants="paper")) for tau in taus]
    return _law(found, "radius tau", -2.0)


def rho_law(constants: Constants, needs: Needs, effort: Effort) -> Measured:
    """Measure the exponent of the samples in rho, for delta far below it."""
    rhos = np.geomspace(1e-4, 1e-2, effort.choose(9, 33)).tolist()
    found = [(rho, needs(tau=TAU, delta=1e-8, rho=rho, constants=constants)) for rho in rhos]
    return _law(found, "rho", -2.0)


def confidence_law(constants: Constants, predicted: float, needs: Needs, effort: Effort) -> Measured:
    """Measure the exponent of the samples in log(1/delta)."""
    logs = [(k * float(np.log(10.0)), 10.0**-k) for k in POWERS]
    found = [(log, needs(tau=TAU, delta=delta, rho=1e-4, constants=constants)) for log, delta in logs]
    law = _law(found, "log(1/delta)", predicted)
    if constants == "paper" or law.chart is None:
        return law
    paper = [float(samples_needed(tau=TAU, delta=delta, rho=1e-4, constants="paper")) for _, delta in logs]
    beside = ClaimCurve(label="the paper's constants", x=tuple(log for log, _ in logs), y=tuple(paper))
    return replace(law, chart=replace(law.chart, curves=(*law.chart.curves, beside)))


# -- how good they are ------------------------------------------------------------------------------------------------


def totals_of(samples: int, mean: float, number: int, side: int) -> FloatArray:
    """Return the number of successes in `samples` coin tosses for each of `number` labs; the sides are independent."""
    totals = Bernoulli([mean, mean]).draw(np.full((number, 2), samples, dtype=np.int64), Noise(230, side, 0))
    return totals[:, 0]


def accuracy(constants: Constants, estimate: Estimates, effort: Effort) -> Measured:
    """Measure the share of means that are off by more than tau, at a delta that can be seen."""
    delta, rho = 0.05, 0.3
    number = effort.choose(4096, 65_536)
    samples = samples_needed(tau=TAU, delta=delta, rho=rho, constants=constants)
    wrong = 0
    for lab, total in enumerate(totals_of(samples, FAIR, number, 0).tolist()):
        found = estimate(total, samples, rho=rho, delta=delta, coins=Coins(231, start=lab), constants=constants)
        wrong += abs(found.value - FAIR) > TAU
    return Measured(
        value=wrong / number,
        interval=clopper_pearson(wrong, number, CONFIDENCE),
        detail=f"{wrong:,} of {number:,} means of {samples:,} samples are off by more than {TAU:g}.",
    )


def agreement(constants: Constants, estimate: Estimates, effort: Effort) -> Measured:
    """Measure the share of pairs of labs whose means are not the same number."""
    number = effort.choose(8192 if constants == "certified" else 4096, 65_536)
    samples = samples_needed(tau=TAU, delta=DELTA, rho=RHO, constants=constants)
    different = 0
    sides = (totals_of(samples, FAIR, number, side).tolist() for side in (0, 1))
    for pair, totals in enumerate(zip(*sides, strict=True)):
        coins = Coins(232, start=pair)
        one, two = (
            estimate(total, samples, rho=RHO, delta=DELTA, coins=coins, constants=constants).value for total in totals
        )
        different += one != two
    return Measured(
        value=different / number,
        interval=clopper_pearson(different, number, CONFIDENCE),
        detail=f"{different:,} of {number:,} pairs of means of {samples:,} samples differ.",
    )


CLAIMS = (
    Claim(
        name="proposition-2-radius",
        place=PLACE,
        statement="A replicable mean needs 1/tau^2 samples.",
        quantity="exponent of samples in tau",
        experiment="The samples that the paper's constants ask for, tau from 0.001 to 0.1, delta = 0.01, rho = 0.1.",
        rule=Near(predicted=-2.0, detectable=0.02),
        measure=partial(radius_law, samples_needed),
        seconds=(0.01, 0.02),
    ),
    Claim(
        name="proposition-2-rho",
        place=PLACE,
        statement="It needs 1/(rho - delta)^2 samples.",
        quantity="exponent of samples in rho",
        experiment="The samples that the paper's constants ask for, rho from 0.0001 to 0.01, delta = 1e-8.",
        rule=Near(predicted=-2.0, detectable=0.1),
        measure=partial(rho_law, "paper", samples_needed),
        seconds=(0.01, 0.02),
    ),
    Claim(
        name="proposition-2-confidence",
        place=PLACE,
        statement="It needs log(1/delta) samples, times 1/rho^2.",
        quantity="exponent of samples in log(1/delta)",
        experiment="The samples that the paper's constants ask for, delta from 1e-10 to 1e-100, rho = 0.0001.",
        rule=Near(predicted=1.0, detectable=0.1),
        measure=partial(confidence_law, "paper", 1.0, samples_needed),
        seconds=(0.01, 0.02),
    ),
    Claim(
        name="proposition-2-confidence-certified",
        place="beyond",
        statement="It does not: log(1/delta) can be added to 1/rho^2 instead, and vanishes beside it.",
        quantity="exponent of samples in log(1/delta)",
        experiment="The samples that certified constants ask for, delta from 1e-10 to 1e-100, rho = 0.0001.",
        rule=Near(predicted=0.0, detectable=0.1),
        measure=partial(confidence_law, "certified", 0.0, samples_needed),
        seconds=(0.01, 0.02),
    ),
    Claim(
        name="proposition-2-accuracy",
        place=PLACE,
        statement="The estimate is within tau of the mean with probability 1 - delta.",
        quantity="share of estimates off by more than tau",
        experiment="Means of fair coins with the paper's constants, tau = 0.05, delta = 0.05, rho = 0.3.",
        rule=AtMost(predicted=0.05, detectable=0.01),
        measure=partial(accuracy, "paper", replicable_mean),
        seconds=(0.8, 11.0),
    ),
    Claim(
        name="proposition-2-replicable",
        place=PLACE,
        statement="Two labs find the same number with probability 1 - rho.",
        quantity="share of pairs that differ",
        experiment="Means of fair coins, the hardest ones, with the paper's constants; delta = 0.01, rho = 0.1.",
        rule=AtMost(predicted=RHO, detectable=0.02),
        measure=partial(agreement, "paper", replicable_mean),
        seconds=(1.3, 25.0),
    ),
    Claim(
        name="proposition-2-replicable-certified",
        place="beyond",
        statement="With certified constants fair coins use up all of rho: no smaller cells would do.",
        quantity="share of pairs that differ",
        experiment="Means of fair coins with certified constants; delta = 0.01, rho = 0.1.",
        rule=Near(predicted=RHO, detectable=0.03),
        measure=partial(agreement, "certified", replicable_mean),
        seconds=(2.7, 25.0),
    ),
)
