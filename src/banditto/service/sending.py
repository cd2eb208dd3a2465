"""How a request is sent until it is answered: what is worth another attempt, and after how long."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

import httpx

from banditto.core.errors import InvalidArgument, ServiceError
from banditto.service.calls import Call
from banditto.service.problem_json import error_of
from banditto.version import __version__

T = TypeVar("T")
_PASSING = {408, 425, 429, 502, 503, 504}  # what may work a moment later
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0  # seconds
_MOST_URLS = 1000  # that are remembered
_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)  # what holds itself ends in a RecursionError


class Attempts:
    """Counts the attempts of one request, and the seconds that are left for it."""

    def __init__(self, deadline: float) -> None:
        self._until = time.monotonic() + deadline
        self._pause = _FIRST_PAUSE

    def pause(self, answer: httpx.Response | None, error: httpx.TransportError | None = None) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is no time left, or no hope."""
        asked = 0.0
        if "CERTIFICATE_VERIFY_FAILED" in str(error):  # httpx has no other name for it
            return None
        if answer is not None:
            if answer.status_code not in _PASSING:
                return None
            given = answer.headers.get("Retry-After", "")
            asked = min(float(given), 60.0) if given.isdigit() else 0.0
        wait = max(asked, self._pause * random.uniform(0.5, 1.0))  # so that callers do not come back together
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return wait if time.monotonic() + wait < self._until else None


def checked_address(url: str) -> str:
    """Check the URL of a service, which comes back without a slash at its end."""
    allowed = "a URL such as http://127.0.0.1:8642"
    if not isinstance(url, str):
        raise InvalidArgument("url", url, allowed)
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise InvalidArgument("url", url, allowed) from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo or parsed.query:
        raise InvalidArgument("url", url, allowed)
    return url.rstrip("/")


def headers_of(token: str) -> dict[str, str]:
    """Return the headers of every request."""
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
        raise InvalidArgument("token", "something else", "the text of a token, as `banditto token create` printed it")
    return {"Authorization": f"Bearer {token.strip()}", "User-Agent": f"banditto/{__version__}"}


class Requests:
    """Turns calls into httpx requests; address, headers and limits are worked out once."""

    def __init__(self, http: httpx.Client | httpx.AsyncClient) -> None:
        self._base = str(http.base_url).rstrip("/")
        self._headers = [(b"Host", http.base_url.netloc), *http.headers.raw]
        self._extensions = {"timeout": http.timeout.as_dict()}
        self._urls: dict[str, httpx.URL] = {}  # by path, of calls without a query

    def of(self, call: Call[Any]) -> httpx.Request:
        """Return a call as an httpx request."""
        headers = [*self._headers, *((name.encode(), value.encode()) for name, value in call.headers.items())]
        content = b""
        if call.body is not None:
            content = _written(call.body)
            headers += [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(content))]
        stream = httpx.ByteStream(content)
        return httpx.Request(call.method, self._url(call), headers=headers, stream=stream, extensions=self._extensions)

    def _url(self, call: Call[Any]) -> httpx.URL:
        """Return the URL of a call; those without a query are cached."""
        if call.query:
            return httpx.URL(self._base + call.path, params=call.query)
        found = self._urls.get(call.path)
        if found is None:
            if len(self._urls) >= _MOST_URLS:
                self._urls.clear()
            found = self._urls[call.path] = httpx.URL(self._base + call.path)
        return found


def read_answer(call: Call[T], answer: httpx.Response) -> T:
    """Read an answer, or raise the library's error that it tells of."""
    if answer.is_success:
        plain = "/export/" in call.path
        try:
            return call.read(answer.content if plain else answer.json())
        except (ValueError, KeyError, TypeError) as error:
            raise ServiceError(answer.status_code, f"the answer is not a service's of this version ({error})") from None
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        raise ServiceError(
            answer.status_code, f"something that is no service of banditto answered {answer.status_code}"
        )
    raise error_of(answer.status_code, problem)


def give_up(address: str, error: httpx.HTTPError) -> NoReturn:
    """Raise the error which says that a service does not answer."""
    kind = type(error).__name__
    words = " ".join(str(error).split())[:200]
    raise ServiceError(0, f"the service at {address} does not answer ({kind}{': ' + words if words else ''})") from None


def _written(body: Mapping[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("body", "something that JSON does not hold", f"plain data ({error})") from None
