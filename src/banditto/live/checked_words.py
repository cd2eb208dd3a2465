"""What people write: names of experiments and metrics, reasons, ages of tickets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from banditto.core.errors import InvalidArgument
from banditto.core.exact import real

LONGEST_NAME = 100
LONGEST_TEXT = 2000


def checked_name(name: object, argument: str = "name") -> str:
    """Check the name of an experiment, which comes back: it stands in URLs after # and in file names.

    Names of metrics, which stand in the first lines of tables, are of the same kind.
    """
    allowed = f"1 to {LONGEST_NAME} letters, digits, hyphens, dots and underscores, not - or . first"
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise InvalidArgument(argument, name, allowed)
    if name[0] in "-." or not all(letter.isascii() and (letter.isalnum() or letter in "-._") for letter in name):
        raise InvalidArgument(argument, name, allowed)
    return name


def checked_text(text: object, argument: str, longest: int) -> str:
    """Check text that somebody wrote, such as a reason; it comes back."""
    # neither NUL nor half of a surrogate pair, which databases do not take
    odd = not isinstance(text, str) or any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)
    if odd or not isinstance(text, str) or not text.strip() or len(text) > longest:
        raise InvalidArgument(argument, text, f"text of 1 to {longest} characters")
    return text


def moment_before(age: float | timedelta) -> str:
    """Find the time so many seconds ago, as it stands in the store."""
    seconds = age.total_seconds() if isinstance(age, timedelta) else real(age, "older_than", "seconds")
    if not 0 <= seconds <= 1e9:
        raise InvalidArgument("older_than", age, "from 0 to 1e9 seconds")
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="microseconds")
