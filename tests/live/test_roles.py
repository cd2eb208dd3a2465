"""Roles on a real server: who may run a trial cannot rewrite it, and an auditor can only read."""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

import psycopg
import pytest

from banditto.core.errors import InvalidArgument, StoreError
from banditto.live.experiment import Experiment
from banditto.live.replicate import replicate
from banditto.live.roles import main, roles_script
from banditto.live.tables import metadata
from banditto.live.verify import verify
from tests.live.servers import PostgresServer
from tests.live.test_append_only import OWN, SHARED
from tests.live.worlds import exported, finish, small


class Urls(NamedTuple):
    owner: str
    trial: str
    auditor: str


@pytest.fixture
def urls(server: PostgresServer) -> Urls:
    """A store with an experiment, for its owner and for people of both roles."""
    url, tag = server.new_schema(), uuid.uuid4().hex[:8]
    schema = url.rpartition("%3D")[2]
    Experiment.create(url, "cta", small()).close()
    trial, auditor = f"trial_{tag}", f"auditor_{tag}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        for _ in range(2):  # twice does no harm
            connection.execute(roles_script(schema, trial, auditor).encode())
        connection.execute(f"CREATE ROLE anna_{tag} LOGIN IN ROLE {trial}".encode())
        connection.execute(f"CREATE ROLE bert_{tag} LOGIN IN ROLE {auditor}".encode())
    return Urls(url, url.replace("postgres:@", f"anna_{tag}@"), url.replace("postgres:@", f"bert_{tag}@"))


def test_the_trials_role_runs_a_trial_from_beginning_to_end(urls: Urls) -> None:
    with Experiment.open(urls.trial, "cta") as trial:
        for ticket in trial.ask(12):
            trial.tell(ticket.id, 0.5, {"revenue": 12.5})
        assert trial.ask(2)[0].id == "cta.2-1"
        assert trial.tell("cta.2-1", 0.5) == "recorded"
        assert trial.correct("cta.2-1", 0.25, "typo") == "recorded"
        assert trial.missing("cta.2-2", "lost") == "recorded"
        finish(trial)
        assert trial.status().state == "finished"
    with Experiment.create(urls.trial, "another", small()) as trial:
        assert trial.stop("enough") == "recorded"
    assert verify(urls.trial, "cta").holds
    assert verify(urls.owner, "cta").holds


REWRITING = {
    "a trigger": "DROP TRIGGER banditto_event_no_update ON banditto_event",
    "a trigger that sleeps": "ALTER TABLE banditto_event DISABLE TRIGGER ALL",
    "a replica": "SET session_replication_role = replica",
    "the function": "CREATE OR REPLACE FUNCTION banditto_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
    "a table": "DROP TABLE banditto_event",
    "another table": "CREATE TABLE banditto_more (x int)",
    "a column": "ALTER TABLE banditto_event ADD COLUMN x int",
    "tickets": "DELETE FROM banditto_ticket",
    "a ticket's arm": "UPDATE banditto_ticket SET arm = 1",
    "metrics": "UPDATE banditto_metric SET value = 0",
    "requests": "DELETE FROM banditto_request",
    "the version": "UPDATE banditto_schema SET version = 99",
}
WRITING = {
    "an event": "INSERT INTO banditto_event VALUES (1, 99, 'tell', '', '{}', '')",
    "a ticket": "UPDATE banditto_ticket SET status = 'told'",
    "a head": "UPDATE banditto_experiment SET head = ''",
}


def refused(url: str, statements: dict[str, str]) -> None:
    for statement in statements.values():
        with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


def test_the_trials_role_cannot_rewrite_it(urls: Urls) -> None:
    with Experiment.open(urls.trial, "cta") as trial:
        trial.tell_many([(ticket.id, 0.5) for ticket in trial.ask(12)])
    refused(urls.trial, SHARED | OWN["postgresql"] | REWRITING)
    assert verify(urls.owner, "cta").holds


def test_an_auditor_reads_and_does_nothing_else(urls: Urls) -> None:
    with Experiment.open(urls.trial, "cta") as trial:
        trial.tell_many([(ticket.id, 0.5) for ticket in trial.ask(12)])
    assert verify(urls.auditor, "cta").holds
    assert exported(urls.auditor, "cta", "csv") == exported(urls.owner, "cta", "csv")
    assert replicate(f"{urls.auditor}#cta", f"{urls.trial}#cta").same
    with Experiment.open(urls.auditor, "cta") as looking:
        assert looking.status().spent == 12
        with pytest.raises(StoreError, match="permission denied"):
            looking.ask()
    refused(urls.auditor, SHARED | OWN["postgresql"] | REWRITING | WRITING)


def test_the_script_names_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--schema", "trials", "--trial", "runner"])
    script = capsys.readouterr().out
    assert script == roles_script("trials", "runner")
    assert {name for name in metadata.tables if re.search(rf"GRANT [^;]*\b{name}\b", script)} == set(metadata.tables)
    assert "banditto_trial" not in script
    assert "GRANT USAGE ON SCHEMA trials TO runner, banditto_auditor;" in script
    assert "SET search_path = trials;" in script


@pytest.mark.parametrize("wrong", ["", "a b", "x; DROP TABLE y", "Ä", "x" * 64])
def test_names_that_are_none(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidArgument, match="^trial: got .*, allowed: a name of lower-case letters"):
        roles_script(trial=wrong)
    with pytest.raises(SystemExit):
        main(["--auditor", wrong])
    assert "auditor: got" in capsys.readouterr().err
