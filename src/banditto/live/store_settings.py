"""How a store is used: how long a step may wait, and how many connections a process keeps."""

from __future__ import annotations

import os
from dataclasses import dataclass

from banditto.core.errors import InvalidArgument

DEADLINE_VARIABLE = "BANDITTO_STORE_DEADLINE"


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """How long a step may wait for its store, and how many connections a process keeps there.

    Args:
        deadline: Seconds that a step waits for the store in all, for other writers, connections and answers; then it is
            a `StoreError` that says who holds the lock. Of a look, seconds until each answer: a long one may take more.
        idle: Seconds that a worker may be silent inside a step before PostgreSQL gives its lock to others. A worker
            that was stopped for longer does the step again.
        pool_size: Connections that a process keeps open.
        max_overflow: More connections that it opens while all of these are in use.
        recycle: Seconds after which a connection is replaced by a new one; None keeps it.

    Examples:
        >>> StoreSettings(deadline=5).deadline
        5.0
    """

    deadline: float = 30.0
    idle: float = 10.0
    pool_size: int = 5
    max_overflow: int = 10
    recycle: float | None = None

    def __post_init__(self) -> None:
        for name in ("deadline", "idle"):
            object.__setattr__(self, name, _seconds(getattr(self, name), name))
        if self.recycle is not None:
            object.__setattr__(self, "recycle", _seconds(self.recycle, "recycle"))
        for name, least in (("pool_size", 1), ("max_overflow", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10_000:
                raise InvalidArgument(name, value, f"an integer from {least} to 10,000")

    @classmethod
    def of_environment(cls) -> StoreSettings:
        """Make the settings of a command: the defaults, and the deadline of BANDITTO_STORE_DEADLINE if it is set."""
        given = os.environ.get(DEADLINE_VARIABLE, "").strip()
        if not given:
            return cls()
        try:
            return cls(deadline=_seconds(float(given), DEADLINE_VARIABLE))
        except ValueError:
            raise InvalidArgument(DEADLINE_VARIABLE, given, "seconds, from 1 to 86,400") from None


def _seconds(value: object, name: str) -> float:
    """Check a number of seconds, which comes back."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= 86_400:  # nor a NaN
        raise InvalidArgument(name, value, "seconds, from 1 to 86,400")
    return float(value)
