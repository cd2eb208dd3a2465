"""Bounds on what a caller may send, and on how long it may take: large bodies and slow ones."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banditto.core.errors import ServiceError
from banditto.service.plain_json import problem_response
from banditto.service.service_settings import ServiceSettings

_DRAINED, _DRAINING = 32 * 2**20, 5.0  # bytes of a body that is too large which are read all the same, and seconds


class Bounds:
    """ASGI application that reads a whole request before it passes it on; too large or slow ones are refused."""

    def __init__(self, inner: ASGIApp, settings: ServiceSettings) -> None:
        self._inner = inner
        self._largest, self._patience = settings.largest_body, settings.patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request and pass it on, or refuse it."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._patience):
                body = await self._taken_in(scope, receive)
        except TimeoutError:
            await self._refuse(ServiceError(408, f"the request did not arrive in {self._patience:g} s"), scope, send)
            return
        except ServiceError as error:
            await self._drain(scope, receive)
            await self._refuse(error, scope, send)
            return
        if body is None:  # whoever called has gone
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        await self._inner(scope, again, send)

    async def _taken_in(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return a request's whole body; None if the caller leaves before its end."""
        largest = scope["state"].get("largest_body") or self._largest
        sizes = [value for name, value in scope["headers"] if name == b"content-length"]
        if sizes and (not sizes[0].isdigit() or int(sizes[0][:20]) > largest):
            raise _too_large(largest)
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > largest:
                raise _too_large(largest)
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _drain(self, scope: Scope, receive: Receive) -> None:
        """Read and drop what the caller still sends, if it is not much; else it might never see the answer."""
        sizes = [value for name, value in scope["headers"] if name == b"content-length"]
        left = _DRAINED
        if sizes and (not sizes[0].isdigit() or int(sizes[0][:20]) > left):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAINING):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return

    async def _refuse(self, error: ServiceError, scope: Scope, send: Send) -> None:
        """Answer with the error and close the connection, so that the rest of the request is not read."""
        made = problem_response(error)
        made.headers["Connection"] = "close"

        async def nothing() -> Message:
            return {"type": "http.disconnect"}

        await made(scope, nothing, send)


def _too_large(largest: int) -> ServiceError:
    return ServiceError(413, f"the body is larger than {largest:,} bytes")
