"""`verify`: fold an experiment's log again, and compare the tables beside it with what the events add up to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from typing_extensions import TypedDict

from banditto.core.errors import InvalidArgument, LogError, shown
from banditto.core.json_types import Keywords, Natural, Positive
from banditto.core.results import Part, Result, TablePart
from banditto.engine.progress import Progress
from banditto.live.event_log import Row
from banditto.live.exported_log import exported_events
from banditto.live.fold import MemoryQueue
from banditto.live.folded_log import ClockSteps, Decision, FoldedLog, folded
from banditto.live.observing import observed_before
from banditto.live.reading import Reading
from banditto.live.store import Store
from banditto.live.ticket_book import LATE, STATES, TOLD, microseconds
from banditto.live.tickets import Ticket
from banditto.policies.policy import Level, own_level

_NOT_IN_THE_LOG = "the head of the receipt is not in the log: it was written anew, or is of another run"


class ClockContent(TypedDict):
    """Steps backwards of a clock as plain data."""

    number: Positive
    largest: Annotated[float, Keywords(description="seconds")]
    first: Positive


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
    clock_steps: Annotated[
        ClockContent | None, Keywords(description="how often a clock ran backwards; null if it never did")
    ]


@dataclass(frozen=True, kw_only=True, repr=False)
class Verification(Result):
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
        clock_steps: how often a clock ran backwards between two events (`number`), by how many seconds at the most
            (`largest`), and the `first` such event; None if it never did. That is no fault of the log.
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
    clock_steps: ClockSteps | None = None

    _picture = "log_pictures:verification_figure"
    _named = ("name", "holds", "problem", "events", "winner")

    @property
    def holds(self) -> bool:
        """Whether the log verifies: everything in it follows."""
        return self.problem is None

    def _parts(self) -> list[Part]:
        where = "" if self.event is None else f"event {self.event}: "
        said = "verifies" if self.holds else f"does not verify: {where}{self.problem}"
        rows = [
            ("level", self.level),
            ("winner", "none yet" if self.winner is None else self.winner),
            ("events", f"{self.events:,}"),
            ("decisions", f"{len(self.decisions):,}"),
            ("digest", self.digest),
            ("head", self.head),
        ]
        told = [] if self.clock_steps is None else [clock_sentence(self.clock_steps)]
        return [f"{self.name} {said}", TablePart(("verification", ""), rows), *told]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each decision and arm: rewards of the batch, their total, and pulls of the next batch."""
        return [
            {
                "batch": decision.batch,
                "arm": arm,
                "rewards": count,
                "total": total,
                "next_pulls": decision.next_pulls[arm] if decision.next_pulls else 0,
                "event": decision.event,
                "time": decision.time,
            }
            for decision in self.decisions
            for arm, (count, total) in enumerate(zip(decision.counts, decision.totals, strict=True))
        ]

    def to_dict(self) -> VerificationContent:
        """Return plain data; `holds` is `verified`, and of the decisions, which stand in the log, it has the number.

        The `winner` and the `level` stand in the log, too, and in what `status` says.
        """
        steps = self.clock_steps
        return {
            "name": self.name,
            "digest": self.digest,
            "events": self.events,
            "head": self.head,
            "verified": self.holds,
            "problem": self.problem,
            "event": self.event,
            "decisions": len(self.decisions),
            "clock_steps": None
            if steps is None
            else {"number": steps.number, "largest": steps.largest, "first": steps.first},
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
    expect = _checked_head(expect)
    if not isinstance(name, str):
        raise InvalidArgument("name", name, "the name of an experiment")
    with Store(url) as store:
        return store.read(lambda view: verified(view, name, expect, progress)[0])


def verify_exported(path: Path, expect: str | None = None, progress: Progress | None = None) -> Verification:
    """Check a log that `export --format json` wrote, as `verify` does; there are no tables beside it to compare."""
    expect = _checked_head(expect)
    fold: FoldedLog | None = None
    problem: str | None = None
    number: int | None = None
    met = expect is None
    with exported_events(path, progress, "run") as document:
        if not all(isinstance(document.row[key], str) for key in ("name", "digest", "head")):
            raise TypeError("no text")  # which becomes an error about the file
        try:
            for event, after in folded(iter(document), document.row):
                fold = after
                met = met or event.hash == expect
            if not met:
                problem = _NOT_IN_THE_LOG
        except LogError as error:
            problem, number = error.problem, error.number
        return _found(document.row, fold, problem, number)


def _checked_head(expect: str | None) -> str | None:
    if expect is None:
        return None
    text = expect.strip().lower() if isinstance(expect, str) else ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise InvalidArgument("expect", expect, "a head: 64 hexadecimal digits")
    return text


def clock_sentence(steps: ClockSteps) -> str:
    """Say in a sentence how often a clock ran backwards."""
    times = "once" if steps.number == 1 else f"{steps.number:,} times"
    return f"A clock ran backwards {times}, by {steps.largest:.6g} s at the most, first at event {steps.first:,}."


def verified(
    view: Reading, name: str, expect: str | None = None, progress: Progress | None = None
) -> tuple[Verification, FoldedLog | None]:
    """Check a log as `verify` does, inside a transaction, for those who go on to read what was verified.

    What was found comes back, and the fold of the events before the first bad one; None if there are none.
    """
    row = view.known(name)
    fold: FoldedLog | None = None
    problem: str | None = None
    number: int | None = None
    met = expect is None
    try:
        for event, after in folded(view.events(row["id"], progress=progress, of=row["events"]), row):
            fold = after
            met = met or event.hash == expect
        if fold is not None:
            problem = _difference(view, row, fold)
        if problem is None and not met:
            problem = _NOT_IN_THE_LOG
    except LogError as error:
        problem, number = error.problem, error.number
    if number is not None:  # the fold may have taken a part of the bad event
        fold = observed_before(islice(view.events(row["id"]), number - 1), row)
    return _found(row, fold, problem, number), fold


def _found(row: Row, fold: FoldedLog | None, problem: str | None, number: int | None) -> Verification:
    """Put together what was found in the log of an experiment's row."""
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
        clock_steps=None if fold is None else fold.clock_steps,
    )


def _difference(view: Reading, row: Row, fold: FoldedLog) -> str | None:
    """Compare the tables beside the log with the fold; the first difference comes back in words, None without one."""
    try:
        return _other_table(view, row, fold)
    except (TypeError, ValueError, LookupError, AttributeError):  # SQLite keeps text where a number belongs
        return "a table beside the log has a row of another shape"


def _other_table(view: Reading, row: Row, fold: FoldedLog) -> str | None:
    """Compare the stored tables one after the other, for `_difference`, which says what comes back."""
    text, _ = view.standing_of(row)
    if text != fold.standing.to_json():
        return "the experiment's row has another progress than its log"
    if not _same_versions(row["software"], fold):
        return "the experiment's row has other versions of the software than its log"
    queue = fold.standing.queue
    assert isinstance(queue, MemoryQueue)
    if view.waiting_slots(row) != list(enumerate(queue.places(), queue.first)):
        return "the table of slots that wait to be handed out again has others than the log"
    if not fold.same_requests(view.all_requests(row["id"])):
        return "the table of requests has others than the log"
    return _other_ticket(view, row, fold) or _other_metric(view, row, fold)


def _same_versions(text: str, fold: FoldedLog) -> bool:
    """Return whether a row lists the log's software versions; rows before version 4 hold the last alone."""
    if not text or not fold.versions:
        return not text and not fold.versions
    content = json.loads(text)
    return bool(content == (fold.versions if isinstance(content, list) else fold.last_versions))


def _other_ticket(view: Reading, row: Row, fold: FoldedLog) -> str | None:
    """Compare the table of tickets with the fold, as `_difference` does."""
    seen, batches = 0, fold.book.batches
    for batch, position, attempt, arm, status, reward, issued in view.all_tickets(row["id"]):
        seen += 1
        pages = batches.get(batch)
        state = None if pages is None else pages.state(position, attempt)
        same = pages is not None and state is not None and status == STATES[state]
        if same and pages is not None:
            told = pages.reward(position, attempt) if state in (TOLD, LATE) else None
            same = (arm, reward) == (pages.arm(position, attempt), told)
            same = same and microseconds(issued) == pages.when(position, attempt)
        if not same:
            return f"the table of tickets has another {Ticket(batch, position, attempt).id} than the log"
    return None if seen == len(fold.book) else "the table of tickets lacks some that are in the log"


def _other_metric(view: Reading, row: Row, fold: FoldedLog) -> str | None:
    """Compare the table of metrics with the fold, as `_difference` does."""
    seen, batches = 0, fold.book.batches
    for batch, position, attempt, name, value in view.all_metrics(row["id"]):
        seen += 1
        pages = batches.get(batch)
        if pages is None or pages.metric(position, attempt, name) != value:
            ticket = Ticket(batch, position, attempt)
            return f"the table of metrics has another {shown(name)} of ticket {ticket.id} than the log"
    return None if seen == fold.book.metrics() else "the table of metrics lacks some that are in the log"
