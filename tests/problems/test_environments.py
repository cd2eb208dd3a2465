from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import banditto as bd
from banditto.chance.noise import Noise, Sums
from banditto.core.arrays import IntArray
from banditto.core.errors import InvalidArgument
from banditto.problems.environment import Environment
from banditto.testing import ENVIRONMENT_CHECKS
from banditto.testing.environment_contract import COUNTS, DRAWS, Check, totals_of

ENVIRONMENTS: list[Environment] = [
    bd.Bernoulli([0.5, 0.001, 0.999]),
    bd.Gaussian([0.5, -3.0], sigma=2.0),
    bd.Beta([0.5, 0.1], 2.0),
    bd.Beta([0.9, 0.3], 0.5),
    bd.Discrete([([0, 0.5, 1], [0.2, 0.3, 0.5]), ([0.25], [1.0]), ([0.0, 1.0], [0.999, 0.001])]),
    bd.Discrete.from_means([0.2, 0.7], levels=4),
    bd.Resampled(bd.RewardLog.of([("abc"[k % 3], (k * k % 23) / 22) for k in range(60)] + [("d", 0.5)])),
    bd.LinearBernoulli([0.6, -0.5], [[1.0, 0.0], [0.0, 1.0], [0.6, 0.7]]),
    bd.LinearGaussian([0.6, -0.5], [[1.0, 0.0], [0.0, 1.0]], sigma=2.0),
]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda world: f"{world.name}-{len(world.means)}")
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_contract(environment: Environment, check: Check) -> None:
    check(environment)


def _multinomial(noise: Noise, count: int, probabilities: Sequence[float], size: int) -> IntArray:
    """How often each value comes up (R, values)."""
    counts = np.full(size, count, dtype=np.int64)
    return np.stack(list(noise.multinomial_of(counts, probabilities)), axis=1)


def chi_square(draws: np.ndarray[Any, Any], law: Any) -> float:
    """The p-value of a chi-square test in about twenty classes of equal probability."""
    edges = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=expected.size)
    kept = expected > 5
    tested = stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum())
    return float(tested.pvalue)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("mean", [0.5, 0.03, 0.9])
def test_bernoulli_totals_follow_the_binomial(count: int, mean: float) -> None:
    # false-failure rate 1e-9 each; with 20,000 draws one of twenty classes off by 30% is seen (0.95)
    totals = totals_of(bd.Bernoulli([mean, mean]), count, noise_seed=count % 97)
    assert chi_square(totals[:, 0], stats.binom(count, mean)) > 1e-9


@pytest.mark.parametrize("count", [10**12, 10**15])
def test_rare_rewards_at_large_counts(count: int) -> None:
    # NumPy's own binomial is wrong here when it is asked for 10^15 at once
    mean = 20.0 / count
    totals = totals_of(bd.Bernoulli([mean, 0.5]), count)
    assert chi_square(totals[:, 0], stats.poisson(20.0)) > 1e-9
    assert totals.shape == (DRAWS, 2)


@pytest.mark.parametrize("count", COUNTS)
def test_gaussian_totals_follow_the_normal(count: int) -> None:
    totals = totals_of(bd.Gaussian([0.0, 1.0], sigma=0.5), count)
    assert stats.kstest(totals[:, 0] / (0.5 * np.sqrt(count)), "norm").pvalue > 1e-9


@pytest.mark.parametrize("count", COUNTS)
def test_discrete_counts_follow_the_multinomial(count: int) -> None:
    """Each value's count is binomial; values 0.5^k keep the counts apart only here, so look at the sampler itself."""
    probabilities = (0.2, 0.05, 0.45, 0.3)
    counts = _multinomial(Noise(4, 0, 0), count, probabilities, DRAWS)
    assert (counts.sum(axis=1) == count).all()
    for index, probability in enumerate(probabilities):
        assert chi_square(counts[:, index], stats.binom(count, probability)) > 1e-9
    if count > 10:  # two counts of one draw have correlation -sqrt(p q / ((1 - p) (1 - q)))
        expected = -np.sqrt(0.2 * 0.45 / (0.8 * 0.55))
        observed = float(np.corrcoef(counts[:, 0], counts[:, 2])[0, 1])
        assert abs(observed - expected) < 6.2 * (1 - expected**2) / np.sqrt(DRAWS)


@pytest.mark.parametrize("count", [1, 2, 40, 300_000])
def test_beta_sums_do_not_depend_on_how_they_are_cut_into_pieces(count: int) -> None:
    draws = 2000 if count < 1000 else 60
    sums = Noise(6, 0, 0).beta_sums(2.0, 3.0, count, draws)
    mean, variance = 0.4, 0.04
    assert abs(float(np.mean(sums)) - count * mean) < 6.2 * np.sqrt(count * variance / draws)
    if count == 1:
        assert stats.kstest(sums, stats.beta(2.0, 3.0).cdf).pvalue > 1e-9


def test_beta_refuses_what_would_take_for_ever() -> None:
    with pytest.raises(InvalidArgument, match="at most 1e\\+07 pulls"):
        bd.Beta([0.5, 0.6]).draw(np.full((1, 2), 10**9), Noise(1, 0, 0))


def test_every_environment_can_be_made_from_means() -> None:
    for kind in (bd.Bernoulli, bd.Gaussian, bd.Beta, bd.Discrete):
        assert kind.from_means([0.25, 0.75]).means == pytest.approx((0.25, 0.75))
    assert bd.Discrete.from_means([0.5, 0.5], levels=3).probabilities[0] == (0.25, 0.5, 0.25)
    assert bd.Beta([0.5, 0.2], 4).round_parameters().tolist() == [[2.0, 2.0], [0.8, 3.2]]


@pytest.mark.slow
def test_a_baseline_learns_on_every_environment() -> None:
    """Single rewards in compiled loops: UCB1's regret is far below that of random choice, 0.25 a round."""
    for world in (bd.Beta([0.25, 0.75]), bd.Discrete.from_means([0.25, 0.75]), bd.Gaussian([0.25, 0.75])):
        regret = bd.certify(bd.UCB1(), world, horizon=2000, rho=0.1, pairs=20).regret.mean
        assert 0 < regret < 0.4 * 0.25 * 2000


FILES = {
    "not there": ("missing.toml", None, "No such file"),
    "not toml": ("a.toml", "arms = [", "a TOML or JSON file"),
    "not json": ("a.json", "{", "a TOML or JSON file"),
    "other keys": ("a.json", '{"arms": [], "more": 1}', "a file of arms"),
    "no list": ("a.json", '{"arms": 3}', "a file of arms"),
    "field missing": ("a.json", '{"arms": [{"values": [0, 1]}, {"values": [0, 1]}]}', "a file of arms"),
    "one arm": ("a.json", '{"arms": [{"values": [0, 1], "probabilities": [0.5, 0.5]}]}', "2 to 1000 arms"),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files_of_arms(case: str, tmp_path: Path) -> None:
    name, text, said = FILES[case]
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidArgument, match=said):
        bd.Discrete.load(str(tmp_path / name))


def test_a_file_of_arms(tmp_path: Path) -> None:
    rows = "[[arms]]\nvalues = [0, 0.5, 1]\nprobabilities = [0.2, 0.3, 0.5]\n"
    (tmp_path / "arms.toml").write_text(rows * 2)
    world = bd.Discrete.load(str(tmp_path / "arms.toml"))
    assert world.means == pytest.approx((0.65, 0.65))
    assert world == bd.Discrete([([0, 0.5, 1], [0.2, 0.3, 0.5])] * 2)


def test_discrete_arms_must_be_a_list() -> None:
    arms: Any
    for arms in (5, "01"):
        with pytest.raises(InvalidArgument, match="^arms: got"):
            bd.Discrete(arms)


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        (([0, 1.5], [0.5, 0.5]), "^values: got 1.5"),
        (([0, 1], [0.5, 0.6]), "^probabilities: got 1.1"),
        (([0, 1], [1.5, -0.5]), "^probabilities: got"),
        (([0, 1], [1.0]), "2 values and 1 probabilities"),
        (([], []), "0 values"),
        (([0, "x"], [0.5, 0.5]), "^values: got x"),
        (5, "pairs"),
        (("01", "10"), "pairs"),
    ],
)
def test_bad_discrete_arms(arm: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        bd.Discrete([([0, 1], [0.5, 0.5]), arm])


@pytest.mark.parametrize("concentration", [0.0, -1.0, float("nan"), 1e9, "x"])
def test_bad_concentrations(concentration: Any) -> None:
    with pytest.raises(InvalidArgument, match="^concentration: got"):
        bd.Beta([0.5, 0.6], concentration)


def test_beta_means_at_the_edges_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="0.001 to 0.999"):
        bd.Beta([0.0, 0.5])


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ([1 / 999] * 999 + [0.0], 0.0),  # never, however long
        ([0.1] * 10 + [0.0], 0.0),
        ([(1 - 2e-13) / 998] * 998 + [1e-13, 1e-13], 100.0),  # once in 10^13, and not less
    ],
)
def test_rare_values_are_not_lost_to_rounding(probabilities: list[float], expected: float) -> None:
    counts = _multinomial(Noise(3, 0, 0), 10**15, probabilities, 400)
    assert (counts.sum(axis=1) == 10**15).all()
    if expected == 0.0:
        assert not counts[:, -1].any()
    else:
        assert abs(float(counts[:, -1].mean()) - expected) < 6.2 * np.sqrt(expected / 400)


def test_compensated_sums() -> None:
    sums = Sums(1)
    for _ in range(10):
        sums.add(np.array([1e16]))
        for _ in range(1000):
            sums.add(np.array([0.1]))
    assert abs(float(sums.totals[0]) - (1e17 + 1000.0)) <= 16.0


def test_certain_rewards() -> None:
    pulls = np.array([[5, 10**15]] * 3)
    assert bd.Bernoulli([0.0, 1.0]).draw(pulls, Noise(1, 0, 0)).tolist() == [[0.0, 1e15]] * 3


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ([0.5], "2 to 1000 arms"),
        ([0.5] * 1001, "2 to 1000 arms"),
        ([0.5, 1.1], "numbers from 0 to 1"),
        ([0.5, -0.1], "numbers from 0 to 1"),
        ([0.5, float("nan")], "numbers from 0 to 1"),
        ([0.5, "x"], "numbers from 0 to 1"),
        ("0.5,0.6", "a list of numbers"),
    ],
)
def test_bad_means_are_refused(means: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        bd.Bernoulli(means)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_sigma_is_refused(sigma: float) -> None:
    with pytest.raises(InvalidArgument, match="^sigma: got"):
        bd.Gaussian([0.0, 1.0], sigma=sigma)


def test_means_too_far_from_zero_for_floating_point_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="ten thousand standard deviations"):
        bd.Gaussian([999999.6, 999999.7], sigma=1e-6)
    assert bd.Gaussian([-5000.0, 5000.0]).means == (-5000.0, 5000.0)


def test_a_plan_with_other_arms_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="3 arms"):
        bd.Bernoulli([0.1, 0.2]).draw(np.ones((4, 3), dtype=np.int64), Noise(1, 0, 0))


def test_linear_means() -> None:
    points = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.5]]
    bernoulli, gaussian = bd.LinearBernoulli([0.5, 0.25], points), bd.LinearGaussian([0.5, 0.25], points)
    assert bernoulli.means == pytest.approx((0.75, 0.625, 0.4125), abs=1e-6)
    assert gaussian.means == pytest.approx((0.5, 0.25, -0.175), abs=1e-6)
    assert (bernoulli.best, gaussian.best) == pytest.approx((0.75, 0.5), abs=1e-6)
    ball = bd.LinearGaussian([0.3, 0.4], bd.Ball(dimension=2))
    assert ball.means == ()
    assert ball.best == pytest.approx(0.5)
    places = np.array([[[1.0, 0.0], [0.0, 0.5]], [[0.6, 0.8], [0.0, 0.0]]])
    assert np.allclose(ball.means_at(places), [[0.3, 0.2], [0.5, 0.0]])
    assert np.allclose(
        bd.LinearBernoulli([0.3, 0.4], bd.Ball(dimension=2)).means_at(places), [[0.65, 0.6], [0.75, 0.5]]
    )
    assert ball.to_dict()["actions"]["type"] == "ball"
    assert bernoulli.to_dict()["actions"]["actions"] == 3


@pytest.mark.parametrize("count", [10, 10**6, 10**12, 10**15])
def test_totals_of_placed_actions(count: int) -> None:
    """Mean and variance of 20,000 totals; a false failure has probability 1e-9 for each of the eight comparisons."""
    rows = 20_000
    places = np.broadcast_to(np.array([[1.0, 0.0], [0.0, -1.0]]), (rows, 2, 2))
    pulls = np.full((rows, 2), count, dtype=np.int64)
    pulls[:, 1] //= 10
    worlds: list[Any] = [
        bd.LinearGaussian([0.3, 0.4], bd.Ball(dimension=2), 0.7),
        bd.LinearBernoulli([0.3, 0.4], bd.Ball(dimension=2)),
    ]
    for world in worlds:
        totals = world.draw_at(pulls, places, Noise(3, 0, 0))
        again = world.draw_at(pulls, places, Noise(3, 0, 0))
        assert np.array_equal(totals, again)
        assert (world.draw_at(0 * pulls, places, Noise(3, 0, 0)) == 0.0).all()
        means = world.means_at(places)[0]
        for slot, mean in enumerate(means):
            variance = 0.49 if world.name == "linear-gaussian" else mean * (1.0 - mean)
            size = int(pulls[0, slot])
            spread = (variance * size / rows) ** 0.5
            assert abs(totals[:, slot].mean() - size * mean) <= 6.2 * spread + 1e-9 * size
            if size * variance >= 25.0:
                assert abs(totals[:, slot].var() / (size * variance) - 1.0) <= 6.2 * (2.0 / rows) ** 0.5 + 0.01


@pytest.mark.parametrize(
    ("make", "argument", "given"),
    [
        (lambda: bd.LinearBernoulli([0.1], [[1.0, 0.0], [0.0, 1.0]]), "theta", "1 numbers"),
        (lambda: bd.LinearBernoulli([0.9, 0.9], [[1.0, 0.0], [0.0, 1.0]]), "theta", "length 1.27"),
        (lambda: bd.LinearBernoulli("0.9", [[1.0, 0.0], [0.0, 1.0]]), "theta", "0.9"),
        (lambda: bd.LinearGaussian([0.1, 0.1], [[1.0, 0.5], [0.0, 1.0]]), "actions", "of action 0"),
        (lambda: bd.LinearGaussian([0.1, 0.1], [[1.0, 0.0]]), "actions", "1 of them"),
        (lambda: bd.LinearGaussian([0.1, 0.1], bd.Ball(dimension=2), 1e-5), "sigma", "1e-05"),
        (lambda: bd.LinearGaussian([0.1, float("nan")], bd.Ball(dimension=2)), "theta", "nan"),
    ],
)
def test_linear_refusals(make: Any, argument: str, given: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make()
    assert caught.value.argument == argument
    assert given in str(caught.value)
