"""All that a live experiment does, through PgBouncer in transaction mode."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sql

from banditto.core.errors import StoreError
from banditto.live.experiment import Experiment
from banditto.live.postgresql import PatientConnection
from banditto.live.store import Store
from banditto.live.store_settings import StoreSettings
from banditto.live.verify import verify
from tests.live.poolers import Pooler
from tests.live.servers import PostgresServer
from tests.live.test_concurrency import crowd, test_threads_may_share_an_experiment
from tests.live.test_contract import *  # noqa: F403  which are the tests, with the stores of this file
from tests.live.worlds import finish, small

pytestmark = pytest.mark.slow
__all__ = ["test_threads_may_share_an_experiment"]


@pytest.fixture(scope="module")
def pooler(server: PostgresServer) -> Iterator[Pooler]:
    made = Pooler(server)
    yield made
    made.close()


@pytest.fixture
def store_url(pooler: Pooler) -> str:
    """The URL of an empty store behind the pooler, in place of those of each kind."""
    return pooler.new_store()


@pytest.mark.long
def test_sixteen_processes_share_three_of_the_server(store_url: str, tmp_path: Path) -> None:
    crowd(store_url, tmp_path / "logs", 1.0)


def test_a_pooler_is_noticed_and_nothing_is_prepared(store_url: str, server: PostgresServer) -> None:
    with Store(store_url) as store:
        for _ in range(20):
            store.write(lambda rows: None)
        with store._engine.connect() as connection:
            driver = connection.connection.dbapi_connection
            assert isinstance(driver, PatientConnection)
            assert (driver.pooled, driver.prepare_threshold) == (True, None)
            prepared = connection.execute(sql.text("SELECT count(*) FROM pg_prepared_statements")).scalar()
            assert prepared == 0
    with Store(server.new_schema()) as direct, direct._engine.connect() as connection:
        driver = connection.connection.dbapi_connection
        assert isinstance(driver, PatientConnection)
        assert (driver.pooled, driver.prepare_threshold) == (False, 5)


def test_limits_do_not_stay_on_the_servers_processes(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as trial:
        finish(trial)
    with psycopg.connect(store_url, autocommit=True) as connection:
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            for _ in range(4):
                assert connection.execute(f"SHOW {name}".encode()).fetchone() == ("0",)


def test_who_holds_the_lock_is_told_behind_a_pooler(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small(), settings=StoreSettings(deadline=3)) as trial:
        with psycopg.connect(store_url, application_name="stranger") as stranger:
            stranger.execute("SELECT * FROM banditto_experiment FOR UPDATE")
            begun = time.monotonic()
            with pytest.raises(StoreError, match=r"; process \d+ of the server holds the lock \(stranger"):
                trial.ask()
            assert time.monotonic() - begun < 3 + 20
            stranger.rollback()
        assert trial.ask()[0].id == "cta.1-1"
    assert verify(store_url, "cta").holds
