"""Pages without a browser: who may see them, what they say, and that nothing told by others breaks them."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import banditto as bd
from banditto.core.protocol import Protocol
from banditto.live.answers import ExperimentStatus
from banditto.live.experiment import Experiment
from banditto.live.folded_log import Decision
from banditto.live.registration import registered
from banditto.live.store import Store
from banditto.service import tokens
from banditto.service.pages.experiment_view import outcome
from banditto.service.pages.glances import Glance, arranged
from banditto.service.pages.page_routes import PAGES, Page
from banditto.service.pages.plan_page import Wishes
from banditto.service.pages.sessions import COOKIE, inner_path
from banditto.service.pages.standing_words import first_sentence, projected
from banditto.service.rate_limits import RateLimits
from banditto.service.tokens import SCOPES
from tests.live.worlds import small
from tests.service.services import bearer, new_token, service_in_thread

GUARDED = [page for page in PAGES if page.scope is not None]
STRANGE = '<script>alert("x")</script>\'"& שלום'  # right to left at its end; marks that turn text are refused
LONG = "x" * 60


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with two runs of one protocol that part, one without a decision, and one with strange names."""
    made = f"sqlite:///{tmp_path_factory.mktemp('pages')}/trial.db"
    protocol = bd.ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
    for name, wins in (("here", 5.0), ("there", 0.0), ("again", 4.0)):
        with Experiment.create(made, name, registered(protocol, ["red", "blue"])) as trial:
            trial.tell_totals(1, {"red": (6, 1.0), "blue": (6, wins)})
    Experiment.create(made, "fresh", small(arm_names=["A", "B"], fallback="A")).close()
    with Experiment.create(made, "strange", registered(protocol, [STRANGE, LONG])) as trial:
        ticket = trial.ask(1, unit=STRANGE * 6)[0]
        trial.missing(ticket.id, STRANGE * 6, by="=1+1")  # more than 200 letters
        for ticket in trial.ask(12):
            trial.tell(ticket.id, float(ticket.arm), {"x" * 100: 1.5})
    return made


@pytest.fixture(autouse=True)
def _no_limit_for_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RateLimits, "wait", lambda self, caller: 0.0)


@pytest.fixture(scope="module")
def address(url: str) -> Iterator[str]:
    with service_in_thread(url, token_memory=0.0, rate=1e6) as made:
        yield made


def browser(address: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=address, cookies={COOKIE: token}, timeout=60)


@pytest.fixture
def admin(address: str, url: str) -> Iterator[httpx.Client]:
    with browser(address, new_token(url)) as made:
        yield made


def path_of(page: Page, name: str = "here") -> str:
    places = {"name": name, "figure": "arms.svg", "table": "batches", "kind": "csv", "file": "pages.css"}
    return re.sub(r"\{(\w+)\}", lambda found: places[found[1]], page.path)


def called(client: httpx.Client, page: Page, name: str = "here") -> httpx.Response:
    if page.path.endswith("/live"):  # which has no end
        with client.stream(page.method, path_of(page, name)) as answer:
            return httpx.Response(answer.status_code, headers=answer.headers)
    return client.request(page.method, path_of(page, name))


def names(page: Page) -> str:
    return f"{page.method} {page.path}"


# -- who may look ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", GUARDED, ids=names)
def test_strangers_are_asked_to_sign_in(address: str, url: str, page: Page) -> None:
    good, revoked = new_token(url), new_token(url)
    with Store(url) as store:
        tokens.revoke_token(store, revoked.split("_")[1])
    for bad in ("", "bdt_", good[:-1] + ("B" if good[-1] == "A" else "A"), f"bdt_000000000000_{'A' * 43}", revoked):
        with browser(address, bad) as client:
            answer = called(client, page)
        assert answer.status_code == (303 if page.method == "GET" else 401), bad
        if page.method == "GET":
            assert answer.headers["location"].startswith("/sign-in?next=%2F"), bad
    with httpx.Client(base_url=address, headers=bearer(good), timeout=60) as client:  # pages take no header
        assert called(client, page).status_code in (303, 401)


@pytest.mark.parametrize("page", GUARDED, ids=names)
def test_a_token_is_for_its_scopes_and_its_experiment(address: str, url: str, page: Page) -> None:
    for scope in SCOPES:
        with browser(address, new_token(url, scope)) as client:
            answer = called(client, page)
        fits = scope in (page.scope, "admin") or page.scope == "any"
        if page.method == "POST":  # which has no key of the form
            assert answer.status_code in (403, 422)
            assert fits == ("this needs" not in answer.text)
        else:
            assert answer.status_code == 200 if fits else answer.status_code == 403, (scope, answer.text[:300])
    if "{name}" in page.path:
        with browser(address, new_token(url, "admin", experiment="there")) as client:
            assert called(client, page, "here").status_code == 403
            assert called(client, page, "nobody").status_code == 403
            assert called(client, page, "there").status_code == 200


def test_the_api_takes_no_cookie(address: str, url: str) -> None:
    with browser(address, new_token(url)) as client:
        assert client.get("/v1/experiments").status_code == 401
        assert client.post("/v1/experiments/fresh/ask", json={}).status_code == 401


def test_pages_keep_to_the_tokens_experiment(address: str, url: str) -> None:
    with browser(address, new_token(url, "read", experiment="there")) as client:
        assert ">there</a>" in client.get("/").text
        assert ">here</a>" not in client.get("/").text
        assert "here" not in client.get("/experiments.csv").text.replace("there", "")
        assert client.get("/compare", params={"first": "there", "second": "here"}).status_code == 403
        assert 'value="here"' not in client.get("/compare").text


def test_signing_in_and_out(address: str, url: str) -> None:
    token = new_token(url, "read")
    with httpx.Client(base_url=address, timeout=60) as client:
        asked = client.get("/experiments/here?x=1")
        assert asked.headers["location"] == "/sign-in?next=%2Fexperiments%2Fhere%3Fx%3D1"
        assert client.post("/sign-in", data={"token": "hello"}).status_code == 401
        refused = client.post("/sign-in", data={"token": f"{token[:-1]}_"})
        assert refused.status_code == 401
        assert COOKIE not in client.cookies
        assert token[:-1] not in refused.text
        let_in = client.post("/sign-in", data={"token": f" {token}\n", "next": "/experiments/here?x=1"})
        assert (let_in.status_code, let_in.headers["location"]) == (303, "/experiments/here?x=1")
        cookie = let_in.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Secure" not in cookie  # this is HTTP; over HTTPS see test_tls_and_proxy.py
        shown = client.get("/experiments/here").text
        key = re.search(r'name="form_key" value="([0-9a-f]{64})"', shown)
        assert key is not None
        assert token not in shown
        assert client.post("/sign-out", data={"form_key": "0" * 64}).status_code == 403
        out = client.post("/sign-out", data={"form_key": key[1]})
        assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
        assert client.get("/").status_code == 303
    asks = new_token(url, "ask")
    assert httpx.post(f"{address}/sign-in", data={"token": asks}, timeout=60).status_code == 403


def test_a_form_of_another_site_is_refused(admin: httpx.Client) -> None:
    for path in ("/sign-in", "/sign-out", "/plan", "/plan/register", "/compare"):
        answer = admin.post(path, headers={"Origin": "https://evil.example"}, data={"token": "x"})
        assert answer.status_code in (403, 422), path
        assert "another site" in answer.text or path == "/compare"
    assert admin.post("/plan/register", data={"form_key": "", "name": "mine", "protocol": "{}"}).status_code == 403


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("/plan", "/plan"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\\b", "/"),
        ("/a\nb", "/"),
        ("", "/"),
    ],
)
def test_signing_in_leads_nowhere_else(given: str, taken: str) -> None:
    assert inner_path(given) == taken


@pytest.mark.parametrize("page", [page for page in PAGES if page.method == "GET"], ids=names)
def test_headers_of_every_page(admin: httpx.Client, page: Page) -> None:
    headers = called(admin, page).headers
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers.get("content-security-policy", "")
    if not page.path.endswith("/files/{kind}"):  # a file to be saved
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy


# -- what they say -----------------------------------------------------------------------------------------------------


def test_the_list(admin: httpx.Client) -> None:
    text = admin.get("/").text
    assert all(f'href="/experiments/{name}"' in text for name in ("here", "there", "fresh", "strange"))
    assert "visitors: 40 tickets" in text or "visitors: 12 tickets" in text
    found = admin.get("/", params={"search": "THE running"}).text
    assert ">there</a>" in found
    assert ">here</a>" not in found
    assert "No experiment has “zzz”" in admin.get("/", params={"search": "zzz"}).text
    rows = list(csv.reader(io.StringIO(admin.get("/experiments.csv", params={"sort": "name"}).text)))
    assert [row[0] for row in rows] == ["experiment", "again", "fresh", "here", "strange", "there"]


def test_lists_in_every_order() -> None:
    lines = [
        Glance("b", "finished", "2026-01-02", 5, 10, "", ""),
        Glance("A", "running", "2026-01-01", 1, 10, "", ""),
        Glance("c", "unreadable", "2026-01-03", 0, 0, "", ""),
    ]
    order = {"newest": "cbA", "name": "Abc", "state": "Abc", "progress": "bAc"}
    for sort, wanted in order.items():
        chosen: Any = sort
        assert "".join(one.name for one in arranged(lines, "", chosen)) == wanted


def test_the_first_sentence_and_what_follows(admin: httpx.Client) -> None:
    text = admin.get("/experiments/here").text
    said = re.search(r'class="headline"[^>]*>([^<]*)<', text)
    assert said is not None
    assert said[1] == (
        "blue won by its lead, and may still be no better: +67 points against red; the data fit anything from -17 to "
        "+99."
    )
    assert "after 6 visitors per arm." in text
    assert "blue alone from here on" in text
    assert "with a probability of at least" in text
    assert "banditto analyse here" in text
    assert "client.open(&#34;here&#34;)" in text
    fresh = admin.get("/experiments/fresh").text
    assert "It waits for its first result; the first decision needs 12 of them." in fresh
    assert "figures/forest" not in fresh


def status(**more: Any) -> ExperimentStatus:
    values: dict[str, Any] = {"name": "cta", "state": "running", "digest": "", "head": "", "events": 1, "batch": 1}
    values |= {"horizon": 1000, "spent": 0, "plan": {"A": 50, "B": 50}, "told": {"A": 30, "B": 20}, "issued": 60}
    values |= {"tickets": {"open": 10, "told": 50, "missing": 0, "late": 0}, "registered": "2026-01-01T00:00:00+00:00"}
    return ExperimentStatus(**(values | more))


def test_when_it_may_be_finished() -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    said = projected(status(), begun + timedelta(hours=10))  # 5 rewards an hour
    assert said == (
        "At the pace so far (120 results a day) this batch is complete at 20:00 UTC, and everything on 2026-01-09 at "
        "the latest."
    )
    assert projected(status(), begun + timedelta(seconds=30)) == ""
    assert projected(status(told={"A": 1, "B": 0}), begun + timedelta(days=1)) == ""
    assert projected(status(told={"A": 5, "B": 5}, horizon=10**15), begun + timedelta(days=1)) == ""
    last = projected(status(horizon=100), begun + timedelta(hours=10))
    assert last == "At the pace so far (120 results a day) it is finished at 20:00 UTC."


def test_sentences_before_anything_is_decided() -> None:
    assert (
        first_sentence(status(), []) == "Nothing is decided yet: 50 of the 100 results for the first decision are in."
    )
    assert first_sentence(status(state="stopped"), []) == "It was stopped before anything was decided."


def test_parts_that_come_later(admin: httpx.Client) -> None:
    assert "Results came in as totals" in admin.get("/experiments/here/checks").text
    strange = admin.get("/experiments/strange/checks").text
    assert "slots were handed out as planned" in strange
    assert "x" * 100 in strange
    crossed = admin.get("/experiments/strange/checks", params={"guardrails": "x" * 100 + "<=1"}).text
    assert "crossed" in crossed
    assert admin.get("/experiments/strange/checks", params={"guardrails": "x ~ 1"}).status_code == 422
    assert 'value="seconds&lt;=3"' in admin.get("/experiments/strange", params={"guardrails": "seconds<=3"}).text
    assert "nothing to check" in admin.get("/experiments/fresh/checks").text
    assert "The log verifies: all 4 entries follow" in admin.get("/experiments/here/verified").text
    again = admin.get("/experiments/here/again").text
    assert re.search(r"<strong>\d+\.\d%</strong> of 2,048 simulated pairs", again)
    assert "no estimates to simulate with" in admin.get("/experiments/fresh/again").text


def test_pictures_and_tables(admin: httpx.Client) -> None:
    for figure in ("arms", "forest", "means", "ribbons"):
        for look in ("light-wide", "dark-narrow"):
            answer = admin.get(f"/experiments/here/figures/{figure}.svg", params={"look": look})
            assert answer.headers["content-type"] == "image/svg+xml"
            assert answer.text.startswith("<?xml")
            assert "<script" not in answer.text
        assert admin.get(f"/experiments/here/figures/{figure}.png").content.startswith(b"\x89PNG")
    for path in ("forest.gif", "forest", "nothing.svg", "forest.svg?look=blue"):
        assert admin.get(f"/experiments/here/figures/{path}").status_code in (404, 422)
    assert admin.get("/experiments/fresh/figures/forest.svg").status_code == 404
    batches = list(csv.reader(io.StringIO(admin.get("/experiments/here/tables/batches.csv").text)))
    assert batches[1] == ["1", "6", "12", "12", "red, blue", "blue alone from here on"]
    estimates = list(csv.DictReader(io.StringIO(admin.get("/experiments/here/tables/estimates.csv").text)))
    assert [row["arm"] for row in estimates] == ["red", "blue", "blue"]
    assert admin.get("/experiments/here/tables/nothing.csv").status_code == 404
    assert admin.get("/experiments/here/files/json").json()["name"] == "here"
    assert admin.get("/experiments/here/files/exe").status_code == 422


def test_words_of_others_show_as_text(admin: httpx.Client) -> None:
    for path in ("", "/standing", "/details", "/checks", "/events", "/again"):
        text = admin.get(f"/experiments/strange{path}").text
        assert "<script>alert" not in text, path
    assert "&lt;script&gt;alert" in admin.get("/experiments/strange").text
    assert LONG in admin.get("/experiments/strange").text
    assert admin.get("/experiments/%3Cscript%3E").status_code == 404
    assert "<script>" not in admin.get("/experiments/%3Cscript%3E").text
    assert "<script>alert" not in admin.get("/", params={"search": "<script>alert(1)</script>"}).text
    assert "<script>alert" not in admin.get("/sign-in", params={"why": "<script>alert(1)</script>"}).text
    cells = [
        cell
        for row in csv.reader(io.StringIO(admin.get("/experiments/strange/tables/estimates.csv").text))
        for cell in row
    ]
    assert not any(cell.startswith(("=", "@", "+")) for cell in cells)
    for figure in ("arms", "forest", "means"):
        drawn = admin.get(f"/experiments/strange/figures/{figure}.svg").text
        assert "<script" not in drawn


def test_the_trail(admin: httpx.Client) -> None:
    text = admin.get("/experiments/strange/events", params={"last": "2"}).text
    assert re.findall(r'<th scope="row">(\d+)</th>', text) == ["2", "1"]
    assert "Newer events" in text
    assert admin.get("/experiments/strange/events", params={"last": "x" * 30}).status_code == 200


def test_a_page_follows_its_log(admin: httpx.Client, url: str) -> None:
    with Experiment.open(url, "fresh") as trial:
        head = trial.status().head
        with admin.stream("GET", f"/experiments/fresh/live?head={head}") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "retry: 2000"
            trial.ask(1)
            told = next(line for line in lines if line.startswith("data: "))
        assert told == f"data: {trial.status().head}"
        with admin.stream("GET", f"/experiments/fresh/live?head={head}") as answer:  # what was missed comes at once
            assert next(line for line in answer.iter_lines() if line.startswith("data: ")) == told


# -- comparing ---------------------------------------------------------------------------------------------------------


def test_two_runs_of_the_store(admin: httpx.Client) -> None:
    same = admin.get("/compare", params={"first": "here", "second": "again"}).text
    assert "The same: both runs took the same decision." in same
    apart = admin.get("/compare", params={"first": "here", "second": "there"}).text
    assert "They disagree after batch 1" in apart
    assert "data:image/svg+xml;base64," in apart
    assert "data:text/csv;base64," in apart
    other = admin.get("/compare", params={"first": "here", "second": "fresh"})
    assert (other.status_code, "two protocols" in other.text) == (409, True)
    assert admin.get("/compare", params={"first": "here", "second": "nobody"}).status_code == 404


def test_two_logs_that_were_exported(admin: httpx.Client) -> None:
    shown = admin.get("/compare").text
    found = re.search(r'name="form_key" value="([0-9a-f]{64})"', shown)
    assert found is not None
    key = {"form_key": found[1]}
    logs = {name: admin.get(f"/experiments/{name}/files/json").content for name in ("here", "there")}

    def compared(first: bytes, second: bytes, fields: dict[str, str] = key) -> httpx.Response:
        files = {"first": ("a.json", first), "second": ("b.json", second)}
        return admin.post("/compare", data=fields, files=files)

    assert "They disagree after batch 1" in compared(logs["here"], logs["there"]).text
    assert "The same" in compared(logs["here"], logs["here"]).text
    assert compared(logs["here"], logs["there"], {}).status_code == 403
    forged = json.loads(logs["there"])
    forged["events"][2]["content"]["sums"] = ["6", "0"]
    bad = compared(logs["here"], json.dumps(forged).encode())
    assert bad.status_code in (409, 422)
    assert compared(b"hello", b"\xff").status_code == 422
    assert "/tmp" not in compared(b"hello", b"\xff").text
    assert admin.post("/compare", data=key).status_code == 422


# -- planning ----------------------------------------------------------------------------------------------------------


def test_the_teams_question_has_an_answer_at_once(admin: httpx.Client) -> None:
    text = admin.get("/plan").text
    assert re.search(
        r'class="headline"[^>]*>Yes: with at most about [\d,]+ visitors, a second team names the same', text
    )
    few = admin.get("/plan", params={"visitors": "20000"}).text
    assert "Not with 20,000 visitors: it takes up to about" in few
    assert "They are enough with a rho of about" in few or "They are enough for a difference of about" in few
    part = admin.get("/plan/prices", params={"rho": "0.1", "same": "sequence"}).text
    assert "an ordinary test" in part
    assert "<html" not in part
    rows = list(csv.DictReader(io.StringIO(admin.get("/plan/prices", params={"csv": "1"}).text)))
    assert {row["rho"] for row in rows} >= {"0.1", "0.3"}
    assert admin.get("/plan/figures/prices.svg", params={"look": "dark-narrow"}).text.startswith("<?xml")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"arms": "1"}, "arms: got 1, allowed: from 2 to 20"),
        ({"arms": "many"}, "arms: got many, allowed: an integer"),
        ({"baseline": "0"}, "baseline: got 0%, allowed: a rate above 0% and below 100%"),
        ({"gap": "99"}, "gap: got 99 points, allowed: from 0.001 to 95 points"),
        ({"highest": "5.5"}, "highest: got 5.5%, allowed: nothing, or at least 6%"),
        ({"rho": "0.9"}, "rho: got 0.9, allowed: from 0.01 to 0.5"),
        ({"visitors": "-5"}, "visitors: got -5, allowed: from 10"),
        ({"same": "both"}, "same: got both, allowed: winner or sequence"),
    ],
)
def test_bad_numbers_are_one_line(admin: httpx.Client, fields: dict[str, str], said: str) -> None:
    assert said in admin.get("/plan", params=fields).text
    part = admin.get("/plan/prices", params=fields).text
    assert said in part
    assert "<html" not in part


def test_commands_of_a_plan_say_the_same() -> None:
    wishes = Wishes(arms=3, baseline=0.2, gap=0.1, highest=None, rho=0.25, same="sequence")
    assert wishes.command() == (
        "banditto plan --arms 3 --gap 0.1 --baseline 0.2 --rho 0.25 --by 1 --same sequence --save plan.toml"
    )
    assert "bd.plan(arms=3, gap=0.1, rho=0.25, baseline=0.2, same='sequence', by=1.0)" in wishes.python()


def test_a_plan_is_made_and_registered(admin: httpx.Client, url: str) -> None:
    shown = admin.get("/plan").text
    found = re.search(r'name="form_key" value="([0-9a-f]{64})"', shown)
    assert found is not None
    key = {"form_key": found[1]}
    wishes = {
        "arms": "2",
        "baseline": "30",
        "gap": "40",
        "highest": "",
        "rho": "0.4",
        "same": "winner",
        "visitors": "9999",
    }
    made = admin.post("/plan", data=key | wishes)
    assert made.status_code == 200
    protocol = re.search(r'name="protocol" value="([^"]+)"', made.text)
    assert protocol is not None
    saved = re.search(r'href="data:text/plain;base64,([^"]+)" download="plan.toml"', made.text)
    assert saved is not None
    assert Protocol.from_toml(base64.b64decode(saved[1]).decode()).to_dict() == json.loads(_plain(protocol[1]))
    fields = {"name": "planned", "arm_names": "old\n<new>\n", "fallback": "old", "protocol": _plain(protocol[1])}
    done = admin.post("/plan/register", data=key | fields)
    assert (done.status_code, done.headers.get("location")) == (303, "/experiments/planned"), done.text
    with Experiment.open(url, "planned") as trial:
        assert trial.registration.arm_names == ("old", "<new>")
        assert trial.registration.protocol.policy == "early-cut"
        assert trial.registration.protocol.seed != 0
    assert "&lt;new&gt;" in admin.get("/experiments/planned").text
    for wrong in ({"name": "../x"}, {"name": "other", "protocol": "no"}, {"name": "other", "protocol": "[]"}):
        assert admin.post("/plan/register", data=key | fields | wrong).status_code == 422
    assert admin.post("/plan/register", data=key | fields | {"arm_names": "one"}).status_code == 422
    refused = admin.post("/plan", data=key | wishes | {"gap": "0.002", "rho": "0.01"})
    assert refused.status_code == 200


def _plain(text: str) -> str:
    return (
        text.replace("&#34;", '"').replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    )


def test_sentences_of_a_winner_and_of_a_tie(tmp_path: Path) -> None:
    protocol = bd.OneCut(arms=3, horizon=6000, rho=0.3, gap=0.2).protocol(seed=1)

    def said(name: str, rates: dict[str, float]) -> str:
        url = f"sqlite:///{tmp_path}/{name}.db"
        with bd.Experiment.create(url, name, registered(protocol, list(rates))) as trial:
            first = trial.status()
            trial.tell_totals(1, {name: (n, round(rates[name] * n)) for name, n in first.plan.items()})
            return first_sentence(trial.status(), [])

    won = said("won", {"A": 0.2, "B": 0.9, "C": 0.5})
    assert won.startswith("B won: +40")
    assert "against C (the next best); the data fit anything from +" in won
    assert said("tie", {"A": 0.5, "B": 0.5, "C": 0.5}).startswith(("Too early to tell: ", "No arm led by enough"))


def test_a_winner_that_a_coin_named_is_not_called_one() -> None:
    last = Decision(
        batch=3,
        event=9,
        time="2026-01-01T00:00:00+00:00",
        counts=(5, 5),
        totals=(2.0, 2.0),
        next_pulls=(0, 0),
        winner=1,
    )
    assert outcome(["A", "B"], last, "coin") == "no clear lead; B by the shared rule"
    assert outcome(["A", "B"], last, "lead") == "winner: B"
