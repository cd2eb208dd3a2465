"""AsyncExperiment: the same experiment for programs that await; every step runs in a thread of a small pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

from banditto.core.protocol import Protocol
from banditto.core.tabular import items_in
from banditto.live.answers import Answer, Changed, ExperimentStatus, PendingTickets, Told
from banditto.live.ask_tell import Totals
from banditto.live.experiment import Experiment
from banditto.live.metrics import Metrics
from banditto.live.registration import Registration
from banditto.live.step_reports import OnStep
from banditto.live.store_settings import StoreSettings
from banditto.live.told_rewards import Tellings, tellings_of

T = TypeVar("T")


class AsyncExperiment(AbstractAsyncContextManager["AsyncExperiment"]):
    """Runs a policy live, as `Experiment` does, for programs that use asyncio: its methods are awaited.

    Make one with `open`, and use it in an `async with` statement, or `close` it. A task that is cancelled while it
    waits does not take a step back: the step is done whole or not at all, and doing it again changes nothing.

    Attributes:
        name: the experiment's name in its store.
        registration: the protocol, the names of the arms, and what rewards may be.

    Examples:
        >>> import asyncio
        >>> from tempfile import TemporaryDirectory
        >>> from banditto import ExploreThenCommit
        >>> protocol = ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
        >>> async def play(folder):
        ...     async with await AsyncExperiment.open(f"sqlite:///{folder}/trial.db", "cta", protocol) as trial:
        ...         answer = await trial.ask(unit="user-17")
        ...         return await trial.tell(answer[0].id, 1.0)
        >>> with TemporaryDirectory() as folder:
        ...     asyncio.run(play(folder))
        'recorded'
    """

    def __init__(self, experiment: Experiment, threads: ThreadPoolExecutor) -> None:
        self.name, self.registration = experiment.name, experiment.registration
        self._experiment, self._threads = experiment, threads

    @classmethod
    async def open(
        cls,
        url: str,
        name: str,
        protocol: Protocol | Registration | None = None,
        *,
        settings: StoreSettings | None = None,
        on_step: OnStep | None = None,
    ) -> AsyncExperiment:
        """Open an experiment as `Experiment.open` does; as many steps go on at once as `settings` keep connections.

        Args:
            url: the store, sqlite:///FILE or postgresql://USER@HOST/DATABASE.
            name: the experiment.
            protocol: what the experiment must have been registered with; None takes whatever is there.
            settings: how long a step may wait for the store, and connections to keep; None takes the usual ones.
            on_step: called with a `StepReport` after every step, in the thread that took it.
        """
        known = settings or StoreSettings.of_environment()
        threads = ThreadPoolExecutor(known.pool_size, thread_name_prefix=f"banditto {name}")
        try:
            opened = await _awaited(
                threads, lambda: Experiment.open(url, name, protocol, settings=known, on_step=on_step)
            )
        except BaseException:
            threads.shutdown(wait=False)
            raise
        return cls(opened, threads)

    async def close(self) -> None:
        """Wait for steps that have begun, and give the connections back."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        self._experiment.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(self, n: int = 1, request_id: str | None = None, *, unit: str | None = None) -> Answer:
        """Hand out tickets, as `Experiment.ask` does."""
        return await self._run(lambda: self._experiment.ask(n, request_id, unit=unit))

    async def tell(
        self, ticket: str, reward: float, metrics: Metrics | None = None, *, arm: str | int | None = None
    ) -> Told:
        """Record a ticket's reward, as `Experiment.tell` does."""
        return await self._run(lambda: self._experiment.tell(ticket, reward, metrics, arm=arm))

    async def tell_many(self, rewards: Tellings) -> list[Told]:
        """Record several rewards, all of them or none, as `Experiment.tell_many` does."""
        listed = tellings_of(rewards)  # here, not in a thread that the caller's generator does not expect
        return await self._run(lambda: self._experiment.tell_many(listed))

    async def tell_totals(self, batch: int, totals: Totals) -> Told:
        """Record a whole batch at once, as `Experiment.tell_totals` does."""
        return await self._run(lambda: self._experiment.tell_totals(batch, totals))

    async def correct(self, ticket: str, reward: float, reason: str) -> Changed:
        """Replace a reward that was wrong, as `Experiment.correct` does."""
        return await self._run(lambda: self._experiment.correct(ticket, reward, reason))

    async def missing(self, ticket: str, reason: str, *, by: str = "") -> Changed:
        """Say that a reward will not come, as `Experiment.missing` does."""
        return await self._run(lambda: self._experiment.missing(ticket, reason, by=by))

    async def missing_many(self, tickets: Iterable[str], reason: str, *, by: str = "") -> list[Changed]:
        """Say that several rewards will not come, as `Experiment.missing_many` does."""
        listed = items_in(tickets, "tickets", "a list of ids")
        return await self._run(lambda: self._experiment.missing_many(listed, reason, by=by))

    async def missing_older(self, older_than: float | timedelta, reason: str, *, by: str = "") -> int:
        """Say of all old tickets that their rewards will not come, as `Experiment.missing_older` does."""
        return await self._run(lambda: self._experiment.missing_older(older_than, reason, by=by))

    async def stop(self, reason: str) -> Changed:
        """End the experiment before its horizon, as `Experiment.stop` does."""
        return await self._run(lambda: self._experiment.stop(reason))

    async def status(self) -> ExperimentStatus:
        """Look up where the experiment stands, as `Experiment.status` does."""
        return await self._run(self._experiment.status)

    async def pending(self, older_than: float | timedelta | None = None, most: int = 1000) -> PendingTickets:
        """List tickets without a reward, as `Experiment.pending` does."""
        return await self._run(lambda: self._experiment.pending(older_than, most))

    async def _run(self, act: Callable[[], T]) -> T:
        return await _awaited(self._threads, act)


async def _awaited(threads: ThreadPoolExecutor, act: Callable[[], T]) -> T:
    """Run a blocking function in a thread of the pool, and await its result."""
    return await asyncio.get_running_loop().run_in_executor(threads, act)
