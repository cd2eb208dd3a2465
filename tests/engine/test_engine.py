"""Executions: reproducible for any workers and order, additive, bounded in memory, interruptible."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import banditto as bd
from banditto.chance.noise import Noise
from banditto.core.errors import ContractError, WorkerError
from banditto.core.trajectory import SEQUENCE, start_digest, varints
from banditto.engine import rounds
from banditto.engine.batched import BatchedPlayer
from banditto.engine.block_sizes import PAIRS_PER_BLOCK
from banditto.engine.blocks import run_pairs
from banditto.engine.pair_counts import Moments, pseudo_regret
from banditto.engine.player import Run, run_of
from banditto.engine.pool import submitted
from banditto.problems.environment import Environment

T = TypeVar("T")
WORLD = bd.Bernoulli([0.5, 0.72, 0.6])
REPLICABLE = bd.RandomThreshold(arms=3, horizon=10**7, rho=0.3)


def run_with(policy: Any = REPLICABLE, horizon: int | None = None, seed: int = 5) -> Run:
    return run_of(policy, WORLD, seed=seed, noise_seed=None, horizon=horizon)


RUNS = {"batched": (run_with(), 5000), "rounds": (run_with(bd.Thompson(), 300), 30)}


class Shuffled(Executor):
    """Runs calls in an order of its own, all at the first time that a result is wanted."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._calls: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Lazy[T] = Lazy(self)
        self._calls.append(lambda: future.set_result(fn(*args, **kwargs)))
        return future

    def run(self) -> None:
        self._random.shuffle(self._calls)
        while self._calls:
            self._calls.pop()()


class Lazy(Future[T]):
    def __init__(self, owner: Shuffled) -> None:
        super().__init__()
        self._owner = owner

    def result(self, timeout: float | None = None) -> T:
        self._owner.run()
        return super().result(timeout)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_same_counts_for_any_workers_and_any_order(name: str) -> None:
    what, pairs = RUNS[name]
    alone = run_pairs(what, pairs).counts
    assert run_pairs(what, pairs, jobs=3).counts == alone
    with ThreadPoolExecutor(2) as threads:
        assert run_pairs(what, pairs, executor=threads).counts == alone
    for seed in range(3):
        assert run_pairs(what, pairs, executor=Shuffled(seed)).counts == alone


@pytest.mark.parametrize(
    ("policy", "world", "horizon", "start"),
    [
        (REPLICABLE, WORLD, None, PAIRS_PER_BLOCK - 20),
        (bd.UCB1(), bd.Bernoulli([0.95, 0.97, 0.96]), 12, 1),
    ],
    ids=["batched", "rounds"],
)
def test_fewer_pairs_are_a_prefix_of_more(policy: Any, world: bd.Bernoulli, horizon: int | None, start: int) -> None:
    """One pair more adds just that pair, whatever was asked for: here across the end of a block."""
    what = run_of(policy, world, seed=5, noise_seed=None, horizon=horizon)
    counted = [run_pairs(what, n).counts.mismatches for n in range(start, start + 41)]
    steps = np.diff(counted).tolist()
    views = [bd.watch_pair(policy, world, pair=n, seed=5, horizon=horizon) for n in range(start, start + 40)]
    assert steps == [int(not view.same) for view in views]
    assert 0 < sum(steps) < len(steps)  # both kinds occur, so that the comparison means something


@pytest.mark.parametrize("world", [bd.Bernoulli([0.6, 0.5, 0.4]), bd.Discrete.from_means([0.6, 0.5, 0.4])])
def test_pairs_that_move_out_change_nothing_for_the_others(world: Environment) -> None:
    """Some rows go on deciding long after most have gone; each draws what it would have drawn among all."""
    policy = bd.MeanRounding(arms=3, horizon=10**10, rho=0.3)
    what = run_of(policy, world, seed=3, noise_seed=None, horizon=None)
    counts = BatchedPlayer(what, policy).play_block(0, PAIRS_PER_BLOCK)
    first, second = BatchedPlayer(what, policy).executions(0)
    diverged = np.zeros(PAIRS_PER_BLOCK, dtype=np.int64)
    for batch in range(1, 100):
        plans = first.advance(), second.advance()
        one, two = (np.zeros_like(first.pulls) if plan is None else plan for plan in plans)
        diverged[(diverged == 0) & (one != two).any(axis=1)] = batch
    assert counts.mismatches == np.count_nonzero(diverged) > 20
    assert counts.first_divergence == Counter(diverged[diverged > 0].tolist())
    means = what.environment.means
    assert counts.regret == Moments.of((pseudo_regret(first.pulls, means) + pseudo_regret(second.pulls, means)) / 2.0)


def test_one_pair_looked_at_is_the_pair_that_was_counted() -> None:
    what = run_with()
    counts = BatchedPlayer(what, REPLICABLE).play_block(0, PAIRS_PER_BLOCK)
    first, second = BatchedPlayer(what, REPLICABLE).executions(0)
    while first.advance() is not None:
        second.advance()
    while second.advance() is not None:
        pass
    differ = np.flatnonzero((first.pulls != second.pulls).any(axis=1))
    assert counts.mismatches == differ.size > 0
    for pair in [*differ[:3].tolist(), 0, 17]:
        left, right = BatchedPlayer(what, REPLICABLE).trajectories(pair)
        assert left.length == right.length == REPLICABLE.horizon
        if pair in differ:
            assert left.digest != right.digest
        view = bd.watch_pair(REPLICABLE, WORLD, pair=pair, seed=5)
        assert view.digests == (left.digest, right.digest)
        assert view.same == (left.streaks == right.streaks)


def test_pulls_add_up_in_every_execution() -> None:
    for horizon in (10**5, 10**9, 10**15):
        policy = bd.RandomThreshold(arms=3, horizon=horizon, rho=0.3)
        first, _ = BatchedPlayer(run_with(policy), policy).executions(0)
        while first.advance() is not None:
            pass
        assert (first.pulls.sum(axis=1) == horizon).all()


def test_round_by_round_digest_is_that_of_the_runs_all_at_once() -> None:
    for horizon in (10, 255, rounds.ROUNDS_PER_CHUNK, rounds.ROUNDS_PER_CHUNK * 2 + 77):
        what = run_with(bd.UCB1(), horizon)
        everything = np.arange(horizon)
        _, (run, _) = rounds.RoundPlayer(what, bd.UCB1()).play_pair(3, watch=everything)
        sequence = run.watched.tolist()
        assert len(sequence) == horizon == int(run.pulls.sum())
        assert np.bincount(sequence, minlength=3).tolist() == run.pulls.tolist()
        hasher = start_digest(SEQUENCE)
        start = 0
        for end in range(1, horizon + 1):
            if end == horizon or sequence[end] != sequence[start]:
                hasher.update(varints((sequence[start], end - start)))
                start = end
        assert run.digest == hasher.hexdigest()


def test_first_divergence_of_rounds_is_where_the_sequences_part() -> None:
    what = run_with(bd.Thompson(), 40_000)
    diverged, (first, second) = rounds.RoundPlayer(what, bd.Thompson()).play_pair(0, watch=np.arange(40_000))
    assert diverged == int(np.flatnonzero(first.watched != second.watched)[0]) + 1


def test_coins_of_thompson_are_shared_and_addressed() -> None:
    """With rewards that cannot differ, both sides of a pair are the same to the end; other pairs are not."""
    world = bd.Bernoulli([1.0, 1.0, 1.0])
    what = run_of(bd.Thompson(), world, seed=5, noise_seed=None, horizon=500)
    diverged, sides = rounds.RoundPlayer(what, bd.Thompson()).play_pair(0)
    assert diverged == 0
    assert sides[0].digest == sides[1].digest
    _, others = rounds.RoundPlayer(what, bd.Thompson()).play_pair(1)
    assert others[0].digest != sides[0].digest


def test_moments_merge_as_one_list() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, 1000)
    merged = Moments()
    for part in np.split(values, [1, 10, 400]):
        merged = merged.plus(Moments.of(part))
    whole = Moments.of(values)
    assert merged.count == whole.count
    assert merged.mean == pytest.approx(whole.mean, rel=1e-12)
    assert merged.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(1000), rel=1e-12)
    assert merged.largest == values.max()


class Overspender:
    """Breaks the contract: plans one pull too many."""

    def __init__(self, extra: int) -> None:
        self._extra = extra

    def __getattr__(self, name: str) -> Any:
        return getattr(REPLICABLE, name)

    def plan(self, state: Any) -> Any:
        plan = REPLICABLE.plan(state)
        return plan if plan is None else plan + self._extra


def test_a_policy_that_breaks_its_contract_is_stopped() -> None:
    broken: Any = Overspender(1)
    with pytest.raises(ContractError, match="more than the horizon"):
        run_pairs(run_with(broken), 10)


def test_noise_of_the_two_sides_and_of_blocks_differs() -> None:
    draws = {Noise(1, side, block).binomials(np.array([10**12]), 0.5)[0] for side in (0, 1) for block in range(50)}
    assert len(draws) == 100


# -- interruption and processes --------------------------------------------------------------------------------------


def test_ctrl_c_keeps_the_finished_blocks() -> None:
    def stop_after_two(done: int, total: int) -> None:
        if done >= 2 * PAIRS_PER_BLOCK:
            raise KeyboardInterrupt

    outcome = run_pairs(run_with(), 100_000, progress=stop_after_two)
    assert outcome.interrupted
    assert outcome.counts == run_pairs(run_with(), outcome.counts.pairs).counts
    assert outcome.counts.pairs == 2 * PAIRS_PER_BLOCK


@pytest.mark.slow
def test_ctrl_c_with_workers_finishes_what_is_under_way() -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    outcome = run_pairs(run_with(), 200_000, jobs=2, progress=stop)
    assert outcome.interrupted
    assert 0 < outcome.counts.pairs < 200_000
    assert outcome.counts == run_pairs(run_with(), outcome.counts.pairs).counts


def test_an_interrupt_never_counts_a_block_twice() -> None:
    """Interrupts at many places of the loop: what is kept is always a prefix, counted once."""
    whole = [run_pairs(run_with(), n * PAIRS_PER_BLOCK).counts for n in range(1, 5)]
    for place in range(1, 400, 7):
        steps = 0

        def trace(frame: Any, event: str, argument: Any, place: int = place) -> Any:
            nonlocal steps
            if frame.f_code.co_name in ("run_pairs", "plus") and event == "line":
                steps += 1
                if steps == place:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            outcome = run_pairs(run_with(), 4 * PAIRS_PER_BLOCK)
        except KeyboardInterrupt:
            continue  # before the loop began, or after it ended
        finally:
            sys.settrace(None)
        if outcome.counts.pairs:
            assert outcome.counts == whole[outcome.counts.pairs // PAIRS_PER_BLOCK - 1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_ctrl_c_does_not_come_between_a_worker_and_its_start() -> None:
    """A thread that blocks no signals is there, as linear algebra libraries have them: it may be given the signal."""
    inside, over = [], threading.Event()

    class Starting(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            os.kill(os.getpid(), signal.SIGINT)
            future = super().submit(fn, *args, **kwargs)
            inside.append(future.result())  # many steps of Python, between any two of which an interrupt could come
            return future

    other = threading.Thread(target=over.wait)
    other.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Starting(1) as executor, pytest.raises(KeyboardInterrupt):
            submitted(executor, sum, range(10))
        assert inside == [45]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()
        other.join()


@pytest.mark.slow
def test_a_script_without_its_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "no_guard.py"
    script.write_text(
        textwrap.dedent(
            """
            import banditto as bd
            policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.3)
            bd.certify(policy, bd.Bernoulli([0.4, 0.6]), pairs=3000, jobs=2)
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode != 0
    assert "if __name__ == '__main__':" in done.stderr.splitlines()[-1]
    assert "WorkerError" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.slow
def test_a_worker_that_dies_is_an_error_of_ours() -> None:
    suicidal: Any = Suicidal()
    with pytest.raises(WorkerError, match="a worker process died .* Workers import the main script again: "):
        run_pairs(run_with(suicidal), 5000, jobs=2)


class Suicidal:
    """Kills the process that plays it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(REPLICABLE, name)

    def init(self, replicates: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.slow
def test_ctrl_c_stops_policies_that_choose_in_every_round() -> None:
    """A real signal, and blocks that are compiled code for nearly all of their time."""
    code = (
        "import banditto as bd, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # even if we run in the background
        "def progress(done, total):\n"
        "    print(done, flush=True)\n"
        "world, size = bd.Bernoulli([0.9, 0.8]), dict(horizon=10**6, rho=0.1, pairs=10**6)\n"
        "result = bd.certify(bd.UCB1(), world, progress=progress, **size)\n"
        "print('kept', result.pairs, result.interrupted, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if int(line) >= 8:
                break
        for _ in range(20):  # Python may be where it cannot raise, such as inside a destructor: press it again
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                rest, _ = process.communicate(timeout=30)
                break
    assert rest.splitlines()[-1].startswith("kept ")
    assert rest.endswith("True\n")
