"""The tables of a store, their versions, and how an older store is brought to today's.

Version 1 of the tables was the draft's. Version 2 finds decisions by an index: without it, a process that comes to a
long log reads all of it. Version 3 has a table of metrics; who only looks at an earlier one does without it: its log
has none.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sql

SCHEMA_VERSION = 3

metadata = sql.MetaData()
_BIG = sql.BigInteger().with_variant(sql.Integer(), "sqlite")

# the table by which a store is known
SCHEMA = sql.Table("banditto_schema", metadata, sql.Column("version", sql.Integer, primary_key=True))

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
    sql.Column("progress", sql.Text, nullable=False),  # the standing: what the events add up to
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

METRICS = sql.Table(
    "banditto_metric",
    metadata,
    sql.Column("experiment", sql.ForeignKey("banditto_experiment.id"), primary_key=True),
    sql.Column("batch", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("position", _BIG, primary_key=True, autoincrement=False),
    sql.Column("attempt", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("value", sql.Double, nullable=False),
)
sql.Index("banditto_metric_name", METRICS.c.experiment, METRICS.c.name)


def make_tables(connection: sql.Connection) -> None:
    """Make the tables of an empty store."""
    metadata.create_all(connection)
    connection.execute(SCHEMA.insert().values(version=SCHEMA_VERSION))


def version_of(connection: sql.Connection) -> int | None:
    """Look up the version of a store's tables; None comes back if there are none."""
    if not sql.inspect(connection).has_table(SCHEMA.name):
        return None
    version: int = connection.execute(sql.select(SCHEMA.c.version)).scalar_one()
    return version


def upgrade(connection: sql.Connection, version: int) -> None:
    """Bring tables of an older version to today's, step by step; events are never touched."""
    for older in range(version, SCHEMA_VERSION):
        _UPGRADES[older](connection)
    connection.execute(SCHEMA.update().values(version=SCHEMA_VERSION))


def _index_decisions(connection: sql.Connection) -> None:
    _DECISION_INDEX.create(connection, checkfirst=True)


def _add_metrics(connection: sql.Connection) -> None:
    METRICS.create(connection, checkfirst=True)


_UPGRADES: dict[int, Callable[[sql.Connection], None]] = {1: _index_decisions, 2: _add_metrics}
