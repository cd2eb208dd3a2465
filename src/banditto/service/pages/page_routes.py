"""What a browser can be shown: `PAGES` lists all pages and their parts, with the scope that each needs.

Every number comes from the library; nothing is decided or computed here. A page that changes nothing is a GET; what
changes something is a form with a key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from banditto.core.errors import BandittoError, InvalidArgument, NotAllowed, ServiceError
from banditto.live.analyse import analyse
from banditto.live.answers import ExperimentStatus
from banditto.live.event_log import Event
from banditto.live.experiment import Experiment
from banditto.live.folded_log import Decision
from banditto.live.verify import verify
from banditto.measure.analysis.analysis import ARM_HEADER, DIFFERENCE_HEADER, METRIC_HEADER
from banditto.service.gate import Gate, NeededScope
from banditto.service.lanes import Lanes
from banditto.service.pages import pictures
from banditto.service.pages.again import Again, can_run_again, run_again
from banditto.service.pages.compare_page import LARGEST_UPLOAD, ComparePage
from banditto.service.pages.csv_tables import table
from banditto.service.pages.experiment_view import ExperimentView, decisions_of, means_seen, played, utc_now, view_of
from banditto.service.pages.following import Followers
from banditto.service.pages.forms import form
from banditto.service.pages.glances import SORTS, Sort, arranged, glance
from banditto.service.pages.pictures import Pictures, Wanted
from banditto.service.pages.plan_page import PlanPage
from banditto.service.pages.refused import refused_page
from banditto.service.pages.rendering import HEADERS, page, static_file
from banditto.service.pages.sessions import check_form, check_origin, inner_path, sign_in, sign_out
from banditto.service.refusals import Refusal
from banditto.service.routes import ExportKind, exported, file_response
from banditto.service.side_process import SideProcess
from banditto.service.tokens import Token

Handler = Callable[[Request], Awaitable[Response]]
_FILES: tuple[ExportKind, ...] = ("csv", "json", "parquet", "html")
_LISTED = 100  # experiments on one page
_TRAIL = 20  # events of a page
_MOST_BOUNDS = 20  # of metrics, in one question
_MOST_REPEATS = 50  # results of simulations that are kept


class LookedAt(NamedTuple):
    """One experiment, read at one moment: its status, its decisions, and the open experiment itself."""

    trial: Experiment
    status: ExperimentStatus
    events: list[Event]  # of decisions
    decisions: list[Decision]

    @property
    def last(self) -> str:
        """The hash of the last decision; empty before the first."""
        return self.events[-1].hash if self.events else ""

    def view(self) -> ExperimentView:
        """Return what the experiment's page shows."""
        return view_of(self.trial.registration, self.status, self.decisions, self.last, utc_now())


class Pages:
    """Answers browsers; every method is a page or a part of one."""

    def __init__(self, lanes: Lanes, plans: SideProcess, job_seconds: float) -> None:
        self._lanes = lanes
        self._pictures = Pictures()
        self._repeats = SideProcess(job_seconds, "a simulation")
        self._known_repeats: OrderedDict[tuple[object, ...], Again] = OrderedDict()
        self._followers = Followers(self._head)
        self.gate: Gate | None = None  # it knows all tokens, and is made around the application
        self.planning = PlanPage(lanes, plans, self._pictures)
        self.comparing = ComparePage(lanes, self._pictures)

    def close(self) -> None:
        """End the processes, and stop following."""
        self._pictures.close()
        self._repeats.close()
        self._followers.close()

    # -- signing in ----------------------------------------------------------------------------------------------------

    async def sign_in_page(self, request: Request) -> Response:
        """Ask for a token."""
        query = request.query_params
        return page(request, "sign_in.html", next=inner_path(query.get("next", "/")), why=query.get("why", "")[:200])

    async def sign_in(self, request: Request) -> Response:
        """Take a token, and let the browser keep it."""
        check_origin(request)
        fields = await form(request)
        text, path = fields.get("token", "").strip(), inner_path(fields.get("next", "/"))
        assert self.gate is not None
        try:
            token = await self.gate.admitted(request.scope, text)
            token.check_scope("read")
        except NotAllowed as error:
            why = str(error) if text.startswith("bdt_") else "that is no token; one begins with bdt_"
            return page(request, "sign_in.html", error.status, next=path, why=why)
        if path == "/" and token.experiment is not None:
            path = f"/experiments/{token.experiment}"
        answer = RedirectResponse(path, 303, HEADERS)
        sign_in(answer, request, text)
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Let the browser forget the token."""
        check_form(request, await form(request))
        answer = RedirectResponse("/sign-in", 303, HEADERS)
        sign_out(answer, request)
        return answer

    async def static(self, request: Request) -> Response:
        """Send a style or a script."""
        found = static_file(request.path_params["file"])
        if found is None:
            raise ServiceError(404, "there is no such file")
        return found

    # -- experiments ---------------------------------------------------------------------------------------------------

    async def experiments(self, request: Request) -> Response:
        """List the experiments that the token may see."""
        mine = token_of(request).experiment
        words, sort = request.query_params.get("search", "")[:100], _sort(request.query_params.get("sort"))

        def look(store: Any) -> list[Any]:
            return list(store.read(lambda view: [glance(view, name) for name in view.names() if mine in (None, name)]))

        found = arranged(await self._lanes.look(look), words, sort)
        if request.url.path.endswith(".csv"):
            header = ("experiment", "state", "registered", "rewards", "most", "waits for", "winner")
            return table(header, [tuple(one) for one in found], "experiments")
        return page(
            request, "experiments.html", found=found[:_LISTED], total=len(found), words=words, sort=sort, sorts=SORTS
        )

    async def experiment(self, request: Request) -> Response:
        """Show where an experiment stands."""
        seen = await self._seen(request)
        return page(request, "experiment.html", **await self._content(request, seen))

    async def standing(self, request: Request) -> Response:
        """Show the first part of an experiment's page that changes while rewards come: who leads, and by how much."""
        seen = await self._seen(request)
        return page(request, "standing.html", **await self._content(request, seen))

    async def details(self, request: Request) -> Response:
        """Show the second part that changes: open tickets, and the audit trail."""
        seen = await self._seen(request)
        return page(request, "details.html", **await self._content(request, seen))

    async def _content(self, request: Request, seen: LookedAt) -> dict[str, Any]:
        """Return what the template of an experiment's page needs, by name."""
        name, status, analysis = seen.trial.name, seen.status, seen.status.analysis
        pending = await self._lanes.see(name, lambda trial: trial.pending(None, 5))
        return {
            "name": name,
            "view": seen.view(),
            "status": status,
            "analysis": analysis,
            "arm_header": ARM_HEADER,
            "difference_header": DIFFERENCE_HEADER,
            "pending": pending,
            "trail": await self._trail(seen, status.events),
            "older": max(0, status.events - _TRAIL),
            "can_repeat": can_run_again(seen.trial.registration),
            "files": _FILES,
            "guardrails": request.query_params.get("guardrails", "")[:1000],
            "address": str(request.base_url).rstrip("/"),
        }

    async def events(self, request: Request) -> Response:
        """Show a page of the audit trail, the newest events first."""
        seen = await self._seen(request)
        last = _number(request.query_params.get("last"), seen.status.events)
        trail = await self._trail(seen, last)
        return page(
            request, "events.html", name=seen.trial.name, trail=trail, last=last, of=seen.status.events, step=_TRAIL
        )

    async def _trail(self, seen: LookedAt, last: int) -> list[Event]:
        """Return a page of the log up to event number `last`, the newest event first."""

        def look(store: Any) -> list[Event]:
            def read(view: Any) -> list[Event]:
                found: list[Event] = view.events_after(view.known(seen.trial.name)["id"], max(0, last - _TRAIL), _TRAIL)
                return [event for event in found if event.number <= last]

            return list(store.read(read))

        return (await self._lanes.look(look))[::-1]

    async def live(self, request: Request) -> Response:
        """Tell a page when its experiment has changed, for as long as somebody looks."""
        name = (await self._lanes.see(request.path_params["name"], lambda trial: trial)).name
        request.scope["state"]["endless"] = True  # so that it is ended when the service is
        lines = self._followers.lines(name, request.query_params.get("head", ""))
        headers = {**HEADERS, "X-Accel-Buffering": "no"}  # nginx passes each line on as it comes
        return StreamingResponse(lines, 200, headers, "text/event-stream")

    async def _head(self, name: str) -> str:
        found: str = await self._lanes.look(lambda store: store.read(lambda view: view.known(name)["head"]))
        return found

    async def checks(self, request: Request) -> Response:
        """Show whether arms were handed out as planned, which rewards are lost, and what metrics say."""
        seen = await self._seen(request)
        if not seen.decisions:
            return page(request, "checks.html", found=None, metric_header=METRIC_HEADER)
        bounds = [bound.strip() for bound in request.query_params.get("guardrails", "").split(",") if bound.strip()]
        found = await self._lanes.job(lambda: analyse(seen.trial, guardrails=bounds[:_MOST_BOUNDS] or None))
        return page(request, "checks.html", found=found, metric_header=METRIC_HEADER)

    async def verified(self, request: Request) -> Response:
        """Replay the log, and show whether everything in it follows."""
        name = (await self._seen(request)).trial.name
        found = await self._lanes.job(lambda: verify(self._lanes.url, name))
        return page(request, "verified.html", found=found)

    async def again(self, request: Request) -> Response:
        """Simulate pairs of runs on what was estimated so far, and show how often they agree."""
        seen = await self._seen(request)
        again = None if seen.status.analysis is None else await self._repeated(seen)
        return page(request, "again.html", found=again, name=seen.trial.name, view=seen.view(), decision=seen.last)

    async def _repeated(self, seen: LookedAt) -> Again:
        """Simulate a second run on the current estimates, or return the known result for the same estimates."""
        registration, analysis = seen.trial.registration, seen.status.analysis
        if analysis is None or not can_run_again(registration):
            raise InvalidArgument("experiment", seen.trial.name, "one with a decision, whose arms have no features")
        span, low = 1.0, 0.0
        if registration.scales:
            span, low = registration.rewards.high - registration.rewards.low, registration.rewards.low
        worst = min(arm.estimate for arm in analysis.arms if arm.estimate is not None)
        estimates = [worst if arm.estimate is None else arm.estimate for arm in analysis.arms]
        means = tuple(float(f"{(mean - low) / span:.6g}") for mean in estimates)
        key = (registration.digest, means)
        if key not in self._known_repeats:
            self._known_repeats[key] = await self._repeats.run(run_again, registration.to_json(), means)
            while len(self._known_repeats) > _MOST_REPEATS:
                self._known_repeats.popitem(last=False)
        return self._known_repeats[key]

    # -- what a page shows, as files -----------------------------------------------------------------------------------

    async def figure(self, request: Request) -> Response:
        """Draw a picture of an experiment's page."""
        wanted = Wanted.of(request.path_params["figure"], request.query_params.get("look", "light-wide"))
        seen = await self._seen(request)
        trial, analysis = seen.trial, seen.status.analysis
        key = (trial.name, trial.registration.digest, seen.last)
        if wanted.figure == "arms":
            batches = played(trial.registration, seen.status, seen.decisions)
            names = trial.registration.arm_names
            return await self._pictures.answer(wanted, (*key, seen.status.state), pictures.draw_play, names, batches)
        if wanted.figure == "forest" and analysis is not None:
            return await self._pictures.answer(wanted, (*key, seen.status.state), pictures.draw_forest, analysis)
        if wanted.figure == "means" and seen.decisions:
            means = await self._lanes.job(lambda: means_seen(trial.registration, seen.decisions, analysis))
            of = ([means.side], means.cuts, means.percent)
            return await self._pictures.answer(wanted, key, pictures.draw_means, *of)
        if wanted.figure == "ribbons" and analysis is not None:
            found = await self._repeated(seen)
            of_pair = (found.pair, "a simulated pair of runs", found.means, trial.registration.arm_names)
            return await self._pictures.answer(wanted, (*key, found.means), pictures.draw_ribbons, *of_pair)
        raise ServiceError(404, "there is no such picture, or not yet")

    async def tables(self, request: Request) -> Response:
        """Send a table of an experiment's page as CSV."""
        seen = await self._seen(request)
        analysis, what = seen.status.analysis, request.path_params["table"]
        if what == "batches":
            header = ("batch", "pulls of each arm", "rewards", "of", "arms", "then")
            return table(header, seen.view().batches, f"{seen.trial.name}-batches")
        if what == "estimates" and analysis is not None:
            frame = analysis.records()
            columns = list(frame[0])
            return table(columns, [list(row.values()) for row in frame], f"{seen.trial.name}-estimates")
        raise ServiceError(404, "there is no such table, or not yet")

    async def files(self, request: Request) -> Response:
        """Send an export."""
        kind = request.path_params["kind"]
        if kind not in _FILES:
            raise InvalidArgument("kind", kind, ", ".join(_FILES))
        name = (await self._lanes.see(request.path_params["name"], lambda trial: trial)).name
        file = await self._lanes.job(lambda: exported(self._lanes.url, name, kind))
        return file_response(file, name, kind)

    # -- inside --------------------------------------------------------------------------------------------------------

    async def _seen(self, request: Request) -> LookedAt:
        """Read the experiment that the request's path names."""
        trial, status = await self._lanes.see(request.path_params["name"], lambda trial: (trial, trial.status()))

        def decided(store: Any) -> list[Event]:
            return list(store.read(lambda view: view.decisions(view.known(trial.name)["id"])))

        events = await self._lanes.look(decided)
        return LookedAt(trial, status, events, decisions_of(events))


def shown(act: Handler) -> Handler:
    """Wrap a handler so that its errors are answered as pages."""

    async def answered(request: Request) -> Response:
        try:
            return await act(request)
        except Refusal as refusal:
            return refused_page(request, refusal)
        except BandittoError as error:
            return refused_page(request, Refusal(error))

    return answered


def token_of(request: Request) -> Token:
    """Return the token with which the gate let this request in."""
    found: Token = request.scope["state"]["token"]
    return found


def _sort(given: str | None) -> Sort:
    return next((sort for sort in SORTS if sort == given), "newest")


def _number(given: str | None, most: int) -> int:
    """Return a number from a query; `most` if it is missing, no number, or larger."""
    return min(int(given), most) if given is not None and given.isdecimal() and len(given) < 19 else most


class Page(NamedTuple):
    """How a page is called, the scope that its token needs, and what shows it."""

    method: str
    path: str
    scope: NeededScope
    act: Callable[[Pages], Handler]
    largest_body: int | None = None  # bytes; None: as many as everywhere


_ONE = "/experiments/{name}"
PAGES: tuple[Page, ...] = (
    Page("GET", "/", "read", lambda pages: pages.experiments),
    Page("GET", "/experiments.csv", "read", lambda pages: pages.experiments),
    Page("GET", "/sign-in", None, lambda pages: pages.sign_in_page),
    Page("POST", "/sign-in", None, lambda pages: pages.sign_in),
    Page("POST", "/sign-out", "any", lambda pages: pages.sign_out),
    Page("GET", "/static/{file}", None, lambda pages: pages.static),
    Page("GET", _ONE, "read", lambda pages: pages.experiment),
    Page("GET", f"{_ONE}/standing", "read", lambda pages: pages.standing),
    Page("GET", f"{_ONE}/details", "read", lambda pages: pages.details),
    Page("GET", f"{_ONE}/live", "read", lambda pages: pages.live),
    Page("GET", f"{_ONE}/events", "read", lambda pages: pages.events),
    Page("GET", f"{_ONE}/checks", "read", lambda pages: pages.checks),
    Page("GET", f"{_ONE}/verified", "read", lambda pages: pages.verified),
    Page("GET", f"{_ONE}/again", "read", lambda pages: pages.again),
    Page("GET", f"{_ONE}/figures/{{figure}}", "read", lambda pages: pages.figure),
    Page("GET", f"{_ONE}/tables/{{table}}.csv", "read", lambda pages: pages.tables),
    Page("GET", f"{_ONE}/files/{{kind}}", "read", lambda pages: pages.files),
    Page("GET", "/plan", "read", lambda pages: pages.planning.show),
    Page("GET", "/plan/prices", "read", lambda pages: pages.planning.prices),
    Page("GET", "/plan/figures/{figure}", "read", lambda pages: pages.planning.figure),
    Page("POST", "/plan", "read", lambda pages: pages.planning.solve),
    Page("POST", "/plan/register", "admin", lambda pages: pages.planning.register),
    Page("GET", "/compare", "read", lambda pages: pages.comparing.show),
    Page("POST", "/compare", "read", lambda pages: pages.comparing.compare_files, LARGEST_UPLOAD),
)
