"""A request that is refused before the library is asked, or that gets another status than its error's own."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import Response

from banditto.core.errors import BandittoError, ServiceError, shown
from banditto.service.plain_json import problem_response


class Refusal(Exception):
    """An error of the library with the status and the headers that HTTP wants for it."""

    def __init__(self, error: BandittoError, status: int | None = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(str(error))
        self.error, self.status, self.headers = error, status, headers or {}

    @classmethod
    def of_method(cls, given: str, allowed: str) -> Refusal:
        """Return the refusal of a method that this path does not have."""
        return cls(ServiceError(405, f"method: got {shown(given)}, allowed: {allowed}"), headers={"Allow": allowed})

    @classmethod
    def of_rate(cls, seconds: float) -> Refusal:
        """Return the refusal of a caller who comes too often, with the seconds to wait."""
        error = ServiceError(429, f"too many requests; the next one may come in {seconds:.3f} s")
        return cls(error, headers={"Retry-After": str(max(1, round(seconds)))})

    def response(self) -> Response:
        """Return the refusal as an HTTP response."""
        made = problem_response(self.error, self.status)
        made.headers.update(self.headers)
        if made.status_code == HTTPStatus.UNAUTHORIZED:
            made.headers["WWW-Authenticate"] = 'Bearer realm="banditto"'
        return made
