"""How often somebody may call: a bucket of requests for each caller, which fills again at a rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST = 10_000  # callers that are remembered; the one who was silent for longest is forgotten first


class RateLimits:
    """Counts requests by caller, in this process; up to twice the rate may come at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._clock = rate, 2.0 * rate, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when that was

    def wait(self, caller: str) -> float:
        """Count one request of a caller; return 0 if it may go on, else the seconds until it may."""
        moment = self._clock()
        left, last = self._buckets.pop(caller, (self._most, moment))
        left = min(self._most, left + (moment - last) * self._rate)
        allowed = left >= 1.0
        self._buckets[caller] = (left - 1.0 if allowed else left, moment)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self._rate
