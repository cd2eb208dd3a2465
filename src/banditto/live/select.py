"""`select`: race arms on fresh rewards until one is named, the same in a second lab; the short way in."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from banditto.chance.noise import derived_noise_seed
from banditto.core.errors import BandittoError, ConflictError, InvalidArgument, Unfinished, WorkerError, shown
from banditto.core.exact import integer
from banditto.core.horizons import LONGEST_HORIZON
from banditto.engine.pool import Pace
from banditto.engine.progress import Progress
from banditto.live.desks import Desk, Known, desk_for
from banditto.live.promises import contradictions
from banditto.live.pull_numbers import PullNumbers
from banditto.live.pulling import Arm, Called, Items, Pull, Returned, Source, described, play, played, sources_of
from banditto.live.registration import Registration, plain, registered
from banditto.live.selection import Estimate, Selection
from banditto.live.tickets import Slot, Ticket
from banditto.live.winners import found_by
from banditto.policies.early_cut.early_cut import EarlyCut
from banditto.policies.shared.replicable import without_warnings

logger = logging.getLogger(__name__)
_TELL_SECONDS = 0.5  # a kill loses no more than what came in so long
_TASK_SECONDS = 0.05  # of calls that travel to a worker together
_QUEUED_PER_WORKER = 3
_QUEUED_ELSEWHERE = 64
_MOST_ASKED = 2000
_MOST_TOGETHER = 500
_MOST_WORKERS = 10_000


def select(
    arms: Mapping[str, Arm],
    *,
    gap: float,
    rho: float = 0.1,
    power: float = 0.95,
    seed: int = 2026,
    store: str | Path | None = None,
    workers: int = 1,
    retries: int = 0,
    executor: Executor | None = None,
    control: str | None = None,
    rate_at_most: float | None = None,
    rewards: Literal["bounded", "gaussian"] | None = None,
    sigma: float | None = None,
    noise_seed: int | None = None,
    progress: Progress | None = None,
) -> Selection:
    """Race arms on fresh rewards until one is named; a second lab that does the same names the same winner.

    It differs with probability `rho` at the most, whatever the arms are: `EarlyCut`, whose theorem is proved in
    docs/early-cut.md. On a tie a shared coin names the winner, and `decided_by` says so. docs/select.md begins there.

    Args:
        arms: A name for each arm, and where its rewards come from: a callable that returns one reward, an asynchronous
            one, or an iterable of rewards. A callable may take `index`, the number of the pull of its arm from 0, and
            `rng`, a NumPy generator of this very pull, the same for any number of workers. True counts as 1.
        gap: The smallest lead of the best arm that matters, in units of the rewards.
        rho: The largest allowed probability that two labs name different winners. Default 0.1.
        power: How likely the best arm wins where it leads by `gap`. Default 0.95.
        seed: What labs share to toss the same coins. Default 2026.
        store: Where to keep every reward, so that the same call goes on after anything: a file, or a URL such as
            sqlite:///select.db#name. Default None: in memory.
        workers: How many threads call; asynchronous calls run in one thread, so many at a time. Default 1.
        retries: How often a call that raised is made again, with the same index and rng. Default 0.
        executor: Makes the calls instead of threads. Default None.
        control: The name of the arm that is kept unless another one leads. Default None: any of the best.
        rate_at_most: A promise that no arm's mean exceeds this, for rewards in [0, 1]. Default None: no promise.
        rewards: "bounded" (in [0, 1]), the default, or "gaussian", which any sigma but 1/2 needs.
        sigma: The standard deviation of Gaussian rewards, which need one. Default None, for rewards in [0, 1].
        noise_seed: Seed of the callables' `rng`. A second lab that simulates takes another one. Default None: derived
            from `seed`.
        progress: Called with the pulls so far, and how many there may be at the most.

    Raises:
        InvalidArgument: An argument, or a reward, is not allowed; what was told before stays in the store.
        Unfinished: A call raised as often as it was tried, or an iterable ended; it has what is known so far.
        ConflictError: The store has another selection of this name.
        WorkerError: The executor failed.

    Examples:
        >>> found = select({"a": lambda index: index % 2, "b": lambda index: index % 4 > 0}, gap=0.2)
        >>> found.winner, found.estimates["b"].mean
        ('b', 0.75)
    """
    noise_seed = derived_noise_seed(seed) if noise_seed is None else integer(noise_seed, "noise_seed", 0, 2**128 - 1)
    sources = sources_of(arms, noise_seed)
    names = list(arms)
    if control is not None and control not in names:
        raise InvalidArgument("control", control, f"the name of an arm: {', '.join(map(str, names[:10]))}")
    if rewards == "gaussian" and sigma is None:
        raise InvalidArgument("sigma", "nothing", "the standard deviation of the rewards, which gaussian ones need")
    workers = integer(workers, "workers", 1, _MOST_WORKERS)
    retries = integer(retries, "retries", 0, 10**6)
    policy = shortest(
        arms=len(names),
        rho=rho,
        gap=gap,
        power=power,
        control=None if control is None else names.index(control),
        rate_at_most=rate_at_most,
        rewards=rewards,
        sigma=0.5 if sigma is None else sigma,
    )
    registration = registered(policy.protocol(seed=seed), names)
    with desk_for(registration, store) as desk, _callers(sources, workers, executor) as callers:
        numbers = PullNumbers(desk.registration, policy)
        race = _Race(
            desk=desk, sources=sources, policy=policy, registration=registration, numbers=numbers, callers=callers
        )
        race.retries, race.progress = retries, progress
        if any("winner" in decision for decision in desk.known().decisions[-1:]):
            logger.warning("the store has this selection already, to its end: nothing is called")
        race.run()
        return replace(_selected(registration, policy, desk.known(), control), seen=desk.observations())


def shortest(**arguments: Any) -> EarlyCut:
    """Return the policy with the shortest horizon that it can need: its cap for each arm, and one more pull."""
    with without_warnings():
        policy = EarlyCut(horizon=LONGEST_HORIZON, **arguments)
    if policy.minimum_horizon() is None:
        raise InvalidArgument("gap", policy.gap, f"a wider gap: this one needs more than {LONGEST_HORIZON:g} pulls")
    return replace(policy, horizon=max(10, policy.arms * policy.cap + 1))


def _estimates(registration: Registration, known: Known) -> dict[str, Estimate]:
    return {
        name: Estimate(float(total / count) if count else None, count)
        for name, count, total in zip(registration.arm_names, known.counts, known.sums, strict=True)
    }


def _selected(registration: Registration, policy: EarlyCut, known: Known, control: str | None) -> Selection:
    batches = [(one["counts"], [float.fromhex(total) for total in one["totals"]]) for one in known.decisions]
    found = found_by(registration, batches)
    assert found is not None  # EarlyCut says how it decides
    return Selection(
        winner=registration.arm_names[known.decisions[-1]["winner"]],
        decided_by=found.decided_by,
        estimates=_estimates(registration, known),
        pulls=sum(known.counts),
        most_pulls=policy.arms * policy.cap,
        lead=found.lead,
        needed_lead=found.needed,
        guarantee=policy.guarantee(),
        protocol=registration.protocol,
        level=policy.level,
        gap=policy.gap,
        power=policy.power,
        control=control,
        warnings=tuple(contradictions(registration, batches)),
    )


# -- who makes the calls -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Callers:
    """Where calls are made: an executor (None: this thread), how many tasks may wait, and an asyncio loop."""

    executor: Executor | None
    queued: int
    travels: bool  # calls may go to another process
    loop: asyncio.AbstractEventLoop | None
    turn: asyncio.Semaphore

    def submit(self, calls: Sequence[tuple[Source, int]], retries: int, here: list[Returned]) -> Future[Called]:
        """Start these calls and return their future; in this thread they run at once, and fill the list `here`."""
        if self.loop is not None and calls[0][0].waits:
            return asyncio.run_coroutine_threadsafe(played(*calls[0], retries, self.turn), self.loop)
        if self.executor is not None:
            try:
                return self.executor.submit(play, calls, retries, _TASK_SECONDS, self.travels, [])
            except RuntimeError as error:  # it is broken, or was shut down
                raise WorkerError(f"a worker failed: {described(error)}") from error
        done: Future[Called] = Future()
        done.set_result(play(calls, retries, _TASK_SECONDS, False, here))
        return done


@contextmanager
def _callers(sources: Sequence[Source | Items], workers: int, executor: Executor | None) -> Iterator[_Callers]:
    """Yield the threads and the asyncio loop that calls need; at the end both stop, and queued calls are dropped."""
    own = ThreadPoolExecutor(workers, "banditto-select") if executor is None and workers > 1 else None
    waits = any(isinstance(source, Source) and source.waits for source in sources)
    loop = asyncio.new_event_loop() if waits else None
    thread = None if loop is None else threading.Thread(target=loop.run_forever, daemon=True)
    if thread is not None:
        thread.start()
    queued = _QUEUED_ELSEWHERE if executor is not None else workers * _QUEUED_PER_WORKER
    try:
        yield _Callers(
            executor=executor or own,
            queued=queued if own or executor or waits else 1,
            travels=executor is not None,
            loop=loop,
            turn=asyncio.Semaphore(workers),
        )
    finally:
        if own is not None:
            own.shutdown(wait=False, cancel_futures=True)
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(_ended(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _ended() -> None:
    """Cancel all other tasks of this asyncio loop, and wait until they have ended."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


# -- the race ----------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Race:
    """Asks for slots, makes the calls and tells the rewards until the selection is over."""

    desk: Desk
    sources: Sequence[Source | Items]
    policy: EarlyCut
    registration: Registration
    numbers: PullNumbers
    callers: _Callers
    retries: int = 0
    progress: Progress | None = None
    pace: Pace = field(default_factory=Pace)
    ready: deque[Pull] = field(default_factory=deque)
    running: dict[Future[Called], list[Pull]] = field(default_factory=dict)
    done: list[tuple[Ticket, float]] = field(default_factory=list)
    told: float = field(default_factory=time.monotonic)  # when rewards were told last
    dry: bool = False  # all pulls of this batch were handed out
    pulls: int = 0
    failures: list[tuple[Pull, Callable[[], BandittoError], BaseException | None]] = field(default_factory=list)

    def run(self) -> None:
        """Play until a winner is named; whatever stops it, what is done is told first."""
        self.pulls = sum(self.desk.known().counts)
        self._show()
        self._take(self.desk.waiting())
        try:
            while self._go_on():
                self._show()
        except BaseException:
            self._gather(patient=False)
            self._tell()
            raise
        finally:
            for future in self.running:
                future.cancel()
        self._show(ended=True)

    def _go_on(self) -> bool:
        """Take one turn: ask, send, gather, tell; return whether there is more to do."""
        if self.failures:
            self._stop()
        over = False
        if not self.ready and not (self.dry and (self.running or self.done)):
            slots, reply = self.desk.ask(self._asked())
            self._take(slots)
            over, self.dry = reply == "finished", reply == "waiting"
            if reply == "stopped":
                raise ConflictError("the experiment in the store was stopped, and cannot go on")
            if self.dry and not self.running and not self.done:
                self._take(self.desk.waiting())  # another process has them, or had
        self._send()
        self._gather(patient=True)
        if self.done and (self._late() or not (self.ready or self.running)):
            self._tell()
        return not over

    def _late(self) -> bool:
        """Return whether it is time to tell the rewards that have come."""
        return time.monotonic() - self.told > _TELL_SECONDS

    def _asked(self) -> int:
        """Return how many pulls to ask for: enough to keep all callers busy until the next ask."""
        if not any(isinstance(source, Source) for source in self.sources):
            return _MOST_ASKED
        return min(_MOST_ASKED, 4 * self.callers.queued * self.pace.group(_TASK_SECONDS, _MOST_TOGETHER) + 12)

    def _take(self, slots: Sequence[Slot]) -> None:
        self.ready.extend(Pull(ticket, arm, self.numbers.of(ticket)) for ticket, arm in slots)

    def _send(self) -> None:
        """Start as many calls as may wait; rewards of iterables are read at once."""
        while self.ready and len(self.running) < self.callers.queued and not self.failures:
            pull = self.ready.popleft()
            source = self.sources[pull.arm]
            if isinstance(source, Items):
                self._came(pull, source.take(pull.number))
                if self._late():  # one that is slow must not keep what is done from being told
                    return
                continue
            together = [pull]
            most = 1 if source.waits else self.pace.group(_TASK_SECONDS, _MOST_TOGETHER)
            while self.ready and len(together) < most and self._alike(self.ready[0]):
                together.append(self.ready.popleft())
            calls = [(self._source(one), one.number) for one in together]
            here: list[Returned] = []
            try:
                self.running[self.callers.submit(calls, self.retries, here)] = together
            except KeyboardInterrupt:  # while this thread made the calls
                for one, outcome in zip(together, here, strict=False):
                    self._came(one, outcome)
                raise

    def _alike(self, pull: Pull) -> bool:
        source = self.sources[pull.arm]
        return isinstance(source, Source) and not source.waits

    def _source(self, pull: Pull) -> Source:
        source = self.sources[pull.arm]
        assert isinstance(source, Source)
        return source

    def _gather(self, patient: bool) -> None:
        """Take in calls that have returned; if `patient`, wait a moment for the first."""
        if self.running and patient:
            wait(self.running, timeout=_TELL_SECONDS, return_when=FIRST_COMPLETED)
        for future in [future for future in self.running if future.done()]:
            pulls = self.running.pop(future)
            if future.cancelled():
                continue
            error = future.exception()
            if error is not None:
                self._fail(pulls[0], partial(WorkerError, f"a worker failed: {described(error)}"), error)
                continue
            outcomes, seconds = future.result()
            self.pace.learn(seconds / len(outcomes), 0.5)
            for pull, outcome in zip(pulls, outcomes, strict=False):
                self._came(pull, outcome)
            self.ready.extendleft(reversed(pulls[len(outcomes) :]))  # those for which there was no time

    def _came(self, pull: Pull, outcome: Returned) -> None:
        """Check a reward that came, and keep it until it is told."""
        name = self.registration.arm_names[pull.arm]
        if outcome.failure:
            self._fail(pull, partial(self._unfinished, name, pull.number, outcome.failure), outcome.error)
            return
        value = plain(outcome.value)
        try:
            reward = self.registration.rewards.checked(float(value) if isinstance(value, bool) else value)
        except InvalidArgument as error:
            where = f"reward of arm {name}, index {pull.number}"
            self._fail(pull, partial(InvalidArgument, where, shown(value), error.allowed))
        else:
            self.done.append((pull.ticket, reward))

    def _fail(self, pull: Pull, error: Callable[[], BandittoError], cause: BaseException | None = None) -> None:
        """Keep the first failure; it is raised after all finished rewards have been told."""
        self.failures.append((pull, error, cause))

    def _unfinished(self, name: str, index: int, problem: str) -> Unfinished:
        known = _estimates(self.registration, self.desk.known())
        return Unfinished(name, index, problem, {arm: (one.mean, one.pulls) for arm, one in known.items()})

    def _stop(self) -> None:
        """Wait for the calls that are being made, tell all that is done, and raise the first failure."""
        for future in self.running:
            future.cancel()
        while self.running:
            self._gather(patient=True)
        self._tell()
        _, error, cause = min(self.failures, key=lambda failure: failure[0].ticket)
        raise error() from cause

    def _tell(self) -> None:
        if self.done:
            self.desk.tell(self.done)  # should it be interrupted, they are told again, which changes nothing
            self.pulls += len(self.done)
            self.done, self.dry = [], False
        self.told = time.monotonic()

    def _show(self, ended: bool = False) -> None:
        if self.progress is not None:
            pulls = self.pulls + len(self.done)
            self.progress(pulls, pulls if ended else self.policy.arms * self.policy.cap)
