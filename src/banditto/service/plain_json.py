"""Answers as plain JSON: written once, by us, so that no library checks or copies what the types say already."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

from banditto.core.errors import BandittoError
from banditto.service.problem_json import MEDIA_TYPE, problem_of

# nobody keeps an answer, guesses another type for it, or shows it inside a page
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
# Nothing that we write holds itself: to look for that would take a third of the time.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def json_response(content: Mapping[str, object], status: int = 200) -> Response:
    """Return a response with an object as JSON in ASCII."""
    return Response(_ENCODER.encode(content), status, _HEADERS, "application/json")


def problem_response(error: BandittoError, status: int | None = None) -> Response:
    """Return a response with an error as JSON, in the form of RFC 9457."""
    problem = problem_of(error, status)
    return Response(_ENCODER.encode(problem), problem["status"], _HEADERS, MEDIA_TYPE)
