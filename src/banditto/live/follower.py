"""Where a process has read an experiment's log to, and how it takes the next step from there."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from banditto.core.errors import ConflictError
from banditto.live.ask_tell import Transaction
from banditto.live.event_log import Row
from banditto.live.fold import Course, Stage, Standing
from banditto.live.reading import Reading
from banditto.live.registration import Registration
from banditto.live.tickets import TicketIds
from banditto.live.writing import Writing
from banditto.version import __version__

T = TypeVar("T")
SOFTWARE = {"banditto": __version__, "numpy": np.__version__, "python": platform.python_version()}
_SOFTWARE_TEXT = json.dumps(SOFTWARE)


class Bookmark(NamedTuple):
    """How far this process has read a log, by hashes: a restored store may reach the same numbers again."""

    head: str
    decision: str  # the hash of the last one; empty before the first
    stage: Stage  # the one after that decision


class Follower:
    """Follows one experiment for a process, and replays only decisions that other processes have added."""

    def __init__(self, name: str, registration: Registration) -> None:
        self.name, self.registration = name, registration
        self.ids = TicketIds(name, bare=registration.first_version)
        self._course = Course(registration)
        self._bookmark = Bookmark("", "", self._course.start())

    def start(self) -> Standing:
        """Return the standing of an experiment that was just registered."""
        return Standing.start(self._course.start())

    def keep(self, bookmark: Bookmark) -> None:
        """Remember how far a step has led, once it is committed."""
        self._bookmark = bookmark

    def step(self, rows: Writing, act: Callable[[Transaction], T]) -> tuple[T, int, Bookmark]:
        """Lock the experiment and act on it; return the answer, the number of open tickets, and the new bookmark."""
        row = rows.locked(self.name)
        if row is None or row.digest != self.registration.digest:
            raise ConflictError(f"experiment {self.name} is gone, or another one has its name")
        standing, before = self._standing(rows, row._asdict())
        transaction = Transaction(rows, row, standing, self.ids)
        if _SOFTWARE_TEXT not in row.software:
            transaction.written_by(SOFTWARE)
        answer = act(transaction)
        head, stage = transaction.head, transaction.standing.stage
        mark = Bookmark(head, before.decision if stage is before.stage else head, stage)
        return answer, transaction.standing.tickets.open, mark

    def found(self, view: Reading) -> tuple[Row, Standing]:
        """Return the experiment's row and its standing; raise `ConflictError` if it is gone."""
        row = view.find(self.name)
        if row is None:
            raise ConflictError(f"experiment {self.name} is gone")
        standing, self._bookmark = self._standing(view, row)
        return row, standing

    def _standing(self, view: Reading, row: Row) -> tuple[Standing, Bookmark]:
        """Return the standing and its bookmark; only decisions that this process does not know are replayed."""
        known = self._bookmark  # looked at once: threads may share this object
        if row["head"] != known.head:
            last, stage = view.last_decision(row["id"]), known.stage
            if last != known.decision:
                stage = self._course.start()
                for event in view.decisions(row["id"]):  # of other processes, or of an earlier life of this one
                    stage = self._course.after(stage, [float.fromhex(total) for total in event.content["totals"]])
            known = Bookmark(row["head"], last, stage)
        text, queue = view.standing_of(row)
        return Standing.from_json(text, known.stage, queue), known
