"""The clients: the methods of `Experiment`, its errors, and requests that may be sent again."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import httpx
import pandas as pd
import pytest

import banditto as bd
from banditto.core.errors import ConflictError, InvalidArgument, NotAllowed, ServiceError
from banditto.live.async_experiment import AsyncExperiment
from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from banditto.service.async_client import AsyncClient, AsyncRemoteExperiment
from banditto.service.calls import names_call
from banditto.service.client import Client, RemoteExperiment
from banditto.service.problem_json import error_of, problem_of
from banditto.service.sending import read_answer
from tests.live.worlds import finish, hashed_reward, place, registration_of, simulated_arms, small, small_policy
from tests.service.services import bearer, new_token


@pytest.fixture
def client(service: str, admin: str) -> Iterator[Client]:
    with Client(service, admin) as made:
        yield made


def test_they_have_the_methods_of_an_experiment_with_the_same_arguments() -> None:
    left_out = {"create", "close", "open", "observations"}
    for name, method in inspect.getmembers(Experiment, inspect.isfunction):
        if name.startswith("_") or name in left_out:
            continue
        mine, awaited = getattr(RemoteExperiment, name), getattr(AsyncRemoteExperiment, name)
        assert inspect.signature(mine) == inspect.signature(method), name
        assert inspect.iscoroutinefunction(awaited), name
        assert inspect.signature(awaited) == inspect.signature(getattr(AsyncExperiment, name)), name
    for name, method in inspect.getmembers(RemoteExperiment, inspect.isfunction):
        if not name.startswith("_"):
            awaited = getattr(AsyncRemoteExperiment, name)
            assert inspect.signature(awaited).parameters == inspect.signature(method).parameters, name
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(getattr(AsyncClient, name)).parameters == inspect.signature(method).parameters


def test_a_whole_experiment_with_everything_around_it(client: Client, cta: str) -> None:
    assert client.experiments() == ["cta"]
    trial = client.open("cta")
    assert trial.registration() == small(arm_names=["A", "B"])
    with pytest.raises(InvalidArgument, match="^name: got nobody, allowed: an experiment of this store: cta$"):
        client.open("nobody")
    finish(trial, block=40)
    status = trial.status()
    assert status.state == "finished"
    with Experiment.open(cta, "cta") as own:
        assert own.status() == status
        assert own.status().headline == status.headline
        assert own.status().estimates == status.estimates
        assert trial.analyse() == json.loads(json.dumps(bd.analyse(own).to_dict()))
        assert trial.analyse(0.9, binary=False)["confidence"] == 0.9
    assert trial.verify() == json.loads(json.dumps(verify(cta, "cta").to_dict()))
    assert trial.verify(status.head)["verified"]
    assert not trial.verify("0" * 64)["verified"]
    events = list(trial.events(limit=7))
    assert [event["number"] for event in events] == list(range(1, status.events + 1))
    assert events[-1]["hash"] == status.head
    assert list(trial.events(after=status.events)) == []
    assert trial.export("csv").startswith(b"ticket,")
    assert json.loads(trial.export("json"))["name"] == "cta"
    assert trial.export("parquet")[:4] == b"PAR1"
    assert b"<html" in trial.export("html")[:500].lower()
    with pytest.raises(InvalidArgument, match='^kind: got "pdf", allowed: '):
        trial.export("pdf")


@pytest.mark.long
def test_offers_of_another_level_come_with_a_refusal(client: Client) -> None:
    with pytest.raises(bd.NoPlan) as caught:
        client.plan(arms=2, rho=0.01, horizon=100)
    assert {offer.level for offer in caught.value.offers} == {"sequence", "winner"}


def test_two_labs_and_a_plan(client: Client) -> None:
    found, protocol = client.plan(arms=2, gap=0.3, rho=0.5, power=0.6)
    assert found["digest"] == protocol.digest
    again, same = client.plan(arms=2, gap=0.3, rho=0.5, power=0.6, seed=protocol.seed)
    assert (again["digest"], same) == (found["digest"], protocol)
    assert client.plan(arms=2, gap=0.3, rho=0.5, power=0.6)[1].seed != protocol.seed  # nobody can guess it
    with pytest.raises(bd.NoPlan) as caught:
        client.plan(arms=3, rho=0.05, horizon=20, policy="explore-then-commit")
    assert caught.value.offers
    registration = bd.Registration.of(protocol, ["red", "blue"], fallback="red", deadline=timedelta(days=7))
    for name in ("one", "two"):
        trial = client.open(name, registration)
        assert client.open(name, registration).registration() == trial.registration() == registration
        finish(trial, lambda batch, position: float(position % 3 == 0))
    assert client.open("one", protocol).name == "one"  # a protocol says nothing of names
    compared = client.replicate("one", "two")
    assert compared["same"]
    assert compared["runs"] == ["one", "two"]
    with pytest.raises(ConflictError, match="has another protocol"):
        client.open("one", small())
    with pytest.raises(InvalidArgument):
        client.replicate("one", "nobody")


def test_units_metrics_totals_and_losses(client: Client, cta: str) -> None:
    trial = client.open("fallen", small(arm_names=["A", "B"], fallback="A"))
    first = trial.ask(unit="user-1")
    again = trial.ask(unit="user-1")
    assert (again.tickets, again.repeated) == (first.tickets, True)
    assert trial.tell(first[0].id, 1.0, {"revenue": 12.5}, arm=first[0].arm_name) == "recorded"
    with pytest.raises(ConflictError):
        trial.tell(first[0].id, 1.0, {"revenue": 13.0})
    with pytest.raises(ConflictError):
        trial.tell(first[0].id, 1.0, arm="AB"[1 - first[0].arm])
    rest = trial.ask(11)
    assert trial.ask(unit="user-2").fallback == bd.Experiment.open(cta, "fallen").ask(unit="user-3").fallback
    assert trial.missing_many([rest[0].id, rest[1].id], "left", by="anna") == ["recorded", "recorded"]
    assert trial.missing_older(timedelta(seconds=0), "left") == 9
    assert trial.missing_older(3600, "left") == 0
    assert trial.pending().total == 0
    totals = client.open("totals", small())
    assert totals.tell_totals(1, {0: (6, 3.5), 1: (6, 0.1)}) == "recorded"
    assert totals.tell_totals(1, {"0": (6, 3.5), "1": (6, 0.1)}) == "repeated"
    assert totals.status().batch == 2
    assert totals.stop("enough") == "recorded"
    for name in ("fallen", "totals"):
        assert verify(cta, name).holds


def test_clients_take_rewards_as_dictionaries_and_frames(client: Client, service: str, admin: str) -> None:
    trial = client.open("shapes", small())
    first, second, third = trial.ask(3)
    assert trial.tell_many({first.id: 1.0}) == ["recorded"]
    assert trial.tell_many(pd.DataFrame({"ticket": [first.id, second.id], "reward": [1.0, 0.0]})) == [
        "repeated",
        "recorded",
    ]

    async def tell() -> list[str]:
        async with AsyncClient(service, admin) as awaited:
            return list(await (await awaited.open("shapes")).tell_many({third.id: 1.0}))

    assert asyncio.run(tell()) == ["recorded"]
    told = trial.status()
    assert told.tickets["told"] == 3
    assert "experiment" in str(told)  # what a service says has the table of a status, and its picture
    assert told.plot().axes
    wrong: list[Any] = ["text", None, 3, [third.id], [(third.id,)], [(third.id, 1.0, None, None, 5)], {third.id: "x"}]
    for shape in wrong:
        with pytest.raises(InvalidArgument):
            trial.tell_many(shape)


def test_awaiting_it_plays_the_same_arms(service: str, cta: str, admin: str) -> None:
    arms: dict[tuple[int, int], int] = {}

    async def worker(trial: AsyncRemoteExperiment) -> None:
        while True:
            answer = await trial.ask(3)
            if answer.state == "finished":
                return
            if not len(answer):
                await asyncio.sleep(0.01)
            for ticket in answer:
                arms[place(ticket.id)] = ticket.arm
                await trial.tell(ticket.id, hashed_reward(*place(ticket.id)))

    async def play() -> None:
        async with AsyncClient(service, admin) as client:
            trial = await client.open("second", small())
            await asyncio.gather(*(worker(trial) for _ in range(4)))
            assert (await trial.status()).state == "finished"
            assert await client.experiments() == ["cta", "second"]
            assert (await trial.verify())["verified"]
            assert [event["number"] async for event in trial.events(limit=50)][:3] == [1, 2, 3]
            assert (await trial.analyse())["arms"]
            assert len(await trial.pending()) == 0
            assert (await trial.export("csv")).startswith(b"ticket,")
            with pytest.raises(InvalidArgument):
                await client.open("nobody")
            with pytest.raises(ConflictError):
                await trial.stop("too late")

    asyncio.run(play())
    expected = simulated_arms(small_policy(), small().protocol.seed, hashed_reward)
    assert arms == {(b, p): arm for b, batch in enumerate(expected, 1) for p, arm in enumerate(batch)}


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        InvalidArgument("n", 0, "an integer from 1"),
        ConflictError("ticket 1 has a reward"),
        bd.StoreError("nobody answers"),
        bd.LogError("a hash that does not follow", 7),
        bd.LogError("no events"),
        bd.NoPlan("horizon", 10, "more"),
        NotAllowed(401, "the token has expired"),
        NotAllowed(403, "the token is for another experiment"),
        ServiceError(429, "too many requests"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel(error: bd.BandittoError) -> None:
    problem = json.loads(json.dumps(problem_of(error)))
    found = error_of(problem["status"], problem)
    assert (str(found), found.code) == (str(error), error.code)
    assert isinstance(found, type(error)) or isinstance(error, bd.NoPlan)


def test_bad_tokens_and_addresses(service: str, cta: str) -> None:
    with Client(service, "bdt_000000000000_" + "A" * 43) as client, pytest.raises(NotAllowed, match="not one of this"):
        client.experiments()
    with Client(service, new_token(cta, "read")) as reader, pytest.raises(NotAllowed, match="this needs ask") as caught:
        reader.open("cta").ask()
    assert caught.value.status == 403
    urls: list[Any] = ["", "x", "ftp://x", "http://", "http://user:pass@host", "http://host?x=1", 5]
    for url in urls:
        with pytest.raises(InvalidArgument, match="^url: got"):
            Client(url, "x")
    bad: list[Any] = ["", " ", "a\nb", "\u00e4", None]
    for token in bad:
        with pytest.raises(InvalidArgument, match="^token: got something else, allowed"):
            Client(service, token)
    assert "AAAA" not in repr(client)


def test_nobody_there_is_one_line() -> None:
    with Client("http://127.0.0.1:1", "x", deadline=0.3) as client, pytest.raises(ServiceError) as caught:
        client.experiments()
    assert str(caught.value).startswith("the service at http://127.0.0.1:1 does not answer (ConnectError")
    assert "\n" not in str(caught.value)
    assert caught.value.status == 0


class Flaky(BaseHTTPRequestHandler):
    """A proxy that passes requests on and then loses the answer, or says that it is busy, before it behaves."""

    target: ClassVar[str] = ""
    troubles: ClassVar[list[str]] = []

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        trouble = self.troubles.pop() if self.troubles else ""
        if trouble == "busy":
            self.send_response(503)
            self.end_headers()
            return
        headers = {key: self.headers[key] for key in ("Authorization", "Content-Type") if key in self.headers}
        answer = httpx.request(self.command, self.target + self.path, content=body, headers=headers, timeout=60)
        if trouble == "lost":  # it was done, and nobody heard of it
            self.close_connection = True
            return
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers["content-type"])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = _pass_on  # noqa: N815 (the base class calls them by these names)

    def log_message(self, *arguments: Any) -> None:
        pass


def test_lost_answers_and_busy_moments_do_nothing_twice(service: str, admin: str, cta: str) -> None:
    Flaky.target = service
    proxy = HTTPServer(("127.0.0.1", 0), Flaky)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{proxy.server_port}", admin) as client:
            Flaky.troubles = ["lost", "busy", "lost"]
            trial = client.open("flaky", registration_of(small_policy(), rewards=(0.0, 1.0)))
            Flaky.troubles = ["busy", "lost", "lost"]
            answer = trial.ask(5)
            assert (len(answer), answer.repeated) == (5, True)
            Flaky.troubles = ["lost", "busy"]
            assert trial.tell(answer[0].id, 0.5) == "repeated"  # the first time it was recorded, and not heard of
            Flaky.troubles = ["lost"]
            assert trial.missing(answer[1].id, "left") == "repeated"
            Flaky.troubles = ["lost"]
            assert trial.stop("enough") == "repeated"
            status = trial.status()
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
    assert status.tickets == {"open": 3, "told": 1, "missing": 1, "late": 0}
    assert verify(cta, "flaky").holds


def test_something_else_that_answers_is_said(service: str) -> None:
    with pytest.raises(ServiceError, match="^something that is no service of banditto answered 404$"):
        read_answer(names_call(), httpx.Response(404, text="<html>nginx</html>"))
    assert httpx.get(f"{service}/v1/experiments", headers=bearer("x"), timeout=60).status_code == 401
