"""One step of an experiment: what a single transaction does, from the locked row to the events that it adds.

A step looks first whether it was done before: a caller that lost its answer may send it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from banditto.core.errors import ConflictError, InvalidArgument
from banditto.core.protocol import fraction
from banditto.live.amounts import written
from banditto.live.answers import Answer, Assignment, Told
from banditto.live.course import Course
from banditto.live.events import Kind
from banditto.live.progress import Progress, Ticket
from banditto.live.registration import Registration
from banditto.live.rows import Row, Writing
from banditto.live.totals import Totals, checked_totals


class Step:
    """A transaction's events, and the progress that they lead to."""

    def __init__(self, tx: Writing, row: Row, progress: Progress, registration: Registration, course: Course) -> None:
        self.progress = progress
        self._tx, self._registration, self._course = tx, registration, course
        self.head = str(row["head"])
        self._id, self._count = int(row["id"]), int(row["events"])
        self._software: str | None = None
        self._versions: dict[str, str] = {}

    def written_by(self, software: str, versions: Mapping[str, str]) -> None:
        """Note that another version of the software goes on from here, if this step adds anything to the log."""
        self._software, self._versions = software, dict(versions)

    # -- asking --------------------------------------------------------------------------------------------------------

    def ask(self, n: int, request: str) -> Answer:
        """Up to `n` tickets, or those that this request was given before."""
        before = self._tx.request(self._id, request)
        if before is not None:
            return self._answer(tickets_of(self._tx.event(self._id, before).content))
        progress = self.progress
        if not progress.free:
            if progress.status != "running":
                return Answer((), progress.status, f"the experiment is {progress.status}")
            waiting = progress.stage.length - sum(progress.counts)
            return Answer((), "waiting", f"batch {progress.stage.batch} waits for {waiting} rewards")
        slots = progress.slots(n)
        progress.ask([ticket for ticket, _ in slots])
        rows = [[ticket.position, ticket.attempt, arm] for ticket, arm in slots]
        event = self._append("ask", {"batch": progress.stage.batch, "slots": rows, "request": request})
        self._tx.issue(self._id, slots)
        self._tx.remember(self._id, request, event)
        self._save()
        return self._answer(slots)

    def _answer(self, slots: Sequence[tuple[Ticket, int]]) -> Answer:
        names = self._registration.arm_names
        given = tuple(Assignment(ticket.id, arm, names[arm], ticket.batch) for ticket, arm in slots)
        return Answer(given, "issued")

    # -- telling -------------------------------------------------------------------------------------------------------

    def tell(self, pairs: Sequence[tuple[str, float]]) -> list[Told]:
        """Rewards of tickets, all or none."""
        tickets = [known(text) for text, _ in pairs]
        rows = self._tx.tickets(self._id, tickets)
        seen: dict[Ticket, tuple[str, float | None]] = {k: (row["status"], row["reward"]) for k, row in rows.items()}
        answers: list[Told] = []
        counted: list[tuple[Ticket, float]] = []
        late: list[tuple[Ticket, float]] = []
        for ticket, (text, reward) in zip(tickets, pairs, strict=True):
            if ticket not in seen:
                raise InvalidArgument("ticket", text, "a ticket of this experiment")
            status, before = seen[ticket]
            if status in ("told", "late"):
                if before != reward:
                    other = f"ticket {text} has the reward {before!r} and was told {reward!r}"
                    raise ConflictError(f"{other}; a reward that was wrong can be corrected")
                answers.append("repeated" if status == "told" else "excluded")
            elif status == "missing":
                late.append((ticket, reward))
                answers.append("excluded")
                seen[ticket] = ("late", reward)
            else:
                counted.append((ticket, reward))
                answers.append("recorded")
                seen[ticket] = ("told", reward)
        if late:
            self._append("late", {"rewards": [[*ticket, reward] for ticket, reward in late]})
            self._tx.update(self._id, [(ticket, "late", reward) for ticket, reward in late])
        if counted:
            for ticket, reward in counted:
                self.progress.tell(ticket, reward)
            self._append("tell", {"rewards": [[*ticket, reward] for ticket, reward in counted]})
            self._tx.update(self._id, [(ticket, "told", reward) for ticket, reward in counted])
            self._decide()
        if late or counted:
            self._save()
        return answers

    def tell_totals(self, batch: int, totals: Totals) -> Told:
        """A whole batch at once."""
        counts, sums = checked_totals(self._registration, totals)
        content = {"batch": batch, "counts": counts, "sums": [written(total) for total in sums]}
        stage = self.progress.stage
        if batch < stage.batch:
            done = [event.content for event in self._tx.decisions(self._id)]
            if any(all(past[key] == content[key] for key in content) for past in done):
                return "repeated"
            raise ConflictError(f"batch {batch} was decided with other totals")
        if self.progress.status != "running":
            raise ConflictError(f"the experiment is {self.progress.status}")
        if batch > stage.batch:
            raise InvalidArgument("batch", batch, f"{stage.batch}, which is being played")
        if self.progress.issued:
            raise ConflictError(f"batch {batch} has tickets: tell their rewards one by one")
        if tuple(counts) != stage.pulls:
            names = self._registration.arm_names
            planned = {names[arm]: count for arm, count in enumerate(stage.pulls) if count}
            raise InvalidArgument("totals", str(counts), f"the counts that were planned: {planned}")
        self.progress.aggregate(counts, sums)
        self._append("totals", content)
        self._decide()
        self._save()
        return "recorded"

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def correct(self, text: str, reward: float, reason: str) -> Told:
        """Another reward for a ticket of this batch."""
        ticket, row = self._found(text)
        if row["status"] != "told":
            raise ConflictError(f"ticket {text} is {row['status']}: only a reward that counts can be corrected")
        if row["reward"] == reward:
            return "repeated"
        if ticket.batch != self.progress.stage.batch:
            raise ConflictError(f"ticket {text} is of batch {ticket.batch}, which is decided")
        self.progress.correct(ticket, row["reward"], reward)
        self._append("correct", {"ticket": list(ticket), "before": row["reward"], "after": reward, "reason": reason})
        self._tx.update(self._id, [(ticket, "told", reward)])
        self._save()
        return "recorded"

    def missing(self, text: str, reason: str) -> Told:
        """A slot to be handed out again."""
        ticket, row = self._found(text)
        if row["status"] in ("missing", "late"):
            return "repeated"
        if row["status"] == "told":
            raise ConflictError(f"ticket {text} has the reward {row['reward']!r}")
        self.progress.missing(ticket)
        self._append("missing", {"ticket": list(ticket), "reason": reason})
        self._tx.update(self._id, [(ticket, "missing", None)])
        self._save()
        return "recorded"

    def stop(self, reason: str) -> Told:
        """No more tickets."""
        if self.progress.status == "stopped":
            return "repeated"
        if self.progress.status == "finished":
            raise ConflictError("the experiment is finished")
        self.progress.status = "stopped"
        self._append("stop", {"reason": reason})
        self._save()
        return "recorded"

    # -- inside --------------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        progress = self.progress
        if not progress.complete or progress.status != "running":
            return
        totals = progress.totals(self._registration)
        after = progress.decide(self._course, self._registration)
        content = {
            "batch": progress.stage.batch,
            "counts": progress.counts,
            "sums": [written(total) for total in progress.sums],
            "totals": [fraction(total) for total in totals],
            "next": list(after.stage.pulls),
        }
        self._append("decide", content)
        self.progress = after

    def _append(self, kind: Kind, content: Mapping[str, Any]) -> int:
        if self._versions:
            versions, self._versions = self._versions, {}
            self._append("software", {"versions": versions})
        event = self._tx.append(self._id, self.head, self._count, kind, content)
        self._count, self.head = event.number, event.hash
        return event.number

    def _save(self) -> None:
        values: dict[str, Any] = {"events": self._count, "head": self.head, "progress": self.progress.to_json()}
        if self._software is not None:
            values["software"] = self._software
        self._tx.save(self._id, **values)

    def _found(self, text: str) -> tuple[Ticket, Row]:
        ticket = known(text)
        row = self._tx.tickets(self._id, [ticket]).get(ticket)
        if row is None:
            raise InvalidArgument("ticket", text, "a ticket of this experiment")
        return ticket, row


def known(text: str) -> Ticket:
    """The ticket of an id that looks like one."""
    ticket = Ticket.parse(text)
    if ticket is None:
        raise InvalidArgument("ticket", text, "a ticket of this experiment, such as 1-1")
    return ticket


def tickets_of(content: Mapping[str, Any]) -> list[tuple[Ticket, int]]:
    """The tickets and arms of an ask event."""
    batch = int(content["batch"])
    return [(Ticket(batch, position, attempt), arm) for position, attempt, arm in content["slots"]]
