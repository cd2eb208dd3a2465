"""HTTP/1.1 of uvicorn with bounds on a caller: how long it may take over its headers and to read an answer, how long
its headers may be.

uvicorn closes a connection that is idle after an answer. It leaves a connection open that never sends a whole request,
as half-open ones and slow callers do, and one whose caller does not read. Its parser in C takes headers of any length.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
LONGEST_HEADERS = 64 * 1024  # bytes
READING_SECONDS = 20.0  # in which a caller must have read some of an answer that waits for it
MOST_CONNECTIONS = 4000  # of one process; more are closed as they come


class PatientProtocol(HttpToolsProtocol):
    """Speaks HTTP/1.1, and closes a connection whose next request does not come whole in time."""

    _header_timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None
    _in_headers = False  # whether a request has begun whose headers are not whole
    _unfinished = 0  # bytes that came without ending them
    _header_bytes = 0  # of the headers that are whole

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Take in bytes; refuse headers that are too long, and time those that are not complete yet."""
        super().data_received(data)
        if self._in_headers:
            self._unfinished += len(data)
            if self._unfinished > LONGEST_HEADERS and not self.transport.is_closing():
                self.send_400_response("The headers are too long.")
                return
        if self._busy():
            self._stop_waiting()
        elif self._header_timer is None and self.timeout_keep_alive_task is None:
            self._wait_for_headers()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._in_headers, self._unfinished, self._header_bytes = True, 0, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; too many bytes of them end the request, which the parser answers with 400."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > LONGEST_HEADERS:
            raise ValueError("the headers are too long")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass the request on."""
        self._in_headers = False
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers with the connection."""
        self._stop_waiting()
        self._stop_timing_reader()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Pause writing to a slow reader, and start a timer that closes the connection if it stays slow."""
        super().pause_writing()
        self._stop_timing_reader()
        self._reading_timer = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing, and stop that timer: the caller reads again."""
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
