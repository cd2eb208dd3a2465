"""Planning in a browser: sliders with about what things cost at once, the exact plan on demand, and registering it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from banditto.core.errors import BandittoError, InvalidArgument
from banditto.core.exact import parsed_integer, real
from banditto.core.protocol import Protocol
from banditto.live.checked_words import checked_name
from banditto.live.registration import registered
from banditto.measure.lower_bounds import lower_bound
from banditto.measure.plan.price_table import ARMS, POWER, RHOS, Prices, prices
from banditto.measure.plan.trial_plan import CurvePoint
from banditto.measure.plan.yardsticks import LimitLine, ordinary_test
from banditto.policies.policy import Level
from banditto.problems.environments.bernoulli import Bernoulli
from banditto.service.lanes import Lanes
from banditto.service.pages.csv_tables import data_address, table
from banditto.service.pages.forms import form
from banditto.service.pages.pictures import Pictures, Wanted, draw_prices
from banditto.service.pages.price_curve import price_curve
from banditto.service.pages.rendering import HEADERS, page
from banditto.service.pages.sessions import check_form
from banditto.service.service_plans import planned
from banditto.service.side_process import SideProcess
from banditto.service.tokens import Token


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The planner's form, checked: arms, rates as shares, rho, visitors, and what two runs are to have in common.

    Args:
        arms: versions that are compared, 2 to 20.
        baseline: the rate of all but the best one.
        gap: by how much the best one is better.
        highest: a promise that no version has a higher rate; None promises nothing.
        rho: the largest probability that two runs differ.
        visitors: how many there are in all.
        same: "winner" or "sequence".
    """

    arms: int = 4
    baseline: float = 0.05
    gap: float = 0.01
    highest: float | None = 0.1
    rho: float = 0.3
    visitors: int = 200_000
    same: Level = "winner"

    def __post_init__(self) -> None:
        if not ARMS[0] <= self.arms <= ARMS[-1]:
            raise InvalidArgument("arms", self.arms, f"from {ARMS[0]} to {ARMS[-1]}")
        if not 0.0 < self.baseline < 1.0:
            raise InvalidArgument("baseline", _percent(self.baseline), "a rate above 0% and below 100%")
        if not 1e-5 <= self.gap <= 1.0 - self.baseline:
            allowed = f"from 0.001 to {100.0 * (1.0 - self.baseline):g} points, which the baseline leaves room for"
            raise InvalidArgument("gap", f"{100.0 * self.gap:g} points", allowed)
        if self.highest is not None and not self.baseline + self.gap <= self.highest + 1e-12 < 1.0 + 1e-12:
            allowed = f"nothing, or at least {_percent(self.baseline + self.gap)}, the best version's rate"
            raise InvalidArgument("highest", _percent(self.highest), allowed)
        if not RHOS[0] <= self.rho <= RHOS[-1]:
            raise InvalidArgument("rho", self.rho, f"from {RHOS[0]:g} to {RHOS[-1]:g}")
        if not 10 <= self.visitors <= 10**12:
            raise InvalidArgument("visitors", self.visitors, "from 10 to 1,000,000,000,000")
        if self.same not in ("winner", "sequence"):
            raise InvalidArgument("same", self.same, "winner or sequence")

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Wishes:
        """Parse the form's fields, in which rates are in percent; fields that are left out get defaults."""
        usual = cls()
        highest = fields.get("highest", "10").strip()
        same: Any = fields.get("same", usual.same)
        return cls(
            arms=parsed_integer(fields.get("arms", str(usual.arms)), "arms"),
            baseline=_share(fields.get("baseline", "5"), "baseline"),
            gap=_share(fields.get("gap", "1"), "gap"),
            highest=_share(highest, "highest") if highest else None,
            rho=real(fields.get("rho", str(usual.rho)), "rho"),
            visitors=parsed_integer(fields.get("visitors", str(usual.visitors)), "visitors"),
            same=same,
        )

    def fields(self) -> dict[str, str]:
        """Return the values as text for the form's fields."""
        return {
            "arms": str(self.arms),
            "baseline": f"{100.0 * self.baseline:.10g}",
            "gap": f"{100.0 * self.gap:.10g}",
            "highest": "" if self.highest is None else f"{100.0 * self.highest:.10g}",
            "rho": f"{self.rho:.10g}",
            "visitors": str(self.visitors),
            "same": self.same,
        }

    def question(self) -> dict[str, Any]:
        """Return these wishes as arguments of `plan`, which solves for the horizon."""
        # the baseline is for the rehearsals alone; what is proved needs no more than the promise of rates
        return {
            "arms": self.arms,
            "gap": self.gap,
            "rho": self.rho,
            "baseline": self.baseline,
            "rate_at_most": self.highest if self.highest is not None and self.highest < 1.0 else None,
            "same": self.same,
            "by": 1.0,  # all visitors may be needed until it is decided; what comes afterwards is not planned here
        }

    def command(self) -> str:
        """Return the command line that makes this plan."""
        rate = "" if self.highest is None else f" --rate-at-most {self.highest:g}"
        numbers = f"--arms {self.arms} --gap {self.gap:g} --baseline {self.baseline:g}{rate} --rho {self.rho:g}"
        return f"banditto plan {numbers} --by 1 --same {self.same} --save plan.toml"

    def python(self) -> str:
        """Return the Python code that makes this plan."""
        question = ", ".join(f"{key}={value!r}" for key, value in self.question().items() if value is not None)
        return f"import banditto as bd\n\nprint(bd.plan({question}).table())"


class PriceLine(NamedTuple):
    """A row of the table of prices: a way to run the experiment, its visitors, whether there are enough, a remark."""

    way: str
    visitors: str
    enough: str
    words: str


class PlanPage:
    """The page that says what an experiment would cost, and registers it."""

    def __init__(self, lanes: Lanes, plans: SideProcess, drawn: Pictures) -> None:
        self._lanes, self._plans, self._drawn = lanes, plans, drawn

    async def show(self, request: Request) -> Response:
        """Show the sliders, with about what it costs."""
        return self._page(request, dict(request.query_params))

    async def prices(self, request: Request) -> Response:
        """Show about what it costs: the part of the page that follows the sliders."""
        try:
            wishes = Wishes.of(request.query_params)
        except InvalidArgument as error:  # somebody types, and is not done yet
            return page(request, "unpriced.html", problem=str(error))
        if "csv" in request.query_params:
            return table(CurvePoint._fields[:3], [point[:3] for point in curve(wishes)], "prices")
        return page(request, "prices.html", **_priced(wishes))

    async def figure(self, request: Request) -> Response:
        """Return the figure of what a smaller rho costs, as an image."""
        wanted = Wanted.of(request.path_params["figure"], request.query_params.get("look", "light-wide"))
        wishes = Wishes.of(request.query_params)
        chosen = _chosen(wishes)
        return await self._drawn.answer(
            wanted, ("prices", wishes), draw_prices, curve(wishes), limits(wishes), CurvePoint(*chosen, 0.0)
        )

    async def solve(self, request: Request) -> Response:
        """Make the exact plan, by rehearsals."""
        fields = await form(request)
        check_form(request, fields)
        wishes = Wishes.of(fields)
        try:
            found = await self._plans.run(planned, wishes.question())
        except BandittoError as error:
            return self._page(request, fields, problem=str(error))
        return self._page(request, fields, found=found)

    def _page(
        self, request: Request, fields: Mapping[str, str], found: dict[str, Any] | None = None, problem: str = ""
    ) -> Response:
        """Fill in the page; fields that are not allowed are replaced by defaults, and the problem is shown."""
        token: Token = request.scope["state"]["token"]
        try:
            wishes = Wishes.of(fields)
        except InvalidArgument as error:
            wishes, problem = Wishes(), str(error)
        content: dict[str, Any] = {"fields": wishes.fields(), "problem": problem, "found": found, "arms_range": ARMS}
        content |= {"may_register": "admin" in token.scopes, "own_experiment": token.experiment}
        content |= {"protocol": "", "saved": ""}
        content |= {"command": wishes.command(), "python": wishes.python(), **_priced(wishes)}
        if found is not None:
            content["protocol"] = json.dumps(found["protocol"])
            content["saved"] = data_address("text/plain", Protocol.from_dict(found["protocol"]).to_toml().encode())
        return page(request, "plan.html", **content)

    async def register(self, request: Request) -> Response:
        """Register an experiment with the plan's protocol, and show it."""
        fields = await form(request)
        check_form(request, fields)
        name = checked_name(fields.get("name", "").strip())
        token: Token = request.scope["state"]["token"]
        token.check_experiment(name)
        try:
            content = json.loads(fields.get("protocol", ""))
        except ValueError:
            raise InvalidArgument("protocol", "something that is no JSON", "the protocol of a plan") from None
        if not isinstance(content, dict):
            raise InvalidArgument("protocol", "something else", "the protocol of a plan")
        names = [line.strip() for line in fields.get("arm_names", "").splitlines() if line.strip()]
        fallback = fields.get("fallback", "").strip() or None

        def act() -> None:
            registration = registered(Protocol.from_dict(content), names or None, None, fallback)
            self._lanes.create(name, registration)

        await self._lanes.job(act)
        return RedirectResponse(f"/experiments/{name}", 303, HEADERS)


# -- prices ------------------------------------------------------------------------------------------------------------


def _priced(wishes: Wishes) -> dict[str, Any]:
    """Return what the template shows of prices: a sentence, the table, and the curve."""
    found = prices(wishes.arms, wishes.gap, wishes.rho, wishes.highest)
    lines = _lines(wishes, found)
    needed = found.early_cut if wishes.same == "winner" else found.one_cut
    promise = "names the same winner" if wishes.same == "winner" else "gives every visitor number the same arm"
    chance = f"with a probability of at least {1.0 - wishes.rho:g}"
    if needed <= wishes.visitors:
        sentence = f"Yes: with at most about {_round(needed)} visitors, a second team {promise} {chance}."
        typical = found.early_cut_mean if wishes.same == "winner" else found.one_cut
        sentence += f" On average it takes {typical / _ordinary(wishes):.1f} times as many as an ordinary test."
    else:
        sentence = f"Not with {wishes.visitors:,} visitors: it takes up to about {_round(needed)}."
        sentence += f" {_instead(wishes)}"
    drawn = price_curve(curve(wishes), limits(wishes), (wishes.rho, _chosen(wishes)[2]))
    return {"sentence": sentence, "lines": lines, "query": wishes.fields(), "power": POWER, "curve": drawn}


def _lines(wishes: Wishes, found: Prices) -> list[PriceLine]:
    """Return the table's rows: two ways to run the experiment, an ordinary test, and the lower bound."""

    def enough(pulls: float) -> str:
        return "yes" if pulls <= wishes.visitors else "no"

    usual = _ordinary(wishes)
    least = _least(wishes)
    return [
        PriceLine(
            "the same winner (early-cut)",
            f"about {_round(found.early_cut_mean)} on average, at most {_round(found.early_cut)}",
            enough(found.early_cut),
            "stops as soon as the data allow",
        ),
        PriceLine(
            "the same sequence (one-cut)",
            f"about {_round(found.one_cut)}",
            enough(found.one_cut),
            "every visitor number gets the same arm in both runs",
        ),
        PriceLine("an ordinary test", _round(usual), enough(usual), "a second team may conclude otherwise"),
        PriceLine("the theoretical minimum", _round(least), "", "proved, for policies that repeat every pull"),
    ]


def _instead(wishes: Wishes) -> str:
    """Say for which larger rho, or which wider gap, the visitors would be enough."""
    quantity = "early_cut" if wishes.same == "winner" else "one_cut"

    def takes(rho: float, gap: float) -> float:
        return float(getattr(prices(wishes.arms, gap, rho, wishes.highest), quantity))

    rho = next((rho for rho in _finely(wishes.rho, RHOS[-1]) if takes(rho, wishes.gap) <= wishes.visitors), None)
    widest = 1.0 - wishes.baseline if wishes.highest is None else wishes.highest - wishes.baseline
    gap = next((gap for gap in _finely(wishes.gap, widest) if takes(wishes.rho, gap) <= wishes.visitors), None)
    offers = [] if rho is None else [f"with a rho of about {rho:.2g}"]
    offers += [] if gap is None else [f"for a difference of about {100.0 * gap:.2g} points"]
    return f"They are enough {' or '.join(offers)}." if offers else "No slider of this page makes them enough."


def _finely(low: float, high: float) -> list[float]:
    """Return numbers from one to another in steps of 3%."""
    found = [low]
    while found[-1] * 1.03 <= high:
        found.append(found[-1] * 1.03)
    return found


def curve(wishes: Wishes) -> list[CurvePoint]:
    """Return the visitors that each way to run the experiment takes, for every rho of the price table."""
    found = [(rho, prices(wishes.arms, wishes.gap, rho, wishes.highest)) for rho in RHOS]
    return [
        *(CurvePoint("early-cut: the same winner, at most", rho, round(one.early_cut), 0.0) for rho, one in found),
        *(CurvePoint("early-cut, on average", rho, round(one.early_cut_mean), 0.0) for rho, one in found),
        *(CurvePoint("one-cut: the same sequence", rho, round(one.one_cut), 0.0) for rho, one in found),
    ]


def limits(wishes: Wishes) -> list[LimitLine]:
    """Return the lines beside the curves: the lower bound, an ordinary test, and the visitors there are."""
    return [
        LimitLine("no replicable policy with less", RHOS, tuple(_least(wishes, rho) for rho in RHOS)),
        LimitLine("an ordinary test", RHOS, (_ordinary(wishes),) * len(RHOS)),
        LimitLine("your visitors", RHOS, (float(wishes.visitors),) * len(RHOS)),
    ]


def _chosen(wishes: Wishes) -> tuple[str, float, int]:
    found = prices(wishes.arms, wishes.gap, wishes.rho, wishes.highest)
    return "this plan", wishes.rho, round(found.early_cut if wishes.same == "winner" else found.one_cut)


def _ordinary(wishes: Wishes) -> float:
    instance = Bernoulli([wishes.baseline] * (wishes.arms - 1) + [wishes.baseline + wishes.gap])
    usual = ordinary_test(instance, wishes.gap, POWER)
    assert usual is not None, "there are means"
    return float(usual.total)


def _least(wishes: Wishes, rho: float | None = None) -> float:
    """Return the visitors that no policy which repeats every pull can do without, at this rho."""
    rate = None if wishes.highest is None or wishes.highest >= 0.5 else wishes.highest
    bound = lower_bound(
        arms=wishes.arms,
        gap=min(wishes.gap, 0.9),
        rho=wishes.rho if rho is None else rho,
        power=POWER,
        rewards="bounded",
        kind="adaptive",
        rate_at_most=rate,
    )
    return float(bound.total)


def _round(pulls: float) -> str:
    """Return a number of visitors as text, rounded to three digits."""
    return f"{float(f'{pulls:.3g}'):,.0f}"


def _share(text: str, argument: str) -> float:
    """Parse percent, or percentage points, into a share."""
    return float(f"{real(text.strip().removesuffix('%'), argument) / 100.0:.12g}")


def _percent(share: float) -> str:
    return f"{100.0 * share:g}%"
