"""Tables of an older version: a kept database goes on where it was, and no event is touched."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import sqlite3
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sql

import banditto as bd
from banditto.core.errors import LogError, StoreError
from banditto.live import connections
from banditto.live.experiment import Experiment
from banditto.live.order import ORDER_RULE_1
from banditto.live.registration import Registration
from banditto.live.store import Store, engine_of
from banditto.live.tables import EVENTS, EXPERIMENTS, METRICS, QUEUE, SCHEMA, SCHEMA_VERSION
from banditto.live.verify import verify
from tests.live.administrators import allow_tampering
from tests.live.servers import PostgresServer
from tests.live.worlds import exported, small, walked_order

KEPT = Path(__file__).parent / "data" / "version-1.db"
HEAD = "a7a8e872f76b1e2e635eca1ef84001c718c65730988318af875456beeaab5e5e"
SHA256 = "425df51e6bfe4a2292958de61b0b6f9ec4b66570a38571628791c472a645a088"
KEPT_2 = Path(__file__).parent / "data" / "version-2.db"  # before there were metrics
HEAD_2 = "1d23946777e62d365e795567335a35696bc4b2af2bbfa24af41d9a997be7674e"
SHA256_2 = "c7dff5aa8a9c7c2d4bfd5ddb52ad3be928dd7464a3502aaf1e863cae2e50c35a"
KEPT_3 = Path(__file__).parent / "data" / "version-3.db"  # slots that wait are in the experiment's row
HEAD_3 = "f1048f8ff85018ceff4ab3719e713f8d7038599566413a6f0856edb0ce739451"
SHA256_3 = "46e32b9f2de40f5180dcdc88a494ded2c7fc4762eec1253e39e30322377ae9e5"
EXPORTED_3 = Path(__file__).parent / "data" / "version-3.json"  # of the same experiment, over many lines
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


def downgraded(connection: sql.Connection, version: int) -> None:
    """Make tables of today as they were before version 4, or 3, or 2; registrations must be of version 1."""
    columns = (EXPERIMENTS.c.id, EXPERIMENTS.c.progress, EXPERIMENTS.c.software)
    for experiment, text, software in connection.execute(sql.select(*columns)).all():
        content = json.loads(text)
        query = sql.select(QUEUE.c.position, QUEUE.c.attempt).where(QUEUE.c.experiment == experiment)
        again = [list(place) for place in connection.execute(query.order_by(QUEUE.c.place))]
        before = {key: content[key] for key in ("batch", "status", "issued")}
        after = {key: content[key] for key in ("counts", "sums")}
        values = {
            "progress": json.dumps({**before, "again": again, **after}, separators=(",", ":")),
            "software": json.dumps(json.loads(software)[-1]),
        }
        connection.execute(EXPERIMENTS.update().where(EXPERIMENTS.c.id == experiment).values(values))
    for table in ("banditto_queue", "banditto_unit_key", *(("banditto_metric",) if version < 3 else ())):
        connection.execute(sql.text(f"DROP TABLE {table}"))
    if version < 2:
        connection.execute(sql.text("DROP INDEX banditto_decision"))
    connection.execute(SCHEMA.update().values(version=version))


def old() -> Registration:
    return replace(small(), order=ORDER_RULE_1)


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


def test_a_database_from_before_the_queue_had_a_table_goes_on(tmp_path: Path) -> None:
    """It has slots that wait, losses of both batches, late rewards, and two versions of the software in turn."""
    shutil.copy(KEPT_3, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    with closing(sqlite3.connect(tmp_path / "old.db")) as database:
        kinds = [kind for (kind,) in database.execute("SELECT kind FROM banditto_event ORDER BY number")]
    assert kinds.count("missing") == 6
    assert kinds.count("software") == 3
    found = verify(url, "kept", expect=HEAD_3)
    assert found.holds, found.problem
    assert (version_of(url), found.head, found.events, len(found.decisions)) == (SCHEMA_VERSION, HEAD_3, 21, 1)
    with bd.Experiment.open(url, "kept") as trial:
        status = trial.status()
        assert status.tickets == {"open": 4, "told": 13, "missing": 4, "late": 2}
        assert (status.told, status.issued) == ({"A": 0, "B": 1}, 9)
        again = trial.ask(6)
        assert [ticket.id for ticket in again] == ["2-2-2", "2-7-2", "2-4-2", "2-5-3", "2-10", "2-11"]
        assert trial.missing("2-7-2", "lost", by="ann") == "recorded"
        assert trial.ask(1)[0].id == "2-7-3"
        for ticket in trial.pending():
            trial.tell(ticket.id, 0.5)
        while len(answer := trial.ask(50)):
            trial.tell_many([(ticket.id, 0.5) for ticket in answer])
        assert answer.state == "finished"
    found = verify(url, "kept", expect=HEAD_3)
    assert found.holds, found.problem
    order = [slot for batch, row in enumerate(found.decisions, 1) for slot in walked_order(7, batch, row.counts)]
    rows = csv.DictReader(io.StringIO(exported(url, "kept", "csv").decode()))
    assert [int(row["arm"]) for row in rows if row["attempt"] == "1"] == order


def test_an_export_over_many_lines_is_still_read(tmp_path: Path) -> None:
    """As exports were before there was an event on a line."""
    shutil.copy(KEPT_3, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    (tmp_path / "new.json").write_bytes(exported(url, "kept", "json"))
    before, after = json.loads(EXPORTED_3.read_text()), json.loads((tmp_path / "new.json").read_text())
    for content in (before, after):  # which rests on the rule of the day
        content.pop("analysis")
    assert before == after
    assert len(EXPORTED_3.read_text().splitlines()) > len((tmp_path / "new.json").read_text().splitlines()) + 100
    expected = bd.analyse(f"{url}#kept").to_dict()
    assert bd.analyse(EXPORTED_3).to_dict() == bd.analyse(tmp_path / "new.json").to_dict() == expected
    changed = tmp_path / "changed.json"
    changed.write_text(EXPORTED_3.read_text().replace("left the page", "left a page"))
    with pytest.raises(LogError, match="^event 5: its hash is wrong"):
        bd.analyse(changed)


@pytest.mark.parametrize(("kept", "head"), [(KEPT, HEAD), (KEPT_2, HEAD_2), (KEPT_3, HEAD_3)])
def test_an_old_copy_that_cannot_be_written_is_read_as_it_is(
    kept: Path, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so that the question whether this user may is answered by the test."""
    shutil.copy(kept, tmp_path / "old.db")
    url, before = f"sqlite:///{tmp_path}/old.db", kept.read_bytes()
    monkeypatch.setattr(connections, "writable", lambda path: False)
    found = verify(url, "kept", expect=head)
    assert found.holds, found.problem
    assert exported(url, "kept", "csv").startswith(b"ticket,")
    with Experiment.open(url, "kept") as trial:
        assert trial.status().head == head
        assert (trial._store.read(lambda view: view.metric_sums(1)) == []) == (kept != KEPT_3)
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
    monkeypatch.setattr(connections, "writable", lambda path: False)
    with pytest.raises(StoreError, match="has tables of version 99; this banditto reads"):
        verify(f"sqlite:///{tmp_path}/new.db", "kept")


def test_who_may_only_read_an_older_store_on_a_server_can_verify_it(server: PostgresServer) -> None:
    url = server.new_schema()
    with Experiment.create(url, "cta", old()) as experiment:
        experiment.tell_many([(ticket.id, 0.5) for ticket in experiment.ask(12)])
    schema, role = url.rpartition("%3D")[2], f"r{uuid.uuid4().hex[:12]}"
    engine = engine_of(url)
    with engine.begin() as connection:
        downgraded(connection, 2)
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
    with Experiment.create(store_url, "cta", old()) as experiment:
        experiment.ask(3)
        experiment.missing("1-2", "lost")
        head = experiment.status().head
    engine = engine_of(store_url)
    with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
        allow_tampering(connection)
        downgraded(connection, 1)
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
    assert hashlib.sha256(KEPT_3.read_bytes()).hexdigest() == SHA256_3
