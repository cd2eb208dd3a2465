"""The application: the routes behind the gate, errors in the library's words, and the OpenAPI document of all of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from banditto.core.errors import BandittoError, InvalidArgument, ServiceError, Shown
from banditto.service.bounds import Bounds
from banditto.service.gate import Doors, Gate
from banditto.service.lanes import Lanes
from banditto.service.monitoring import Counts, Watch, bug
from banditto.service.pages.page_routes import PAGES, Pages, shown
from banditto.service.pages.refused import refused_page
from banditto.service.plain_json import json_response, problem_response
from banditto.service.problem_json import MEDIA_TYPE, Problem
from banditto.service.refusals import Refusal
from banditto.service.routes import ROUTES, Route, Routes
from banditto.service.service_settings import ServiceSettings
from banditto.service.shortcut import Shortcut
from banditto.service.side_process import SideProcess
from banditto.service.tokens import Token
from banditto.version import __version__

_BRANCHES = {"int", "float", "str", "bool"}  # as pydantic names the types of a union
_PROBLEMS = "#/components/schemas/Problem"
_DESCRIPTION = """Adaptive experiments that a second lab can repeat: ask for arms, tell rewards.

Every request may be sent again. The same reward, loss, stop or registration again changes nothing, and an ask is known
by its Idempotency-Key or its unit. Errors are objects of application/problem+json, in one line: which argument, what
was given, what is allowed."""


def application() -> ASGIApp:
    """Make the application of a worker process, as `banditto serve` set it up."""
    return make_application(ServiceSettings.of_environment())[0]


def make_application(settings: ServiceSettings) -> tuple[ASGIApp, Doors]:
    """Make the ASGI application to be served; it comes back with the list of all its routes."""
    counts = Counts()
    lanes = Lanes(settings.store, counts.on_step)
    plans = SideProcess(settings.job_seconds, "a plan", "`banditto plan` has no limit")

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        pages.close()
        plans.close()
        lanes.close()

    app = FastAPI(
        title="banditto",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    doors, routes, pages = Doors(), Routes(lanes, plans, counts), Pages(lanes, plans, settings.job_seconds)
    for route in ROUTES:
        doors.add(route.method, route.path, route.scope)
        _add(app, route, routes)
        if route.scope is None:  # balancers of load ask with HEAD
            doors.add("HEAD", route.path, None)
            app.add_api_route(
                route.path, getattr(routes, route.act.__name__), methods=["HEAD"], include_in_schema=False
            )
    for one in PAGES:
        doors.add(one.method, one.path, one.scope, page=True, largest_body=one.largest_body)
        app.add_route(one.path, shown(one.act(pages)), [one.method])
    document = _document(app)
    doors.add("GET", "/openapi.json", None)
    app.add_route("/openapi.json", lambda request: json_response(document), ["GET"])
    app.add_exception_handler(BandittoError, _refused)
    app.add_exception_handler(Refusal, _not_there)
    app.add_exception_handler(RequestValidationError, _misshapen)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(Exception, _surprised)
    pages.gate = Gate(Bounds(Shortcut(app, routes, _unknown), settings), doors, settings, lanes)
    made: ASGIApp = pages.gate
    if settings.origins:
        allowed = ["Authorization", "Content-Type", "Idempotency-Key"]
        made = CORSMiddleware(
            made, allow_origins=list(settings.origins), allow_methods=["GET", "POST", "PUT"], allow_headers=allowed
        )
    return Watch(made, counts), doors


def _add(app: FastAPI, route: Route, routes: Routes) -> None:
    """Add a route to FastAPI; its summary and description are the docstring of its method."""
    name = route.act.__name__
    summary, _, more = (route.act.__doc__ or "").partition("\n")
    app.add_api_route(
        route.path,
        getattr(routes, name),
        methods=[route.method],
        response_model=route.reply,
        status_code=route.status,
        summary=summary,
        description=more.strip() or summary,
        operation_id=name,
    )


# -- errors ------------------------------------------------------------------------------------------------------------


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, BandittoError)
    return Refusal(error).response()


def _not_there(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _unknown(request.scope["state"]["token"], error)


def _unknown(token: Token, error: Refusal) -> Response:
    """Answer that there is no such experiment; a token for all experiments is also told the names that exist."""
    found = error.error
    if isinstance(found, InvalidArgument) and (
        token.experiment is not None or not {"read", "admin"} & set(token.scopes)
    ):
        found = InvalidArgument(found.argument, Shown(found.given), "an experiment of this store")
    return Refusal(found, error.status).response()


def _misshapen(request: Request, error: Exception) -> Response:
    """Answer which part of a request has the wrong shape, in the words of the library's `InvalidArgument`."""
    assert isinstance(error, RequestValidationError)
    found = list(error.errors())
    first = found[0]
    if first["type"] == "json_invalid":
        return problem_response(InvalidArgument("body", "something that is no JSON", "an object, as JSON"), 400)
    if len(first["loc"]) == 1:  # the whole body
        allowed = "an object, as JSON, with Content-Type: application/json"
        return problem_response(InvalidArgument(str(first["loc"][0]), "something else", allowed))
    place = [str(part) for part in first["loc"][1:]]
    if place[-1] in _BRANCHES:  # of several types, each of which says what it wants
        place.pop()
        found = [one for one in found if [str(part) for part in one["loc"][1:-1]] == place]
    else:
        found = found[:1]
    allowed = " or ".join(dict.fromkeys(str(one["msg"]).removeprefix("Input should be ") for one in found))
    given = first.get("input")
    if first["type"] == "missing":
        given, allowed = "nothing", "a value; it is required"
    elif first["type"] == "extra_forbidden":
        allowed = "nothing; there is no such key"
    elif isinstance(given, str):
        given = json.dumps(given)  # what is text, and should be a number, must not look like one
    return problem_response(InvalidArgument(".".join(place), given, allowed))


def _failed(request: Request, error: Exception) -> Response:
    """Answer with an error that FastAPI itself raises, mostly a body that cannot be read."""
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return problem_response(InvalidArgument("body", "something that cannot be read", "an object, as JSON"), 400)
    return problem_response(ServiceError(error.status_code, str(error.detail)))


def _surprised(request: Request, error: Exception) -> Response:
    """Answer 500 for an unexpected error; `Watch` logs where it came from."""
    if request.scope["state"].get("page"):
        return refused_page(request, Refusal(bug()))
    return problem_response(bug())


# -- the document ------------------------------------------------------------------------------------------------------


def _document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document: FastAPI's, with scopes, errors and types of exported files added."""
    document = app.openapi()
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    problem = TypeAdapter(Problem).json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": "bdt_ID_SECRET"}}
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        operation["responses"].pop("422", None)
        operation["responses"] |= _problems(route)
        if route.status == 201:
            operation["responses"]["200"] = {**operation["responses"]["201"], "description": "It was there already"}
        if route.scope is not None:
            operation["security"] = [{"token": []}]
            operation["x-banditto-scope"] = route.scope
        if route.path.endswith("{kind}"):
            operation["responses"]["200"]["content"] = {
                "text/csv": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
                "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
                "text/html": {"schema": {"type": "string"}},
            }
        if route.path == "/metrics":
            operation["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    return document


def _problems(route: Route) -> dict[str, Any]:
    """Return the errors that a route may answer, by status, as OpenAPI describes responses."""
    said = {"400": "no JSON", "408": "too slow", "413": "too large", "422": "an argument that is not allowed"}
    said |= {"500": "a bug", "503": "the store does not answer"}
    if route.scope is not None:
        said |= {"401": "no token that is known", "403": "a token that is not enough", "429": "too many requests"}
    if "{name}" in route.path or route.path == "/v1/replicate":
        said |= {"404": "no such experiment", "409": "a conflict with what is there"}
    if route.path.endswith("{kind}"):
        said["501"] = "the service has no library for this format"
    content = {MEDIA_TYPE: {"schema": {"$ref": _PROBLEMS}}}
    return {status: {"description": words, "content": content} for status, words in sorted(said.items())}
