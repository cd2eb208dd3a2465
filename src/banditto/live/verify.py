"""`verify`: fold an experiment's log again, and compare the tables beside it with what the events add up to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import TypedDict

from banditto.core.errors import InvalidArgument, LogError, shown
from banditto.core.json_types import Natural
from banditto.engine.blocks import Progress
from banditto.live.event_log import Decision, Event, FoldedLog, Row, folded
from banditto.live.fold import Ticket
from banditto.live.sql import Reading
from banditto.live.store import Store
from banditto.policies.policy import Level, own_level


class VerificationContent(TypedDict):
    """A `Verification` as plain data; a damaged row may hold anything for a digest or a head."""

    name: str
    digest: str
    events: Natural
    head: str
    verified: bool
    problem: str | None
    event: int | None
    decisions: Natural


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What `verify` found in an experiment's log.

    Attributes:
        name: the experiment.
        digest: that of its registration, as the store has it.
        events: how many events the store says there are.
        head: the hash of the last event, as the store has it.
        problem: the first thing that is wrong, in words; None if everything follows.
        event: the number of the first bad event; None if no event is bad.
        decisions: what was decided after each batch, as far as the log follows.
        winner: the arm that the policy has named, or committed to; None without one.
        level: "winner" if two runs have the winner in common, "sequence" if every pull.
    """

    name: str
    digest: str
    events: int
    head: str
    problem: str | None
    event: int | None
    decisions: tuple[Decision, ...]
    winner: str | None = None
    level: Level = "sequence"

    @property
    def holds(self) -> bool:
        """Whether the log verifies: everything in it follows."""
        return self.problem is None

    def to_dict(self) -> VerificationContent:
        """Return plain data; `holds` is `verified`, and of the decisions, which stand in the log, it has the number.

        The `winner` and the `level` stand in the log, too, and in what `status` says.
        """
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
    """Check an experiment's log from its first event to its last; what was found comes back, good or bad.

    Args:
        url: the store, such as sqlite:///trial.db.
        name: the experiment.
        expect: the head that a receipt or an export gave; the log must still contain it.
        progress: called with the number of events that were read, and how many there are.

    Raises:
        InvalidArgument: there is no such experiment or store, or `expect` is no head.
        StoreError: the store cannot be reached, or is of another kind.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from banditto import Experiment, ExploreThenCommit
        >>> protocol = ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
        >>> with TemporaryDirectory() as folder:
        ...     with Experiment.open(f"sqlite:///{folder}/trial.db", "cta", protocol) as trial:
        ...         told = trial.tell_totals(1, {0: (6, 1.0), 1: (6, 5.0)})
        ...     found = verify(f"sqlite:///{folder}/trial.db", "cta")
        >>> found.holds, len(found.decisions), found.decisions[0].next_pulls
        (True, 1, (0, 9988))
    """
    if expect is not None:
        given, expect = expect, expect.strip().lower() if isinstance(expect, str) else ""
        if not re.fullmatch("[0-9a-f]{64}", expect):
            raise InvalidArgument("expect", given, "a head: 64 hexadecimal digits")
    with Store(url) as store:
        return store.read(lambda view: verified(view, name, expect, progress))


def verified(
    view: Reading,
    name: str,
    expect: str | None = None,
    progress: Progress | None = None,
    watch: Callable[[Event, FoldedLog], None] | None = None,
) -> Verification:
    """Check a log as `verify` does, inside a transaction, for those who go on to read what was verified.

    `watch` is called with every event that follows, and the fold after it.
    """
    row = view.known(name)
    fold: FoldedLog | None = None
    problem: str | None = None
    number: int | None = None
    met = expect is None
    try:
        for event, after in folded(view.events(row["id"], progress=progress, of=row["events"]), row):
            fold = after
            if watch is not None:
                watch(event, fold)
            met = met or event.hash == expect
        if fold is not None:
            problem = _difference(view, row, fold)
        if problem is None and not met:
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
        decisions=() if fold is None else tuple(fold.decisions),
        winner=None if fold is None else fold.winner,
        level="sequence" if fold is None else own_level(fold.registration.policy()),
    )


def _difference(view: Reading, row: Row, fold: FoldedLog) -> str | None:
    """Compare the tables beside the log with the fold; the first difference comes back in words, None without one."""
    if row["progress"] != fold.standing.to_json():
        return "the experiment's row has another progress than its log"
    if row["software"] != (json.dumps(fold.versions) if fold.versions else ""):
        return "the experiment's row has other versions of the software than its log"
    if view.all_requests(row["id"]) != fold.requests:
        return "the table of requests has others than the log"
    seen = 0
    for line in view.all_tickets(row["id"]):
        seen += 1
        ticket = Ticket(line["batch"], line["position"], line["attempt"])
        if fold.tickets.get(ticket) != (line["status"], line["arm"], line["reward"], line["issued"]):
            return f"the table of tickets has another {ticket.id} than the log"
    if seen != len(fold.tickets):
        return "the table of tickets lacks some that are in the log"
    return _other_metric(view, row, fold)


def _other_metric(view: Reading, row: Row, fold: FoldedLog) -> str | None:
    """Compare the table of metrics with the fold, as `_difference` does."""
    seen = 0
    for line in view.all_metrics(row["id"]):
        seen += 1
        ticket, name = Ticket(line["batch"], line["position"], line["attempt"]), line["name"]
        if fold.metrics.get((ticket, name)) != line["value"]:
            return f"the table of metrics has another {shown(name)} of ticket {ticket.id} than the log"
    return None if seen == len(fold.metrics) else "the table of metrics lacks some that are in the log"
