"""What people write: names of experiments and metrics, reasons, ages of tickets."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from banditto.core.errors import InvalidArgument
from banditto.core.exact import real

LONGEST_NAME = 100
LONGEST_TEXT = 2000
LONGEST_UNIT = 1000
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
UNIT_PREFIX = "unit:"  # of requests that units make, followed by a hash


def checked_name(name: object, argument: str = "name") -> str:
    """Check the name of an experiment, which is used in URLs and file names, and return it.

    Names of metrics, which stand in the first lines of tables, are of the same kind.
    """
    allowed = f"1 to {LONGEST_NAME} letters, digits, hyphens, dots and underscores, not - or . first"
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise InvalidArgument(argument, name, allowed)
    if name[0] in "-." or not all(letter.isascii() and (letter.isalnum() or letter in "-._") for letter in name):
        raise InvalidArgument(argument, name, allowed)
    return name


def checked_text(text: object, argument: str, longest: int) -> str:
    """Check text that somebody wrote, such as a reason; it comes back in Unicode's composed form (NFC), trimmed.

    What cannot be seen is refused: control characters, line feeds, marks that turn the direction of writing, halves of
    surrogate pairs. It could hide what stands in a log, or let two ids look alike.
    """
    allowed = f"text of 1 to {longest} characters in one line, all of them visible"
    if not isinstance(text, str) or len(text) > longest:
        raise InvalidArgument(argument, text, allowed)
    found = unicodedata.normalize("NFC", text).strip()
    if not found or len(found) > longest or any(unicodedata.category(letter) in _UNSEEN for letter in found):
        raise InvalidArgument(argument, text, allowed)
    return found


def checked_arm_names(names: Sequence[object], longest: int) -> list[str]:
    """Check the names of a new experiment's arms, which come back in composed form and trimmed.

    Two names that look alike are refused: those that differ in case, or in letters that Unicode calls compatible. Old
    registrations are not checked by this: they are what they were.
    """
    found = [checked_text(name, "arm_names", longest) for name in names]
    seen: dict[str, str] = {}
    for name in found:
        look = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        if look in seen:
            twice = f"{name} more than once" if seen[look] == name else f"{seen[look]} and {name}, which look alike"
            raise InvalidArgument("arm_names", twice, "different names")
        seen[look] = name
    return found


def checked_request(text: object) -> str:
    """Check the id of a request that a caller chose; it comes back."""
    request = checked_text(text, "request_id", 200)
    if request.startswith(UNIT_PREFIX):
        raise InvalidArgument("request_id", request, f"text that does not begin with {UNIT_PREFIX}")
    return request


def checked_age(age: float | timedelta) -> float:
    """Check how long a ticket must have waited; seconds come back."""
    seconds = age.total_seconds() if isinstance(age, timedelta) else real(age, "older_than", "seconds")
    if not 0 <= seconds <= 1e9:
        raise InvalidArgument("older_than", age, "from 0 to 1e9 seconds")
    return float(seconds)


def moment_before(age: float | timedelta) -> str:
    """Return the time so many seconds ago, as text in the store's format."""
    return earlier(datetime.now(UTC).isoformat(timespec="microseconds"), checked_age(age))


def earlier(time: str, seconds: float) -> str:
    """Return the time so many seconds before another one, as text in the store's format."""
    return (datetime.fromisoformat(time) - timedelta(seconds=seconds)).isoformat(timespec="microseconds")
