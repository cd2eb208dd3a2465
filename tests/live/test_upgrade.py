"""Tables of an older version: a kept database goes on where it was, and no event is touched."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import sqlalchemy as sql

import banditto as bd
from banditto.live.experiment import Experiment
from banditto.live.sql import EVENTS, SCHEMA, SCHEMA_VERSION
from banditto.live.store import engine_of
from banditto.live.verify import verify
from tests.live.worlds import small

KEPT = Path(__file__).parent / "data" / "version-1.db"
HEAD = "a7a8e872f76b1e2e635eca1ef84001c718c65730988318af875456beeaab5e5e"
SHA256 = "425df51e6bfe4a2292958de61b0b6f9ec4b66570a38571628791c472a645a088"
DIGEST = "40d62a06e74d9b9d353b04a1c97fb30312b465d4d62ce4b3ca9ea988eb3b6e9c"


def has_index(url: str) -> bool:
    engine = engine_of(url)
    with engine.connect() as connection:
        names = {index["name"] for index in sql.inspect(connection).get_indexes(EVENTS.name)}
    engine.dispose()
    return "banditto_decision" in names


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


def test_upgrading_twice_changes_nothing_more(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(3)
        head = experiment.status().head
    engine = engine_of(store_url)
    with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
        connection.execute(sql.text("DROP INDEX banditto_decision"))
        connection.execute(SCHEMA.update().values(version=1))
    engine.dispose()
    for _ in range(2):
        found = verify(store_url, "cta")
        assert found.holds
        assert found.head == head
        assert (version_of(store_url), has_index(store_url)) == (SCHEMA_VERSION, True)


def test_the_kept_file_is_what_it_was() -> None:
    """Tests work on copies; a changed file would be another test."""
    assert hashlib.sha256(KEPT.read_bytes()).hexdigest() == SHA256
