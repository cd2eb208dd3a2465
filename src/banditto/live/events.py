"""Events: what happened, in order, each bound to all before it by a hash.

The hash of event n is the sha256 of the hash of event n - 1, the number n, the kind, the time and the body, with line
feeds between them, which none of them contains. Whoever knows the last hash can tell whether anything before it was
changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from banditto.core.digest import canonical_json, sha256_of

Kind = Literal["init", "software", "ask", "tell", "late", "correct", "missing", "totals", "decide", "stop"]
FIRST_HASH = "0" * 64


class Event(NamedTuple):
    """One line of the log."""

    number: int  # from 1
    kind: str
    time: str  # UTC, ISO 8601
    body: str  # canonical JSON
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body, parsed."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


def chained(previous: str, number: int, kind: str, time: str, body: str) -> str:
    """The hash of an event."""
    return sha256_of("\n".join((previous, str(number), kind, time, body)))


def following(previous: str, number: int, kind: Kind, time: str, content: Mapping[str, Any]) -> Event:
    """The event after the one with this hash."""
    body = canonical_json(content)
    return Event(number, kind, time, body, chained(previous, number, kind, time, body))
