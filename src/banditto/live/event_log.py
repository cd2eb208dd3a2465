"""The event log: what happened, in order, each event bound to all before it by a hash; and the log folded again.

The hash of event n is the sha256 of the hash of event n - 1, the number n, the kind, the time and the body, with line
feeds between them, which none of them contains. Whoever knows the last hash can tell whether anything before it was
changed.

`folded` applies a log to its protocol alone, event by event, up to the first that does not follow. Checked: the hash
chain and its head; that tickets are those that the protocol hands out, in order; that each reward is for a ticket that
waits for one; that metrics are of rewards in the same event; and that decisions are the policy's on exactly these
rewards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from banditto.core.digest import canonical_json, sha256_of
from banditto.core.errors import BandittoError, LogError
from banditto.live.fold import Course, Standing, Ticket, exact_sum
from banditto.live.metrics import MOST_METRICS, metrics_of
from banditto.live.registration import Registration

Kind = Literal["init", "software", "ask", "tell", "late", "correct", "missing", "totals", "decide", "stop"]
Row = Mapping[Any, Any]  # a line of a table, by the names of its columns
FIRST_HASH = "0" * 64
# What reading a body raises that somebody has written anew, with hashes that fit.
_SHAPES = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
_KEYS = {
    "software": {"versions"},
    "ask": {"batch", "slots", "request"},
    "tell": {"rewards"},
    "late": {"rewards"},
    "correct": {"ticket", "before", "after", "reason"},
    "missing": {"ticket", "reason"},
    "totals": {"batch", "counts", "sums"},
    "decide": {"batch", "counts", "sums", "totals", "next"},
    "stop": {"reason"},
}
# Keys that an event need not have: a winner, where a policy at that level has named one; and metrics, where some were
# told.
_MORE = {"decide": {"winner"}, "tell": {"metrics"}, "late": {"metrics"}}


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
    return sha256_of("\n".join((previous, str(number), kind, time, body)))


def following(previous: str, number: int, kind: Kind, time: str, content: Mapping[str, Any]) -> Event:
    """Make the event that follows the one with the hash `previous`."""
    body = canonical_json(content)
    return Event(number, kind, time, body, chained(previous, number, kind, time, body))


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What was decided after a batch, and on which counts and totals."""

    batch: int
    counts: tuple[int, ...]
    totals: tuple[float, ...]  # in the policy's units
    next_pulls: tuple[int, ...]
    event: int
    time: str
    winner: int | None = None  # the arm that was named, at the level of winners; there are no pulls after that


class FoldedLog:
    """Folds a log again, with all that `verify` must remember: tickets, rewards, metrics, requests, decisions."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration
        self._course = Course(registration)
        self.standing = Standing.start(self._course.start())
        self.tickets: dict[Ticket, tuple[str, int, float | None, str]] = {}  # status, arm, reward, issued
        self.metrics: dict[tuple[Ticket, str], float] = {}  # by ticket and name
        self._metric_names: set[str] = set()
        self.requests: dict[str, int] = {}
        self.versions: dict[str, str] = {}  # of the software that wrote last
        self.decisions: list[Decision] = []

    @property
    def winner(self) -> str | None:
        """The name of the arm that the policy has named, or committed to."""
        arm = self.standing.chosen(self.decisions[-1].counts if self.decisions else ())
        return None if arm is None else self.registration.arm_names[arm]

    def arm_of(self, ticket: Ticket) -> int:
        """Return the arm of a ticket that was handed out."""
        return self.tickets[ticket][1]

    def apply(self, event: Event) -> None:
        """Apply one event; raise `LogError` if it does not follow from those before it."""
        content = event.content
        if event.kind not in _KEYS or set(content) - _MORE.get(event.kind, set()) != _KEYS[event.kind]:
            raise LogError("a body of another shape")
        if not isinstance(content.get("reason", ""), str):
            raise LogError("a reason that is no text")
        if self.standing.due != (event.kind == "decide"):
            due = self.standing.due
            raise LogError("a decision that was due is not here" if due else "a decision before the last reward")
        getattr(self, f"_{event.kind}")(event, content)

    def _software(self, event: Event, content: Mapping[str, Any]) -> None:
        self.versions = {str(name): str(version) for name, version in content["versions"].items()}

    def _ask(self, event: Event, content: Mapping[str, Any]) -> None:
        slots = [(Ticket(content["batch"], position, attempt), arm) for position, attempt, arm in content["slots"]]
        possible = 0 < len(slots) <= self.standing.free and content["request"] not in self.requests
        if not possible or self.standing.hand_out(len(slots)) != slots:
            raise LogError("tickets that were not the next ones")
        self.requests[content["request"]] = event.number
        for ticket, arm in slots:
            self.tickets[ticket] = ("open", arm, None, event.time)

    def _tell(self, event: Event, content: Mapping[str, Any]) -> None:
        for *place, reward in content["rewards"]:
            ticket = self._of(place, "open")
            self.standing.tell(ticket, self._checked(reward), self.tickets[ticket][1])
            self._set(ticket, "told", reward)
        self._keep_metrics(content)

    def _late(self, event: Event, content: Mapping[str, Any]) -> None:
        for *place, reward in content["rewards"]:
            self._set(self._of(place, "missing"), "late", self._checked(reward))
        self._keep_metrics(content)

    def _correct(self, event: Event, content: Mapping[str, Any]) -> None:
        ticket = self._of(content["ticket"], "told")
        if self.tickets[ticket][2] != content["before"]:
            raise LogError("a correction of a reward that was not there")
        self.standing.correct(ticket, content["before"], self._checked(content["after"]))
        self._set(ticket, "told", content["after"])

    def _missing(self, event: Event, content: Mapping[str, Any]) -> None:
        ticket = self._of(content["ticket"], "open")
        self.standing.missing(ticket)
        self._set(ticket, "missing", None)

    def _totals(self, event: Event, content: Mapping[str, Any]) -> None:
        if content["batch"] != self.standing.stage.batch:
            raise LogError("totals of another batch")
        ends, sums = self.registration.rewards, [exact_sum(text) for text in content["sums"]]
        sums = [ends.checked_sum(total, count) for total, count in zip(sums, content["counts"], strict=True)]
        self.standing.aggregate(content["counts"], sums)

    def _decide(self, event: Event, content: Mapping[str, Any]) -> None:
        expected, self.standing = self.standing.decide(self._course)
        if content != expected:
            names = (*expected, *content)
            wrong = next(name for name in names if content.get(name) != expected.get(name))
            raise LogError(f"a decision that the policy does not take ({wrong})")
        self.decisions.append(
            Decision(
                batch=expected["batch"],
                counts=tuple(expected["counts"]),
                totals=tuple(float.fromhex(total) for total in expected["totals"]),
                next_pulls=self.standing.stage.pulls,
                winner=self.standing.stage.winner,
                event=event.number,
                time=event.time,
            )
        )

    def _stop(self, event: Event, content: Mapping[str, Any]) -> None:
        if self.standing.status != "running":
            raise LogError("a stop after the end")
        self.standing.status = "stopped"

    def _keep_metrics(self, content: Mapping[str, Any]) -> None:
        """Remember the metrics of an event, if there are any; a ticket has its rewards once, and so its metrics."""
        if "metrics" not in content:
            return
        self.metrics |= metrics_of(content)
        self._metric_names |= set(content["metrics"])
        if len(self._metric_names) > MOST_METRICS:
            raise LogError(f"more than {MOST_METRICS} names of metrics")

    def _of(self, place: list[int], status: str) -> Ticket:
        """Find a ticket that must have this status."""
        ticket = Ticket(*place)
        if ticket not in self.tickets or self.tickets[ticket][0] != status:
            raise LogError(f"ticket {ticket.id} is not {status}")
        return ticket

    def _set(self, ticket: Ticket, status: str, reward: float | None) -> None:
        """Give a ticket another status and reward."""
        _, arm, _, issued = self.tickets[ticket]
        self.tickets[ticket] = (status, arm, reward, issued)

    def _checked(self, reward: object) -> float:
        """Check a reward as a live run does; one that it would refuse cannot be in a log."""
        try:
            return self.registration.rewards.checked(reward)
        except BandittoError as error:
            raise LogError(str(error)) from None


def folded(events: Iterable[Event], row: Row) -> Iterator[tuple[Event, FoldedLog]]:
    """Fold the log of an experiment's row; yield each event and the fold after it.

    `LogError` is raised, with the event's number, at the first event that does not follow, and if the log is empty or
    does not end where the row says.
    """
    previous, expected = FIRST_HASH, 0
    fold: FoldedLog | None = None
    for event in events:
        expected += 1
        try:
            if event.number != expected:
                raise LogError(f"event {expected} is not there")
            if event.hash != chained(previous, event.number, event.kind, event.time, event.body):
                raise LogError("its hash is wrong: it, or one before it, was changed")
            if canonical_json(event.content) != event.body:
                raise LogError("a body that is not as banditto writes it")
            if (event.kind == "init") != (expected == 1):
                raise LogError("a log has one beginning")
            if fold is None:
                fold = _begun(event, row)
            else:
                fold.apply(event)
        except LogError as error:
            raise LogError(str(error), expected) from None
        except (BandittoError, *_SHAPES) as error:
            raise LogError(f"a body of another shape ({type(error).__name__})", expected) from None
        previous = event.hash
        yield event, fold
    if expected != row["events"] or previous != row["head"]:
        raise LogError(f"the log ends at event {expected}, and {row['events']} were written", expected + 1)
    if fold is None:
        raise LogError("the log is empty", 1)


def _begun(event: Event, row: Row) -> FoldedLog:
    """Begin a fold with the first event, which must be of the row's own registration."""
    content = event.content
    registration = Registration.from_json(json.dumps(content["registration"]))
    if registration.digest != content["digest"] or content["name"] != row["name"]:
        raise LogError("the protocol does not have the digest that was registered, or the name")
    if registration.digest != row["digest"] or registration.to_json() != row["registration"]:
        raise LogError("the experiment's row has another protocol")
    if event.time != row["created"]:
        raise LogError("the experiment's row has another time of registration")
    return FoldedLog(registration)
