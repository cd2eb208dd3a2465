"""An executor over the workers of a Dask cluster, for many short calls.

A block takes some milliseconds, and so does a scheduler for each task; so calls on the same run travel in groups that
take a fraction of a second. Each group is one task with a key of its own, and each call has one future, which is
settled once: a task that is run again, because its worker died, cannot be counted twice.

Everything but `submit` and `queued` runs on the thread of the client's event loop, so that nothing needs a lock.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from banditto.core.errors import BandittoError, WorkerError
from banditto.core.provenance import fingerprint, mismatch
from banditto.engine.pool import Pace

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TASK_SECONDS = 0.5  # long against what a task costs, short against the patience of whoever presses Ctrl-C
_SCHEDULER_SECONDS = 0.003  # what a task may cost the scheduler: with many workers tasks must be longer
_AHEAD = 4  # tasks for each thread
_MOST_CALLS_AHEAD = 2**16  # memory does not grow with the pairs, nor without bound with the workers
_GATHERING_SECONDS = 0.005  # for which calls are collected before they are sent
_LOOK_SECONDS = 2.0  # between looks at how many workers there are

_GONE = "the cluster's scheduler went away, or somebody cancelled the work"
_CLOSED = "the cluster was closed: calls must be finished inside `with banditto.cluster(...)`"


class _Call(NamedTuple):
    """A call that waits to be sent: the future for its result, the function, and its arguments."""

    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    def alike(self, other: _Call) -> bool:
        """Return whether both calls take about as long: the same function of the same first argument."""
        mine, others = self.arguments[:1], other.arguments[:1]
        return self.function is other.function and len(mine) == len(others) and all(map(_same, mine, others))


class _Task:
    """Calls that were sent to the cluster together, until their results are back."""

    def __init__(self, calls: list[_Call], handle: Any) -> None:
        self.calls, self.handle = calls, handle
        self.under_way = False
        self.delivery: asyncio.Future[None] | None = None  # kept, because a loop does not keep what it runs

    def fail(self, error: Exception) -> None:
        for call in self.calls:
            with suppress(InvalidStateError):  # it was cancelled
                call.future.set_exception(error)


class Parcel:
    """What is sent to a worker: a plain object, because Dask looks into tuples and lists for calls of its own."""

    def __init__(self, expected: dict[str, str | None], calls: Sequence[tuple[Any, ...]]) -> None:
        self.expected, self.calls = expected, calls


def run_calls(parcel: Parcel) -> tuple[list[Any], float]:
    """Run some calls on a worker, and return their results and the seconds that they took.

    Workers may join at any time, so each one is compared with the client whenever it works.
    """
    wrong = mismatch(parcel.expected, fingerprint(), "a worker that joined")
    if wrong is not None:
        raise WorkerError(wrong)
    began = time.perf_counter()
    results = [function(*arguments, **keywords) for function, arguments, keywords in parcel.calls]
    return results, time.perf_counter() - began


class ClusterExecutor(Executor):
    """Sends calls to the workers of a `distributed.Client`, which it does not close."""

    def __init__(self, client: Any, threads: int, patience: float) -> None:
        self._client, self._threads, self._patience = client, threads, patience
        self._run = f"banditto-{uuid.uuid4().hex[:12]}"
        self._sent = 0
        self._gathered: deque[_Call] = deque()
        self._gathering = self._sweeping = self._closed = False
        self._tasks: dict[int, _Task] = {}  # in the order in which they were sent
        self._pace = Pace()  # of calls like the last ones
        self._like: _Call | None = None
        self._loop = client.loop
        self._loop.add_callback(self._watch)

    @property
    def queued(self) -> int:
        """The number of calls that may wait: enough for groups of the right size on all workers."""
        return min(_MOST_CALLS_AHEAD, _AHEAD * self._threads * self._group())

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Send a call, and return its future; calls of one function on the same first argument share tasks."""
        if self._closed:
            raise WorkerError(_CLOSED)
        future: Future[T] = Future()
        call = _Call(future, fn, args, kwargs)
        if self._like is not None and not self._like.alike(call):
            self._pace, self._like = Pace(), None
        future.add_done_callback(self._cancelled)
        self._gathered.append(call)
        if not self._gathering:
            self._gathering = True
            self._loop.add_callback(self._loop.call_later, _GATHERING_SECONDS, self._send)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; those that were sent go on, unless `cancel_futures` is true."""
        self._closed = True
        if cancel_futures:
            self._loop.add_callback(self._stop)

    def _group(self) -> int:
        """Return how many calls make a task; one, as long as nobody knows how long they take."""
        seconds = max(_TASK_SECONDS, _SCHEDULER_SECONDS * self._threads)
        return self._pace.group(seconds, _MOST_CALLS_AHEAD // (_AHEAD * self._threads))

    def _send(self) -> None:
        """Send all gathered calls to the cluster, in tasks of the right size."""
        self._gathering = False  # first, so that a call which comes now is sent now or later, but never forgotten
        calls = [self._gathered.popleft() for _ in range(len(self._gathered))]
        calls = [call for call in calls if not call.future.done()]
        idle = self._threads - len(self._tasks)
        size = self._group()
        if idle > 0:
            size = min(size, math.ceil(len(calls) / idle))  # better a small task than a worker without one
        while calls:
            alike = 1
            while alike < min(size, len(calls)) and calls[alike].alike(calls[0]):
                alike += 1
            self._send_together(calls[:alike])
            calls = calls[alike:]
        self._mark_under_way()

    def _send_together(self, calls: list[_Call]) -> None:
        """Send some calls as one task; if that fails, their futures get the error."""
        number, self._sent = self._sent, self._sent + 1
        parcel = Parcel(fingerprint(), [(call.function, call.arguments, call.keywords) for call in calls])
        try:
            handle = self._client.submit(run_calls, parcel, key=(self._run, number), pure=False)
        except Exception as error:  # what cannot be pickled, or a client that was closed
            _Task(calls, None).fail(_translated(error))
            return
        self._tasks[number] = task = _Task(calls, handle)
        task.delivery = asyncio.ensure_future(self._deliver(number, task))

    async def _deliver(self, number: int, task: _Task) -> None:
        """Wait for a task, and hand its results, or its error, to the futures of its calls."""
        try:
            results, seconds = await task.handle.result()
        except (CancelledError, asyncio.CancelledError):
            task.fail(WorkerError(_CLOSED if self._closed else _GONE))
        except Exception as error:
            task.fail(_translated(error))
        else:
            self._learn(task.calls[0], seconds / len(results))
            for call, result in zip(task.calls, results, strict=True):
                with suppress(InvalidStateError):  # it was cancelled
                    call.future.set_result(result)
        self._tasks.pop(number, None)
        self._mark_under_way()

    def _learn(self, call: _Call, seconds: float) -> None:
        if self._like is None or self._like.alike(call):
            self._like = call
            self._pace.learn(seconds, weight=0.5)

    def _mark_under_way(self) -> None:
        """Mark the oldest tasks, one per thread, as running: after Ctrl-C they are finished, and others cancelled."""
        for task, _ in zip(list(self._tasks.values()), range(self._threads), strict=False):
            if not task.under_way:
                task.under_way = True
                for call in task.calls:
                    if not call.future.done():
                        call.future.set_running_or_notify_cancel()

    def _cancelled(self, future: Future[Any]) -> None:
        if future.cancelled() and not self._sweeping:
            self._sweeping = True
            self._loop.add_callback(self._sweep)

    async def _sweep(self) -> None:
        """Cancel the tasks all of whose calls are done or cancelled."""
        self._sweeping = False
        unwanted = {k: task for k, task in self._tasks.items() if all(call.future.done() for call in task.calls)}
        for number in unwanted:
            del self._tasks[number]
        await self._client.cancel([task.handle for task in unwanted.values()])

    async def _stop(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in (*tasks, _Task([self._gathered.popleft() for _ in range(len(self._gathered))], None)):
            task.fail(WorkerError(_CLOSED))
        await self._client.cancel([task.handle for task in tasks])

    async def _watch(self) -> None:
        """Follow the number of workers; if none is left for `patience` seconds, let all tasks fail."""
        since: float | None = None
        while not self._closed:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                threads = sum((await self._client.nthreads()).values())
            except Exception:  # no scheduler: the tasks fail by themselves
                continue
            if threads or not self._tasks:
                self._threads, since = threads or self._threads, None
            elif since is None:
                since = time.monotonic()
                logger.warning("no workers are left: waiting %g seconds for others", self._patience)
            elif time.monotonic() - since > self._patience:
                tasks, self._tasks = list(self._tasks.values()), {}
                for task in tasks:
                    task.fail(WorkerError(f"no workers were left for {self._patience:g} seconds"))


def _translated(error: Exception) -> Exception:
    """Return the cluster's error as one of banditto's; what a call itself raised comes back as it is."""
    if isinstance(error, BandittoError):
        return error
    kind = type(error).__name__
    if kind == "KilledWorker":
        allowed = getattr(error, "allowed_failures", 3)
        return WorkerError(f"{allowed + 1} workers died one after another on the same blocks (out of memory?)")
    if isinstance(error, ImportError):
        return WorkerError(f"a worker, or the scheduler, cannot import what it needs: {error}")
    if type(error).__module__.startswith(("distributed", "tornado")):
        return WorkerError(f"the cluster failed: {kind}: {' '.join(str(error).split())}")
    return error


def _same(one: object, other: object) -> bool:
    return one is other
