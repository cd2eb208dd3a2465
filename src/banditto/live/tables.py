"""The tables of a store, their versions, and how an older store is brought to today's.

Version 1 of the tables was the draft's. Version 2 finds decisions by an index: without it, a process that comes to a
long log reads all of it. Version 3 has a table of metrics; who only looks at an earlier one does without it: its log
has none. Version 4 keeps slots that wait to be handed out again in a table, not in the experiment's row, which every
step writes; counts tickets there, so that nobody scans them; has a key for hashes of units; and
refuses to change what was logged. It has a table of tokens, too, for the service.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import sqlalchemy as sql

from banditto.live.append_only import make_append_only

SCHEMA_VERSION = 4

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
    sql.Column("software", sql.Text, nullable=False),  # versions that have written, in the order of their first event
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
_DECISION_INDEX = sql.Index("banditto_decision", EVENTS.c.experiment, EVENTS.c.number, sqlite_where=DECISIONS)

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
_OPEN_INDEX = sql.Index("banditto_open_ticket", TICKETS.c.experiment, TICKETS.c.issued, sqlite_where=OPEN)

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

# slots of the batch that is being played whose rewards will not come: they are handed out again, in this order
QUEUE = sql.Table(
    "banditto_queue",
    metadata,
    sql.Column("experiment", sql.ForeignKey("banditto_experiment.id"), primary_key=True),
    sql.Column("place", _BIG, primary_key=True, autoincrement=False),
    sql.Column("position", _BIG, nullable=False),
    sql.Column("attempt", sql.Integer, nullable=False),
)

# what the ids of units are hashed with; it stands in no log and in no export
UNIT_KEYS = sql.Table(
    "banditto_unit_key",
    metadata,
    sql.Column("experiment", sql.ForeignKey("banditto_experiment.id"), primary_key=True),
    sql.Column("key", sql.Text, nullable=False),
)

# who may come in by the service: a token's public half, and a hash of its secret one
TOKENS = sql.Table(
    "banditto_token",
    metadata,
    sql.Column("id", sql.Text, primary_key=True),
    sql.Column("hash", sql.Text, nullable=False),  # sha256 of the secret, in hexadecimal
    sql.Column("scopes", sql.Text, nullable=False),  # such as ask,tell
    sql.Column("experiment", sql.Text),  # by its name, which need not exist yet; null: all of them
    sql.Column("label", sql.Text, nullable=False),
    sql.Column("created", sql.Text, nullable=False),
    sql.Column("expires", sql.Text),  # null: never
    sql.Column("revoked", sql.Text),  # when; null: it was not
)


def make_tables(connection: sql.Connection) -> None:
    """Make the tables of an empty store."""
    _make_indices_partial(connection)
    metadata.create_all(connection)
    make_append_only(connection)
    connection.execute(SCHEMA.insert().values(version=SCHEMA_VERSION))


def _make_indices_partial(connection: sql.Connection) -> None:
    """Say which rows PostgreSQL should index. Said above, it would load that dialect for every file of SQLite, too."""
    if connection.dialect.name == "postgresql":
        for index, rows in ((_DECISION_INDEX, DECISIONS), (_OPEN_INDEX, OPEN)):
            index.dialect_options["postgresql"]["where"] = rows


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
    _make_indices_partial(connection)
    _DECISION_INDEX.create(connection, checkfirst=True)


def _add_metrics(connection: sql.Connection) -> None:
    METRICS.create(connection, checkfirst=True)


def _number_queues(connection: sql.Connection) -> None:
    """Upgrade to version 4: move waiting slots into their table, count tickets, list software versions."""
    QUEUE.create(connection, checkfirst=True)
    UNIT_KEYS.create(connection, checkfirst=True)
    TOKENS.create(connection, checkfirst=True)
    columns = (EXPERIMENTS.c.id, EXPERIMENTS.c.progress)
    for experiment, progress in connection.execute(sql.select(*columns)).all():
        text, waiting = renewed_progress(connection, experiment, progress)
        first = json.loads(text)["queue"][0]
        rows = [
            {"experiment": experiment, "place": first + place, "position": position, "attempt": attempt}
            for place, (position, attempt) in enumerate(waiting)
        ]
        if rows:
            connection.execute(QUEUE.insert(), rows)
        query = sql.select(EVENTS.c.body).where(EVENTS.c.experiment == experiment, EVENTS.c.kind == "software")
        versions: list[Mapping[str, str]] = []
        for body in connection.execute(query.order_by(EVENTS.c.number)).scalars():
            version = json.loads(body)["versions"]
            versions += [] if version in versions else [version]
        values = {"progress": text, "software": json.dumps(versions) if versions else ""}
        connection.execute(EXPERIMENTS.update().where(EXPERIMENTS.c.id == experiment).values(**values))


def renewed_progress(connection: sql.Connection, experiment: int, text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the standing of an older store as today's JSON, and the slots that wait to be handed out again."""
    content = json.loads(text)
    waiting = [(int(position), int(attempt)) for position, attempt in content.pop("again")]
    mine = TICKETS.c.experiment == experiment
    query = sql.select(TICKETS.c.status, sql.func.count()).where(mine)
    counts: dict[str, int] = {row[0]: row[1] for row in connection.execute(query.group_by(TICKETS.c.status))}
    lost = (TICKETS.c.batch == content["batch"], TICKETS.c.status.in_(("missing", "late")))
    given_up = connection.execute(sql.select(sql.func.count()).where(mine, *lost)).scalar_one()
    ordered = {
        **{key: content[key] for key in ("batch", "status", "issued")},
        "queue": [given_up - len(waiting), given_up],
        **{key: content[key] for key in ("counts", "sums")},
        "tickets": [counts.get(state, 0) for state in ("open", "told", "missing", "late")],
    }
    return json.dumps(ordered, separators=(",", ":")), waiting


def _make_fourth(connection: sql.Connection) -> None:
    _number_queues(connection)
    make_append_only(connection)


_UPGRADES: dict[int, Callable[[sql.Connection], None]] = {1: _index_decisions, 2: _add_metrics, 3: _make_fourth}
