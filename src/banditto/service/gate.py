"""The gate: every request passes here first. What has no door is not there, and a door has a scope or is open.

Programs bring their token in a header, browsers in a cookie. A door takes one of the two: what a foreign page makes a
browser send reaches no door of the API.

The gate knows the routes by the same call that adds them to the application (`doors.add` in `application.py`), and
refuses whatever it does not know: a route that somebody forgot to give a scope cannot be reached.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from starlette.requests import HTTPConnection
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from banditto.core.errors import BandittoError, InvalidArgument, NotAllowed, ServiceError
from banditto.live.checked_words import checked_name
from banditto.live.reading import now
from banditto.service.lanes import Lanes
from banditto.service.pages.refused import refused_page
from banditto.service.pages.sessions import token_of
from banditto.service.rate_limits import RateLimits
from banditto.service.refusals import Refusal
from banditto.service.service_settings import ServiceSettings
from banditto.service.tokens import KeptToken, Scope, Token, halves_of, looked_up, recognised

_STRANGERS = 20.0  # tokens a second that one address may try
_MOST_TOKENS = 1000  # that are remembered


NeededScope = Scope | Literal["any"] | None


class Door(NamedTuple):
    """One route: how it is called, and the scope that its token needs ("any": any token; None: no token)."""

    method: str
    template: str
    pattern: re.Pattern[str]
    scope: NeededScope
    page: bool  # whether it is for browsers, whose token is in a cookie
    largest_body: int | None  # bytes that a request may have; None: as many as everywhere


class Doors:
    """Lists all routes of the service."""

    def __init__(self) -> None:
        self.all: list[Door] = []

    def add(
        self, method: str, template: str, scope: NeededScope, *, page: bool = False, largest_body: int | None = None
    ) -> None:
        """Add a route."""
        self.all.append(Door(method, template, compile_path(template)[0], scope, page, largest_body))

    def find(self, method: str, path: str) -> tuple[Door, Mapping[str, str]]:
        """Return the route of a request, and the parts of its path by name; raise a refusal if there is none."""
        methods: list[str] = []
        for door in self.all:
            found = door.pattern.match(path)
            if found is None:
                continue
            if door.method == method:
                return door, found.groupdict()
            methods.append(door.method)
        if methods:
            raise Refusal.of_method(method, ", ".join(sorted(methods)))
        raise ServiceError(404, "there is nothing here; /openapi.json lists what there is")


class Gate:
    """ASGI application that lets requests in whose token is valid, has the scope, and does not come too often."""

    def __init__(self, inner: ASGIApp, doors: Doors, settings: ServiceSettings, lanes: Lanes) -> None:
        self._inner, self._doors, self._lanes = inner, doors, lanes
        self._memory = settings.token_memory
        self._kept: dict[str, tuple[float, KeptToken]] = {}
        self._rates, self._strangers = RateLimits(settings.rate), RateLimits(_STRANGERS)

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on or refuse it."""
        if connection["type"] != "http":
            if connection["type"] == "lifespan":
                await self._inner(connection, receive, send)
            else:  # a web socket: there are none here
                await send({"type": "websocket.close", "code": 1008})
            return
        noted: dict[str, Any] = connection.setdefault("state", {})
        page = False
        try:
            door, places = self._doors.find(connection["method"], connection["path"])
            noted["route"], page = door.template, door.page
            noted["page"], noted["largest_body"] = door.page, door.largest_body
            if door.scope is not None:
                text = token_of(HTTPConnection(connection)) if page else _bearer(connection)
                noted["token"] = token = await self.admitted(connection, text)
                if door.scope != "any":
                    token.check_scope(door.scope)
                if "name" in places:
                    token.check_experiment(places["name"])
                    noted["experiment"] = checked_name(places["name"])
        except Refusal as error:
            await _answer(error, page)(connection, receive, send)
            return
        except InvalidArgument as error:  # what can be no name is nobody's
            await _answer(Refusal(error, 404), page)(connection, receive, send)
            return
        except BandittoError as error:
            await _answer(Refusal(error), page)(connection, receive, send)
            return
        await self._inner(connection, receive, send)

    async def admitted(self, connection: Connection, text: str) -> Token:
        """Return the token with this text; raise `NotAllowed` if it is unknown, expired, revoked or used too often."""
        halves = halves_of(text)
        address = str((connection.get("client") or ("nobody",))[0])
        if halves is None:  # which costs nothing
            raise NotAllowed(401, "a token is needed: Authorization: Bearer bdt_...")
        public, secret = halves
        kept = await self._look_up(public, address)
        try:
            token = recognised(kept, secret)
            token.check_time(now())
        except NotAllowed:
            self._slow_down(self._strangers, address)
            raise
        self._slow_down(self._rates, token.id)
        return token

    async def _look_up(self, public: str, address: str) -> KeptToken | None:
        """Return a token by its public half, from a short memory or from the store; None if there is none."""
        known = self._kept.get(public)
        if known is not None and time.monotonic() - known[0] < self._memory:
            return known[1]
        if known is None:  # somebody may try ids: each costs a look into the store
            self._slow_down(self._strangers, address)
        began = time.monotonic()
        found = await self._lanes.look(lambda store: looked_up(store, public))
        if found is None:
            self._kept.pop(public, None)
            return None
        if len(self._kept) >= _MOST_TOKENS:
            self._kept.clear()
        self._kept[public] = (began, found)
        return found

    def _slow_down(self, limits: RateLimits, caller: str) -> None:
        seconds = limits.wait(caller)
        if seconds:
            raise Refusal.of_rate(seconds)


def _answer(refusal: Refusal, page: bool) -> ASGIApp:
    """Turn a refusal into a response: a page for browsers, JSON for programs."""
    if not page:
        return refusal.response()

    async def shown(connection: Connection, receive: Receive, send: Send) -> None:
        await refused_page(HTTPConnection(connection), refusal)(connection, receive, send)

    return shown


def _bearer(connection: Connection) -> str:
    """Return the token in a request's headers; empty text if there is none, or more than one."""
    given = [value for name, value in connection["headers"] if name == b"authorization"]
    if len(given) != 1:
        return ""
    kind, _, text = given[0].decode("latin-1").partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""
