"""The fold: what the events of an experiment add up to. Live runs and `verify` take the same steps.

A `Course` asks the policy for each stage: the same `plan` and `decide` as in the simulator, for one execution. A
`Standing` keeps what the next step needs and no more: the stage, how many of its slots were handed out, how many wait
to be handed out again, each arm's count and exact sum, and how many tickets there are. A step that does not fit raises
`LogError`, which a live run cannot cause.
"""

from __future__ import annotations

import json
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.digest import canonical_numbers
from banditto.core.errors import ContractError, LogError
from banditto.core.named_tuples import all_made
from banditto.core.protocol import fraction
from banditto.live.exact_sums import ExactSum, sum_text
from banditto.live.order import SlotOrder, order_of
from banditto.live.registration import Registration
from banditto.live.tickets import Slot, Ticket
from banditto.policies.policy import own_level

Status = Literal["running", "finished", "stopped"]
Place = tuple[int, int]  # a slot's position and the attempt at it


class Shares(NamedTuple):
    """The range that rewards are turned into shares of, for sums of squares."""

    low: float
    high: float
    span: float | None  # None if the policy sees no shares, or no float is as large

    def square(self, reward: float) -> float:
        """Return the square of a reward's share of the range; 0 where the policy sees no shares."""
        return 0.0 if self.span is None else ((reward - self.low) / self.span) ** 2

    def inside(self, reward: float) -> bool:
        """Return whether a reward is at neither end of its range."""
        return reward not in (self.low, self.high)


class Queue(Protocol):
    """Slots of given-up tickets, which are handed out again in order; places count from 0 in each batch."""

    first: int
    next: int

    def push(self, places: Sequence[Place]) -> None:
        """Add slots at the end."""

    def pop(self, number: int) -> list[Place]:
        """Remove and return the first slots: `number` of them, or as many as there are."""


class MemoryQueue:
    """A queue that keeps its slots in memory."""

    def __init__(self, places: Iterable[Place] = (), first: int = 0) -> None:
        self._places = deque(places)
        self.first, self.next = first, first + len(self._places)

    def push(self, places: Sequence[Place]) -> None:
        """Add slots at the end."""
        self._places.extend(places)
        self.next += len(places)

    def pop(self, number: int) -> list[Place]:
        """Remove and return the first slots: `number` of them, or as many as there are."""
        found = [self._places.popleft() for _ in range(min(number, len(self._places)))]
        self.first += len(found)
        return found

    def places(self) -> list[Place]:
        """Return the slots that wait, the first first."""
        return list(self._places)


@dataclass(frozen=True)
class Stage:
    """The batch that is being played, with the policy's state before it; a stage without pulls is the end."""

    batch: int  # from 1
    pulls: tuple[int, ...]
    spent: int  # pulls before this batch
    state: Any  # the policy's
    course: Course
    winner: int | None = None  # the arm that a policy at the level of winners has named; that is the end

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to play."""
        return not self.pulls

    @cached_property
    def order(self) -> SlotOrder:
        """The arms of this batch's slots."""
        registration = self.course.registration
        return order_of(registration.order, registration.protocol.seed, self.batch, self.pulls)

    @cached_property
    def length(self) -> int:
        """The number of this batch's slots."""
        return sum(self.pulls)


class Course:
    """Runs a registration's policy from batch to batch, with the coins of its seed."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration
        self.horizon = registration.protocol.horizon
        self.shares = shares_of(registration)
        # logs of version 1 have no squares in their decisions
        self.keeps_squares = not registration.first_version
        self._policy = registration.policy()
        self._level = own_level(self._policy)
        self._coins = Coins(registration.protocol.seed)

    def start(self) -> Stage:
        """Return the stage of the first batch."""
        return self._planned(1, 0, self._policy.init(1))

    def after(self, stage: Stage, totals: Sequence[float]) -> Stage:
        """Let the policy decide on a batch's totals, in its own units, and return the next stage."""
        spent = stage.spent + stage.length
        if spent >= self.horizon:  # pulls that end the horizon decide nothing
            return Stage(stage.batch + 1, (), spent, stage.state, self)
        state = self._policy.decide(stage.state, np.array([totals], dtype=np.float64), self._coins)
        return self._planned(stage.batch + 1, spent, state)

    def _planned(self, batch: int, spent: int, state: Any) -> Stage:
        """Return the stage of a batch, with the pulls that the policy plans; they must fit into the horizon."""
        plan = self._policy.plan(state)
        pulls = () if plan is None else tuple(int(count) for count in np.asarray(plan)[0])
        left = self.horizon - spent
        if not 0 < sum(pulls) <= left:
            raise ContractError(f"{self._policy.name} planned {sum(pulls)} pulls of {left}")
        if self._level == "winner" and max(pulls) == left:  # who asks for the winner need not play it
            return Stage(batch, (), spent, state, self, pulls.index(left))
        return Stage(batch, pulls, spent, state, self)


def shares_of(registration: Registration) -> Shares:
    """Return the range of rewards, with its span if the policy sees rewards as shares of it."""
    ends = registration.rewards
    span = ends.high - ends.low
    return Shares(ends.low, ends.high, span if registration.scales and math.isfinite(span) else None)


@dataclass
class TicketCount:
    """How many tickets of all batches are in which state."""

    open: int = 0
    told: int = 0
    missing: int = 0
    late: int = 0


@dataclass
class Standing:
    """Where an experiment stands: its batch, its counts and sums, and its tickets; each step updates it."""

    stage: Stage
    status: Status = "running"
    issued: int = 0  # slots of this batch that were handed out at least once
    queue: Queue = field(default_factory=MemoryQueue)  # slots that are handed out again, before others
    counts: list[int] = field(default_factory=list)
    exact: list[ExactSum] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)  # of shares, by arm
    others: list[int] = field(default_factory=list)  # rewards at neither end, by arm
    tickets: TicketCount = field(default_factory=TicketCount)
    told: int = 0  # rewards of this batch that count

    @classmethod
    def start(cls, stage: Stage, tickets: TicketCount | None = None, queue: Queue | None = None) -> Standing:
        """Return the standing at the beginning of a stage, before any slot is handed out."""
        arms = len(stage.pulls)
        return cls(
            stage=stage,
            status="finished" if stage.finished else "running",
            queue=MemoryQueue() if queue is None else queue,
            counts=[0] * arms,
            exact=[ExactSum() for _ in range(arms)],
            squares=[0.0] * arms,
            others=[0] * arms,
            tickets=TicketCount() if tickets is None else tickets,
        )

    # -- what can be done ----------------------------------------------------------------------------------------------

    @property
    def sums(self) -> list[Fraction]:
        """Each arm's exact sum of rewards in this batch."""
        return [total.value for total in self.exact]

    @property
    def queued(self) -> int:
        """The number of slots that wait to be handed out again."""
        return self.queue.next - self.queue.first

    @property
    def free(self) -> int:
        """The number of slots that can be handed out now."""
        return 0 if self.status != "running" else self.queued + self.stage.length - self.issued

    @property
    def due(self) -> bool:
        """Whether the batch's last reward is there, so that a decision must follow."""
        return self.told == self.stage.length and self.status == "running"  # no arm can have more than its pulls

    # -- steps ---------------------------------------------------------------------------------------------------------

    def hand_out_places(self, number: int) -> tuple[list[Place], int, list[int]]:
        """Hand out `number` slots, which must be free: those that come again first, then new ones in order.

        What comes back are the former, the position of the first new one, and the arms of the new ones.
        """
        again = self.queue.pop(min(number, self.queued)) if self.queued else []
        first, self.issued = self.issued, self.issued + number - len(again)
        self.tickets.open += number
        order = self.stage.order
        if self.issued - first == 1:
            return again, first, [order.arm(first)]
        return again, first, order.arms(first, self.issued).tolist()

    def hand_out(self, number: int) -> list[Slot]:
        """Hand out up to `number` slots, and return their tickets with their arms."""
        again, first, arms = self.hand_out_places(min(number, self.free))
        batch, order = self.stage.batch, self.stage.order
        slots = [(Ticket(batch, position, attempt), order.arm(position)) for position, attempt in again]
        new = all_made(Ticket, zip(repeat(batch), range(first, self.issued), repeat(0)))
        return slots + list(zip(new, arms, strict=True))

    def tell(self, ticket: Ticket, reward: float) -> None:
        """Add the reward of a ticket that must be of this batch."""
        self.take(self._arm(ticket), reward)

    def tell_many(self, told: Sequence[tuple[Ticket, float]]) -> None:
        """Add the rewards of tickets that must be of this batch."""
        positions = [ticket.position for ticket, _ in told]
        low, high = min(positions), max(positions) + 1
        if len(told) == 1 or high - low > 2 * len(told) or high > self.issued:
            for ticket, reward in told:
                self.tell(ticket, reward)
            return
        arms = self.stage.order.arms(low, high).tolist()  # of a block, as it was asked for
        # `take` of each, written out: a call for each reward would cost as much as all else
        batch, (bottom, top, span) = self.stage.batch, self.stage.course.shares
        pairs: list[tuple[int, float]] = []
        squares = self.squares
        for ticket, reward in told:
            if ticket.batch != batch:
                raise LogError(f"ticket {ticket.id}, which is not of this batch")
            arm = arms[ticket.position - low]
            pairs.append((arm, reward))
            if span is not None:
                squares[arm] += ((reward - bottom) / span) ** 2  # rounded, so that the order counts
        for (arm, reward), times in Counter(pairs).items():  # the same few rewards come again and again
            self.counts[arm] += times
            self.exact[arm].add(reward, times)
            self.others[arm] += times if reward not in (bottom, top) else 0
        self.told += len(told)
        self.tickets.open -= len(told)
        self.tickets.told += len(told)

    def take(self, arm: int, reward: float) -> None:
        """Count the reward of a ticket that was open, for its arm."""
        self.counts[arm] += 1
        self.told += 1
        self._add(arm, reward, 1)
        self.tickets.open -= 1
        self.tickets.told += 1

    def correct(self, ticket: Ticket, before: float, after: float) -> None:
        """Replace a ticket's reward by another one."""
        arm = self._arm(ticket)
        self._add(arm, before, -1)
        self._add(arm, after, 1)

    def _add(self, arm: int, reward: float, sign: int) -> None:
        shares = self.stage.course.shares
        self.exact[arm].add(reward, sign)
        self.squares[arm] += sign * shares.square(reward)
        self.others[arm] += sign * shares.inside(reward)

    def missing(self, tickets: Sequence[Ticket]) -> None:
        """Give up tickets: their rewards will not come, and their slots wait to be handed out again."""
        for ticket in tickets:
            self._arm(ticket)
        self.queue.push([(ticket.position, ticket.attempt + 1) for ticket in tickets])
        self.tickets.open -= len(tickets)
        self.tickets.missing += len(tickets)

    def late(self, number: int) -> None:
        """Count rewards of given-up tickets that came after all; they change no sum."""
        self.tickets.missing -= number
        self.tickets.late += number

    def aggregate(self, counts: Sequence[int], sums: Sequence[Fraction]) -> None:
        """Take over each arm's count and sum of a whole batch; raise `LogError` if they are not of this batch."""
        if self.issued or tuple(counts) != self.stage.pulls or self.status != "running":
            raise LogError("totals of another batch, or of one that has tickets")
        self.counts, self.exact = list(counts), [ExactSum(total) for total in sums]
        self.told = sum(self.counts)

    def decide(self) -> tuple[dict[str, Any], Standing]:
        """Let the policy decide on a complete batch; return the decision as the log has it, and the next standing."""
        if not self.due:
            raise LogError("a decision before the last reward")
        course, sums = self.stage.course, self.sums
        totals = [course.registration.total(*both) for both in zip(sums, self.counts, strict=True)]
        after = course.after(self.stage, totals)
        content: dict[str, Any] = {
            "batch": self.stage.batch,
            "counts": self.counts,
            "sums": [sum_text(total) for total in sums],
            "totals": [fraction(total) for total in totals],
            "next": list(after.pulls),
        }
        if course.keeps_squares and self.issued:  # whoever adds up elsewhere tells no squares
            content |= {"squares": self.squares, "others": self.others}
        if after.winner is not None:
            content["winner"] = after.winner
        self.queue.first = self.queue.next = 0  # it is empty: every slot has its reward
        return content, Standing.start(after, self.tickets, self.queue)

    def chosen(self, before: Sequence[int]) -> int | None:
        """Return the arm that was named, or that is pulled alone since a decision; None if there is none yet.

        `before` are the pulls of the batch before this one, which was the last one if the experiment is finished.
        """
        if self.stage.winner is not None:
            return self.stage.winner
        played = [arm for arm, count in enumerate(self.stage.pulls or before) if count]
        return played[0] if len(played) == 1 else None

    def _arm(self, ticket: Ticket) -> int:
        """Return the arm of a ticket of this batch."""
        if ticket.batch != self.stage.batch or not 0 <= ticket.position < self.issued:
            raise LogError(f"ticket {ticket.id}, which is not of this batch")
        return self.stage.order.arm(ticket.position)

    # -- as text -------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the standing as JSON, without its stage and its queued slots, which the store has elsewhere."""
        tickets, queue = self.tickets, self.queue
        sums = ",".join([f'"{total.text()}"' for total in self.exact])
        parts = [  # by hand, since every step writes it
            f'{{"batch":{self.stage.batch},"status":"{self.status}","issued":{self.issued}',
            f'"queue":[{queue.first},{queue.next}],"counts":{canonical_numbers(self.counts)}',
            f'"sums":[{sums}]',
        ]
        if self.stage.course.keeps_squares:
            parts.append(f'"squares":{canonical_numbers(self.squares)},"others":{canonical_numbers(self.others)}')
        parts.append(f'"tickets":[{tickets.open},{tickets.told},{tickets.missing},{tickets.late}]}}')
        return ",".join(parts)

    @classmethod
    def from_json(cls, text: str, stage: Stage, queue: Queue) -> Standing:
        """Read what `to_json` wrote; the same standing comes back, at its stage, with this queue."""
        content: Mapping[str, Any] = json.loads(text)
        queue.first, queue.next = content["queue"]
        arms = len(content["counts"])
        return cls(
            stage=stage,
            status=content["status"],
            issued=content["issued"],
            queue=queue,
            counts=content["counts"],
            exact=[ExactSum.read(total) for total in content["sums"]],
            squares=content.get("squares", [0.0] * arms),
            others=content.get("others", [0] * arms),
            tickets=TicketCount(*content["tickets"]),
            told=sum(content["counts"]),
        )
