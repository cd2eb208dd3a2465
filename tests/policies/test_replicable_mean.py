"""Replicable mean: exact properties, and accuracy and replicability by simulation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.core.rewards import Rewards
from banditto.policies.shared.confidence import mean_noise
from banditto.testing import assert_rate_at_most, detectable_rate

PAIRS = 3000
LEVEL = 1e-6 / 40  # false-failure rate of each comparison below; forty of them
CASES: list[tuple[str, float, float, float, str]] = [
    # law, tau, delta, rho, constants
    ("bernoulli", 0.1, 0.05, 0.2, "certified"),
    ("bernoulli", 0.02, 0.01, 0.4, "certified"),
    ("bernoulli", 0.1, 0.05, 0.2, "paper"),
    ("bernoulli", 0.05, 0.01, 0.5, "paper"),
    ("gaussian", 0.3, 0.05, 0.1, "certified"),
    ("gaussian", 0.3, 0.04, 0.1, "paper"),
    ("two-point", 0.5, 0.05, 0.2, "certified"),
    ("two-point", 0.5, 0.05, 0.2, "paper"),
]


def means(law: str, n: int, generator: np.random.Generator) -> tuple[FloatArray, float, dict[str, Any]]:
    """Totals of n rewards for 2 * PAIRS labs, the true mean, and what is known of the rewards."""
    if law == "bernoulli":
        return generator.binomial(n, 0.5, 2 * PAIRS).astype(float), 0.5, {"rewards": "bounded"}
    if law == "gaussian":
        noise: FloatArray = 2.0 * math.sqrt(n) * generator.standard_normal(2 * PAIRS)
        return 1.7 * n + noise, 1.7, {"rewards": "gaussian", "sigma": 2.0}
    # mass 0.98 at 0 and 0.02 at 10: as far from its mean as a variable on [0, 10] often is; sigma = 5 by Hoeffding
    return 10.0 * generator.binomial(n, 0.02, 2 * PAIRS).astype(float), 0.2, {"rewards": "subgaussian", "sigma": 5.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "tau", "delta", "rho", "constants"),
    [pytest.param(*case, marks=[pytest.mark.long] * (k % 2)) for k, case in enumerate(CASES)],
)
def test_accurate_and_replicable(
    law: str, tau: float, delta: float, rho: float, constants: Literal["certified", "paper"]
) -> None:
    """Detectable with probability 0.8: a failure probability of delta + 0.03, a rate of difference of rho + 0.06."""
    assert detectable_rate(PAIRS, delta, LEVEL) <= delta + 0.03
    assert detectable_rate(PAIRS, rho, LEVEL) <= rho + 0.06
    _, _, known = means(law, 1, np.random.default_rng(0))
    n = bd.samples_needed(tau=tau, delta=delta, rho=rho, constants=constants, **known)
    totals, truth, known = means(law, n, np.random.default_rng(5))
    options = {"rho": rho, "delta": delta, "constants": constants, **known}
    rounded = [bd.replicable_mean(totals[lab], n, coins=Coins(3, lab % PAIRS), **options) for lab in range(2 * PAIRS)]
    assert all(result.radius <= tau * (1 + 1e-12) for result in rounded)
    assert rounded[0].guarantee.holds
    off = sum(abs(result.value - truth) > tau for result in rounded[:PAIRS])
    differ = sum(rounded[pair].value != rounded[PAIRS + pair].value for pair in range(PAIRS))
    assert_rate_at_most(off, PAIRS, delta, LEVEL)
    assert_rate_at_most(differ, PAIRS, rho, LEVEL)
    if constants == "certified" and law != "two-point":
        assert differ > 0.5 * rho * PAIRS  # the constant is not slack by design


@pytest.mark.parametrize("n", [1, 2, 5, 30, 200])
def test_noise_of_a_bounded_mean_exactly(n: int) -> None:
    bound = float(mean_noise(Rewards("bounded", 0.5))) / math.sqrt(n)
    counts = np.arange(n + 1)
    exact = {}
    for p in np.linspace(0, 1, 21):
        mass = binom.pmf(counts, n, p)
        twice = np.convolve(mass, mass[::-1])
        exact[float(p)] = float(np.sum(twice * np.abs(np.arange(-n, n + 1)))) / n
    assert max(exact, key=lambda p: exact[p]) == 0.5
    assert 0.85 * bound < exact[0.5] <= bound


@given(st.floats(-1e6, 1e6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_the_value_is_the_midpoint_of_the_mean_s_cell(total: float, n: int, replicate: int) -> None:
    value, radius, guarantee = bd.replicable_mean(total, n, rho=0.2, delta=0.01, coins=Coins(1, replicate), sigma=2.0)
    deviation = 2.0 * math.sqrt(2 * math.log(2 / 0.01) / n)
    assert abs(value - total / n) <= (radius - deviation) * (1 + 1e-9) + 1e-12 * abs(total / n)
    assert guarantee.total <= 0.2


def test_samples_needed_by_hand() -> None:
    kappa = 1 / math.sqrt(math.pi)
    wanted = ((0.5 * math.sqrt(2 * math.log(2000)) + kappa / 0.2) / 0.05) ** 2
    assert bd.samples_needed(tau=0.05, delta=0.001, rho=0.1) == math.ceil(wanted)
    small = 0.05 * (0.1 - 0.002) / (0.1 + 1 - 0.002)
    paper = bd.samples_needed(tau=0.05, delta=0.001, rho=0.1, constants="paper")
    assert paper == math.ceil(2 * 0.25 * math.log(2000) / small**2)


def test_the_table_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "replicable-mean.md").read_text(encoding="utf-8")
    kinds: tuple[Literal["certified", "paper"], ...] = ("certified", "paper")
    for constants in kinds:
        row = [bd.samples_needed(tau=0.05, delta=0.001, rho=rho, constants=constants) for rho in (0.3, 0.1, 0.01)]
        assert f"| {constants} | " + " | ".join(f"{n:,}" for n in row) + " |" in page


def test_one_sample_less_would_not_do() -> None:
    for constants in ("certified", "paper"):
        n = bd.samples_needed(tau=0.03, delta=0.01, rho=0.2, constants=constants)
        coins = Coins(1)
        enough, short = (
            bd.replicable_mean(0.0, m, rho=0.2, delta=0.01, coins=coins, constants=constants).radius for m in (n, n - 1)
        )
        assert enough <= 0.03 * (1 + 1e-15) < short * (1 + 1e-9)


def test_offsets_are_addressed() -> None:
    values = {
        (batch, arm): bd.replicable_mean(51.0, 100, rho=0.1, delta=0.01, coins=Coins(1), batch=batch, arm=arm).value
        for batch in range(3)
        for arm in range(3)
    }
    assert len(set(values.values())) == 9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rho": 0.0}, "^rho: got 0.0"),
        ({"rho": 1e-17}, "^rho: got 1e-17, allowed: above 2"),
        ({"delta": 1.0}, "^delta: got 1.0"),
        ({"delta": 0.06, "constants": "paper"}, "^delta: got 0.06, allowed: below rho/2"),
        ({"constants": "x"}, "^constants: got x"),
        ({"samples": 0}, "^samples: got 0"),
        ({"total": math.nan}, "^total: got nan"),
        ({"sigma": -1.0}, "^sigma: got -1.0"),
    ],
)
def test_bad_arguments(change: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"total": 1.0, "samples": 10, "rho": 0.1, "delta": 0.01, "coins": Coins(1)}
    with pytest.raises(InvalidArgument, match=said):
        bd.replicable_mean(**good | change)
    with pytest.raises(InvalidArgument, match="^tau: got 0"):
        bd.samples_needed(tau=0.0, delta=0.01, rho=0.1)
