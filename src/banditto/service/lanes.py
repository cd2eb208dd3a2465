"""Where the work of a request is done: in threads, so many at once for each kind of work, on one store.

Steps of a SQLite file are taken one at a time in each process: its write lock lets no more through, and threads that
poll for it would slow each other down.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import anyio
from anyio import to_thread

from banditto.core.errors import ConflictError, InvalidArgument, NoStore, ServiceError, StoreError
from banditto.live.checked_words import checked_name
from banditto.live.experiment import Experiment
from banditto.live.opening import wanted_registration
from banditto.live.registration import Registration
from banditto.live.step_reports import OnStep
from banditto.live.store import Store
from banditto.live.store_settings import StoreSettings
from banditto.service.refusals import Refusal

T = TypeVar("T")
_MOST_OPEN = 200  # experiments that a process knows at a time
_MOST_JOBS = 2  # logs that a process verifies, exports or analyses at a time
_MOST_WAITING = 20  # of those


class Lanes:
    """Runs store work of the service in threads, by kind (steps, looks, long jobs), and keeps experiments open."""

    def __init__(self, url: str, on_step: OnStep | None = None) -> None:
        self.url = url
        self._settings, self._on_step = StoreSettings.of_environment(), on_step
        self._store = Store(url, self._settings)
        self._open: OrderedDict[str, Experiment] = OrderedDict()
        self._lock = threading.Lock()
        several = self._settings.pool_size + self._settings.max_overflow
        # of its own: to hand a step over takes half as long as with anyio's threads
        self._steps = ThreadPoolExecutor(1 if url.startswith("sqlite") else several, "banditto-steps")
        self._looks = anyio.CapacityLimiter(4)
        self._jobs = anyio.CapacityLimiter(_MOST_JOBS)

    def close(self) -> None:
        """Wait for steps that are under way, and give all connections back."""
        self._steps.shutdown()
        self._store.close()

    # -- kinds of work -------------------------------------------------------------------------------------------------

    async def step(self, name: str, act: Callable[[Experiment], T]) -> T:
        """Run a step of an experiment in the threads for steps, and return its answer."""
        return await asyncio.get_running_loop().run_in_executor(self._steps, self._acted, name, act)

    async def see(self, name: str, act: Callable[[Experiment], T]) -> T:
        """Read something from an experiment, in the threads for looks, and return it."""
        return await to_thread.run_sync(lambda: self._acted(name, act), limiter=self._looks)

    async def look(self, act: Callable[[Store], T]) -> T:
        """Read something from the store itself, in the threads for looks, and return it."""
        return await to_thread.run_sync(lambda: act(self._store), limiter=self._looks)

    async def job(self, act: Callable[[], T]) -> T:
        """Run something long, such as verifying a log, in the threads for jobs, and return its result."""
        if self._jobs.statistics().tasks_waiting >= _MOST_WAITING:
            raise ServiceError(429, "busy: others wait already to verify, export or analyse")
        return await to_thread.run_sync(act, limiter=self._jobs)

    # -- experiments ---------------------------------------------------------------------------------------------------

    def create(self, name: str, registration: Registration) -> bool:
        """Register an experiment; return False if it was there with this very registration, else True."""
        try:
            Experiment.create(self.url, name, registration, settings=self._settings).close()
        except StoreError:
            raise
        except ConflictError:
            Experiment.open(self.url, name, registration, settings=self._settings).close()
            return False
        return True

    def known(self, name: str) -> Experiment:
        """Return an experiment, which is opened at the first call; refuse with 404 if there is none of this name."""
        with self._lock:
            found = self._open.get(name)
            if found is not None:
                self._open.move_to_end(name)
                return found
        try:
            registration = self._registration(name)
        except NoStore:
            raise
        except InvalidArgument as error:
            raise Refusal(error, 404) from None
        made = Experiment(self._store, name, registration, self._on_step)
        with self._lock:
            self._open[name] = made
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return made

    def _registration(self, name: str) -> Registration:
        row = self._store.read(lambda view: view.known(checked_name(name)))
        return wanted_registration(row["registration"], name, None)

    def _acted(self, name: str, act: Callable[[Experiment], T]) -> T:
        """Act on an experiment and return the answer; if a backup replaced it in the store, it is opened again."""
        experiment = self.known(name)
        try:
            return act(experiment)
        except ConflictError as error:
            if isinstance(error, StoreError) or self._is_there(experiment):
                raise
            with self._lock:
                self._open.pop(name, None)
            return act(self.known(name))

    def _is_there(self, experiment: Experiment) -> bool:
        """Say whether the store still has an experiment as it was opened."""
        row = self._store.read(lambda view: view.find(experiment.name))
        return row is not None and bool(row["digest"] == experiment.registration.digest)
