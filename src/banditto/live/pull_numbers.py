"""Which pull of its arm a slot of a selection is."""

from __future__ import annotations

from functools import lru_cache

from banditto.live.order import SlotOrder, order_of
from banditto.live.registration import Registration
from banditto.live.tickets import Ticket
from banditto.policies.early_cut.early_cut import EarlyCut


class PullNumbers:
    """Numbers the pulls of each arm, from 0, in the order of their slots; a batch pulls all arms equally often."""

    def __init__(self, registration: Registration, policy: EarlyCut) -> None:
        self._registration, self._arms = registration, policy.arms
        self._ends = [0, *(look.pulls for look in policy.schedule.looks), policy.schedule.pulls]
        self._order = lru_cache(maxsize=2)(self._made)

    def of(self, ticket: Ticket) -> int:
        """Find the number of the pull that a ticket is for."""
        return self._ends[ticket.batch - 1] + self._order(ticket.batch).number(ticket.position)

    def _made(self, batch: int) -> SlotOrder:
        pulls = [self._ends[batch] - self._ends[batch - 1]] * self._arms
        return order_of(self._registration.order, self._registration.protocol.seed, batch, pulls)
