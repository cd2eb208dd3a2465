"""`verify`: replay an experiment's log, and compare the tables beside it with what the replay adds up to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from banditto.core.errors import InvalidArgument
from banditto.engine.blocks import Progress
from banditto.live.progress import LogError, Ticket
from banditto.live.replay import Decision, Replay, replayed
from banditto.live.rows import Reading, Row, unknown
from banditto.live.store import Store


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What a replay found."""

    name: str
    digest: str
    events: int
    head: str
    problem: str | None  # None: everything follows
    event: int | None  # the first bad event
    decisions: tuple[Decision, ...]

    @property
    def holds(self) -> bool:
        """Whether the log verifies."""
        return self.problem is None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "digest": self.digest,
            "events": self.events,
            "head": self.head,
            "verified": self.holds,
            "problem": self.problem,
            "event": self.event,
            "decisions": len(self.decisions),
        }


def verify(url: str, name: str, expect: str | None = None, *, progress: Progress | None = None) -> Verification:
    """Replay an experiment; `expect` is the head that a receipt or an export gave."""
    if expect is not None:
        given, expect = expect, expect.strip().lower() if isinstance(expect, str) else ""
        if not re.fullmatch("[0-9a-f]{64}", expect):
            raise InvalidArgument("expect", given, "a head: 64 hexadecimal digits")
    store = Store(url)
    try:
        return store.read(lambda view: verified(view, name, expect, progress))
    finally:
        store.close()


def verified(view: Reading, name: str, expect: str | None = None, progress: Progress | None = None) -> Verification:
    """The same inside a transaction, for those who go on to read what was verified."""
    row = view.find(name)
    if row is None:
        raise unknown(name, view)
    replay: Replay | None = None
    problem: str | None = None
    number: int | None = None
    heads: set[str] = set()
    try:
        for event, after in replayed(view, row, progress):
            replay = after
            if event.hash == expect:
                heads.add(event.hash)
        if replay is None:
            raise LogError("the log is empty", 1)
        problem = _beside(view, row, replay)
        if problem is None and expect is not None and not heads:
            problem = "the head of the receipt is not in the log: it was written anew, or is of another run"
    except LogError as error:
        problem, number = error.problem, error.number
    return Verification(
        name=row["name"],
        digest=row["digest"],
        events=row["events"],
        head=row["head"],
        problem=problem,
        event=number,
        decisions=() if replay is None else tuple(replay.decisions),
    )


def _beside(view: Reading, row: Row, replay: Replay) -> str | None:
    """What the tables beside the log have to say; None if it is the same."""
    if row["progress"] != replay.progress.to_json():
        return "the experiment's row has another progress than its log"
    if row["software"] != (json.dumps(replay.versions) if replay.versions else ""):
        return "the experiment's row has other versions of the software than its log"
    if view.all_requests(row["id"]) != replay.requests:
        return "the table of requests has others than the log"
    seen = 0
    for line in view.all_tickets(row["id"]):
        seen += 1
        ticket = Ticket(line["batch"], line["position"], line["attempt"])
        if replay.tickets.get(ticket) != (line["status"], line["arm"], line["reward"], line["issued"]):
            return f"the table of tickets has another {ticket.id} than the log"
    if seen != len(replay.tickets):
        return "the table of tickets lacks some that are in the log"
    return None
