"""Logs of rewards: files, refusals with their row, digests; and drawing from them with replacement."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from scipy import stats

import banditto as bd
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument, MissingExtra
from banditto.core.input_files import opened
from banditto.testing.environment_contract import totals_of

ROWS: list[tuple[Any, Any]] = [("b", 0), ("a", 1), ("b", 0.5), ("a", 0), ("a", 1), ("c", 0.25)]
CSV = "when,arm,reward\n1,b,0\n2,a,1\n3,b,0.5\n4,a,0\n5,a,1\n6,c,0.25\n"


def written(folder: Path, text: str | bytes, name: str = "rewards.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def parquet(folder: Path, columns: dict[str, Any], name: str = "rewards.parquet") -> Path:
    arrow: Any = import_module("pyarrow")
    import_module("pyarrow.parquet").write_table(arrow.table(columns), folder / name)
    return folder / name


def test_arms_are_numbered_as_they_appear_and_rows_keep_their_order(tmp_path: Path) -> None:
    log = bd.RewardLog.read(written(tmp_path, CSV))
    assert log == bd.RewardLog.of(ROWS)
    assert log.arms == ("b", "a", "c")
    assert log.rewards == ((0.0, 0.5), (1.0, 0.0, 1.0), (0.25,))
    assert log.rows == 6
    assert bd.RewardLog.of(ROWS, arms=["a", "b", "c"]).arms == ("a", "b", "c")


def test_parquet_and_csv_are_the_same_log(tmp_path: Path) -> None:
    columns = {"arm": [arm for arm, _ in ROWS], "reward": [float(reward) for _, reward in ROWS], "note": ["x"] * 6}
    one, two = bd.RewardLog.read(parquet(tmp_path, columns)), bd.RewardLog.read(written(tmp_path, CSV))
    assert one == two
    assert one.digest == two.digest
    numbers = parquet(tmp_path, {"arm": [1, 2, 1], "reward": [True, False, False]}, "truth.parquet")
    text = written(tmp_path, "arm,reward\n1,True\n2,false\n1,0\n")
    assert bd.RewardLog.read(numbers) == bd.RewardLog.read(text)


def test_the_digest_is_that_of_the_content() -> None:
    """Pinned: another digest would make every log that a study names another one."""
    log = bd.RewardLog.of(ROWS)
    assert log.digest == "7c58bbd2142588052dc3fa5e94cddf6153eb916a212b5aeac697a71ed983db46"
    assert bd.RewardLog.of([(arm, -0.0 if reward == 0 else reward) for arm, reward in ROWS]).digest == log.digest
    others = [
        bd.RewardLog.of(ROWS, high=2),
        bd.RewardLog.of(ROWS[::-1]),
        bd.RewardLog.of([*ROWS, ("a", 0)]),
        bd.RewardLog.of([(f"{arm}x", reward) for arm, reward in ROWS]),
    ]
    assert len({log.digest, *(other.digest for other in others)}) == 5


def test_a_log_can_be_written_and_read_again(tmp_path: Path) -> None:
    rows = [('a "quoted", name', 1 / 3), ("ü", 3.0), ('a "quoted", name', -2.5)]
    log = bd.RewardLog.of(rows, low=-3, high=3)
    assert bd.RewardLog.read(written(tmp_path, log.to_csv()), low=-3, high=3) == log


def test_files_of_spreadsheets(tmp_path: Path) -> None:
    text = "\ufeffarm,reward\r\na,1\r\n\r\nb,0\r\n"
    assert bd.RewardLog.read(written(tmp_path, text)) == bd.RewardLog.of([("a", 1), ("b", 0)])


def test_rewards_are_rescaled_by_the_declared_range_and_by_nothing_else() -> None:
    log = bd.RewardLog.of([("a", 1), ("a", 5), ("b", 4)], low=1, high=5)
    assert log.scaled() == ((0.0, 1.0), (0.75,))
    assert bd.Resampled(log).means == (0.5, 0.75)
    assert "1 to 5 is rescaled to [0, 1]" in bd.Resampled(log).table()
    wider = bd.RewardLog.of([("a", 1), ("a", 5), ("b", 4)], low=0, high=10)
    assert bd.Resampled(wider).means == (0.3, 0.4)
    assert "rescaled" not in bd.Resampled(bd.RewardLog.of(ROWS)).table()


def test_halves_share_no_row() -> None:
    log = bd.RewardLog.of([("a", k / 10) for k in range(5)] + [("b", 1), ("b", 0)])
    first, second = log.split()
    assert first.rewards == ((0.0, 0.2, 0.4), (1.0,))
    assert second.rewards == ((0.1, 0.3), (0.0,))
    with pytest.raises(InvalidArgument, match="^log: got one row of c, allowed: two rows of each arm"):
        bd.RewardLog.of(ROWS).split()


BAD: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "above the range": (
        CSV + "7,a,1.5\n",
        {},
        "rewards: got 1.5 in row 7 of rewards.csv, allowed: numbers from 0 to 1",
    ),
    "below the range": (CSV, {"low": 0.1}, "rewards: got 0 in row 1 of rewards.csv, allowed: numbers from 0.1 to 1"),
    "nan": (CSV + "7,a,nan\n", {}, "rewards: got nan in row 7 of rewards.csv"),
    "infinite": (CSV + "7,a,inf\n", {"high": 1e300}, "rewards: got inf in row 7"),
    "no reward": (CSV + "7,a,\n", {}, "rewards: got nothing in row 7"),
    "a word": (CSV + "7,a,high\n", {}, "rewards: got high in row 7"),
    "no arm": (CSV + "7,,1\n", {}, "arms: got '' in row 7"),
    "a long arm": (CSV + f"7,{'x' * 61},1\n", {}, "in row 7"),
    "an odd arm": (CSV + "7,a\x07,1\n", {}, "in row 7 of rewards.csv, allowed: a name for every arm"),
    "ragged": (CSV + "7,a\n", {}, "log: got 2 columns in row 7 of rewards.csv, allowed: 3 columns"),
    "no column of arms": (CSV, {"arm_column": "button"}, "arm_column: got button, allowed: one of the columns of rew"),
    "no column of rewards": (CSV, {"reward_column": "y"}, "reward_column: got y, .*: when, arm, reward$"),
    "one column for both": (CSV, {"reward_column": "arm"}, "reward_column: got arm, allowed: another column"),
    "a column twice": ("arm,arm,reward\na,b,1\n", {}, "arm_column: got arm twice"),
    "empty": ("", {}, "arm_column: got arm, .*: it has none"),
    "no rows": ("arm,reward\n", {}, "log: got rewards.csv without a row"),
    "one arm": ("arm,reward\na,1\na,0\n", {}, "arms: got only a, allowed: 2 to 1000 arms"),
    "too many arms": (
        "arm,reward\n" + "".join(f"{k},1\n" for k in range(1001)),
        {},
        "arms: got arm 1001 in row 1001 of rewards.csv",
    ),
    "an arm that is not listed": (CSV, {"arms": ["a", "b"]}, "arms: got c in row 6 of rewards.csv, allowed: a, b"),
    "an arm without rows": (CSV, {"arms": ["a", "b", "c", "d"]}, "arms: got d without a row"),
    "arms as text": (CSV, {"arms": "abc"}, "arms: got abc, allowed: a list of names"),
    "no range": (CSV, {"low": 1, "high": 1}, "rewards: got 0 in row 1"),
    "low text": (CSV, {"low": "zero"}, "low: got zero"),
    "high nan": (CSV, {"high": float("nan")}, "high: got nan"),
    "not text": (b"arm,reward\n\xff\xfe,1\n", {}, "log: got .*, allowed: a CSV file in UTF-8"),
    "a quote that does not end": ('arm,reward\n"a,1\n', {}, "log: got .*, allowed: a CSV file in UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_logs_are_refused_with_their_row(case: str, tmp_path: Path) -> None:
    text, options, said = BAD[case]
    with pytest.raises(InvalidArgument, match=f"^{said}" if "got" in said[:20] else said) as caught:
        bd.RewardLog.read(written(tmp_path, text), **options)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_or_no_parquet(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(InvalidArgument, match="a file that can be read \\(No such file"):
            bd.RewardLog.read(tmp_path / name)
    with pytest.raises(InvalidArgument, match="^log: got .*allowed: a Parquet file"):
        bd.RewardLog.read(written(tmp_path, CSV, "rewards.parquet"))
    columns: dict[str, Any] = {"arm": ["a", "b"], "reward": [1.0, None]}
    with pytest.raises(InvalidArgument, match="^rewards: got nothing in row 2 of rewards.parquet"):
        bd.RewardLog.read(parquet(tmp_path, columns))
    with pytest.raises(InvalidArgument, match="^arm_column: got button, allowed: one of the columns"):
        bd.RewardLog.read(parquet(tmp_path, columns), arm_column="button")


@pytest.mark.parametrize("name", ["rewards.parquet", "rewards.csv"])
def test_a_bad_row_leaves_no_file_open(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while somebody holds the error, whose traceback holds everything that was read from."""
    files: list[IO[bytes]] = []

    def watched(path: Path, most_bytes: int) -> IO[bytes]:
        files.append(opened(path, most_bytes))
        return files[-1]

    monkeypatch.setattr("banditto.problems.reward_log.opened", watched)
    monkeypatch.setattr("banditto.core.input_files.opened", watched)
    if name.endswith(".csv"):
        path = written(tmp_path, "arm,reward\na,1\nb,\na,1\n", name)
    else:
        path = parquet(tmp_path, {"arm": ["a", "b", "a"], "reward": [1.0, None, 1.0]}, name)
    with pytest.raises(InvalidArgument, match="^rewards: got nothing in row 2") as held:
        bd.RewardLog.read(path)
    assert [file.closed for file in files] == [True]
    assert held.value.argument == "rewards"


def test_parquet_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path, {"arm": ["a", "b"], "reward": [1.0, 0.0]})
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"pip install 'banditto\[data\]'"):
        bd.RewardLog.read(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: bd.RewardLog(arms=("a", "a"), rewards=((1.0,), (0.0,))), "^arms: got .*different names"),
        (lambda: bd.RewardLog(arms=("a", "b"), rewards=((1.0,),)), "^arms: got .*one for each arm"),
        (lambda: bd.RewardLog(arms=("a", "b"), rewards=((1.0,), (2.0,))), "^rewards: got 2.0 in row 1 of b"),
        (lambda: bd.RewardLog(arms=("a", "b"), rewards=((1.0,), (0.0,)), low=2.0, high=1.0), "^high: got 1.0"),
        (lambda: bd.RewardLog(arms=("a", "b"), rewards=((1.0,), (0.0,)), low=-1e308, high=1e308), "^high: got"),
        (lambda: bd.RewardLog.of([]), "^log: got the log without a row"),
    ],
)
def test_logs_made_by_hand_are_checked_too(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        make()


# -- drawing with replacement -----------------------------------------------------------------------------------------

STARS = bd.RewardLog.of([("a", x) for x in (0, 1, 1, 2, 5, 5, 5)] + [("b", x) for x in (0, 4, 4)], low=0, high=5)


def law_of_totals(rewards: tuple[float, ...], count: int) -> FloatArray:
    """The probabilities of the sums 0, 1, 2 ... of so many rows of whole numbers, by convolution."""
    single = np.bincount(np.array(rewards, dtype=np.int64)) / len(rewards)
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, single)
    return total


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 40])
def test_totals_have_exactly_the_law_of_rows_with_replacement(count: int) -> None:
    """Chi-square against the convolution; up to 8 pulls of `a` draw rows, more draw how often each value comes up.

    False failures 1e-9 each, fixed seeds; with 20,000 totals a class of probability 1/20 that is off by 30% is seen.
    """
    totals = totals_of(bd.Resampled(STARS), count, noise_seed=count) * 5.0
    for arm, rewards in enumerate(STARS.rewards):
        law = law_of_totals(rewards, count)
        found = np.rint(totals[:, arm]).astype(np.int64)
        assert np.abs(totals[:, arm] - found).max() < 1e-9
        observed = np.bincount(found, minlength=law.size)
        assert not observed[law == 0.0].any()
        expected = law * totals.shape[0]
        kept = expected > 5
        rest = observed[~kept].sum(), expected[~kept].sum()
        seen, wanted = np.append(observed[kept], rest[0]), np.append(expected[kept], rest[1])
        used = wanted > 0.0
        assert stats.chisquare(seen[used], wanted[used] * seen.sum() / wanted[used].sum()).pvalue > 1e-9


def test_single_rewards_are_rows_all_equally_likely() -> None:
    """Chi-square of 20,000 rounds; false failures 1e-9, one of four values off by 20% is seen."""
    world = bd.Resampled(STARS)
    reward, law = world.round_kernel(), world.round_parameters()
    for arm, rewards in enumerate(STARS.rewards):
        draws = np.rint([5.0 * reward(arm, law, np.uint64(9), time) for time in range(20_000)]).astype(np.int64)
        single = law_of_totals(rewards, 1)
        observed = np.bincount(draws, minlength=single.size)
        assert not observed[single == 0.0].any()
        used = single > 0.0
        assert stats.chisquare(observed[used], single[used] * draws.size).pvalue > 1e-9


def test_thousands_of_different_rewards() -> None:
    """Mean and variance where every row is another value, on either side of the choice of how to draw.

    6.2 standard errors are a false failure of 1e-9; seen (0.95) are a mean off by 18% of a total's spread, and a
    variance off by 25%.
    """
    rows = np.random.default_rng(5).beta(2.0, 3.0, 2 * 600).tolist()
    world = bd.Resampled(bd.RewardLog.of([("ab"[k % 2], reward) for k, reward in enumerate(rows)]))
    for count in (900, 40_000):
        totals = totals_of(world, count, draws=2000)
        for arm, (mean, variance) in enumerate(zip(world.means, world.variances, strict=True)):
            assert abs(totals[:, arm].mean() - count * mean) < 6.2 * np.sqrt(count * variance / 2000)
            assert abs(totals[:, arm].var() / (count * variance) - 1.0) < 6.2 * np.sqrt(2.0 / 2000)


def test_certain_rewards_and_a_single_row() -> None:
    world = bd.Resampled(bd.RewardLog.of([("a", 1), ("b", 0.25), ("a", 1)]))
    pulls = np.array([[5, 10**15], [0, 1]])
    assert world.draw(pulls, Noise(1, 0, 0)).tolist() == [[5.0, 0.25e15], [0.0, 0.25]]
    assert world.variances == (0.0, 0.0)


def test_too_many_different_rewards_are_refused() -> None:
    rows = [("a", k / 10_001) for k in range(10_001)] + [("b", 1)]
    log = bd.RewardLog.of(rows)
    with pytest.raises(InvalidArgument, match="^log: got 10001 different rewards of a, allowed: at most 10000"):
        bd.Resampled(log)
    assert bd.Resampled(bd.RewardLog.of(rows[1:])).means[1] == 1.0
    odd: Any = [0.5, 0.6]
    with pytest.raises(InvalidArgument, match="^log: got"):
        bd.Resampled(odd)


@pytest.mark.slow
def test_certificates_do_not_depend_on_workers_and_name_the_log() -> None:
    world = bd.Resampled(STARS)
    policy = bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.3)
    one, two = (bd.certify(policy, world, pairs=3000, seed=2, jobs=jobs) for jobs in (1, 2))
    assert one == two
    assert one.environment["log"] == {"arms": ["a", "b"], "rows": [7, 3], "range": [0.0, 5.0], "digest": STARS.digest}


def test_a_baseline_learns_from_rows() -> None:
    """UCB1's regret is far below that of random choice, 0.25 a round."""
    world = bd.Resampled(bd.RewardLog.of([("a", x) for x in (0, 0.5, 0.25)] + [("b", x) for x in (1, 0.5)]))
    regret = bd.certify(bd.UCB1(), world, horizon=2000, rho=0.1, pairs=20).regret.mean
    assert 0 < regret < 0.4 * 0.25 * 2000


def test_a_gpu_is_refused_before_it_is_looked_for() -> None:
    policy = bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.3)
    with pytest.raises(InvalidArgument, match="^environment: got resampled, allowed: bernoulli, gaussian or discrete"):
        bd.certify(policy, bd.Resampled(STARS), backend="cupy")
