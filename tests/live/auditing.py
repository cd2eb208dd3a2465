"""An auditor of a file that somebody else writes: a process of another user.

    python -m tests.live.auditing URL SECONDS

It looks at the experiment again and again, verifies it now and then, and prints how often that worked, or what went
wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from banditto.core.errors import BandittoError, ConflictError
from banditto.live.reading import Reading
from banditto.live.store import Store
from banditto.live.verify import verify
from tests.live.workers import NAME

NOBODY = 65534
ROOT = Path(__file__).parents[2]


def audit(url: str, seconds: float) -> str:
    """Look again and again for so long, and at least 20 times; how often comes back, or what was wrong."""
    until, looks, events = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until or looks < 20:
        try:
            found = seen(url) if looks % 20 else verify(url, NAME).events
        except BandittoError as error:
            return f"wrong: {error}"
        if found < events:
            return f"wrong: {found} events after {events}"
        looks, events = looks + 1, found
    return f"looks: {looks}"


def seen(url: str) -> int:
    """The number of events, by two tables that must agree."""

    def look(view: Reading) -> tuple[int, int]:
        row = view.known(NAME)
        return row["events"], sum(1 for _ in view.events(row["id"]))

    with Store(url) as store:
        told, counted = store.read(look)
    if told != counted:
        raise ConflictError(f"{counted} events instead of {told}")
    return told


def start_auditor(url: str, seconds: float) -> subprocess.Popen[str]:
    """The auditor, running; only root can start one."""
    command = [sys.executable, "-m", "tests.live.auditing", url, str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def become_nobody() -> None:
    """Go on as a user who can write nowhere; that user could not even start Python where it is in root's home."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


if __name__ == "__main__":
    audit(sys.argv[1], 0.0)  # loads all that is needed
    become_nobody()
    print(audit(sys.argv[1], float(sys.argv[2])))
