"""`select`: the same result for any number of workers and after any kill, every reward once, errors in one line."""

from __future__ import annotations

import asyncio
import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.pull_streams import pull_generator
from banditto.cli.select import loaded
from banditto.live import desks
from banditto.live.export import read_log
from banditto.live.registration import registered
from banditto.live.select import shortest
from tests.commands import banditto, interrupted
from tests.live.worlds import exported

KNOWN: dict[str, Any] = {"gap": 0.2, "rho": 0.3}


def worse(rng: np.random.Generator) -> bool:
    return bool(rng.random() < 0.45)


def better(index: int, rng: np.random.Generator) -> float:
    return float(rng.random() < 0.7) if index >= 0 else math.nan


async def later(rng: np.random.Generator) -> bool:
    await asyncio.sleep(0)
    return bool(rng.random() < 0.45)


def text_of(found: bd.Selection) -> str:
    return json.dumps(found.to_dict())


# -- the same result ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [2026, 1])
def test_the_same_for_any_workers_and_any_kind_of_them(seed: int, tmp_path: Path) -> None:
    arms: dict[str, Callable[..., object]] = {"a": worse, "b": better}
    one = bd.select(arms, seed=seed, **KNOWN)
    assert one.estimates["a"].pulls == one.estimates["b"].pulls == one.pulls // 2
    for workers in (4, 16):
        assert text_of(bd.select(arms, seed=seed, workers=workers, **KNOWN)) == text_of(one)
    with ThreadPoolExecutor(3) as executor:
        assert text_of(bd.select(arms, seed=seed, executor=executor, **KNOWN)) == text_of(one)
    assert text_of(bd.select({"a": later, "b": better}, seed=seed, workers=4, **KNOWN)) == text_of(one)
    store = tmp_path / "select.db"
    assert text_of(bd.select(arms, seed=seed, store=store, workers=4, **KNOWN)) == text_of(one)
    assert text_of(bd.select(arms, seed=seed, store=f"sqlite:///{store}", **KNOWN)) == text_of(one)
    other = bd.select(arms, seed=seed, noise_seed=5, **KNOWN)
    assert (other.protocol, other.estimates != one.estimates) == (one.protocol, True)


def test_it_is_what_the_policy_does_with_these_rewards() -> None:
    """Played by hand: the reward of index i is what the generator of its address draws, and the policy decides."""
    noise = 77
    found = bd.select({"a": worse, "b": better}, noise_seed=noise, **KNOWN)
    policy = shortest(arms=2, **KNOWN)
    assert policy == bd.policy_of(found.protocol)
    assert policy.horizon == 2 * policy.cap + 1
    state, pulls = policy.init(1), [0, 0]
    while True:
        plan = policy.plan(state)
        assert plan is not None
        if 0 in plan[0]:  # the winner alone
            break
        totals = np.zeros((1, 2))
        for arm in range(2):
            for index in range(pulls[arm], pulls[arm] + int(plan[0, arm])):
                generator = pull_generator(noise, arm, index)
                totals[0, arm] += worse(generator) if arm == 0 else better(index, generator)
            pulls[arm] += int(plan[0, arm])
        state = policy.decide(state, totals, Coins(2026))
    assert found.winner == "ab"[int(np.argmax(plan[0]))]
    assert [estimate.pulls for estimate in found.estimates.values()] == pulls


def test_in_every_kind_of_store(store_url: str) -> None:
    arms: dict[str, Callable[..., object]] = {"a": worse, "b": better}
    found = bd.select(arms, store=f"{store_url}#race", workers=2, **KNOWN)
    assert text_of(found) == text_of(bd.select(arms, **KNOWN))
    with bd.Experiment.open(store_url, "race") as trial:
        status = trial.status()
    assert (status.winner, status.decided_by, status.spent) == (found.winner, found.decided_by, found.pulls)
    assert bd.verify(store_url, "race").winner == found.winner


def test_addresses_differ() -> None:
    drawn = [pull_generator(*address).random() for address in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1))]
    assert len(set(drawn)) == 4
    assert drawn[0] == pull_generator(1, 0, 0).random()
    addresses = ((1, 0, 0), (2**100, 3, 10**9))
    words = [int(pull_generator(*address).bit_generator.random_raw()) for address in addresses]
    assert words == [0x98D98A0F393AA5BB, 0x5DDDEAE3B54730B5]  # FROZEN


SCRIPT = """
import sys, time
import banditto as bd

def arm(rate):
    def call(index, rng):
        time.sleep(0.0005)
        with open(sys.argv[2], "a") as file:
            file.write("x")
        return rng.random() < rate
    return call

found = bd.select({"a": arm(0.5), "b": arm(0.52), "c": arm(0.45)}, gap=0.2, rho=0.3, store=sys.argv[1], workers=4)
import json
print(json.dumps(found.to_dict()))
"""


@pytest.mark.long
def test_three_processes_at_once(tmp_path: Path) -> None:
    """They hand out pulls of one experiment, and play those of others that have no reward: each is counted once."""
    whole, _, _ = killed(tmp_path / "whole", 0, 1)
    words = [sys.executable, "-c", SCRIPT, str(tmp_path / "select.db"), str(tmp_path / "calls")]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in started] == [whole] * 3
    found = bd.verify(f"sqlite:///{tmp_path}/select.db", "select")
    assert (found.problem, found.winner) == (None, json.loads(whole)["winner"])


def killed(folder: Path, kills: int, seed: int) -> tuple[str, int, int]:
    """Run a selection in processes that are killed at random moments; return its result, its calls, and the kills."""
    folder.mkdir()
    random = np.random.default_rng(seed)
    store, calls = folder / "select.db", folder / "calls"
    words = [sys.executable, "-c", SCRIPT, str(store), str(calls)]
    done = 0
    while done < kills:
        before = calls.stat().st_size if calls.exists() else 0
        running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        wanted = before + random.integers(1, 60)  # while it calls, or just after
        while running.poll() is None and (calls.stat().st_size if calls.exists() else 0) < wanted:
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.02))
        running.send_signal(signal.SIGKILL)
        out, _ = running.communicate()
        if running.returncode == 0:
            return out, calls.stat().st_size, done
        done += 1
    finished = subprocess.run(words, capture_output=True, text=True, check=True)
    return finished.stdout, calls.stat().st_size, done


def test_the_same_after_kills(tmp_path: Path) -> None:
    whole, fewest, _ = killed(tmp_path / "whole", 0, 1)
    found, calls, kills = killed(tmp_path / "killed", 2, 1)
    assert kills == 2
    assert found == whole
    assert fewest == json.loads(whole)["pulls"]
    assert calls >= fewest  # those killed before their rewards were told were made again; there may be none of them
    log = read_log(f"sqlite:///{tmp_path}/killed/select.db", "select")
    assert log.verification.problem is None
    assert log.verification.winner == json.loads(whole)["winner"]
    rows = exported(f"sqlite:///{tmp_path}/killed/select.db", "select", "csv").decode().splitlines()
    assert len(rows) == 1 + json.loads(whole)["pulls"]
    assert json.loads(whole)["pulls"] == sum(int(one["pulls"]) for one in json.loads(whole)["estimates"].values())


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 4])
def test_a_call_that_raises_is_made_again_and_counted_once(workers: int, tmp_path: Path) -> None:
    attempts: Counter[int] = Counter()
    lock = threading.Lock()

    def flaky(index: int, rng: np.random.Generator) -> bool:
        drawn = rng.random()
        with lock:
            attempts[index] += 1
            if index % 10 == 3 and attempts[index] < 3:
                raise OSError("the line was cut")
        return bool(drawn < 0.45)

    found = bd.select({"a": flaky, "b": better}, workers=workers, retries=2, store=tmp_path / "x.db", **KNOWN)
    assert text_of(found) == text_of(bd.select({"a": worse, "b": better}, **KNOWN))
    pulls = found.estimates["a"].pulls
    assert dict(attempts) == {index: 3 if index % 10 == 3 else 1 for index in range(pulls)}
    attempts.clear()
    with pytest.raises(
        bd.Unfinished, match=r"^arm a, index 3: OSError: the line was cut \(in the last of 2 attempts\)$"
    ):
        bd.select({"a": flaky, "b": better}, workers=workers, retries=1, **KNOWN)


def test_asynchronous_calls_are_tried_again_too() -> None:
    tried: Counter[int] = Counter()

    async def flaky(index: int, rng: np.random.Generator) -> bool:
        tried[index] += 1
        await asyncio.sleep(0)
        if tried[index] == 1:
            raise OSError("the line was cut")
        return bool(rng.random() < 0.45)

    found = bd.select({"a": flaky, "b": better}, workers=3, retries=1, **KNOWN)
    assert text_of(found) == text_of(bd.select({"a": worse, "b": better}, **KNOWN))
    tried.clear()
    with pytest.raises(bd.Unfinished, match=r"^arm a, index 0: OSError: the line was cut$") as caught:
        bd.select({"a": flaky, "b": better}, **KNOWN)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(
    ("value", "said"),
    [(math.nan, "nan"), ("0.5", "0.5"), (7, "7"), (None, "None"), (np.float64(-0.1), "-0.1"), ([1.0], "[1.0]")],
)
def test_a_reward_that_is_none_stops_it_and_loses_nothing(
    value: object, said: str, workers: int, tmp_path: Path
) -> None:
    def bad(index: int, rng: np.random.Generator) -> object:
        return value if index == 20 else rng.random() < 0.7

    store = tmp_path / "x.db"
    with pytest.raises(bd.InvalidArgument) as caught:
        bd.select({"a": worse, "b": bad}, store=store, workers=workers, **KNOWN)
    assert str(caught.value) == f"reward of arm b, index 20: got {said}, allowed: a number from 0 to 1"
    with bd.Experiment.open(f"sqlite:///{store}", "select") as trial:
        status = trial.status()
        assert status.spent + sum(status.told.values()) >= 40  # 20 of each before it
    mended: Counter[int] = Counter()

    def good(index: int, rng: np.random.Generator) -> bool:
        mended[index] += 1
        return better(index, rng) == 1.0

    found = bd.select({"a": worse, "b": good}, store=store, workers=workers, **KNOWN)
    assert text_of(found) == text_of(bd.select({"a": worse, "b": better}, **KNOWN))
    assert min(mended) == 20  # those before it stand in the store


def test_iterables_are_read_in_order_and_may_end_early(tmp_path: Path) -> None:
    rewards = [pull_generator(4, 1, index).random() < 0.7 for index in range(5000)]
    found = bd.select({"a": worse, "b": rewards}, noise_seed=4, workers=4, **KNOWN)
    assert found.estimates == bd.select({"a": worse, "b": better}, noise_seed=4, **KNOWN).estimates
    assert found.estimates["b"].pulls > 10
    store = tmp_path / "x.db"
    with pytest.raises(bd.Unfinished) as caught:
        bd.select({"a": worse, "b": iter(rewards[:10])}, noise_seed=4, store=store, **KNOWN)
    error = caught.value
    assert (str(error), error.arm, error.index) == ("arm b, index 10: there are no more rewards", "b", 10)
    assert error.estimates["b"] == (sum(rewards[:10]) / 10, 10)
    assert error.estimates["a"][1] in (10, 11)
    again = bd.select({"a": worse, "b": np.array(rewards)}, noise_seed=4, store=store, **KNOWN)
    assert text_of(again) == text_of(found)

    def broken() -> Iterator[float]:
        yield 0.5
        raise OSError("the file is gone")

    with pytest.raises(bd.Unfinished, match="^arm b, index 1: OSError: the file is gone$"):
        bd.select({"a": worse, "b": broken()}, **KNOWN)


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    def stops(index: int, rng: np.random.Generator) -> bool:
        if index == 25 and not (tmp_path / "stopped").exists():
            (tmp_path / "stopped").touch()
            raise KeyboardInterrupt
        return bool(rng.random() < 0.45)

    store = tmp_path / "x.db"
    with pytest.raises(KeyboardInterrupt):
        bd.select({"a": stops, "b": better}, store=store, **KNOWN)
    with bd.Experiment.open(f"sqlite:///{store}", "select") as trial:
        status = trial.status()
        assert status.spent + sum(status.told.values()) >= 50
    found = bd.select({"a": stops, "b": better}, store=store, **KNOWN)
    assert text_of(found) == text_of(bd.select({"a": worse, "b": better}, **KNOWN))


@pytest.mark.parametrize(
    ("arms", "options", "said"),
    [
        ({"a": worse}, {}, "arms: got 1 of them, allowed: 2 or more"),
        ([worse, worse], {}, "arms: got [<function"),
        ({"a": worse, "b": 0.5}, {}, "arm b: got 0.5, allowed: a callable that returns one reward, or an iterable of"),
        ({"a": worse, "b": "text"}, {}, "arm b: got text, allowed: a callable"),
        ({"a": worse, "b": {0: 1}}, {}, "arm b: got {0: 1}, allowed: a callable"),
        ({"a": worse, "b": lambda x: x}, {}, "arm b: got a callable that needs x, allowed: only index and rng"),
        ({"a": worse, "b": worse}, {"gap": 2.0}, "gap: got 2.0, allowed: a number from 5e-07 to 1"),
        ({"a": worse, "b": worse}, {"rho": 0.0}, "rho: got 0.0, allowed: a number between 0 and 1"),
        ({"a": worse, "b": worse}, {"control": "c"}, "control: got c, allowed: the name of an arm: a, b"),
        ({"a": worse, "b": worse}, {"workers": 0}, "workers: got 0, allowed: an integer from 1 to"),
        ({"a": worse, "b": worse}, {"retries": -1}, "retries: got -1, allowed: an integer from 0 to"),
        ({"a": worse, "b": worse}, {"store": " "}, "store: got ' ', allowed: a file, or a URL"),
        ({"a": worse, "b": worse}, {"store": "sqlite:///x.db#a b"}, "name: got a b, allowed:"),
        ({"a": worse, "b": worse}, {"sigma": 2.0}, "rewards: got"),
        ({"a": worse, "b": worse}, {"noise_seed": -1}, "noise_seed: got -1, allowed:"),
    ],
)
def test_bad_arguments(arms: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(bd.InvalidArgument) as caught:
        bd.select(arms, **(KNOWN | options))
    assert str(caught.value).startswith(said)


def test_a_store_with_another_selection_is_a_conflict(tmp_path: Path) -> None:
    store = tmp_path / "x.db"
    bd.select({"a": worse, "b": better}, store=store, **KNOWN)
    with pytest.raises(bd.ConflictError, match="experiment select has another protocol"):
        bd.select({"a": worse, "c": better}, store=store, **KNOWN)
    other = bd.select({"a": worse, "c": better}, store=f"sqlite:///{store}#other", **KNOWN)
    assert other.winner == "c"
    with bd.Experiment.open(f"sqlite:///{store}", "third", bd.Registration.of(other.protocol, ["a", "b"])) as trial:
        trial.stop("enough")
    with pytest.raises(bd.ConflictError, match="was stopped, and cannot go on"):
        bd.select({"a": worse, "b": better}, store=f"sqlite:///{store}#third", **KNOWN)


def test_a_reward_that_another_process_told_first_counts(tmp_path: Path) -> None:
    registration = registered(shortest(arms=2, **KNOWN).protocol(seed=1))
    with desks.StoredDesk(registration, f"sqlite:///{tmp_path}/x.db", "x") as desk:
        slots, _ = desk.ask(3)
        with desks.StoredDesk(registration, f"sqlite:///{tmp_path}/x.db", "x") as other:
            assert other.waiting() == sorted(slots)
            other.tell([(slots[0][0], 1.0)])
        desk.tell([(ticket, 0.0) for ticket, _ in slots])
        known = desk.known()
    assert (sum(known.counts), sum(known.sums)) == (3, 1)


def test_an_executor_that_fails() -> None:
    class Broken(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            failed: Future[Any] = Future()
            failed.set_exception(OSError("no machine"))
            return failed

    with Broken(1) as executor, pytest.raises(bd.WorkerError, match="^a worker failed: OSError: no machine$"):
        bd.select({"a": worse, "b": better}, executor=executor, **KNOWN)


def test_an_executor_that_was_shut_down() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(bd.WorkerError, match="^a worker failed: RuntimeError: cannot schedule new futures"):
        bd.select({"a": worse, "b": better}, executor=executor, **KNOWN)


def test_slow_iterables_are_told_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both arms are read in this thread; where the second one hangs, the store has what came before."""
    monkeypatch.setattr("banditto.live.select._TELL_SECONDS", -1.0)  # it is always time
    url = f"sqlite:///{tmp_path}/x.db"

    def watched() -> Iterator[int]:
        for place in range(10):
            if place:
                with bd.Experiment.open(url, "select") as trial:
                    status = trial.status()
                    assert status.spent + sum(status.told.values()) >= 2 * place - 1
            yield place % 2
        raise OSError("enough")

    with pytest.raises(bd.Unfinished, match="^arm b, index 10: OSError: enough$"):
        bd.select({"a": [0, 1] * 1000, "b": watched()}, store=url, **KNOWN)


def test_a_coroutine_that_nobody_waits_for_is_no_reward() -> None:
    arms = {"a": worse, "b": lambda rng: later(rng)}
    with pytest.raises(bd.InvalidArgument, match="^reward of arm b, index 0: got <coroutine object later"):
        bd.select(arms, **KNOWN)


# -- what comes back ---------------------------------------------------------------------------------------------------


def test_what_a_selection_says() -> None:
    seen: list[tuple[int, int]] = []
    found = bd.select({"a": worse, "b": better}, progress=lambda *both: seen.append(both), **KNOWN)
    assert (found.winner, found.level, found.gap, found.power) == ("b", "winner", 0.2, 0.95)
    assert found.guarantee.holds
    assert found.guarantee.level == "winner"
    assert seen[0] == (0, found.most_pulls)
    assert seen[-1] == (found.pulls, found.pulls)
    assert seen == sorted(seen, key=lambda both: both[0])
    schema = json.loads((Path(bd.__file__).parent / "schemas" / "selection.json").read_text())
    document = json.loads(text_of(found)) | {"versions": {}, "platform": "", "command": [], "created": "2026-01-01"}
    document["versions"] = dict.fromkeys(("banditto", "python", "numpy", "scipy", "numba"))
    jsonschema.validate(document, schema)
    assert bd.policy_of(bd.Protocol.from_dict(document["protocol"])) == bd.policy_of(found.protocol)
    for text in (found.table(), found._repr_html_()):
        assert found.winner in text
        assert "two labs name different winners with probability 0.3 at the most" in text


def of_seed(seed: int, **options: Any) -> bd.Selection:
    """Equal arms: what names the winner is up to the coins."""
    return bd.select({"a": lambda index: index % 2, "b": lambda index: index % 2}, seed=seed, **KNOWN, **options)


def test_a_coin_is_said_to_be_one() -> None:
    found = of_seed(1)
    assert (found.decided_by, found.lead) == ("coin", 0.0)
    assert found.table().startswith(
        f"No arm led by enough, so the shared coin names {found.winner} (two labs agree with prob"
    )
    assert f"This does not show that {found.winner} is better." in found.table()
    assert "winner, by the coin" in found.table()
    assert {of_seed(seed).winner for seed in range(6)} == {"a", "b"}
    kept = of_seed(1, control="b")
    assert kept.table().startswith("b is kept, as the control: no arm led by more than")
    assert "winner, as the control" in kept.table()
    led = bd.select({"a": lambda: 0, "b": lambda: 1}, **KNOWN)
    assert led.table().startswith("b wins by its lead: it led by 1, and more than")


def test_the_figure_says_who_won_and_by_what() -> None:
    for found, word in (
        (of_seed(1), "by the shared coin: nobody led by enough"),
        (of_seed(1, control="b"), "as the control: nobody led by enough"),
        (bd.select({"a": lambda: 0, "b": lambda: 1}, **KNOWN), "by its lead"),
    ):
        figure = found.plot()
        (axes,) = figure.axes
        assert axes.get_title(loc="left") == f"{found.winner} wins, {word}"
        labels = [text.get_text() for text in axes.get_yticklabels()]
        assert labels == [f"{name} ({estimate.pulls:,})" for name, estimate in found.estimates.items()]
        assert [line.get_xdata()[0] for line in axes.lines] == [one.mean for one in found.estimates.values()]


def test_rates_that_were_promised_and_gaussian_rewards() -> None:
    low: dict[str, Any] = {"gap": 0.04, "rho": 0.3, "rate_at_most": 0.1}
    arms = {"a": lambda rng: rng.random() < 0.02, "b": lambda rng: rng.random() < 0.09}
    found = bd.select(arms, **low)
    assert found.warnings == ()
    assert found.most_pulls < bd.select(arms, **(low | {"rate_at_most": None})).most_pulls
    broken = bd.select({"a": lambda: 1, "b": lambda: 1}, **low)
    assert "contradicts rate_at_most 0.1" in broken.warnings[0]
    assert "warning: arm a" in broken.table()
    heights = {"a": lambda rng: rng.normal(170, 7), "b": lambda rng: rng.normal(175, 7)}
    tall = bd.select(heights, gap=3, sigma=7, rewards="gaussian", rho=0.3)
    assert tall.winner == "b"
    assert all(150 < (one.mean or 0.0) < 200 for one in tall.estimates.values())


# -- the command line --------------------------------------------------------------------------------------------------

MODULE = """
import time

def worse(rng): return rng.random() < 0.45
def better(rng): return rng.random() < 0.7
def bad(index): return 7 if index == 20 else 0.5
def raises(index): raise OSError("the line was cut")
def slow(rng):
    time.sleep(0.01)
    return rng.random() < 0.45
class Judge:
    @staticmethod
    def score(rng): return rng.random() < 0.7
rows = [1, 0] * 11
"""
LOOSE = ("--gap", "0.2", "--rho", "0.3")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of its own name: others may be loaded already."""
    (tmp_path / "arms_to_select.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("arms_to_select", None)


def test_the_command(folder: Path) -> None:
    words = ("select", "a=arms_to_select:worse", "b=arms_to_select:Judge.score", *LOOSE)
    plain = banditto(*words, cwd=folder)
    assert (plain.returncode, plain.stderr) == (0, "")
    found = bd.select({"a": worse, "b": better}, **KNOWN)
    assert plain.stdout == found.table() + "\n"
    options = ("--workers", "4", "--retries", "1", "--store", "x.db", "--control", "a", "--power", "0.9", "--seed", "3")
    told = banditto(*words, *options, "--noise-seed", "8", "--json", cwd=folder)
    content = json.loads(told.stdout)
    assert content["schema_version"] == 1
    same = bd.select({"a": worse, "b": better}, control="a", power=0.9, seed=3, noise_seed=8, **KNOWN).to_dict()
    assert {key: content[key] for key in same} == json.loads(json.dumps(same))
    assert banditto("verify", "select", "--store", f"sqlite:///{folder}/x.db").returncode == 0
    assert banditto("status", "select", "--store", f"sqlite:///{folder}/x.db").returncode == 0
    rates = ("--gap", "0.1", "--rho", "0.5", "--rate-at-most", "0.2")
    warned = banditto("select", "a=arms_to_select:better", "b=arms_to_select:better", *rates, cwd=folder)
    assert "banditto: warning: arm a: the mean" in warned.stderr
    gaussian = ("--gap", "1", "--sigma", "1", "--rho", "0.5", "--json")
    told = banditto("select", "a=arms_to_select:better", "b=arms_to_select:better", *gaussian, cwd=folder)
    assert json.loads(told.stdout)["protocol"]["settings"]["rewards"] == "gaussian"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("a=arms_to_select:worse", "b=arms_to_select:bad"), 2, "reward of arm b, index 20: got 7, allowed: a number"),
        (("a=arms_to_select:worse", "b=arms_to_select:raises"), 3, "arm b, index 0: OSError: the line was cut"),
        (("a=arms_to_select:worse", "b=arms_to_select:rows"), 3, "arm b, index 22: there are no more rewards"),
        (("a=arms_to_select:worse",), 2, "NAME=MODULE:CALLABLE: got 1 of them, allowed: 2 or more"),
        (("a=arms_to_select:worse", "a=arms_to_select:bad"), 2, "NAME=MODULE:CALLABLE: got a more than once"),
        (("a=arms_to_select:worse", "b"), 2, "NAME=MODULE:CALLABLE: got b, allowed: NAME=module:callable"),
        (("a=arms_to_select:worse", "b=no_such_module:x"), 2, "NAME=MODULE:CALLABLE: got b=no_such_module:x"),
        (("a=arms_to_select:worse", "b=arms_to_select:none"), 2, "NAME=MODULE:CALLABLE: got b=arms_to_select:none"),
        (("a=arms_to_select:worse", "b=arms_to_select:bad", "--workers", "x"), 2, "--workers: got x"),
        (("a=arms_to_select:worse", "b=arms_to_select:bad", "--control", "c"), 2, "--control: got c"),
    ],
)
def test_errors_of_the_command(words: tuple[str, ...], code: int, said: str, folder: Path) -> None:
    plain = banditto("select", *words, *LOOSE, cwd=folder)
    assert (plain.returncode, plain.stdout) == (code, "")
    first, *rest = plain.stderr.splitlines()
    assert first.startswith(f"banditto: error: {said}")
    assert rest[:1] == (["What is known so far:"] if code == 3 else [])
    told = banditto("select", *words, *LOOSE, "--json", cwd=folder)
    assert (told.returncode, told.stdout) == (code, "")
    content = json.loads(told.stderr)
    assert content["message"].startswith(said)
    if code == 3 and "rows" in words[1]:
        assert content["estimates"]["b"] == {"mean": 0.5, "pulls": 22}


def test_a_gap_must_be_named(folder: Path) -> None:
    assert banditto("select", "a=arms_to_select:worse", "b=arms_to_select:bad", cwd=folder).stderr == (
        "banditto: error: --gap: got nothing, allowed: the smallest lead that matters, such as 0.02\n"
    )


def test_a_module_that_cannot_be_loaded_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "arms_to_select.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(folder)
    with pytest.raises(bd.InvalidArgument, match=r"something that can be loaded \(SystemExit: 1\)$"):
        loaded(["a=arms_to_select:x"])


@pytest.mark.parametrize("workers", ["1", "4"])
def test_ctrl_c_keeps_what_is_done(workers: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    words = ["select", "a=arms_to_select:slow", "b=arms_to_select:slow", "--gap", "0.1", "--store", "x.db"]
    code, out, shown = interrupted([*words, "--workers", workers], "[1-9][0-9]+/[0-9]+")
    assert (code, out) == (130, "")
    kept = "banditto: interrupted before there was a winner; what is done is kept; the same command goes on\n"
    assert shown.endswith(kept)  # after the bar, which takes its line with it
    with bd.Experiment.open("sqlite:///x.db", "select") as trial:
        status = trial.status()
    assert status.state == "running"
    assert status.spent + sum(status.told.values()) >= 10


def test_arms_that_are_no_arms() -> None:
    with pytest.raises(bd.InvalidArgument, match="^arms: got 1 of them, allowed: 2 or more$"):
        bd.select({"a": lambda: 1.0}, gap=0.3)
    with pytest.raises(
        bd.InvalidArgument, match="^arms: got 1 as a name, allowed: names that are text, such as 'new'$"
    ):
        bd.select({1: lambda: 1.0, 2: lambda: 0.0}, gap=0.3)  # type: ignore[dict-item]
    with pytest.raises(bd.InvalidArgument, match="^sigma: got nothing, allowed: the standard deviation"):
        bd.select({"a": lambda: 1.0, "b": lambda: 0.0}, gap=0.3, rewards="gaussian")


def test_a_selection_that_has_ended_calls_nothing_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    arms = {"a": lambda index: index % 2, "b": lambda index: 1}
    first = bd.select(arms, store=tmp_path / "x.db", **KNOWN)
    assert not caplog.messages

    def never() -> float:
        raise AssertionError

    again = bd.select(dict.fromkeys(arms, never), store=tmp_path / "x.db", **KNOWN)
    assert caplog.messages == ["the store has this selection already, to its end: nothing is called"]
    assert again.to_dict() == first.to_dict()
