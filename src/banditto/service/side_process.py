"""Work in a process of its own: it computes for seconds, and a thread that computes keeps all others waiting."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from banditto.core.errors import ServiceError

T = TypeVar("T")
_MOST_WAITING = 10


class SideProcess:
    """Does one thing at a time in another process; what takes too long is ended, and so is the process.

    Args:
        seconds: that one thing may take.
        what: it does, for people: "a plan".
        otherwise: what to do where there is not enough time, for people.
    """

    def __init__(self, seconds: float, what: str, otherwise: str = "") -> None:
        self._seconds, self._what, self._otherwise = seconds, what, otherwise
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function there; what it returns comes back."""
        if self._waiting >= _MOST_WAITING:
            raise ServiceError(429, f"busy: others wait already for {self._what}")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._run(function, arguments)
        finally:
            self._waiting -= 1

    async def _run(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """Call a function in the process and return its result; after too many seconds the process is ended."""
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
            pool = self._pool
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                return await loop.run_in_executor(pool, function, *arguments)
        except TimeoutError:
            self.close()
            words = f"{self._what} takes longer than {self._seconds:g} s"
            raise ServiceError(422, f"{words}; {self._otherwise}" if self._otherwise else words) from None
        except BrokenProcessPool:
            self.close()
            raise ServiceError(503, f"the process for {self._what} has died; the next request gets a new one") from None

    def close(self) -> None:
        """End the process, whatever it does."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)
