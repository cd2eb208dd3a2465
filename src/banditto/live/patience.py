"""How long a step has waited for its store, and how long it still may.

Only waiting counts. A process that computes for long, or was stopped and comes back, has not waited: its step is done
again instead of given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
# Drivers look up ten times a second while they wait; who was away for longer than this was stopped himself.
_STALL = 1.0


class Patience:
    """Counts the seconds that a step waits for its store; for a look, each answer starts the count anew.

    Attributes:
        limit: seconds that the step may wait.
        waited: seconds that it has waited.
        idle: seconds that the server allows it to be silent.
        lost: how often the connection was lost after an answer.
        told: who holds the lock, if that was asked.
    """

    def __init__(self, limit: float, idle: float = 10.0, renews: bool = False) -> None:
        self.limit, self.idle, self.renews = limit, min(idle, limit / 2), renews
        self.waited, self.lost, self.told = 0.0, 0, ""
        self._progress = False
        self._computed = time.thread_time()

    @property
    def margin(self) -> float:
        """Seconds by which the server's limits are shorter than ours: its error comes first, and says why."""
        return min(1.0, self.limit / 10)

    @property
    def left(self) -> float:
        """Seconds that are left to wait; at least 0.05, since a limit of 0 is no limit to PostgreSQL."""
        return max(self.limit - self.waited, 0.05)

    @property
    def late(self) -> bool:
        """Whether all the time to wait is used up."""
        return self.waited >= self.limit

    def count(self, seconds: float, most: float = _STALL) -> None:
        """Add seconds of waiting, at most `most` at a time: the rest was spent by this process, not by the store."""
        self.waited += min(seconds, most)

    @contextmanager
    def counting(self, most: float) -> Iterator[None]:
        """Count the time spent inside this context as waiting."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.count(time.monotonic() - begun, most)

    def answered(self) -> None:
        """Note that an answer came."""
        self._progress = True
        if self.renews:
            self.waited = 0.0

    def begin(self) -> None:
        """Note that another attempt begins."""
        self._computed = time.thread_time()

    def lose(self, idled: bool) -> None:
        """Note that a connection was lost, `idled` because this process was silent for too long.

        A process that was stopped gets no more time to be silent. One that computed gets so much that the next attempt
        can be done: whoever stops it then makes others wait for longer.
        """
        self.lost += self._progress
        self._progress = False
        computed = time.thread_time() - self._computed
        if idled and computed > self.idle / 2:
            self.idle = 4 * computed

    def watch(
        self, waiting: Generator[Any, Any, T], ask: Callable[[], None], give_up: Callable[[], BaseException]
    ) -> Generator[Any, Any, T]:
        """Pass on what a driver's generator `waiting` yields and returns; when time runs out, `ask`, then `give_up`.

        A driver sends what is ready on its connection, nothing if that takes longer than a moment.
        """
        asked = False
        try:
            wanted = next(waiting)
            while True:
                begun = time.monotonic()
                ready = yield wanted
                self.count(time.monotonic() - begun)
                if not ready and not asked and self.waited > self.limit - 3 * self.margin:
                    asked = True
                    ask()
                if not ready and self.late:
                    waiting.close()
                    raise give_up()
                wanted = waiting.send(ready)
        except StopIteration as end:
            self.answered()
            answer: T = end.value
            return answer
