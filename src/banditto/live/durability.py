"""Settings of a PostgreSQL server without which a power cut can take back what was acknowledged."""

from __future__ import annotations

import logging

import sqlalchemy as sql

logger = logging.getLogger("banditto.live")
_NEEDED = {
    "fsync": "commits do not wait for the disk",
    "full_page_writes": "a page that is half written cannot be repaired",
    "synchronous_commit": "commits do not wait for the disk",
}


def weak_settings(connection: sql.Connection) -> list[str]:
    """List a server's settings that may lose acknowledged steps in a power cut; always empty for SQLite."""
    if connection.dialect.name == "sqlite":
        return []
    query = sql.text("SELECT name, setting FROM pg_settings WHERE name = ANY(:names)")
    found = connection.execute(query, {"names": list(_NEEDED)})
    return [f"{name} is off ({_NEEDED[name]})" for name, setting in sorted(map(tuple, found)) if setting == "off"]


def warn_of_weak_settings(connection: sql.Connection) -> None:
    """Write a warning to the log `banditto.live` if acknowledged steps may not survive a power cut."""
    if weak := weak_settings(connection):
        logger.warning("a power cut can take back acknowledged steps: %s on the server", ", ".join(weak))
