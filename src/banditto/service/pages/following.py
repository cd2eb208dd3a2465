"""Pages that follow an experiment: whoever looks is told when its log grows, by server-sent events.

One look a second at an experiment's row, in each process, however many people watch it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from banditto.core.errors import BandittoError

PACE = 1.0  # seconds between two looks
_QUIET = 15.0  # seconds after which a line goes out all the same, so that a connection that has died is noticed

Head = Callable[[str], Awaitable[str]]  # of an experiment's log, by its name


class Followers:
    """Tells those who follow an experiment when there is something new."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def lines(self, name: str, known: str) -> AsyncIterator[str]:
        """Yield a server-sent line to a browser whenever the head of the experiment's log has changed."""
        mine = asyncio.Event()
        self._waiting.setdefault(name, set()).add(mine)
        try:
            yield "retry: 2000\n\n"
            while True:
                mine.clear()
                head = await self._head(name)
                if head != known:
                    known = head
                    yield f"event: changed\ndata: {head}\n\n"
                self._look_after(name)
                try:
                    async with asyncio.timeout(_QUIET):
                        await mine.wait()
                except TimeoutError:
                    yield ": nothing new\n\n"
        finally:
            self._waiting[name].discard(mine)
            if not self._waiting[name]:
                del self._waiting[name]

    def _look_after(self, name: str) -> None:
        """Start the task that watches an experiment, unless it runs already."""
        task = self._looking.get(name)
        if task is None or task.done():
            self._looking[name] = asyncio.create_task(self._look(name))

    async def _look(self, name: str) -> None:
        """Watch an experiment while somebody waits; wake all waiting pages at the first look and at every change."""
        known = ""
        while name in self._waiting:
            with suppress(BandittoError):  # a store that does not answer now may do so in a second
                head = await self._head(name)
                if head != known:
                    known = head
                    for one in self._waiting.get(name, ()):
                        one.set()
            await asyncio.sleep(PACE)

    def close(self) -> None:
        """Stop looking."""
        for task in self._looking.values():
            task.cancel()
