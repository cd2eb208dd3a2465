"""Many blocks on any executor, merged in the order of their numbers.

Results are the same for any executor, any number of workers and any order in which blocks finish. On Ctrl-C no new
block is started, those under way are finished, and what is complete from the first block on is kept.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from banditto.engine import batched
from banditto.engine.pairs import PAIRS_PER_BLOCK, PAIRS_PER_ROUND_BLOCK, PairCounts, Study
from banditto.errors import WorkerError
from banditto.policy import RoundPolicy

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
T = TypeVar("T")

# Blocks that may wait: enough to keep workers busy, few enough that memory does not grow with the pairs.
_QUEUED_PER_WORKER = 4
_QUEUED_ELSEWHERE = 64

_WORKER_DIED = (
    "a worker process died. Workers import the main script again: put the call under"
    " `if __name__ == '__main__':`, or use jobs=1"
)


class Outcome(NamedTuple):
    """What was counted, and whether Ctrl-C ended it early."""

    counts: PairCounts
    interrupted: bool


def block_size(study: Study) -> int:
    """Pairs in one unit of work."""
    return PAIRS_PER_ROUND_BLOCK if isinstance(study.policy, RoundPolicy) else PAIRS_PER_BLOCK


def run_block(study: Study, start: int, keep: int) -> PairCounts:
    """Pairs `start` to `start + keep - 1`, all in one block; this is what a worker is sent."""
    policy = study.policy
    if isinstance(policy, RoundPolicy):
        from banditto.engine import rounds  # compiled code is loaded only where it is used

        return rounds.run_block(study, policy, start, keep)
    return batched.run_block(study, policy, start // PAIRS_PER_BLOCK, keep)


def run_pairs(
    study: Study,
    pairs: int,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """The first `pairs` pairs of a study."""
    report = progress or (lambda done, total: None)
    counts = PairCounts()
    report(0, pairs)
    with _workers(jobs, executor) as (pool, queued):
        waiting: deque[Future[PairCounts]] = deque()
        starts = iter(range(0, pairs, block_size(study)))
        try:
            while True:
                while len(waiting) < queued and (start := next(starts, None)) is not None:
                    keep = min(block_size(study), pairs - start)
                    waiting.append(pool.submit(run_block, study, start, keep))
                if not waiting:
                    return Outcome(counts, interrupted=False)
                counts.add(waiting[0].result())
                waiting.popleft()
                report(counts.pairs, pairs)
        except KeyboardInterrupt:
            logger.info("interrupted: finishing the blocks under way")
            for future in waiting:
                if future.cancel():
                    break  # blocks start in order, so none behind this one has started
                counts.add(future.result())
            return Outcome(counts, interrupted=True)
        except BrokenExecutor:
            raise WorkerError(_WORKER_DIED) from None
        finally:
            for future in waiting:
                future.cancel()


class _Inline(Executor):
    """Runs each call at once, in this process."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def _workers(jobs: int, executor: Executor | None) -> Iterator[tuple[Executor, int]]:
    """The executor to use and how many blocks may wait in it."""
    if executor is not None:
        yield executor, _QUEUED_ELSEWHERE
        return
    if jobs == 1:
        yield _Inline(), 1
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise WorkerError(_WORKER_DIED)  # a worker is importing a script that has no guard
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")  # the same on every system, and safe with threads
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)
    try:
        yield pool, jobs * _QUEUED_PER_WORKER
    except BaseException:
        # a second Ctrl-C, or an error: do not wait for blocks that nobody will read
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _ignore_interrupts() -> None:
    """In a worker: Ctrl-C reaches the whole process group, but the parent decides when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
