"""A server whose settings leave acknowledged steps to chance is named as such; a step is done all the same."""

from __future__ import annotations

import logging
import time

import psycopg
import pytest

from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from banditto.report.self_test import examine
from tests.live.servers import PostgresServer
from tests.live.worlds import small


def test_a_server_that_does_not_wait_for_its_disk_is_warned_of(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The tests' own server does not, as nobody cuts its power."""
    url = server.new_schema()
    with caplog.at_level(logging.WARNING, "banditto.live"), Experiment.create(url, "cta", small()) as trial:
        trial.ask()
        trial.ask()
        trial.status()
    told = "a power cut can take back acknowledged steps: fsync is off (commits do not wait for the disk) on the server"
    assert caplog.messages == [told]  # once
    assert verify(url, "cta").holds
    golden, store = examine(url).checks
    assert (golden.outcome, store.outcome) == ("ok", "ok")
    assert "; warning: a power cut can take back steps: fsync is off (commits" in store.detail


@pytest.mark.slow
def test_a_server_that_does_is_not(caplog: pytest.LogCaptureFixture) -> None:
    server = PostgresServer(durable=True)
    try:
        url = server.new_schema()
        with caplog.at_level(logging.WARNING, "banditto.live"):
            Experiment.create(url, "cta", small()).close()
            assert caplog.messages == []
            assert "warning" not in examine(url).checks[1].detail
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET full_page_writes = off")
                connection.execute("ALTER SYSTEM SET synchronous_commit = off")  # which every step sets for itself
                connection.execute("SELECT pg_reload_conf()")
            while "warning" not in examine(url).checks[1].detail:  # the server reads its settings in a moment
                time.sleep(0.1)
            assert "full_page_writes is off (a page" in examine(url).checks[1].detail
            assert "synchronous_commit" not in examine(url).checks[1].detail
    finally:
        server.close()


def test_a_file_has_no_such_settings(tmp_path: object, caplog: pytest.LogCaptureFixture) -> None:
    Experiment.create(f"sqlite:///{tmp_path}/x.db", "cta", small()).close()
    assert caplog.messages == []
    assert "warning" not in examine(f"sqlite:///{tmp_path}/x.db").checks[1].detail
