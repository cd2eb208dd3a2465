"""A shorter way for asks and tells, which nearly all requests are: past FastAPI, which takes longer than the library.

Only what is well formed goes this way. Everything else, and all other routes, FastAPI gets as it came: what is wrong
with a request is said in one place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banditto.core.errors import BandittoError
from banditto.service.bodies import AskBody, Body, TellBody
from banditto.service.refusals import Refusal
from banditto.service.routes import ASK_PATH, TELL_PATH, Routes
from banditto.service.tokens import Token

B = TypeVar("B", bound=Body)


class Shortcut:
    """ASGI application that sends well-formed asks and tells straight to their routes, and the rest to FastAPI."""

    def __init__(self, inner: ASGIApp, routes: Routes, unknown: Callable[[Token, Refusal], Response]) -> None:
        self._inner, self._routes, self._unknown = inner, routes, unknown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        route = scope["state"].get("route") if scope["type"] == "http" else None
        if route not in (ASK_PATH, TELL_PATH):
            await self._inner(scope, receive, send)
            return
        message = await receive()  # the whole body, which `Bounds` has taken in
        acting = self._acting(route, scope, message["body"])
        if acting is None:
            await self._inner(scope, _once(message, receive), send)
            return
        try:
            response = await acting
        except Refusal as error:
            response = self._unknown(scope["state"]["token"], error)
        except BandittoError as error:
            response = Refusal(error).response()
        await response(scope, receive, send)

    def _acting(self, route: str, scope: Scope, text: bytes) -> Awaitable[Response] | None:
        """Start to answer a well-formed request, and return the awaitable; None for any other request."""
        types, keys = _headers(scope, b"content-type"), _headers(scope, b"idempotency-key")
        if types != [b"application/json"] or len(keys) > 1:
            return None
        name: str = scope["state"]["experiment"]
        if route == TELL_PATH:
            rewards = _read(TellBody, text)
            return None if rewards is None else self._routes.tell(name, rewards)
        wanted = _read(AskBody, text)
        key = keys[0].decode("latin-1") if keys else None
        return None if wanted is None else self._routes.ask(name, wanted, key)


def _headers(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


def _read(kind: type[B], text: bytes) -> B | None:
    """Parse a body in one go; None for one that FastAPI would refuse."""
    try:
        return kind.model_validate_json(text)
    except ValueError:  # pydantic's errors are such
        return None


def _once(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that first repeats a message that was taken already, then passes on the next ones."""
    waiting = [message]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
