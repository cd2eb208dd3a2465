"""What a service tells those who watch it: a line of JSON for each request, and numbers for Prometheus.

Neither has rewards, units, tickets, bodies, queries or secrets in it. A token is known by its id.
"""

from __future__ import annotations

import logging
import os
import time
import traceback
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banditto.core.errors import ServiceError
from banditto.live.step_reports import StepReport
from banditto.service.plain_json import problem_response
from banditto.service.tokens import Token

logger = logging.getLogger("banditto.service")
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where the processes of one service count together
_LINES = 1000  # of numbers that are looked up once
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Counts:
    """Counts requests and steps, for Prometheus; all worker processes of a service count together."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        made: Any = {"registry": self._registry}
        self.requests = Counter("banditto_requests", "Requests.", ("method", "route", "status"), **made)
        self.request_seconds = Histogram(
            "banditto_request_seconds", "Seconds from a request to its answer.", ("route",), buckets=_SECONDS, **made
        )
        self.steps = Counter("banditto_steps", "Steps.", ("experiment", "step", "outcome"), **made)
        self.tickets = Counter("banditto_tickets", "Tickets that steps changed.", ("experiment", "step"), **made)
        self.waited = Counter("banditto_store_wait_seconds", "Seconds that steps waited for the store.", **made)
        self.step_seconds = Histogram(
            "banditto_step_seconds", "Seconds that a step took.", ("step",), buckets=_SECONDS, **made
        )

        self._step_lines, self._request_lines = lru_cache(_LINES)(self._of_step), lru_cache(_LINES)(self._of_request)

    def on_step(self, report: StepReport) -> None:
        """Count a step."""
        steps, tickets, seconds = self._step_lines(report.experiment, report.step, report.outcome)
        steps.inc()
        tickets.inc(report.tickets)
        seconds.observe(report.seconds)
        self.waited.inc(report.waited)

    def on_request(self, method: str, route: str, status: int, took: float) -> None:
        """Count a request."""
        requests, seconds = self._request_lines(method, route, status)
        requests.inc()
        seconds.observe(took)

    def _of_step(self, experiment: str, step: str, outcome: str) -> tuple[Counter, Counter, Histogram]:
        """Return Prometheus' counters for a kind of step; the lookup costs more than counting, so it is cached."""
        return (
            self.steps.labels(experiment, step, outcome),
            self.tickets.labels(experiment, step),
            self.step_seconds.labels(step),
        )

    def _of_request(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self.requests.labels(method, route, str(status)), self.request_seconds.labels(route)

    def answer(self) -> Response:
        """Return a response with all counts in Prometheus' text format."""
        registry = self._registry
        if os.environ.get(_SHARED):
            registry = CollectorRegistry()
            collector: Any = MultiProcessCollector
            collector(registry)
        return Response(generate_latest(registry), media_type=METRICS_TYPE)


class Watch:
    """ASGI application that logs and counts every request, and answers 500 for unexpected errors."""

    def __init__(self, inner: ASGIApp, counts: Counts) -> None:
        self._inner, self._counts = inner, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note what became of it."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        noted: dict[str, Any] = scope.setdefault("state", {})
        status, begun = 0, time.perf_counter()

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._inner(scope, receive, seen)
        except Exception as error:  # which ends here: its words may hold what a caller sent, and would be logged
            noted["trace"] = _places(error)
            if not status:
                await problem_response(bug())(scope, receive, seen)
        finally:
            self._note(scope, noted, status, time.perf_counter() - begun)

    def _note(self, scope: Scope, noted: dict[str, Any], status: int, seconds: float) -> None:
        """Count a request, and log it with its status, seconds, token id and experiment."""
        route, method = str(noted.get("route", "none")), str(scope["method"])
        method = method if method in ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH") else "other"
        self._counts.on_request(method, route, status, seconds)
        level = logging.ERROR if status >= 500 else logging.INFO
        if not logger.isEnabledFor(level):
            return
        token = noted.get("token")
        more: dict[str, object] = {
            "method": method,
            "route": route,
            "status": status,
            "seconds": round(seconds, 6),
            "token": token.id if isinstance(token, Token) else None,
            "experiment": None if status == 404 else noted.get("experiment"),  # what is no name may be anything
        }
        if status in (401, 429):
            more["client"] = str((scope.get("client") or ("unknown",))[0])
        if "trace" in noted:
            more["trace"] = noted["trace"]
        logger.log(level, f"{method} {route} {status}", extra={"banditto": more})


def bug() -> ServiceError:
    """Return the error that tells a caller of an unexpected failure."""
    return ServiceError(500, "this is a bug in banditto; the service's log says where")


def _places(error: BaseException) -> list[str]:
    """Return where an error came from: its kind, files and lines, without its message, which may hold callers' data."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames] + [type(error).__name__]
