"""HTTP/1.1 of uvicorn with bounds on how long a caller may take: over its headers, and to read an answer.

uvicorn closes a connection that is idle after an answer. It lets one be that never sends a whole request, as half-open
ones and slow callers do, and one whose caller does not read.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
READING_SECONDS = 20.0  # in which a caller must have read some of an answer that waits for it
MOST_CONNECTIONS = 4000  # of one process; more are closed as they come


class PatientProtocol(H11Protocol):
    """Speaks HTTP/1.1, and closes a connection whose next request does not come whole in time."""

    _header_timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Take what has come; wait for the rest of the headers if they are not whole."""
        super().data_received(data)
        if self._busy():
            self._stop_waiting()
        elif self._header_timer is None and self.timeout_keep_alive_task is None:
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers with the connection."""
        self._stop_waiting()
        self._stop_timing_reader()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a caller that does not read as fast as we write, for so long."""
        super().pause_writing()
        self._stop_timing_reader()
        self._reading_timer = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the caller reads."""
        self._stop_timing_reader()
        super().resume_writing()

    def shutdown(self) -> None:
        """End the connection once its answer is sent, and at once if that has no end of its own."""
        if self.cycle is not None and not self.cycle.response_complete and self.scope.get("state", {}).get("endless"):
            self.transport.close()
        else:
            super().shutdown()

    def _stop_timing_reader(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_headers(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

    def _stop_waiting(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _close_if_idle(self) -> None:
        self._header_timer = None
        if not self._busy() and not self.transport.is_closing():
            self.transport.abort()
