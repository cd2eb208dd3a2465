"""Pages in a real browser: an experiment from its plan to its winner, in both themes and at both widths."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

import banditto as bd
from banditto.live.experiment import Experiment
from banditto.live.registration import registered
from tests.service.browsers import NARROW, WIDE, Visitor, chromium
from tests.service.services import bearer, new_token, service_in_thread

pytestmark = pytest.mark.slow
NAMES = ['<script>alert("x")</script>', "שלום " + "x" * 50, "plain", "quotes \"' & =1+1"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with experiments of all kinds: decided and not, that part, with strange names, stopped."""
    made = f"sqlite:///{tmp_path_factory.mktemp('browser')}/trial.db"
    protocol = bd.ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
    for name, wins in (("here", 5.0), ("there", 0.0)):
        with Experiment.create(made, name, registered(protocol, ["red", "blue"])) as trial:
            trial.tell_totals(1, {"red": (6, 1.0), "blue": (6, wins)})
    four = bd.OneCut(arms=4, horizon=4000, rho=0.5, gap=0.5)
    with Experiment.create(made, "strange", registered(four.protocol(seed=2), NAMES)) as trial:
        chance = random.Random(3)
        ticket = trial.ask(1)[0]
        trial.missing(ticket.id, NAMES[0] * 4, by=NAMES[1])
        while trial.status().winner is None and trial.status().state == "running":
            tickets = trial.ask(100)
            trial.tell_many((one.id, float(chance.random() < 0.2 + 0.2 * one.arm), {"seconds": 1.0}) for one in tickets)
    with Experiment.create(made, "stopped", registered(protocol, ["red", "blue"])) as trial:
        trial.ask(3)
        trial.stop(NAMES[0])
    return made


@pytest.fixture(scope="module")
def address(url: str) -> Iterator[str]:
    with service_in_thread(url) as made:
        yield made


def visitor(browser: Any, address: str, width: int = WIDE, theme: Literal["light", "dark"] = "light") -> Visitor:
    return Visitor(browser, address, width, theme)


def test_from_a_plan_to_the_winner(browser: Any, address: str, url: str) -> None:
    """Plan it, register it, feed it through the API, watch it change without a reload, read who won and by how much."""
    one, token = visitor(browser, address), new_token(url)
    one.sign_in(token)
    page = one.page
    page.get_by_role("link", name="Plan", exact=True).click()
    for field, value in {"Versions": "2", "Baseline": "30", "Smallest lift": "50", "Highest": ""}.items():
        page.get_by_role("textbox", name=field).fill(value)
    page.get_by_text("Yes: with at most about").wait_for()
    page.get_by_role("button", name="Make the exact plan").click()
    page.get_by_role("heading", name="The plan", exact=True).wait_for()
    one.check()
    page.get_by_label("Name of the experiment").fill("button")
    page.get_by_label("Names of the 2 versions").fill("old\nnew")
    page.get_by_role("button", name="Register it").click()
    page.wait_for_url(f"{address}/experiments/button")
    page.get_by_text("It waits for its first result").wait_for()
    one.check()
    page.evaluate("window.mark = 'the same page'")
    state = "running"
    client = httpx.Client(base_url=f"{address}/v1/experiments", headers=bearer(token), timeout=60)
    with client:
        first = True
        while state == "running":
            tickets = client.post("/button/ask", json={"n": 200}).json()["tickets"]
            # old never pays and new always does: whatever seed the form drew, new wins
            rewards = [{"ticket": ticket["id"], "reward": float(ticket["arm"])} for ticket in tickets]
            if first:
                client.post("/button/tell", json={"rewards": rewards[:1]})
                page.get_by_text("Nothing is decided yet: 1 of the").wait_for()
                rewards, first = rewards[1:], False
            client.post("/button/tell", json={"rewards": rewards})
            state = client.get("/button").json()["state"]
        headline = client.get("/button").json()["headline"]
    page.get_by_text(re.compile(r"^new won.*: \+100 points against old; the data fit anything from")).wait_for()
    assert page.evaluate("window.mark") == "the same page"
    assert headline.startswith("new won: ")
    page.get_by_text("The experiment is finished.").wait_for()
    page.get_by_text("slots were handed out as planned").wait_for()
    page.get_by_role("link", name="Replay the log").click()
    page.get_by_text("The log verifies").wait_for()
    page.get_by_role("link", name="Simulate 2,048 pairs of runs").click()
    page.get_by_text("simulated pairs of runs").wait_for()
    one.check()
    one.close()


def test_two_runs_that_part(browser: Any, address: str, url: str, tmp_path: Path) -> None:
    one, token = visitor(browser, address), new_token(url, "read")
    one.sign_in(token, "/compare")
    page = one.page
    page.get_by_label("First run").fill("here")
    page.get_by_label("Second run").fill("there")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("They disagree after batch 1").wait_for()
    one.check()
    for name in ("here", "there"):
        log = httpx.get(f"{address}/v1/experiments/{name}/export/json", headers=bearer(token), timeout=60).content
        (tmp_path / f"{name}.json").write_bytes(log)
    page.get_by_label("First log").set_input_files(tmp_path / "here.json")
    page.get_by_label("Second log").set_input_files(tmp_path / "here.json")
    page.get_by_role("button", name="Compare the files").click()
    page.get_by_text("The same: both runs took the same decision.").wait_for()
    one.check()
    with page.expect_download() as saved:
        page.goto(f"{address}/compare?first=here&second=there")
        page.get_by_role("link", name="CSV").click()
    assert Path(saved.value.path()).read_text().startswith('arm,"mean, here"')
    one.close()


PATHS: tuple[str, ...] = (
    "/",
    "/experiments/strange",
    "/experiments/here",
    "/experiments/stopped",
    "/experiments/strange/events",
)
PATHS += ("/plan", "/compare?first=here&second=there", "/experiments/nobody", "/sign-in")
LOOKS = [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")]


@pytest.mark.parametrize(
    ("width", "theme"), [LOOKS[3], *(pytest.param(*look, marks=pytest.mark.long) for look in LOOKS[:3])]
)
def test_every_page_in_every_look(browser: Any, address: str, url: str, width: int, theme: Any) -> None:
    """Names with scripts, quotes and text that runs to the left are among them."""
    one = visitor(browser, address, width, theme)
    one.sign_in(new_token(url))
    for path in PATHS:
        one.open(path)
        if path == "/experiments/nobody":
            one.problems.clear()  # the console notes the status 404
        if path == "/experiments/strange":
            one.page.get_by_text("slots were handed out as planned").wait_for()
            assert one.page.get_by_text(NAMES[0]).count() > 0
        one.check()
    one.close()


@pytest.mark.long
def test_everything_can_be_reached_with_the_keyboard(browser: Any, address: str, url: str) -> None:
    one = visitor(browser, address)
    one.sign_in(new_token(url), "/experiments/here")
    reached = []
    for _ in range(60):
        one.page.keyboard.press("Tab")
        reached.append(str(one.page.evaluate("document.activeElement.textContent.trim()")))
    for wanted in ("Skip to the content", "Experiments", "Plan", "Compare", "Sign out", "Replay the log", "CSV"):
        assert wanted in reached, reached
    one.close()


@pytest.mark.long
def test_sliders_move_prices_and_the_curve(browser: Any, address: str, url: str) -> None:
    one = visitor(browser, address)
    one.sign_in(new_token(url), "/plan")
    page = one.page
    before = page.locator("#prices .headline").inner_text()
    curve = page.locator(".curve .policy-0").first.get_attribute("d")
    ring = page.locator(".curve .ring").first.get_attribute("cx")
    page.get_by_label("Rho: two runs may differ with this probability, slider").evaluate(
        "(one) => { one.value = 0.3; one.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    one.until(f"document.querySelector('#prices .headline').textContent !== {json.dumps(before)}")
    assert page.locator(".curve .ring").first.get_attribute("cx") != ring
    assert page.locator(".curve .policy-0").first.get_attribute("d") == curve  # the curve is that of every rho
    assert page.get_by_role("textbox", name="Rho").input_value() == "0.032"
    page.get_by_role("textbox", name="Visitors").fill("none")
    page.get_by_text("visitors: got none").wait_for()
    one.check()
    one.close()
