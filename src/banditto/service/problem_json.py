"""Errors as HTTP has them (RFC 9457, application/problem+json), from the library's own and back to them."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from banditto.core.errors import (
    BandittoError,
    ConflictError,
    InvalidArgument,
    LogError,
    MissingExtra,
    NoPlan,
    NoStore,
    NotAllowed,
    Offer,
    ServiceError,
    Shown,
    StoreError,
)
from banditto.core.json_types import Keywords
from banditto.policies.policy import Level

MEDIA_TYPE = "application/problem+json"
# by kind of error, the most precise first
_STATUSES: tuple[tuple[type[BandittoError], int], ...] = (
    (NoStore, 503),
    (InvalidArgument, 422),
    (StoreError, 503),
    (ConflictError, 409),
    (LogError, 409),
    (MissingExtra, 501),
)


class OfferContent(TypedDict):
    """Numbers of a plan that could be had."""

    rho: float
    gap: float
    horizon: int
    level: Level


class Problem(TypedDict):
    """What went wrong: the library's words and its code, and its parts where it is about an argument."""

    type: str
    title: str
    status: Annotated[int, Keywords(minimum=400, maximum=599)]
    detail: str
    code: str
    argument: NotRequired[str]
    given: NotRequired[str]
    allowed: NotRequired[str]
    event: NotRequired[Annotated[int | None, Keywords(description="of a log that does not follow: the first bad one")]]
    offers: NotRequired[Annotated[list[OfferContent], Keywords(description="plans that could be had instead")]]


def status_of_error(error: BandittoError) -> int:
    """Find the HTTP status of an error; 500 comes back for what should not happen."""
    if isinstance(error, ServiceError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem_of(error: BandittoError, status: int | None = None) -> Problem:
    """Return an error as plain data for RFC 9457; `status` replaces the error's own HTTP status."""
    number = status_of_error(error) if status is None else status
    made: Problem = {
        "type": f"urn:banditto:problem:{error.code}",
        "title": HTTPStatus(number).phrase,
        "status": number,
        "detail": str(error),
        "code": error.code,
    }
    if isinstance(error, InvalidArgument):
        made |= {"argument": error.argument, "given": str(error.given), "allowed": error.allowed}
    if isinstance(error, NoPlan) and error.offers:
        made["offers"] = [
            {"rho": offer.rho, "gap": offer.gap, "horizon": offer.horizon, "level": offer.level}
            for offer in error.offers
        ]
    if isinstance(error, LogError):
        made["event"] = error.number
    return made


def error_of(status: int, problem: Mapping[str, Any]) -> BandittoError:
    """Return the library's error that a service's answer describes."""
    code, detail = str(problem.get("code", "")), str(problem.get("detail", ""))
    if code == "invalid-argument" and {"argument", "given", "allowed"} <= set(problem):
        parts = (str(problem["argument"]), Shown(problem["given"]), str(problem["allowed"]))
        if "offers" in problem:
            return NoPlan(*parts, [Offer(**offer) for offer in problem["offers"]])
        return InvalidArgument(*parts)
    if code == "log":
        number = problem.get("event")
        return LogError(detail.partition(": ")[2] if number is not None else detail, number)
    kinds: dict[str, type[BandittoError]] = {"conflict": ConflictError, "store": StoreError}
    if code in kinds:
        return kinds[code](detail)
    if status in (401, 403):
        return NotAllowed(status, detail or HTTPStatus(status).phrase)
    return ServiceError(status, detail or f"the service answered {status}")
