"""What the service can be asked: each route hands a request to the library, and its answer back. Nothing decides here.

`ROUTES` is the list of all of them, with the scope that each needs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Annotated, Any, Literal, NamedTuple

from fastapi import Header, Query
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from banditto.core.errors import InvalidArgument, LogError
from banditto.live.analyse import analyse
from banditto.live.answers import AnswerContent, StatusContent
from banditto.live.checked_words import checked_name
from banditto.live.experiment import Experiment
from banditto.live.export import export, read_log
from banditto.live.replicate import ReplicationContent, replicate
from banditto.live.told_rewards import Telling
from banditto.live.verify import VerificationContent, verify
from banditto.measure.analysis.analysis import AnalysisContent
from banditto.service import bodies, replies
from banditto.service.calls import MOST_REWARDS
from banditto.service.lanes import Lanes
from banditto.service.monitoring import Counts
from banditto.service.plain_json import json_response
from banditto.service.service_plans import planned
from banditto.service.side_process import SideProcess
from banditto.service.tokens import Scope, Token

ExportKind = Literal["csv", "json", "parquet", "html"]
_TYPES: dict[ExportKind, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html; charset=utf-8",
}
_PART = 2**16  # bytes of an export that are sent at a time
IdempotencyKey = Annotated[
    str | None,
    Header(
        description="A name for this call, such as a random UUID: the same key gets the same tickets, however often it "
        "is sent. Not needed with a unit, which is its own key."
    ),
]
After = Annotated[int, Query(description="the number of the last event that you have; 0: from the first", ge=0)]
EventLimit = Annotated[int, Query(description="at most so many events", ge=1, le=bodies.MOST_EVENTS)]
TicketLimit = Annotated[int, Query(description="at most so many tickets", ge=1, le=bodies.MOST_PENDING)]
OlderThan = Annotated[float | None, Query(description="seconds that a ticket must have waited", ge=0, le=1e9)]


class Routes:
    """Answers requests; every method is a route."""

    def __init__(self, lanes: Lanes, plans: SideProcess, counts: Counts) -> None:
        self._lanes, self._plans, self._counts = lanes, plans, counts

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def register(self, name: str, body: bodies.RegisterBody) -> Response:
        """Register an experiment: from now on its protocol cannot change. The same again changes nothing."""

        def act() -> tuple[Any, bool]:
            registration = body.registration()
            return registration, self._lanes.create(checked_name(name), registration)

        registration, created = await self._lanes.job(act)
        content: replies.RegistrationReply = {
            "name": name,
            "digest": registration.digest,
            "registration": json.loads(registration.to_json()),
            "created": created,
        }
        return json_response(content, 201 if created else 200)

    async def ask(self, name: str, body: bodies.AskBody, idempotency_key: IdempotencyKey = None) -> Response:
        """Get tickets: which arm to give next, and the id under which to tell its reward."""
        key = body.request_id
        if key is None:
            key = None if body.unit is not None else idempotency_key
        elif idempotency_key not in (None, key):
            raise InvalidArgument("request_id", key, "the same as Idempotency-Key, or one of them alone")
        answer = await self._lanes.step(name, lambda trial: trial.ask(body.n, key, unit=body.unit))
        return json_response(answer.to_dict())

    async def tell(self, name: str, body: bodies.TellBody) -> Response:
        """Tell rewards, all of them or none. The same again changes nothing; another value is a conflict."""
        tellings: list[Telling] = [
            (one.ticket, one.reward)
            if one.metrics is None and one.arm is None  # as most are, which is checked faster
            else (one.ticket, one.reward, one.metrics, one.arm)
            for one in body.rewards
        ]
        if len(tellings) > MOST_REWARDS:
            raise InvalidArgument("rewards", f"{len(tellings):,} of them", f"at most {MOST_REWARDS:,} at once")
        told = await self._lanes.step(name, lambda trial: trial.tell_many(tellings))
        return json_response({"told": told})

    async def totals(self, name: str, body: bodies.TotalsBody) -> Response:
        """Tell a whole batch at once, for teams that add up elsewhere."""
        sums = {arm: (one.count, one.total) for arm, one in body.totals.items()}
        told = await self._lanes.step(name, lambda trial: trial.tell_totals(body.batch, sums))
        return json_response({"told": [told]})

    async def missing(self, name: str, body: bodies.MissingBody) -> Response:
        """Say that rewards will not come: their slots are handed out again."""
        changed = await self._lanes.step(name, lambda trial: trial.missing_many(body.tickets, body.reason, by=body.by))
        return json_response({"changed": changed})

    async def missing_older(self, name: str, body: bodies.MissingOlderBody) -> Response:
        """Say of all tickets that have waited so long that their rewards will not come."""
        given_up = await self._lanes.step(
            name, lambda trial: trial.missing_older(body.older_than, body.reason, by=body.by)
        )
        return json_response({"given_up": given_up})

    async def correct(self, name: str, body: bodies.CorrectBody) -> Response:
        """Replace a reward that was wrong, until its batch is decided."""
        changed = await self._lanes.step(name, lambda trial: trial.correct(body.ticket, body.reward, body.reason))
        return json_response({"changed": [changed]})

    async def stop(self, name: str, body: bodies.StopBody) -> Response:
        """End an experiment before its horizon; rewards of tickets that are out are still recorded."""
        changed = await self._lanes.step(name, lambda trial: trial.stop(body.reason))
        return json_response({"changed": [changed]})

    # -- looking -------------------------------------------------------------------------------------------------------

    async def names(self, request: Request) -> Response:
        """List the experiments that the token may see, the oldest first."""
        mine = _token(request).experiment
        found = await self._lanes.look(lambda store: store.read(lambda view: view.names()))
        return json_response({"experiments": [name for name in found if mine in (None, name)]})

    async def status(self, name: str) -> Response:
        """Look up where an experiment stands: its batch, what was handed out and told, who leads."""
        return json_response(await self._lanes.see(name, lambda trial: trial.status().to_dict()))

    async def registration(self, name: str) -> Response:
        """Look up what an experiment was registered with."""
        found = await self._lanes.see(name, lambda trial: trial.registration)
        content: replies.RegistrationReply = {
            "name": name,
            "digest": found.digest,
            "registration": json.loads(found.to_json()),
            "created": False,
        }
        return json_response(content)

    async def card(self, name: str) -> Response:
        """Look up what a caller must know to ask and tell: the names of the arms, and what a reward may be."""
        found = await self._lanes.see(name, lambda trial: trial.registration)
        ends = found.rewards
        content: replies.CardReply = {
            "name": name,
            "digest": found.digest,
            "arm_names": list(found.arm_names),
            "rewards": [ends.low, ends.high] if ends.bounded else [],
            "bare_tickets": found.first_version,
        }
        return json_response(content)

    async def pending(self, name: str, older_than: OlderThan = None, limit: TicketLimit = 1000) -> Response:
        """List tickets without a reward, the oldest first."""
        found = await self._lanes.see(name, lambda trial: trial.pending(older_than, limit))
        return json_response({"tickets": [ticket.to_dict() for ticket in found], "total": found.total})

    async def events(self, name: str, after: After = 0, limit: EventLimit = 1000) -> Response:
        """Read the log, page by page."""
        known = await self._lanes.see(name, lambda trial: trial.name)

        def look(store: Any) -> tuple[list[Any], int]:
            def seen(view: Any) -> tuple[list[Any], int]:
                row = view.known(known)
                return view.events_after(row["id"], min(after, 2**62), limit), row["events"]

            found: tuple[list[Any], int] = store.read(seen)
            return found

        found, last = await self._lanes.look(look)
        more = bool(found) and found[-1].number < last
        content = {"events": [event._asdict() for event in found], "next": found[-1].number if more else None}
        return json_response(content)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    async def analyse(self, name: str, body: bodies.AnalyseBody) -> Response:
        """Say who won, what each arm pays, and by how much the winner is better, with intervals that hold at once."""
        trial = await self._known(name)
        ranges = {metric: _ends(metric, ends) for metric, ends in (body.metric_ranges or {}).items()}
        found = await self._lanes.job(
            lambda: analyse(
                trial,
                float(body.confidence),
                binary=body.binary,
                metric_ranges=ranges or None,
                guardrails=body.guardrails,
            ).to_dict()
        )
        return json_response(found)

    async def verify(self, name: str, body: bodies.VerifyBody) -> Response:
        """Replay the log from the protocol alone, and say whether everything in it follows."""
        await self._known(name)
        return json_response(await self._lanes.job(lambda: verify(self._lanes.url, name, body.expect).to_dict()))

    async def replicate(self, request: Request, body: bodies.ReplicateBody) -> Response:
        """Compare two experiments of one protocol: the same decisions, or the first that differs, explained."""
        for name in (body.first, body.second):
            _token(request).check_experiment(checked_name(name))
            await self._known(name)
        addresses = [f"{self._lanes.url}#{name}" for name in (body.first, body.second)]
        found = await self._lanes.job(lambda: replicate(*addresses).to_dict())
        return json_response({**found, "runs": [body.first, body.second]})  # without the address of the store

    async def export(self, name: str, kind: ExportKind) -> Response:
        """Get tickets (csv, parquet), the log (json) or an audit report (html) of a log that verifies."""
        await self._known(name)
        file = await self._lanes.job(lambda: exported(self._lanes.url, name, kind))
        return file_response(file, name, kind)

    async def plan(self, body: bodies.PlanBody) -> Response:
        """Solve for the one of gap, rho and horizon that is left out, and say what the experiment will cost."""
        return json_response(await self._plans.run(planned, body.model_dump()))

    # -- the service itself --------------------------------------------------------------------------------------------

    async def healthz(self) -> Response:
        """Say that the process answers."""
        return json_response({"state": "up"})

    async def readyz(self) -> Response:
        """Say that the store answers, too."""
        await self._lanes.look(lambda store: store.read(lambda view: view.token("")))
        return json_response({"state": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Get numbers for Prometheus: requests, steps, seconds; needs a token for all experiments."""
        _token(request).check_experiment("")  # its lines name every experiment
        return self._counts.answer()

    # -- inside --------------------------------------------------------------------------------------------------------

    async def _known(self, name: str) -> Experiment:
        """Find an experiment, or refuse a name that nobody has."""
        return await self._lanes.see(name, lambda trial: trial)


def exported(url: str, name: str, kind: ExportKind) -> IO[bytes]:
    """Write an export into a temporary file and return it, rewound; it is deleted when it is closed."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed when it was sent)
    try:
        if kind == "html":
            from banditto.report.audit import audit_page

            log = read_log(url, name)
            if log.verification.problem is not None:
                raise LogError(log.verification.problem, log.verification.event)
            file.write(audit_page(log).encode())
        else:
            export(url, name, kind, file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def file_response(file: IO[bytes], name: str, kind: ExportKind) -> Response:
    """Return a response that streams an export, and closes its file afterwards."""
    ending = f'attachment; filename="{name}.{kind}"'
    headers = {"Content-Disposition": ending, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if kind == "html":  # a report has no business with anything but itself
        headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
    return StreamingResponse(
        _parts(file), media_type=_TYPES[kind], headers=headers, background=BackgroundTask(file.close)
    )


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    while part := file.read(_PART):
        yield part


def _token(request: Request) -> Token:
    """Return the token with which the gate let this request in."""
    found: Token = request.scope["state"]["token"]
    return found


def _ends(metric: str, ends: list[bodies.Number]) -> tuple[float, float]:
    if len(ends) != 2:
        raise InvalidArgument("metric_ranges", f"{len(ends)} numbers for {metric}", "two for each metric")
    return float(ends[0]), float(ends[1])


class Route(NamedTuple):
    """How a route is called, the scope that it needs ("any": a token; None: nothing), and what it answers."""

    method: str
    path: str
    scope: Scope | Literal["any"] | None
    act: Callable[..., Any]  # of `Routes`
    reply: Any
    status: int = 200


_ONE = "/v1/experiments/{name}"
ASK_PATH, TELL_PATH = f"{_ONE}/ask", f"{_ONE}/tell"
ROUTES: tuple[Route, ...] = (
    Route("GET", "/v1/experiments", "read", Routes.names, replies.NamesReply),
    Route("PUT", _ONE, "admin", Routes.register, replies.RegistrationReply, 201),
    Route("GET", _ONE, "read", Routes.status, StatusContent),
    Route("GET", f"{_ONE}/registration", "read", Routes.registration, replies.RegistrationReply),
    Route("GET", f"{_ONE}/card", "any", Routes.card, replies.CardReply),
    Route("POST", ASK_PATH, "ask", Routes.ask, AnswerContent),
    Route("POST", TELL_PATH, "tell", Routes.tell, replies.ToldReply),
    Route("POST", f"{_ONE}/totals", "tell", Routes.totals, replies.ToldReply),
    Route("POST", f"{_ONE}/missing", "tell", Routes.missing, replies.ChangedReply),
    Route("POST", f"{_ONE}/missing-older", "tell", Routes.missing_older, replies.GivenUpReply),
    Route("POST", f"{_ONE}/correct", "tell", Routes.correct, replies.ChangedReply),
    Route("POST", f"{_ONE}/stop", "admin", Routes.stop, replies.ChangedReply),
    Route("GET", f"{_ONE}/pending", "read", Routes.pending, replies.PendingReply),
    Route("GET", f"{_ONE}/events", "read", Routes.events, replies.EventsReply),
    Route("POST", f"{_ONE}/analyse", "read", Routes.analyse, AnalysisContent),
    Route("POST", f"{_ONE}/verify", "read", Routes.verify, VerificationContent),
    Route("GET", f"{_ONE}/export/{{kind}}", "read", Routes.export, None),
    Route("POST", "/v1/replicate", "read", Routes.replicate, ReplicationContent),
    Route("POST", "/v1/plan", "read", Routes.plan, replies.PlanReply),
    Route("GET", "/metrics", "read", Routes.metrics, None),
    Route("GET", "/healthz", None, Routes.healthz, replies.HealthReply),
    Route("GET", "/readyz", None, Routes.readyz, replies.HealthReply),
)
