"""Triggers that keep a log as it was written: events are added, never changed or taken away.

They stop mistakes and whoever may only use the tables. An administrator can drop them; what he then changes is found by
`verify`, or by a receipt outside the store.
"""

from __future__ import annotations

import sqlalchemy as sql

_FROZEN = ("id", "name", "registration", "digest", "created")  # columns of an experiment; the others tell where it is
_EVENTS, _EXPERIMENTS = "banditto_event", "banditto_experiment"
_SAYS = {_EVENTS: "events are append-only", _EXPERIMENTS: "a registration cannot change"}


def make_append_only(connection: sql.Connection) -> None:
    """Create the triggers that keep the log from being changed; existing ones are replaced."""
    for statement in _sqlite() if connection.dialect.name == "sqlite" else _postgresql():
        connection.exec_driver_sql(statement)


def _changes(table: str) -> str:
    """Return the SQL for the updates that a table refuses: all of them, or those of its frozen columns."""
    return "UPDATE" if table == _EVENTS else f"UPDATE OF {', '.join(_FROZEN)}"


def _sqlite() -> list[str]:
    """Return the SQL statements that create SQLite's triggers against updates, deletions and replacements."""
    made = []
    for table, says in _SAYS.items():
        key = "experiment = NEW.experiment AND number = NEW.number"
        if table == _EXPERIMENTS:
            key = "id = NEW.id OR name = NEW.name"
        conditions = {
            "update": _changes(table),
            "delete": "DELETE",
            # INSERT OR REPLACE takes the old row away without a trigger for that
            "replace": f"INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {key})",
        }
        for kind, when in conditions.items():
            where = when if kind == "replace" else f"{when} ON {table}"
            made += [
                f"DROP TRIGGER IF EXISTS {table}_no_{kind}",
                f"CREATE TRIGGER {table}_no_{kind} BEFORE {where} BEGIN SELECT RAISE(ABORT, '{says}'); END",
            ]
    return made


def _postgresql() -> list[str]:
    """Return the SQL statements that create PostgreSQL's triggers against updates, deletions and truncation."""
    made = [
        "CREATE OR REPLACE FUNCTION banditto_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '%%', TG_ARGV[0] USING ERRCODE = 'restrict_violation'; END $$"
    ]
    for table, says in _SAYS.items():
        for kind, when in (("update", _changes(table)), ("delete", "DELETE"), ("truncate", "TRUNCATE")):
            name = f"{table}_no_{kind}"
            made += [
                f"DROP TRIGGER IF EXISTS {name} ON {table}",
                f"CREATE TRIGGER {name} BEFORE {when} ON {table} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION banditto_refuse('{says}')",
            ]
    return made
