"""`banditto token`: what it prints, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from banditto.live.store import Store
from banditto.service.tokens import halves_of, looked_up, recognised
from tests.commands import banditto


@pytest.fixture
def store(tmp_path: Path) -> list[str]:
    return ["--store", f"sqlite:///{tmp_path}/trial.db"]


def test_a_token_is_shown_once_listed_and_revoked(store: list[str]) -> None:
    found = banditto("token", "list", *store)
    assert (found.returncode, found.stdout) == (2, "")  # there is no store yet
    made = banditto("token", "create", *store, "--scope", "tell", "--scope", "ask", "--experiment", "cta")
    assert made.returncode == 0, made.stderr
    text = made.stdout.strip()
    halves = halves_of(text)
    assert halves is not None
    public, secret = halves
    assert f"token {public} is shown this once" in made.stderr
    with Store(store[1]) as opened:
        token = recognised(looked_up(opened, public), secret)
    assert (token.scopes, token.experiment, token.expires) == (("ask", "tell"), "cta", None)
    other = banditto("token", "create", *store, "--scope", "admin", "--expires", "30d", "--label", "anna", "--json")
    document = json.loads(other.stdout)
    content = document["token"]
    assert (content["scopes"], content["label"], content["experiment"]) == (["admin"], "anna", None)
    assert document["text"].startswith(f"bdt_{content['id']}_")
    assert content["expires"] > content["created"]
    listed = banditto("token", "list", *store).stdout
    assert re.search(rf"{public} +ask,tell +cta +valid", listed)
    assert re.search(rf"{content['id']} +admin +all +valid until 20.* +anna", listed)
    assert secret not in listed
    assert banditto("token", "revoke", public, *store).stdout == f"{public} is revoked\n"
    assert banditto("token", "revoke", public, *store).returncode == 0  # the same again changes nothing
    assert "revoked 20" in banditto("token", "list", *store).stdout
    found = banditto("token", "list", *store, "--json")
    assert [one["id"] for one in json.loads(found.stdout)["tokens"]] == [public, content["id"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["make"], "action: got make, allowed: create, list, revoke"),
        (["create"], "--scope: got nothing, allowed: some of read, ask, tell, admin"),
        (["create", "--scope", "write"], "--scope: got write, allowed: some of read, ask, tell, admin"),
        (["create", "--scope", "ask", "--experiment", "a b"], "--experiment: got a b, allowed: 1 to 100 letters"),
        (["create", "--scope", "ask", "--expires", "soon"], "--expires: got soon, allowed: a number of seconds"),
        (["create", "--scope", "ask", "--expires", "0"], "--expires: got 0.0, allowed: from one second to ten years"),
        (["create", "--scope", "ask", "--label", "a\nb"], "--label: got a b, allowed: text of 1 to 200"),
        (["create", "x"], "ID: got x, allowed: none with create"),
        (["revoke"], "ID: got nothing, allowed: the id of a token"),
        (["revoke", "0123456789ab"], "ID: got 0123456789ab, allowed: the id of a token"),
        (["revoke", "bdt_0123456789ab_secret"], "ID: got something else, allowed: the id of a token"),
        (["list", "--scope", "ask"], "--scope: got ask, allowed: none with list"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_wrong_is_one_line(store: list[str], words: list[str], said: str) -> None:
    banditto("token", "create", "--scope", "read", *store)
    found = banditto("token", *words, *store)
    assert found.returncode == 2
    assert said.lower() in found.stderr.lower(), found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert "secret" not in found.stderr
