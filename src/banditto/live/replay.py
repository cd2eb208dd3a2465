"""A replay: an experiment's log applied to its protocol alone, event by event, up to the first that does not follow.

Checked: the hash chain and its head; that tickets are those that the protocol hands out, in order; that each reward is
for a ticket that waits for one; and that decisions are the policy's on exactly these rewards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from banditto.core.digest import canonical_json
from banditto.core.errors import BandittoError
from banditto.core.protocol import fraction
from banditto.engine.blocks import Progress as Shown
from banditto.live.amounts import read, written
from banditto.live.course import Course
from banditto.live.events import FIRST_HASH, Event, chained
from banditto.live.progress import LogError, Progress, Ticket
from banditto.live.registration import Registration
from banditto.live.rows import Reading, Row

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


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What was decided after a batch."""

    batch: int
    counts: tuple[int, ...]
    totals: tuple[float, ...]  # in the policy's units
    next_pulls: tuple[int, ...]
    event: int
    time: str


class Replay:
    """The fold with all that `verify` must remember: every ticket and its reward."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration
        self.course = Course(registration)
        self.progress = Progress.start(self.course.start())
        self.tickets: dict[Ticket, tuple[str, int, float | None, str]] = {}  # status, arm, reward, issued
        self.requests: dict[str, int] = {}
        self.versions: dict[str, str] = {}  # of the software that wrote last
        self.decisions: list[Decision] = []

    def apply(self, event: Event) -> None:
        """One event; `LogError` if it does not follow."""
        content = event.content
        if event.kind not in _KEYS or set(content) != _KEYS[event.kind]:
            raise LogError("a body of another shape")
        if not isinstance(content.get("reason", ""), str):
            raise LogError("a reason that is no text")
        due = self.progress.complete and self.progress.status == "running"
        if due != (event.kind == "decide"):
            raise LogError("a decision that was due is not here" if due else "a decision before the last reward")
        getattr(self, f"_{event.kind}")(event, content)

    def _software(self, event: Event, content: Mapping[str, Any]) -> None:
        self.versions = {str(name): str(version) for name, version in content["versions"].items()}

    def _ask(self, event: Event, content: Mapping[str, Any]) -> None:
        slots = [(Ticket(content["batch"], position, attempt), arm) for position, attempt, arm in content["slots"]]
        if self.progress.slots(len(slots)) != slots or content["request"] in self.requests:
            raise LogError("tickets that were not the next ones")
        self.progress.ask([ticket for ticket, _ in slots])
        self.requests[content["request"]] = event.number
        for ticket, arm in slots:
            self.tickets[ticket] = ("open", arm, None, event.time)

    def _tell(self, event: Event, content: Mapping[str, Any]) -> None:
        for *place, reward in content["rewards"]:
            ticket = self._of(place, "open")
            self.progress.tell(ticket, self._checked(reward))
            self._set(ticket, "told", reward)

    def _late(self, event: Event, content: Mapping[str, Any]) -> None:
        for *place, reward in content["rewards"]:
            self._set(self._of(place, "missing"), "late", self._checked(reward))

    def _correct(self, event: Event, content: Mapping[str, Any]) -> None:
        ticket = self._of(content["ticket"], "told")
        if self.tickets[ticket][2] != content["before"]:
            raise LogError("a correction of a reward that was not there")
        self.progress.correct(ticket, content["before"], self._checked(content["after"]))
        self._set(ticket, "told", content["after"])

    def _missing(self, event: Event, content: Mapping[str, Any]) -> None:
        ticket = self._of(content["ticket"], "open")
        self.progress.missing(ticket)
        self._set(ticket, "missing", None)

    def _totals(self, event: Event, content: Mapping[str, Any]) -> None:
        if content["batch"] != self.progress.stage.batch:
            raise LogError("totals of another batch")
        ends, sums = self.registration.rewards, [read(text) for text in content["sums"]]
        sums = [ends.checked_sum(total, count) for total, count in zip(sums, content["counts"], strict=True)]
        self.progress.aggregate(content["counts"], sums)

    def _decide(self, event: Event, content: Mapping[str, Any]) -> None:
        before = self.progress
        totals = before.totals(self.registration)
        self.progress = before.decide(self.course, self.registration)
        expected = {
            "batch": before.stage.batch,
            "counts": before.counts,
            "sums": [written(total) for total in before.sums],
            "totals": [fraction(total) for total in totals],
            "next": list(self.progress.stage.pulls),
        }
        if content != expected:
            wrong = next(name for name in expected if content.get(name) != expected[name])
            raise LogError(f"a decision that the policy does not take ({wrong})")
        self.decisions.append(
            Decision(
                batch=before.stage.batch,
                counts=tuple(before.counts),
                totals=tuple(totals),
                next_pulls=self.progress.stage.pulls,
                event=event.number,
                time=event.time,
            )
        )

    def _stop(self, event: Event, content: Mapping[str, Any]) -> None:
        if self.progress.status != "running":
            raise LogError("a stop after the end")
        self.progress.status = "stopped"

    def _of(self, place: list[int], status: str) -> Ticket:
        ticket = Ticket(*place)
        if ticket not in self.tickets or self.tickets[ticket][0] != status:
            raise LogError(f"ticket {ticket.id} is not {status}")
        return ticket

    def _set(self, ticket: Ticket, status: str, reward: float | None) -> None:
        _, arm, _, issued = self.tickets[ticket]
        self.tickets[ticket] = (status, arm, reward, issued)

    def _checked(self, reward: object) -> float:
        try:
            return self.registration.rewards.checked(reward)
        except BandittoError as error:
            raise LogError(str(error)) from None


def replayed(view: Reading, row: Row, progress: Shown | None = None) -> Iterator[tuple[Event, Replay]]:
    """Each event and the replay after it; raises `LogError` with the event's number."""
    previous, expected = FIRST_HASH, 0
    replay: Replay | None = None
    for event in view.events(row["id"], progress=progress, of=row["events"]):
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
            if replay is None:
                replay = _begun(event, row)
            else:
                replay.apply(event)
        except LogError as error:
            raise LogError(str(error), expected) from None
        except (BandittoError, *_SHAPES) as error:
            raise LogError(f"a body of another shape ({type(error).__name__})", expected) from None
        previous = event.hash
        yield event, replay
    if expected != row["events"] or previous != row["head"]:
        raise LogError(f"the log ends at event {expected}, and {row['events']} were written", expected + 1)


def _begun(event: Event, row: Row) -> Replay:
    content = event.content
    registration = Registration.from_json(json.dumps(content["registration"]))
    if registration.digest != content["digest"] or content["name"] != row["name"]:
        raise LogError("the protocol does not have the digest that was registered, or the name")
    if registration.digest != row["digest"] or registration.to_json() != row["registration"]:
        raise LogError("the experiment's row has another protocol")
    if event.time != row["created"]:
        raise LogError("the experiment's row has another time of registration")
    return Replay(registration)
