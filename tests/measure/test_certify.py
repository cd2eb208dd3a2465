"""Certificates: what they hold, and the tester tested on policies whose replicability is known."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.protocol import Plain, WithProtocol
from banditto.core.rewards import Rewards
from banditto.numbers.intervals import clopper_pearson
from banditto.policies.policy import Description, Guarantee

RHO = 0.1


class Progress(NamedTuple):
    batch: int
    spent: IntArray  # (R, 1)
    chosen: IntArray  # (R, 1)


@dataclass(frozen=True, kw_only=True)
class TwoStep(WithProtocol):
    """Half of the horizon on all arms alike, the rest on one arm, chosen by rewards or by coins alone."""

    arms: int = 2
    horizon: int = 10_000
    rho: float = RHO
    by_coins: bool
    flip: float = 1.0  # with this probability the choice is made by rewards, in both executions

    name: ClassVar[str] = "two-step"
    decision_version: ClassVar[int] = 1

    def init(self, replicates: int) -> Progress:
        zero = np.zeros((replicates, 1), dtype=np.int64)
        return Progress(1, zero, zero)

    def plan(self, state: Progress) -> IntArray | None:
        rows = state.chosen.shape[0]
        if state.batch == 1:
            return np.full((rows, self.arms), self.horizon // (2 * self.arms), dtype=np.int64)
        if state.batch == 2:
            left = self.horizon - self.arms * (self.horizon // (2 * self.arms))
            return np.where(np.arange(self.arms) == state.chosen, left, 0)
        return None

    def decide(self, state: Progress, totals: FloatArray, coins: Coins) -> Progress:
        by_rewards = np.argmax(totals, axis=1, keepdims=True)
        by_coins = (coins.uniform("choice", 1) * self.arms).astype(np.int64)
        use_rewards = coins.uniform("which", 1) < (0.0 if self.by_coins else self.flip)
        return Progress(state.batch + 1, state.spent, np.where(use_rewards, by_rewards, by_coins))

    def guarantee(self) -> Guarantee:
        return Guarantee.of([], self.rho)

    def minimum_horizon(self) -> int | None:
        return self.arms

    def describe(self) -> Description:
        return Description({}, (), ())

    def settings(self) -> Mapping[str, Plain]:
        return {}

    def resolved(self) -> Mapping[str, Plain]:
        return {}

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        pass


TIE = bd.Bernoulli([0.5, 0.5])


def test_a_policy_that_is_not_replicable_fails() -> None:
    certificate = bd.certify(TwoStep(by_coins=False), TIE, pairs=400, seed=1)
    assert certificate.verdict == "FAIL"
    assert certificate.first_divergence == {2: certificate.mismatches}
    assert certificate.interval[1] < 1 - RHO


def test_a_policy_that_plays_by_coins_alone_agrees_always() -> None:
    certificate = bd.certify(TwoStep(by_coins=True), TIE, pairs=400, seed=1)
    assert certificate.agreement == 1.0
    assert certificate.mismatches == 0
    assert certificate.verdict == "PASS"
    assert certificate.first_divergence == {}


def test_the_measured_rate_is_the_true_one() -> None:
    """Executions that choose by rewards on a tie differ with probability 1/2 (ties of totals aside): flip / 2."""
    certificate = bd.certify(TwoStep(by_coins=False, flip=0.4), TIE, pairs=20_000, seed=2)
    # totals of 2,500 pulls tie with probability 0.011, which moves the rate by less than 0.002
    low, high = clopper_pearson(certificate.mismatches, certificate.pairs, 1 - 1e-6)
    assert low - 0.002 <= 0.2 <= high + 0.002


@dataclass(frozen=True, kw_only=True)
class Proved(TwoStep):
    """One whose proof gives a bound of its own."""

    bound: float = RHO

    def guarantee(self) -> Guarantee:
        return Guarantee.of([("all of it", Decimal(str(self.bound)), "it is what the test says")], self.rho)


@pytest.mark.parametrize(
    ("bound", "flip", "verdict"),
    [
        (RHO, 0.1, "PASS"),
        (RHO, 0.2, "CONSISTENT"),
        (RHO, 0.4, "FAIL"),
        (0.05, 0.2, "INCONCLUSIVE"),  # what is proved is below the interval: nothing to be consistent with
        (2 * RHO, 0.2, "INCONCLUSIVE"),  # what is proved is not rho
    ],
)
def test_at_rho_a_proof_that_is_not_contradicted_is_told(bound: float, flip: float, verdict: str) -> None:
    certificate = bd.certify(Proved(by_coins=False, flip=flip, bound=bound), TIE, pairs=2000, seed=4)
    assert certificate.verdict == verdict
    assert ("CONSISTENT with the proof" in certificate.table()) == (verdict == "CONSISTENT")


@pytest.mark.parametrize(("flip", "verdict"), [(0.1, "PASS"), (0.2, "INCONCLUSIVE"), (0.4, "FAIL")])
def test_verdicts(flip: float, verdict: str) -> None:
    certificate = bd.certify(TwoStep(by_coins=False, flip=flip), TIE, pairs=2000, seed=4)
    assert certificate.verdict == verdict
    assert (certificate.pairs_to_settle is not None) <= (verdict == "INCONCLUSIVE")


def test_false_verdicts_are_as_rare_as_promised() -> None:
    """At P(differ) = rho, PASS and FAIL both err, each with probability at most 2.5%; 200 certificates.

    P(differ) is flip / 2 but for ties of totals, which move it by 1e-5. False-failure rate: below 3e-5 for 2.5%
    (the exact rates at 1,024 pairs are lower), on fixed seeds. Detectable with probability 0.8: an error rate of 10%.
    """
    assert binom.sf(16, 200, 0.025) < 1.5e-5
    assert binom.sf(16, 200, 0.10) > 0.78
    verdicts = [
        bd.certify(TwoStep(by_coins=False, flip=0.2), TIE, pairs=1024, seed=seed).verdict for seed in range(200)
    ]
    assert verdicts.count("PASS") <= 16
    assert verdicts.count("FAIL") <= 16


def test_attributes_and_dictionary_have_the_same_names() -> None:
    policy = bd.RandomThreshold(arms=3, horizon=10**8, rho=0.1)
    certificate = bd.certify(policy, bd.Bernoulli([0.9, 0.8, 0.7]), pairs=2000, seed=11)
    content = certificate.to_dict()
    for name in (
        *("policy", "constants", "horizon", "rho", "seed", "pairs", "mismatches", "agreement", "confidence", "bound"),
        *("verdict", "digest"),
    ):
        assert content[name] == getattr(certificate, name)
    assert content["interval"] == list(certificate.interval)
    assert content["regret"]["mean"] == certificate.regret.mean
    assert content["first_divergence"] == {str(k): v for k, v in certificate.first_divergence.items()}
    assert sum(certificate.first_divergence.values()) == certificate.mismatches
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert certificate.bound == policy.guarantee().total
    assert certificate.verdict == "PASS"
    assert certificate.regret.interval[0] < certificate.regret.mean < certificate.regret.interval[1]
    assert certificate.regret.mean <= certificate.regret.largest
    for text in (certificate.table(), certificate._repr_html_()):
        assert "PASS" in text
        assert certificate.digest in text
    assert pickle.loads(pickle.dumps(certificate.to_dict())) == content


def test_paper_constants_have_no_bound() -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**7, rho=0.1, constants="paper")
    assert bd.certify(policy, bd.Bernoulli([0.4, 0.6]), pairs=10).bound is None


def test_the_regret_is_that_of_the_pulls() -> None:
    """TwoStep on coins: half on both arms, the rest on one of them at random; both sides of a pair alike."""
    certificate = bd.certify(TwoStep(by_coins=True), bd.Bernoulli([0.2, 0.7]), pairs=4000, seed=4)
    wrong = 5000 / 2 + 5000 / 2  # a quarter of the pulls by design, and half of the rest on average
    assert certificate.regret.mean == pytest.approx(0.5 * wrong, rel=0.05)
    assert certificate.regret.largest == pytest.approx(0.5 * 7500)
    assert math.isinf(bd.certify(TwoStep(by_coins=True), TIE, pairs=1).regret.interval[1])


def test_other_seeds_give_other_pairs_and_other_noise_other_rewards() -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.3)
    world = bd.Bernoulli([0.5, 0.62])
    results = [
        bd.certify(policy, world, pairs=1000, seed=seed, noise_seed=noise).mismatches
        for seed, noise in ((1, None), (2, None), (1, 77), (1, None))
    ]
    assert results[0] == results[3]
    assert len(set(results[:3])) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pairs": 0}, "^pairs: got 0"),
        ({"pairs": 1.5}, "^pairs: got 1.5"),
        ({"jobs": 0}, "^jobs: got 0"),
        ({"seed": -1}, "^seed: got -1"),
        ({"noise_seed": -1}, "^noise_seed: got -1"),
        ({"confidence": 1.0}, "^confidence: got 1.0"),
        ({"horizon": 17}, "^horizon: got 17, allowed: 1000000"),
        ({"rho": 0.2}, "^rho: got 0.2, allowed: 0.3"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], said: str) -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.3)
    with pytest.raises(InvalidArgument, match=said):
        bd.certify(policy, bd.Bernoulli([0.5, 0.62]), **arguments)


def test_a_baseline_needs_a_horizon_and_rho() -> None:
    with pytest.raises(InvalidArgument, match="^horizon: got None"):
        bd.certify(bd.UCB1(), TIE, rho=0.1)
    with pytest.raises(InvalidArgument, match="^rho: got None"):
        bd.certify(bd.UCB1(), TIE, horizon=100)
    with pytest.raises(InvalidArgument, match="^horizon: got 1e10, allowed: an integer from 10 to 1e9"):
        bd.certify(bd.UCB1(), TIE, horizon=10**10, rho=0.1)
    with pytest.raises(InvalidArgument, match="3 arms"):
        bd.certify(bd.RandomThreshold(arms=3, horizon=10**6, rho=0.3), TIE)
