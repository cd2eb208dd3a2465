"""Who may come in: a table over all routes, and no way around it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from banditto.live.experiment import Experiment
from banditto.live.store import Store
from banditto.service import tokens
from banditto.service.application import make_application
from banditto.service.gate import Doors
from banditto.service.pages.page_routes import PAGES
from banditto.service.rate_limits import RateLimits
from banditto.service.routes import ROUTES, Route
from banditto.service.service_settings import ServiceSettings
from banditto.service.tokens import SCOPES, KeptToken, Scope, Token, hash_of, recognised
from tests.live.worlds import small
from tests.service.services import bearer, new_token, served, service_in_thread

GUARDED = [route for route in ROUTES if route.scope is not None]
OPEN = {"/healthz", "/readyz", "/openapi.json"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = f"sqlite:///{tmp_path_factory.mktemp('gate')}/trial.db"
    for name in ("cta", "other"):
        Experiment.create(made, name, small()).close()
    return made


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with (
        service_in_thread(url, token_memory=0.0, rate=1e6) as address,
        httpx.Client(base_url=address, timeout=60) as made,
    ):
        yield made


def called(client: httpx.Client, route: Route, headers: Any, name: str = "cta") -> httpx.Response:
    path = route.path.replace("{name}", name).replace("{kind}", "csv")
    return client.request(route.method, path, headers=headers, json={})


@pytest.fixture(autouse=True)
def _no_limit_for_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RateLimits, "wait", lambda self, caller: 0.0)


@pytest.fixture(scope="module")
def bad(url: str) -> dict[str, dict[str, str]]:
    """Headers that let nobody in."""
    good = new_token(url)
    expired = new_token(url, life=1.0)
    revoked = new_token(url)
    with Store(url) as store:
        tokens.revoke_token(store, revoked.split("_")[1])
    time.sleep(1.1)
    public, secret = good.split("_", 2)[1:]
    return {
        "missing": {},
        "empty": {"Authorization": ""},
        "no bearer": {"Authorization": f"Basic {good}"},
        "a wrong secret": bearer(f"bdt_{public}_{'A' * 43}"),
        "another's secret": bearer(f"bdt_{expired.split('_')[1]}_{secret}"),
        "an unknown id": bearer(f"bdt_000000000000_{secret}"),
        "a shorter secret": bearer(good[:-1]),
        "a longer secret": bearer(good + "A"),
        "an id alone": bearer(f"bdt_{public}_"),
        "a hash for a secret": bearer(f"bdt_{public}_{hash_of(secret)[:43]}"),
        "letters that are none": bearer("bdt_" + "\xff" * 56),
        "expired": bearer(expired),
        "revoked": bearer(revoked),
    }


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: f"{route.method} {route.path}")
def test_without_a_good_token_nobody_comes_in(
    client: httpx.Client, bad: dict[str, dict[str, str]], route: Route
) -> None:
    for what, headers in bad.items():
        encoded = {key: value.encode("latin-1") for key, value in headers.items()}
        answer = called(client, route, encoded)
        assert answer.status_code == 401, (what, answer.text)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "not-allowed"
    assert called(client, route, {"authorization": "x"}, name="nobody").status_code == 401  # nor learns who is there


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: f"{route.method} {route.path}")
def test_a_token_is_for_its_scopes_and_its_experiment(client: httpx.Client, url: str, route: Route) -> None:
    for scope in SCOPES:
        answer = called(client, route, bearer(new_token(url, scope)))
        if scope in (route.scope, "admin") or route.scope == "any":
            assert answer.status_code not in (401, 403), (scope, answer.text)
        else:
            assert answer.status_code == 403, (scope, answer.text)
            assert answer.json()["detail"] == f"the token has the scope {scope}; this needs {route.scope}"
    if "{name}" in route.path:
        mine = bearer(new_token(url, "admin", experiment="other"))
        assert called(client, route, mine, "cta").status_code == 403
        assert called(client, route, mine, "nobody").status_code == 403
        assert called(client, route, mine, "other").status_code not in (401, 403)


def test_routes_without_an_experiment_in_their_path_keep_to_the_tokens(client: httpx.Client, url: str) -> None:
    mine = bearer(new_token(url, "admin", experiment="other"))
    assert client.get("/v1/experiments", headers=mine).json() == {"experiments": ["other"]}
    assert client.get("/v1/experiments", headers=bearer(new_token(url))).json() == {"experiments": ["cta", "other"]}
    both = {"first": "other", "second": "cta"}
    assert client.post("/v1/replicate", headers=mine, json=both).status_code == 403
    assert client.post("/v1/replicate", headers=mine, json={**both, "second": "other"}).status_code != 403
    assert client.get("/metrics", headers=mine).status_code == 403


def test_every_route_has_a_door_and_every_door_its_scope(client: httpx.Client, url: str) -> None:
    """A route that is added to the application by another way cannot be reached."""
    made = make_application(ServiceSettings(store=url))
    app: Any = made[0]
    doors = made[1]
    known = {(door.method, door.template): door.scope for door in doors.all if not door.page}
    pages = {(door.method, door.template): door.scope for door in doors.all if door.page}
    assert pages == {(page.method, page.path): page.scope for page in PAGES}
    assert {path for (_, path), scope in pages.items() if scope is None} == {"/sign-in", "/static/{file}"}
    listed = client.get("/openapi.json").json()["paths"]
    documented = {(method.upper(), path) for path, methods in listed.items() for method in methods}
    plain = {("GET", "/openapi.json"), ("HEAD", "/healthz"), ("HEAD", "/readyz")}
    assert documented | plain == set(known)
    assert {path for (_, path), scope in known.items() if scope is None} == OPEN
    inner = app._inner._inner._inner._inner
    inner.add_api_route("/forgotten", lambda: {"secret": 1}, methods=["GET"])
    with served(app) as address:
        assert httpx.get(f"{address}/forgotten", timeout=60).status_code == 404


def test_other_methods_and_paths_are_refused(client: httpx.Client) -> None:
    answer = client.delete("/v1/experiments/cta")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, PUT")
    for path in ("/v1", "/v1/experiments/cta/", "/v1/experiments/a/b/ask", "/docs", "/redoc", "//v1/experiments"):
        assert client.get(path).status_code == 404, path
    for path in ("/v1/experiments/%2e%2e%2fcta", "/v1/experiments/..%2f..%2fetc%2fpasswd/export/csv"):
        assert client.get(path).status_code in (401, 404), path


def test_two_tokens_at_once_are_none(client: httpx.Client, url: str) -> None:
    both = [("Authorization", f"Bearer {new_token(url)}"), ("Authorization", f"Bearer {new_token(url)}")]
    assert client.get("/v1/experiments", headers=both).status_code == 401


# -- tokens -----------------------------------------------------------------------------------------------------------


def test_the_store_has_no_secret(url: str) -> None:
    text = new_token(url, "read")
    secret = text.split("_", 2)[2]
    path = Path(url.removeprefix("sqlite:///"))
    for file in path.parent.iterdir():
        assert secret.encode() not in file.read_bytes()
    with Store(url) as store:
        rows = store.read(lambda view: [dict(row) for row in view.tokens()])
    assert hash_of(secret) in {row["hash"] for row in rows}


def test_secrets_are_compared_without_telling_where_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every comparison goes through compare_digest with two hashes of one length, also if there is no such token."""
    seen: list[tuple[str, str]] = []

    def compared(one: str, two: str) -> bool:
        seen.append((one, two))
        return one == two

    monkeypatch.setattr("banditto.service.tokens.hmac.compare_digest", compared)
    held: tuple[Scope, ...] = ("read",)
    token = Token(id="0" * 12, scopes=held, experiment=None, label="", created="", expires=None, revoked=None)
    assert recognised(KeptToken(token, hash_of("x" * 43)), "x" * 43) == token
    for kept, secret in ((KeptToken(token, hash_of("x" * 43)), "y" * 43), (None, "x" * 43)):
        with pytest.raises(Exception, match="^the token is not one of this service$"):
            recognised(kept, secret)
    assert [{len(one), len(two)} for one, two in seen] == [{64}] * 3


def test_a_revoked_token_is_refused_when_it_is_forgotten(url: str) -> None:
    app: Any = make_application(ServiceSettings(store=url, token_memory=3600.0))[0]
    text = new_token(url)
    with served(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        assert client.get("/v1/experiments", headers=bearer(text)).status_code == 200
        with Store(url) as store:
            tokens.revoke_token(store, text.split("_")[1])
        assert client.get("/v1/experiments", headers=bearer(text)).status_code == 200  # it is remembered for an hour
        app._inner._memory = 0.0
        assert client.get("/v1/experiments", headers=bearer(text)).status_code == 401


def test_doors_of_one_path_are_told_apart() -> None:
    doors = Doors()
    doors.add("GET", "/a/{name}", "read")
    doors.add("PUT", "/a/{name}", "admin")
    assert doors.find("PUT", "/a/x")[0].scope == "admin"
    assert doors.find("GET", "/a/x")[1] == {"name": "x"}
