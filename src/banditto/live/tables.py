"""The tables of a store, and how those of an older version become today's.

Version 1 was the draft's. Version 2 finds decisions by an index: without it, a process that comes to a long log reads
all of it.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sql

from banditto.live.connecting import OURS

SCHEMA_VERSION = 2

metadata = sql.MetaData()
_BIG = sql.BigInteger().with_variant(sql.Integer(), "sqlite")

SCHEMA = sql.Table(OURS, metadata, sql.Column("version", sql.Integer, primary_key=True))

EXPERIMENTS = sql.Table(
    "banditto_experiment",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.Text, nullable=False, unique=True),
    sql.Column("registration", sql.Text, nullable=False),
    sql.Column("digest", sql.Text, nullable=False),
    sql.Column("created", sql.Text, nullable=False),
    sql.Column("software", sql.Text, nullable=False),  # of the last writer
    sql.Column("events", _BIG, nullable=False),
    sql.Column("head", sql.Text, nullable=False),  # the hash of the last event
    sql.Column("progress", sql.Text, nullable=False),  # what the events add up to
)

EVENTS = sql.Table(
    "banditto_event",
    metadata,
    sql.Column("experiment", sql.ForeignKey("banditto_experiment.id"), primary_key=True),
    sql.Column("number", _BIG, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("time", sql.Text, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Column("hash", sql.Text, nullable=False),
)
# as text, not as parameters: PostgreSQL uses a partial index only if it can see that a statement is about that part
DECISIONS = EVENTS.c.kind == sql.literal_column("'decide'")
_DECISION_INDEX = sql.Index(
    "banditto_decision", EVENTS.c.experiment, EVENTS.c.number, sqlite_where=DECISIONS, postgresql_where=DECISIONS
)

TICKETS = sql.Table(
    "banditto_ticket",
    metadata,
    sql.Column("experiment", sql.ForeignKey("banditto_experiment.id"), primary_key=True),
    sql.Column("batch", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("position", _BIG, primary_key=True, autoincrement=False),
    sql.Column("attempt", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("arm", sql.Integer, nullable=False),
    sql.Column("issued", sql.Text, nullable=False),
    sql.Column("status", sql.Text, nullable=False),  # open, told, missing, late
    sql.Column("reward", sql.Double),
)
OPEN = TICKETS.c.status == sql.literal_column("'open'")
sql.Index("banditto_open_ticket", TICKETS.c.experiment, TICKETS.c.issued, sqlite_where=OPEN, postgresql_where=OPEN)

REQUESTS = sql.Table(
    "banditto_request",
    metadata,
    sql.Column("experiment", sql.ForeignKey("banditto_experiment.id"), primary_key=True),
    sql.Column("request", sql.Text, primary_key=True),
    sql.Column("event", _BIG, nullable=False),
)


def upgrade(connection: sql.Connection, version: int) -> None:
    """Bring tables of an older version to today's, step by step; events are never touched."""
    for older in range(version, SCHEMA_VERSION):
        _UPGRADES[older](connection)
    connection.execute(SCHEMA.update().values(version=SCHEMA_VERSION))


def _index_decisions(connection: sql.Connection) -> None:
    _DECISION_INDEX.create(connection, checkfirst=True)


_UPGRADES: dict[int, Callable[[sql.Connection], None]] = {1: _index_decisions}
