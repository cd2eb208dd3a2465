"""A page that says why there is none: nobody is signed in, the token is not enough, or there is no such experiment."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlencode

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from banditto.service.pages.rendering import HEADERS, page
from banditto.service.pages.sessions import token_of
from banditto.service.problem_json import status_of_error
from banditto.service.refusals import Refusal


def refused_page(connection: HTTPConnection, refusal: Refusal) -> Response:
    """Return a refusal as a page; a browser that is not signed in is sent to the sign-in page, and back afterwards."""
    status = status_of_error(refusal.error) if refusal.status is None else refusal.status
    if status == HTTPStatus.UNAUTHORIZED and connection.scope["method"] == "GET" and _is_page(connection):
        path = connection.url.path + (f"?{connection.url.query}" if connection.url.query else "")
        why = {"why": str(refusal.error)} if token_of(connection) else {}
        return RedirectResponse(f"/sign-in?{urlencode({'next': path, **why})}", 303, HEADERS)
    words = {"title": HTTPStatus(status).phrase, "words": str(refusal.error)}
    answer = page(connection, "refused.html", status, **words)
    answer.headers.update(refusal.headers)
    return answer


def _is_page(connection: HTTPConnection) -> bool:
    """Say whether the browser wants to show the answer as a page, not to use it as a part of one."""
    return connection.headers.get("sec-fetch-dest", "document") == "document"
