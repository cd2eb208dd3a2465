"""Signing in: a browser keeps the token in a cookie that no script can read, and only pages take it from there.

The API never looks at cookies, so that nothing a foreign page makes a browser send can take a step there. Forms of
pages carry a key that follows from the token, which a foreign page cannot know.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from banditto.core.errors import NotAllowed
from banditto.service.tokens import halves_of

COOKIE = "banditto_token"
FORM_KEY = "form_key"
_LIFE = 12 * 3600  # seconds until a browser asks for the token again


def token_of(connection: HTTPConnection) -> str:
    """Return the token in a browser's cookie; empty text if there is none."""
    return connection.cookies.get(COOKIE, "")


def sign_in(answer: Response, connection: HTTPConnection, token: str) -> None:
    """Let the browser keep a token: for this service alone, and out of reach of scripts."""
    # Lax: a link in a mail opens the page, and no other site's form or picture gets the cookie
    answer.set_cookie(COOKIE, token, max_age=_LIFE, httponly=True, samesite="lax", secure=_encrypted(connection))


def sign_out(answer: Response, connection: HTTPConnection) -> None:
    """Let the browser forget the token."""
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=_encrypted(connection))


def form_key(connection: HTTPConnection) -> str:
    """Return the secret that this session's forms must carry; empty text for a browser that is not signed in."""
    halves = halves_of(token_of(connection))
    return "" if halves is None else hmac.digest(halves[1].encode(), b"banditto/form/1", hashlib.sha256).hex()


def check_form(connection: HTTPConnection, fields: Mapping[str, str]) -> None:
    """Refuse a form that another site made the browser send."""
    check_origin(connection)
    wanted = form_key(connection)
    if not wanted or not hmac.compare_digest(fields.get(FORM_KEY, "").encode(), wanted.encode()):
        raise NotAllowed(
            403, "this form is not from a page of this service; open the page again, and send it from there"
        )


def check_origin(connection: HTTPConnection) -> None:
    """Refuse what a page of another site sends; browsers say whose page it is."""
    origin = connection.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != connection.headers.get("host"):
        raise NotAllowed(403, "this was sent by a page of another site")


def inner_path(given: str) -> str:
    """Return the path to go to after signing in; the front page for anything that may lead to another site."""
    if not given.startswith("/") or given.startswith(("//", "/\\")) or not given.isprintable() or "\\" in given:
        return "/"
    return given


def _encrypted(connection: HTTPConnection) -> bool:
    return connection.url.scheme == "https"
