"""Named tuples that are made by the hundred are those that a call makes."""

from __future__ import annotations

from banditto.core.named_tuples import all_made
from banditto.live.tickets import Ticket


def test_all_made_are_of_their_kind() -> None:
    made = list(all_made(Ticket, [(1, 2, 0), [1, 3, 1]]))
    assert made == [Ticket(1, 2, 0), Ticket(1, 3, 1)]
    assert [ticket.id for ticket in made] == ["1-3", "1-4-2"]
