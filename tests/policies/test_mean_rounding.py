"""Algorithm 1: its constants, its decisions, its promises on paper."""

from __future__ import annotations

import math
import warnings
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.testing import POLICY_CHECKS
from banditto.testing.policy_contract import Check, play

POLICIES = {
    "2 arms": bd.MeanRounding(arms=2, horizon=10**5, rho=0.2),
    "5 arms, paper": bd.MeanRounding(arms=5, horizon=10**11, rho=0.1, constants="paper"),
    "7 arms, sigma 1": bd.MeanRounding(arms=7, horizon=10**7, rho=0.5, sigma=1.0),
    "3 arms, Gaussian": bd.MeanRounding(arms=3, horizon=10**7, rho=0.3, sigma=0.2, rewards="gaussian"),
    "1000 arms": bd.MeanRounding(arms=1000, horizon=10**15, rho=0.1),
}


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, id=name, marks=[pytest.mark.long] if "1000" in name else [])
        for name, policy in POLICIES.items()
    ],
)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract(policy: bd.MeanRounding, check: Check) -> None:
    check(policy)


def test_paper_samples_by_hand() -> None:
    """K = 2, T = 10^10, rho = 0.1: n_i is Proposition 2's for tau_i, delta = 1/(2KTB), rho/(KB)."""
    policy = bd.MeanRounding(arms=2, horizon=10**10, rho=0.1, constants="paper")
    growth = [math.floor(10 ** (10 * i / 23) * (1 + 1e-12)) for i in range(1, 23)]
    log, delta, share = math.log(2 * 2 * 10**10 * 23), 1 / (2 * 2 * 10**10 * 23), 0.1 / 46
    radii = [tau for c in accumulate(growth) if 2 * (tau := math.sqrt(log / c)) < 1]
    for batch, tau in zip(policy.schedule.batches, radii, strict=False):
        inner = tau * (share - 2 * delta) / (share + 1 - 2 * delta)
        assert batch.samples == pytest.approx(math.log(2 / delta) / (2 * inner**2), abs=1.0)
        width = batch.cell / batch.samples
        assert width == pytest.approx(2 * tau / (share + 1 - 2 * delta), rel=1e-6)
        assert batch.cut * width == pytest.approx(2 * tau, rel=1e-12)
    assert len(policy.schedule.batches) == 6


@pytest.mark.slow
@given(st.integers(2, 30), st.integers(3, 15), st.floats(0.01, 0.9), st.sampled_from(["bounded", "subgaussian"]))
@example(3, 3, 0.248046875, "subgaussian")  # two batches would fit but for the rounding up of their samples
@settings(max_examples=25)
def test_certified_samples_are_the_fewest_that_the_proof_allows(
    arms: int, digits: int, rho: float, rewards: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        policy = bd.MeanRounding(arms=arms, horizon=10**digits, rho=rho, rewards=rewards)
    assert policy.guarantee().holds
    horizon, batches = policy.horizon, policy.schedule.batches
    if not batches:
        return
    length = int(math.log(horizon))
    growth = [math.floor(horizon ** (i / length) * (1 + 1e-12)) for i in range(1, length)]
    log, twice = math.log(2 * arms * horizon * length), math.log(4 * arms * horizon * length)
    radii = [math.sqrt(log / c) for c in accumulate(growth)]
    radii = [tau for tau in radii if rewards == "subgaussian" or 2 * tau < 1]
    kappa = math.sqrt(0.5) if rewards == "subgaussian" else 1 / math.sqrt(math.pi)

    def samples(number: int, tau: float) -> float:
        room = rho / (arms * number) - 2.0**-47
        slack = 2.0**-48 * (1.0 if rewards == "bounded" else 5000.0)  # finite precision, seen at T = 10^12 and above
        return ((0.5 * math.sqrt(2 * twice) + kappa / (2 * room)) / (tau - slack / (2 * room))) ** 2

    def fits(number: int, tau: float) -> bool:
        return 2 * math.ceil(samples(number, tau) * (1 - 1e-12)) < horizon  # a pull must be left to decide on

    number = next(n for n in range(1, 100) if sum(fits(n, tau) for tau in radii) <= n)
    for batch, tau in zip(batches, radii, strict=False):
        assert batch.samples == pytest.approx(samples(number, tau), rel=1e-9, abs=1.5)
    assert batches[-1].samples * 2 <= horizon
    assert abs(len(batches) - number) <= 1


def test_the_bound_of_equal_shares_is_met_exactly_when_all_batches_take_place() -> None:
    policy = bd.MeanRounding(arms=2, horizon=10**7, rho=0.1)
    assert len(policy.schedule.batches) == 7
    assert policy.guarantee().total == pytest.approx(0.1, rel=1e-9)
    assert policy.guarantee().total <= 0.1


def test_decisions_are_those_of_the_formula_row_by_row() -> None:
    """Cells, midpoints and the cut, from coins looked up one by one."""
    policy = bd.MeanRounding(arms=3, horizon=10**8, rho=0.2)
    batch = policy.schedule.batch(1)
    coins = Coins(11, count=200)
    generator = np.random.default_rng(3)
    totals = generator.binomial(batch.samples, [0.3, 0.6, 0.9], (200, 3)).astype(float)
    state = policy.decide(policy.init(200), totals, coins)
    width = batch.cell / batch.samples
    for row in range(200):
        offsets = [float(Coins(11, row).uniform("grid", 1, arm)[0, 0]) for arm in range(3)]
        shares = [total / batch.cell for total in totals[row].tolist()]
        cells = [math.floor(share + u) for share, u in zip(shares, offsets, strict=True)]
        values = [(k + 0.5 - u) * width for k, u in zip(cells, offsets, strict=True)]
        kept = [value >= max(values) - batch.cut * width for value in values]
        assert state.active[row].tolist() == kept


def test_the_end_plays_the_best_rounded_mean_or_as_printed_the_smallest_index() -> None:
    coins = Coins(1, count=50)

    def near_tie(pulls: Any, batch: int) -> Any:
        return np.round(pulls * np.array([0.5, 0.501]))

    certified = play(bd.MeanRounding(arms=2, horizon=10**6, rho=0.3), coins, near_tie)[0]
    printed = play(bd.MeanRounding(arms=2, horizon=10**9, rho=0.3, constants="paper"), coins, near_tie)[0]
    assert (printed[-1][:, 1] == 0).all()  # arm 1 for good
    assert 0 < np.count_nonzero(certified[-1][:, 1]) < 50  # whichever rounds higher, by the coins


def test_gaussian_rewards_are_not_skipped_by_their_range() -> None:
    bounded = bd.MeanRounding(arms=2, horizon=10**7, rho=0.1)
    gaussian = bd.MeanRounding(arms=2, horizon=10**7, rho=0.1, rewards="gaussian")
    assert bounded.schedule.batch(1).cut * bounded.schedule.batch(1).cell / bounded.schedule.batch(1).samples < 1
    assert gaussian.schedule.batch(1).cut * gaussian.schedule.batch(1).cell / gaussian.schedule.batch(1).samples > 1


@pytest.mark.parametrize("constants", ["certified", "paper"])
def test_a_short_horizon_warns_and_says_from_where_on(constants: Any) -> None:
    with pytest.warns(ShortHorizonWarning, match="too short for mean-rounding to drop any of 3 arms"):
        short = bd.MeanRounding(arms=3, horizon=100, rho=0.1, constants=constants)
    minimum = short.minimum_horizon()
    assert minimum is not None
    assert short.guarantee().total == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bd.MeanRounding(arms=3, horizon=minimum, rho=0.1, constants=constants).schedule.batches
    with pytest.warns(ShortHorizonWarning, match=str(minimum)):
        bd.MeanRounding(arms=3, horizon=minimum - 1, rho=0.1, constants=constants)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arms": 1}, "^arms: got 1"),
        ({"horizon": 2.5}, "^horizon: got 2.5"),
        ({"rho": 0.0}, "^rho: got 0.0"),
        ({"constants": "best"}, "^constants: got best"),
        ({"sigma": 0.0}, "^sigma: got 0.0"),
        ({"rewards": "cauchy"}, "^rewards: got cauchy"),
    ],
)
def test_bad_arguments(change: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"arms": 3, "horizon": 10**6, "rho": 0.1, **change}
    with pytest.raises(InvalidArgument, match=said):
        bd.MeanRounding(**arguments)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('cell = "0x', 'cell = "-0x'), "widths with cell > 0"),
        (("pulls = ", "pulls = -"), "pulls: got -"),
        (("batches = [", "others = ["), "at most 200 batches"),
        (('cut = "', 'cot = "'), "tables with pulls, cell and cut"),
    ],
)
def test_tampered_protocols_are_refused(change: tuple[str, str], said: str) -> None:
    policy = bd.MeanRounding(arms=2, horizon=10**6, rho=0.1)
    content = policy.protocol(seed=1).to_toml()
    assert change[0] in content
    with pytest.raises(InvalidArgument, match=said):
        bd.policy_of(bd.Protocol.from_toml(content.replace(*change)))
