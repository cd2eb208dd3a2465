"""Rewards as callers tell them: pairs, a dictionary, a frame; checked as far as they can be without their tickets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from banditto.core.errors import InvalidArgument
from banditto.core.tabular import Frame, column_names, column_of, columns_named, has_order, is_frame
from banditto.live.metrics import Metrics, checked_metrics
from banditto.live.registration import RewardRange, arm_of, plain

# A ticket's id, its reward, its metrics, and the arm that the caller believes it has.
Telling = tuple[str, float] | tuple[str, float, Metrics | None] | tuple[str, float, Metrics | None, str | int | None]
Tellings = Iterable[Telling] | Mapping[str, float] | Frame
# The same, as far as it can be checked without the ticket; the arm by its number.
CheckedTelling = tuple[str, float, Metrics, int | None]
_NO_METRICS: Metrics = {}
_ALLOWED = "a ticket's id, its reward and, if there are any, metrics and the arm"


class Arms(Protocol):
    """What must be known of an experiment to check what is told: the names of its arms, and what a reward may be."""

    @property
    def arm_names(self) -> Sequence[str]:
        """The names, in order."""

    @property
    def rewards(self) -> RewardRange:
        """The ends of what a reward may be."""


def tellings_of(rewards: Any) -> list[Any]:
    """Return what is told as a list: the items of a dictionary, the rows of a frame, or what was listed.

    A frame has the columns `ticket` and `reward`, and may have a column `arm`; others are left alone.
    """
    if isinstance(rewards, Mapping):
        return list(rewards.items())
    if is_frame(rewards):
        tickets, values = columns_named(rewards, ("ticket", "reward"), "rewards")
        if "arm" not in column_names(rewards):
            return list(zip(tickets, values, strict=True))
        arms = column_of(rewards, "arm")
        return [(ticket, value, None, arm) for ticket, value, arm in zip(tickets, values, arms, strict=True)]
    if not has_order(rewards):
        raise InvalidArgument("rewards", rewards, f"a list of them, each {_ALLOWED}; or a dictionary {{id: reward}}")
    return list(rewards)


def checked_tellings(rewards: Any, registration: Arms) -> list[CheckedTelling]:
    """Check rewards, their metrics and their arms, whatever the tickets are; all of them come back."""
    checked = registration.rewards.checked
    return [
        (telling[0], checked(telling[1]), _NO_METRICS, None)
        if type(telling) is tuple and len(telling) == 2 and type(telling[0]) is str  # as most are
        else _checked_telling(telling, registration)
        for telling in tellings_of(rewards)
    ]


def _checked_telling(telling: Any, registration: Arms) -> CheckedTelling:
    """Check one reward that has metrics or an arm, or another shape; what is told comes back."""
    try:
        if isinstance(telling, str | bytes | Mapping):
            raise TypeError
        ticket, reward, *more = telling
        metrics, arm = (*more, None, None)[:2]
        if len(more) > 2:
            raise ValueError
    except (TypeError, ValueError):
        raise InvalidArgument("rewards", telling, _ALLOWED) from None
    if not isinstance(ticket, str):
        raise InvalidArgument("ticket", ticket, "a ticket of this experiment, by its id, which is text")
    expected = None if arm is None else arm_of(plain(arm), registration.arm_names)
    return ticket, registration.rewards.checked(reward), checked_metrics(metrics), expected
