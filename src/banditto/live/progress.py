"""The fold: what the events of an experiment add up to. Live runs and `verify` apply the same steps.

Only what the next step needs is kept: the batch, how many of its slots were handed out, those to be handed out again,
and each arm's count and exact sum. A step that does not fit raises `LogError`, which a live run cannot cause.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from banditto.core.errors import BandittoError
from banditto.live.amounts import read, written
from banditto.live.course import Course, Stage
from banditto.live.registration import Registration

MOST_BATCHES = 10**6  # of any experiment; databases have limits for the number of a batch
Status = Literal["running", "finished", "stopped"]


class LogError(BandittoError):
    """An event that does not follow from those before it."""

    code = "log"

    def __init__(self, problem: str, number: int | None = None) -> None:
        self.problem, self.number = problem, number
        super().__init__(problem if number is None else f"event {number}: {problem}")

    def __reduce__(self) -> tuple[type[LogError], tuple[str, int | None]]:
        return LogError, (self.problem, self.number)


class Ticket(NamedTuple):
    """A slot that was handed out; a slot whose reward never came is handed out again, as another attempt."""

    batch: int
    position: int  # from 0 in its batch
    attempt: int  # from 0

    @property
    def id(self) -> str:
        """What callers see: batch and place from 1, and a third number from the second attempt on."""
        first = f"{self.batch}-{self.position + 1}"
        return f"{first}-{self.attempt + 1}" if self.attempt else first

    @classmethod
    def parse(cls, text: str) -> Ticket | None:
        """The ticket of an id; None if there can be none."""
        parts = text.split("-") if isinstance(text, str) else []
        if not 2 <= len(parts) <= 3 or not all(p.isascii() and p.isdigit() and len(p) <= 16 for p in parts):
            return None
        found = cls(int(parts[0]), int(parts[1]) - 1, int(parts[2]) - 1 if len(parts) == 3 else 0)
        possible = found.batch <= MOST_BATCHES and found.position >= 0 and found.attempt <= MOST_BATCHES
        return found if possible and found.id == text else None


@dataclass
class Progress:
    """Where an experiment stands."""

    stage: Stage
    status: Status = "running"
    issued: int = 0  # slots of this batch that were handed out at least once
    again: list[tuple[int, int]] = field(default_factory=list)  # (position, attempt) to be handed out before others
    counts: list[int] = field(default_factory=list)
    sums: list[Fraction] = field(default_factory=list)

    @classmethod
    def start(cls, stage: Stage, status: Status = "running") -> Progress:
        """Nothing handed out yet."""
        arms = len(stage.pulls)
        return cls(stage, "finished" if stage.finished else status, 0, [], [0] * arms, [Fraction(0)] * arms)

    # -- what can be done ----------------------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        """Slots that can be handed out now."""
        return 0 if self.status != "running" else len(self.again) + self.stage.length - self.issued

    @property
    def complete(self) -> bool:
        """Whether all rewards of the batch are there."""
        return not self.stage.finished and tuple(self.counts) == self.stage.pulls

    def slots(self, number: int) -> list[tuple[Ticket, int]]:
        """The next tickets and their arms: slots to be handed out again first, then new ones in order."""
        batch, order = self.stage.batch, self.stage.order
        number = min(number, self.free)
        tickets = [Ticket(batch, position, attempt) for position, attempt in self.again[:number]]
        fresh = number - len(tickets)
        tickets += [Ticket(batch, position, 0) for position in range(self.issued, self.issued + fresh)]
        return [(ticket, order.arm(ticket.position)) for ticket in tickets]

    def totals(self, registration: Registration) -> list[float]:
        """Each arm's total in the policy's units."""
        return [registration.total(total, count) for total, count in zip(self.sums, self.counts, strict=True)]

    # -- steps ---------------------------------------------------------------------------------------------------------

    def ask(self, tickets: Sequence[Ticket]) -> None:
        """Hand out these tickets."""
        if not tickets or [ticket for ticket, _ in self.slots(len(tickets))] != list(tickets):
            raise LogError("tickets that were not the next ones")
        repeated = min(len(tickets), len(self.again))
        del self.again[:repeated]
        self.issued += len(tickets) - repeated

    def tell(self, ticket: Ticket, reward: float) -> None:
        """A reward came."""
        arm = self._arm(ticket)
        self.counts[arm] += 1
        self.sums[arm] += Fraction(reward)

    def correct(self, ticket: Ticket, before: float, after: float) -> None:
        """A reward was wrong."""
        self.sums[self._arm(ticket)] += Fraction(after) - Fraction(before)

    def missing(self, ticket: Ticket) -> None:
        """A reward will not come: hand the slot out again."""
        self._arm(ticket)
        self.again.append((ticket.position, ticket.attempt + 1))

    def aggregate(self, counts: Sequence[int], sums: Sequence[Fraction]) -> None:
        """The whole batch came as totals."""
        if self.issued or tuple(counts) != self.stage.pulls or self.status != "running":
            raise LogError("totals of another batch, or of one that has tickets")
        self.issued = self.stage.length
        self.counts, self.sums = list(counts), list(sums)

    def decide(self, course: Course, registration: Registration) -> Progress:
        """The next batch."""
        if not self.complete or self.status != "running":
            raise LogError("a decision before the last reward")
        return Progress.start(course.after(self.stage, self.totals(registration)))

    def _arm(self, ticket: Ticket) -> int:
        if ticket.batch != self.stage.batch or not 0 <= ticket.position < self.issued:
            raise LogError(f"ticket {ticket.id}, which is not of this batch")
        return self.stage.order.arm(ticket.position)

    # -- as text -------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """All but the stage, which follows from the decisions."""
        content = {
            "batch": self.stage.batch,
            "status": self.status,
            "issued": self.issued,
            "again": self.again,
            "counts": self.counts,
            "sums": [written(total) for total in self.sums],
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], stage: Stage) -> Progress:
        """What `to_json` wrote, parsed."""
        again = [(int(position), int(attempt)) for position, attempt in content["again"]]
        sums = [read(text) for text in content["sums"]]
        return cls(stage, content["status"], content["issued"], again, list(content["counts"]), sums)
