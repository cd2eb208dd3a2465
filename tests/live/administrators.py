"""What an administrator of a database can do to a store: take away what keeps the log as it was written."""

from __future__ import annotations

import sqlite3

import sqlalchemy as sql

_TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger'"


def allow_tampering(connection: sql.Connection) -> None:
    """Let this transaction, and those after it, change what was logged."""
    if connection.dialect.name == "sqlite":
        names = connection.exec_driver_sql(_TRIGGERS).scalars().all()
        for name in names:
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
    else:
        for table in ("banditto_event", "banditto_experiment"):
            connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")


def allow_tampering_with_file(database: sqlite3.Connection) -> None:
    """The same for a file that is open in Python's own driver."""
    for (name,) in database.execute(_TRIGGERS).fetchall():
        database.execute(f"DROP TRIGGER {name}")
