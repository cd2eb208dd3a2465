"""One transaction of an experiment: what a single step does, from the locked row to the events that it adds.

A step looks first whether it was done before: a caller that lost its answer may send it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from banditto.core.errors import ConflictError, InvalidArgument
from banditto.core.exact import integer
from banditto.live.answers import Answer, Assignment, Changed, Told
from banditto.live.event_log import Kind, Row
from banditto.live.fold import Course, Slot, Standing, Ticket, sum_text
from banditto.live.metrics import MOST_METRICS, Metrics, by_name, checked_metrics, conflict_of
from banditto.live.registration import Registration, RewardRange, plain
from banditto.live.sql import Writing

Totals = Mapping[int, tuple[int, float]] | Mapping[str, tuple[int, float]] | Mapping[int | str, tuple[int, float]]
# By a ticket's status: the answer to its reward, and the status that follows; None where there is a reward already.
_TELLING: dict[str, tuple[Told, str | None]] = {
    "open": ("recorded", "told"),
    "missing": ("excluded", "late"),
    "told": ("repeated", None),
    "late": ("excluded", None),
}
Telling = tuple[str, float] | tuple[str, float, Metrics | None]  # a ticket's id, its reward and its metrics
_TOTALS_ALLOWED = "a count and a total for each arm that was planned"


class Transaction:
    """Takes steps on a locked experiment: adds their events, and keeps the standing that they lead to."""

    def __init__(self, rows: Writing, row: Row, standing: Standing, course: Course) -> None:
        self.standing = standing
        self._rows, self._course, self._registration = rows, course, course.registration
        self.head = str(row["head"])
        self._id, self._count = int(row["id"]), int(row["events"])
        self._software: dict[str, str] = {}  # what the experiment's row says of its last writer, if that is new
        self._versions: dict[str, str] = {}

    def written_by(self, software: str, versions: Mapping[str, str]) -> None:
        """Note that another version of the software goes on from here, if this step adds anything to the log."""
        self._software, self._versions = {"software": software}, dict(versions)

    # -- asking --------------------------------------------------------------------------------------------------------

    def ask(self, n: int, request: str) -> Answer:
        """Hand out up to `n` tickets, or those that this request was given before."""
        before = self._rows.request(self._id, request)
        if before is not None:
            return self._answer(slots_of(self._rows.event(self._id, before).content))
        slots = self.standing.hand_out(n) if self.standing.free else []
        if not slots:
            return _nothing(self.standing, self._registration.arm_names)
        places = [[ticket.position, ticket.attempt, arm] for ticket, arm in slots]
        event = self._append("ask", {"batch": self.standing.stage.batch, "slots": places, "request": request})
        self._rows.issue(self._id, slots)
        self._rows.remember(self._id, request, event)
        self._save()
        return self._answer(slots)

    def _answer(self, slots: Sequence[Slot]) -> Answer:
        names = self._registration.arm_names
        given = tuple(Assignment(ticket.id, arm, names[arm], ticket.batch) for ticket, arm in slots)
        return Answer(given, "issued")

    # -- telling -------------------------------------------------------------------------------------------------------

    def tell(self, tellings: Sequence[tuple[str, float, Metrics]]) -> list[Told]:
        """Record rewards of tickets with their metrics, all or none; what became of each comes back."""
        tickets = [ticket_of(text) for text, _, _ in tellings]
        rows = self._rows.tickets(self._id, tickets)
        seen: dict[Ticket, tuple[str, float | None]] = {k: (row["status"], row["reward"]) for k, row in rows.items()}
        known = self._known_metrics(tickets, tellings, seen)
        answers: list[Told] = []
        new: dict[str, list[tuple[Ticket, float, Metrics]]] = {"late": [], "told": []}
        for ticket, (text, reward, metrics) in zip(tickets, tellings, strict=True):
            if ticket not in seen:
                raise InvalidArgument("ticket", text, "a ticket of this experiment")
            status, before = seen[ticket]
            answer, after = _TELLING[status]
            if after is not None:
                new[after].append((ticket, reward, metrics))
                seen[ticket], known[ticket] = (after, reward), metrics
            elif before != reward:
                other = f"ticket {text} has the reward {before!r} and was told {reward!r}"
                raise ConflictError(f"{other}; a reward that was wrong can be corrected")
            elif other_metrics := conflict_of(known.get(ticket, {}), metrics):
                raise ConflictError(f"ticket {text} {other_metrics}; metrics come with the reward and stay as they are")
            answers.append(answer)
        self._check_names({name for told in new.values() for _, _, metrics in told for name in metrics})
        for ticket, reward, _ in new["told"]:
            self.standing.tell(ticket, reward)
        self._record("late", "late", new["late"])
        self._record("tell", "told", new["told"])
        self._decide()
        if any(new.values()):
            self._save()
        return answers

    def _known_metrics(
        self,
        tickets: Sequence[Ticket],
        tellings: Sequence[tuple[str, float, Metrics]],
        seen: Mapping[Ticket, tuple[str, float | None]],
    ) -> dict[Ticket, Metrics]:
        """Look up the metrics of tickets that have a reward, where somebody tells metrics again."""
        both = zip(tickets, tellings, strict=True)
        again = [ticket for ticket, telling in both if telling[2] and seen.get(ticket, ("", None))[1] is not None]
        return dict(self._rows.metrics(self._id, again)) if again else {}

    def _check_names(self, names: set[str]) -> None:
        """Refuse metrics that would give the experiment too many names."""
        if not names:
            return
        before = self._rows.metric_names(self._id)
        beyond = sorted(names.difference(before))[MOST_METRICS - len(before) :]
        if beyond:
            allowed = f"at most {MOST_METRICS} names in an experiment, which has {len(before)}"
            raise InvalidArgument("metrics", beyond[0], allowed)

    def _record(self, kind: Kind, status: str, told: Sequence[tuple[Ticket, float, Metrics]]) -> None:
        """Add an event with these rewards and metrics, if there are any, and give their tickets another status."""
        if told:
            content: dict[str, Any] = {"rewards": [[*ticket, reward] for ticket, reward, _ in told]}
            if metrics := by_name((ticket, metrics) for ticket, _, metrics in told):
                content["metrics"] = metrics
            self._append(kind, content)
            self._rows.update(self._id, [(ticket, status, reward) for ticket, reward, _ in told])
            self._rows.add_metrics(self._id, [(ticket, metrics) for ticket, _, metrics in told])

    def tell_totals(self, batch: int, totals: Totals) -> Told:
        """Record a whole batch at once; whether it was new comes back."""
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
        if row["status"] != "told":
            raise ConflictError(f"ticket {text} is {row['status']}: only a reward that counts can be corrected")
        if row["reward"] == reward:
            return "repeated"
        if ticket.batch != self.standing.stage.batch:
            raise ConflictError(f"ticket {text} is of batch {ticket.batch}, which is decided")
        self.standing.correct(ticket, row["reward"], reward)
        self._append("correct", {"ticket": list(ticket), "before": row["reward"], "after": reward, "reason": reason})
        self._rows.update(self._id, [(ticket, "told", reward)])
        self._save()
        return "recorded"

    def missing(self, text: str, reason: str) -> Changed:
        """Record that a ticket's reward will not come, so that its slot is handed out again."""
        ticket, row = self._found(text)
        if row["status"] in ("missing", "late"):
            return "repeated"
        if row["status"] == "told":
            raise ConflictError(f"ticket {text} has the reward {row['reward']!r}")
        self.standing.missing(ticket)
        self._append("missing", {"ticket": list(ticket), "reason": reason})
        self._rows.update(self._id, [(ticket, "missing", None)])
        self._save()
        return "recorded"

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
        """Take the decision if the batch's last reward is there."""
        if self.standing.due:
            content, after = self.standing.decide(self._course)
            self._append("decide", content)
            self.standing = after

    def _append(self, kind: Kind, content: Mapping[str, Any]) -> int:
        """Add an event to the log; its number comes back."""
        if self._versions:
            versions, self._versions = self._versions, {}
            self._append("software", {"versions": versions})
        event = self._rows.append(self._id, self.head, self._count, kind, content)
        self._count, self.head = event.number, event.hash
        return event.number

    def _save(self) -> None:
        """Write what the events add up to beside them."""
        values = {"events": self._count, "head": self.head, "progress": self.standing.to_json()}
        self._rows.save(self._id, **values, **self._software)

    def _found(self, text: str) -> tuple[Ticket, Row]:
        """Look up a ticket that must be there, and its row."""
        ticket = ticket_of(text)
        row = self._rows.tickets(self._id, [ticket]).get(ticket)
        if row is None:
            raise InvalidArgument("ticket", text, "a ticket of this experiment")
        return ticket, row


def _nothing(standing: Standing, names: Sequence[str]) -> Answer:
    """Answer without a ticket, and say why there is none."""
    if standing.stage.winner is not None:
        return Answer((), "finished", f"the experiment is finished: {names[standing.stage.winner]} is the winner")
    if standing.status != "running":
        return Answer((), standing.status, f"the experiment is {standing.status}")
    waiting = standing.stage.length - sum(standing.counts)
    return Answer((), "waiting", f"batch {standing.stage.batch} waits for {waiting} rewards")


def ticket_of(text: str) -> Ticket:
    """Read the id of a ticket; text that is none is refused."""
    ticket = Ticket.parse(text)
    if ticket is None:
        raise InvalidArgument("ticket", text, "a ticket of this experiment, such as 1-1")
    return ticket


def checked_telling(telling: Telling, ends: RewardRange) -> tuple[str, float, Metrics]:
    """Check a reward and its metrics, whatever the ticket is; all three come back."""
    try:
        ticket, reward, *more = telling
        (metrics,) = more or [None]
    except (TypeError, ValueError):
        raise InvalidArgument("rewards", telling, "a ticket's id, its reward and, if there are any, metrics") from None
    return ticket, ends.checked(reward), checked_metrics(metrics)


def slots_of(content: Mapping[str, Any]) -> list[Slot]:
    """Read the tickets and arms of an ask event."""
    batch = int(content["batch"])
    return [(Ticket(batch, position, attempt), arm) for position, attempt, arm in content["slots"]]


def checked_totals(registration: Registration, totals: Totals) -> tuple[list[int], list[Fraction]]:
    """Check a batch told as totals; each arm's count and exact sum come back, 0 for arms that are not named."""
    if not isinstance(totals, Mapping):
        raise InvalidArgument("totals", totals, _TOTALS_ALLOWED)
    names, ends = registration.arm_names, registration.rewards
    counts, sums = [0] * len(names), [Fraction(0)] * len(names)
    seen: set[int] = set()
    for key, pair in totals.items():
        arm = _arm(plain(key), names)
        if arm in seen:
            raise InvalidArgument("totals", f"arm {names[arm]} more than once", _TOTALS_ALLOWED)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidArgument("totals", pair, _TOTALS_ALLOWED)
        seen.add(arm)
        counts[arm] = integer(pair[0], "count", 0, 10**15)
        sums[arm] = ends.checked_sum(plain(pair[1]), counts[arm])
    return counts, sums


def _arm(key: object, names: tuple[str, ...]) -> int:
    """Find the number of an arm that is given by its name or its number."""
    if isinstance(key, str) and key in names:
        return names.index(key)
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
        return key
    number = "" if isinstance(key, str) else ", or its number from 0"  # text is a name
    raise InvalidArgument("arm", key, f"one of {', '.join(names)}{number}")
