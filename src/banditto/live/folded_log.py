"""The log folded again: events are applied to the protocol alone, up to the first that does not follow.

Checked: the hash chain and its head; that tickets are those that the protocol hands out, in order; that each reward is
for a ticket that waits for one; that metrics are of rewards in the same event; that tickets which were given up by a
rule were as old as it says; and that decisions are the policy's on exactly these rewards.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditto.core.digest import canonical_json
from banditto.core.errors import BandittoError, LogError
from banditto.live.event_log import FIRST_HASH, KEYS, MORE, Event, Row, chained
from banditto.live.exact_sums import exact_sum
from banditto.live.fold import Course, Standing
from banditto.live.metrics import MOST_METRICS, metrics_of
from banditto.live.registration import Registration
from banditto.live.ticket_book import LATE, MISSING, OPEN, TOLD, LaterAttempt, TicketBook, microseconds
from banditto.live.tickets import Ticket, TicketIds

# What reading a body raises that somebody has written anew, with hashes that fit.
_SHAPES = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
# The two bodies that most logs are made of, exactly as `canonical_json` writes them.
_NATURAL = "(0|[1-9][0-9]{0,17})"
_ONE_ASKED = re.compile(
    rf'\{{"batch":{_NATURAL},"n":1,"request":"([ !#-\[\]-~]+)","slots":\[\[{_NATURAL},{_NATURAL},{_NATURAL}\]\]\}}'
)
_ONE_TOLD = re.compile(rf'\{{"rewards":\[\[{_NATURAL},{_NATURAL},{_NATURAL},(-?[0-9]+\.[0-9]+)\]\]\}}')
_FAST = {"ask": _ONE_ASKED, "tell": _ONE_TOLD}
_AHEAD = 4096  # slots whose arms are worked out at once
_MOST_CHANGES = 1000  # that are kept for a report


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What was decided after a batch, with the counts and totals that it was decided on."""

    batch: int
    counts: tuple[int, ...]
    totals: tuple[float, ...]  # in the policy's units
    next_pulls: tuple[int, ...]
    event: int
    time: str
    winner: int | None = None  # the arm that was named, at the level of winners; there are no pulls after that


@dataclass(frozen=True, kw_only=True)
class ClockSteps:
    """Events whose times are before those of the events before them: a clock was set back, or two clocks differ."""

    number: int
    largest: float  # seconds
    first: int  # the number of the first such event


class FoldedLog:
    """Replays a log event by event, and keeps what `verify` compares: tickets, rewards, metrics, decisions."""

    def __init__(self, registration: Registration, name: str, first: Event) -> None:
        self.registration, self.name = registration, name
        self.ids = TicketIds(name, bare=registration.first_version)
        self.standing = Standing.start(Course(registration).start())
        self.book = TicketBook()
        self.reasons: dict[Ticket, str] = {}  # why a ticket was given up or corrected
        self.versions: list[dict[str, str]] = []  # of the software, in the order of their first events
        self.last_versions: dict[str, str] = {}  # those that wrote last
        self.decisions: list[Decision] = []
        self.decided: list[dict[str, Any]] = []  # the bodies of decisions
        self.timeline: list[Event] = [first]  # of what is rare: the beginning, decisions, totals, the end
        self.changes: list[Event] = []  # corrections, exclusions and the end, as many as a report shows
        self.change_events = 0  # all of them
        self.last = first
        self._requests, self._request_events = array("q"), array("q")  # hashes, and the events that answered
        self._moment = microseconds(first.time)
        self._ahead: tuple[int, int, list[int]] = 0, 0, []  # a batch, a slot, and the arms of the slots from there on
        self._steps_back: list[tuple[int, int]] = []  # the largest steps of the clock, and the first event

    @property
    def winner(self) -> str | None:
        """The name of the arm that the policy has named, or committed to."""
        arm = self.standing.chosen(self.decisions[-1].counts if self.decisions else ())
        return None if arm is None else self.registration.arm_names[arm]

    @property
    def clock_steps(self) -> ClockSteps | None:
        """Steps backwards of the clock that the events' times show; None if there are none."""
        if not self._steps_back:
            return None
        largest = max(step for step, _ in self._steps_back) / 1e6
        return ClockSteps(number=len(self._steps_back), largest=largest, first=self._steps_back[0][1])

    def apply(self, event: Event) -> None:
        """Apply one event; raise `LogError` if it does not follow from those before it."""
        moment = microseconds(event.time)
        if moment < self._moment:
            self._steps_back.append((self._moment - moment, event.number))
        self._moment, self.last = moment, event
        kind = event.kind
        one = _FAST[kind].fullmatch(event.body) if kind in _FAST and not self.standing.due else None
        if one is None:
            self._apply(event, _parsed(event), moment)
        elif kind == "tell":
            batch, position, attempt, text = one.groups()
            reward = float(text)
            if repr(reward) != text:
                raise LogError("a body that is not as banditto writes it")
            self._tell_one(int(batch), int(position), int(attempt), reward, moment)
        else:
            batch, request, position, attempt, arm = one.groups()
            slot = int(position), int(attempt), int(arm)
            if not self._handed_out_one(int(batch), slot, moment):
                self._hand_out(int(batch), [slot], 1, moment)
            self._requests.append(hash(request))
            self._request_events.append(event.number)

    def _apply(self, event: Event, content: dict[str, Any], moment: int) -> None:
        """Check an event's shape and whether it may come now, then hand it to the method of its kind."""
        kind = event.kind
        if kind not in KEYS or set(content) - MORE.get(kind, set()) != KEYS[kind]:
            raise LogError("a body of another shape")
        if not isinstance(content.get("reason", ""), str):
            raise LogError("a reason that is no text")
        if self.standing.due != (kind == "decide"):
            due = self.standing.due
            raise LogError("a decision that was due is not here" if due else "a decision before the last reward")
        getattr(self, f"_{kind}")(event, content, moment)
        if kind in ("software", "decide", "totals", "stop"):
            self.timeline.append(event)
        if kind in ("correct", "missing", "lost", "late", "stop"):
            self.change_events += 1
            if len(self.changes) < _MOST_CHANGES:
                self.changes.append(event)

    # -- asking --------------------------------------------------------------------------------------------------------

    def _ask(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        slots = [(position, attempt, arm) for position, attempt, arm in content["slots"]]
        if not isinstance(content["request"], str):
            raise LogError("a request that is no text")
        self._hand_out(content["batch"], slots, content.get("n", len(slots)), moment)
        self._requests.append(hash(content["request"]))
        self._request_events.append(event.number)

    def _handed_out_one(self, batch: int, slot: tuple[int, int, int], moment: int) -> bool:
        """Hand out one new slot if it is the next one; return False, with nothing done, if it is not."""
        standing = self.standing
        place, stage = standing.issued, standing.stage
        if batch != stage.batch or standing.status != "running" or standing.queued or place >= stage.length:
            return False
        known, first, arms = self._ahead
        if known != batch or not first <= place < first + len(arms):
            first, arms = place, stage.order.arms(place, min(place + _AHEAD, stage.length)).tolist()
            self._ahead = batch, first, arms
        arm = arms[place - first]
        if slot != (place, 0, arm):
            return False
        standing.issued += 1
        standing.tickets.open += 1
        self.book.pages(batch).issue_one(arm, moment)
        return True

    def _hand_out(self, batch: int, slots: Sequence[tuple[int, int, int]], asked: int, moment: int) -> None:
        """Replay the handing out of these slots; raise `LogError` unless they are exactly the next ones."""
        standing, number = self.standing, len(slots)
        free = standing.free
        possible = 0 < number <= free and (number == asked or (number == free and asked > free))
        if not possible or batch != standing.stage.batch:
            raise LogError("tickets that were not the next ones")
        again, first, arms = standing.hand_out_places(number)
        if again or len(slots) > 1:
            expected = [(*place, standing.stage.order.arm(place[0])) for place in again]
            expected += zip(range(first, standing.issued), [0] * len(arms), arms, strict=True)
            right = slots == expected
        else:
            right = slots[0] == (first, 0, arms[0])
        if not right:
            raise LogError("tickets that were not the next ones")
        pages = self.book.pages(batch)
        pages.issue(arms, moment)
        for position, attempt, arm in slots[: len(again)]:
            pages.later[position, attempt] = LaterAttempt(arm, moment)

    # -- telling -------------------------------------------------------------------------------------------------------

    def _tell(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        for batch, position, attempt, reward in content["rewards"]:
            self._tell_one(batch, position, attempt, reward, moment)
        self._keep_metrics(content)

    def _tell_one(self, batch: int, position: int, attempt: int, reward: float, moment: int) -> None:
        pages = self.book.of(batch, position, attempt, OPEN)
        if batch != self.standing.stage.batch:
            raise LogError(f"ticket {Ticket(batch, position, attempt).id}, which is not of this batch")
        reward = self._checked(reward)
        self.standing.take(pages.arm(position, attempt), reward)
        pages.answer(position, attempt, TOLD, reward, moment)

    def _late(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        for batch, position, attempt, reward in content["rewards"]:
            pages = self.book.of(batch, position, attempt, MISSING)
            pages.answer(position, attempt, LATE, self._checked(reward), moment)
            self.standing.late(1)
        self._keep_metrics(content)

    def _correct(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        """Replay a correction; raise `LogError` if the reward that it replaces was another one."""
        ticket = Ticket(*content["ticket"])
        pages = self.book.of(*ticket, TOLD)
        if pages.reward(ticket.position, ticket.attempt) != content["before"]:
            raise LogError("a correction of a reward that was not there")
        self.standing.correct(ticket, content["before"], self._checked(content["after"]))
        if ticket.attempt:
            pages.later[ticket.position, ticket.attempt].reward = content["after"]
        else:
            pages.rewards[ticket.position] = content["after"]
        self.reasons[ticket] = content["reason"]

    def _missing(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        self._give_up([Ticket(*content["ticket"])], content["reason"])

    def _lost(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        tickets = [Ticket(*place) for place in content["tickets"]]
        if not tickets or not isinstance(content["by"], str):
            raise LogError("nothing that was lost, or nobody who said so")
        age = content.get("older_than")
        if "older_than" in content and (isinstance(age, bool) or not isinstance(age, int | float) or age < 0):
            raise LogError("a rule about tickets whose age is none")
        self._give_up(tickets, content["reason"], moment, age)

    def _give_up(
        self, tickets: Sequence[Ticket], reason: str, moment: int = 0, older_than: float | None = None
    ) -> None:
        """Replay the giving up of tickets; raise `LogError` if one was not open, or not old enough for the rule."""
        for ticket in tickets:
            pages = self.book.of(*ticket, OPEN)
            if older_than is not None and pages.when(ticket.position, ticket.attempt) > moment - older_than * 1e6 + 1:
                raise LogError(f"ticket {ticket.id} was not as old as the rule says")
            pages.give_up(ticket.position, ticket.attempt)
            self.reasons[ticket] = reason
        self.standing.missing(tickets)

    def _totals(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        if content["batch"] != self.standing.stage.batch:
            raise LogError("totals of another batch")
        ends, sums = self.registration.rewards, [exact_sum(text) for text in content["sums"]]
        sums = [ends.checked_sum(total, count) for total, count in zip(sums, content["counts"], strict=True)]
        self.standing.aggregate(content["counts"], sums)

    # -- deciding ------------------------------------------------------------------------------------------------------

    def _decide(self, event: Event, content: dict[str, Any], moment: int) -> None:
        """Take a decision again; raise `LogError` if the log's decision is another one."""
        expected, self.standing = self.standing.decide()
        if content != expected:
            names = (*expected, *content)
            wrong = next(name for name in names if content.get(name) != expected.get(name))
            raise LogError(f"a decision that the policy does not take ({wrong})")
        self.decided.append(content)
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

    def _stop(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        if self.standing.status != "running":
            raise LogError("a stop after the end")
        self.standing.status = "stopped"

    def _software(self, event: Event, content: Mapping[str, Any], moment: int) -> None:
        self.last_versions = {str(name): str(version) for name, version in content["versions"].items()}
        if self.last_versions not in self.versions:
            self.versions.append(self.last_versions)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _keep_metrics(self, content: Mapping[str, Any]) -> None:
        """Store the metrics of an event, if it has any; each ticket gets its metrics once."""
        if "metrics" not in content:
            return
        for (ticket, name), value in metrics_of(content).items():
            self.book.pages(ticket.batch).measure(ticket.position, ticket.attempt, name, value)
        self.book.metric_names |= set(content["metrics"])
        if len(self.book.metric_names) > MOST_METRICS:
            raise LogError(f"more than {MOST_METRICS} names of metrics")

    def _checked(self, reward: object) -> float:
        """Return a reward as a float; raise `LogError` for one that a live run would have refused."""
        ends = self.registration.rewards
        if type(reward) is float and ends.low <= reward <= ends.high:  # JSON has no infinities
            return reward
        try:
            return ends.checked(reward)
        except BandittoError as error:
            raise LogError(str(error)) from None

    # -- the end -------------------------------------------------------------------------------------------------------

    def check_requests(self) -> None:
        """Raise `LogError`, with the event's number, if two events answer the same request."""
        hashes = np.array(self._requests, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        again = order[1:][hashes[order[1:]] == hashes[order[:-1]]]
        if again.size:
            raise LogError("tickets that were not the next ones", int(self._request_events[int(again.min())]))

    def same_requests(self, requests: Iterable[tuple[str, int]]) -> bool:
        """Return whether these requests, with the numbers of their events, are exactly those of the log."""
        theirs = array("q", (number for request, event in requests for number in (hash(request), event)))
        pairs = [np.array(numbers, dtype=np.int64) for numbers in (theirs, self._requests, self._request_events)]
        given, mine = pairs[0].reshape(-1, 2), np.stack(pairs[1:], axis=1)
        return len(given) == len(mine) and bool((given[np.argsort(given[:, 1])] == mine[np.argsort(mine[:, 1])]).all())


def _parsed(event: Event) -> dict[str, Any]:
    """Return an event's body as a dict; raise `LogError` unless it is written exactly as banditto writes it."""
    content = event.content
    if canonical_json(content) != event.body:
        raise LogError("a body that is not as banditto writes it")
    return content


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
    fold.check_requests()


def _begun(event: Event, row: Row) -> FoldedLog:
    """Return the fold after the first event, which must hold the same registration as the experiment's row."""
    content = _parsed(event)
    registration = Registration.from_json(json.dumps(content["registration"]))
    if registration.digest != content["digest"] or content["name"] != row["name"]:
        raise LogError("the protocol does not have the digest that was registered, or the name")
    if registration.digest != row["digest"] or registration.to_json() != row["registration"]:
        raise LogError("the experiment's row has another protocol")
    if event.time != row["created"]:
        raise LogError("the experiment's row has another time of registration")
    return FoldedLog(registration, row["name"], event)
