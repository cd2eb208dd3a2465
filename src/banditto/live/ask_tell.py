"""One transaction of an experiment: what a single step does, from the locked row to the events that it adds.

A step looks first whether it was done before: a caller that lost its answer may send it again.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from banditto.core.errors import ConflictError, InvalidArgument, shown
from banditto.core.exact import integer
from banditto.core.named_tuples import all_made
from banditto.live.answers import Answer, Assignment, Changed, Fallback, Told
from banditto.live.checked_words import UNIT_PREFIX, earlier
from banditto.live.event_log import Kind
from banditto.live.exact_sums import sum_text
from banditto.live.fold import Standing
from banditto.live.metrics import MOST_METRICS, Metrics, by_name, conflict_of
from banditto.live.reading import TicketRow, TicketRows
from banditto.live.registration import arm_of, plain
from banditto.live.tickets import Slot, Ticket, TicketIds
from banditto.live.told_rewards import Arms, CheckedTelling
from banditto.live.writing import LockedRow, Writing

Totals = Mapping[int, tuple[int, float]] | Mapping[str, tuple[int, float]] | Mapping[int | str, tuple[int, float]]
# By a ticket's status: the answer to its reward, and the status that follows; None where there is a reward already.
_TELLING: dict[str, tuple[Told, str | None]] = {
    "open": ("recorded", "told"),
    "missing": ("excluded", "late"),
    "told": ("repeated", None),
    "late": ("excluded", None),
}
_TOTALS_ALLOWED = "a count and a total for each arm that was planned"
MOST_LOST = 10_000  # tickets that one step gives up
DEADLINE_REASON = "no reward before the deadline of the registration"
DEADLINE_BY = "banditto"


class Transaction:
    """Takes steps on a locked experiment: appends their events, and keeps its standing up to date."""

    def __init__(self, rows: Writing, row: LockedRow, standing: Standing, ids: TicketIds) -> None:
        self.standing, self.ids = standing, ids
        self._rows, self._registration = rows, standing.stage.course.registration
        self.head = row.head
        self._id, self._count, self._software = row.id, row.events, row.software
        self._versions: dict[str, str] = {}

    def written_by(self, versions: Mapping[str, str]) -> None:
        """Remember software versions that are new to this log, to be noted in it if this step adds an event."""
        self._versions = dict(versions)

    # -- asking --------------------------------------------------------------------------------------------------------

    def ask(self, n: int, request: str) -> Answer:
        """Hand out up to `n` tickets; a request that was answered before gets the same tickets again."""
        before = self._rows.request(self._id, request)
        if before is not None:
            return self._repeated(n, request, before)
        self._close_overdue()
        free = self.standing.free
        if not free:
            return _nothing(self.standing, self._registration.arm_names)
        slots = self.standing.hand_out(n)
        places = [[ticket.position, ticket.attempt, arm] for ticket, arm in slots]
        content = {"batch": self.standing.stage.batch, "n": n, "slots": places, "request": request}
        event = self._append("ask", content)
        self._rows.issue(self._id, slots)
        self._rows.remember(self._id, request, event)
        self._save()
        return self._answer(slots, repeated=False)

    def ask_for(self, unit: str) -> Answer:
        """Hand out a unit's one ticket, the same at every call; where there is none to give, offer the fallback arm."""
        key = self._rows.unit_key(self._id)
        if key is None:
            key = secrets.token_hex(32)
            self._rows.keep_unit_key(self._id, key)
        answer = self.ask(1, unit_request(key, unit))
        arm = self._registration.fallback
        if len(answer) or arm is None:
            return answer
        return replace(answer, fallback=Fallback(arm, self._registration.arm_names[arm]))

    def _repeated(self, n: int, request: str, before: int) -> Answer:
        """Return again the tickets that a request was given before; asking for another number of them is a conflict."""
        content = self._rows.event(self._id, before).content
        asked = content.get("n", n)  # which logs did not keep at first
        if asked != n:
            raise ConflictError(f"request {shown(request)} asked for {asked:,} tickets before, and now for {n:,}")
        return self._answer(slots_of(content), repeated=True)

    def _answer(self, slots: Sequence[Slot], repeated: bool) -> Answer:
        names = self._registration.arm_names
        written = self.ids.write_all([ticket for ticket, _ in slots])
        rows = [(text, arm, names[arm], ticket[0]) for text, (ticket, arm) in zip(written, slots, strict=True)]
        return Answer(tuple(all_made(Assignment, rows)), "issued", repeated=repeated)

    def _close_overdue(self) -> None:
        """Give up tickets that have waited longer than the registration's deadline, as an event of their own."""
        deadline = self._registration.deadline
        if deadline is None or self.standing.status != "running" or not self.standing.tickets.open:
            return
        before = earlier(self._rows.time, deadline)
        tickets = self._rows.overdue(self._id, before, MOST_LOST)
        if tickets:
            self._give_up(tickets, DEADLINE_REASON, DEADLINE_BY, deadline)
            self._save()

    # -- telling -------------------------------------------------------------------------------------------------------

    def tell(self, tellings: Sequence[CheckedTelling]) -> list[Told]:
        """Record rewards of tickets with their metrics, all or none; what became of each comes back."""
        tickets = self.ids.read_all([telling[0] for telling in tellings])
        seen = self._rows.tickets(self._id, tickets)
        known = self._known_metrics(tickets, tellings, seen)
        answers: list[Told] = []
        new: dict[str, list[tuple[Ticket, float]]] = {"late": [], "told": []}
        done: dict[Ticket, tuple[str, float]] = {}  # what this very step has recorded
        for ticket, (text, reward, metrics, arm) in zip(tickets, tellings, strict=True):
            row = seen.get(ticket)
            if row is None:
                raise InvalidArgument("ticket", text, "a ticket of this experiment")
            _, _, mine, status, before = row
            if arm is not None and arm != mine:
                names = self._registration.arm_names
                raise ConflictError(f"ticket {text} has the arm {names[mine]}, not {names[arm]}")
            if ticket in done:
                status, before = done[ticket]
            answer, after = _TELLING[status]
            if after is not None:
                new[after].append((ticket, reward))
                done[ticket] = after, reward
                if metrics:
                    known[ticket] = metrics
            elif before != reward:
                other = f"ticket {text} has the reward {before!r} and was told {reward!r}"
                raise ConflictError(f"{other}; a reward that was wrong can be corrected")
            elif other_metrics := conflict_of(known.get(ticket, {}), metrics):
                raise ConflictError(f"ticket {text} {other_metrics}; metrics come with the reward and stay as they are")
            answers.append(answer)
        if known:
            self._check_names({name for ticket in done for name in known.get(ticket, ())})
        if new["told"]:
            self.standing.tell_many(new["told"])
        self.standing.late(len(new["late"]))
        self._record("late", "late", new["late"], known)
        self._record("tell", "told", new["told"], known)
        self._decide()
        if any(new.values()):
            self._save()
        return answers

    def _known_metrics(
        self, tickets: Sequence[Ticket], tellings: Sequence[CheckedTelling], rows: TicketRows
    ) -> dict[Ticket, Metrics]:
        """Look up stored metrics of those tickets that have a reward already and are told metrics again."""
        both = zip(tickets, tellings, strict=True)
        told = [ticket for ticket, (_, _, metrics, _) in both if metrics and ticket in rows]
        again = [ticket for ticket in told if rows[ticket].reward is not None]
        return dict(self._rows.metrics(self._id, again)) if again else {}

    def _check_names(self, names: set[str]) -> None:
        """Raise `InvalidArgument` if these metrics would give the experiment more names than are allowed."""
        if not names:
            return
        before = self._rows.metric_names(self._id)
        beyond = sorted(names.difference(before))[MOST_METRICS - len(before) :]
        if beyond:
            allowed = f"at most {MOST_METRICS} names in an experiment, which has {len(before)}"
            raise InvalidArgument("metrics", beyond[0], allowed)

    def _record(
        self, kind: Kind, status: str, told: Sequence[tuple[Ticket, float]], metrics: Mapping[Ticket, Metrics]
    ) -> None:
        """Append one event with these rewards and their metrics, and set the status of their tickets."""
        if told:
            content: dict[str, Any] = {"rewards": [[*ticket, reward] for ticket, reward in told]}
            mine = [(ticket, metrics[ticket]) for ticket, _ in told if ticket in metrics] if metrics else []
            if mine:
                content["metrics"] = by_name(mine)
            self._append(kind, content)
            self._rows.update(self._id, status, told)
            self._rows.add_metrics(self._id, mine)

    def tell_totals(self, batch: int, totals: Totals) -> Told:
        """Record a whole batch by each arm's count and sum; return "recorded", or "repeated" if it was there before."""
        counts, sums = checked_totals(self._registration, totals)
        content = {"batch": batch, "counts": counts, "sums": [sum_text(total) for total in sums]}
        stage = self.standing.stage
        if batch < stage.batch:
            done = [event.content for event in self._rows.decisions(self._id)]
            if any(all(past[key] == content[key] for key in content) for past in done):
                return "repeated"
            raise ConflictError(f"batch {batch} was decided with other totals")
        if self.standing.status != "running":
            raise ConflictError(f"the experiment is {self.standing.status}")
        if batch > stage.batch:
            raise InvalidArgument("batch", batch, f"{stage.batch}, which is being played")
        if self.standing.issued:
            raise ConflictError(f"batch {batch} has tickets: tell their rewards one by one")
        if tuple(counts) != stage.pulls:
            names = self._registration.arm_names
            planned = {names[arm]: count for arm, count in enumerate(stage.pulls) if count}
            raise InvalidArgument("totals", str(counts), f"the counts that were planned: {planned}")
        self.standing.aggregate(counts, sums)
        self._append("totals", content)
        self._decide()
        self._save()
        return "recorded"

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def correct(self, text: str, reward: float, reason: str) -> Changed:
        """Record another reward for a ticket of this batch; whether it was new comes back."""
        ticket, row = self._found(text)
        if row.status != "told":
            raise ConflictError(f"ticket {text} is {row.status}: only a reward that counts can be corrected")
        if row.reward == reward:
            return "repeated"
        if ticket.batch != self.standing.stage.batch:
            raise ConflictError(f"ticket {text} is of batch {ticket.batch}, which is decided")
        assert row.reward is not None
        self.standing.correct(ticket, row.reward, reward)
        self._append("correct", {"ticket": list(ticket), "before": row.reward, "after": reward, "reason": reason})
        self._rows.update(self._id, "told", [(ticket, reward)])
        self._save()
        return "recorded"

    def missing(self, texts: Sequence[str], reason: str, by: str) -> list[Changed]:
        """Record that rewards of tickets will not come, so that their slots are handed out again; all or none."""
        tickets = [self.ids.read(text) for text in texts]
        rows = self._rows.tickets(self._id, tickets)
        answers: list[Changed] = []
        lost: dict[Ticket, None] = {}  # in order, each once
        for ticket, text in zip(tickets, texts, strict=True):
            if ticket not in rows:
                raise InvalidArgument("ticket", text, "a ticket of this experiment")
            if rows[ticket].status == "told":
                raise ConflictError(f"ticket {text} has the reward {rows[ticket].reward!r}")
            new = rows[ticket].status == "open" and ticket not in lost
            answers.append("recorded" if new else "repeated")
            if new:
                lost[ticket] = None
        if lost:
            self._give_up(list(lost), reason, by, None)
            self._save()
        return answers

    def give_up_older(self, seconds: float, reason: str, by: str) -> int:
        """Give up the oldest tickets that have waited for so many seconds; how many comes back."""
        tickets = self._rows.overdue(self._id, earlier(self._rows.time, seconds), MOST_LOST)
        if tickets:
            self._give_up(tickets, reason, by, seconds)
            self._save()
        return len(tickets)

    def _give_up(self, tickets: Sequence[Ticket], reason: str, by: str, older_than: float | None) -> None:
        """Add an event with tickets whose rewards will not come."""
        self.standing.missing(tickets)
        content: dict[str, Any] = {"tickets": [list(ticket) for ticket in tickets], "reason": reason, "by": by}
        if older_than is not None:
            content["older_than"] = older_than
        self._append("lost", content)
        self._rows.update(self._id, "missing", [(ticket, None) for ticket in tickets])

    def stop(self, reason: str) -> Changed:
        """Record the end before the horizon, after which no tickets are handed out."""
        if self.standing.status == "stopped":
            return "repeated"
        if self.standing.status == "finished":
            raise ConflictError("the experiment is finished")
        self.standing.status = "stopped"
        self._append("stop", {"reason": reason})
        self._save()
        return "recorded"

    # -- inside --------------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Let the policy decide, and append its decision, if the batch's last reward has come."""
        if self.standing.due:
            content, after = self.standing.decide()
            self._append("decide", content)
            self.standing = after

    def _append(self, kind: Kind, content: Mapping[str, Any]) -> int:
        """Add an event to the log; its number comes back."""
        if self._versions:
            versions, self._versions = self._versions, {}
            self._append("software", {"versions": versions})
            self._software = with_version(self._software, versions)
        event = self._rows.append(self._id, self.head, self._count, kind, content)
        self._count, self.head = event.number, event.hash
        return event.number

    def _save(self) -> None:
        """Write the standing after this step, the head and the number of events into the experiment's row."""
        self._rows.save(self._id, self._count, self.head, self.standing.to_json(), self._software)

    def _found(self, text: str) -> tuple[Ticket, TicketRow]:
        """Return a ticket, given by its id, and its row; raise `InvalidArgument` if there is no such ticket."""
        ticket = self.ids.read(text)
        row = self._rows.tickets(self._id, [ticket]).get(ticket)
        if row is None:
            raise InvalidArgument("ticket", text, "a ticket of this experiment")
        return ticket, row


def with_version(known: str, versions: Mapping[str, str]) -> str:
    """Return the JSON list of software versions that wrote to an experiment, with one more at its end."""
    return json.dumps([*(json.loads(known) if known else []), versions])


def unit_request(key: str, unit: str) -> str:
    """Name the request of a unit by a keyed hash of its id: who has the log cannot look for a person in it."""
    return UNIT_PREFIX + hmac.new(bytes.fromhex(key), unit.encode(), "sha256").hexdigest()[:32]


def _nothing(standing: Standing, names: Sequence[str]) -> Answer:
    """Return an answer without tickets, which says why: the experiment waits, is finished, or was stopped."""
    if standing.stage.winner is not None:
        return Answer((), "finished", f"the experiment is finished: {names[standing.stage.winner]} is the winner")
    if standing.status != "running":
        return Answer((), standing.status, f"the experiment is {standing.status}")
    waiting = standing.stage.length - sum(standing.counts)
    return Answer((), "waiting", f"batch {standing.stage.batch} waits for {waiting} rewards")


def slots_of(content: Mapping[str, Any]) -> list[Slot]:
    """Return the tickets that an ask event handed out, each with its arm."""
    batch = int(content["batch"])
    return [(Ticket(batch, position, attempt), arm) for position, attempt, arm in content["slots"]]


def checked_totals(registration: Arms, totals: Totals) -> tuple[list[int], list[Fraction]]:
    """Check a batch told as totals; each arm's count and exact sum come back, 0 for arms that are not named."""
    if not isinstance(totals, Mapping):
        raise InvalidArgument("totals", totals, _TOTALS_ALLOWED)
    names, ends = registration.arm_names, registration.rewards
    counts, sums = [0] * len(names), [Fraction(0)] * len(names)
    seen: set[int] = set()
    for key, pair in totals.items():
        arm = arm_of(plain(key), names)
        if arm in seen:
            raise InvalidArgument("totals", f"arm {names[arm]} more than once", _TOTALS_ALLOWED)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidArgument("totals", pair, _TOTALS_ALLOWED)
        seen.add(arm)
        counts[arm] = integer(pair[0], "count", 0, 10**15)
        sums[arm] = ends.checked_sum(plain(pair[1]), counts[arm])
    return counts, sums
