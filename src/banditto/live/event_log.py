"""The event log: what happened, in order, each event bound to all before it by a hash.

The hash of event n is the sha256 of the hash of event n - 1, the number n, the kind, the time and the body, with line
feeds between them, which none of them contains. Whoever knows the last hash can tell whether anything before it was
changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from banditto.core.digest import canonical_json, canonical_numbers, sha256_of

Kind = Literal["init", "software", "ask", "tell", "late", "correct", "missing", "lost", "totals", "decide", "stop"]
Row = Mapping[Any, Any]  # a line of a table, by the names of its columns
FIRST_HASH = "0" * 64
# What the body of an event has. Logs of earlier versions have `missing`, for one ticket; today it is `lost`.
KEYS = {
    "software": {"versions"},
    "ask": {"batch", "slots", "request"},
    "tell": {"rewards"},
    "late": {"rewards"},
    "correct": {"ticket", "before", "after", "reason"},
    "missing": {"ticket", "reason"},
    "lost": {"tickets", "reason", "by"},
    "totals": {"batch", "counts", "sums"},
    "decide": {"batch", "counts", "sums", "totals", "next"},
    "stop": {"reason"},
}
# What it may have: how many tickets were asked for, in logs since that is kept; metrics, where some were told; how old
# tickets had to be that were given up by a rule; squares of a batch that was told by tickets; and a winner, where a
# policy at that level has named one.
MORE = {
    "ask": {"n"},
    "tell": {"metrics"},
    "late": {"metrics"},
    "lost": {"older_than"},
    "decide": {"squares", "others", "winner"},
}


class Event(NamedTuple):
    """One line of the log, with the hash that chains it to the one before."""

    number: int  # from 1
    kind: str
    time: str  # UTC, ISO 8601
    body: str  # canonical JSON
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body, parsed from JSON."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


def chained(previous: str, number: int, kind: str, time: str, body: str) -> str:
    """Hash an event together with the hash of the one before it; 64 hexadecimal digits come back."""
    # FROZEN(v1): the heads of receipts and exports end chains of these hashes
    return sha256_of(f"{previous}\n{number}\n{kind}\n{time}\n{body}")


def body_of(kind: str, content: Mapping[str, Any]) -> str:
    """Return an event's body as canonical JSON; the most frequent kinds take a faster way to the same text."""
    if kind == "tell" and len(content) == 1:
        return f'{{"rewards":{canonical_numbers(content["rewards"])}}}'
    if kind == "ask" and "n" in content:
        first = f'{{"batch":{content["batch"]},"n":{content["n"]},"request":{canonical_json(content["request"])}'
        return f'{first},"slots":{canonical_numbers(content["slots"])}}}'
    return canonical_json(content)


def following(previous: str, number: int, kind: Kind, time: str, content: Mapping[str, Any]) -> Event:
    """Make the event that follows the one with the hash `previous`."""
    body = body_of(kind, content)
    return Event(number, kind, time, body, chained(previous, number, kind, time, body))
