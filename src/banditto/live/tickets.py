"""Tickets: slots that were handed out, and the ids under which callers know them.

An id carries the name of its experiment, `cta.1-1`, so that a reward that is told to another experiment is refused.
Registrations of version 1 hand out ids without a name, `1-1`, as they always did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from banditto.core.errors import InvalidArgument

_TICKET = re.compile("([1-9][0-9]{0,15})-([1-9][0-9]{0,15})(?:-([1-9][0-9]{0,15}))?")
MOST_BATCHES = 10**6  # of any experiment; databases have limits for the number of a batch


class Ticket(NamedTuple):
    """A slot that was handed out; a slot whose reward never came is handed out again, as another attempt."""

    batch: int
    position: int  # from 0 in its batch
    attempt: int  # from 0

    @property
    def id(self) -> str:
        """Batch and place from 1, and a third number from the second attempt on: an id without the experiment."""
        first = f"{self.batch}-{self.position + 1}"
        return f"{first}-{self.attempt + 1}" if self.attempt else first

    @classmethod
    def parse(cls, text: str) -> Ticket | None:
        """Read an id without an experiment; its ticket comes back, None if no ticket can have that id."""
        parts = _TICKET.fullmatch(text) if isinstance(text, str) else None
        if parts is None:
            return None
        first, place, third = parts.groups()
        batch, attempt = int(first), 0 if third is None else int(third) - 1
        possible = batch <= MOST_BATCHES and attempt <= MOST_BATCHES and (attempt > 0 or third is None)
        return cls(batch, int(place) - 1, attempt) if possible else None


Slot = tuple[Ticket, int]  # a ticket and the arm that it gives


class TicketIds:
    """Writes and reads the ids of one experiment's tickets."""

    def __init__(self, name: str, bare: bool) -> None:
        self._prefix = "" if bare else f"{name}."
        # the first attempt at a slot, as nearly all are
        self._first = re.compile(re.escape(self._prefix) + "([1-9][0-9]{0,5})-([1-9][0-9]{0,15})")

    def write(self, ticket: Ticket) -> str:
        """Return a ticket's id, as callers see it."""
        batch, position, attempt = ticket
        return f"{self._prefix}{batch}-{position + 1}" if not attempt else self._prefix + ticket.id

    def read(self, text: object) -> Ticket:
        """Read an id; one that is no ticket's of this experiment is refused."""
        found = None
        if isinstance(text, str) and text.startswith(self._prefix):
            found = Ticket.parse(text[len(self._prefix) :])
        if found is None:
            raise InvalidArgument("ticket", text, f"a ticket of this experiment, such as {self._prefix}1-1")
        return found

    # -- of a whole block, without a call for each ticket --------------------------------------------------------------

    def write_all(self, tickets: Iterable[Ticket]) -> list[str]:
        """Return the ids of these tickets, as `write` does for one."""
        prefix = self._prefix
        return [
            f"{prefix}{batch}-{position + 1}-{attempt + 1}" if attempt else f"{prefix}{batch}-{position + 1}"
            for batch, position, attempt in tickets
        ]

    def check_all(self, texts: Iterable[object]) -> None:
        """Raise the error of `read` for the first id that no ticket of this experiment can have."""
        match = self._first.fullmatch
        for text in texts:
            if not isinstance(text, str) or match(text) is None:
                self.read(text)

    def read_all(self, texts: Iterable[object]) -> list[Ticket]:
        """Read ids as `read` does; the first that is no ticket's of this experiment is refused."""
        match, made = self._first.fullmatch, tuple.__new__
        found = []
        for text in texts:
            plain = match(text) if isinstance(text, str) else None
            if plain is None:
                found.append(self.read(text))
            else:
                found.append(made(Ticket, (int(plain[1]), int(plain[2]) - 1, 0)))
        return found
