"""Whole batches as totals, for teams that add up elsewhere: what is taken for one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.live.checks import plain
from banditto.live.registration import Registration

Totals = Mapping[int, tuple[int, float]] | Mapping[str, tuple[int, float]] | Mapping[int | str, tuple[int, float]]
_ALLOWED = "a count and a total for each arm that was planned"


def checked_totals(registration: Registration, totals: Totals) -> tuple[list[int], list[Fraction]]:
    """Each arm's count and exact sum, in the order of arms; arms that are not named have none."""
    if not isinstance(totals, Mapping):
        raise InvalidArgument("totals", totals, _ALLOWED)
    names, ends = registration.arm_names, registration.rewards
    counts, sums = [0] * len(names), [Fraction(0)] * len(names)
    seen: set[int] = set()
    for key, pair in totals.items():
        arm = _arm(plain(key), names)
        if arm in seen:
            raise InvalidArgument("totals", f"arm {names[arm]} more than once", _ALLOWED)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidArgument("totals", pair, _ALLOWED)
        seen.add(arm)
        counts[arm] = integer(pair[0], "count", 0, 10**15)
        sums[arm] = ends.checked_sum(plain(pair[1]), counts[arm])
    return counts, sums


def _arm(key: object, names: tuple[str, ...]) -> int:
    if isinstance(key, str) and key in names:
        return names.index(key)
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
        return key
    number = "" if isinstance(key, str) else ", or its number from 0"  # text is a name
    raise InvalidArgument("arm", key, f"one of {', '.join(names)}{number}")
