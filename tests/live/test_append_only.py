"""Events are added and never changed, whoever writes to the tables; a store of before gets its triggers when opened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from banditto.live.experiment import Experiment
from banditto.live.store import engine_of
from banditto.live.tables import EVENTS, EXPERIMENTS
from banditto.live.verify import verify
from tests.live.administrators import allow_tampering
from tests.live.test_upgrade import HEAD, HEAD_2, KEPT, KEPT_2, downgraded, old
from tests.live.worlds import finish, small

SHARED = {
    "an event's body": "UPDATE banditto_event SET body = replace(body, '0', '1')",
    "a hash": "UPDATE banditto_event SET hash = '' WHERE number = 2",
    "a time": "UPDATE banditto_event SET time = '' WHERE number = 2",
    "an event less": "DELETE FROM banditto_event WHERE number = 2",
    "the last event": "DELETE FROM banditto_event WHERE number = (SELECT max(number) FROM banditto_event)",
    "a registration": "UPDATE banditto_experiment SET registration = '{}'",
    "a digest": "UPDATE banditto_experiment SET digest = ''",
    "a name": "UPDATE banditto_experiment SET name = 'x'",
    "a date": "UPDATE banditto_experiment SET created = ''",
    "an id": "UPDATE banditto_experiment SET id = 17",
    "an experiment": "DELETE FROM banditto_experiment",
}
OWN = {
    "sqlite": {
        "an event that is replaced": "INSERT OR REPLACE INTO banditto_event SELECT experiment, number, kind, time,"
        " '{}', hash FROM banditto_event WHERE number = 2",
        "an experiment that is replaced": "INSERT OR REPLACE INTO banditto_experiment SELECT id, name, '{}', digest,"
        " created, software, events, head, progress FROM banditto_experiment",
    },
    "postgresql": {
        "all events": "TRUNCATE banditto_event",
        "all experiments": "TRUNCATE banditto_experiment CASCADE",
        "an event that is replaced": "INSERT INTO banditto_event SELECT * FROM banditto_event"
        " ON CONFLICT (experiment, number) DO UPDATE SET body = '{}'",
    },
}


def refused(url: str) -> Iterator[str]:
    """What was tried and refused."""
    engine = engine_of(url)
    for name, statement in (SHARED | OWN[engine.dialect.name]).items():
        with engine.connect().execution_options(banditto_writes=True) as connection:
            with pytest.raises(DBAPIError, match="events are append-only|a registration cannot change"):
                connection.exec_driver_sql(statement)
            connection.rollback()
        yield name
    engine.dispose()


def test_what_was_logged_cannot_be_changed(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as trial:
        trial.tell_many([(ticket.id, 0.5) for ticket in trial.ask(12)])
        assert len(list(refused(store_url))) >= 13
        finish(trial)
    assert verify(store_url, "cta").holds


def test_an_administrator_can_and_is_found_out(store_url: str) -> None:
    Experiment.create(store_url, "cta", small()).close()
    engine = engine_of(store_url)
    with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
        allow_tampering(connection)
        connection.execute(EVENTS.update().values(time="then"))
    engine.dispose()
    assert not verify(store_url, "cta").holds


@pytest.mark.parametrize(("kept", "head"), [(KEPT, HEAD), (KEPT_2, HEAD_2)], ids=["version 1", "version 2"])
def test_a_store_of_before_is_protected_when_it_is_opened(kept: Path, head: str, tmp_path: Path) -> None:
    shutil.copy(kept, tmp_path / "old.db")
    url = f"sqlite:///{tmp_path}/old.db"
    assert verify(url, "kept", expect=head).holds
    assert len(list(refused(url))) >= 13
    assert verify(url, "kept", expect=head).holds


def test_a_store_of_version_3_is_protected_when_it_is_opened(store_url: str) -> None:
    with Experiment.create(store_url, "cta", old()) as trial:
        trial.ask(2)
    engine = engine_of(store_url)
    with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
        allow_tampering(connection)
        downgraded(connection, 3)
        connection.execute(sql.update(EXPERIMENTS).values(name="before"))
    engine.dispose()
    with Experiment.open(store_url, "before") as trial:
        trial.ask(3)
    assert len(list(refused(store_url))) >= 13
