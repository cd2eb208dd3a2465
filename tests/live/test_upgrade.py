"""Tables of an older version: a kept database goes on where it was, and no event is touched."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql

import banditto as bd
from banditto.core.errors import StoreError
from banditto.live import store
from banditto.live.experiment import Experiment
from banditto.live.export import export, read_log
from banditto.live.store import Store, engine_of
from banditto.live.tables import EVENTS, METRICS, SCHEMA, SCHEMA_VERSION
from banditto.live.verify import verify
from tests.live.servers import PostgresServer
from tests.live.worlds import small

KEPT = Path(__file__).parent / "data" / "version-1.db"
HEAD = "a7a8e872f76b1e2e635eca1ef84001c718c65730988318af875456beeaab5e5e"
SHA256 = "425df51e6bfe4a2292958de61b0b6f9ec4b66570a38571628791c472a645a088"
KEPT_2 = Path(__file__).parent / "data" / "version-2.db"  # before there were metrics
HEAD_2 = "1d23946777e62d365e795567335a35696bc4b2af2bbfa24af41d9a997be7674e"
SHA256_2 = "c7dff5aa8a9c7c2d4bfd5ddb52ad3be928dd7464a3502aaf1e863cae2e50c35a"
DIGEST = "40d62a06e74d9b9d353b04a1c97fb30312b465d4d62ce4b3ca9ea988eb3b6e9c"


def has_index(url: str) -> bool:
    engine = engine_of(url)
    with engine.connect() as connection:
        names = {index["name"] for index in sql.inspect(connection).get_indexes(EVENTS.name)}
    engine.dispose()
    return "banditto_decision" in names


def has_metrics(url: str) -> bool:
    engine = engine_of(url)
    with engine.connect() as connection:
        found = sql.inspect(connection)
        indexed = found.has_table(METRICS.name) and bool(found.get_indexes(METRICS.name))
    engine.dispose()
    return indexed


def version_of(url: str) -> int:
    engine = engine_of(url)
    with engine.connect() as connection:
        found = int(connection.execute(sql.select(SCHEMA.c.version)).scalar_one())
    engine.dispose()
    return found


def test_a_kept_database_goes_on(tmp_path: Path) -> None:
    shutil.copy(KEPT, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    assert (version_of(url), has_index(url)) == (1, False)
    found = verify(url, "kept", expect=HEAD)
    assert found.holds, found.problem
    assert (found.head, found.digest, found.events, len(found.decisions)) == (HEAD, DIGEST, 662, 2)
    assert (version_of(url), has_index(url)) == (SCHEMA_VERSION, True)
    with bd.Experiment.open(url, "kept") as trial:
        for ticket in trial.pending():
            trial.tell(ticket.id, 0.5)
        while len(answer := trial.ask(50)):
            trial.tell_many([(ticket.id, 0.5) for ticket in answer])
        assert answer.state == "finished"
    assert verify(url, "kept", expect=HEAD).holds


def test_a_database_from_before_there_were_metrics_goes_on_with_some(tmp_path: Path) -> None:
    shutil.copy(KEPT_2, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    assert (version_of(url), has_metrics(url)) == (2, False)
    found = verify(url, "kept", expect=HEAD_2)
    assert found.holds, found.problem
    assert (found.head, found.events, len(found.decisions)) == (HEAD_2, 60, 1)
    assert (version_of(url), has_metrics(url)) == (SCHEMA_VERSION, True)
    with bd.Experiment.open(url, "kept") as trial:
        for ticket in trial.pending():
            assert trial.tell(ticket.id, 0.5, {"revenue": 12.5}) == "recorded"
        told = trial._store.read(lambda view: view.metric_sums(1))
    assert sum(line.count for line in told) == 2
    assert verify(url, "kept", expect=HEAD_2).holds


@pytest.mark.parametrize(("kept", "head"), [(KEPT, HEAD), (KEPT_2, HEAD_2)], ids=["version 1", "version 2"])
def test_an_old_copy_that_cannot_be_written_is_read_as_it_is(
    kept: Path, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so that the question whether this user may is answered by the test."""
    shutil.copy(kept, tmp_path / "old.db")
    url, before = f"sqlite:///{tmp_path}/old.db", kept.read_bytes()
    monkeypatch.setattr(store, "writable", lambda path: False)
    found = verify(url, "kept", expect=head)
    assert found.holds, found.problem
    assert export(read_log(url, "kept"), "csv").startswith(b"ticket,")
    with Experiment.open(url, "kept") as trial:
        assert trial.status().head == head
        assert trial._store.read(lambda view: view.metric_sums(1)) == []
        with pytest.raises(StoreError, match="^the store failed: attempt to write a readonly database$"):
            trial.ask()
    assert (tmp_path / "old.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["old.db"]


def test_a_copy_of_a_newer_version_is_refused_though_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(KEPT_2, tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as database, database:
        database.execute("UPDATE banditto_schema SET version = 99")
    monkeypatch.setattr(store, "writable", lambda path: False)
    with pytest.raises(StoreError, match="has tables of version 99; this banditto reads"):
        verify(f"sqlite:///{tmp_path}/new.db", "kept")


def test_who_may_only_read_an_older_store_on_a_server_can_verify_it(server: PostgresServer) -> None:
    url = server.new_schema()
    with Experiment.create(url, "cta", small()) as experiment:
        experiment.tell_many([(ticket.id, 0.5) for ticket in experiment.ask(12)])
    schema, role = url.rpartition("%3D")[2], f"r{uuid.uuid4().hex[:12]}"
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(sql.text("DROP TABLE banditto_metric"))
        connection.execute(SCHEMA.update().values(version=2))
        connection.execute(sql.text(f"CREATE ROLE {role} LOGIN"))
        connection.execute(sql.text(f"GRANT USAGE ON SCHEMA {schema} TO {role}"))
        connection.execute(sql.text(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"))
    engine.dispose()
    for reader in (url.replace("postgres:@", f"{role}@"), f"{url}%20-cdefault_transaction_read_only%3Don"):
        found = verify(reader, "cta")
        assert found.holds, found.problem
        with Store(reader) as looking:
            assert looking.read(lambda view: view.metric_sums(1)) == []
        with pytest.raises(StoreError, match="^the store failed: "), Experiment.open(reader, "cta") as experiment:
            experiment.ask()
    assert (version_of(url), has_metrics(url)) == (2, False)
    assert verify(url, "cta").holds
    assert (version_of(url), has_metrics(url)) == (SCHEMA_VERSION, True)


def test_upgrading_twice_changes_nothing_more(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(3)
        head = experiment.status().head
    engine = engine_of(store_url)
    with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
        connection.execute(sql.text("DROP INDEX banditto_decision"))
        connection.execute(sql.text("DROP TABLE banditto_metric"))
        connection.execute(SCHEMA.update().values(version=1))
    engine.dispose()
    for _ in range(2):
        found = verify(store_url, "cta")
        assert found.holds
        assert found.head == head
        assert (version_of(store_url), has_index(store_url), has_metrics(store_url)) == (SCHEMA_VERSION, True, True)


def test_the_kept_file_is_what_it_was() -> None:
    """Tests work on copies; a changed file would be another test."""
    assert hashlib.sha256(KEPT.read_bytes()).hexdigest() == SHA256
    assert hashlib.sha256(KEPT_2.read_bytes()).hexdigest() == SHA256_2
