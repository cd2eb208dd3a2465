"""The processes that play blocks: this one, a pool of ours, or an executor that the caller brought.

A block takes some milliseconds, and to send one costs a part of that; so blocks travel together, in tasks of a tenth of
a second.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from banditto.core.errors import WorkerError
from banditto.engine.pair_counts import PairCounts
from banditto.engine.player import Player

T = TypeVar("T")

# Tasks that may wait: enough to keep workers busy, few enough that memory does not grow with the pairs.
_QUEUED_PER_WORKER = 4
_QUEUED_ELSEWHERE = 64
_TASK_SECONDS = 0.1  # long against what it costs to send a task, short for whoever presses Ctrl-C
_MOST_BLOCKS = 256
_QUICKEST = 1e-6  # seconds of a call, so that no group is endless

WORKER_DIED = (
    "a worker process died (killed, or out of memory). Workers import the main script again: in a script, put the call"
    " under `if __name__ == '__main__':`, or use jobs=1"
)


class Task(NamedTuple):
    """The counts of the blocks that one task played, and the seconds that they took."""

    blocks: list[PairCounts]
    seconds: float


Parts = Sequence[tuple[int, int]]  # blocks, each by its first pair and how many pairs to keep
Play = Callable[[Player, Parts], Task]


def submitted(executor: Executor, call: Callable[..., T], *arguments: Any) -> Future[T]:
    """Send a call to an executor, with Ctrl-C held back, and return its future.

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


class Pace:
    """How long a call takes, as far as it is known; it says how many calls make a task of the right length."""

    def __init__(self) -> None:
        self.seconds: float | None = None  # for a call, once one has been made

    def learn(self, seconds: float, weight: float = 1.0) -> None:
        """Take in how long a call took; `weight` is what the newest time counts in the average."""
        known = self.seconds
        self.seconds = seconds if known is None else weight * seconds + (1.0 - weight) * known

    def group(self, task_seconds: float, most: int) -> int:
        """Return how many calls to send together, at most `most`; one as long as nobody knows how long they take."""
        if self.seconds is None:
            return 1
        return max(1, min(most, int(task_seconds / max(self.seconds, _QUICKEST))))


class Share(NamedTuple):
    """The place of one block in a task, which may have several blocks."""

    task: Future[Task]
    place: int
    pool: Pool

    def result(self) -> PairCounts:
        """Wait for the task, and return the counts of this block."""
        played = self.task.result()
        self.pool.pace.learn(played.seconds / len(played.blocks))
        return played.blocks[self.place]

    def cancel(self) -> None:
        """Cancel the whole task, unless it is running already."""
        self.task.cancel()


class Pool:
    """An executor, how many tasks may wait in it, and the processes that banditto itself must end."""

    def __init__(self, executor: Executor, tasks: int) -> None:
        self.executor = executor
        self.pace = Pace()
        self._tasks = tasks
        # An executor that says how many calls may wait groups them by itself.
        self._groups = not isinstance(executor, _Inline) and not hasattr(executor, "queued")

    @property
    def queued(self) -> int:
        """The number of blocks that may wait; an executor may say so itself, and may change its mind."""
        return int(getattr(self.executor, "queued", self._tasks * self._group()))

    def together(self, left: int) -> int:
        """Return how many of the blocks left make the next task: fewer near the end, so that workers end together."""
        return max(1, min(self._group(), left // self._tasks))

    def _group(self) -> int:
        return self.pace.group(_TASK_SECONDS, _MOST_BLOCKS) if self._groups else 1

    def submit(self, play: Play, player: Player, parts: Parts) -> list[Share]:
        """Send some blocks as one task, and return a share for each of them."""
        if isinstance(self.executor, _Inline):  # starts no process; held back, Ctrl-C would be lost in compiled code
            task = self.executor.submit(play, player, parts)
        else:
            task = submitted(self.executor, play, player, parts)
        return [Share(task, place, self) for place in range(len(parts))]

    def abandon(self) -> None:
        """Stop the processes of a pool of ours without waiting for their blocks; leave a caller's executor alone."""
        others = _pools.get(self.executor)
        if others is not None:
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            self.executor.shutdown(wait=False, cancel_futures=True)


# Pools of ours, with the processes that were there before them.
_pools: WeakKeyDictionary[Executor, set[multiprocessing.process.BaseProcess]] = WeakKeyDictionary()


@contextmanager
def pool_for(jobs: int, executor: Executor | None) -> Iterator[Pool]:
    """Open the pool that a caller asked for, as a context; a pool of ours is ended afterwards."""
    if executor is not None:
        yield Pool(executor, _QUEUED_ELSEWHERE)
        return
    if jobs == 1:
        yield Pool(_Inline(), 1)
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise WorkerError(WORKER_DIED)  # a worker is importing a script that has no guard
    context = multiprocessing.get_context("spawn")  # the same on every system, and safe with threads
    others = set(multiprocessing.active_children())
    processes = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)
    _pools[processes] = others
    pool = Pool(processes, jobs * _QUEUED_PER_WORKER)
    try:
        yield pool
    except BaseException:
        pool.abandon()
        raise
    processes.shutdown()


@contextmanager
def shared_executor(jobs: int, executor: Executor | None) -> Iterator[Executor | None]:
    """Open one pool for several runs in a row, as a context; it is None for a single job."""
    if executor is not None or jobs == 1:
        yield executor
        return
    with pool_for(jobs, None) as pool:
        yield pool.executor


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back inside the `with` block, in this thread and in processes that it starts; it comes afterwards.

    The mask is for the processes. It is not enough here: the system gives the signal to any thread that does not block
    it, such as one of a linear algebra library, and Python then interrupts the main thread all the same. A worker that
    was being started would find its pipe closed, and say so in a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    ours = callable(handler) and threading.current_thread() is threading.main_thread()  # elsewhere nothing interrupts
    if ours:
        signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if ours:
            signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker: the parent decides when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
