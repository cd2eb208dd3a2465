"""The fold: what the events of an experiment add up to. Live runs and `verify` take the same steps.

A `Course` asks the policy for each stage: the same `plan` and `decide` as in the simulator, for one execution. A
`Standing` keeps what the next step needs and no more: the stage, how many of its slots were handed out, those to be
handed out again, and each arm's count and exact sum. A step that does not fit raises `LogError`, which a live run
cannot cause.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.errors import ContractError, LogError
from banditto.core.protocol import fraction
from banditto.live.order import BatchOrder
from banditto.live.registration import Registration
from banditto.policies.policy import own_level

_TICKET = re.compile("([0-9]{1,16})-([0-9]{1,16})(?:-([0-9]{1,16}))?")
MOST_BATCHES = 10**6  # of any experiment; databases have limits for the number of a batch
Status = Literal["running", "finished", "stopped"]


def sum_text(value: Fraction) -> str:
    """Write an exact sum as text, such as 3/2."""
    return f"{value.numerator}/{value.denominator}"


def exact_sum(text: str) -> Fraction:
    """Read what `sum_text` wrote; the same fraction comes back."""
    return Fraction(text)


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
        """Read an id; its ticket comes back, None if no ticket can have that id."""
        parts = _TICKET.fullmatch(text) if isinstance(text, str) else None
        if parts is None:
            return None
        batch, place, attempt = (int(part) for part in parts.groups("1"))
        found = cls(batch, place - 1, attempt - 1)
        possible = found.batch <= MOST_BATCHES and found.position >= 0 and found.attempt <= MOST_BATCHES
        return found if possible and found.id == text else None


Slot = tuple[Ticket, int]  # a ticket and the arm that it gives


@dataclass(frozen=True)
class Stage:
    """A batch that is being played; without pulls, the end."""

    batch: int  # from 1
    pulls: tuple[int, ...]
    spent: int  # pulls before this batch
    state: Any  # the policy's
    seed: int
    winner: int | None = None  # the arm that a policy at the level of winners has named; that is the end

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to play."""
        return not self.pulls

    @cached_property
    def order(self) -> BatchOrder:
        """The arms of this batch's slots."""
        return BatchOrder(self.seed, self.batch, self.pulls)

    @cached_property
    def length(self) -> int:
        """The number of this batch's slots."""
        return sum(self.pulls)


class Course:
    """Leads one registration from stage to stage, as replicate 0 of its seed."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration
        self.horizon = registration.protocol.horizon
        self._policy = registration.policy()
        self._level = own_level(self._policy)
        self._seed = registration.protocol.seed
        self._coins = Coins(self._seed)

    def start(self) -> Stage:
        """Plan the first batch."""
        return self._planned(1, 0, self._policy.init(1))

    def after(self, stage: Stage, totals: Sequence[float]) -> Stage:
        """Decide on a batch's totals, in the policy's units; the stage after it comes back."""
        spent = stage.spent + stage.length
        if spent >= self.horizon:  # pulls that end the horizon decide nothing
            return Stage(stage.batch + 1, (), spent, stage.state, self._seed)
        state = self._policy.decide(stage.state, np.array([totals], dtype=np.float64), self._coins)
        return self._planned(stage.batch + 1, spent, state)

    def _planned(self, batch: int, spent: int, state: Any) -> Stage:
        """Ask the policy for a batch's pulls, which must fit into the horizon."""
        plan = self._policy.plan(state)
        pulls = () if plan is None else tuple(int(count) for count in np.asarray(plan)[0])
        left = self.horizon - spent
        if not 0 < sum(pulls) <= left:
            raise ContractError(f"{self._policy.name} planned {sum(pulls)} pulls of {left}")
        if self._level == "winner" and max(pulls) == left:  # who asks for the winner need not play it
            return Stage(batch, (), spent, state, self._seed, pulls.index(left))
        return Stage(batch, pulls, spent, state, self._seed)


@dataclass
class Standing:
    """Keeps where an experiment stands, and takes it from step to step."""

    stage: Stage
    status: Status = "running"
    issued: int = 0  # slots of this batch that were handed out at least once
    again: list[tuple[int, int]] = field(default_factory=list)  # (position, attempt) to be handed out before others
    counts: list[int] = field(default_factory=list)
    sums: list[Fraction] = field(default_factory=list)

    @classmethod
    def start(cls, stage: Stage) -> Standing:
        """Begin a stage, of which nothing was handed out yet."""
        arms = len(stage.pulls)
        return cls(stage, "finished" if stage.finished else "running", 0, [], [0] * arms, [Fraction(0)] * arms)

    # -- what can be done ----------------------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        """The number of slots that can be handed out now."""
        return 0 if self.status != "running" else len(self.again) + self.stage.length - self.issued

    @property
    def due(self) -> bool:
        """Whether the batch's last reward is there, so that a decision must follow."""
        return self.status == "running" and tuple(self.counts) == self.stage.pulls

    # -- steps ---------------------------------------------------------------------------------------------------------

    def hand_out(self, number: int) -> list[Slot]:
        """Hand out the next tickets, at most `number`: slots that come again first, then new ones in order."""
        number = min(number, self.free)
        repeated, self.again = self.again[:number], self.again[number:]
        first, self.issued = self.issued, self.issued + number - len(repeated)
        places = repeated + [(position, 0) for position in range(first, self.issued)]
        batch, order = self.stage.batch, self.stage.order
        return [(Ticket(batch, position, attempt), order.arm(position)) for position, attempt in places]

    def tell(self, ticket: Ticket, reward: float, arm: int | None = None) -> None:
        """Add a reward that came; who knows the ticket's arm may say so."""
        arm = self._arm(ticket) if arm is None or ticket.batch != self.stage.batch else arm
        self.counts[arm] += 1
        self.sums[arm] += Fraction(reward)

    def correct(self, ticket: Ticket, before: float, after: float) -> None:
        """Put another reward in the place of one that was wrong."""
        self.sums[self._arm(ticket)] += Fraction(after) - Fraction(before)

    def missing(self, ticket: Ticket) -> None:
        """Note that a reward will not come, so that its slot is handed out again."""
        self._arm(ticket)
        self.again.append((ticket.position, ticket.attempt + 1))

    def aggregate(self, counts: Sequence[int], sums: Sequence[Fraction]) -> None:
        """Take a whole batch as totals."""
        if self.issued or tuple(counts) != self.stage.pulls or self.status != "running":
            raise LogError("totals of another batch, or of one that has tickets")
        self.issued = self.stage.length
        self.counts, self.sums = list(counts), list(sums)

    def decide(self, course: Course) -> tuple[dict[str, Any], Standing]:
        """Let the policy decide on a complete batch; what the log says of it comes back, and where it leads."""
        if not self.due:
            raise LogError("a decision before the last reward")
        totals = [course.registration.total(*both) for both in zip(self.sums, self.counts, strict=True)]
        after = course.after(self.stage, totals)
        content: dict[str, Any] = {
            "batch": self.stage.batch,
            "counts": self.counts,
            "sums": [sum_text(total) for total in self.sums],
            "totals": [fraction(total) for total in totals],
            "next": list(after.pulls),
        }
        if after.winner is not None:
            content["winner"] = after.winner
        return content, Standing.start(after)

    def chosen(self, before: Sequence[int]) -> int | None:
        """Return the arm that was named, or that is pulled alone since a decision; None if there is none yet.

        `before` are the pulls of the batch before this one, which was the last one if the experiment is finished.
        """
        if self.stage.winner is not None:
            return self.stage.winner
        played = [arm for arm, count in enumerate(self.stage.pulls or before) if count]
        return played[0] if len(played) == 1 else None

    def _arm(self, ticket: Ticket) -> int:
        """Find the arm of a ticket of this batch."""
        if ticket.batch != self.stage.batch or not 0 <= ticket.position < self.issued:
            raise LogError(f"ticket {ticket.id}, which is not of this batch")
        return self.stage.order.arm(ticket.position)

    # -- as text -------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Write all but the stage, which follows from the decisions."""
        content = {
            "batch": self.stage.batch,
            "status": self.status,
            "issued": self.issued,
            "again": self.again,
            "counts": self.counts,
            "sums": [sum_text(total) for total in self.sums],
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, stage: Stage) -> Standing:
        """Read what `to_json` wrote; the same standing comes back, at its stage."""
        content: Mapping[str, Any] = json.loads(text)
        again = [(int(position), int(attempt)) for position, attempt in content["again"]]
        sums = [exact_sum(total) for total in content["sums"]]
        return cls(stage, content["status"], content["issued"], again, list(content["counts"]), sums)
