"""Many blocks on any executor, merged in the order of their numbers.

Results are the same for any executor, any number of workers and any order in which blocks finish. On Ctrl-C no new
block is started, those that workers have under way are finished (this process drops its own), and what is complete from
the first block on is kept.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from banditto.engine import batched, placed
from banditto.engine.ledger import Ledger
from banditto.engine.pairs import PAIRS_PER_ROUND_BLOCK, PairCounts, Study, is_placed, pairs_per_block
from banditto.errors import WorkerError
from banditto.policy import PlacedPolicy, RoundPolicy

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
T = TypeVar("T")

# Blocks that may wait: enough to keep workers busy, few enough that memory does not grow with the pairs.
_QUEUED_PER_WORKER = 4
_QUEUED_ELSEWHERE = 64

WORKER_DIED = (
    "a worker process died (killed, or out of memory). Workers import the main script again: in a script, put the call"
    " under `if __name__ == '__main__':`, or use jobs=1"
)


class Outcome(NamedTuple):
    """What was counted, and whether Ctrl-C ended it early."""

    counts: PairCounts
    interrupted: bool


def block_size(study: Study) -> int:
    """Pairs in one unit of work."""
    if isinstance(study.policy, RoundPolicy):
        return PAIRS_PER_ROUND_BLOCK
    return pairs_per_block(study.environment, study.backend)


def run_block(study: Study, start: int, keep: int) -> PairCounts:
    """Pairs `start` to `start + keep - 1`, all in one block; this is what a worker is sent."""
    policy = study.policy
    if isinstance(policy, RoundPolicy):
        from banditto.engine import rounds  # compiled code is loaded only where it is used

        return rounds.run_block(study, policy, start, keep)
    block = start // pairs_per_block(study.environment, study.backend)
    if is_placed(study.environment) and isinstance(policy, PlacedPolicy):
        return placed.run_block(study, policy, block, keep)
    return batched.run_block(study, policy, block, keep)


def run_pairs(
    study: Study,
    pairs: int,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
    ledger: Ledger | None = None,
    settled: Callable[[PairCounts], bool] | None = None,
) -> Outcome:
    """The first `pairs` pairs of a study, or as many as are in the ledger, if those are more.

    Finished blocks go into the ledger, and those that are there are not played again. Once a block has `settled` the
    question, no other is counted: blocks are asked about in order, so the workers have no say in where a run ends.
    """
    size = block_size(study)
    report = progress or (lambda done, total: None)
    enough = settled or (lambda counts: False)
    there = 0 if ledger is None else ledger.pairs
    if ledger is not None and there and (there >= pairs or enough(ledger.counts)):
        report(there, max(pairs, there))
        return Outcome(ledger.counts, interrupted=False)
    total = -(-pairs // size)
    # One name holds both, so that an interrupt finds a block either counted and passed, or neither.
    counts, following = state = (PairCounts(), 0) if ledger is None else ledger.whole
    waiting: dict[int, Future[PairCounts]] = {}
    with _workers(jobs, executor) as workers:
        try:
            report(counts.pairs, pairs)
            submitted = following
            while following < total and not (counts.pairs > there and enough(counts)):
                while submitted < min(total, following + workers.queued):
                    start = submitted * size
                    waiting[submitted] = workers.submit(run_block, study, start, min(size, pairs - start))
                    submitted += 1
                counts, following = state = counts.plus(_kept(waiting[following], following, ledger)), following + 1
                waiting.pop(following - 1, None)
                report(counts.pairs, pairs)
        except KeyboardInterrupt:
            if waiting:
                logger.warning("interrupted: finishing the blocks under way (Ctrl-C again to leave them)")
            counts = _finished(state, waiting, workers, ledger, enough)
            return Outcome(counts if ledger is None else ledger.counts, interrupted=True)
        except BrokenExecutor:
            raise WorkerError(WORKER_DIED) from None
        finally:
            for future in waiting.values():
                future.cancel()
    return Outcome(counts, interrupted=False)


def _kept(future: Future[PairCounts], number: int, ledger: Ledger | None) -> PairCounts:
    """A block's result, once it is on disk."""
    block = future.result()
    if ledger is not None:
        ledger.append(number, block)
    return block


def _finished(
    state: tuple[PairCounts, int],
    waiting: dict[int, Future[PairCounts]],
    workers: _Workers,
    ledger: Ledger | None,
    enough: Callable[[PairCounts], bool],
) -> PairCounts:
    """What was counted before an interrupt, and the blocks under way, as long as none is missing between them."""
    counts, following = state
    for number in sorted(waiting, reverse=True):  # from the back, so that no free worker starts another one
        waiting[number].cancel()
    try:
        while following in waiting and not (counts.pairs and enough(counts)):
            counts, following = counts.plus(_kept(waiting[following], following, ledger)), following + 1
    except (CancelledError, BrokenExecutor):
        pass
    except KeyboardInterrupt:
        workers.abandon()
    return counts


def submitted(executor: Executor, call: Callable[..., T], *arguments: Any) -> Future[T]:
    """Send a call to an executor.

    A worker is started by a submission and inherits the signal mask: Ctrl-C, which reaches the whole process group,
    then cannot end a worker while it still imports. The parent gets a blocked signal a moment later.
    """
    with _interrupts_held():
        return executor.submit(call, *arguments)


class _Inline(Executor):
    """Runs each call at once, in this process."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class _Workers:
    """An executor, how many blocks may wait in it, and the processes that are ours to end."""

    def __init__(self, executor: Executor, queued: int) -> None:
        self.executor = executor
        self._queued = queued

    @property
    def queued(self) -> int:
        """An executor that knows better says so itself, and may change its mind."""
        return int(getattr(self.executor, "queued", self._queued))

    def submit(self, call: Callable[..., PairCounts], *arguments: Any) -> Future[PairCounts]:
        if isinstance(self.executor, _Inline):  # starts no process; held back, Ctrl-C would be lost in compiled code
            return self.executor.submit(call, *arguments)
        return submitted(self.executor, call, *arguments)

    def abandon(self) -> None:
        """Do not wait for blocks that nobody will read; an executor that the caller brought is left alone."""
        others = _pools.get(self.executor)
        if others is not None:
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            self.executor.shutdown(wait=False, cancel_futures=True)


# Pools of ours, with the processes that were there before them.
_pools: WeakKeyDictionary[Executor, set[multiprocessing.process.BaseProcess]] = WeakKeyDictionary()


@contextmanager
def _workers(jobs: int, executor: Executor | None) -> Iterator[_Workers]:
    if executor is not None:
        yield _Workers(executor, _QUEUED_ELSEWHERE)
        return
    if jobs == 1:
        yield _Workers(_Inline(), 1)
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise WorkerError(WORKER_DIED)  # a worker is importing a script that has no guard
    context = multiprocessing.get_context("spawn")  # the same on every system, and safe with threads
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)
    _pools[pool] = others
    workers = _Workers(pool, jobs * _QUEUED_PER_WORKER)
    try:
        yield workers
    except BaseException:
        workers.abandon()
        raise
    pool.shutdown()


@contextmanager
def shared_workers(jobs: int, executor: Executor | None) -> Iterator[Executor | None]:
    """One pool for several runs in a row; None for a single job."""
    if executor is not None or jobs == 1:
        yield executor
        return
    with _workers(jobs, None) as workers:
        yield workers.executor


@contextmanager
def _interrupts_held() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_interrupts() -> None:
    """In a worker: the parent decides when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
