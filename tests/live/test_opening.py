"""Opening: one protocol for ever, versions of the software, names, and what a store refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from banditto.core import provenance
from banditto.core.errors import BandittoError, ConflictError, InvalidArgument, StoreError
from banditto.live import follower as module
from banditto.live.experiment import Experiment
from banditto.live.registration import Registration, registered
from banditto.live.store import Store, engine_of, shown_url
from banditto.live.tables import EXPERIMENTS, SCHEMA, metadata
from banditto.live.verify import verify
from banditto.report.self_test import examine
from banditto.version import __version__
from tests.live.administrators import allow_tampering
from tests.live.servers import PostgresServer
from tests.live.worlds import finish, registration_of, small, small_policy

# -- protocols --------------------------------------------------------------------------------------------------------


def test_open_makes_it_once_and_finds_it_again(store_url: str) -> None:
    made = small(arm_names=["A", "B"])
    with Experiment.open(store_url, "cta", made) as one:
        one.ask(3)
        with Experiment.open(store_url, "cta") as two, Experiment.open(store_url, "cta", made.protocol) as three:
            assert two.registration == three.registration == made
            assert two.ask()[0].id == "cta.1-4"
            assert three.ask()[0].id == "cta.1-5"
    with pytest.raises(ConflictError, match="^experiment cta exists already$"):
        Experiment.create(store_url, "cta", made)
    with pytest.raises(InvalidArgument, match="^name: got other, allowed: an experiment of this store: cta$"):
        Experiment.open(store_url, "other")


def test_a_store_that_was_restored_under_a_running_process(store_url: str) -> None:
    """The process that waits has seen batch 2 after other rewards than those that the store has now."""
    with Experiment.create(store_url, "cta", small()) as waiting:
        tickets = list(waiting.ask(12))
        backup = [(table, rows_of(store_url, table)) for table in metadata.sorted_tables]
        waiting.tell_many([(ticket.id, float(ticket.arm == 0)) for ticket in tickets])
        assert waiting.status().plan == {"0": 88}
        engine = engine_of(store_url)
        with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
            allow_tampering(connection)
            for table, _ in reversed(backup):
                connection.execute(table.delete())
            for table, rows in backup:
                if rows:
                    connection.execute(table.insert(), rows)
        engine.dispose()
        with Experiment.open(store_url, "cta") as other:
            other.tell_many([(ticket.id, float(ticket.arm == 1)) for ticket in tickets])
        assert waiting.status().plan == {"1": 88}
        assert {ticket.arm for ticket in waiting.ask(50)} == {1}
    assert verify(store_url, "cta").holds


def rows_of(url: str, table: sql.Table) -> list[dict[str, Any]]:
    engine = engine_of(url)
    with engine.connect() as connection:
        found = [dict(row) for row in connection.execute(sql.select(table)).mappings()]
    engine.dispose()
    return found


OTHERS: dict[str, Any] = {
    "seed": lambda: small(seed=8),
    "names": lambda: small(arm_names=["B", "A"]),
    "range": lambda: small(arm_names=["A", "B"], rewards=(0, 2)),
    "horizon": lambda: registration_of(small_policy(101), arm_names=["A", "B"]),
    "protocol alone": lambda: small(seed=8).protocol,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_another_protocol_never_continues_a_run(store_url: str, other: Any) -> None:
    Experiment.create(store_url, "cta", small(arm_names=["A", "B"])).close()
    with pytest.raises(ConflictError, match="^experiment cta has another protocol .*; a registered protocol cannot"):
        Experiment.open(store_url, "cta", other())


def test_another_decision_version_cannot_go_on(store_url: str) -> None:
    """The store's row is changed to that of a run whose decisions were taken by other rules."""
    made = small()
    Experiment.create(store_url, "cta", made).close()
    newer = replace(made, protocol=replace(made.protocol, decision_version=made.protocol.decision_version + 1))
    engine = engine_of(store_url)
    with engine.begin() as connection:
        allow_tampering(connection)
        connection.execute(EXPERIMENTS.update().values(registration=newer.to_json(), digest=newer.digest))
    engine.dispose()
    with pytest.raises(ConflictError, match="^this experiment cannot go on with banditto .*: decision_version: got"):
        Experiment.open(store_url, "cta")
    with pytest.raises(InvalidArgument, match="^decision_version: got"):
        registered(newer.protocol)


def test_a_patch_release_goes_on_and_is_noted_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Experiment.create(store_url, "cta", small()) as one:
        first = one.ask(12)
        one.tell("cta.1-1", 0.5)
        events = one.status().events
        newer = module.SOFTWARE | {"banditto": "99.0.1"}
        monkeypatch.setattr(module, "SOFTWARE", newer)
        monkeypatch.setattr(module, "_SOFTWARE_TEXT", json.dumps(newer))
        # what changes nothing leaves no trace of the new version either
        assert one.tell("cta.1-1", 0.5) == "repeated"
        assert one.ask().state == "waiting"
        assert one.status().events == events
        assert one.tell("cta.1-2", 0.5) == "recorded"
        assert one.tell("cta.1-3", 0.5) == "recorded"
        assert one.status().events == events + 3
        assert one.missing(first[11].id, "lost") == "recorded"
        finish(one)
    found = verify(store_url, "cta")
    assert found.holds, found.problem
    store = Store(store_url)
    log = store.read(lambda view: list(view.events(1)))
    store.close()
    versions = [event.content["versions"]["banditto"] for event in log if event.kind == "software"]
    assert versions == [__version__, "99.0.1"]
    assert [event.time for event in log] == sorted(event.time for event in log)


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "-x", "..", "a b", "a#b", "a/b", "é", "x" * 101, "a\n", None, 5])
def test_bad_names(store_url: str, name: Any) -> None:
    with pytest.raises(InvalidArgument, match="^name: got .*, allowed: 1 to 100 letters"):
        Experiment.open(store_url, name, small())


ODD = ["=cmd|' /C calc'!A0", 'Ü, "quoted"; --', "\U0001f680" * 100, "עברית", "%(x)s {0}"]


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_of_arms(store_url: str, odd: str) -> None:
    with Experiment.create(store_url, "odd.name-1_2", small(arm_names=[odd, "plain"])) as experiment:
        assert odd in [ticket.arm_name for ticket in experiment.ask(2)]
        assert odd in experiment.status().plan
    with Experiment.open(store_url, "odd.name-1_2") as again:
        assert again.registration.arm_names == (odd, "plain")
        assert Registration.from_json(again.registration.to_json()) == again.registration
    assert verify(store_url, "odd.name-1_2").holds


@pytest.mark.parametrize("names", [["A"], ["A", "A"], ["A", ""], ["A", "b\nc"], ["A", "x" * 201], ["A", 5], "AB"])
def test_bad_names_of_arms(names: Any) -> None:
    with pytest.raises(InvalidArgument, match="^arm_names: got"):
        small(arm_names=names)


# -- stores -----------------------------------------------------------------------------------------------------------


def test_huge_places_fit_into_the_tables(store_url: str) -> None:
    """A batch of which 10^15 - 12 slots are out already: the next ones are asked for and told like any other."""
    made = registration_of(small_policy(10**15))
    with Experiment.create(store_url, "huge", made) as experiment:
        store = Store(store_url)
        while (status := experiment.status()).plan != {"0": status.horizon - status.spent}:
            experiment.tell_totals(status.batch, {arm: (n, n / (1 + int(arm))) for arm, n in status.plan.items()})
        length = status.plan["0"]
        assert length > 9 * 10**14
        row = store.read(lambda view: view.find("huge"))
        assert row is not None
        progress = json.loads(row["progress"]) | {"issued": length - 3}
        saved = (row["id"], row["events"], row["head"], json.dumps(progress), row["software"])
        store.write(lambda tx: tx.save(*saved))
        store.close()
        answer = experiment.ask(10)
        assert [ticket.id for ticket in answer] == [f"huge.{status.batch}-{length - k}" for k in (2, 1, 0)]
        assert experiment.tell_many([(ticket.id, 0.5) for ticket in answer]) == ["recorded"] * 3
        assert experiment.ask().state == "waiting"


def test_tables_of_a_newer_version_are_refused(store_url: str) -> None:
    Experiment.create(store_url, "cta", small()).close()
    engine = engine_of(store_url)
    with engine.begin() as connection:
        connection.execute(SCHEMA.update().values(version=99))
    engine.dispose()
    with pytest.raises(StoreError, match="has tables of version 99; this banditto reads"):
        Experiment.open(store_url, "cta")


def test_a_forked_process_has_connections_of_its_own(store_url: str) -> None:
    """Parent and child go on with the same object at once; one connection for both would mix up their answers."""
    with Experiment.create(store_url, "cta", registration_of(small_policy(10**4))) as experiment:
        experiment.ask(1)
        child = os.fork()
        if not child:
            code = 1
            try:
                for _ in range(100):
                    experiment.ask(1)
                experiment.close()
                code = 0
            finally:
                os._exit(code)
        for _ in range(100):
            for ticket in experiment.ask(1):
                experiment.tell(ticket.id, 0.5)
        assert os.waitpid(child, 0)[1] == 0
        experiment.status()
    assert verify(store_url, "cta").holds


BAD_URLS: list[Any] = [
    "",
    " ",
    "cta.db",
    "sqlite://",
    "sqlite:///:memory:",
    "mysql://u:secret@h/d",
    "sqlite:////no/such/x.db",
]
BAD_URLS += [
    "sqlite:///.",
    "sqlite:///x.db?mode=ro",
    "postgresql:u:secret@h/d",
    "postgresql:/u:secret@h/d",
    "u:secret@h",
]
BAD_URLS += ["postgresql://u:pass@u:secret@h/d"]  # whose host would be the rest of the password
BAD_URLS += ["postgresql://u:secret@h:port/d", "postgresql+asyncpg://u:secret@h/d", "://secret", None, 5]


@pytest.mark.parametrize("url", BAD_URLS)
def test_bad_urls(url: Any) -> None:
    with pytest.raises(InvalidArgument, match="^store: got") as caught:
        Store(url)
    assert "u:secret" not in str(caught.value)


PASSWORDS = ["postgresql://u:secret@h/d", "postgresql://u:se?cr@et@h/d?password=secret", "sqlite:///x?password=secret"]


@pytest.mark.parametrize("url", PASSWORDS)
def test_passwords_are_not_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "se" not in shown_url(url).replace("postgresql", "")
    monkeypatch.setattr("sys.argv", ["banditto", "status", "cta", "--store", url, f"{url}#cta"])
    command = " ".join(provenance.provenance()["command"])
    assert "secret" not in command
    assert "cr@et" not in command


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_a_server_that_is_not_there_is_an_error_of_one_line_after_a_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("banditto.live.store.time", clock)
    with pytest.raises(StoreError, match="^the store failed: ") as caught:
        Experiment.open(f"postgresql://u:secret@/d?host={tmp_path}", "cta")
    assert 3 < clock.seconds < 15
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_database_is_an_error_at_once(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited for a database that will not come"))
    with pytest.raises(StoreError, match='database "nowhere" does not exist'):
        Experiment.open(server.url.replace("/postgres?", "/nowhere?"), "cta")


def test_looking_makes_no_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/typo.db"
    for look in (Experiment.open, verify):
        with pytest.raises(InvalidArgument, match="^store: got sqlite:///.*, allowed: a file that exists$"):
            look(url, "cta")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database\n" * 100)
    with pytest.raises(StoreError, match="^the store failed: file is not a database$"):
        Experiment.open(f"sqlite:///{tmp_path}/x.db", "cta")


HOLDING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


def test_a_writer_waits_for_another_program_that_holds_the_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Experiment.create(url, "cta", small()) as experiment, ThreadPoolExecutor(1) as thread:
        holding = [sys.executable, "-c", HOLDING, str(tmp_path / "x.db")]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(holding, text=True, **pipes) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            assert experiment.status().events == 1  # readers do not wait
            assert verify(url, "cta").holds  # nor do those who come only now
            asked = thread.submit(experiment.ask, 2)
            assert wait([asked], timeout=0.5).done == set()
            other.communicate("let go\n", timeout=600)
            assert len(asked.result(timeout=600)) == 2


def test_steps_go_on_after_the_server_was_started_again(server: PostgresServer) -> None:
    url = server.new_schema()
    with Experiment.create(url, "cta", small()) as experiment:
        server.restart()
        assert experiment.ask(6, "r")[5].id == "cta.1-6"
        server.restart()
        assert experiment.status().issued == 6
        server.restart()
        with Experiment.open(url, "cta") as another:
            assert len(another.pending()) == 6
        server.restart()
        assert verify(url, "cta").holds


def test_who_may_only_read_can_verify_and_is_told_by_doctor(server: PostgresServer) -> None:
    url = server.new_schema()
    Experiment.create(url, "cta", small()).close()
    schema, role = url.rpartition("%3D")[2], f"r{uuid.uuid4().hex[:12]}"
    engine = engine_of(server.url)
    with engine.begin() as connection:
        connection.execute(sql.text(f"CREATE ROLE {role} LOGIN"))
        connection.execute(sql.text(f"GRANT USAGE ON SCHEMA {schema} TO {role}"))
        connection.execute(sql.text(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"))
    engine.dispose()
    reader = url.replace("postgres:@", f"{role}@")
    assert verify(reader, "cta").holds
    assert [check.outcome for check in examine(url).checks] == ["ok", "ok"]
    golden, store = examine(reader).checks
    assert (golden.outcome, store.outcome) == ("ok", "failed")
    assert "permission denied" in store.detail


def test_an_unreadable_protocol_is_a_conflict(store_url: str) -> None:
    Experiment.create(store_url, "cta", small()).close()
    engine = engine_of(store_url)
    for text in ("{", "[]", "{}", '{"schema_version": 99}'):
        with engine.begin() as connection:
            allow_tampering(connection)
            connection.execute(sql.update(EXPERIMENTS).values(registration=text))
        with pytest.raises(BandittoError) as caught:
            Experiment.open(store_url, "cta")
        assert isinstance(caught.value, ConflictError)
    engine.dispose()
