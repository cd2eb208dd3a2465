"""Every ticket of a log, in a few bytes each: what `verify` must remember of a million of them.

First attempts at the slots of a batch come in order, so that their places need not be stored; later attempts are few.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from banditto.core.arrays import IntArray
from banditto.core.errors import LogError
from banditto.live.tickets import Ticket

STATES = ("open", "told", "missing", "late")
OPEN, TOLD, MISSING, LATE = range(4)
NEVER = -(2**63)  # no time in a log
_NO_NUMBER = float("nan")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTH = len("2026-01-01T00:00:00.000000+00:00")


def microseconds(text: str) -> int:
    """Read a time as `now` writes it; microseconds since 1970 come back, and anything else raises `ValueError`."""
    if len(text) != _LENGTH or text[7:11:3] != "-T" or text[19] != "." or text[26:] != "+00:00":  # nor 2026-W01-4
        raise ValueError(text)
    fraction = text[20:26]
    if not (fraction.isascii() and fraction.isdigit()):
        raise ValueError(text)
    return _whole_seconds(text[:19]) * 1_000_000 + int(fraction)


@lru_cache(maxsize=64)  # many events happen in one second
def _whole_seconds(text: str) -> int:
    return (datetime.fromisoformat(f"{text}+00:00") - _EPOCH) // timedelta(seconds=1)


def time_text(moment: int) -> str:
    """Write a time as it stands in the log."""
    seconds, fraction = divmod(moment, 1_000_000)
    return f"{_seconds_text(seconds)}.{fraction:06d}+00:00"


@lru_cache(maxsize=64)
def _seconds_text(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]


class BookLine(NamedTuple):
    """What a log says of one ticket."""

    ticket: Ticket
    arm: int
    state: int
    reward: float | None
    issued: int  # microseconds since 1970
    answered: int  # the same; NEVER without a reward
    metrics: dict[str, float]


@dataclass(slots=True)
class LaterAttempt:
    """A ticket for a slot whose first ticket was given up."""

    arm: int
    issued: int
    state: int = OPEN
    reward: float = _NO_NUMBER
    answered: int = NEVER
    metrics: dict[str, float] = field(default_factory=dict)


class BatchPages:
    """The tickets of one batch, in compact arrays by position; later attempts are kept apart."""

    __slots__ = ("answered", "arms", "issued", "later", "metrics", "rewards", "states")

    def __init__(self) -> None:
        self.arms = array("i")
        self.states = bytearray()
        self.rewards = array("d")
        self.issued = array("q")
        self.answered = array("q")
        self.metrics: dict[str, array[float]] = {}  # not a number where a ticket has none
        self.later: dict[tuple[int, int], LaterAttempt] = {}  # by position and attempt

    def issue(self, arms: Sequence[int], moment: int) -> None:
        """Add the first tickets of the next slots, one for each of these arms."""
        number = len(arms)
        self.arms.extend(arms)
        self.states.extend(bytes(number))
        self.rewards.extend([_NO_NUMBER] * number)
        self.issued.extend([moment] * number)
        self.answered.extend([NEVER] * number)

    def issue_one(self, arm: int, moment: int) -> None:
        """Add the first ticket of the next slot."""
        self.arms.append(arm)
        self.states.append(OPEN)
        self.rewards.append(_NO_NUMBER)
        self.issued.append(moment)
        self.answered.append(NEVER)

    def state(self, position: int, attempt: int) -> int | None:
        """Look up the state of a ticket; None if there is no such ticket."""
        if attempt == 0:
            return self.states[position] if 0 <= position < len(self.states) else None
        line = self.later.get((position, attempt))
        return None if line is None else line.state

    def arm(self, position: int, attempt: int) -> int:
        """Look up the arm of a ticket that is there."""
        return self.arms[position] if attempt == 0 else self.later[position, attempt].arm

    def when(self, position: int, attempt: int) -> int:
        """Look up when a ticket that is there was handed out, in microseconds since 1970."""
        return self.issued[position] if attempt == 0 else self.later[position, attempt].issued

    def reward(self, position: int, attempt: int) -> float:
        """Look up the reward of a ticket that has one."""
        return self.rewards[position] if attempt == 0 else self.later[position, attempt].reward

    def answer(self, position: int, attempt: int, state: int, reward: float, moment: int) -> None:
        """Set a ticket's reward, its state, and the time when the reward came."""
        if attempt == 0:
            self.states[position], self.rewards[position], self.answered[position] = state, reward, moment
        else:
            line = self.later[position, attempt]
            line.state, line.reward, line.answered = state, reward, moment

    def give_up(self, position: int, attempt: int) -> None:
        """Note that a ticket's reward will not come."""
        if attempt == 0:
            self.states[position] = MISSING
        else:
            self.later[position, attempt].state = MISSING

    def measure(self, position: int, attempt: int, name: str, value: float) -> None:
        """Keep a ticket's metric."""
        if attempt:
            self.later[position, attempt].metrics[name] = value
            return
        column = self.metrics.setdefault(name, array("d"))
        column.extend([_NO_NUMBER] * (position + 1 - len(column)))
        column[position] = value

    def metric(self, position: int, attempt: int, name: str) -> float | None:
        """Look up a ticket's metric; None if it has none of that name."""
        if attempt:
            line = self.later.get((position, attempt))
            return None if line is None else line.metrics.get(name)
        column = self.metrics.get(name)
        value = _NO_NUMBER if column is None or position >= len(column) else column[position]
        return value if value == value else None

    def lines(self, batch: int) -> Iterator[BookLine]:
        """Yield what is known of each ticket, by position and attempt."""
        later = sorted(self.later, reverse=True)
        columns = zip(self.arms, self.states, self.rewards, self.issued, self.answered, strict=True)
        for position, (arm, state, reward, issued, answered) in enumerate(columns):
            told = reward if state in (TOLD, LATE) else None
            metrics = self._metrics_of(position) if self.metrics else {}
            yield BookLine(Ticket(batch, position, 0), arm, state, told, issued, answered, metrics)
            while later and later[-1][0] == position:
                yield self._later_line(batch, *later.pop())

    def _metrics_of(self, position: int) -> dict[str, float]:
        found = {name: self.metric(position, 0, name) for name in self.metrics}
        return {name: value for name, value in found.items() if value is not None}

    def _later_line(self, batch: int, position: int, attempt: int) -> BookLine:
        line = self.later[position, attempt]
        reward = line.reward if line.state in (TOLD, LATE) else None
        ticket = Ticket(batch, position, attempt)
        return BookLine(ticket, line.arm, line.state, reward, line.issued, line.answered, line.metrics)


class TicketBook:
    """The tickets of all batches of one experiment, as a log has them."""

    def __init__(self) -> None:
        self.batches: dict[int, BatchPages] = {}
        self.metric_names: set[str] = set()

    def __len__(self) -> int:
        return sum(len(pages.arms) + len(pages.later) for pages in self.batches.values())

    def pages(self, batch: int) -> BatchPages:
        """Return the tickets of a batch; an empty set of them is made if there is none."""
        found = self.batches.get(batch)
        if found is None:
            found = self.batches[batch] = BatchPages()
        return found

    def of(self, batch: int, position: int, attempt: int, state: int) -> BatchPages:
        """Return the batch of a ticket; raise `LogError` if the ticket is not in this state."""
        pages = self.batches.get(batch)
        if pages is None or pages.state(position, attempt) != state:
            raise LogError(f"ticket {Ticket(batch, position, attempt).id} is not {STATES[state]}")
        return pages

    def counts(self, batch: int, arms: int, first: bool = False) -> IntArray:
        """Count a batch's tickets, as an array (state, arm); `first` leaves out later attempts at a slot."""
        found = np.zeros((len(STATES), arms), dtype=np.int64)
        pages = self.batches.get(batch)
        if pages is not None:
            np.add.at(found, (np.frombuffer(bytes(pages.states), dtype=np.uint8), np.array(pages.arms)), 1)
            for line in () if first else pages.later.values():
                found[line.state, line.arm] += 1
        return found

    def values(self, batch: int, name: str) -> Iterator[tuple[int, float]]:
        """Yield the arm and the value of a batch's metric, of tickets whose rewards count."""
        pages = self.batches[batch]
        for position, value in enumerate(pages.metrics.get(name, ())):
            if value == value and pages.states[position] == TOLD:
                yield pages.arms[position], value
        for line in pages.later.values():
            if line.state == TOLD and name in line.metrics:
                yield line.arm, line.metrics[name]

    def told(self, batch: int) -> Iterator[tuple[int, float]]:
        """Yield the arm and the reward of a batch's tickets whose rewards count."""
        pages = self.batches[batch]
        for arm, state, reward in zip(pages.arms, pages.states, pages.rewards, strict=True):
            if state == TOLD:
                yield arm, reward
        for line in pages.later.values():
            if line.state == TOLD:
                yield line.arm, line.reward

    def lines(self) -> Iterator[BookLine]:
        """Yield what is known of each ticket, by batch, position and attempt."""
        for batch, pages in sorted(self.batches.items()):
            yield from pages.lines(batch)

    def metrics(self) -> int:
        """Return how many values of metrics there are in all."""
        return sum(
            sum(value == value for column in pages.metrics.values() for value in column)
            + sum(len(line.metrics) for line in pages.later.values())
            for pages in self.batches.values()
        )
