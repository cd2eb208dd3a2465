"""Plans in a process of their own: they compute for seconds, and a thread that computes keeps all others waiting."""

from __future__ import annotations

import asyncio
import multiprocessing
import secrets
import threading
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from banditto.core.errors import ServiceError

_MOST_WAITING = 10


class PlanningJobs:
    """Plans experiments, one at a time; a plan that takes too long is ended, and so is its process."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def plan(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Plan an experiment; what `planned` gives comes back."""
        if self._waiting >= _MOST_WAITING:
            raise ServiceError(429, "busy: others wait already for a plan")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._planned(arguments)
        finally:
            self._waiting -= 1

    async def _planned(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
            pool = self._pool
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                return await loop.run_in_executor(pool, planned, dict(arguments))
        except TimeoutError:
            self.close()
            words = f"this plan takes longer than {self._seconds:g} s; `banditto plan` has no limit"
            raise ServiceError(422, words) from None
        except BrokenProcessPool:
            self.close()
            raise ServiceError(503, "the process that plans has died; the next request gets a new one") from None

    def close(self) -> None:
        """End the process, whatever it does."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)


def planned(arguments: dict[str, Any]) -> dict[str, Any]:
    """Plan an experiment, in whichever process this is called; plain data comes back: the plan and its protocol."""
    from banditto.measure.plan import plan

    if arguments.get("seed") is None:  # who knows the seed knows which arm comes next
        arguments["seed"] = secrets.randbits(63)
    found = plan(**arguments)
    return {
        "plan": found.to_dict(),
        "protocol": found.protocol.to_dict(),
        "warnings": [found.warning] if found.warning else [],
    }
