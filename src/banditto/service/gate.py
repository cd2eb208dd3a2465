"""The gate: every request passes here first. What has no door is not there, and a door has a scope or is open.

The gate knows the routes by the same call that adds them to the application (`doors.add` in `application.py`), and
refuses whatever it does not know: a route that somebody forgot to give a scope cannot be reached.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from banditto.core.errors import BandittoError, InvalidArgument, NotAllowed, ServiceError
from banditto.live.checked_words import checked_name
from banditto.live.reading import now
from banditto.service.lanes import Lanes
from banditto.service.rate_limits import RateLimits
from banditto.service.refusals import Refusal
from banditto.service.service_settings import ServiceSettings
from banditto.service.tokens import KeptToken, Scope, Token, halves_of, looked_up, recognised

_STRANGERS = 20.0  # tokens a second that one address may try
_MOST_TOKENS = 1000  # that are remembered


class Door(NamedTuple):
    """A route: how it is called, and the scope that it needs; "any" is any token's, None lets everybody in."""

    method: str
    template: str
    pattern: re.Pattern[str]
    scope: Scope | Literal["any"] | None


class Doors:
    """Lists all routes of the service."""

    def __init__(self) -> None:
        self.all: list[Door] = []

    def add(self, method: str, template: str, scope: Scope | Literal["any"] | None) -> None:
        """Add a route."""
        self.all.append(Door(method, template, compile_path(template)[0], scope))

    def find(self, method: str, path: str) -> tuple[Door, Mapping[str, str]]:
        """Find the route of a request, with what stands in its path; there may be none."""
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
    """Lets requests in whose token is known and enough, at a bearable rate; an ASGI application around another."""

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
        try:
            door, places = self._doors.find(connection["method"], connection["path"])
            noted["route"] = door.template
            if door.scope is not None:
                token = await self._admitted(connection)
                noted["token"] = token
                if door.scope != "any":
                    token.check_scope(door.scope)
                if "name" in places:
                    token.check_experiment(places["name"])
                    noted["experiment"] = checked_name(places["name"])
        except Refusal as error:
            await error.response()(connection, receive, send)
            return
        except InvalidArgument as error:  # what can be no name is nobody's
            await Refusal(error, 404).response()(connection, receive, send)
            return
        except BandittoError as error:
            await Refusal(error).response()(connection, receive, send)
            return
        await self._inner(connection, receive, send)

    async def _admitted(self, connection: Connection) -> Token:
        """Find out whose token a request has, and whether it may call now."""
        halves = halves_of(_bearer(connection))
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


def _bearer(connection: Connection) -> str:
    """Look up the token of a request; empty text comes back if there is none, or more than one."""
    given = [value for name, value in connection["headers"] if name == b"authorization"]
    if len(given) != 1:
        return ""
    kind, _, text = given[0].decode("latin-1").partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""
